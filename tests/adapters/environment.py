"""The environment of the other libraries, and what is drawn in it."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np

import trueup as tu
from extras import missing

ROOT = Path(__file__).parents[2]
NAMES = {name: getattr(tu, name) for name in tu.__all__}


def interpreter():
    """Return the Python that has the libraries, or skip with the reason."""
    given = os.environ.get("TRUEUP_ADAPTERS_PYTHON", ROOT / ".venv-adapters" / "bin" / "python")
    if not Path(given).exists():
        missing(f"the libraries' environment is missing, `make test` builds it: no {given}")
    return str(given)


def run(script, *arguments):
    """Run a script of this folder in the libraries' environment and return what it printed."""
    done = subprocess.run(  # noqa: S603  (our own script)
        [interpreter(), str(Path(__file__).parent / script), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def read(text):
    """Return the noise that a repr of trueup shows."""
    return eval(text, NAMES)  # noqa: S307  (our own repr)


def releases(library, draws, folder):
    """Return {case: (noise, published values)} drawn from a library."""
    path = Path(folder) / f"{library}-{draws}.npz"
    noises = run("releases.py", library, draws, path)
    with np.load(path) as values:
        return {name: (read(text), values[name]) for name, text in noises.items()}
