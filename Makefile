# Two commands on a fresh machine: `make reproduce` and `make test`. Variables: PRESET= STUDY= CORES=
SHELL := /bin/bash
PRESET ?= laptop
CORES ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
GROUPS ?= dev
RUN := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/restudy
SELECT := --preset $(PRESET) $(if $(STUDY),--study $(STUDY))
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
# Container images often forbid bytecode files: each of hundreds of processes would compile its imports anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: reproduce smoke figures notebooks report verdicts setup peers text cluster lock lint test test-full bench ui clean help

reproduce: setup ## environment, data, every study, report
	$(RUN) run $(SELECT) --cores $(CORES)

smoke: setup ## every study in seconds: proves the plumbing, gives no scientific verdict
	$(RUN) run --preset smoke $(if $(STUDY),--study $(STUDY)) --cores $(CORES)

figures notebooks report verdicts: setup ## this part only
	$(RUN) run $(SELECT) --cores $(CORES) --target $@

setup: $(BIN)/.restudy ## the locked environment in .venv

# The stamp is newer than the lock: nothing to install. uv is fast; plain pip does the same, slower.
$(BIN)/.restudy: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "restudy: Python 3.11 or newer is needed; set PYTHON=" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv || echo "restudy: uv cannot be installed; pip will do" >&2
	if test -x $(BIN)/uv; then \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e . $(addprefix --group ,$(GROUPS)); \
	else \
	  $(BIN)/python -m pip install --quiet -c constraints.txt -e . $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"])'); \
	fi
	@grep -q SNAKEMAKE_PROFILE $(BIN)/activate || echo 'export SNAKEMAKE_PROFILE="$(CURDIR)/workflow/profiles/default"' >> $(BIN)/activate
	touch $@

peers: setup ## the optional libraries that `make bench` compares with
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt --group peers

text: setup ## the optional libraries of the real-text track (preset workstation of head_pruning)
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt --group text

cluster: setup ## Snakemake's SLURM executor, in $(VENV)/cluster; put that folder on PYTHONPATH to use it
	$(BIN)/uv pip install --quiet --python $(BIN)/python --target $(VENV)/cluster --no-deps -c constraints.txt \
	  snakemake-executor-plugin-slurm snakemake-executor-plugin-slurm-jobstep throttler

lock: setup ## solve the environment anew
	$(BIN)/uv pip compile pyproject.toml --group dev --group peers --group cluster --group text --universal --python-version 3.11 --no-annotate --quiet -o constraints.txt

lint: setup ## ruff, snakefmt, mypy
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy

test: setup lint ## the suite that CI runs
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n $(CORES) --dist worksteal --durations 15

test-full: setup lint ## as `test`, with the costly checks on every study
	PATH="$(CURDIR)/$(BIN):$$PATH" RESTUDY_TEST_FULL=1 $(BIN)/python -m pytest -n $(CORES) --dist worksteal --durations 15

bench: setup peers ## ratios measured in one run, into docs/performance.md; ONLY="landscape ..." for some
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m restudy.bench.performance $(ONLY)

ui: setup ## MLflow's pages of all runs
	$(RUN) ui

clean: ## what was computed here, never data or environment
	rm -rf results models figures report work .snakemake mlruns mlflow.db mlflow.db.lock

help: ## this list
	@grep -hE '^[a-z -]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 34
