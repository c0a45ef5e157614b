"""What the plug-in gets wrong: closed forms of theory against quadrature and sums."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import trueup as tu

scales = st.floats(0.2, 4)
truths = st.floats(-6, 6)
hundredths = st.integers(-300, 300).map(lambda k: k / 100)


def expected(f, q, b, breaks=()):
    """E f(q + Laplace(b)) by adaptive quadrature between the breaks."""
    ends = sorted({q - 45 * b, q, q + 45 * b, *(a for a in breaks if abs(a - q) < 45 * b)})
    total = 0.0
    for low, high in pairwise(ends):
        total += integrate.quad(
            lambda x: f(x) * math.exp(-abs(x - q) / b) / (2 * b),
            low,
            high,
            limit=400,
            epsabs=1e-13,
            epsrel=1e-12,
        )[0]
    return total


@given(scales, truths)
def test_absolute_value(b, q):
    assert tu.plugin_bias("abs(q)", tu.Laplace(b))(q) == pytest.approx(
        b * math.exp(-abs(q) / b), rel=1e-12, abs=1e-11
    )


@given(scales, truths, hundredths, hundredths, hundredths)
def test_a_kink_and_a_jump_at_one_place(b, q, a, rise, slope):
    text = f"where(q < {a!r}, 0, {rise!r} + {slope!r}*(q - {a!r}))"
    found = tu.plugin_bias(text, tu.Laplace(b))(q)
    f = lambda x: 0.0 if x < a else rise + slope * (x - a)  # noqa: E731
    assert found == pytest.approx(expected(f, q, b, [a]) - f(q), abs=1e-9)


@given(scales, hundredths)
def test_a_step_at_the_truth_itself(b, a):
    found = tu.plugin_bias(f"where(q > {a!r}, 1, 0)", tu.Laplace(b))(a)
    assert found == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "f", "breaks"),
    [
        ("max(q, 0)**2", lambda x: max(x, 0) ** 2, [0]),
        ("abs(q - 1)*q", lambda x: abs(x - 1) * x, [1]),
        ("abs(q)**0.5", lambda x: abs(x) ** 0.5, [0]),
        ("log(q**2 + 1)", lambda x: math.log(x * x + 1), []),
        ("min(max(q, -1), 2)", lambda x: min(max(x, -1), 2), [-1, 2]),
        ("log(abs(q))", lambda x: math.log(abs(x)), [0]),
    ],
)
@pytest.mark.parametrize("q", [-1.3, 0.4, 2.0])
def test_against_quadrature(text, f, breaks, q):
    found = tu.plugin_bias(text, tu.Laplace(1.5))(q)
    assert found == pytest.approx(expected(f, q, 1.5, breaks) - f(q), abs=1e-8)


@pytest.mark.parametrize("f", ["1/q", "1/q**2", "log(q)", "sqrt(q)", "exp(q)", "tan(q)"])
def test_no_expectation_is_nan(f):
    assert math.isnan(tu.plugin_bias(f, tu.Laplace(1))(2.0))


def test_kinks_that_repeat_for_ever_are_nan():
    assert math.isnan(tu.plugin_bias("abs(sin(q))", tu.Laplace(1.5))(0.4))


@given(st.floats(0.3, 5), st.integers(-8, 8))
def test_integer_noise_by_direct_sum(b, q):
    noise = tu.DiscreteLaplace(b)
    k = np.arange(-400, 401)
    mass = np.exp(-np.abs(k) / b)
    mass /= mass.sum()
    for text, f in (("abs(n)", np.abs), ("where(n > 2, 1, 0)", lambda n: (n > 2) * 1.0)):
        assert tu.plugin_bias(text, noise)(q) == pytest.approx(
            float(mass @ f(q + k)) - float(f(np.array(q))), abs=1e-11
        )
    assert math.isnan(tu.plugin_bias("1/n", noise)(q))


@pytest.mark.parametrize(
    ("text", "q", "bias"), [("abs(q)", -500.0, 0.0), ("max(q, 200)", 0.0, 80.0)]
)
def test_a_mass_far_from_all_others_counts(text, q, bias):
    """E f(q + Z) is 0.9·f(q) + 0.1·f(q + 1000)."""
    noise = tu.Mass({0: 0.9, 1000: 0.1})
    assert tu.plugin_bias(text, noise)(q) == pytest.approx(bias, abs=1e-9)


@pytest.mark.parametrize("law", [stats.geom(0.5, loc=300), stats.nbinom(3, 0.3), None])
def test_skewed_integer_noise_by_direct_sum(law):
    table = {0: 0.5, 7: 0.3, 30: 0.2}
    noise = tu.Noise.from_scipy(law) if law else tu.Mass(table)
    k = np.arange(0.0, 1000.0)
    mass = law.pmf(k) if law else np.array([table.get(int(n), 0.0) for n in k])
    for text, f in (
        ("exp(sqrt(abs(q)))", lambda x: np.exp(np.sqrt(np.abs(x)))),
        ("1/(1 + q**2)", lambda x: 1 / (1 + x * x)),
    ):
        total = float(mass @ f(1 + k))
        assert tu.plugin_bias(text, noise)(1) + f(1.0) == pytest.approx(total, rel=1e-11)


@pytest.mark.parametrize(
    "noise", [tu.Gaussian(1.5), tu.StudentT(4, 2), tu.Staircase(1), tu.Uniform(5)], ids=repr
)
def test_other_noises_by_quadrature(noise):
    f = lambda x: max(x, 0.0)  # noqa: E731
    density = lambda x: f(x) * noise.pdf(x - 0.7)  # noqa: E731
    marks = [0.7 + z for z in (-2.5, 2.5)] + [0.7 + z for z in np.asarray(noise.breaks(40.0))]
    ends = sorted({0.0, *(m for m in marks if 0 < m < 40), 40.0})
    total = sum(
        integrate.quad(density, a, b, limit=200, epsabs=1e-13)[0] for a, b in pairwise(ends)
    )
    total += integrate.quad(density, 40.0, np.inf, limit=400)[0]
    assert tu.plugin_bias("max(q, 0)", noise)(0.7) == pytest.approx(total - 0.7, abs=2e-8)


def test_polynomials_are_exact_under_every_noise():
    assert tu.plugin_bias("q**2", tu.Laplace(2))(7.0) == 8.0
    assert tu.plugin_bias("q**4", tu.Moments([0, 1, 0, 3]))(2.0) == 6 * 4 + 3
    assert tu.plugin_bias("q**2", tu.DiscreteGaussian(3))(5.0) == pytest.approx(9.0, rel=1e-12)


def test_several_statistics():
    bias = tu.plugin_bias("s*abs(n)", {"s": tu.Laplace(1), "n": tu.DiscreteLaplace(2)})
    alone = tu.plugin_bias("abs(n)", tu.DiscreteLaplace(2))
    assert bias(s=3, n=1) == pytest.approx(3 * alone(1), rel=1e-12)
    assert math.isnan(tu.plugin_bias("s/n", {"s": tu.Laplace(1), "n": tu.Laplace(2)})(s=3, n=9))


@pytest.mark.parametrize(
    ("text", "f"),
    [
        ("abs(c - 2)", lambda c: abs(c - 2)),
        ("where(c > 2, 1, 0)", lambda c: float(c > 2)),
        ("where(c <= 2, (c - 2)**2, 0)", lambda c: min(c - 2, 0) ** 2),
    ],
)
@pytest.mark.parametrize(("a", "q"), [(1, 7.0), (0, 3.9)])
def test_what_breaks_at_one_whole_value_of_another_statistic(text, f, a, q):
    noise = {"a": tu.DiscreteLaplace(1), "c": tu.Laplace(10)}
    k = np.arange(-60, 61)
    mass = math.tanh(0.5) * np.exp(-np.abs(k))
    here = mass[a + k == 1].sum()
    total = here * expected(f, q, 10, [2]) + (mass * (a + k))[a + k != 1].sum()
    found = tu.plugin_bias(f"where(a != 1, a, {text})", noise)(a=a, c=q)
    assert found == pytest.approx(total - (f(q) if a == 1 else a), abs=1e-9)


def test_arrays_in_arrays_out():
    bias = tu.plugin_bias("abs(q)", tu.Laplace(2))
    assert bias([[0.0, 1.0]]).shape == (1, 2)
    assert math.isnan(bias(math.nan))


@pytest.mark.parametrize("f", ["1/q", "log(q)", "sqrt(q)", "1/(q - 7)", "q/(q**2 - 3)"])
@pytest.mark.parametrize("noise", [tu.Laplace(2), tu.Gaussian(1), tu.StudentT(5)], ids=repr)
def test_a_pole_far_away_is_still_reached_by_noise(f, noise):
    assert math.isnan(tu.plugin_bias(f, noise)(1000.0))
    assert math.isfinite(tu.plugin_bias(f, tu.Uniform(2))(1000.0))


def test_a_plug_in_as_steep_as_the_noise_has_no_mean_or_one_that_is_refused():
    """∫ dz/√(1 + z²) and ∫ dz/(√(1 + z²)·log(3 + z²)) do not."""
    for f in ("exp(q)/(q**2 + 1)**0.5", "exp(q)/(q**2 + 1)**0.5/log(q**2 + 3)"):
        assert math.isnan(tu.plugin_bias(f, tu.Laplace(1))(0.0))
    with pytest.raises(tu.TrueupError, match="almost as fast as the tail"):
        tu.plugin_bias("exp(q)/(q**2 + 1)**0.75", tu.Laplace(1))(0.0)
