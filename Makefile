# Two commands do everything on a machine that has Python 3.11 or newer and make:
#   make demo    install Surefoot and tune a real model, with a page of pictures
#   make test    install the development tools, lint, type-check and test
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
RAY    ?= .venv-ray
BOTORCH ?= .venv-botorch
AX     ?= .venv-ax
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# One BLAS thread each: two test workers share the machine.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test bench test-all test-ray test-botorch test-ax lint format docs clean
.DEFAULT_GOAL := help

help:
	@sed -n '1,3p' Makefile; echo '#   make test-all, make test-ray, make test-botorch, make test-ax, make docs, make lint, make format, make clean'

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

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

clean:
	rm -rf $(VENV) $(RAY) $(BOTORCH) $(AX) build dist site .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
