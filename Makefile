# Two commands do everything on a machine that has Python 3.11 or newer and make: `make demo` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
RAY    ?= .venv-ray
BOTORCH ?= .venv-botorch
AX     ?= .venv-ax
GAMES  ?= .venv-games
FLOWER ?= .venv-flower
ATTACK ?= .venv-attack
INSTALL := pip install --quiet --disable-pip-version-check
PIP    := $(BIN)/$(INSTALL) -c constraints.txt
# An environment of its own: folder, constraints, what to install.
comma  := ,
environment = $(PYTHON) -m venv $(1) && $(1)/bin/$(INSTALL) -c $(2) $(3) pytest pytest-cov && touch $@
# One BLAS thread each: two test workers share the machine.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# Tests that are compiled once need half the time to be collected again, whatever the shell says of __pycache__.
unexport PYTHONDONTWRITEBYTECODE

# `make coverage` measures each suite on its own; otherwise nothing is measured, which saves a third of the time.
COVER  ?=
SUITES := main ray botorch ax flower games attack

.PHONY: help demo test test-main test-all bench lint format docs web clean coverage coverage-report test-packaging \
  test-ray test-botorch test-ax test-flower test-games test-attack
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-22s %s\n", $$1, $$2 }'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml lab/pyproject.toml constraints.txt
	$(PIP) -e '.[dev,demo,torch]' -e lab
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) -e '.[dev,demo,bench]' -e lab
	@touch $@

demo: $(VENV)/.demo ## install Surefoot and tune a real model, with a page of pictures
	$(BIN)/surefoot demo

lint: $(VENV)/.dev ## lint, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## ruff, fixing what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The linters need one core for half a minute, and tests that wait for a server leave as much: side by side.
test: $(VENV)/.dev ## install the development tools, lint, type-check and test
	@mkdir -p build
	@$(MAKE) --no-print-directory lint > build/lint.txt 2>&1 & lint=$$!; \
	  $(MAKE) --no-print-directory test-main; tests=$$?; \
	  wait $$lint; lint=$$?; cat build/lint.txt; exit $$((lint || tests))

test-main: $(VENV)/.dev ## the tests alone
	$(ONE_THREAD) $(BIN)/pytest -n auto --dist worksteal -m 'not slow' $(COVER) -q

bench: $(VENV)/.bench ## Surefoot beside its peers, hours on a quiet machine: writes benchmarks/RESULTS.md
	$(BIN)/python benchmarks/all.py

test-all: lint $(VENV)/.bench ## slow statistical tests, new random examples and comparisons with other libraries too
	$(ONE_THREAD) SUREFOOT_NEW_EXAMPLES=1 $(BIN)/pytest -n auto --dist worksteal -q

# Ray Tune in an environment of its own: it does not go together with Flower. Data frames come with it.
$(RAY)/.ray: pyproject.toml constraints.txt
	$(call environment,$(RAY),constraints.txt,-e '.[ray$(comma)sklearn]' 'ray[tune]==2.60.*')

test-ray: $(RAY)/.ray ## the bridge to Ray Tune, in an environment of its own
	$(ONE_THREAD) $(RAY)/bin/pytest -q $(COVER) tests/bridge/test_ray_tune.py src/surefoot/bridge/ray_tune \
	  tests/bridge/test_sklearn_search.py::test_data_frames

# BoTorch and Ax bring a torch of their own, of the version in constraints.txt.
$(BOTORCH)/.botorch: pyproject.toml constraints.txt
	$(call environment,$(BOTORCH),constraints.txt,-e '.[botorch]')

test-botorch: $(BOTORCH)/.botorch ## the bridge to BoTorch, in an environment of its own
	$(ONE_THREAD) $(BOTORCH)/bin/pytest -q $(COVER) tests/bridge/test_botorch.py tests/bridge/test_botorch_rules.py src/surefoot/bridge/botorch

$(AX)/.ax: pyproject.toml constraints.txt
	$(call environment,$(AX),constraints.txt,-e '.[ax]')

