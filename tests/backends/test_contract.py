"""One contract: every kind of estimator on every backend agrees with 60 digits, to 1e-10."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from typing import Any

import pytest

import trueup as tu
from backends.engines import BACKENDS
from backends.kinds import (
    BOTH,
    DISCRETE,
    KINDS,
    LAPLACE,
    REAL,
    SCALES,
    WHOLE,
    Kind,
    crossed,
    kinds,
    one,
    several,
    with_scales,
)
from backends.kinds import kind as kind_of
from backends.reference import disagreements

OUTPUTS = ("value", "stderr")


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_kind_of_estimator(backend: str) -> None:
    wrong: list[str] = []
    for kind in kinds():
        answers = BACKENDS[backend](kind, OUTPUTS)
        for output in OUTPUTS:
            wrong += disagreements(kind, output, answers[output])
    assert not wrong, "\n".join(wrong[:40])


ENDS = ("low", "high")
INTERVALS = {
    "a bound": lambda: kind_of("Laplace above a bound"),
    "whole numbers": lambda: one("q**2", LAPLACE, tu.Integers(0, 40)),
    "up and down": lambda: kind_of("exponential polynomial"),
    "a product": lambda: several("s**2*n", BOTH, "s >= 0, n >= 1", {"s": REAL, "n": WHOLE}),
    "a quotient": lambda: kind_of("quotient"),
    "a positive quotient": lambda: several(
        "s/n", BOTH, "s >= 0, n >= 1", {"s": REAL, "n": WHOLE}
    ),
    "empty cells": lambda: Kind(
        est := tu.unbiased("s/n", {"s": DISCRETE, "n": DISCRETE}, "s >= 0, n >= 0", empty=-3),
        crossed(est, {"s": WHOLE, "n": WHOLE}),
    ),
    "a share": lambda: kind_of("share"),
    "scales": lambda: kind_of("Laplace, scales per row"),
    "a quotient, scales": lambda: with_scales(
        *("s/n", {"s": tu.Gaussian(2), "n": LAPLACE}, {"s": (-2, None), "n": (1, None)}),
        {"s": REAL, "n": REAL, "s_scale": SCALES, "n_scale": SCALES},
    ),
}  # fmt: skip


@cache
def interval_kind(name: str) -> tuple[Any, list[tuple[float, float] | None]]:
    """Return a kind and its intervals, row by row, each from an estimator with its own scales."""
    made = INTERVALS[name]()
    found: list[tuple[float, float] | None] = []
    for row in zip(*made.inputs, strict=True):
        if None in row:
            found.append(None)
            continue
        given = dict(zip((*made.est.statistics, *made.scales.values()), row, strict=True))
        est = made.est
        if made.scales:
            own = {
                s: dataclasses.replace(n, scale=given[made.scales[s]]) if s in made.scales else n
                for s, n in made.est.noise.items()
            }
            est = tu.unbiased(made.est.estimand, own, made.est.domain)
        found.append(est.interval(**{s: given[s] for s in est.statistics}))
    return made, found


@pytest.mark.parametrize("backend", BACKENDS)
def test_intervals(backend: str) -> None:
    wrong: list[str] = []
    for name in INTERVALS:
        made, wanted = interval_kind(name)
        answers = BACKENDS[backend](made, ENDS)
        for i, ends in enumerate(wanted):
            got = [answers[end][i] for end in ENDS]
            known = [math.nan if v is None else v for v in got]
            expected = [math.nan, math.nan] if ends is None else list(ends)
            if known != pytest.approx(expected, rel=1e-10, abs=1e-10, nan_ok=True):
                wrong.append(f"{name}, row {i}: {known}, expected {expected}")
    assert not wrong, "\n".join(wrong[:40])


def test_intervals_without_a_formula_are_refused() -> None:
    quotient = kind_of("quotient, scales per row")
    with pytest.raises(tu.TrueupError, match=r"no multiples of a scale .*\nHint: collect"):
        quotient.est.sql(output="low", scales=quotient.scales)
    falls_and_rises = tu.unbiased("a**2/b", {"a": LAPLACE, "b": LAPLACE}, {"b": (1, None)})
    with pytest.raises(tu.TrueupError, match="goes up and down"):
        falls_and_rises.sql(output="high")
    table = one({k: k**0.5 for k in range(60)}, DISCRETE, None, WHOLE)
    with pytest.raises(tu.TrueupError, match="has no formula"):
        table.est.sql(output="high")


@pytest.mark.parametrize("name", KINDS)
def test_a_near_miss_is_noticed(name: str) -> None:
    """What is off by a billionth of the magnitude, or null, or a row too late, does not pass."""
    kind = kind_of(name)
    right = [None if math.isnan(x) else x for x in numbers(kind)]
    assert not disagreements(kind, "value", right)
    for wrong in ([near(x) for x in right], [None] * len(right), [*right[1:], right[0]]):
        assert disagreements(kind, "value", wrong)


def near(x: float | None) -> float | None:
    return None if x is None else x * (1 + 1e-9)


def numbers(kind: Any) -> list[float]:
    grid, nan = kind.grid("value"), math.nan
    rows = zip(*kind.inputs, strict=True)
    return [grid.number(*row) if None not in row else nan for row in rows]
