# Targets for people who work on Rowcall or try it.  They need only Python >= 3.11 and make; PostgreSQL is included.
.DEFAULT_GOAL := help
.PHONY: help up test lint format check mutants bench bench-peers soak simulate docs screenshots lock clean
SHELL := /bin/sh

# The first Python on the PATH that is new enough; to use another: `make PYTHON=/path/to/python up`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
RUN := .venv/bin/python -m
PYTEST_ARGS ?=
MUTANTS_ARGS ?=

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: .venv/installed ## start PostgreSQL, the API and a worker, and show a run succeed; Ctrl-C stops them
	@exec .venv/bin/python -m rowcall.cli up --with-parent

test: .venv/installed ## run the suite against a real PostgreSQL, without the tests that cannot run here
	@$(RUN) pytest -n auto --dist worksteal $(PYTEST_ARGS)

lint: .venv/installed ## check formatting, lint, types and import rules; change no file
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy
	@.venv/bin/python -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'

format: .venv/installed ## format the code, and fix what ruff can fix
	@$(RUN) ruff format .
	@$(RUN) ruff check --fix .

check: lint ## run lint and the whole suite as CI does, including tests that need the package index or Debian programs
	@$(MAKE) --no-print-directory test PYTEST_ARGS="--whole $(PYTEST_ARGS)"

mutants: .venv/installed ## remove the queue's guards one by one, and print which test failed
	@$(RUN) tests.mutants $(MUTANTS_ARGS)

bench: .venv/installed ## measure the queue beside plain SQL (BENCH_ARGS="--help" lists the parts)
	@$(RUN) tests.bench $(BENCH_ARGS)

bench-peers: .venv/installed ## install other job systems, measure them and Rowcall in turns, and write docs/benchmarks.md
	@$(RUN) tests.bench.peers $(BENCH_ARGS)

soak: .venv/installed ## enqueue 600 runs a second for half an hour, and show what grows
	@$(RUN) tests.bench --part soak $(BENCH_ARGS)

simulate: .venv/installed ## print how many runs a second hosts and clusters carry (SIMULATE_ARGS="--help" lists options)
	@$(RUN) tests.simulate $(SIMULATE_ARGS)

docs: .venv/installed ## write the generated pages in docs/, and build all pages as a site in site/
	@$(RUN) rowcall.status > docs/status.md
	@$(RUN) tests.reference.settings > docs/settings.md
	@$(RUN) tests.queries > docs/queries.sql
	@$(RUN) tests.reference
	@$(RUN) mkdocs build --quiet
	@echo "docs/status.md, docs/settings.md, docs/queries.sql and docs/reference/ are written; read site/index.html"

screenshots: .venv/installed ## write docs/images/ from what a terminal of 100 columns and Chromium show
	@$(RUN) tests.screenshots
	@echo "docs/images/ is written; look at it"

lock: .venv/installed ## update the locked dependencies
	@for set in "runtime pyproject.toml --extra example" "dev pyproject.toml --extra all --extra handover --extra otel --extra parquet --group dev" "build --group build"; do set -- $$set; name=$$1; shift; \
	.venv/bin/uv pip compile "$$@" --universal --python-version 3.11 --upgrade --generate-hashes \
	--no-emit-index-url --no-annotate --no-header --quiet --output-file requirements/$$name.lock || exit 1; done
	@echo "requirements/*.lock are updated; run make check"

clean: ## remove .venv and all local data, including the local database
	@if [ -x .venv/bin/python ]; then .venv/bin/python -m rowcall.local_postgres remove; fi
	rm -rf .venv .rowcall .bench site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian packages ensurepip separately; if it is missing, the system's pip installs into the new environment.
# The last prerequisite has the version, which the installed metadata repeat.
.venv/installed: requirements/dev.lock pyproject.toml shared/rowcall/__init__.py
	@[ -n "$(PYTHON)" ] || { echo "Rowcall needs Python 3.11 or newer, and the PATH has none: install it, or run make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Installing the locked dependencies into .venv (once)"
	@.venv/bin/python -m pip --version >/dev/null 2>&1 \
	|| $(PYTHON) -m venv --clear .venv 2>/dev/null \
	|| { $(PYTHON) -m venv --clear --without-pip .venv && $(PYTHON) -m pip --python .venv/bin/python install --quiet pip; } \
	|| { echo "$(PYTHON) cannot create a virtual environment: install its venv module (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@$(RUN) pip install -qq --disable-pip-version-check --require-hashes --requirement requirements/dev.lock
	@$(RUN) pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
