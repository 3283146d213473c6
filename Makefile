# The commands for working on vseg; the README, CONTRIBUTING.md and CI use these targets.
# Each target first sets up what it needs in .venv, so that all of them work in a fresh clone.

SHELL := /bin/sh
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

# The Python for a new .venv: PYTHON=/path/to/python, or the first of these (constraints.txt was tested with them).
PYTHON ?=
CANDIDATES = $(if $(PYTHON),"$(PYTHON)",python3.11 python3.12 python3.13 python3)

# The participant's page is built during set-up, so a change of its sources repeats the set-up.
FRONTEND := $(shell find frontend -name node_modules -prune -o -type f -print 2>/dev/null)

# Arguments for the command of a target: make test ARGS="-k layout", make demo ARGS=--help
ARGS ?=

precompile = $(BIN)/python -c 'from vseg.server import precompile; precompile.compile_$(1)()'

# Processes for tests; four keep two cores busy, because many tests wait for a server or a browser.
PROCESSES ?= 4

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test quick check chaos bench soak study paper dist clean

help: ## List the targets
	@echo 'make <target> [ARGS="..."] [PYTHON=/path/to/python]'
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-7s %s\n", $$1, $$2 }' Makefile

setup: .venv/.ready ## Only set up .venv
	@echo 'vseg is installed in .venv. Next: run ". .venv/bin/activate", then "vseg demo" or "vseg --help".'

demo: .venv/.ready ## Run the demonstration
	@$(BIN)/vseg demo $(ARGS)

