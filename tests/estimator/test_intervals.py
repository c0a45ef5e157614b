"""Intervals of ratios, and of other functions of several statistics, cover as often as they say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy

import trueup as tu
from estimator.drawn import truth
from trueup.confidence import Intervals
from trueup.domain import Interval
from trueup.inverse.ratio import quotient
from trueup.inverse.solve import Statistic
from trueup.kernels.grid import columns as evaluated

SMALL = (1, 2, 3, 4, 6, 9, 14, 30, 100)
LEFT_OUT = 1e-5  # of the probability, beyond the integers that are summed over


def masses(scale: float) -> tuple[Any, Any]:
    """Return the integers that matter under discrete Laplace noise, with their masses."""
    reach = math.ceil(13 * scale)
    k = np.arange(-reach, reach + 1.0)
    alpha = math.exp(-1 / scale)
    return k, (1 - alpha) / (1 + alpha) * alpha ** np.abs(k)


def covered_on_integers(est: Any, s: float, n: float, scale: float) -> float:
    """Return the coverage of s/n under two discrete Laplace noises, as an exact sum."""
    k, p = masses(scale)
    low, high = est.interval(s=s + k[:, None], n=n + k[None, :])
    assert not np.isnan(low).any()
    assert not np.isnan(high).any()
    inside = (low <= s / n) & (s / n <= high)
    return float(np.sum(np.outer(p, p)[inside]))


@pytest.mark.parametrize("scale", [1, 2, 5])
def test_a_ratio_of_integers_is_covered(scale: int) -> None:
    noise = {name: tu.DiscreteLaplace(scale) for name in "sn"}
    est = tu.unbiased("s/n", noise, {"n": (1, None)})
    assert est.interval_method == "ratio"
    for n in SMALL:
        for s in {0, n // 2, n, 3 * n}:
            assert 0.95 - LEFT_OUT <= covered_on_integers(est, s, n, scale) <= 0.999


def test_a_negative_denominator_mirrors_the_interval() -> None:
    noise = {name: tu.DiscreteLaplace(2) for name in "sn"}
    positive = tu.unbiased("s/n", noise, {"n": (1, None)})
    negative = tu.unbiased("s/n", noise, {"n": (None, -1)})
    x = np.arange(-9.0, 30)
    low, high = negative.interval(s=x[:, None], n=-x)
    assert np.array_equal(positive.interval(s=x[:, None], n=x), (-high, -low))


def test_shares_and_differences_are_covered() -> None:
    noise = {name: tu.DiscreteLaplace(2) for name in "ab"}
    share = tu.unbiased("a/(a + b)", noise, "a >= 0, b >= 0, a + b >= 1")
    assert share.interval_method == "ratio"
    k, p = masses(2)
    for a, b in ((1, 0), (0, 3), (4, 4), (30, 9)):
        low, high = share.interval(a=a + k[:, None], b=b + k[None, :])
        assert ((low >= 0) & (high <= 1) & (low <= high)).all()
        inside = (low <= a / (a + b)) & (a / (a + b) <= high)
        assert np.sum(np.outer(p, p)[inside]) >= 0.95 - LEFT_OUT
    both = tu.unbiased("3*a - 2*b", noise)
    low, high = both.interval(a=5 + k[:, None], b=7 + k[None, :])
    assert 0.95 <= np.sum(np.outer(p, p)[(low <= 1) & (high >= 1)]) <= 0.965


@pytest.mark.parametrize(
    ("domain", "empty", "most"),
    [("0 <= s <= n", 0.5, 1), ("0 <= s <= n", 0, 1), ("s >= 0, n >= 0", -3, math.inf)],
)
def test_a_ratio_with_a_value_for_empty_cells_is_covered(domain, empty, most) -> None:
    """Empty cells included, as exact sums; and what is known of s/n holds for the interval too."""
    noise = {name: tu.DiscreteLaplace(2) for name in "sn"}
    est = tu.unbiased("s/n", noise, domain, empty=empty)
    assert est.interval_method == "ratio"
    k, p = masses(2)
    for s, n in ((0, 0), (0, 1), (1, 1), (2, 3), (10, 20)):
        low, high = est.interval(s=s + k[:, None], n=n + k[None, :])
        f = s / n if n else empty
        covered = np.sum(np.outer(p, p)[(low <= f) & (f <= high)])
        assert covered >= 0.95 - LEFT_OUT
        assert n < 10 or covered < 0.96  # and no longer than need be
        assert low.min() >= min(0, empty)
        assert high.max() <= most
    assert est.interval(s=55.0, n=60.0)[0] > 0.5  # a full cell is not taken for an empty one
    assert est.interval(s=1.0, n=0.0)[0] <= empty
    both = tu.unbiased(
        "b/(a + b)", {n: tu.DiscreteLaplace(2) for n in "ab"}, "a >= 0, b >= 0", empty=1
    )
    assert both.interval(a=50.0, b=1.0)[1] < 0.3
    assert both.interval(a=1.0, b=0.0)[1] == 1


def test_noise_that_leans_is_covered_on_both_sides() -> None:
    noise = {"s": tu.Mass({0: 0.7, 1: 0.2, 5: 0.1}), "n": tu.Mass({-1: 0.1, 0: 0.6, 2: 0.3})}
    est = tu.nearly_unbiased("s/n", noise, {"s": (0, 60), "n": (8, 60)}, 0.05, relative=True)
    z, w = np.array([0, 1, 5.0]), np.array([-1, 0, 2.0])
    p = np.outer([0.7, 0.2, 0.1], [0.1, 0.6, 0.3])
    for n, s in ((8, 0), (9, 30), (40, 60)):
        low, high = est.interval(s=s + z[:, None], n=n + w[None, :], level=0.9)
        assert p[(low <= s / n) & (s / n <= high)].sum() >= 0.9


def test_an_interval_without_end_is_not_nan() -> None:
    noise = {"s": tu.Laplace(5), "n": tu.Laplace(5)}
    anything = tu.unbiased("s*n", noise)  # a product: no ratio
    assert anything.interval_method == "projection"
    free = tu.nearly_unbiased("s/n", {"s": tu.Laplace(5), "n": tu.DiscreteGaussian(5)},
                              {"n": (20, 200)}, 0.05, relative=True)  # fmt: skip
    low, high = free.interval(s=np.array([1e6, -1e6, 0.0]), n=np.array([-500, -500, -500]))
    assert np.isfinite([low, high]).all()
    assert (low <= high).all()


def test_without_a_bound_the_hull_of_the_ratios_is_given() -> None:
    s, n = sympy.symbols("s n", real=True)
    intervals = Intervals(s / n, [Statistic(q, tu.Gaussian(1), Interval()) for q in (s, n)], ())
    # 1 is no value that excludes 0: r in (−∞, a] or [b, ∞), whose hull is the line
    assert intervals.at([100.0, 1.0], 0.95) == (-math.inf, math.inf)
    # Fieller's quadratic equation, where the sign of n is clear
    z2 = 1.959963984540054**2
    root = math.sqrt(3000**2 - (900 - z2) * (10000 - z2))
    ends = [(3000 + side * root) / (900 - z2) for side in (-1, 1)]
    for side in (-1, 1):
        low, high = intervals.at([side * 100.0, side * 30.0], 0.95)
        assert (low, high) == pytest.approx(ends, rel=2e-3)
        assert low <= ends[0] <= ends[1] <= high


def test_bounds_of_the_denominator_end_the_interval() -> None:
    noise = {"s": tu.Laplace(5), "n": tu.DiscreteLaplace(5)}
    est = tu.unbiased("s/n", noise, "s >= 0, n >= 1")
    low, high = est.interval(s=30.0, n=-4)
    assert low >= 0
    assert high < 80  # s < 70, n >= 1; without the bound there is no end
    capped = tu.unbiased("s/n", noise | {"s": tu.DiscreteLaplace(5)}, "0 <= s <= 3*n, n >= 1")
    assert capped.interval(s=30, n=-4)[1] == 3


@pytest.mark.parametrize("empty", [None, 2.0])
def test_a_growth_rate_has_the_interval_of_its_ratio(empty: float | None) -> None:
    """100·(r − 1) at both ends of that of r, in memory and as formulas."""
    noise = {"s": tu.DiscreteLaplace(5), "n": tu.DiscreteLaplace(2)}
    domain = "s >= 0, n >= 1" if empty is None else "s >= 0, n >= 0"
    given = {"s": np.array([20.0, -3, 400, 9]), "n": np.array([3.0, -4, 90, 0])}
    ratio = tu.unbiased("s/n", noise, domain, empty=empty)
    growth = tu.unbiased("100*(s/n - 1)", noise, domain, empty=empty and 100 * (empty - 1))
    expected = [100 * (end - 1) for end in ratio.interval(**given)]
    assert np.isfinite(expected).all()
    assert np.allclose(growth.interval(**given), expected, rtol=1e-9, atol=1e-9)
    ends = growth._intervals.closed(0.95)
    assert ends is not None
    for end, known in zip(ends, expected, strict=True):
        found = evaluated(end, None, list(given.values()), ("value",))[0]
        assert np.allclose(found, known, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("f", ["q + (q - 1)**3", "(1 - q)**3 - q"])
def test_a_function_that_rises_or_falls_everywhere_is_mapped(f: str) -> None:
    """Its interval is that of q, x ± b·ln(1/α), mapped through f."""
    est = tu.unbiased(f, tu.Laplace(0.3))
    for x in (-2.0, 0.9, 2.0):
        ends = sorted(truth(f, q=x + s * 0.3 * math.log(20)) for s in (-1, 1))
        assert est.interval(x) == pytest.approx(ends, rel=1e-12)


def test_a_projected_interval_is_hardly_wider_than_the_image_of_the_box() -> None:
    noise = {"a": tu.Laplace(1), "b": tu.Laplace(2)}
    est = tu.unbiased("a*b - b**2", noise)
    assert est.interval_method == "projection"
    tail = (1 - math.sqrt(0.95)) / 2
    reach = -math.log(2 * tail)
    a = 3 + reach * np.linspace(-1, 1, 401)[:, None]
    b = 5 + 2 * reach * np.linspace(-1, 1, 401)[None, :]
    image = a * b - b**2
    low, high = est.interval(a=3.0, b=5.0)
    assert low <= image.min() <= image.max() <= high
    assert high - low <= 1.2 * np.ptp(image)


@pytest.mark.parametrize(
    ("families", "total"),
    [
        ([tu.Gaussian(3), tu.Gaussian(4), tu.Laplace(1)], tu.Gaussian(5)),
        ([tu.Laplace(3), tu.Laplace(4), tu.DiscreteLaplace(2)], tu.Laplace(3) + tu.Laplace(4)),
        ([tu.DiscreteLaplace(3), tu.DiscreteLaplace(2), tu.Laplace(1)],
         tu.DiscreteLaplace(3) + tu.DiscreteLaplace(2)),
    ],
)  # fmt: skip
def test_noises_of_one_sum_are_one_noise(families: list[tu.Noise], total: tu.Noise) -> None:
    """(a + b)/n has the interval of s/n, s with the noise of a + b."""
    parts = dict(zip("abn", families, strict=True))
    several = tu.unbiased("(a + b)/n", parts, {"n": (5, None)})
    one = tu.unbiased("s/n", {"s": total, "n": families[-1]}, {"n": (5, None)})
    assert several.interval_method == one.interval_method == "ratio"
    for a, b, n in ((10, 7, 9), (-4, 0, 30)):
        expected = one.interval(s=a + b, n=n)
        assert several.interval(a=a, b=b, n=n) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("bounds", "sign"), [((1, None), 1), ((0, 4), 1), ((None, -2), -1), ((-1, 4), 0)]
)
def test_the_sign_of_a_denominator_follows_from_its_bounds(bounds: Any, sign: int) -> None:
    s, n = sympy.symbols("s n", real=True)
    known = [
        Statistic(s, tu.Laplace(1), Interval()),
        Statistic(n, tu.Laplace(1), Interval(*bounds)),
    ]
    ratio = quotient(s / n, known, ())
    assert ratio is not None
    assert ratio.sign == sign


def test_other_functions_are_projected() -> None:
    noise = {"a": tu.DiscreteLaplace(1), "b": tu.DiscreteLaplace(1)}
    k, p = masses(1)
    for f, domain in (("a*b", {}), ("a**2/b", {"b": (1, None)}), ("a*b - b**2", {})):
        est = tu.unbiased(f, noise, domain)
        assert est.interval_method == "projection"
        for a, b in ((0, 1), (3, 2), (-4, 9)):
            true = {"a*b": a * b, "a**2/b": a * a / b, "a*b - b**2": a * b - b * b}[f]
            low, high = est.interval(a=a + k[:, None], b=b + k[None, :])
            assert np.sum(np.outer(p, p)[(low <= true) & (true <= high)]) >= 0.95 - LEFT_OUT
    monotone = tu.unbiased("a**2*b", noise, {"a": (1, None), "b": (1, None)})
    low, high = monotone.interval(a=20, b=30)
    reach = 4  # P(|Z| > 4) = 0.0099 and P(|Z| > 3) = 0.0268, each at 1 − √0.95 = 0.0253
    assert (low, high) == ((20 - reach) ** 2 * (30 - reach), (20 + reach) ** 2 * (30 + reach))


def test_an_interval_keeps_shapes_and_missing_numbers() -> None:
    est = tu.unbiased("s/n", {c: tu.Laplace(1) for c in "sn"}, {"n": (1, None)})
    low, high = est.interval(s=np.array([[1.0, np.nan]]), n=20.0)
    assert low.shape == high.shape == (1, 2)
    assert np.isnan([low[0, 1], high[0, 1]]).all()
    assert all(isinstance(end, float) for end in est.interval(s=1.0, n=20.0))
    assert "Fieller" in est.explain()


def test_cases_on_whole_numbers_have_an_interval() -> None:
    """Between whole numbers a case may be undefined, n/n at 0; the box has whole corners."""
    noise = {"s": tu.DiscreteLaplace(0.5), "n": tu.DiscreteLaplace(0.5)}
    domain = {"s": (3, 9), "n": (-1, 5), "n + s": (3, None)}
    f = "sqrt(max(sin(where(n == -1, 1, s)), max(where(n > -1, sqrt(n + 1), n), 1)))"
    low, high = tu.unbiased(f, noise, domain).interval(s=4, n=3)
    assert low <= math.sqrt(2) <= high < 1.7
    f = "min(max(1, log(b)), sqrt(c)) + c/(c + 1)"
    noise = {"b": tu.RoundedLaplace(1 / 3), "c": tu.Mass({-1: 0.1, 0: 0.8, 1: 0.1})}
    domain = {"b": (101, 105), "c": tu.Integers(0, 1)}
    low, high = tu.unbiased(f, noise, domain).interval(b=103, c=1)
    assert low <= 1.5 <= high


COMPARED = {
    "where(s > n, 0, 1)": lambda s, n: 0 if s > n else 1,
    "where(s > n, s, n**2)": lambda s, n: s if s > n else n**2,
    "where(s > n, s, n + 10)": lambda s, n: s if s > n else n + 10,
    "where(s == n, 100, s + n)": lambda s, n: 100 if s == n else s + n,
    "where(s > n, -1, 0)*n": lambda s, n: -n if s > n else 0,
    "where(s > n, s, n)": max,
    "where(s > n and s > 2, 0, n)": lambda s, n: 0 if s > n and s > 2 else n,
    "tan(s + n)": lambda s, n: math.tan(s + n),
    "(s + n - 1/2)**(-3)": lambda s, n: (s + n - 0.5) ** -3,
}


@pytest.mark.parametrize("f", COMPARED)
def test_what_breaks_where_statistics_meet_is_covered(f: str) -> None:
    """Jumps along s = n and poles along s + n = 1/2 are seen along no axis; exact sums."""
    noise = {name: tu.DiscreteLaplace(1) for name in "sn"}
    est = tu.unbiased(f, noise, {"s": (0, 9), "n": (0, 9)})
    assert est.interval_method == "projection"
    k, p = masses(1)
    for s in range(1, 7):
        for n in range(4):
            low, high = est.interval(s=s + k[:, None], n=n + k[None, :], level=0.9)
            assert (low <= high).all()
            true = COMPARED[f](s, n)
            slack = 1e-12 * abs(true)
            inside = (low <= true + slack) & (true - slack <= high)
            assert np.sum(np.outer(p, p)[inside]) >= 0.9 - LEFT_OUT


def test_both_cases_of_a_comparison_are_in_the_interval() -> None:
    noise = {name: tu.DiscreteLaplace(1) for name in "sn"}
    est = tu.unbiased("where(s > n, 0, 1)", noise, {"s": (0, 9), "n": (0, 9)})
    assert est.interval(s=3.0, n=3.0) == (0, 1)
    assert est.interval(s=9.0, n=0.0) == (0, 0)
    with pytest.raises(tu.TrueupError, match="jumps") as refusal:
        est.sql(output="low")
    assert "\nHint: " in str(refusal.value)


@pytest.mark.parametrize("f", ["min(s, n)", "max(s, n)", "max(0, s + n)"])
def test_kinks_between_statistics_are_read_at_two_corners(f: str) -> None:
    """They are continuous: each corner is 4 from the published value, P(|Z| > 4) < 1 − √0.95."""
    noise = {name: tu.DiscreteLaplace(1) for name in "sn"}
    est = tu.unbiased(f, noise)
    assert est.interval(s=20.0, n=30.0) == (truth(f, s=16, n=26), truth(f, s=24, n=34))
    assert "CASE" in est.sql(output="low")


TIED = {
    "sqrt(s + n)": ({"s": (0, None), "s + n": (2, None)}, lambda s, n: math.sqrt(s + n)),
    "sqrt(s - n)": ({"s": (0, None), "s - n": (0, None)}, lambda s, n: math.sqrt(s - n)),
    "(s - n)**(-3)": ({"n": (0, None), "s - n": (1, None)}, lambda s, n: (s - n) ** -3.0),
    "s*log(s + n)": ({"s": (1, 9), "s + n": (1, None)}, lambda s, n: s * math.log(s + n)),
}


@pytest.mark.parametrize("f", TIED)
def test_a_box_that_leaves_the_conditions_has_numbers_for_ends(f: str) -> None:
    noise = {name: tu.DiscreteLaplace(1) for name in "sn"}
    domain, function = TIED[f]
    est = tu.unbiased(f, noise, domain)
    assert est.interval_method == "projection"
    k, p = masses(1)
    for s, n in ((3, 2), (1, 1), (2, 0), (6, 5), (2, 1)):
        if f != "sqrt(s + n)" and s == n:
            continue
        low, high = est.interval(s=s + k[:, None], n=n + k[None, :], level=0.9)
        assert (low <= high).all()  # so neither is NaN
        true = function(s, n)
        slack = 1e-12 * abs(true)
        inside = (low <= true + slack) & (true - slack <= high)
        assert np.sum(np.outer(p, p)[inside]) >= 0.9 - LEFT_OUT


def test_conditions_end_the_interval() -> None:
    noise = {name: tu.DiscreteLaplace(1) for name in "sn"}
    est = tu.unbiased("sqrt(s + n)", noise, {"s": (0, None), "s + n": (2, None)})
    assert est.interval(s=1.0, n=1.0) == pytest.approx((math.sqrt(2), math.sqrt(10)), rel=1e-14)
    assert est.interval(s=-9.0, n=-9.0) == pytest.approx((math.sqrt(2),) * 2, rel=1e-14)
    with pytest.raises(tu.TrueupError, match=r"ends .* has no formula"):
        est.sql(output="low")


def test_fractions_under_integer_noise_have_no_interval() -> None:
    est = tu.unbiased("1/n", tu.DiscreteLaplace(2), (1, None))
    with pytest.raises(tu.TrueupError, match=r"whole numbers, got 5\.5\nHint: "):
        est.interval([3.0, 5.5])
    low, high = est.interval([math.nan, math.inf])
    assert math.isnan(low[0])
    assert math.isnan(high[0])
