# Two commands: `make demo` and `make test`. Everything is set up in .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ADAPTERS := .venv-adapters

.PHONY: demo test prove mutants matrix lint docs screenshots bench clean

demo: $(VENV)/installed
	$(BIN)/python examples/demo.py

test: $(VENV)/developed $(ADAPTERS)/installed lint
	$(BIN)/python -m pytest -n auto --dist worksteal

# Half an hour on two cores: 20,000 drawn cases against an oracle, a million texts; RELIABILITY.md
prove: $(VENV)/developed
	PYTHONPATH=src:tests $(BIN)/python -m prove --cases 20000 --processes 2 --write RELIABILITY.md

# Hours: 600 small faults of the library, one by one, and whether the tests notice; tests/mutants/TABLE.md
mutants: $(VENV)/developed
	PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 $(BIN)/python -m mutants --processes 2

# Every Python and the oldest and newest packages: downloads, some minutes each; tests/matrix.json
matrix: $(VENV)/developed
	$(BIN)/python tests/matrix.py

lint: $(VENV)/developed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/developed
	$(BIN)/sphinx-build -W --keep-going -b html docs build/docs

screenshots: $(VENV)/developed
	$(BIN)/python docs/make_screenshots.py

bench: $(VENV)/developed
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/arrays.py
	$(BIN)/python benchmarks/frames.py
	$(BIN)/python benchmarks/files.py

clean:
	rm -rf $(VENV) $(ADAPTERS) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("trueup needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[tables]'
	touch $@

$(VENV)/developed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev --group docs
	touch $@

# The libraries of tests/adapters need older packages than ours: an environment of their own. Where
# they have no wheels its tests are skipped and say so.
$(ADAPTERS)/installed: $(VENV)/developed tests/adapters/requirements.txt
	$(BIN)/python -m venv --clear --without-pip $(ADAPTERS)
	$(BIN)/python -m pip --python $(ADAPTERS)/bin/python install --quiet --no-compile --no-deps \
		--only-binary :all: --requirement tests/adapters/requirements.txt && touch $@ || rm -rf $(ADAPTERS)