# Without ARGS: first most tests in several processes, then alone those that count the frames of a browser. The kernels
# are compiled before, or each process would compile them; BLAS gets one thread, since the processes fill the cores.
# tests/conftest.py orders the files: xdist would begin those with the fewest tests last, among them the longest.
test quick: export OPENBLAS_NUM_THREADS = 1
test: .venv/.ready .venv/.browser .venv/.proxy .venv/.torch ## Run the tests, with a real Chromium, PostgreSQL and PyTorch
ifeq ($(ARGS),)
	@$(call precompile,reconstruction) & $(call precompile,posterior); wait
	@$(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder --durations 15 -m "not alone and not chaos"
	@$(BIN)/python -m pytest -m "alone and not chaos" $$(grep -rl --include='test_*.py' 'mark\.alone' tests)
else
	@$(BIN)/python -m pytest $(ARGS)
endif

# Packages whose tests need neither a browser nor PostgreSQL nor PyTorch, without the tests marked slow.
QUICK := $(addprefix tests/,_support adaptive bayes data designs evaluation features figures models planning reconstruction \
  stimuli study sweeps test_errors.py test_observers.py test_public_api.py)
quick: .venv/.ready ## Run the unit tests, without browser, PostgreSQL and PyTorch: under two minutes on two cores
	@$(BIN)/python -m pytest -q --numprocesses $(PROCESSES) --dist loadfile -m "not slow and not alone and not chaos" $(or $(ARGS),$(QUICK))

check: .venv/.ready ## Check style, format, types and the order of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports

# Takes about half an hour; ARGS=--quick is a short version. Writes results/chaos.html and the table in
# docs/reliability.md. tests/chaos/run.py runs last, because its table includes the counts of the tests; it also runs if
# a test has failed. `--help` does not need the browser.
chaos: .venv/.ready $(if $(filter -h --help,$(ARGS)),,.venv/.browser .venv/.proxy) ## Inject faults (crashes, full disks, lost connections) and count lost answers
ifeq ($(ARGS),)
	@failed=0; \
	$(BIN)/python -m pytest -m chaos || failed=1; \
	$(BIN)/python -m pytest tests/security/test_matrix.py || failed=1; \
	$(BIN)/python tests/chaos/run.py || failed=1; \
	exit $$failed
else
	@$(BIN)/python tests/chaos/run.py $(ARGS)
endif

bench: .venv/.torch .venv/.numpyro ## Run the benchmarks against the paper's algorithm
	@$(BIN)/python benchmarks/run.py $(ARGS)

soak: .venv/.ready ## Measure memory with 1000 simulated participants, 15 minutes on each database
	@$(BIN)/python benchmarks/run.py soaking $(ARGS)

study: .venv/.ready ## Measure the posterior in detail (an hour); ARGS=FOLDER adds the annotators of your copy of BSDS500
	@$(BIN)/python benchmarks/study.py $(ARGS)

paper: .venv/.ready ## Regenerate the paper's figures; ARGS="run all --quick" for a first look
	@$(BIN)/python -m reproduction paper $(or $(ARGS),run all)

# Installing the wheel in a new environment shows whether it contains everything, including the participant's page.
dist: .venv/.ready ## Build the wheel and the sdist into dist/, and try the wheel in a new environment
	@rm -rf dist
	@$(BIN)/python -m hatchling build
	@trial=$$(mktemp -d) && \
	$(BIN)/python -m venv "$$trial" && \
	"$$trial/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt "$$(ls dist/*.whl)[all]" && \
	(cd "$$trial" && bin/vseg --version && bin/python -c 'import importlib.resources, vseg.server; \
	assert (importlib.resources.files("vseg.server") / "static").is_dir(), "the wheel has no participant page"'); \
	status=$$?; rm -rf "$$trial"; exit $$status

clean: ## Delete .venv, caches and builds, but not results/
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -path ./.git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

# A working .venv is updated; a missing or incomplete one is created.
.venv/.ready: pyproject.toml constraints.txt hatch_build.py $(FRONTEND)
	@rm -f $@; \
	if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  python=; bare=; \
	  for candidate in $(CANDIDATES); do \
	    "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	    if "$$candidate" -c 'import ensurepip, venv' 2>/dev/null; then python=$$candidate; break; fi; \
	    bare=$${bare:-$$candidate}; \
	  done; \
	  if [ -z "$$python" ] && [ -n "$$bare" ]; then \
	    echo "$$bare cannot create virtual environments: its venv module is missing." \
	      "On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; \
	  elif [ -z "$$python" ]; then \
	    echo 'vseg needs Python 3.11 or newer; found none among:' $(CANDIDATES)'.' \
	      'Install one, or name it: make PYTHON=/path/to/python ...' >&2; exit 1; \
	  fi; \
	  echo "Setting up vseg in .venv with $$("$$python" -V) (first time only, one to three minutes)..."; \
	  "$$python" -m venv --clear .venv || exit 1; \
	else \
	  echo 'Updating .venv (a few seconds unless constraints.txt has changed)...'; \
	fi; \
	$(PIP) -e '.[all,test]' || { \
	  echo 'The set-up did not finish; the lines above say why. Run the command again to resume.' >&2; exit 1; }; \
	touch $@

# The browser tests use an installed Chromium or Chrome. If there is none, root on Debian installs one.
.venv/.browser: .venv/.ready
	@if ! $(BIN)/python tests/browsers.py >/dev/null 2>&1 && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo 'Installing Chromium for the browser tests (first time only, under a minute)...'; \
	  apt-get -qq update >/dev/null && \
	  apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1 || true; \
	fi; \
	$(BIN)/python tests/browsers.py >/dev/null && touch $@

# tests/proxies.py sends requests through an installed nginx, Caddy or HAProxy. If there is no nginx, root on Debian
# installs it, without starting it; if that fails, its tests are skipped.
.venv/.proxy: .venv/.ready
	@if ! command -v nginx >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo 'Installing nginx for the tests behind a proxy (first time only, a few seconds)...'; \
	  RUNLEVEL=1 apt-get -qq install -y --no-install-recommends nginx-light >/dev/null 2>&1 || true; \
	fi; \
	touch $@

# PyTorch is a large download, so only the targets that need it install it. If that fails, its tests are skipped.
.venv/.torch: .venv/.ready
	@echo 'Adding PyTorch (first time only): about 200 MB to download for the CPU build.'; \
	if $(PIP) -e '.[torch]'; then touch $@; else \
	  echo 'PyTorch could not be installed; the lines above say why. The tests that need it are skipped.' >&2; fi

# benchmarks/nuts.py compares the posterior with numpyro's NUTS. If the installation fails, that section is not run.
.venv/.numpyro: .venv/.ready
	@echo 'Adding numpyro (first time only): about 100 MB to download.'; \
	if $(PIP) -e '.[nuts]'; then touch $@; else \
	  echo 'numpyro could not be installed; the lines above say why.' >&2; fi
