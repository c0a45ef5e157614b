"""Run the command in this process, on files in a temporary folder."""

import math
from pathlib import Path
from typing import NamedTuple

import pytest

from extras import needs
from trueup.cli import main

NOISE = ("--noise", "s=laplace(2)", "--noise", "n=discrete_laplace(2)", "--domain", "n>=1")


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def tables():
    for module in ("duckdb", "pyarrow", "sqlglot"):
        needs(module, "the command line over files needs the extra tables")


@pytest.fixture
def run(capsys):
    """Return a function that runs ``trueup`` and returns code, output and messages."""

    def run(*argv):
        code = main([str(a) for a in argv])
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def debias(run):
    """Return a function that debiases s/n, unless told otherwise."""

    def debias(source, target, *argv, formulas=("mean = s/n",), noise=NOISE):
        return run("debias", source, target, *formulas, *noise, *argv)

    return debias


@pytest.fixture
def cells(tmp_path):
    """A small release: zip codes with zeros, a missing number, values below the bound."""
    path = tmp_path / "cells.csv"
    path.write_text(
        "zip,state,s,n,note\n"
        '01001,MA,51.70,103,"a, b"\n'
        "01002,MA,30.25,61,\n"
        '02139,MA,,5,"say ""hi"""\n'
        "10001,NY,5,-1,é\n"
        "10002,NY,8.0,2,\n",
        encoding="utf-8",
    )
    return path


def reference(s, n, b=2.0, d=2.0):
    """Return s/n debiased and its variance, from the formulas of the theory, for n ≥ 1.

    Laplace noise b on s; discrete Laplace noise d on n.
    """
    alpha = math.exp(-1 / d)
    lam, kappa = alpha / (1 - alpha) ** 2, alpha / (1 - alpha)

    def inverted(f, k):
        if k <= 1:
            return f(1) - kappa * (f(2) - f(1))
        return f(k) - lam * (f(k + 1) - 2 * f(k) + f(k - 1))

    g = s * inverted(lambda k: 1 / k, n)
    return g, g * g - (s * s - 2 * b * b) * inverted(lambda k: 1 / k**2, n)


@pytest.fixture
def expected():
    return reference


def leftovers(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.startswith(".")]


@pytest.fixture
def hidden():
    return leftovers
