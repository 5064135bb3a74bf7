# `make demo` and `make test` set up all they need; a bare machine wants only python3-venv and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
WORKERS ?= 4

.PHONY: help demo docs test coverage floors on-floors later-pythons lint format types check bench bench-redis bench-growth bench-guard cron-full crash-full chaos histories lock proto ui ui-check screenshots clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

# The product and what it needs to run.
$(INSTALLED): requirements/build.txt requirements/server.txt pyproject.toml
	@echo "Setting up $(VENV) (once, some seconds) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is not Python 3.11 or newer: install one, or name it: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make an environment: on Debian and Ubuntu, apt install python3-venv"; exit 1; }
	@$(PIP) --require-hashes -r requirements/build.txt -r requirements/server.txt
	@$(PIP) --no-build-isolation --no-deps --editable .
	@touch $(INSTALLED)

# And what its development needs.
$(READY): $(INSTALLED) requirements/dev.txt
	@echo "Adding tests and linters to $(VENV) (once, under a minute) ..."
	@$(PIP) --require-hashes -r requirements/dev.txt
	@touch $(READY)

demo: $(INSTALLED) ## a small live application: Ctrl-C and run it again, nothing is lost
	@$(BIN)/tickwork demo $(ARGS)

# And what builds the site of the docs.
$(DOCS_READY): $(INSTALLED) requirements/docs.txt
	@$(PIP) --require-hashes -r requirements/docs.txt
	@touch $(DOCS_READY)

docs: $(DOCS_READY) ## the docs as a site in build/docs/site; fails on a broken link or a page that is not in the list
	@$(BIN)/python -m docs.site

PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# Tracing costs a test half as much again in CPU. These three reach nearly all; contract and faults go over the same lines.
TRACED := tests/unit tests/integration tests/topology

test: $(READY) ## the whole test suite; with COVERAGE=yes it also tells which share of the code ran
ifdef COVERAGE
	@$(MAKE) --no-print-directory coverage
	@$(PYTEST) tests $(addprefix --ignore=,$(TRACED))
else
	@$(PYTEST) $(ARGS)
endif

coverage: $(READY) ## the share of the code that unit, integration and topology tests run; ARGS="tests" for all
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest -n $(WORKERS) --dist worksteal $(or $(ARGS),$(TRACED))
	@find . -maxdepth 1 -name '.coverage.*' -empty -delete # of processes that were killed while they wrote
	@$(BIN)/python -m coverage combine --quiet
	@echo "In all, and files below 85 % ($(BIN)/coverage report --show-missing names the lines):"
	@$(BIN)/python -m coverage report | awk '$$1 == "TOTAL" || $$4 + 0 < 85'

floors: ## what depends on libraries most, with the oldest releases that pyproject.toml allows
	@$(MAKE) --no-print-directory on-floors VENV=.venv-floors

on-floors: $(READY)
	@$(PIP) --require-hashes --no-deps -r requirements/floors.txt
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/unit tests/docs/test_snippets.py \
	  tests/integration/test_handlers.py tests/integration/test_cli.py tests/topology/test_refusals.py $(ARGS)

later-pythons: ## the unit tests on Python 3.12 and 3.13, where they are installed
	@.ci/later-pythons

lint: $(READY) ## ruff, and the format check
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

format: $(READY) ## rewrite files in the house format
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

types: $(READY) ## mypy --strict over everything
	@$(BIN)/mypy

check: lint types test ## all that CI runs

bench: $(READY) ## memory, SQLite and Redis against their peers; makes an environment for each on first use
	@$(BIN)/python -m benchmarks $(ARGS)

bench-redis: $(READY) ## Redis alone
	@$(BIN)/python -m benchmarks --store redis $(ARGS)

bench-growth: $(READY) ## what a task costs as there is more of something: queued, queues, types, nodes and so on
	@$(BIN)/python -m benchmarks.growth $(ARGS)

bench-guard: $(READY) ## has a task come to cost more? ratios within one run; the exit code answers
	@$(BIN)/python -m benchmarks.guard $(ARGS)

cron-full: $(READY) ## the daylight-saving property over every zone and expression
	@$(BIN)/python -m tests.unit.cron_zones --full

crash-full: $(READY) ## 200 SIGKILLs on one SQLite file
	@$(BIN)/python -m tests.faults.sqlite_kills --kills 200

chaos: $(READY) ## every fault case on Redis in its long form; ARGS="--seed 7 --only zombie" repeats one
	@$(BIN)/python -m tests.faults.chaos $(ARGS)

histories: $(READY) ## random histories, an hour on each store; ARGS="--kind redis --seed 7 --seconds 600"
	@$(BIN)/python -m tests.faults.random_history $(ARGS)

lock: $(READY) ## recompile the hashed requirements
	@$(BIN)/python -m requirements.lock

proto: $(INSTALLED) ## the .proto of the gRPC API, from its operations, and the code of both gRPC protocols
	@$(BIN)/python -m tickwork.server.grpc.schema
	@$(PYTHON) -m venv .venv-proto
	@.venv-proto/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/proto.txt
	@.venv-proto/bin/python -m requirements.grpc_code

ui: ## build the dashboard from ui/ into the package; needs Node
	@cd ui && npm ci --silent && npm run --silent check && npm test --silent && npm run --silent build

ui-check: ## does the dashboard in the package match its source?
	@cd ui && npm ci --silent && npm run --silent check && npm test --silent
	@cd ui && npx vite build --logLevel warn --outDir ../build/ui --emptyOutDir
	@diff -r build/ui src/tickwork/server/ui && echo "the dashboard in the package matches its source"

screenshots: $(READY) ## pictures of the dashboard for the docs; needs Chromium
	@$(BIN)/python -m docs.screenshots

clean: ## remove the environment and caches
	@rm -rf $(VENV) .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
