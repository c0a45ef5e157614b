"""SQL that a person can read: short in every dialect, and the same numbers as in Python.

The goal is a value of at most 350 characters and a standard error of at most 700, in every dialect.
It is not met by all: ``MISSED`` says by which, and how long the longest text is.
"""

from __future__ import annotations

import math

import pytest

import trueup as tu
from backends.engines import engine
from extras import needs
from trueup.sql.dialects import DIALECTS

needs("sqlglot")
LAPLACE = {"s": tu.Laplace(3), "n": tu.Laplace(2)}
COUNTS = {"s": tu.Laplace(3), "n": tu.DiscreteLaplace(2)}
CASES = {
    "1/n": ("1/n", tu.Laplace(2), (1, None)),
    "s/n": ("s/n", LAPLACE, {"n": (1, None)}),
    "log(n)": ("log(n)", tu.Laplace(2), (1, None)),
    "where": ("where(n > 0, s/n, 0)", LAPLACE, {"n": (1, None)}),
    "s/max": ("s/max(n, 1)", LAPLACE, {"n": (1, None)}),
    "b/total": ("b/total", {"b": tu.Laplace(3), "total": tu.Laplace(2)}, {"total": (5, None)}),
    "b/(a + b)": (
        "b/(a + b)",
        dict.fromkeys("ab", tu.Laplace(2)),
        {"a": (1, None), "b": (1, None)},
    ),
    "1/n of counts": ("1/n", tu.DiscreteLaplace(2), (1, None)),
    "log(n) of counts": ("log(n)", tu.DiscreteLaplace(2), (1, None)),
    "s/n of counts": ("s/n", COUNTS, {"n": (1, None)}),
    "where of counts": ("where(n > 0, s/n, 0)", COUNTS, {"n": (0, None)}),
    "s/max of counts": ("s/max(n, 1)", COUNTS, {"n": (0, None)}),
}
GOALS = {"value": 350, "stderr": 700}
MISSED = {
    # three neighbours of n, each with its own number of 17 digits, and casts in some dialects:
    ("s/n of counts", "stderr"): 703,  # in Snowflake alone
    ("where of counts", "value"): 368,
    ("where of counts", "stderr"): 872,
    ("s/max of counts", "value"): 351,
    ("s/max of counts", "stderr"): 841,
    # four regions, and in each a formula of both statistics:
    ("b/(a + b)", "value"): 855,
    ("b/(a + b)", "stderr"): 2902,
}
"""The longest text over all dialects where it is longer than the goal."""


def estimator(name: str) -> tu.Estimator:
    f, noise, domain = CASES[name]
    return tu.unbiased(f, noise, domain)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("output", GOALS)
def test_the_text_is_short_in_every_dialect(name: str, output: str) -> None:
    """Within the goal, or as long as is said; what comes within it is no longer missed."""
    est = estimator(name)
    longest = max(len(est.sql(dialect, output)) for dialect in DIALECTS)
    missed = MISSED.get((name, output))
    if missed is None:
        assert longest <= GOALS[output]
    else:
        assert GOALS[output] < longest <= missed


def test_products_are_written_as_products() -> None:
    """T[s]·T[1/n] has one CASE for n, and s stands beside it."""
    text = estimator("s/n").sql("duckdb")
    assert text == (
        'CASE WHEN ISFINITE("s") AND "s" BETWEEN -1e100 AND 1e100 '
        'AND ISFINITE("n") AND "n" BETWEEN -1e100 AND 1e100 '
        'THEN "s" * CASE WHEN "n" <= 1 THEN 3e0 ELSE (1 - 8e0 / "n" / "n") / "n" END END'
    )
    spread = estimator("where of counts").sql("duckdb", "stderr")
    assert spread.count('"s"') == 4  # the guard, twice, and s²


def test_lines_are_broken_when_asked() -> None:
    est = estimator("s/n")
    lines = est.sql("postgres", "stderr", pretty=True).splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) < 120
    assert " ".join(" ".join(lines).split()).replace("( ", "(").replace(" )", ")") == est.sql(
        "postgres", "stderr"
    )


ROWS = [
    (s, n) for s in (0.0, -7.5, 312.4, 1e8) for n in (-4.0, 0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 61.0, 1e6)
]


@pytest.mark.parametrize("types", ["double", "integer"])
@pytest.mark.parametrize("name", ["duckdb", "sqlite", "postgres"])
def test_the_results_are_those_of_python(name: str, types: str) -> None:
    """Also in columns of integers, which neither divide as such nor overflow."""
    columns: dict[str, list[float]] = {"s": [], "n": []}
    for s, n in ROWS:
        columns["s"].append(s)
        columns["n"].append(n)
    columns["b"], columns["total"], columns["a"] = columns["s"], columns["n"], columns["n"]
    stored = {k: [int(v) for v in c] if types == "integer" else c for k, c in columns.items()}
    asked = [(estimator(case), output) for case in CASES for output in ("value", "stderr")]
    texts = [est.sql(name, output) for est, output in asked]
    found = engine(name).select(stored, texts, dict.fromkeys(stored, types))
    for (est, output), answers in zip(asked, found, strict=True):
        inputs = [[float(v) for v in stored[n]] for n in est.statistics]
        ask = est if output == "value" else est.stderr
        for row, got in zip(zip(*inputs, strict=True), answers, strict=True):
            right = ask(**dict(zip(est.statistics, row, strict=True)))
            if math.isnan(right):
                assert got is None, (est, output, row)
            else:
                assert got == pytest.approx(right, rel=1e-10, abs=1e-12), (est, output, row)
