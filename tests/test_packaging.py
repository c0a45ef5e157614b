"""The wheel in an empty environment: the core alone, then each extra alone; its source.

An environment is a new folder of packages that holds what the wheel declares and nothing else: the
wheel itself, installed, and links to the packages of this environment that its requirements name,
followed to the end. So a dependency that is used and not declared is missing there.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import textwrap
import zipfile
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from extras import missing
from matrix import COMBINATIONS, interpreter, oldest, source_distribution, wheel_of

ROOT = Path(__file__).parents[1]
EXTRAS = {
    "fast": """
        import numpy as np, os
        os.environ["TRUEUP_NUMBA"] = "1"
        est = tu.unbiased("1/n", tu.Laplace(2), (1, None))
        assert est(np.array([8.0]))[0] == est(8.0)
        """,
    "tables": """
        assert tu.unbiased("1/n", tu.Laplace(2), (1, None)).sql("snowflake").startswith("/*")
        """,
    "spark": """
        from trueup.frames.of_spark import is_frame
        import pyspark.sql.functions
        """,
    "near": """
        tu.nearly_unbiased("1/n", tu.DiscreteGaussian(2), (5, 40), max_bias=0.05, relative=True)
        """,
    "private": """
        assert tu.mechanisms.TwoTotalsMean(epsilon=1).release([0.5] * 50).stderr > 0
        """,
    "plots": """
        tu.unbiased("1/n", tu.Laplace(2), (1, None)).plot()
        """,
    "explorer": """
        from trueup.explorer.serve import serve
        import starlette, uvicorn, plotly
        """,
}
COMMANDS = {  # what a user of the command line reads
    "tables": "debias in.csv out.csv m=1/n --noise n=laplace(2) --domain n>=1",
    "explorer": "explore",
}
FRAME = """
    import pandas as pd
    mean = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)})
    table = pd.DataFrame({"s": [51.7, 20.0, 3.0], "n": [103, 50, 7], "g": ["a", "a", "b"]})
    assert tu.debias(table, mean=mean)["mean"].round(3).tolist() == [0.502, 0.399, 0.359]
    assert round(tu.total(table, mean=mean)["mean"][0], 3) == 1.259
    assert len(tu.total(table, by="g", mean=mean)) == 2
    """


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel of this tree."""
    if not (ROOT / "pyproject.toml").exists():
        missing("there is no source tree to build from")
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """The wheel alone, installed once: environments link to it, and Python compiles it once."""
    folder = tmp_path_factory.mktemp("installed")
    unpacked = ["install", "--quiet", "--no-deps", "--no-compile", "--no-index", "--target"]
    command = [sys.executable, "-m", "pip", *unpacked, str(folder), str(wheel)]
    subprocess.run(command, check=True)  # noqa: S603
    return folder


@pytest.fixture(scope="session")
def environment(installed, tmp_path_factory):
    """What makes a folder of packages for some extras, and for others that a user brings."""
    (info,) = installed.glob("trueup-*.dist-info")
    own = Distribution.at(info)

    @cache
    def make(*wanted, beside=()):
        folder = tmp_path_factory.mktemp("packages")
        for part in installed.iterdir():
            (folder / part.name).symlink_to(part)
        for name in {*closure(own, wanted), *(n for b in beside for n in closure_of(b))}:
            link(distribution(name), folder)
        return folder

    return make


def closure(of, extras=()):
    """Return the names of what a distribution requires, to the end."""
    found = set()
    for text in of.requires or ():
        requirement = Requirement(text)
        marks = [{"extra": e} for e in extras] or [{"extra": ""}]
        if requirement.marker and not any(requirement.marker.evaluate(m) for m in marks):
            continue
        if requirement.name == "trueup":
            found |= closure(of, tuple(requirement.extras))
        else:
            found |= closure_of(requirement.name, tuple(sorted(requirement.extras)))
    return found


@cache
def closure_of(name, extras=()):
    try:
        return {name, *closure(distribution(name), extras)}
    except PackageNotFoundError:
        missing(f"{name} is declared and not installed here")


def link(dist, folder):
    """Link the top of everything that a distribution installed."""
    tops = {Path(str(f)).parts[0] for f in dist.files or () if Path(str(f)).parts[0] != ".."}
    for top in tops - {"__pycache__"}:
        source, target = Path(str(dist.locate_file(top))), folder / top
        if not target.exists():
            target.symlink_to(source)
        elif target.is_dir():  # a namespace that two distributions share
            target = target.resolve()
            assert target == source.resolve(), f"{top} is shared"


def run(folder, code, given=""):
    """Run code with the folder's packages and no others."""
    script = "import trueup as tu\n" + textwrap.dedent(code)
    python = [sys.executable, "-S", "-W", "error", "-c"]
    return subprocess.run(  # noqa: S603
        [*python, script],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(folder),
            "HOME": str(folder),
            "MPLBACKEND": "Agg",
        },
        cwd=folder,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


EACH = """
import contextlib, io, json, os, sys, traceback
import trueup as tu
from trueup.cli import main

def answer(code):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            exec(code, {"tu": tu, "main": main})
        except SystemExit as left:
            return left.code, out.getvalue()
        except BaseException:
            return 1, out.getvalue() + traceback.format_exc()
    return 0, out.getvalue()

answers = [answer(code) for code in json.loads(sys.stdin.read())]
print(json.dumps(answers))
"""
"""What runs several programs in one process; each has names of its own."""


