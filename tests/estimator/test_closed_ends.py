"""Ends of intervals as formulas, evaluated by SQLite."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
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


TURNING: dict[str, Callable[[Any], Any]] = {
    "q**2*exp(-q/50)": lambda q: q**2 * np.exp(-q / 50),
    "q**3 - 27*q": lambda q: q**3 - 27 * q,
    "(q - 7)**4": lambda q: (q - 7) ** 4,
}


@pytest.mark.parametrize("x", [-40.0, -4.0, 2.0, 5.0, 9.0, 30.0, 99.0])
@pytest.mark.parametrize("f", TURNING)
def test_turns_between_the_ends_of_the_noise_count(f: str, x: float) -> None:
    """Against the extremes on a fine grid, which misses a turn by half the curvature times h²."""
    est = tu.unbiased(f, tu.Laplace(1))
    grid = x + math.log(10) * np.linspace(-1, 1, 100_001)
    values = TURNING[f](grid)
    expected = [values.min(), values.max()]
    assert est.interval(x, level=LEVEL) == pytest.approx(expected, rel=1e-7, abs=1e-6)
    assert ends(est, q=x) == pytest.approx(est.interval(x, level=LEVEL), rel=1e-12)


COUNTED: dict[str, Callable[[int], float]] = {
    "abs(n - 5)": lambda n: abs(n - 5),
    "where(n >= 1, 1/n, 0)": lambda n: 1 / n if n >= 1 else 0,
    "where(n < 5, 0, n)": lambda n: 0 if n < 5 else n,
    "where(n == 3, 1, 0)": lambda n: n == 3,
    "n*(n - 1)/2": lambda n: n * (n - 1) / 2,
}


@pytest.mark.parametrize("x", [-30, -3, 0, 1, 4, 5, 6, 9, 20])
@pytest.mark.parametrize("f", COUNTED)
def test_turns_and_jumps_of_a_function_of_a_count(f: str, x: int) -> None:
    """P(|Z| > 4) = 0.102 and P(|Z| > 5) = 0.062 under discrete Laplace noise of scale 2."""
    est = tu.unbiased(f, tu.DiscreteLaplace(2), (0, None))
    reach = range(max(x - 5, 0), max(x + 5, 0) + 1)
    values = [float(COUNTED[f](n)) for n in reach]
    assert est.interval(x, level=LEVEL) == pytest.approx((min(values), max(values)), abs=1e-14)
    assert ends(est, n=x) == pytest.approx((min(values), max(values)), abs=1e-14)


def test_infinitely_many_turns_have_no_formula() -> None:
    est = tu.unbiased("sin(q)", tu.Laplace(0.1))
    assert est.interval(0.0, level=LEVEL) == pytest.approx(
        [math.sin(s * 0.1 * math.log(10)) for s in (-1, 1)], rel=0.05
    )
    with pytest.raises(tu.TrueupError, match=r"goes up and down .* has no formula"):
        est.sql("sqlite", "low")


@pytest.mark.parametrize("loc", [0, 1.5, -2])
def test_laws_of_scipy_have_ends_wherever_they_sit(loc: float) -> None:
    """P(|Z − loc| > t) of a logistic law of scale b is 2/(1 + e^{t/b})."""
    law = tu.ScipyNoise("logistic", loc=loc, scale=0.5)
    est = tu.unbiased("2*q + 1", law)
    half = 0.5 * math.log(19)
    expected = [2 * (3.7 - loc + s * half) + 1 for s in (-1, 1)]
    assert est.interval(3.7, level=LEVEL) == pytest.approx(expected, rel=1e-9)
    assert ends(est, q=3.7) == pytest.approx(expected, rel=1e-9)
    ratio, centred = (
        tu.unbiased("s/n", {"s": z, "n": tu.Laplace(1)}, {"n": (1, None)})
        for z in (law, tu.ScipyNoise("logistic", scale=0.5))
    )
    found = ratio.interval(s=3.7, n=9.0, level=LEVEL)
    assert found == pytest.approx(ends(ratio, s=3.7, n=9.0), rel=1e-9)
    assert found == pytest.approx(centred.interval(s=3.7 - loc, n=9.0, level=LEVEL), abs=5e-3)


@pytest.mark.parametrize("noise", [tu.Staircase(1), tu.ScipyNoise("norm", loc=1)])
def test_noise_that_is_no_multiple_of_a_scale_has_no_ends_in_it(noise: tu.Noise) -> None:
    est = tu.unbiased("s/n", {"s": noise, "n": tu.Laplace(1)}, {"n": (1, None)})
    for end in ("low", "high"):
        with pytest.raises(tu.TrueupError, match="no multiples of a scale"):
            est.sql("sqlite", end, scales={"s": "b"})


@pytest.mark.parametrize(
    ("formula", "domain"), [("3", {}), ("s - s + 3", {}), ("s + n", {"s": (1, 1), "n": (2, 2)})]
)
def test_a_known_number_is_both_ends(formula: str, domain: Any) -> None:
    est = tu.unbiased(formula, {"s": tu.Laplace(1), "n": tu.Laplace(1)}, domain)
    assert ends(est, s=8.0, n=-4.0) == est.interval(s=8.0, n=-4.0) == (3, 3)
