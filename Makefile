# Two commands do everything on a machine that has Python 3.11 or newer and make:
#   make demo    install Surefoot and tune a real model, with a page of pictures
#   make test    install the development tools, lint, type-check and test
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# One BLAS thread each: two test workers share the machine.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test bench test-all lint format docs clean
.DEFAULT_GOAL := help

help:
	@sed -n '1,3p' Makefile; echo '#   make test-all, make docs, make lint, make format, make clean'

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

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

clean:
	rm -rf $(VENV) build dist site .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
