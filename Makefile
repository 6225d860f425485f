# make demo, make test: both work on a fresh machine with Python 3.11 or newer and make.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
# The oldest numpy comes ready built for no Python after 3.12.
OLDEST_PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo $(PYTHON))
BIN := .venv/bin

.PHONY: demo test test-oldest check bench scorers clean

demo: .venv/ready
	$(BIN)/python -m benchmarks.demo $(ARGS)

test: check
	$(BIN)/pytest

# The adapters' tests on the oldest versions they support: tests/oldest.txt. The logs of the notebook that trains are made
# by the demo's agent, which is written for the newest.
test-oldest: .venv-oldest/ready
	.venv-oldest/bin/pytest tests/test_langchain*.py tests/test_llamaindex*.py tests/test_notebooks.py \
		--deselect "tests/test_notebooks.py::test_a_notebook_runs_and_shows_what_it_is_there_to_show[train]"

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# make bench agents, make bench agents ARGS="--data FILE": one module of benchmarks/ a name.
bench: .venv/ready
	$(BIN)/python -m benchmarks.$(or $(filter-out bench,$(MAKECMDGOALS)),$(error name a benchmark: make bench NAME)) $(ARGS)

.venv/ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it with make PYTHON=/path/to/python"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

.venv-oldest/ready: pyproject.toml tests/oldest.txt
	@test -n "$(OLDEST_PYTHON)" || { echo "Python 3.11 or 3.12 is needed; name it with make OLDEST_PYTHON=..."; exit 2; }
	$(OLDEST_PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade pip
	.venv-oldest/bin/python -m pip install --quiet --editable ".[dev]" --constraint tests/oldest.txt
	@touch $@

clean:
	rm -rf .venv .venv-oldest build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

ifneq ($(filter bench,$(MAKECMDGOALS)),)
%:
	@:
endif
