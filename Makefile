# Everything vseg is asked to do, once: the README, CONTRIBUTING.md and CI call these targets.
# Each target sets up what it needs in .venv, so all of them work from a bare clone.

SHELL := /bin/sh
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

# Override with PYTHON=/path/to/python; without it, the versions the pins were tried on come first.
PYTHON ?=
CANDIDATES = $(if $(PYTHON),"$(PYTHON)",python3.11 python3.12 python3.13 python3)

# The participant's page is built at set-up, so a change of its sources sets up anew.
FRONTEND := $(shell find frontend -name node_modules -prune -o -type f -print 2>/dev/null)

# Passed on to the command: make test ARGS="-k layout", make demo ARGS=--help
ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test quick check chaos bench soak study paper dist clean

help: ## List the targets
	@echo 'make <target> [ARGS="..."] [PYTHON=/path/to/python]'
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-7s %s\n", $$1, $$2 }' Makefile

setup: .venv/.ready ## Set up .venv and nothing else; then: . .venv/bin/activate

demo: .venv/.ready ## Run the demonstration
	@$(BIN)/vseg demo $(ARGS)

# Without ARGS: several processes, then by themselves the tests that count a browser's frames.
test: .venv/.ready .venv/.browser .venv/.torch ## Run the tests, with a real Chromium, PostgreSQL and PyTorch
ifeq ($(ARGS),)
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --durations 15 -m "not alone and not chaos"
	@$(BIN)/python -m pytest -m "alone and not chaos"
else
	@$(BIN)/python -m pytest $(ARGS)
endif

# Rooms whose tests need neither a browser nor PostgreSQL nor PyTorch, without the tests marked slow.
QUICK := $(addprefix tests/,_support adaptive bayes data designs evaluation features figures models planning reconstruction \
  stimuli study sweeps test_errors.py test_observers.py test_public_api.py)
quick: .venv/.ready ## Run the unit tests, without browser, PostgreSQL and PyTorch: under two minutes on two cores
	@$(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 --dist loadfile -m "not slow and not alone and not chaos" $(or $(ARGS),$(QUICK))

check: .venv/.ready ## Lint, check the format, the types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports

# About half an hour; ARGS=--quick for a try. Writes results/chaos.html and the table in docs/reliability.md. The faults
# come last, since their table shows what the tests have counted; they are tried also after a test that failed.
# Whoever asks for help need not wait until a browser is installed.
chaos: .venv/.ready $(if $(filter -h --help,$(ARGS)),,.venv/.browser) ## Kill, cut, fill and lock whatever can be, and count what was lost
ifeq ($(ARGS),)
	@failed=0; \
	$(BIN)/python -m pytest -m chaos || failed=1; \
	$(BIN)/python -m pytest tests/security/test_matrix.py || failed=1; \
	$(BIN)/python tests/chaos/run.py || failed=1; \
	exit $$failed
else
	@$(BIN)/python tests/chaos/run.py $(ARGS)
endif

bench: .venv/.torch ## Run the benchmarks against the paper's algorithm
	@$(BIN)/python benchmarks/run.py $(ARGS)

soak: .venv/.ready ## A thousand people for a quarter of an hour on each database: does memory grow?
	@$(BIN)/python benchmarks/run.py soaking $(ARGS)

study: .venv/.ready ## Measure the posterior at length; ARGS=FOLDER adds the annotators of your copy of BSDS500
	@$(BIN)/python benchmarks/study.py $(ARGS)

paper: .venv/.ready ## Regenerate the paper's figures; ARGS="run all --quick" for a first look
	@$(BIN)/python -m reproduction paper $(or $(ARGS),run all)

# A fresh environment shows whether the wheel holds all it needs, the participant's page included.
dist: .venv/.ready ## Build the wheel and the sdist into dist/, and try the wheel in an environment of its own
	@rm -rf dist
	@$(BIN)/python -m hatchling build
	@trial=$$(mktemp -d) && \
	$(BIN)/python -m venv "$$trial" && \
	"$$trial/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt "$$(ls dist/*.whl)[all]" && \
	(cd "$$trial" && bin/vseg --version && bin/python -c 'import importlib.resources, vseg.server; \
	assert (importlib.resources.files("vseg.server") / "static").is_dir(), "the wheel has no participant page"'); \
	status=$$?; rm -rf "$$trial"; exit $$status

clean: ## Delete .venv, caches and builds; results stay
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -path ./.git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

# A .venv that works is kept and brought up to date; a missing or half-made one is made anew.
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
	    echo "$$bare cannot make virtual environments: its venv module is missing." \
	      "On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; \
	  elif [ -z "$$python" ]; then \
	    echo 'vseg needs Python 3.11 or newer; found none among:' $(CANDIDATES)'.' \
	      'Install one, or name it: make PYTHON=/path/to/python ...' >&2; exit 1; \
	  fi; \
	  echo "Setting up vseg in .venv with $$("$$python" -V) (first time only, one to three minutes)..."; \
	  "$$python" -m venv --clear .venv || exit 1; \
	else \
	  echo 'Bringing .venv up to date (a few seconds unless the pins have changed)...'; \
	fi; \
	$(PIP) -e '.[all,test]' || { \
	  echo 'The set-up did not finish; the lines above say why. Run the command again to resume.' >&2; exit 1; }; \
	touch $@

# The browser tests drive a Chromium or Chrome that is there; without one, Debian's is installed if we may.
.venv/.browser: .venv/.ready
	@if ! $(BIN)/python tests/browsers.py >/dev/null 2>&1 && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo 'Installing Chromium for the browser tests (first time only, under a minute)...'; \
	  apt-get -qq update >/dev/null && \
	  apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1 || true; \
	fi; \
	$(BIN)/python tests/browsers.py >/dev/null && touch $@

# A large download, so that what does without it is not kept waiting; its tests are left out where it cannot be had.
.venv/.torch: .venv/.ready
	@echo 'Adding PyTorch (first time only): about 200 MB to download for the CPU build.'; \
	if $(PIP) -e '.[torch]'; then touch $@; else \
	  echo 'PyTorch could not be installed; the lines above say why. What needs it is left out.' >&2; fi
