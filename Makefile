# Two commands do everything on a machine that has Python 3.11 or newer and make:
#   make demo    install Surefoot and tune a real model, with a page of pictures
#   make test    install the development tools, lint, type-check and test
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
RAY    ?= .venv-ray
BOTORCH ?= .venv-botorch
AX     ?= .venv-ax
GAMES  ?= .venv-games
FLOWER ?= .venv-flower
ATTACK ?= .venv-attack
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# One BLAS thread each: two test workers share the machine.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test bench test-all test-ray test-botorch test-ax test-games test-flower test-attack lint format docs clean web
.DEFAULT_GOAL := help

help:
	@sed -n '1,3p' Makefile; echo '#   make test-all, make test-ray, make test-botorch, make test-ax, make test-games, make test-flower, make test-attack, make docs, make web, make lint, make format, make clean'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[dev,demo,torch]'
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) -e '.[dev,demo,bench]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/surefoot demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(ONE_THREAD) $(BIN)/pytest -n 2 -m 'not slow' --cov --cov-report=term:skip-covered -q

# Hours, on a quiet machine: writes benchmarks/RESULTS.md.
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/all.py

test-all: lint $(VENV)/.bench
	$(ONE_THREAD) $(BIN)/pytest -n 2 --cov --cov-report=term:skip-covered

# Ray Tune in an environment of its own: it does not go together with Flower. Data frames come with it.
$(RAY)/.ray: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray,sklearn]' 'ray[tune]==2.60.*' pytest
	@touch $@

test-ray: $(RAY)/.ray
	$(ONE_THREAD) $(RAY)/bin/pytest -q tests/bridge/test_ray_tune.py src/surefoot/bridge/ray_tune \
	  tests/bridge/test_sklearn_search.py::test_data_frames

# BoTorch and Ax bring a torch of their own, of the version in constraints.txt.
$(BOTORCH)/.botorch: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BOTORCH)
	$(BOTORCH)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[botorch]' pytest
	@touch $@

test-botorch: $(BOTORCH)/.botorch
	$(ONE_THREAD) $(BOTORCH)/bin/pytest -q tests/bridge/test_botorch.py tests/bridge/test_botorch_rules.py src/surefoot/bridge/botorch

$(AX)/.ax: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(AX)
	$(AX)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ax]' pytest
	@touch $@

test-ax: $(AX)/.ax
	$(ONE_THREAD) $(AX)/bin/pytest -q tests/bridge/test_ax.py src/surefoot/bridge/ax

# Flower with its simulation, in an environment of its own: its typer, its FastAPI and its Ray are older than the others'.
$(FLOWER)/.flower: pyproject.toml constraints-flower.txt
	$(PYTHON) -m venv $(FLOWER)
	$(FLOWER)/bin/pip install --quiet --disable-pip-version-check -c constraints-flower.txt -e '.[flower]' 'flwr[simulation]' pytest
	@touch $@

# Real federations on loopback are part of it, about three minutes.
test-flower: $(FLOWER)/.flower
	$(ONE_THREAD) $(FLOWER)/bin/pytest -q tests/bridge/test_flower_accountant.py tests/bridge/test_flower_rounds.py \
	  tests/bridge/test_flower_federation.py src/surefoot/bridge/flower

# The page of the service, built into the package; needs Node 20 or newer. The result is committed.
web:
	cd web && npm ci --no-audit --no-fund && npm run check && npm run build

# PettingZoo and its particle environments.
$(GAMES)/.games: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(GAMES)
	$(GAMES)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[pettingzoo]' pytest
	@touch $@

test-games: $(GAMES)/.games
	$(ONE_THREAD) SDL_VIDEODRIVER=dummy $(GAMES)/bin/pytest -q tests/bridge/test_pettingzoo_game.py \
	  src/surefoot/bridge/gymnasium.py src/surefoot/bridge/pettingzoo.py

# Foolbox and the Adversarial Robustness Toolbox.
$(ATTACK)/.attack: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(ATTACK)
	$(ATTACK)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[foolbox,art]' pytest
	@touch $@

test-attack: $(ATTACK)/.attack
	$(ONE_THREAD) $(ATTACK)/bin/pytest -q tests/bridge/test_foolbox.py tests/bridge/test_art.py \
	  src/surefoot/bridge/foolbox.py src/surefoot/bridge/art.py

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

clean:
	rm -rf $(VENV) $(RAY) $(BOTORCH) $(AX) $(GAMES) $(FLOWER) $(ATTACK) build dist site .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
