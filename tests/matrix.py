"""Run the core of the tests on every Python, with the oldest and the newest packages allowed.

``make matrix`` makes an environment under ``build/matrix`` for each combination, installs the wheel
built from the source distribution, runs a part of the tests against it (not against ``src``) and
writes what came of it to ``matrix.json``, from which RELIABILITY.md has its table::

    python tests/matrix.py --only 3.12-newest

Interpreters are looked for by name on PATH and among pyenv's; one that is missing is named in the
table and is no failure: it says what this machine has, not what the library can do.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement

from mutants.table import commit

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("matrix.json")
EXTRAS = ("fast", "tables", "near", "private", "plots", "explorer")
"""All but Spark, which is 400 megabytes and a Java machine for one engine."""
BESIDE = ("pytest", "hypothesis", "pandas", "polars", "psutil")
"""What the tests need beside the library."""
TESTS = (
    *("README.md", "tests/test_public_api.py", "tests/formula", "tests/noise"),
    *("tests/estimator/test_clamped.py", "tests/estimator/test_oracle.py"),
    *("tests/estimator/test_range.py", "tests/estimator/test_binding.py", "tests/test_noisy.py"),
    *("tests/frames/test_debias.py", "tests/frames/test_types.py", "tests/cli/test_debias.py"),
    *("tests/mechanisms/test_per_record.py", "tests/prove/test_inputs.py"),
)
"""Every layer once: text, noises, estimators, tables, files, mechanisms and what the page says."""
_SILENT = "--disable-pip-version-check"
SHOWN = ("numpy", "scipy", "sympy", "mpmath", "narwhals", "duckdb", "pyarrow", "numba", "opendp")


class Combination(NamedTuple):
    """A Python and the age of the packages."""

    python: str
    packages: str

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.python}-{self.packages}"


COMBINATIONS = (
    Combination("3.11", "oldest"),
    Combination("3.11", "newest"),
    Combination("3.12", "newest"),
    Combination("3.13", "newest"),
)


def interpreter(version: str) -> str | None:
    """Return a Python of this version that runs, None if there is none."""
    own = Path.home() / ".pyenv" / "versions"
    places = [shutil.which(f"python{version}"), *map(str, own.glob(f"{version}.*/bin/python"))]
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for place in filter(None, places):
        answer = subprocess.run([place, "-c", ask], capture_output=True, text=True, check=False)  # noqa: S603
        if answer.stdout.strip() == version:
            return place
    return None


def oldest() -> list[str]:
    """Return the lowest version that pyproject.toml allows of every package, as constraints.

    Examples
    --------
    >>> "narwhals==2.10" in oldest()
    True
    """
    return [f"{r.name}=={_lowest(r)}" for r in _declared()]


def _lowest(requirement: Requirement) -> str:
    (bound,) = [s.version for s in requirement.specifier if s.operator in (">=", "==")]
    return bound


def _declared() -> Iterator[Requirement]:
    """Yield what the library declares, and of what its developers need that which is installed."""
    page = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = page["project"]
    extras = project["optional-dependencies"]
    for text in (*project["dependencies"], *(t for e in EXTRAS for t in extras[e])):
        yield Requirement(text)
    for text in page["dependency-groups"]["dev"]:
        if (requirement := Requirement(text)).name in BESIDE:
            yield requirement


def source_distribution(out: Path) -> Path:
    """Build the source distribution of this tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603
    (built,) = out.glob("*.tar.gz")
    return built


def wheel_of(archive: Path, out: Path) -> Path:
    """Build the wheel from a source distribution, unpacked far from this tree."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        (tree,) = Path(folder).iterdir()
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
        subprocess.run(command, cwd=tree, check=True, capture_output=True)  # noqa: S603
    (built,) = out.glob("*.whl")
    return built


def environment(python: str, packages: str, wheel: Path, folder: Path) -> None:
    """Make an environment with the wheel in it."""
    subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)  # noqa: S603
    own = folder / "bin" / "python"
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(oldest() if packages == "oldest" else []), "utf-8")
    wanted = [f"{wheel}[{','.join(EXTRAS)}]", *BESIDE]
    install = [str(own), "-m", "pip", "install", "--quiet", "--no-compile", _SILENT]
    subprocess.run([*install, "--constraint", str(constraints), *wanted], check=True)  # noqa: S603


def tested(python: Path) -> dict[str, Any]:
    """Run the tests with an environment's Python; return versions and counts."""
    listed = subprocess.run(  # noqa: S603
        [str(python), "-m", "pip", "list", "--format", "json", _SILENT],
        capture_output=True,
        text=True,
        check=True,
    )
    versions = {p["name"].lower(): p["version"] for p in json.loads(listed.stdout)}
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-o",
        "pythonpath=tests",
        "-p",
        "no:cacheprovider",
    ]
    answer = subprocess.run(  # noqa: S603
        [*command, *TESTS],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    (python.parents[1] / "tests.log").write_text(answer.stdout + answer.stderr, "utf-8")
    last = answer.stdout.strip().splitlines()[-1] if answer.stdout.strip() else "no answer"
    return {
        "commit": commit(),
        "versions": {name: versions[name] for name in SHOWN if name in versions},
        **{word: _count(last, word) for word in ("passed", "skipped", "failed", "error")},
        "failures": re.findall(r"^(?:FAILED|ERROR) (\S+)", answer.stdout, re.MULTILINE)[:20],
    }


def _count(line: str, word: str) -> int:
    found = re.search(rf"(\d+) {word}", line)
    return int(found[1]) if found else 0


def main() -> int:
    """Run the combinations and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[c.name for c in COMBINATIONS])
    parser.add_argument("--keep", action="store_true", help="exchange the wheel only")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "matrix")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    good = True
    with tempfile.TemporaryDirectory() as folder:
        wheel = wheel_of(source_distribution(Path(folder)), Path(folder))
        for combination in COMBINATIONS:
            if combination.name in options.only:
                place = options.folder / combination.name
                result = _tried(combination, wheel, place, options.keep)
                print(combination.name, result, flush=True)
                _write(combination.name, result)
                good &= not (result.get("failed") or result.get("error"))
    return not good


def _tried(combination: Combination, wheel: Path, place: Path, keep: bool) -> dict[str, Any]:
    """Return what came of one combination."""
    python = interpreter(combination.python)
    if python is None:
        return {"missing": True}
    own = place / "bin" / "python"
    if keep and own.exists():
        again = ["install", "--quiet", "--no-deps", "--force-reinstall", _SILENT, str(wheel)]
        subprocess.run([str(own), "-m", "pip", *again], check=True)  # noqa: S603
    else:
        environment(python, combination.packages, wheel, place)
    return tested(own)


def _write(name: str, result: dict[str, Any]) -> None:
    """Write one result down beside the others, in their order."""
    known = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    known[name] = result
    ordered = {c.name: known[c.name] for c in COMBINATIONS if c.name in known}
    FILE.write_text(json.dumps(ordered, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