test-ax: $(AX)/.ax ## the bridge to Ax, in an environment of its own
	$(ONE_THREAD) $(AX)/bin/pytest -q $(COVER) tests/bridge/test_ax.py src/surefoot/bridge/ax

# Flower with its simulation, in an environment of its own: its Rich, its FastAPI and its Ray are older than the others'.
$(FLOWER)/.flower: pyproject.toml constraints-flower.txt
	$(call environment,$(FLOWER),constraints-flower.txt,-e '.[flower]' 'flwr[simulation]')

test-flower: $(FLOWER)/.flower ## the bridge to Flower, with real federations on loopback, three minutes
	$(ONE_THREAD) $(FLOWER)/bin/pytest -q $(COVER) tests/bridge/test_flower_accountant.py tests/bridge/test_flower_rounds.py \
	  tests/bridge/test_flower_federation.py tests/bridge/test_flower_secure.py \
	  tests/bridge/test_flower_secure_federation.py src/surefoot/bridge/flower

# The result is committed.
web: ## the page of the service, built into the package; needs Node 20 or newer
	cd web && npm ci --no-audit --no-fund && npm run check && npm run build

# PettingZoo and its particle environments.
$(GAMES)/.games: pyproject.toml constraints.txt
	$(call environment,$(GAMES),constraints.txt,-e '.[pettingzoo]')

test-games: $(GAMES)/.games ## the bridges to PettingZoo and Gymnasium, in an environment of its own
	$(ONE_THREAD) SDL_VIDEODRIVER=dummy $(GAMES)/bin/pytest -q $(COVER) tests/bridge/test_pettingzoo_game.py \
	  src/surefoot/bridge/gymnasium.py src/surefoot/bridge/pettingzoo.py

# Foolbox and the Adversarial Robustness Toolbox.
$(ATTACK)/.attack: pyproject.toml constraints.txt
	$(call environment,$(ATTACK),constraints.txt,-e '.[foolbox$(comma)art]')

test-attack: $(ATTACK)/.attack ## the bridges to Foolbox and the Adversarial Robustness Toolbox, in an environment of its own
	$(ONE_THREAD) $(ATTACK)/bin/pytest -q $(COVER) tests/bridge/test_foolbox.py tests/bridge/test_art.py \
	  src/surefoot/bridge/foolbox.py src/surefoot/bridge/art.py

docs: $(VENV)/.dev ## the documentation, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

# One suite at a time, each with its data in build/coverage: a suite that was measured before is measured again by
# `make build/coverage/ray`, and `make coverage-report` puts together what is there.
coverage: $(SUITES:%=build/coverage/%) ## all suites in their environments, lines covered by any of them
	@$(MAKE) --no-print-directory coverage-report

build/coverage/%: FORCE
	@mkdir -p build/coverage && rm -f $@ $@.*
	COVERAGE_FILE=$(CURDIR)/$@ $(MAKE) --no-print-directory test-$* COVER='--cov --cov-report='

coverage-report: $(VENV)/.dev ## the same from the suites measured so far
	COVERAGE_FILE=build/coverage.all $(BIN)/coverage combine --keep build/coverage/*
	COVERAGE_FILE=build/coverage.all $(BIN)/coverage report --skip-covered
	@COVERAGE_FILE=build/coverage.all $(BIN)/coverage json -q -o build/coverage.json
	@$(BIN)/python -c "import json; t = json.load(open('build/coverage.json'))['totals']; \
	  print('lines: %d of %d, %.2f %%' % (t['covered_lines'], t['num_statements'], 100 * t['covered_lines'] / t['num_statements']))"

FORCE:

test-packaging: ## wheel and sdist, installed for each extra and on every Python; gigabytes, half an hour
	$(PYTHON) release/check.py

clean: ## remove environments, caches and what was built
	rm -rf $(VENV) $(RAY) $(BOTORCH) $(AX) $(GAMES) $(FLOWER) $(ATTACK) build dist site .coverage* \
	  .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
