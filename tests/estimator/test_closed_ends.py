"""Ends of intervals as formulas, evaluated by SQLite."""

from __future__ import annotations

import math
import sqlite3
from typing import Any

import pytest

import trueup as tu

LEVEL = 0.9


def ends(est: tu.Estimator, scales: dict[str, str] | None = None, **row: float) -> tuple[Any, ...]:
    """Return both ends of the interval of one row."""
    wanted = ", ".join(
        est.sql("sqlite", end, scales=scales, level=LEVEL) for end in ("low", "high")
    )
    columns = ", ".join(f"{value!r} AS {name}" for name, value in row.items())
    with sqlite3.connect(":memory:") as connection:
        (found,) = connection.execute(f"SELECT {wanted} FROM (SELECT {columns})")  # noqa: S608
    connection.close()
    return found


@pytest.mark.parametrize("x", [0.3, 5.0, 80.0])
def test_a_monotone_function_is_read_at_both_ends_of_the_noise(x: float) -> None:
    """Laplace noise is farther than b·log(1/α) from 0 with probability α."""
    half = 2 * math.log(10)
    low, high = max(x - half, 1.0), max(x + half, 1.0)
    rising, falling = (tu.unbiased(f, tu.Laplace(2), (1, None)) for f in ("log(q)", "1/q"))
    assert ends(rising, q=x) == pytest.approx((math.log(low), math.log(high)), rel=1e-12)
    assert ends(falling, q=x) == pytest.approx((1 / high, 1 / low), rel=1e-12)


@pytest.mark.parametrize(("s", "n"), [(2.0, 30.0), (40.0, 7.5), (40.0, 2.0)])
@pytest.mark.parametrize(
    ("scales", "b", "c"),
    [(None, 1, 2), ({"s": "b"}, 1.5, 2), ({"s": "b", "n": "c"}, 1.5, 0.7)],
    ids=str,
)
def test_a_box_is_read_at_two_of_its_corners(
    s: float, n: float, scales: Any, b: float, c: float
) -> None:
    """Each of two noises keeps within its side of the box with probability √0.9."""
    noise = {"s": tu.Laplace(1), "n": tu.Laplace(2)}
    est = tu.unbiased("sqrt(s)*exp(-n/9)", noise, {"s": (1, None), "n": (3, None)})
    wide, deep = (-scale * math.log(1 - math.sqrt(LEVEL)) for scale in (b, c))
    low = math.sqrt(max(s - wide, 1)) * math.exp(-max(n + deep, 3) / 9)
    high = math.sqrt(max(s + wide, 1)) * math.exp(-max(n - deep, 3) / 9)
    assert ends(est, scales, s=s, n=n, b=b, c=c) == pytest.approx((low, high), rel=1e-12)


@pytest.mark.parametrize("formula", ["s/(n + k)", "(s + k)/n", "k*s/n"])
def test_known_numbers_of_a_ratio_leave_the_scales_to_the_noisy_ones(formula: str) -> None:
    def made(b: float, c: float) -> tu.Estimator:
        noise = {"k": tu.Noiseless(), "s": tu.Laplace(b), "n": tu.Laplace(c)}
        return tu.unbiased(formula, noise, {"n": (1, None), "s": (0, None), "k": (1, None)})

    published = {"k": 4.0, "s": 25.0, "n": 60.0}
    found = ends(made(1, 1), {"s": "b", "n": "c"}, **published, b=2.5, c=0.8)
    expected = made(2.5, 0.8).interval(**published, level=LEVEL)
    assert found == pytest.approx(expected, rel=1e-9)
