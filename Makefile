# `make demo` and `make test` set up all they need; a bare machine wants only python3-venv and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(PYTHON) requirements/environment.py
PYTEST := $(BIN)/python -m pytest

# Some images set it. Without compiled files, each of the thousand programs that the tests start compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help installed ready demo docs test test-quick test-all affected bench-against mutants coverage old later ready-by-pip machine fuzz lint format types check bench bench-redis bench-growth bench-guard cron-full crash-full chaos histories lock proto proto-check ui ui-check screenshots clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

installed: # the product, and what it needs to run
	@$(SETUP) $(VENV) run

ready: # and what its development needs
	@$(SETUP) $(VENV) dev

demo: installed ## a small live application: Ctrl-C and run it again, nothing is lost
	@$(BIN)/tickwork demo $(ARGS)

docs: ready ## the docs as a site in build/docs/site; fails on a broken link or a page that is not in the list
	@$(BIN)/python -m docs.site

TIER := test
test: ready ## what a change can break, in some minutes; ARGS="tests/unit -k cron" for a part, --store=redis for a store
	@$(PYTEST) $(or $(ARGS),--tier $(TIER))

test-quick: ready ## unit tests, and what needs no server and no process: under a minute and a half
	@$(PYTEST) --tier quick $(ARGS)

test-all: ## everything that takes long, too: all servers, random histories, fuzz, coverage, other Pythons and libraries
	@$(PYTHON) -m tests.suite.parts all

coverage: ready ## which share of the code the tests run; fails below the share in pyproject.toml
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest $(or $(ARGS),tests/unit tests/integration tests/topology)
	@find . -maxdepth 1 -name '.coverage.*' -empty -delete # of processes that were killed while they wrote
	@$(BIN)/python -m coverage combine --quiet
	@echo "In all, and files below 85 % ($(BIN)/coverage report --show-missing names the lines):"
	@mkdir -p build
	@$(BIN)/python -m coverage report > build/coverage.txt; status=$$?; \
	  awk '$$1 == "TOTAL" || $$4 + 0 < 85' build/coverage.txt; exit $$status

# An old machine: the system's own Python and SQLite, the oldest libraries that pyproject.toml allows, no servers but those of
# the wheels, and the files that are published in place of the tree; and for each commit other surroundings (user, zone, ...).
OLD := .venv-old
OLD_PYTHON := $(firstword $(shell /usr/bin/python3 -c 'import sys; sys.version_info >= (3, 11) and print(sys.executable)' 2> /dev/null) $(PYTHON))
LIBRARIES := old
SURROUNDINGS := --seed $$($(OLD)/bin/python -m tests.suite.seed)
old: ## the demo, and what Python, SQLite, libraries and servers decide, on an old machine; SURROUNDINGS=chicago-de for certain ones
	@$(OLD_PYTHON) requirements/environment.py $(OLD) run
	@$(OLD)/bin/tickwork demo --seconds 3 --store sqlite:///$(OLD)/demo.db
	@$(OLD_PYTHON) requirements/environment.py $(OLD) $(LIBRARIES)
	@REDIS_SERVERS=wheels $(OLD)/bin/python -m tests.suite.surroundings $(SURROUNDINGS) -- $(OLD)/bin/python -m pytest $(or $(ARGS),--tier old)

later: ## the tests that Python decides on a later one, where it is installed: VERSION=3.13
	@.ci/later-python $(VERSION) $(ARGS)

affected: ready ## the tests that a change needs; SINCE=REF: all changed since then (default: since origin/main)
	@$(BIN)/python -m tests.suite.affected $(if $(SINCE),--since $(SINCE)) $(ARGS)

mutants: ready ## breaks the code by chance: what do no tests notice? ARGS="--seed 7 --count 200"
	@$(BIN)/python -m tests.suite.mutants $(ARGS)

EXAMPLES := 2000
machine: ready ## random histories that all stores must agree on: EXAMPLES=2000 of them on each, KIND=redis for one store
	@TESTS_EXAMPLES=$(EXAMPLES) $(BIN)/python -m tests.contract.test_machine $(KIND)

fuzz: ready ## requests that are made from the description of the API: EXAMPLES=500 for each operation
	@$(BIN)/python -m tests.server.fuzzing $(EXAMPLES)

ready-by-pip: # the environment as it is made where there is no uv
	@TESTS_INSTALLER=pip $(SETUP) .venv-pip dev
	@.venv-pip/bin/python -m pytest tests/unit/test_setup.py tests/unit/test_public_names.py

lint: ready ## ruff, and the format check
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

format: ready ## rewrite files in the house format
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

types: ready ## mypy --strict over everything
	@$(BIN)/mypy

check: lint types test ## before a change is handed in

bench: ready ## memory, SQLite and Redis against their peers; makes an environment for each on first use
	@$(BIN)/python -m benchmarks $(ARGS)

bench-redis: ready ## Redis alone
	@$(BIN)/python -m benchmarks --store redis $(ARGS)

bench-growth: ready ## what a task costs as there is more of something: queued, queues, types, nodes and so on
	@$(BIN)/python -m benchmarks.growth $(ARGS)

bench-guard: ready ## has a task come to cost more? ratios within one run; the exit code answers
	@$(BIN)/python -m benchmarks.guard $(ARGS)

bench-against: ready ## does the working tree cost more than the commit REF=main? CPU a task, in turns; the exit code answers
	@$(BIN)/python -m benchmarks.against $(ARGS) -- "$(REF)"

cron-full: ready ## the daylight-saving property over every zone and expression
	@$(BIN)/python -m tests.unit.cron_zones --full

crash-full: ready ## 200 SIGKILLs on one SQLite file
	@$(BIN)/python -m tests.faults.sqlite_kills --kills 200

chaos: ready ## every fault case on Redis in its long form; ARGS="--seed 7 --only zombie" repeats one
	@$(BIN)/python -m tests.faults.chaos $(ARGS)

histories: ready ## random histories, an hour on each store; ARGS="--kind redis --seed 7 --seconds 600"
	@$(BIN)/python -m tests.faults.random_history $(ARGS)

lock: ready ## recompile the hashed requirements
	@$(BIN)/python -m requirements.lock

proto: installed ## the .proto of the gRPC API, from its operations, and the code of both gRPC protocols
	@$(BIN)/python -m tickwork.server.grpc.schema
	@$(SETUP) .venv-proto proto
	@.venv-proto/bin/python -m requirements.grpc_code

proto-check: installed # is the generated code what the generator makes?
	@$(SETUP) .venv-proto proto
	@.venv-proto/bin/python -m requirements.grpc_code --check

ui: ## build the dashboard from ui/ into the package; needs Node
	@cd ui && npm ci --silent && npm run --silent check && npm test --silent && npm run --silent build

ui-check: ## does the dashboard in the package match its source?
	@cd ui && npm ci --silent && npm run --silent check && npm test --silent
	@cd ui && npx vite build --logLevel warn --outDir ../build/ui --emptyOutDir
	@diff -r build/ui src/tickwork/server/ui && echo "the dashboard in the package matches its source"

screenshots: ready ## pictures of the dashboard for the docs; needs Chromium
	@$(BIN)/python -m docs.screenshots

clean: ## remove the environment and caches
	@rm -rf $(VENV) .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
