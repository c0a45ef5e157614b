"""Where zones and series lie, what is averaged over the prior, and how large f is there."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import sympy

import trueup as tu
from near.laws import Gaussian, mean, sums
from trueup.domain import Interval
from trueup.near.plan import ROWS, Plan, Stretch, _probes, stretch, typical
from trueup.near.question import Question, read_prior
from trueup.near.series import Terms
from trueup.near.smoothing import Smoothing

q = sympy.Symbol("q", real=True)
NONE = Stretch(None, math.inf, math.inf)


def question(f, noise, low, high):
    domain = Interval(low, high)
    prior = read_prior("uniform", domain, noise.lattice)
    return Question(f, q, noise, domain, 0.05, False, prior)


@pytest.mark.parametrize(
    ("low", "high", "points"),
    [
        (1, None, range(4, 26, 3)),
        (1, 14, [4, 7, 10, 13, 14, 14, 14, 14]),
        (None, 99, range(96, 74, -3)),
        (None, None, range(-3, -25, -3)),
    ],
    ids=["below", "both", "above", "none"],
)
def test_the_size_of_f_near_the_bounds(low, high, points):
    """The mean of |f| at eight points, a unit of noise apart."""
    asked = question(sympy.cos(q) * q, tu.Gaussian(3), low, high)
    wanted = [abs(math.cos(x) * x) for x in points]
    assert typical(asked) == pytest.approx(sum(wanted) / 8, rel=1e-12)
    assert typical(question(sympy.Integer(0), tu.Gaussian(3), low, high)) == 1


@pytest.mark.parametrize("noise", [tu.Gaussian(3), tu.DiscreteGaussian(3)], ids=repr)
@pytest.mark.parametrize("at", [-5e4, 7.0, 5e4])
def test_the_series_is_looked_at_from_the_bound_on(noise, at):
    """Bounds that are moved move all points with them, a bound above mirrors them."""
    by = Smoothing(noise)
    plain = _probes(question(1 / q, noise, 0, None), by)
    moved = _probes(question(1 / q, noise, at, None), by)
    np.testing.assert_allclose(moved - at, plain, rtol=1e-9, atol=1e-6)
    mirrored = _probes(question(1 / q, noise, None, at), by)
    np.testing.assert_allclose((at - mirrored)[::-1], plain, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("bias", [0.5, 0.1, 0.02, 0.005, 1e-5])
@pytest.mark.parametrize("sigma", [4.3, 4.5, 4.7])
def test_the_series_takes_over_where_the_next_term_is_small(sigma, bias):
    """Of order m for 1/q: where 2·wₖ(2k)!/q²ᵏ, 2k = m + 2, wₖ = σ²ᵏ/(2ᵏk!), is 2 % of the bias.

    It is looked for in steps of a quarter of a unit, from where the noise ends below the bound on;
    two and a half units are left as a margin; a higher order has to save a quarter of a unit.
    """
    noise = tu.DiscreteGaussian(sigma)
    by = Smoothing(noise)
    asked = question(1 / q, noise, 4, None)
    asked = dataclasses.replace(asked, max_bias=bias, relative=True)
    start, step = 4 - abs(float(noise.quantile(1e-10))), by.unit / 4
    best, join = 0, math.inf
    for order in (2, 4, 6, 8, 10):
        k = order // 2 + 1
        term = (sigma**2 / 2) ** k / math.factorial(k) * math.factorial(2 * k)
        small = (2 * term / (0.02 * bias)) ** (1 / (2 * k))
        low = math.ceil(start + math.ceil((small - start) / step) * step + 2.5 * by.unit)
        best, join = (order, low) if low < join - step else (best, join)
    found = stretch(asked, by, Terms(asked), 0.0)
    assert (found.series.order, found.low, found.high) == (best, join, math.inf)


def test_an_estimator_moves_with_its_domain():
    """1/(n − c) on [c + 4, ∞) is 1/n on [4, ∞)."""
    plain, moved = (
        tu.nearly_unbiased(f, tu.Gaussian(2), (low, None), 0.02, relative=True, prior="uniform")
        for f, low in (("1/n", 4), ("1/(n - 5000)", 5004))
    )
    x = np.linspace(-20, 60, 81)
    np.testing.assert_allclose(moved(5000 + x), plain(x), rtol=1e-3)
    assert moved.bias_bound == pytest.approx(plain.bias_bound, rel=1e-3)


@pytest.mark.parametrize("high", [2.0, 17.3, 40.0])
def test_the_bias_is_bounded_four_times_a_piece(high):
    plan = Plan(question(sympy.log(q), tu.Gaussian(2), 1, high), Smoothing(tu.Gaussian(2)), NONE, 3)
    rows, widths = plan.truths()
    assert (rows[0], rows[-1]) == (1, high)
    assert np.diff(rows).max() <= plan.width / ROWS * (1 + 1e-9)
    assert widths.sum() == pytest.approx(high - 1, rel=0.05)


def test_the_programme_averages_over_the_prior():
    """Its form is ∫ Var g(q + Z) dq, whatever the true values at which the bias is bounded."""
    noise = tu.Gaussian(2)
    by = Smoothing(noise)
    plan = Plan(question(sympy.log(q), noise, 1, 30), by, NONE, 3)
    made, rng = plan.programme, np.random.default_rng(4)
    even = np.linspace(1, 30, 300)
    forms, integrals = [], []
    for _ in range(3):
        step = rng.normal(size=len(made.start)) * np.linspace(3, 0, len(made.start)) ** 2
        curve = plan.curve(made.start + step)
        forms.append(step @ made.quadratic @ step / 2 + made.linear @ step)
        integrals.append(np.trapezoid(by.law(curve, even, curve.knots)[1], even))
    start = plan.curve(made.start)
    none = np.trapezoid(by.law(start, even, start.knots)[1], even)
    ratios = (np.array(integrals) - none) / np.array(forms)
    np.testing.assert_allclose(ratios, ratios[0], rtol=0.02)


@pytest.mark.parametrize(
    ("noise", "law"),
    [(tu.DiscreteGaussian(1), None), (tu.Gaussian(1), Gaussian(1))],
    ids=["integers", "line"],
)
def test_zones_at_both_ends(noise, law):
    est = tu.nearly_unbiased("1/n + 1/(60 - n)", noise, (3, 57), 0.01, prior="uniform")
    n = np.arange(3.0, 58.0)
    found = sums(est, 1, 3, 57)[0] if law is None else mean(est, law, n)
    off = np.abs(found - 1 / n - 1 / (60 - n))
    assert 0.9 * est.bias_bound < off.max() <= est.bias_bound * (1 + 1e-8)
    assert est.bias_bound <= 0.01
    assert "≤" in est.explain()
    assert "≥" in est.explain()
    x = np.arange(-5.0, 66.0)
    np.testing.assert_allclose(est(x), est(60 - x), rtol=1e-4, atol=1e-5)
