"""Noise read from scipy.stats: law, existence of moments, generating function."""

import cmath
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats as ss

import trueup as tu
from trueup.errors import TrueupError
from trueup.noise import DiscreteLaplace, Gaussian, Laplace, Noise, ScipyNoise, StudentT
from work import at_most

read = Noise.from_scipy


def test_repr_and_normal_form():
    assert repr(read(ss.norm(scale=2))) == "ScipyNoise('norm', loc=0, scale=2)"
    assert read(ss.norm(0, 2)) == read(ss.norm(loc=0.0, scale=2.0)) == ScipyNoise("norm", scale=2)
    assert repr(read(ss.t(5, scale=0.5))) == "ScipyNoise('t', 5, loc=0, scale=0.5)"
    assert repr(read(ss.poisson(mu=3, loc=-3))) == "ScipyNoise('poisson', 3, loc=-3)"
    assert read(ss.t(5)) != read(ss.t(6))


def test_lattice():
    assert read(ss.poisson(3)).lattice
    assert read(ss.poisson(3, loc=-3.0)).lattice
    assert not read(ss.norm()).lattice
    shifted = read(ss.poisson(3, loc=0.5))
    assert not shifted.lattice
    assert shifted.moment(1) == pytest.approx(3.5, rel=1e-13)
    for use in (shifted.pdf, shifted.pmf):
        with pytest.raises(TrueupError, match="has no"):
            use(0)


LAWS = [ss.norm(1, 2), ss.laplace(scale=3), ss.t(4.5), ss.gamma(2.5), ss.beta(2, 3), ss.poisson(3)]


@pytest.mark.parametrize("frozen", LAWS, ids=lambda f: f.dist.name)
def test_law_is_scipys(frozen):
    noise = read(frozen)
    x = np.array([-2.0, 0.0, 0.4, 1.0, 3.0])
    density, theirs = (noise.pmf, frozen.pmf) if noise.lattice else (noise.pdf, frozen.pdf)
    np.testing.assert_array_equal(density(x), theirs(x))
    np.testing.assert_array_equal(noise.cdf(x), frozen.cdf(x))
    np.testing.assert_array_equal(noise.quantile([0.1, 0.5]), frozen.ppf([0.1, 0.5]))
    assert noise.variance == pytest.approx(frozen.var(), rel=1e-12)
    assert type(noise.cdf(1)) is float


@pytest.mark.parametrize(
    ("ours", "frozen"),
    [
        (Gaussian(2), ss.norm(scale=2)),
        (Laplace(3), ss.laplace(scale=3)),
        (StudentT(9, 2), ss.t(9, scale=2)),
        (DiscreteLaplace(2), ss.dlaplace(0.5)),
    ],
    ids=["gaussian", "laplace", "student", "discrete_laplace"],
)
def test_moments_agree_with_our_families(ours, frozen):
    noise = read(frozen)
    for k in range(9):
        assert noise.moment(k) == pytest.approx(float(ours.moment(k)), rel=1e-10, abs=1e-9)


@pytest.mark.parametrize(
    ("frozen", "radius"),
    [
        (ss.norm(scale=2), math.inf),
        (ss.laplace(scale=4), 0.25),
        (ss.logistic(scale=2), 0.5),
        (ss.gamma(5, scale=2), 0.5),
        (ss.expon(loc=-1, scale=3), 1 / 3),
        (ss.gumbel_r(scale=2), 0.5),
        (ss.uniform(-1, 2), math.inf),
        (ss.t(3), 0),
        (ss.cauchy(), 0),
        (ss.lognorm(1), 0),
        (ss.weibull_min(0.9), 0),
        (ss.weibull_min(1.1), math.inf),
        (ss.poisson(4), math.inf),
        (ss.geom(0.3), -math.log(0.7)),
        (ss.dlaplace(0.25), 0.25),
        (ss.skellam(3, 4), math.inf),
        (ss.zipf(3.5), 0),
        (ss.binom(10, 0.3), math.inf),
    ],
    ids=lambda f: getattr(getattr(f, "dist", None), "name", ""),
)
def test_radius(frozen, radius):
    assert read(frozen).mgf_radius == pytest.approx(radius, rel=1e-6)


