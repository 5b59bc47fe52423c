# Each target sets up what it needs; the set-up runs once, and again when pyproject.toml changes.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHONS := python3.11 python3.12 python3.13 python3
TORCH := torch==2.13.0
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Waiting threads sleep instead of spinning: far faster where other processes share the cores.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help demo test lint types contracts unit study format clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## fit on the embedded Adult data, explain five people, write report.html
	@$(BIN)/gpae demo -o report.html

test: lint types contracts unit ## everything that must be green

lint: $(READY) ## style
	@echo "== ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	@echo "== mypy"
	@$(BIN)/mypy

contracts: $(READY) ## who may import whom (.importlinter)
	@echo "== import contracts"
	@$(BIN)/lint-imports

unit: $(READY) ## the tests
	@echo "== pytest"
	@OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto

study: $(READY) ## the figures under results/ again (an hour or more)
	@$(BIN)/python benchmarks/core.py -o results/core

format: $(READY) ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean: ## remove the environment and all caches
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# PyTorch goes first and pinned: a machine whose pip knows a CPU build of this version then gets that one, and
# installing gpae does not bring in another.
$(READY): pyproject.toml
	@set -e; \
	for candidate in $(PYTHONS); do \
	  if command -v $$candidate >/dev/null && \
	     $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	  then found=$$candidate; break; fi; \
	done; \
	if [ -z "$${found:-}" ]; then \
	  echo "gpae needs Python 3.11 or newer with the venv module (looked for: $(PYTHONS))." >&2; \
	  echo "On Debian or Ubuntu: apt-get install python3 python3-venv" >&2; exit 1; \
	fi; \
	echo "Setting up $(VENV) with $$($$found --version); PyTorch takes a few minutes, once ..."; \
	$$found -m venv $(VENV)
	@$(PIP) install $(TORCH)
	@$(PIP) install -e '.[dev]'
	@touch $@
	@echo "Done: $(BIN)/gpae"
