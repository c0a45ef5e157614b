"""Laws whose two tails differ, and laws that end: estimators against quadrature with mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
import scipy.stats as st

import trueup as tu
from trueup.errors import NoUnbiasedEstimator


class Case(NamedTuple):
    """A frozen law, its density typed in by hand, and where to cut its integral."""

    law: Any
    density: Callable[[Any], Any]
    cuts: tuple[float, ...]


CASES = {
    "expon": Case(st.expon(loc=-1), lambda z: mpmath.exp(-z - 1), (-1, 0, 2, 8, 30, 400)),
    "gamma": Case(
        st.gamma(3, loc=-3, scale=0.5),
        lambda z: 4 * (z + 3) ** 2 * mpmath.exp(-2 * (z + 3)),
        (-3, -2, -1, 0, 4, 15, 200),
    ),
    "gumbel_r": Case(
        st.gumbel_r(), lambda z: mpmath.exp(-z - mpmath.exp(-z)), (-5, -3, -1, 0, 2, 8, 30, 400)
    ),
    "gumbel_l": Case(
        st.gumbel_l(), lambda z: mpmath.exp(z - mpmath.exp(z)), (-400, -30, -8, -2, 0, 1, 3, 5)
    ),
    "uniform": Case(st.uniform(-0.3, 1.5), lambda z: 1 / mpmath.mpf(1.5), (-0.3, 1.2)),
    "triang": Case(
        st.triang(0.3, loc=-1, scale=2),
        lambda z: (z + 1) / mpmath.mpf(0.6) if z < -0.4 else (1 - z) / mpmath.mpf(1.4),
        (-1, -0.4, 1),
    ),
    "beta": Case(
        st.beta(2, 3, loc=-0.4), lambda z: 12 * (z + 0.4) * (0.6 - z) ** 2, (-0.4, 0, 0.6)
    ),
}


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    """One law after the other."""
    return CASES[request.param]


def expected(case: Case, phi: Callable[[Any], Any]) -> float:
    """Return E φ(Z)."""
    return float(mpmath.quad(lambda z: phi(z) * case.density(z), case.cuts))


def test_polynomials_have_mean_and_sd(case: Case) -> None:
    estimator, q = tu.unbiased("q**2 - 3*q", tu.Noise.from_scipy(case.law)), 0.7
    mean = expected(case, lambda z: estimator(q + float(z)))
    second = expected(case, lambda z: estimator(q + float(z)) ** 2)
    assert mean == pytest.approx(q**2 - 3 * q, rel=1e-9)
    assert estimator.sd(q) == pytest.approx(math.sqrt(second - mean**2), rel=1e-7)
    spread = expected(case, lambda z: estimator.variance(q + float(z)))
    assert spread == pytest.approx(second - mean**2, rel=1e-7)


def test_exponentials_are_refused_under_laws_of_scipy(case: Case) -> None:
    with pytest.raises(NoUnbiasedEstimator, match=r"generating function .* is not known"):
        tu.unbiased("exp(q/5)", tu.Noise.from_scipy(case.law))


@pytest.mark.parametrize(
    ("formula", "phi"),
    [
        ("sqrt(1+exp(-6*q))", lambda x: mpmath.sqrt(1 + mpmath.exp(-6 * x))),
        ("log(1+q**2)", lambda x: mpmath.log(1 + x**2)),
    ],
)
def test_the_bias_of_the_plug_in(case: Case, formula: str, phi: Callable[[Any], Any]) -> None:
    if math.isinf(case.law.support()[0]):  # how fast a law of scipy falls is not known
        assert formula == "log(1+q**2)" or math.isnan(
            tu.plugin_bias(formula, tu.Noise.from_scipy(case.law))(0.7)
        )
        return
    found = tu.plugin_bias(formula, tu.Noise.from_scipy(case.law))(0.7)
    assert found == pytest.approx(expected(case, lambda z: phi(z + 0.7) - phi(0.7)), rel=1e-9)


# -- zeros of the generating function --------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "noise"),
    [
        ("cos(2*pi*q)", tu.Uniform(1)),
        ("sin(6.283185307179586*q)", tu.Uniform(1)),
        ("q*cos(20*pi*q)+q**2", tu.Uniform(0.1)),
        ("cos(2*pi*q)", tu.Uniform(1) + tu.Uniform(1)),
    ],
)
def test_waves_that_the_noise_averages_to_zero_are_refused(formula: str, noise: tu.Noise) -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match=r"averages the wave .* to zero"):
        tu.unbiased(formula, noise)


def test_wide_noise_leaves_little_of_a_wave_but_not_nothing() -> None:
    estimator = tu.unbiased("cos(q)", tu.Gaussian(10))
    assert estimator(0.3) == pytest.approx(math.exp(50) * math.cos(0.3), rel=1e-12)
    # E cos²(0.3 + Z) = (1 + e^{−200} cos 0.6)/2
    assert estimator.sd(0.3) == pytest.approx(math.exp(50) * math.sqrt(0.5), rel=1e-9)


@pytest.mark.parametrize(
    ("formula", "f", "width", "domain"),
    [
        ("sinh(q/3)**2", lambda q: np.sinh(q / 3) ** 2, 3, (None, None)),
        ("cos(3*q)*exp(-q/5)", lambda q: np.cos(3 * q) * np.exp(-q / 5), 3, (None, None)),
        ("5*cosh(q)", lambda q: 5 * np.cosh(q), 10, (None, 42)),
        ("q*exp(-q)+exp(q/2)", lambda q: q * np.exp(-q) + np.exp(q / 2), 4, (None, None)),
    ],
)
def test_growing_terms_whose_weights_are_quotients_of_exponentials(
    formula: str, f: Callable[[Any], Any], width: float, domain: Any
) -> None:
    estimator = tu.unbiased(formula, tu.Uniform(width), domain=domain)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for q in (0.0, -1.2):
        values = estimator(q + width * nodes / 2)
        assert values @ weights / 2 == pytest.approx(f(q), rel=1e-11)
        variance = (values - f(q)) ** 2 @ weights / 2
        assert estimator.sd(q) == pytest.approx(math.sqrt(variance), rel=1e-9)


def _gaussian(t: Any) -> Any:
    return mpmath.exp(t * t / 2)


def _rectangle(t: Any) -> Any:
    return mpmath.sinh(t / 2) * 2 / t


def _spreads(mgf: Callable[[Any], Any], q: float) -> dict[str, float]:
    """Return the sd of the estimators of e^{−q/2} and of cos q, by M alone."""
    with mpmath.workdps(300):
        one, two, wave, twice = (mgf(mpmath.mpmathify(t)) for t in (-0.5, -1, 1j, 2j))
        grown = mpmath.exp(-q) * (two / one**2 - 1)
        turned = mpmath.re(mpmath.exp(2j * q) * twice / wave**2)  # g = Re e^{ix}/M(i)
        waved = (1 / abs(wave) ** 2 + turned) / 2 - mpmath.cos(q) ** 2
        return {"exp(-q/2)": float(mpmath.sqrt(grown)), "cos(q)": float(mpmath.sqrt(waved))}


@pytest.mark.parametrize("scale", [1e-9, 1e-15, Fraction(1, 10**9)], ids=str)
@pytest.mark.parametrize(
    ("noise", "mgf"),
    [
        (tu.Gaussian, _gaussian),
        (tu.Uniform, _rectangle),
        (lambda s: tu.Gaussian(s) + tu.Uniform(s), lambda t: _gaussian(t) * _rectangle(t)),
    ],
    ids=["gaussian", "uniform", "sum"],
)
def test_the_spread_under_narrow_noise_keeps_its_digits(
    noise: Callable[[Any], Any], mgf: Callable[[Any], Any], scale: Any
) -> None:
    exact = Fraction(scale)
    for formula, right in _spreads(
        lambda t: mgf(t * exact.numerator / exact.denominator), 1
    ).items():
        estimator = tu.unbiased(formula, noise(scale))
        assert estimator.sd(1.0) == pytest.approx(right, rel=1e-9)
        close = 1e-9 + 10 * float(scale)  # at x = q, not on the average
        assert estimator.variance(1.0) == pytest.approx(right**2, rel=close, abs=0)


@pytest.mark.parametrize("rare", [1e-12, 1e-40])
def test_a_table_in_which_one_value_hardly_ever_comes(rare: Any) -> None:
    masses = {5: 1 - rare, 6: rare}
    total = sum(Fraction(p) for p in masses.values())

    def mgf(t: Any) -> Any:
        shares = {k: Fraction(p) / total for k, p in masses.items()}
        return sum(p.numerator * mpmath.exp(k * t) / p.denominator for k, p in shares.items())

    for formula, right in _spreads(mgf, 1.0).items():
        assert tu.unbiased(formula, tu.Mass(masses)).sd(1.0) == pytest.approx(right, rel=1e-9)
