"""SQL that a person can read: short in every dialect, and the same numbers as in Python."""

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
EXACT = {
    ("1/n", "s/n", "log(n)"): (350, 700),
    ("where of counts", "s/max of counts"): (500, 1100),
}
LENGTHS = {name: goal for names, goal in EXACT.items() for name in names} | {
    "b/(a + b)": (1000, 3000),  # four regions, and in each a formula of both statistics
}
"""Characters of a value and of its standard error, in the longest dialect; 400 and 800 else."""


def estimator(name: str) -> tu.Estimator:
    f, noise, domain = CASES[name]
    return tu.unbiased(f, noise, domain)


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_short_in_every_dialect(name: str) -> None:
    est = estimator(name)
    for output, most in zip(("value", "stderr"), LENGTHS.get(name, (400, 800)), strict=True):
        assert max(len(est.sql(d, output, comment=False)) for d in DIALECTS) <= most


def test_products_are_written_as_products() -> None:
    """T[s]·T[1/n] has one CASE for n, and s stands beside it."""
    text = estimator("s/n").sql("duckdb", comment=False)
    assert text == (
        'CASE WHEN ISFINITE("s") AND ABS(CAST("s" AS DOUBLE)) <= 1e100 '
        'AND ISFINITE("n") AND ABS(CAST("n" AS DOUBLE)) <= 1e100 '
        'THEN "s" * CASE WHEN "n" <= 1e0 THEN 3e0 ELSE (1e0 - 8e0 / "n" / "n") / "n" END END'
    )
    spread = estimator("where of counts").sql("duckdb", "stderr", comment=False)
    assert spread.count('"s"') == 4  # the guard, twice, and s²


def test_lines_are_broken_when_asked() -> None:
    est = estimator("s/n")
    lines = est.sql("postgres", "stderr", pretty=True).splitlines()
    assert len(lines) > 5
    assert max(map(len, lines[1:])) < 120
    joined = " ".join(" ".join(lines[1:]).split()).replace("( ", "(").replace(" )", ")")
    assert joined == est.sql("postgres", "stderr", comment=False)


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
