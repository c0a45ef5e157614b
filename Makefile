# Two commands: `make demo` and `make test`. Everything is set up in .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint docs bench clean

demo: $(VENV)/installed
	$(BIN)/python examples/demo.py

test: $(VENV)/developed lint
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/developed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/developed
	$(BIN)/sphinx-build -W --keep-going -b html docs build/docs

bench: $(VENV)/developed
	$(BIN)/python benchmarks/core.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("trueup needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/developed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev --group docs
	touch $@