@pytest.fixture(scope="module")
def core(environment):
    """What comes of every program that the core alone is asked to run: code and text."""
    folder = environment()
    (folder / "in.csv").write_text("n\n7\n")
    programs = {
        "core": "assert tu.unbiased('1/n', tu.Laplace(2), (1, None))(8.0) < 0.11",
        **{extra: textwrap.dedent(EXTRAS[extra]) for extra in MISSED},
        **{f"{e} command": f"raise SystemExit(main({c.split()}))" for e, c in COMMANDS.items()},
        **{name: readme(name) for name, (_, extras) in BLOCKS.items() if not extras},
    }
    run_all = run(folder, EACH, json.dumps(list(programs.values())))
    assert run_all.returncode == 0, run_all.stderr
    assert not (folder / "out.csv").exists()
    return dict(zip(programs, json.loads(run_all.stdout), strict=True))


MISSED = ("tables", "near", "private", "plots")


def test_the_core_needs_only_what_it_declares(environment, core):
    names = {re.sub(r"-.*", "", p.name) for p in environment().glob("*.dist-info")}
    assert names == {"trueup", "numpy", "scipy", "sympy", "mpmath", "narwhals"}
    assert core["core"] == [0, ""]


def test_frames_need_no_extra(environment):
    answer = run(environment(beside=("pandas",)), FRAME)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("extra", MISSED)
def test_a_missing_extra_is_named_by_what_needs_it(core, extra):
    code, text = core[extra]
    assert code
    assert f"Hint: pip install 'trueup[{extra}]'" in text


@pytest.mark.parametrize("extra", COMMANDS)
def test_a_command_names_the_extra_that_it_misses(core, extra):
    code, text = core[f"{extra} command"]
    assert code
    assert f"trueup[{extra}]" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_alone_is_enough(environment, extra):
    answer = run(environment(extra), EXTRAS[extra])
    assert answer.returncode == 0, answer.stderr


BLOCKS = {  # what stands in the blocks of the README, and the extra they need
    "est": (("est = tu.unbiased(", "est.expectation("), ()),
    "noisy": (("tu.noisy(",), ()),
    "near": (("tu.nearly_unbiased(",), ("near",)),
}


def readme(name):
    """Return a program that runs blocks of the README as doctests."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    chosen = [next(block for block in blocks if mark in block) for mark in BLOCKS[name][0]]
    text = "\n".join(dict.fromkeys(chosen))
    return textwrap.dedent(f"""
        import doctest
        test = doctest.DocTestParser().get_doctest({text!r}, {{"tu": tu}}, "README", None, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        assert test.examples and not runner.run(test).failed
        """)


@pytest.mark.parametrize("name", BLOCKS)
def test_the_readme_runs_with_what_it_says_it_needs(environment, core, name):
    _, extras = BLOCKS[name]
    if not extras:
        code, text = core[name]
        assert code == 0, text
        return
    answer = run(environment(*extras), readme(name))
    assert answer.returncode == 0, answer.stdout + answer.stderr


# -- the source distribution, and what it is tried with --------------------------------------------


@pytest.fixture(scope="session")
def archive(wheel, tmp_path_factory):
    """The source distribution of this tree."""
    return source_distribution(tmp_path_factory.mktemp("source"))


def contents(wheel):
    """Return the files of a wheel with what is in them; the record lists them with their sums."""
    with zipfile.ZipFile(wheel) as file:
        return {n: file.read(n) for n in file.namelist() if not n.endswith("/RECORD")}


def test_the_source_distribution_makes_the_same_wheel(wheel, archive, tmp_path):
    assert contents(wheel_of(archive, tmp_path)) == contents(wheel)


def test_the_source_distribution_holds_what_a_packager_needs_and_no_more(archive):
    with tarfile.open(archive) as tar:
        names = {Path(*Path(member.name).parts[1:]) for member in tar if member.isfile()}
    tops = {name.parts[0] for name in names}
    assert {"LICENSE", "README.md", "SECURITY.md", "pyproject.toml", "src", "tests"} <= tops
    strange = {"build", "dist", ".venv", ".venv-adapters", ".git", ".mypy_cache", ".hypothesis"}
    assert not tops & strange
    assert not [name for name in names if name.suffix in (".pyc", ".so", ".whl", ".log")]


def test_every_requirement_has_a_lowest_version_that_is_tried():
    lowest = dict(text.split("==") for text in oldest())
    declared = {Requirement(t).name for t in Distribution.at(_info()).requires or ()}
    assert declared - {"trueup", "pyspark"} <= {*lowest}
    assert lowest["narwhals"] == "2.10"


def _info():
    """Return where this environment knows what the tree declares."""
    found = distribution("trueup")
    return Path(str(found.locate_file(f"trueup-{found.version}.dist-info")))


@pytest.mark.parametrize("python", sorted({c.python for c in COMBINATIONS}))
def test_every_python_compiles_the_library(wheel, python, tmp_path):
    own = interpreter(python)
    if own is None:
        pytest.skip(f"there is no python{python} on PATH or among pyenv's; make matrix needs it")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)  # noqa: S202
    compiled = [own, "-W", "error", "-m", "compileall", "-q", "-f", str(tmp_path / "trueup")]
    answer = subprocess.run(compiled, capture_output=True, text=True, check=False)  # noqa: S603
    assert answer.returncode == 0, answer.stdout
