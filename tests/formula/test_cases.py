"""min, max, abs and where of anything: an answer or a reason, never an objection of sympy's."""

from __future__ import annotations

import math

import pytest
import sympy

import trueup as tu
from trueup.formula.grammar import parse
from trueup.formula.substitution import at, decimal, real
from trueup.inverse.signs import without_kinks
from work import at_most

q = sympy.Symbol("q", real=True)

CALLS = 1_000_000
"""311,000 were counted at most; some of these never returned."""


@pytest.mark.parametrize(
    ("kinked", "smooth"),
    [("min(n, n*n)", "n"), ("min(sqrt(n), n)", "sqrt(n)"), ("max(sqrt(n), log(n))", "sqrt(n)")],
)
@pytest.mark.parametrize("noise", [tu.DiscreteLaplace(2), tu.Laplace(2)], ids=str)
def test_a_kink_outside_an_unbounded_domain_is_none(
    kinked: str, smooth: str, noise: tu.Noise
) -> None:
    """Endless once: the sign of a difference was sought beyond all doubles."""
    with at_most(CALLS):
        found, plain = (tu.unbiased(f, noise, (2, None)) for f in (kinked, smooth))
    for x in (-3.0, 2.0, 3.0, 17.0, 1e6):
        assert found(x) == pytest.approx(plain(x), rel=1e-9)
        assert found.variance(x) == pytest.approx(plain.variance(x), rel=1e-9)
    assert found.sd(5.0) == pytest.approx(plain.sd(5.0), rel=1e-9)


ANYTHING = [
    ("min(sqrt(q), q)", tu.Laplace(2), (2, None)),
    ("min(sqrt(q), q)", tu.Laplace(2), None),
    ("where(log(q) <= 1, q, 0)", tu.DiscreteLaplace(3), (-1, None)),
    ("max(1, log(q))", tu.DiscreteLaplace(0.3), (0, None)),
    ("max(1, log(q))", tu.Laplace(1), (-1, -1)),
    ("sqrt(q)", tu.Laplace(1), (-1, -1)),
    ("1/max(q, 0)", tu.Laplace(1), (1, None)),
    ("q/max(abs(q - 2)**1.5, q*(q - 2), sqrt(q))", tu.Laplace(1), None),
    ("max(where(q >= 9, q, 3), min(1/q, where(q != 9, q, 2)), atan(q))", tu.Laplace(1), (10, None)),
    ("min(tan(q - 2), min((1 - cos(q))**1.5, where(q > 2, 0.5, q)))", tu.RoundedLaplace(0.3), None),
    ("abs(q + where(log(q) <= 1, q, 0))", tu.Laplace(1) + tu.Laplace(2), (-2, None)),
    ("((acosh(q - 0.1))**1.5)**(1/3)", tu.Laplace(1.7), (1.1, 5.1)),
    ("where(q < 3, q, min(q, 1)**0.5)", tu.Laplace(10), tu.Integers(3, 4)),
    ("where(n <= -2, min(where(n <= -2, n, 3), acosh(n)), exp(n))", tu.Laplace(3), (None, -2)),
    ("where(q != 100, max(10/(q - 100), acos(q*q), max(1.5, q)), q)", tu.Laplace(1.7), None),
]  # fmt: skip


@pytest.mark.parametrize(("f", "noise", "domain"), ANYTHING, ids=[f for f, *_ in ANYTHING])
def test_every_question_has_an_answer_or_a_reason(f: str, noise: tu.Noise, domain: object) -> None:
    try:
        with at_most(CALLS):
            est = tu.unbiased(f, noise, domain)
    except tu.TrueupError:
        return
    assert not math.isnan(est(4.0))
    assert not math.isnan(est(-400.0))
    est.interval(4.0)
    assert est.formula is not None
    assert "Unbiased estimator" in est.explain()


def test_where_is_drawn_out_of_an_extremum() -> None:
    f = parse("max(where(q > 1, q**2, 3), abs(q), -2)")
    smooth = without_kinks(f)
    tests = [test for cases in smooth.atoms(sympy.Piecewise) for _, test in cases.args]
    assert not any(test.has(sympy.Piecewise) for test in tests)
    for point in (-5, -1, 0, sympy.Rational(1, 2), 2, 7):
        place = {q: point + sympy.S.Zero}
        assert real(at(smooth, place)) == real(at(f, place))


def test_too_many_cases_are_refused() -> None:
    f = "q"
    for k in range(11):
        f = f"abs({f} - {k + 1})"
    with pytest.raises(tu.TrueupError, match="too many cases"):
        without_kinks(parse(f))


def test_numbers_that_are_not_real_enter_no_comparison() -> None:
    minus = {q: sympy.Integer(-1)}
    assert at(parse("where(sqrt(q) > 0, 1, 5)"), minus) is sympy.nan
    assert at(parse("where(q > 0 and sqrt(q) > 0, 1, 5)"), minus) == 5
    assert at(parse("max(1, log(q))"), minus) is sympy.nan
    assert at(parse("max(1, log(q))"), {q: sympy.Integer(0)}) == 1
    assert real(at(parse("abs(sqrt(q))"), minus)) is None


@pytest.mark.parametrize(
    "f",
    [
        sympy.tanh(sympy.cosh(q)),
        sympy.exp(-sympy.exp(q)),
        sympy.sin(sympy.exp(q)),
        sympy.tanh(2 ** sympy.sinh(q)),
        sympy.tanh(sympy.cosh(q) ** 1.5),
    ],
    ids=str,
)
def test_an_exponential_of_an_exponential_is_not_computed(f: sympy.Expr) -> None:
    """e^(e^(10¹⁹)) took 10¹⁹ bits, which was a MemoryError, e^(e^(10⁷)) minutes."""
    assert real(at(f, {q: sympy.Integer(10) ** 19})) is None
    assert real(at(f, {q: sympy.Integer(10) ** 7})) is None


# -- exponents: 0.1 is a short fraction to whoever computes exactly, not p/2⁵⁵ -------------------

MORE_CALLS = 6_000_000
"""1,900,000 were counted at most; before, sympy multiplied out 2^3602879701896397."""


def test_exponents_are_short_fractions_or_stay_and_factors_are_what_they_are() -> None:
    assert decimal(q**0.1) == q ** sympy.Rational(1, 10)
    assert decimal(q ** (1 / 3)) == q ** sympy.Rational(1, 3)
    assert decimal(0.1 * q) == q / 10
    odd = sympy.Float(0.12345678901234567)
    assert decimal(q**odd) == q**odd


@at_most(MORE_CALLS)
def test_a_tenth_root_in_an_extremum_is_refused_with_the_reason() -> None:
    formula = "min(cos(tanh(where(q <= 7, q, 0.5))), min(min(q, q*q), q**0.1))"
    with pytest.raises(tu.NoUnbiasedEstimator, match="jumps"):
        tu.unbiased(formula, tu.Laplace(1), (4, None))


@at_most(MORE_CALLS)
def test_an_interval_for_a_tenth_root_of_an_integer() -> None:
    est = tu.unbiased("max(1.5**0.5, q + q)**0.1", tu.DiscreteLaplace(2), tu.Integers(-5, None))
    low, high = est.interval(12)
    assert 1 <= low < est(12) < high < 2
