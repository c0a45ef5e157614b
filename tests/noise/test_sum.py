"""Sums of noises: the law against numerical convolution, the inverse against quadrature."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats

import depth
import oracle
import trueup as tu
from noise.conftest import mgf
from trueup.errors import InfiniteVariance, NoUnbiasedEstimator, TrueupError
from trueup.noise.record import from_record, to_record

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
SCALES = [(1, 2), (1, 1), (1, 1, 2), (2, 2, 2), (HALF, 1, 3), (0.7, THIRD)]


def total(scales: tuple[Any, ...]) -> tu.Noise:
    """Return the noise of the sum, by +."""
    noise: tu.Noise = tu.Laplace(scales[0])
    for b in scales[1:]:
        noise = noise + tu.Laplace(b)
    return noise


def named(scales: tuple[Any, ...]) -> str:
    return "+".join(str(b) for b in scales)


@pytest.fixture(params=SCALES, ids=named)
def scales(request: pytest.FixtureRequest) -> tuple[Any, ...]:
    """One sum of Laplace noises after the other."""
    return request.param


# -- the law, by convolution -----------------------------------------------------------------------

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def convolved(start: Any, scales: tuple[Any, ...], x: float) -> float:
    """Return E start(x − Z₂ − … − Zₘ): one Gauss–Legendre sum for each further summand."""
    if not scales:
        return float(start(np.array([x]))[0])
    b = float(scales[0])
    cuts = sorted({0.0, x})
    edges = np.unique(
        np.concatenate(
            [
                c + s * b * np.array([0, 0.5, 1, 2, 3, 5, 8, 12, 18, 26, 38])
                for c in cuts
                for s in (1, -1)
            ]
        )
    )
    half = np.diff(edges)[:, None] / 2
    z = (edges[:-1, None] + half * (1 + NODES)).ravel()
    weights = (half * WEIGHTS).ravel() * np.exp(-np.abs(z) / b) / (2 * b)
    if len(scales) == 1:
        return float(start(x - z) @ weights)
    return math.fsum(
        w * convolved(start, scales[1:], x - t) for t, w in zip(z, weights, strict=True)
    )


def laplace_density(b: float) -> Any:
    return lambda x: np.exp(-np.abs(x) / b) / (2 * b)


def laplace_cdf(b: float) -> Any:
    return lambda x: np.where(x < 0, np.exp(-np.abs(x) / b) / 2, 1 - np.exp(-np.abs(x) / b) / 2)


POINTS = [-6.0, -0.4, 0.0, 1.0, 3.7]


def test_density_and_cdf_are_convolutions(scales):
    noise, first = total(scales), float(scales[0])
    for x in POINTS:
        density = convolved(laplace_density(first), scales[1:], x)
        below = convolved(laplace_cdf(first), scales[1:], x)
        assert noise.pdf(x) == pytest.approx(density, rel=1e-10)
        assert noise.cdf(x) == pytest.approx(below, rel=1e-10)


@pytest.mark.parametrize("scales", [(1, 2, 3, 4), (2,) * 6, (1, 1, 1, 2, 2, HALF)], ids=named)
def test_longer_sums_by_their_characteristic_function(scales):
    """f(x) = (1/π)∫cos(ωx)/Π(1 + b²ω²)dω, by the trapezoid rule: exact for analytic integrands."""
    noise = total(scales)
    step = 0.01
    omega = step * np.arange(400_000)
    phi = 1 / np.prod([1 + float(b) ** 2 * omega**2 for b in scales], axis=0)
    phi[0] /= 2
    for x in (0.0, 0.8, -5.0, 12.0):
        assert noise.pdf(x) == pytest.approx(
            float((np.cos(omega * x) * phi).sum()) * step / math.pi, abs=1e-13
        )


def test_density_has_mass_one_and_falls_symmetrically(scales):
    noise = total(scales)
    x = np.linspace(0, 80, 801)
    np.testing.assert_allclose(noise.pdf(-x), noise.pdf(x), rtol=0, atol=0)
    np.testing.assert_allclose(noise.cdf(-x), 1 - noise.cdf(x), atol=1e-15)
    assert (np.diff(noise.pdf(x)) < 0).all()
    law = oracle.Law(noise.pdf, 1.0, tuple(50.0 * float(max(scales)) * k for k in (1, 2)))
    axis = oracle.Axis(law, 0.0)
    for k in range(0, 7, 2):
        size = float(noise.moment(k))
        assert oracle.expect(lambda z, k=k: z**k, axis) == pytest.approx(size, rel=1e-11)


def test_quantile_inverts_the_cdf(scales):
    noise = total(scales)
    p = np.array([1e-200, 1e-30, 1e-9, 0.01, 0.2, 0.4999, 0.5, 0.63, 0.9, 0.999])
    x = noise.quantile(p)
    np.testing.assert_allclose(noise.cdf(x), p, rtol=1e-11)
    assert (np.diff(x) > 0).all()
    assert noise.quantile(0.5) == 0
    assert noise.quantile(0.1) == pytest.approx(-noise.quantile(0.9), rel=1e-12)
    assert noise.quantile(0) == -math.inf
    assert noise.quantile(1) == math.inf
    assert type(noise.quantile(0.3)) is float
    assert noise.quantile([[0.1, 0.2]]).shape == (1, 2)
    below = convolved(laplace_cdf(float(scales[0])), scales[1:], noise.quantile(0.73))
    assert below == pytest.approx(0.73, rel=1e-10)


# -- moments and the generating function -----------------------------------------------------------


def laplace_moment(b: Any, k: int) -> Any:
    return 0 if k % 2 else math.factorial(k) * b**k


def test_moments_are_exact(scales):
    noise = total(scales)
    for k in (0, 1, 2, 3, 4, 6, 8):
        expected = sum(
            math.factorial(k)
            * math.prod(
                laplace_moment(b, j) / Fraction(math.factorial(j))
                for b, j in zip(map(Fraction, scales), orders, strict=True)
            )
            for orders in itertools.product(range(k + 1), repeat=len(scales))
            if sum(orders) == k
        )
        found = noise.moment(k)
        assert found == pytest.approx(float(expected), rel=1e-14)
        if all(not isinstance(b, float) for b in scales):
            assert found == expected
            assert not isinstance(found, float)
    assert noise.variance == pytest.approx(2 * sum(float(b) ** 2 for b in scales))


def test_generating_function_is_a_product(scales):
    noise = total(scales)
    top = float(max(scales))
    assert noise.mgf_radius == pytest.approx(1 / top)
    for t in (-0.6 / top, 0.1 / top, 0.9 / top, 1.3j):
        product = math.prod(1 / (1 - float(b) ** 2 * t**2) for b in scales)
        assert mgf(noise, t) == pytest.approx(product, rel=1e-12)
    with pytest.raises(TrueupError, match="outgrows the noise"):
        mgf(noise, 1.01 / top)


def test_tilted_moments_are_derivatives_of_the_generating_function():
    found = (tu.Laplace(1) + tu.Laplace(2)).tilted(Fraction(1, 4), 2)
    t, h = 0.25, 1e-4
    mgf = lambda t: 1 / ((1 - t**2) * (1 - 4 * t**2))  # noqa: E731
    assert float(found[0]) == pytest.approx(mgf(t), rel=1e-14)
    assert float(found[1]) == pytest.approx((mgf(t + h) - mgf(t - h)) / (2 * h), rel=1e-6)
    assert float(found[2]) == pytest.approx((mgf(t + h) - 2 * mgf(t) + mgf(t - h)) / h**2, rel=1e-5)


# -- a value ---------------------------------------------------------------------------------------

VALUES = [
    *(total(s) for s in SCALES),
    tu.Laplace(1) + tu.Gaussian(HALF),
    tu.DiscreteLaplace(1) + tu.DiscreteGaussian(2),
    tu.Laplace(2) + tu.Staircase(1) + tu.Uniform(3),
]


@pytest.mark.parametrize("noise", VALUES, ids=repr)
def test_a_sum_is_a_value(noise):
    names = {name: getattr(tu, name) for name in tu.__all__}
    record = json.loads(json.dumps(to_record(noise)))
    copies = [
        eval(repr(noise), names),  # noqa: S307
        pickle.loads(pickle.dumps(noise)),  # noqa: S301
        copy.deepcopy(noise),
        from_record(record),
    ]
    for other in copies:
        assert type(other) is type(noise)
        assert other == noise
        assert hash(other) == hash(noise)
        assert repr(other) == repr(noise)


def test_sums_commute_and_associate():
    a, b, c = tu.Laplace(1), tu.Laplace(2), tu.Gaussian(3)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == c + b + a
    assert a + b != a + a
    assert a + a != a
    assert repr(b + a) == "Laplace(1) + Laplace(2)"
    assert len({a + b, b + a}) == 1


def test_only_noises_are_added():
    for other in (1, "Laplace(1)", None, [tu.Laplace(1)]):
        with pytest.raises(TypeError):
            tu.Laplace(1) + other


def test_too_many_summands():
    noise = total((1,) * 40)
    with pytest.raises(TrueupError, match="at most") as caught:
        noise + noise
    assert "\nHint: " in str(caught.value)


@pytest.mark.parametrize("method", ["pdf", "cdf", "quantile"])
def test_sums_without_a_closed_density_say_so(method):
    noise = tu.Laplace(1) + tu.Gaussian(1)
    with pytest.raises(TrueupError, match=r"Laplace\(1\) is not known") as caught:
        getattr(noise, method)(0.25)
    assert "\nHint: " in str(caught.value)


def test_other_sums_have_moments():
    noise = tu.Laplace(1) + tu.Gaussian(2)
    assert noise.variance == 2 + 4
    assert noise.moment(4) == 24 + 6 * 2 * 4 + 3 * 16
    assert mgf(noise, 0.5) == pytest.approx(math.exp(0.5) / (1 - 0.25))
    assert noise.mgf_radius == 1
    heavy = tu.Laplace(1) + tu.StudentT(5)
    assert heavy.highest_moment == tu.StudentT(5).highest_moment
    with pytest.raises(TrueupError, match="moment of order 6"):
        heavy.moment(6)


def test_integers_stay_integers():
    noise = tu.DiscreteLaplace(1) + tu.DiscreteLaplace(2)
    assert noise.lattice
    assert noise.sample(5, rng=1).dtype == np.int64
    assert not (tu.DiscreteLaplace(1) + tu.Laplace(2)).lattice
    assert (tu.DiscreteLaplace(1) + tu.Laplace(2)).sample(5, rng=1).dtype == np.float64


def test_draws_have_the_law(scales):
    noise = total(scales)
    draws = noise.sample(20_000, rng=20240607)
    assert scipy.stats.kstest(draws, noise.cdf).pvalue > 1e-3
    for wrong in (0.7, 1.3):
        folded = lambda x, wrong=wrong: 2 * noise.cdf(x / wrong) - 1  # noqa: E731
        assert scipy.stats.kstest(np.abs(draws), folded).pvalue < 1e-9


# -- the inverse -----------------------------------------------------------------------------------


def lap(x: Any, b: float) -> Any:
    return np.exp(-np.abs(x) / b) / (2 * b)


def twice(x: Any, b: float) -> Any:
    return (np.abs(x) + b) * np.exp(-np.abs(x) / b) / (4 * b**2)


def law(density: Any, b: float) -> oracle.Law:
    return oracle.Law(density, 3 * b, tuple(b * r for r in (45, 90, 180, 360)))


# densities by hand: with A = 1/(1 − t²), B = 1/(1 − 4t²) one has AB = (4B − A)/3 and
# A²B = (16B − 4A − 3A²)/9
NOISES = {
    "1+2": ((1, 2), law(lambda x: (4 * lap(x, 2) - lap(x, 1)) / 3, 2)),
    "1+1": ((1, 1), law(lambda x: twice(x, 1), 1)),
    "1+1+2": ((1, 1, 2), law(lambda x: (16 * lap(x, 2) - 4 * lap(x, 1) - 3 * twice(x, 1)) / 9, 2)),
    "0.7": ((0.7, 0.7), law(lambda x: twice(x, 0.7), 0.7)),
}

FUNCTIONS = {
    "1/u": lambda u: 1 / u,
    "log(u)": np.log,
    "u**2": lambda u: u**2,
    "exp(-u)": lambda u: np.exp(-u),
}


def check(estimator: Any, f: Any, axis: oracle.Axis, largest: float = math.inf) -> None:
    """Check E g = f, sd, and E V̂ = Var at one true value."""
    truth, (mean, variance) = f(axis.q), oracle.moments(estimator, axis)
    assert mean == pytest.approx(truth, abs=1e-9 * max(1.0, abs(truth), 1e-3 * math.sqrt(variance)))
    assert estimator.sd(axis.q) ** 2 == pytest.approx(variance, rel=1e-8)
    assert estimator.bias(axis.q) == pytest.approx(0, abs=1e-9)
    assert oracle.expect(estimator.variance, axis) == pytest.approx(variance, rel=1e-8)


@pytest.mark.parametrize("text", FUNCTIONS)
@pytest.mark.parametrize("name", NOISES)
def test_unbiased_from_a_bound_on(name, text):
    noise, f = total(NOISES[name][0]), FUNCTIONS[text]
    estimator = tu.unbiased(text, noise, (2, None))
    for q in (2.0, 3.5, 20.0):
        check(estimator, f, oracle.Axis(NOISES[name][1], q, (2.0,), feature=3.0))


@pytest.mark.parametrize(("name", "text"), depth.crossed([*NOISES], [*FUNCTIONS]))
def test_unbiased_up_to_a_bound(name, text):
    """The mirror image: f(−u) for u ≤ −2."""
    noise, f = total(NOISES[name][0]), FUNCTIONS[text]
    mirrored = text.replace("-u", "u") if "exp" in text else text.replace("u", "(-u)")
    estimator = tu.unbiased(mirrored, noise, (None, -2))
    twin = tu.unbiased(text, noise, (2, None))
    x = np.array([-11.0, -3.0, -2.0, -1.0, 0.0, 9.0])
    np.testing.assert_allclose(estimator(x), twin(-x), rtol=1e-9)
    check(estimator, lambda u: f(-u), oracle.Axis(NOISES[name][1], -3.5, (-2.0,), feature=3.0))


@pytest.mark.parametrize(("name", "text"), depth.crossed([*NOISES], [*FUNCTIONS]))
def test_unbiased_between_two_bounds(name, text):
    noise, f = total(NOISES[name][0]), FUNCTIONS[text]
    estimator = tu.unbiased(text, noise, (2, 5))
    for q in (2.0, 3.0, 5.0):
        check(estimator, f, oracle.Axis(NOISES[name][1], q, (2.0, 5.0), feature=3.0))


@pytest.mark.parametrize("text", ["u", "u**2", "u**3 - 2*u", "u**4 + 1"])
@pytest.mark.parametrize("name", NOISES)
def test_polynomials_on_the_line(name, text):
    noise = total(NOISES[name][0])
    estimator = tu.unbiased(text, noise)
    f = lambda u: eval(text, {"u": u})  # noqa: E731, S307
    for q in (-4.0, 0.0, 1.5):
        check(estimator, f, oracle.Axis(NOISES[name][1], q, feature=3.0))


@pytest.mark.parametrize("bound", [1, 4])
@pytest.mark.parametrize("b", [1, HALF, 3])
def test_the_inverse_of_two_equal_noises(b, bound):
    """Theory, section 5: G = 1/u − 4b²/u³·… as printed, and the line below the bound."""
    estimator = tu.unbiased("1/u", tu.Laplace(b) + tu.Laplace(b), (bound, None))
    b, low = float(b), float(bound)
    u = np.array([low + 1e-9, low + 0.5, 2 * low, 30.0])
    np.testing.assert_allclose(estimator(u), 1 / u - 4 * b**2 / u**3 + 24 * b**4 / u**5, rtol=1e-12)
    psi, slope = 1 / low, -1 / low**2
    big, big_slope = psi - b**2 * 2 / low**3, slope + b**2 * 6 / low**4
    m0 = big - b * big_slope
    m1 = -big + 2 * (psi - b * slope)
    u = np.array([low, low - 0.3, 0.0, -12.0])
    np.testing.assert_allclose(
        estimator(u), (2 * m0 - m1) + (m1 - m0) * (low - u) / b, rtol=1e-12, atol=1e-13
    )


def test_the_conditions_below_the_bound():
    """∫_{x<L} G e^{(x−L)/bᵢ} dx / bᵢ = (1 − bᵢD)(1 − bⱼ²D²) f at L, for b = 1 and 2."""
    low = 3.0
    estimator = tu.unbiased("1/u", tu.Laplace(1) + tu.Laplace(2), (3, None))
    f = [1 / low, -1 / low**2, 2 / low**3, -6 / low**4]
    for b, other in ((1.0, 2.0), (2.0, 1.0)):
        below = oracle.Law(lambda z, b=b: np.exp(z / b) / b * (z < 0), 3 * b, (60 * b, 120 * b))
        axis = oracle.Axis(below, low)
        wanted = f[0] - other**2 * f[2] - b * (f[1] - other**2 * f[3])
        assert oracle.expect(estimator, axis) == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize("wide", [2, 1.1, 1.06])
def test_below_the_bound_it_has_least_norm(wide):
    """Least norm under e^{−t/b} with two conditions: a + c·e^{−t(1 − 1/b)}, for scales 1 and b."""
    estimator = tu.unbiased("1/u", tu.Laplace(1) + tu.Laplace(wide), (3, None))
    t = np.linspace(0, 40, 9)
    values = estimator(3 - t)
    basis = np.stack([np.ones_like(t), np.exp(-t * (1 - 1 / wide))], axis=1)
    fit, *_ = np.linalg.lstsq(basis, values, rcond=None)
    np.testing.assert_allclose(basis @ fit, values, rtol=1e-10, atol=1e-10)


def test_below_the_bound_scales_within_five_percent_share_a_line():
    estimator = tu.unbiased("1/u", tu.Laplace(1) + tu.Laplace(1.04), (3, None))
    near, middle, far = estimator(3 - np.array([0.0, 20.0, 40.0]))
    assert abs(far - near) > 0.1
    assert middle == pytest.approx((near + far) / 2, rel=1e-10)


def test_one_noise_is_the_limit_of_two():
    """A second noise of no size changes nothing above the bound."""
    one = tu.unbiased("1/u", tu.Laplace(2), (1, None))
    two = tu.unbiased("1/u", tu.Laplace(2) + tu.Laplace(Fraction(1, 10**6)), (1, None))
    x = np.array([1.5, 3.0, 20.0])
    np.testing.assert_allclose(two(x), one(x), rtol=1e-9)
    assert two.sd(6.0) == pytest.approx(one.sd(6.0), rel=1e-4)


@pytest.mark.parametrize("noise", [tu.Laplace(1) + tu.Gaussian(2), tu.Uniform(2) + tu.Laplace(1)])
def test_mixed_sums_free_exponential_polynomials(noise):
    estimator = tu.unbiased("u**2 + exp(u/4)", noise)
    variance, m = float(noise.variance), mgf(noise, 0.25)
    for x in (-3.0, 0.0, 2.5):
        assert estimator(x) == pytest.approx(x**2 - variance + math.exp(x / 4) / m, rel=1e-12)


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("1/u", None),
        ("1/u", (-1, 5)),
        ("abs(u)", None),
        ("u*abs(u)", None),  # f″ jumps: fine under one Laplace, not under two
        ("u**2*abs(u)", None),  # f‴ jumps
        ("exp(u)", (1, None)),
        ("sqrt(u)", (0, None)),
        ("u**(3/2)", (0, None)),  # f″ infinite at the bound: fine under one Laplace
        ("u**(5/2)", (0, None)),  # f‴ infinite at the bound
        ("u*log(u)", (0, None)),
    ],
    ids=str,
)
def test_functions_that_two_noises_do_not_free(text, domain):
    with pytest.raises(NoUnbiasedEstimator) as caught:
        tu.unbiased(text, tu.Laplace(1) + tu.Laplace(2), domain)
    assert "\nHint: " in str(caught.value)


def test_just_smooth_enough():
    """u³|u| has a jump in its fourth derivative only; u^{7/2} at 0 an integrable one."""
    noise, reference = tu.Laplace(1) + tu.Laplace(2), NOISES["1+2"][1]
    estimator = tu.unbiased("u**3*abs(u)", noise)
    axis = oracle.Axis(reference, 1.0, (0.0,), feature=3.0)
    assert oracle.expect(estimator, axis) == pytest.approx(1, abs=1e-8)
    estimator = tu.unbiased("u**(7/2)", noise, (0, None))
    v = (np.arange(120)[:, None] / 10 + (1 + NODES) / 20).ravel()  # u = ±v²
    du = np.tile(WEIGHTS / 20, 120) * 2 * v
    mean = sum(estimator(u) * (4 * lap(u - 1, 2) - lap(u - 1, 1)) / 3 @ du for u in (v**2, -(v**2)))
    assert mean == pytest.approx(1, abs=1e-7)


def test_infinite_variance_is_told():
    """e^{0.3u} under a widest scale of 2: 0.3·2 ≥ ½."""
    noise = tu.Laplace(1) + tu.Laplace(2)
    estimator = tu.unbiased("exp(0.3*u)", noise)
    axis = oracle.Axis(NOISES["1+2"][1], 1.0, feature=3.0)
    assert oracle.expect(estimator, axis) == pytest.approx(math.exp(0.3), rel=1e-9)
    assert estimator.sd(1.0) == math.inf
    with pytest.raises(InfiniteVariance):
        estimator.variance(1.0)


def test_an_estimator_under_a_sum_is_data():
    estimator = tu.unbiased("1/u", tu.Laplace(1) + tu.Laplace(HALF), (1, None))
    again = tu.Estimator.from_json(estimator.to_json())
    copied = pickle.loads(pickle.dumps(estimator))  # noqa: S301
    x = np.array([-3.0, 1.0, 1.5, 40.0])
    np.testing.assert_array_equal(again(x), estimator(x))
    np.testing.assert_array_equal(copied(x), estimator(x))
    assert again.noise == estimator.noise


def test_the_interval_covers():
    """Exact for a monotone f: the noise is inverted."""
    noise = tu.Laplace(1) + tu.Laplace(2)
    estimator = tu.unbiased("1/u", noise, (1, None))
    rng = np.random.default_rng(8)
    low, high = estimator.interval(6 + noise.sample(20_000, rng), level=0.9)
    covered = float(np.mean((low <= 1 / 6) & (high >= 1 / 6)))
    assert covered == pytest.approx(0.9, abs=0.008)


# -- scales that are nearly equal ------------------------------------------------------------------

APART = [0.0, *(10.0**-k for k in range(16, -1, -1))]


def by_partial_fractions(scales: list[float], x: float) -> tuple[Any, Any]:
    """Return density and upper tail at x ≥ 0 with 250 digits, equal scales moved by 1e-40."""
    with mpmath.workdps(250):
        b = [mpmath.mpf(s) * (1 + i * mpmath.mpf(10) ** -40) for i, s in enumerate(scales)]
        density = tail = mpmath.mpf(0)
        for i, own in enumerate(b):
            weight = mpmath.exp(-mpmath.mpf(x) / own) / 2
            for j, other in enumerate(b):
                if j != i:
                    weight *= own**2 / (own**2 - other**2)
            density, tail = density + weight / own, tail + weight
        return density, tail


@pytest.mark.parametrize("others", [(1.0,), (1.0, 1.0), (0.3, 2.0), (1.0, 5.0, 1.0)], ids=named)
def test_the_law_is_right_however_near_the_scales_are(others: tuple[float, ...]) -> None:
    for apart in APART:
        scales = [*others, others[0] * (1 + apart)]
        noise = total(tuple(scales))
        for x in (0.0, 1e-9, 0.3, 3.0, 40.0, 300.0):
            density, tail = by_partial_fractions(scales, x)
            assert noise.pdf(x) == pytest.approx(float(density), rel=1e-12)
            assert noise.cdf(-x) == pytest.approx(float(tail), rel=1e-12)
            assert noise.log_density(np.array(x)) == pytest.approx(
                float(mpmath.log(density)),
                abs=1e-8,  # (x·1e-6/b)²/24 where scales count as equal
            )
        for p in (1e-12, 0.1, 0.5, 0.9):
            assert noise.cdf(noise.quantile(p)) == pytest.approx(p, rel=1e-10)


def test_the_law_at_a_hundred_thousand_points() -> None:
    noise = total((1.0, 1.001))
    x = np.linspace(0, 40, 100_003)
    a, b = np.longdouble(1.0), np.longdouble(1.001)
    first, second = np.exp(-x / a), np.exp(-x / b)
    density = (b * second - a * first) / (b**2 - a**2) / 2
    tail = (b**2 * second - a**2 * first) / (b**2 - a**2) / 2
    np.testing.assert_allclose(noise.pdf(x), density.astype(float), rtol=1e-11)
    np.testing.assert_allclose(noise.cdf(-x), tail.astype(float), rtol=1e-11)


def test_many_unlike_scales() -> None:
    rng = np.random.default_rng(5)
    for count, scales in itertools.product((8, 20), (rng.uniform(1, 10, 20), 10 ** rng.random(20))):
        chosen = scales[:count].tolist()
        noise = total(tuple(chosen))
        for x in (0.0, 1.0, 30.0, 500.0):
            density, tail = by_partial_fractions(chosen, x)
            assert noise.pdf(x) == pytest.approx(float(density), rel=1e-11)
            assert noise.cdf(-x) == pytest.approx(float(tail), rel=1e-11)


def test_the_law_at_the_ends() -> None:
    for noise in (total((1, 2)), total((0.3, 0.1 + 0.2))):
        assert noise.cdf([-math.inf, math.inf]).tolist() == [0, 1]
        assert np.isnan(noise.cdf(math.nan))
        assert noise.pdf([-math.inf, math.inf]).tolist() == [0, 0]
        assert noise.quantile([0, 0.5, 1]).tolist() == [-math.inf, 0, math.inf]
        assert abs(noise.quantile(math.nextafter(0.5, 0))) < 1e-12
        assert math.isfinite(noise.log_density(np.array(5000.0)))
        assert copy.deepcopy(noise) == noise


def nodes_for(scales: list[float], low: float, q: float) -> tuple[Any, Any]:
    """Return nodes and weights for E φ(q + Z), φ with a break at the bound."""
    reach = max(scales) * np.array([0, 0.05, 0.2, 0.5, 1, 2, 3, 5, 8, 12, 16, 21, 27, 34, 42, 50])
    edges = np.unique(np.concatenate([c + s * reach for c in (low, q) for s in (-1, 1)]))
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half * (1 + NODES)).ravel()
    density = [float(by_partial_fractions(scales, abs(v - q))[0]) for v in x]
    return x, (half * WEIGHTS).ravel() * density


@pytest.mark.parametrize(
    "scales",
    [(0.3, 0.1 + 0.2), (1.0, 1 + 1e-9), (1.0, 1.04), (1.0, 1.06), (0.5, 0.5 + 1e-7, 0.6)],
    ids=named,
)
def test_the_estimator_is_unbiased_however_near_the_scales_are(scales: tuple[float, ...]) -> None:
    estimator = tu.unbiased("1/q", total(scales), (1, None))
    for q in (1.0, 2.5):
        x, weights = nodes_for(list(scales), 1.0, q)
        values = estimator(x)
        variance = float((values - 1 / q) ** 2 @ weights)
        assert values @ weights == pytest.approx(1 / q, abs=1e-11 * (1 + math.sqrt(variance)))
        assert estimator.variance(x) @ weights == pytest.approx(variance, rel=1e-9)
        assert estimator.sd(q) == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_equal_scales_up_to_rounding_are_equal() -> None:
    estimator = tu.unbiased("1/q", tu.Laplace(0.3) + tu.Laplace(0.1 + 0.2), (1, None))
    assert estimator(0.5) == pytest.approx(1.506, rel=1e-12)


@pytest.mark.parametrize(
    "parts",
    [
        (tu.DiscreteLaplace(1), tu.DiscreteLaplace(2)),
        (tu.DiscreteLaplace(1), tu.RoundedLaplace(1)),
        (tu.DiscreteGaussian(1), tu.Mass({0: 0.5, 3: 0.5}), tu.DiscreteLaplace(1)),
    ],
    ids=str,
)
def test_a_sum_on_the_integers_has_masses(parts):
    """Under it every function on a bounded domain has an estimator: E g is f by direct sums."""
    noise = sum(parts[1:], start=parts[0])
    k = np.arange(-150, 151)
    masses = parts[0].pmf(k)
    for part in parts[1:]:  # a table leaves out what is below 1e-20
        masses = np.convolve(masses, part.pmf(k), "same")
    np.testing.assert_allclose(noise.pmf(k[100:-100]), masses[100:-100], rtol=1e-9, atol=1e-18)
    np.testing.assert_allclose(
        noise.cdf(k[100:-100]), np.cumsum(masses)[100:-100], rtol=1e-9, atol=1e-18
    )
    est = tu.unbiased("1/(1 + q**2)", noise, (1, 9))
    for q in (1, 4, 9):
        assert masses @ est(q + k) == pytest.approx(1 / (1 + q**2), rel=1e-8)
        assert masses @ (est(q + k) - 1 / (1 + q**2)) ** 2 == pytest.approx(est.sd(q) ** 2)