@pytest.mark.parametrize(
    ("frozen", "highest"),
    [
        (ss.norm(), None),
        (ss.lognorm(1), None),
        (ss.weibull_min(0.5), None),
        (ss.t(3), 2),
        (ss.t(4.5, loc=3, scale=10), 4),
        (ss.cauchy(), 0),
        (ss.pareto(2.5), 2),
        (ss.zipf(3.5), 2),
    ],
    ids=lambda f: getattr(getattr(f, "dist", None), "name", ""),
)
def test_highest_moment(frozen, highest):
    noise = read(frozen)
    assert noise.highest_moment == highest
    if highest is not None:
        assert math.isfinite(noise.moment(highest))
        with pytest.raises(TrueupError, match=f"has no moment of order {highest + 1}"):
            noise.moment(highest + 1)


def test_variance_that_is_infinite_or_does_not_exist():
    assert read(ss.t(1.5)).variance == math.inf
    with pytest.raises(TrueupError, match="no mean"):
        _ = read(ss.cauchy()).variance


@pytest.mark.parametrize("t", [0.1, -0.2, 0.3j, 2.5j, 0.15 + 1j])
@pytest.mark.parametrize(
    ("frozen", "exact"),
    [
        (ss.norm(1, 2), lambda t: np.exp(t + 2 * t**2)),
        (ss.laplace(scale=3), lambda t: 1 / (1 - 9 * t**2)),
        (ss.gamma(2.5, loc=-1), lambda t: np.exp(-t) * (1 - t) ** -2.5),
        (ss.uniform(-1, 3), lambda t: (np.exp(2 * t) - np.exp(-t)) / (3 * t)),
        (ss.poisson(3, loc=-3), lambda t: np.exp(3 * (np.exp(t) - 1) - 3 * t)),
        (ss.dlaplace(0.7), lambda t: Gone.mgf(t)),
        (ss.binom(10, 0.3), lambda t: (0.7 + 0.3 * np.exp(t)) ** 10),
    ],
    ids=lambda f: getattr(getattr(f, "dist", None), "name", ""),
)
def test_mgf(frozen, exact, t):
    assert read(frozen).mgf(t) == pytest.approx(exact(t), rel=1e-9, abs=1e-13)


class Gone:
    @staticmethod
    def mgf(t):
        a = math.exp(-0.7)
        return (1 - a) ** 2 / (1 - a * np.exp(t)) / (1 - a * np.exp(-t))


def test_tilted_moments():
    values = read(ss.norm(scale=2)).tilted(0.5 + 0.25j, 3)
    for value, expected in zip(values, Gaussian(2).tilted(0.5 + 0.25j, 3), strict=True):
        assert complex(value) == pytest.approx(complex(expected), rel=1e-10)
    assert [float(v) for v in read(ss.norm(scale=2)).tilted(0, 2)] == pytest.approx([1, 0, 4])
    with pytest.raises(TrueupError, match="outgrows the noise on the left"):
        read(ss.laplace()).tilted(-1, 0)


def test_poisson_moments_are_touchard_polynomials():
    noise = read(ss.poisson(3))
    for k in range(10):
        expected = mpmath.exp(-3) * mpmath.nsum(
            lambda j, k=k: j**k * 3**j / mpmath.factorial(j), [0, mpmath.inf]
        )
        assert noise.moment(k) == pytest.approx(float(expected), rel=1e-12)


def test_quantile_starts_at_the_support():
    assert read(ss.poisson(3)).quantile(0) == 0
    assert read(ss.expon()).quantile(0) == 0


