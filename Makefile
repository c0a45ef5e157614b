# Three commands: `make demo`, `make quick` and `make test`. Everything is set up in .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ADAPTERS := .venv-adapters

.PHONY: demo test quick prove mutants matrix lint docs screenshots bench clean

demo: $(VENV)/installed
	$(BIN)/python examples/demo.py

test: $(VENV)/developed $(ADAPTERS)/installed lint
	$(BIN)/python -m pytest -n auto --dist worksteal

# Under a minute on two cores: lint, and the tests that notice most mistakes
QUICK := formula tables cli/test_columns.py cli/test_explain.py cli/test_hints.py cli/test_sidecar.py \
	estimator/test_binding.py estimator/test_clamped.py estimator/test_digits.py \
	estimator/test_factors.py estimator/test_inputs.py frames/test_arguments.py frames/test_types.py \
	mechanisms/test_bad_input.py mechanisms/test_privacy.py mechanisms/test_sampling.py \
	near/test_cells.py near/test_distance.py near/test_programme.py near/test_series.py \
	near/test_smoothing.py near/test_zone.py noise/test_discrete_laplace.py noise/test_law.py \
	noise/test_mass.py noise/test_sampling.py
quick: $(VENV)/developed lint
	$(BIN)/python -m pytest -q -n auto --dist worksteal $(addprefix tests/,$(QUICK))

# Half an hour on two cores: 20,000 drawn cases against an oracle, a million texts; RELIABILITY.md
prove: $(VENV)/developed
	PYTHONPATH=src:tests $(BIN)/python -m prove --cases 20000 --processes 2 $(if $(SEED),--seed $(SEED)) \
		--write RELIABILITY.md

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
	$(BIN)/python benchmarks/everyday.py
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
