# Taskyard's verbs. On a fresh machine only python3 (3.11 or newer) and make are needed:
# every verb sets up what it uses (scripts/setup.py), once.

PYTHON ?= python3
BIN    := .venv/bin
PYTEST ?= $(BIN)/python -m pytest

# Where tests are that run alone: to find them among thousands takes as long as to run some.
ALONE   = $(shell grep -rl --include='test_*.py' 'pytest\.mark\.serial' tests)

# What the type checker reads; a folder that does not exist is left out.
TYPED  := $(wildcard src tests bench scripts examples)

.DEFAULT_GOAL := help
.PHONY: help setup setup-ray clients demo test test-clients check bench soak docs

help: ## List these verbs
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r verb what; do printf '%-20s %s\n' "$$verb" "$$what"; done

setup: ## Make .venv and fetch what the tests need; does nothing when nothing changed
	@$(PYTHON) scripts/setup.py

setup-ray: ## Make .venv-ray, a Ray for the tests that run agents on a cluster; without it they are skipped
	@$(PYTHON) scripts/setup.py ray

clients: ## Install the agent programs that the client tests run, once for all clones of this user (1.6 GB)
	@$(PYTHON) scripts/setup.py package
	@$(PYTHON) scripts/clients.py

demo: ## Watch a small team work through a plan; sets up the package alone
	@$(PYTHON) scripts/setup.py package
	@$(BIN)/taskyard demo

test: setup ## Run every test: several at a time, then those that need the machine to themselves
	@status=0; \
	echo "== tests, several at a time"; \
	$(PYTEST) -n 3 --dist worksteal -m "not serial and not soak and not client" || status=$$?; \
	echo "== tests that run alone"; \
	$(PYTEST) -m "serial and not soak and not client" $(ALONE) || { code=$$?; [ $$code -eq 5 ] || status=$$code; }; \
	exit $$status

# Each test runs a real agent program with a scripted model; CLIENT_TESTS=smoke is the short form that CI runs.
CLIENT_TESTS ?= client
test-clients: setup clients ## Run Taskyard with real agent programs on a scripted model; no account is needed
	@TASKYARD_WRITE_ENGINES="$(filter client,$(CLIENT_TESTS))" $(PYTEST) -n 2 --dist worksteal -m "$(CLIENT_TESTS)" tests/clients

check: setup ## Run every check that runs no tests: style, types, layers
	@echo "== ruff check";  $(BIN)/ruff check
	@echo "== ruff format"; $(BIN)/ruff format --check
	@echo "== mypy";        $(BIN)/mypy $(TYPED)
	@echo "== pyright";     $(BIN)/pyright
	@echo "== layers";      $(BIN)/lint-imports

bench: setup ## Measure against the yardsticks, one JSON line a row
	@$(BIN)/python -m bench

# Full counts, and the tests that take hours; each test may take one of them.
soak: export TASKYARD_SOAK = 1
soak: setup ## Run every test at full count: hours
	@status=0; \
	echo "== soak, several at a time"; \
	$(PYTEST) -o timeout=3600 -n 3 --dist worksteal -m "not serial and not client" || status=$$?; \
	echo "== soak, alone"; \
	$(PYTEST) -o timeout=3600 -m "serial and not client" $(ALONE) || { code=$$?; [ $$code -eq 5 ] || status=$$code; }; \
	exit $$status

docs: setup ## Check the documentation: links, and requirements against tests
	@$(PYTEST) -q tests/test_docs.py tests/test_requirements.py