@pytest.mark.parametrize(
    "bad",
    [
        ss.norm,
        "norm",
        None,
        3,
        ss.norm(scale=[1, 2]),
        ss.norm(scale=-1),
        ss.norm(scale=math.nan),
        ss.t(-1),
        ss.multivariate_normal([0, 0]),
        ss.rv_histogram(np.histogram([1, 2, 2, 3]))(),
        ss.rv_discrete(values=([1, 2], [0.5, 0.5]))(),
    ],
    ids=lambda b: type(b).__name__,
)
def test_refusals(bad):
    with pytest.raises(TrueupError) as caught:
        read(bad)
    assert "Hint: " in str(caught.value)


@pytest.mark.parametrize("arguments", [("no_such_law",), ("describe",), (3,), ("norm", 1), ("t",)])
def test_bad_names_and_shapes(arguments):
    with pytest.raises(TrueupError):
        ScipyNoise(*arguments)


# -- large parameters ------------------------------------------------------------------------------


def hypergeometric_variance(population: int, marked: int, drawn: int) -> Fraction:
    share = Fraction(marked, population)
    return drawn * share * (1 - share) * Fraction(population - drawn, population - 1)


@pytest.mark.parametrize(
    ("law", "mean", "variance"),
    [
        (
            ss.hypergeom(10**9, 10**8, 10**7),
            10**6,
            hypergeometric_variance(10**9, 10**8, 10**7),
        ),
        (ss.binom(10**9, 0.25), 10**9 // 4, Fraction(3 * 10**9, 16)),
        (ss.poisson(10**9, loc=-(10**9)), 0, 10**9),
        (ss.nbinom(10**8, 0.25), 3 * 10**8, 12 * 10**8),
        (ss.geom(2.0**-26), 2**26, 2**52 - 2**26),
        (ss.betabinom(10**9, 2, 3), 4 * 10**8, 4 * 10**16 + 2 * 10**8),
        (ss.norm(loc=1e9), 10**9, 1),
    ],
    ids=lambda v: v.dist.name if hasattr(v, "dist") else "",
)
def test_moments_of_large_parameters(law: Any, mean: Any, variance: Any) -> None:
    noise = read(law)
    assert float(noise.moment(1)) == pytest.approx(float(mean), rel=1e-9, abs=1e-9)
    assert float(noise.variance) == pytest.approx(float(variance), rel=1e-9)
    spread = Fraction(noise.moment(2)) - Fraction(noise.moment(1)) ** 2
    assert float(spread) == pytest.approx(float(variance), rel=1e-6)
    square = tu.unbiased("q**2", noise)(float(mean))  # x² − 2μx + 2μ² − E Z² at x = μ
    assert square == pytest.approx(-float(variance), rel=1e-6, abs=1e-9 * float(mean) ** 2)


def test_the_generating_function_of_large_parameters() -> None:
    with mpmath.workdps(40):
        t = mpmath.mpf(1e-9)
        binomial = float((mpmath.mpf(3) / 4 + mpmath.exp(t) / 4) ** 10**9)
        poisson = float(mpmath.exp(10**8 * mpmath.expm1(t)))
    assert read(ss.binom(10**9, 0.25)).mgf(1e-9) == pytest.approx(binomial, rel=1e-10)
    assert read(ss.poisson(10**8)).mgf(1e-9) == pytest.approx(poisson, rel=1e-10)


def test_what_is_too_wide_to_add_up_is_refused_with_the_reason() -> None:
    with pytest.raises(TrueupError, match=r"too wide.*add up to"):
        tu.unbiased("q**2", read(ss.zipf(1.01)))
    with pytest.raises(TrueupError, match="too wide to sum over"):
        read(ss.betabinom(10**9, 2, 3)).mgf(1e-9)


def test_cdf_and_quantile_where_scipy_adds_up_masses() -> None:
    law = ss.betabinom(50, 2, 3, loc=-7)
    noise, k = read(law), np.array([-8, -7, 0, 2.5, 20, 43, 44])
    assert noise.cdf(k) == pytest.approx(law.cdf(k), abs=1e-15)
    assert noise.cdf([-math.inf, math.inf]).tolist() == [0, 1]
    p = [0.001, 0.1, 0.5, 0.9, 0.999]
    assert noise.quantile(p).tolist() == law.ppf(p).tolist()
    assert noise.quantile([0, 1]).tolist() == [-7, 43]


@pytest.mark.parametrize(
    ("law", "c", "logarithm"),
    [
        (ss.norm(0, 2), 20, 800),
        (ss.norm(0, 2), -20, 800),
        (ss.norm(3, 2), -50, 5000 - 150),
        (ss.poisson(3), 6, 3 * mpmath.expm1(6)),
        (ss.gumbel_l(), 300, mpmath.loggamma(301)),
        (ss.uniform(-1, 2), 2000, 2000 - mpmath.log(4000)),
        (ss.arcsine(), 800, 400 + mpmath.log(mpmath.besseli(0, 400))),
    ],
    ids=lambda v: v.dist.name if hasattr(v, "dist") else str(v),
)
def test_a_generating_function_beyond_all_doubles_has_digits(law, c, logarithm):
    """Averages are taken of what is divided by its largest value."""
    m = mpmath.mpf(str(read(law).tilted(c, 0)[0]))
    assert float(mpmath.log(m) - logarithm) == pytest.approx(0, abs=1e-11)


@pytest.mark.parametrize("c", [5, -5, 7])
def test_masses_that_underflow_are_not_taken_for_none(c: int) -> None:
    """E e^{5Z} under Skellam noise lies at 2e⁵, where scipy's masses are 0."""
    with pytest.raises(TrueupError, match="does not settle"):
        read(ss.skellam(2, 2)).tilted(c, 0)
    assert float(read(ss.skellam(2, 2)).mgf(1)) == pytest.approx(math.exp(4 * math.cosh(1) - 4))


def test_a_variance_whose_generating_function_is_beyond_all_doubles():
    """V̂ = e^{20x}·(M(10)⁻² − M(20)⁻¹) with M(20) = e⁸⁰⁰."""
    est, ours = (tu.unbiased("exp(10*q)", n) for n in (read(ss.norm(0, 2)), Gaussian(2)))
    assert est.variance(20.0) == pytest.approx(ours.variance(20.0), rel=1e-9)
    assert est.variance(20.0) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("law", [ss.cauchy(), ss.levy()], ids=["cauchy", "levy"])
def test_a_wave_on_a_heavy_tail_comes_to_an_end(law):
    with at_most(230_000), pytest.raises(TrueupError, match="cannot be integrated"):
        Noise.from_scipy(law).mgf(1j)  # 75,000; it took minutes, and then memory


def _beta_mean(a: float, b: float, c: float, j: int = 0) -> Any:
    """Return E[Xʲ e^{cX}] of a beta law by its hypergeometric function."""
    ratio = mpmath.beta(a + j, b) / mpmath.beta(a, b)
    return ratio * mpmath.hyp1f1(a + j, a + b + j, c)


@pytest.mark.parametrize(
    ("a", "b", "loc", "scale"),
    [
        (0.5, 0.5, 0, 1),
        (2, 0.7, 50, 1e-3),
        (2, 0.99, 5, 3),
        (0.1, 3, 5, 3),
        (0.3, 0.2, 50, 1e-3),
        (3, 0.1, 0, 1),
    ],
)
def test_densities_that_are_infinite_at_an_end(a: float, b: float, loc: float, scale: float):
    noise = tu.Noise.from_scipy(ss.beta(a, b, loc=loc, scale=scale))
    c = mpmath.mpf(-1.0) / scale / 2
    with mpmath.workdps(40):
        first, second = (_beta_mean(a, b, k * c * scale) for k in (1, 2))
        spread = mpmath.sqrt(second / first**2 - 1)
        sixth = sum(
            mpmath.binomial(6, j) * mpmath.mpf(loc) ** (6 - j) * mpmath.mpf(scale) ** j
            * _beta_mean(a, b, 0, j)
            for j in range(7)
        )  # fmt: skip
        growth = mpmath.exp(c * loc)
    assert noise.moment(6) == pytest.approx(float(sixth), rel=1e-11)
    if abs(c * loc) < 700:
        assert noise.mgf(float(c)) == pytest.approx(float(first * growth), rel=1e-11)
    exponential = tu.unbiased(f"exp({float(c)!r}*q)", noise)
    assert exponential.sd(0.0) == pytest.approx(float(spread), rel=1e-9)


@pytest.mark.parametrize(
    ("law", "formula", "q", "value", "sd"),
    [
        (ss.arcsine(), "exp(-q/2)", 0.0, 1.26420, 0.175751),
        (ss.rdist(0.9), "exp(-q/2)", 0.0, 0.937338, 0.353638),
        (ss.beta(2, 0.7), "q**4-3*q", 2.5, 3.42041, 11.9507),
        (ss.beta(2, 0.7), "q**4-3*q", -1.0, 13.3947, 1.91306),
    ],
)
def test_estimates_under_densities_that_are_infinite_at_an_end(
    law: Any, formula: str, q: float, value: float, sd: float
) -> None:
    estimator = tu.unbiased(formula, tu.Noise.from_scipy(law))
    assert (estimator(q), estimator.sd(q)) == pytest.approx((value, sd), rel=1e-5)


@pytest.mark.parametrize("law", [ss.dgamma(0.3, loc=2), ss.dweibull(0.5, loc=-7)])
def test_a_density_that_is_infinite_inside(law: Any) -> None:
    noise, loc = tu.Noise.from_scipy(law), law.kwds["loc"]
    shape = mpmath.mpf(law.args[0])
    # Z = loc ± X, X gamma or Weibull
    sixth = mpmath.gamma(shape + 6) / mpmath.gamma(shape) if loc == 2 else mpmath.gamma(13)
    centred = tu.Noise.from_scipy(law.dist(*law.args))
    assert centred.moment(6) == pytest.approx(float(sixth), rel=1e-10)
    if loc == 2:
        real = ((1 + 0.5j) ** -0.3 + (1 - 0.5j) ** -0.3) / 2  # E e^{±iX/2}
        assert noise.mgf(0.5j) == pytest.approx(real * cmath.exp(1j), rel=1e-10)


@pytest.mark.parametrize(
    "law", [ss.vonmises(2), ss.pearson3(3)], ids=["without_end", "pole_elsewhere"]
)
def test_what_does_not_integrate_to_its_own_mass_is_refused_with_the_reason(law: Any) -> None:
    with pytest.raises(TrueupError, match=r"cannot be integrated: its density"):
        read(law).mgf(0.5j)


def test_a_heavy_discrete_law_is_averaged_as_far_as_its_sums_settle() -> None:
    with mpmath.workdps(30):
        exact = mpmath.polylog(3.5, mpmath.exp(-0.5)) / mpmath.zeta(3.5)
    assert read(ss.zipf(3.5)).mgf(-0.5) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("p", [0.8, 0.9, 0.99])
def test_the_tail_of_a_law_whose_quartiles_are_one_integer(p):
    """Geometric masses fall by 1 − p from one integer to the next."""
    noise = Noise.from_scipy(ss.geom(p))
    assert noise.quantile(0.25) == noise.quantile(0.75)
    assert noise.tail_rates[1] == pytest.approx(-math.log(1 - p), rel=1e-9)


def test_a_generating_function_beyond_the_doubles_is_refused_without_a_warning() -> None:
    """E e^{50Z} is e^(2e^50 − …) under Skellam noise."""
    noise = tu.Noise.from_scipy(ss.skellam(2, 2))
    with pytest.raises(tu.NoUnbiasedEstimator, match="does not settle"):
        tu.unbiased("2/exp(-50*(s - 7))", noise, (None, 7))


# -- laws whose moments lie far from their bulk, and formulas that cancel --------------------------


@pytest.mark.parametrize(
    ("law", "mean"),
    [
        (ss.nbinom(1e-4, 1e-5), 1e-4 * (1 - 1e-5) / 1e-5),
        (ss.nbinom(1e-6, 1e-6), 1 - 1e-6),
        (ss.nbinom(1e-9, 1e-9), 1 - 1e-9),
        (ss.nbinom(1e-9, 1e-6), 1e-3 * (1 - 1e-6)),
        (ss.binom(10**18, 1e-18), 1.0),
        (ss.betabinom(10**9, 1e-9, 1), 1 / (1 + 1e-9)),
    ],
    ids=["nbinom_4_5", "nbinom_6", "nbinom_9", "nbinom_9_6", "binom", "betabinom"],
)
def test_a_tail_that_carries_the_mean_is_not_left_out(law: Any, mean: float) -> None:
    """Nearly all of the mass is at 0: a sum over the bulk gives 0."""
    noise = read(law)
    assert noise.moment(1) == pytest.approx(mean, rel=1e-12)
    assert noise.variance == pytest.approx(float(law.var()), rel=1e-12)
    estimator = tu.unbiased("n", noise)
    assert estimator(5) == pytest.approx(5 - mean, rel=1e-12)


def test_a_moment_without_a_formula_whose_sum_does_not_settle_is_refused() -> None:
    noise = read(ss.nbinom(1e-9, 1e-9))
    assert noise.moment(4) == pytest.approx(6e27, rel=1e-6)
    with at_most(100_000), pytest.raises(TrueupError, match="not known: the sum over its tails"):
        noise.moment(5)
    with at_most(100_000), pytest.raises(TrueupError, match="too wide to sum over: its tails"):
        noise.mgf(0.5j)


def exact_moments(masses: list[Any], first: int = 0) -> tuple[float, float]:
    """Return mean and variance of a list of masses, not divided by their sum, in 60 digits."""
    total = mpmath.fsum(masses)
    mean = mpmath.fsum(k * m for k, m in enumerate(masses, start=first)) / total
    square = mpmath.fsum((k - mean) ** 2 * m for k, m in enumerate(masses, start=first)) / total
    return float(mean), float(square)


@pytest.mark.parametrize(
    ("law", "mass", "first", "count"),
    [
        (ss.boltzmann(1e-9, 1000), lambda k: mpmath.exp(-mpmath.mpf(1e-9) * k), 0, 1000),
        (ss.boltzmann(1e-3, 4000), lambda k: mpmath.exp(-mpmath.mpf(1e-3) * k), 0, 4000),
        (ss.zipf(50), lambda k: mpmath.mpf(k) ** -50, 1, 60),
        (ss.logser(1e-12), lambda k: mpmath.mpf(1e-12) ** k / k, 1, 9),
    ],
    ids=["boltzmann", "broad_boltzmann", "zipf", "logser"],
)
def test_moments_of_laws_whose_formulas_cancel(law: Any, mass: Any, first: int, count: int) -> None:
    with mpmath.workdps(60):
        mean, variance = exact_moments([mass(k) for k in range(first, first + count)], first)
    noise = read(law)
    assert float(noise.moment(1)) == pytest.approx(mean, rel=1e-11)
    assert noise.variance == pytest.approx(variance, rel=1e-9, abs=0)


@pytest.mark.parametrize("rate", [1e-15, 1e-12, 1e-8, 1e-3, 0.5])
def test_the_variance_of_scipys_discrete_laplace(rate: float) -> None:
    with mpmath.workdps(60):
        a = mpmath.mpf(rate)
        variance = 1 / (2 * mpmath.sinh(a / 2) ** 2)
        fourth = variance**2 * (mpmath.cosh(a) + 5)
    noise = read(ss.dlaplace(rate))
    assert noise.variance == pytest.approx(float(variance), rel=1e-12)
    assert float(noise.moment(4)) == pytest.approx(float(fourth), rel=1e-11)


def test_masses_of_large_parameters_are_less_exact_than_formulas() -> None:
    noise = read(ss.hypergeom(10**9, 10**5, 10**5))
    assert noise.moment(1) == 10
    expected = float(hypergeometric_variance(10**9, 10**5, 10**5))
    assert noise.variance == pytest.approx(expected, rel=1e-12)


def test_a_law_for_which_scipy_adds_up_many_terms_is_refused() -> None:
    with at_most(20_000), pytest.raises(TrueupError, match="scipy adds up 1e\\+08 terms"):
        read(ss.zipfian(1.1, 10**8))


def test_scipys_libraries_do_not_warn() -> None:
    assert read(ss.skellam(1e12, 1e12)).variance == 2 * 10**12


@pytest.mark.parametrize("rare", [1e-8, 1e-30, 1e-100])
def test_a_law_on_two_integers_one_of_them_rare(rare: float) -> None:
    """Z is −1 with probability p, else 0: M(t) = 1 + p(e^{−t} − 1)."""
    with mpmath.workdps(250):
        p = mpmath.mpf(rare) / (1 + mpmath.mpf(rare))
        first, second = (1 + p * mpmath.expm1(-t) for t in (1, 2))
        unbiased = float(1 / first**2 - 1 / second)
    noise = read(ss.betabinom(1, 1, rare, loc=-1))
    assert noise.variance == pytest.approx(float(p * (1 - p)), rel=1e-12, abs=0)
    estimator = tu.unbiased("exp(q)", noise)
    assert estimator(0) == pytest.approx(float(1 / first), rel=1e-14)
    assert estimator.variance(0) == pytest.approx(unbiased, rel=1e-10, abs=0)


def test_masses_that_fall_slowly_are_added_up_to_their_end() -> None:
    """A million masses are above e^{−42}; E e^{tZ} of a negative binomial law is a power."""
    r, p, t = 1e-4, 4.1e-5, 0.5j
    with mpmath.workdps(30):
        expected = (mpmath.mpf(p) / (1 - (1 - mpmath.mpf(p)) * mpmath.exp(t))) ** mpmath.mpf(r)
    assert read(ss.nbinom(r, p)).mgf(t) == pytest.approx(complex(expected), rel=1e-13)


def test_a_moment_of_masses_that_are_rounding_only_is_refused() -> None:
    """Logarithms of the masses are differences of numbers around 1e14; two moments are stated."""
    noise = read(ss.nhypergeom(10**13, 5 * 10**12, 5))
    assert noise.moment(1) == pytest.approx(5, rel=1e-12)
    assert noise.moment(2) == pytest.approx(35, rel=1e-11)
    with pytest.raises(TrueupError, match="the sum over its tails does not settle"):
        noise.moment(3)


def test_quantiles_where_scipys_search_gives_up() -> None:
    """The law is Poisson's but for 1e-18; scipy.stats.binom(10**18, 1e-18).ppf(0.9) is 0."""
    noise, poisson = read(ss.binom(10**18, 1e-18, loc=-2)), read(ss.poisson(1, loc=-2))
    p = np.array([[0.0, 0.025, 0.5], [0.75, 0.975, 1 - 1e-12]])
    assert noise.quantile(p).tolist() == poisson.quantile(p).tolist()
    assert noise.quantile(0.75) == 0
    assert tu.unbiased("n", noise).interval(5) == tu.unbiased("n", poisson).interval(5)


def test_a_cdf_that_scipy_does_not_find_is_refused() -> None:
    with pytest.raises(TrueupError, match="scipy finds no P"):
        read(ss.skellam(1e12, 1e12)).cdf(-1e6)
