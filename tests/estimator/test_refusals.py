"""Every reason to refuse, named; infinite variance told apart; bad input, with a hint."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import oracle
import trueup as tu
from estimator.drawn import truth
from oracle import Axis, expect
from work import at_most

CALLS = 1_100_000
"""371,000 were counted at most."""


def refused(make: Callable[[], Any], error: type[Exception], reason: str) -> None:
    """Assert the error, the reason in its first line, a hint, and that it came to an end."""
    with at_most(CALLS), pytest.raises(error) as info:
        make()
    message, *rest = str(info.value).splitlines()
    assert re.search(reason, message, re.IGNORECASE), str(info.value)
    assert sum(line.startswith("Hint: ") for line in rest) == 1
    assert isinstance(info.value, tu.TrueupError)


WRITTEN = [
    ("sqrt(q)**2", tu.Laplace(1), (0, None), "q"),
    ("q/q", tu.Laplace(1), None, "1"),
    ("1/(1/q)", tu.DiscreteLaplace(1), None, "q"),
    ("where(q > 0, sqrt(q)**2, q)", tu.Laplace(1), None, "q"),
    ("where(q >= 0 and sqrt(q)**2 < 4, 1, 0)", tu.DiscreteLaplace(1), None, "where(q"),
    ("where(q < 0 or sqrt(q)**2 < 4, 1, 0)", tu.DiscreteLaplace(1), None, "where(q"),
    ("sqrt(q*(q - 1))**2", tu.DiscreteLaplace(1), None, "q*(q - 1)"),
    ("sqrt(q - 0.1)**2", tu.Laplace(1), (0.1, None), "q - 0.1"),
]


@pytest.mark.parametrize(("formula", "noise", "domain", "simple"), WRITTEN)
def test_what_is_real_as_written_is_estimated(
    formula: str, noise: tu.Noise, domain: Any, simple: str
) -> None:
    made = tu.unbiased(formula, noise, domain)
    assert json.loads(made.to_json())["formula"].startswith(simple)


def test_conditions_between_statistics_count() -> None:
    noise = {"s": tu.DiscreteLaplace(1), "n": tu.DiscreteLaplace(1)}
    assert tu.unbiased("exp(-sqrt(n - s)**2/10)", noise, "0 <= s <= n").statistics == ("s", "n")
    refused(
        lambda: tu.unbiased("exp(-sqrt(n - s)**2/10)", noise, "s >= 0, n >= 0"),
        tu.NoUnbiasedEstimator,
        r"shown that sqrt\(n - s\) is a real number",
    )


# -- what the mathematics says -----------------------------------------------------------

REASONS = [
    ("sqrt(q)**2", tu.Laplace(1), (-1, None), r"as it is written.* sqrt\(q\) is a real"),
    (
        "log(where(q == -2, q, 1))",
        tu.Laplace(1),
        None,
        r"could not be shown to be smooth near q = -2",
    ),
    ("sqrt(q)**2", tu.DiscreteLaplace(1), (-3, 0), r"shown that sqrt\(q\)"),
    ("exp(log(q))", tu.DiscreteLaplace(1), (0, None), r"shown that log\(q\)"),
    ("sin(asin(q))", tu.Laplace(1), (-2, 3), r"shown that asin\(q\)"),
    ("cosh(acosh(q))", tu.Laplace(1), (0, None), r"shown that acosh\(q\)"),
    ("exp(log(q))", tu.RoundedLaplace(10), (None, 5), r"shown that log\(q\)"),
    ("q + 0*atanh(q)", tu.Laplace(1), (0, None), r"shown that atanh\(q\)"),
    (
        "where(q > 1, sqrt(q - 3)**2, q)",
        tu.DiscreteLaplace(1),
        None,
        r"shown that where\(q > 1, sqrt\(q - 3\), 1\)",
    ),
    ("max(5 - q, 0)/max(5 - q, 0)", tu.Laplace(1), (None, 5), r"shown that 1/max\(0, 5 - q\)"),
    ("2*sin(q)/q", tu.Laplace(1), None, r"could not be shown to be smooth near q = 0"),
    ("(exp(q) - 1)/q", tu.Laplace(1), (None, 5), r"could not be shown to be smooth near q = 0"),
    ("q**2*log(q)", tu.Laplace(1), (0, None), r"could not be shown to be smooth near q = 0"),
    ("(1 - cos(q))**1.5", tu.Laplace(1), (-1, 1), r"could not be shown to be smooth near q = "),
    ("where(q < 0, q, (1 + 1e-10)*q)", tu.Laplace(1), None, r"kink at 0"),
    ("max(q, 0)/max(q, 0)", tu.Laplace(1), None, r"shown that 1/max\(0, q\)"),
    ("1/q", tu.Uniform(2), (1, None), r"is not a sum of terms"),
    ("abs(q - 3)", tu.Uniform(1), (1, 9), r"is not a sum of terms"),
    ("cos(where(q <= 100, 1, 2))", tu.Uniform(1), None, r"is not a sum of terms"),
    ("1/q", tu.Laplace(1), None, r"pole at 0"),
    ("1/q", tu.Laplace(1), (-1, None), r"pole at 0"),
    ("1/q", tu.Laplace(1), (-3, 3), r"pole at 0"),
    ("1/(q - 5)", tu.Laplace(1), (1, None), r"pole at 5"),
    ("1/(q**2 - 4)", tu.Laplace(1), (0, None), r"pole at 2"),
    ("tan(q)", tu.Laplace(1), (0, 2), r"pole"),
    ("1/q", tu.Laplace(1), (0, None), r"(pole|infinite) at (the bound )?0|at the bound"),
    ("1/q", tu.Laplace(1), (None, 0), r"(pole|infinite) at (the bound )?0|at the bound"),
    ("1/q", tu.DiscreteLaplace(1), None, r"0"),
    ("1/q", tu.DiscreteLaplace(1), (-2, 5), r"0"),
    ("log(q)", tu.DiscreteLaplace(1), (0, None), r"0"),
    ("log(q)", tu.Laplace(1), None, r"log|defined|real"),
    ("log(q)", tu.Laplace(1), (-1, None), r"log|defined|real|pole"),
    ("abs(q)", tu.Laplace(1), None, r"kink at 0"),
    ("abs(q - 3)", tu.Laplace(1), (1, None), r"kink at 3"),
    ("max(q, 2)", tu.Laplace(1), (0, 9), r"kink at 2"),
    ("where(q > 2, 2*q, q + 2)", tu.Laplace(1), None, r"kink at 2"),
    ("where(q > 5, 1, 0)", tu.Laplace(1), None, r"jump.* 5"),
    ("where(q > 5, q, 0)", tu.Laplace(1), (1, 9), r"jump.* 5"),
    (
        "where(cosh(q) != (q - 0.5)*q, q, sin(q))",
        tu.Laplace(1),
        (None, 5.5),
        r"at q = -(3\.10872|1\.03234)",
    ),
    ("where(sinh(q) == q**3, 5, q)", tu.Laplace(1), (0.5, None), r"near q = (1\.10236|6\.13536)"),
    ("cos(where(q >= 7, q, q - 1))", tu.Laplace(1), None, r"jump at 7"),
    ("cos(where(q >= 7, q, q - 7))", tu.Laplace(1), None, r"jump at 7"),
    ("sin(2*where(q >= 7, q, q - 1)) + cos(q)", tu.Laplace(1), (0, None), r"jump at 7"),
    ("where(q > 5, 1, 0)", tu.Gaussian(1), None, r"."),
    ("exp(q)", tu.Laplace(1), None, r"(outgrows|grows|faster)"),
    ("exp(2*q)", tu.Laplace(1), (0, None), r"(outgrows|grows|faster)"),
    ("exp(-q)", tu.Laplace(1), (None, 3), r"(outgrows|grows|faster)"),
    ("cosh(q)", tu.Laplace(2), None, r"(outgrows|grows|faster)"),
    ("exp(q**2)", tu.Laplace(1), None, r"(outgrows|grows|faster)"),
    ("exp(q**2)", tu.Laplace(1), (0, None), r"(outgrows|grows|faster)"),
    ("exp(n)", tu.DiscreteLaplace(1), None, r"(outgrows|grows|faster)"),
    ("exp(n**2)", tu.DiscreteLaplace(1), (0, None), r"(outgrows|grows|faster)"),
    ("exp(2*q)", tu.Staircase(1), None, r"(outgrows|grows|faster|generating|tail)"),
    ("exp(q)", tu.StudentT(5), None, r"(outgrows|grows|faster|generating|tail)"),
    ("sin(exp(q))", tu.Laplace(0.5), None, r"."),
    ("sin(exp(q))", tu.Laplace(0.75), None, r"."),
    ("sqrt(q)", tu.Laplace(1), (0, None), r"infinite slope"),
    ("q*log(q)", tu.Laplace(1), (0, None), r"could not be shown to be smooth near q = 0"),
    ("q**0.3", tu.Laplace(1), (0, 5), r"infinite slope"),
    ("sqrt(5 - q)", tu.Laplace(1), (0, 5), r"infinite slope"),
    ("log(q)", tu.Laplace(1), (0, None), r"(infinite|pole)"),
    ("q**3", tu.Moments([0, 1]), None, r"only 2 .*moments|moment"),
    ("q**5", tu.StudentT(5), None, r"moment"),
    ("q", tu.StudentT(1), None, r"moment|mean"),
    ("exp(q)", tu.Moments([0, 1, 0, 3]), None, r"moment"),
    ("log(q)", tu.Gaussian(1), (1, None), r"."),
    ("1/q", tu.Gaussian(1), (1, None), r"."),
    ("1/q", tu.Staircase(1), (1, None), r"."),
    ("sqrt(q)", tu.DiscreteGaussian(3), (1, None), r"."),
]


@pytest.mark.parametrize(("f", "noise", "domain", "reason"), REASONS, ids=str)
def test_no_unbiased_estimator(f: str, noise: tu.Noise, domain: Any, reason: str) -> None:
    refused(lambda: tu.unbiased(f, noise, domain), tu.NoUnbiasedEstimator, reason)


_NO_NUMBER = "not a (real|finite) number|could not be shown"
_NOT_COMPARED = [
    ("where(log(s) <= 1, s, 0)", tu.DiscreteLaplace(1), None),
    ("where(log(s) <= 1, s, 0)", tu.Laplace(1), None),
    ("where(sqrt(n) > s, 1, 0)", {"n": tu.DiscreteLaplace(1), "s": tu.DiscreteLaplace(2)}, None),
    ("min(1/q, 0)", tu.DiscreteLaplace(1), (-2, None)),
    ("min(0, acos(2*q))", tu.Laplace(10), (0, None)),
    (
        "min((atan(abs(q*q)) + q/(where(q > 0, q, q))), min((q - q)**2, acos(q + q)), atan(10*q))",
        tu.Laplace(10),
        (0, None),
    ),
    (
        "min(where(n != 2, n, 2), 10, acosh(where(not (s >= n) and s == n, n - 2, 1/3)"
        " * atanh(s - 7)))",
        {"s": tu.DiscreteLaplace(10), "n": tu.Laplace(0.3) + tu.Laplace(0.3) + tu.Laplace(3)},
        {"s": (4, 12), "n": (2, None)},
    ),
]


@pytest.mark.parametrize(("f", "noise", "domain"), _NOT_COMPARED)
def test_what_is_not_real_cannot_be_compared(f: str, noise: Any, domain: Any) -> None:
    """A comparison with what is not a real number has no truth value."""
    refused(lambda: tu.unbiased(f, noise, domain), tu.NoUnbiasedEstimator, _NO_NUMBER)


@pytest.mark.parametrize(
    ("f", "domain", "values"),
    [
        ("where(s > 0 and log(s) <= 1, s, 0)", None, [0, 0, 1, 2, 0, 0]),
        ("where(s > 0, max(1/s, 2), 5)", None, [5, 5, 2, 2, 2, 2]),
    ],
)
def test_what_is_not_reached_need_not_be_real(f: str, domain: Any, values: list[float]) -> None:
    """g = f − c·Δ²f, where c follows from the variance e^{−1}·2/(1 − e^{−1})² of the noise."""
    g = tu.unbiased(f, tu.DiscreteLaplace(1), domain)
    c = math.exp(-1) / (1 - math.exp(-1)) ** 2
    s = np.arange(-1, 5)
    for i in range(2 if domain else 1, 5):
        expected = values[i] - c * (values[i - 1] - 2 * values[i] + values[i + 1])
        assert math.isclose(g(float(s[i])), expected, rel_tol=1e-12)


def test_a_message_of_the_library_itself_does_not_get_out() -> None:
    """Zeros without number are no bounds, and two periods that do not fit are none."""
    with pytest.raises(tu.NoUnbiasedEstimator, match=r"was found: .* could not be shown") as e:
        tu.unbiased("log(2 + sin(q) + cos(pi*q))", tu.Laplace(1))
    assert not e.value.proved


def test_a_kink_far_out_is_found() -> None:
    f = "max(cosh(min(q - 0.5, asinh(0.5), 1e6 - q)), 25*sqrt(min(0.5, max(q, 1/3))))"
    refused(
        lambda: tu.unbiased(f, tu.Laplace(1), (0.5, None)),
        tu.NoUnbiasedEstimator,
        r"kink at 1e\+06",
    )


def test_a_value_beyond_the_doubles_is_refused_in_words() -> None:
    f = "max(min(abs(q + 1), q + 1), sinh(where(q == -1, 1e15**1.5, (q + 1)/q)))"
    refused(lambda: tu.unbiased(f, tu.Laplace(0.3)), tu.NoUnbiasedEstimator, r".")


def test_several_statistics_name_theirs() -> None:
    noise = {"s": tu.Laplace(1), "n": tu.Laplace(2)}
    refused(lambda: tu.unbiased("s/n", noise), tu.NoUnbiasedEstimator, r"pole|zero|n = 0")
    refused(lambda: tu.unbiased("s + abs(n)", noise), tu.NoUnbiasedEstimator, r"kink")
    refused(
        lambda: tu.unbiased("log(n + s)", noise, {"n": (1, None)}), tu.NoUnbiasedEstimator, r"."
    )


def test_seven_cells_are_refused() -> None:
    names = [f"n{i}" for i in range(7)]
    noise = dict.fromkeys(names, tu.Laplace(1))
    domain = dict.fromkeys(names, (1, None))
    refused(
        lambda: tu.unbiased(f"1/({'+'.join(names)})", noise, domain), tu.TrueupError, r"6|cells"
    )
    product = tu.unbiased("*".join(names), noise)  # a product of seven needs no joint operator
    assert math.isfinite(product(**dict.fromkeys(names, 2.0)))


@pytest.mark.parametrize(
    ("f", "domain"),
    [
        ("1/(1 + n0**2 + n1**2 + n2**2 + n3**2 + n4**2 + n5**2 + n6**2)", None),
        ("(n0 + n1*n2)*(n2 + n3*n4)*(n4 + n5*n6)", (0, None)),
    ],
)
def test_seven_cells_are_refused_if_curved_or_bounded(f: str, domain: Any) -> None:
    names = [f"n{i}" for i in range(7)]
    noise = dict.fromkeys(names, tu.Laplace(0.1))
    known = None if domain is None else dict.fromkeys(names, domain)
    refused(lambda: tu.unbiased(f, noise, known), tu.TrueupError, r"7 noisy cells in one")


def test_many_jumps_are_refused() -> None:
    f = " + ".join(f"where(a > {k}*b, s**2, s)" for k in range(2, 9))  # 2⁷ combinations
    noise, domain = dict.fromkeys("sab", tu.Laplace(0.1)), dict.fromkeys("sab", (0, None))
    refused(lambda: tu.unbiased(f, noise, domain), tu.NoUnbiasedEstimator, r"could not be shown")


def test_six_cells_are_served() -> None:
    names = [f"n{i}" for i in range(6)]
    noise, domain = dict.fromkeys(names, tu.DiscreteLaplace(1)), dict.fromkeys(names, (1, None))
    est = tu.unbiased(f"1/({'+'.join(names)})", noise, domain)
    assert close_to_plug_in(est(**dict.fromkeys(names, 100)), 1 / 600)


def close_to_plug_in(value: float, plain: float) -> bool:
    """Return whether the estimate is near f(x), as it is far from the bounds."""
    return abs(value / plain - 1) < 1e-2


# -- allowed after all -------------------------------------------------------------------

ALLOWED = [
    ("sin(exp(q))", tu.Laplace(0.25), None),
    ("exp(q)", tu.Laplace(1), (None, 3)),
    ("exp(5*q)", tu.Laplace(1), (0, 2)),
    ("exp(-9*q)", tu.Laplace(1), (0, None)),
    ("exp(-q**2)", tu.Laplace(3), None),
    ("abs(q)", tu.Laplace(1), (0, None)),
    ("abs(q)", tu.DiscreteLaplace(1), None),
    ("sqrt(n)", tu.DiscreteLaplace(1), (0, None)),
    ("1/n", tu.DiscreteLaplace(1), (1, None)),
    ("where(n > 5, 1, 0)", tu.DiscreteLaplace(1), None),
    ("where(q > 5, 1, 0)", tu.Laplace(1), (6, None)),
    ("where(q > 5, 1, 0)", tu.Laplace(1), (None, 5)),
    ("q**2/q", tu.Laplace(1), None),
    ("(q**2 - 1)/(q - 1)", tu.Laplace(1), None),
    ("sin(q)/q", tu.Laplace(1), (1, None)),
    ("3", tu.Laplace(1), None),
]


@pytest.mark.parametrize(("f", "noise", "domain"), ALLOWED, ids=str)
def test_what_looks_bad_and_is_not(f: str, noise: tu.Noise, domain: Any) -> None:
    assert math.isfinite(tu.unbiased(f, noise, domain)(2.0))


# -- infinite variance -------------------------------------------------------------------

INFINITE = [
    ("exp(q/2)", tu.Laplace(1), None, oracle.laplace(1), 0.7, 1.0),
    ("exp(-0.8*q)", tu.Laplace(1), None, oracle.laplace(1), 0.7, 1.0),
    ("cosh(0.3*q)", tu.Laplace(2), (0, None), oracle.laplace(2), 1.5, 1.0),
    ("exp(0.7*n)", tu.DiscreteLaplace(1), None, oracle.discrete_laplace(1), 2, 1.0),
    ("q**3", tu.StudentT(5), None, oracle.student_t(5), 1.2, math.inf),
    ("q**2", tu.StudentT(4), None, oracle.student_t(4), 1.2, math.inf),
    ("q", tu.StudentT(2), None, oracle.student_t(2), 1.2, math.inf),
    ("exp(0.6*q)", tu.Staircase(1), None, oracle.staircase(1), 0.3, 1.0),
]


@pytest.mark.parametrize(
    ("f", "noise", "domain", "law", "q", "feature"),
    INFINITE,
    ids=lambda v: "" if isinstance(v, oracle.Law) else str(v),
)
def test_infinite_variance(
    f: str, noise: tu.Noise, domain: Any, law: oracle.Law, q: float, feature: float
) -> None:
    est = tu.unbiased(f, noise, domain)
    expected = float(truth(f, q=q, n=q))
    bounds = (0.0,) if domain else ()
    mean = expect(est, Axis(law, q, bounds, feature))
    assert abs(mean - expected) <= 1e-9 * max(1, abs(expected))
    refused(lambda: est.variance(q), tu.InfiniteVariance, r"varian")
    refused(lambda: est.stderr(q), tu.InfiniteVariance, r"varian")
    refused(lambda: est.variance_formula, tu.InfiniteVariance, r"varian")
    assert est.sd(q) == math.inf
    assert "infinite" in est.explain()


@pytest.mark.parametrize("p", ["1.5", "1.2", "(3/2)"])
def test_infinite_variance_of_powers_from_zero(p: str) -> None:
    est = tu.unbiased(f"q**{p}", tu.Laplace(1), (0, None))
    assert est.sd(2.0) == math.inf
    refused(lambda: est.variance(2.0), tu.InfiniteVariance, r"varian")


def test_infinite_variance_of_two_statistics() -> None:
    est = tu.unbiased("s*exp(0.6*n)", {"s": tu.Laplace(1), "n": tu.Laplace(1)})
    axes = Axis(oracle.laplace(1), 2.0, feature=9.0), Axis(oracle.laplace(1), 0.5, feature=2.0)
    assert abs(expect(lambda s, n: est(s=s, n=n), *axes) - 2 * math.exp(0.3)) < 1e-9
    assert est.sd(s=2.0, n=0.5) == math.inf
    refused(lambda: est.variance(s=2.0, n=0.5), tu.InfiniteVariance, r"varian")


def test_finite_variance_just_beyond() -> None:
    assert math.isfinite(tu.unbiased("q**1.6", tu.Laplace(1), (0, None)).sd(2.0))
    assert math.isfinite(tu.unbiased("exp(0.49*q)", tu.Laplace(1)).sd(0.0))
    assert math.isfinite(tu.unbiased("q**2", tu.StudentT(5)).sd(0.0))


# -- bad input ---------------------------------------------------------------------------

BAD_SCALES = [0, -1, -0.5, math.nan, math.inf, -math.inf, "2", "two", None, [1], 1j]
SCALED = [tu.Laplace, tu.DiscreteLaplace, tu.Gaussian, tu.DiscreteGaussian, tu.Uniform, tu.StudentT]


@pytest.mark.parametrize("scale", BAD_SCALES, ids=repr)
@pytest.mark.parametrize("family", [*SCALED, tu.Staircase], ids=lambda c: c.__name__)
def test_bad_scales(family: Any, scale: Any) -> None:
    refused(lambda: family(scale), tu.TrueupError, r".")


laplace, whole = tu.Laplace(1), tu.DiscreteLaplace(1)
two = {"s": laplace, "n": whole}
BAD_CALLS: dict[str, Callable[[], Any]] = {
    "low above high": lambda: tu.unbiased("q", laplace, (3, 1)),
    "low is nan": lambda: tu.unbiased("q", laplace, (math.nan, 1)),
    "low is text": lambda: tu.unbiased("q", laplace, ("a", 1)),
    "low is +inf": lambda: tu.unbiased("q", laplace, (math.inf, None)),
    "domain of three": lambda: tu.unbiased("q", laplace, (1, 2, 3)),
    "domain is a number": lambda: tu.unbiased("q", laplace, 3),
    "domain is text": lambda: tu.unbiased("q", laplace, "q > 1"),
    "no integer": lambda: tu.unbiased("n", whole, (1.2, 1.8)),
    "Integers(1.5)": lambda: tu.Integers(1.5, 3),
    "domain of an unknown name": lambda: tu.unbiased("q", laplace, {"m": (1, None)}),
    "unknown name": lambda: tu.unbiased("s/m", two),
    "two names, one noise": lambda: tu.unbiased("s/n", laplace),
    "domain without names": lambda: tu.unbiased("s*n", two, (1, None)),
    "noise is a number": lambda: tu.unbiased("q", 2),
    "noise is a class": lambda: tu.unbiased("q", tu.Laplace),
    "noise is None": lambda: tu.unbiased("q", None),
    "noise is empty": lambda: tu.unbiased("q", {}),
    "noise in a list": lambda: tu.unbiased("q", [laplace]),
    "formula is empty": lambda: tu.unbiased("", laplace),
    "formula is None": lambda: tu.unbiased(None, laplace),
    "formula is bytes": lambda: tu.unbiased(b"q", laplace),
    "formula is nan": lambda: tu.unbiased(math.nan, laplace),
    "function without derivatives": lambda: tu.unbiased(lambda q: q, laplace),
    "one derivative only": lambda: tu.unbiased(lambda q: q, laplace, derivatives=(np.ones_like,)),
    "derivatives of a formula": lambda: tu.unbiased("q", laplace, derivatives=(abs, abs)),
    "derivatives are text": lambda: tu.unbiased(abs, laplace, derivatives="ab"),
    "function under Gaussian": lambda: tu.unbiased(lambda q: q, tu.Gaussian(1)),
    "table under Laplace": lambda: tu.unbiased({0: 1, 1: 2}, laplace),
    "table with a gap": lambda: tu.unbiased({0: 1, 2: 2}, whole),
    "table with nan": lambda: tu.unbiased({0: 1, 1: math.nan}, whole),
    "table too short": lambda: tu.unbiased({0: 1, 1: 2}, whole, (0, 5)),
    "empty table": lambda: tu.unbiased({}, whole),
    "list": lambda: tu.unbiased([1, 2, 3], whole, (0, 2)),
    "complex formula": lambda: tu.unbiased("sqrt(-1)*q", laplace),
    "non-integer release": lambda: tu.unbiased("n", whole)(1.5),
    "non-integers": lambda: tu.unbiased("n", whole)([1, 2.5]),
    "non-integer, bounded": lambda: tu.unbiased("1/n", whole, (1, 4))(0.5),
    "non-integer variance": lambda: tu.unbiased("n", whole).variance(0.5),
    "non-integer truth": lambda: tu.unbiased("n", whole).sd(0.5),
    "non-integer of two": lambda: tu.unbiased("s*n", two)(s=0.5, n=0.5),
    "text value": lambda: tu.unbiased("q", laplace)("4"),
    "None value": lambda: tu.unbiased("q", laplace)(None),
    "complex value": lambda: tu.unbiased("q", laplace)(1j),
    "list of text": lambda: tu.unbiased("q", laplace)(["a"]),
    "ragged list": lambda: tu.unbiased("q", laplace)([[1], [1, 2]]),
    "no value": lambda: tu.unbiased("q", laplace)(),
    "missing statistic": lambda: tu.unbiased("s*n", two)(s=1.0),
    "unknown statistic": lambda: tu.unbiased("s*n", two)(s=1.0, n=1, m=2),
    "wrong name": lambda: tu.unbiased("q", laplace)(x=1.0),
    "positional for two": lambda: tu.unbiased("s*n", two)(1.0, 2),
    "one positional for two": lambda: tu.unbiased("s*n", two)(1.0),
    "shapes": lambda: tu.unbiased("s*n", two)(s=[1.0, 2.0], n=[1, 2, 3]),
    "shapes at the truth": lambda: tu.unbiased("s*n", two).sd(s=[1.0, 2.0], n=[1, 2, 3]),
    "level 0": lambda: tu.unbiased("q", laplace).interval(1.0, level=0),
    "level 1": lambda: tu.unbiased("q", laplace).interval(1.0, level=1),
    "level 95": lambda: tu.unbiased("q", laplace).interval(1.0, level=95),
    "level nan": lambda: tu.unbiased("q", laplace).interval(1.0, level=math.nan),
    "JSON that is none": lambda: tu.Estimator.from_json("{"),
    "JSON of something": lambda: tu.Estimator.from_json("[1]"),
    "JSON without noise": lambda: tu.Estimator.from_json('{"formula": "q"}'),
    "JSON of a function": lambda: tu.unbiased(abs, whole).to_json(),
    "moments: none": lambda: tu.Moments([]),
    "moments: nan": lambda: tu.Moments([math.nan]),
    "moments: impossible": lambda: tu.Moments([2, 1]),
    "scipy class": lambda: tu.Noise.from_scipy(scipy.stats.norm),
    "scipy nothing": lambda: tu.Noise.from_scipy(3),
    "gamma above 1": lambda: tu.Staircase(1, 1, 1.5),
    "sensitivity 0": lambda: tu.Staircase(1, 0),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name: str) -> None:
    refused(BAD_CALLS[name], tu.TrueupError, r".")


@pytest.mark.parametrize("extension", [1, 0, -3, 2.5, "x", None, math.nan, True, [3]], ids=repr)
def test_bad_extensions(extension: Any) -> None:
    make = lambda: tu.unbiased("1/q", laplace, (1, None), extension=extension)  # noqa: E731
    refused(make, tu.TrueupError, r"extension|degree")


def test_an_extension_needs_laplace_noise() -> None:
    refused(lambda: tu.unbiased("1/n", whole, (1, None), extension=3), tu.TrueupError, r"Laplace")


def raising(n: Any) -> float:
    raise KeyError(n)


@pytest.mark.parametrize(
    "f",
    [
        lambda n: "x",
        lambda n: "1.5",
        lambda n: None,
        lambda n: 1j,
        lambda n: n + 1j,
        lambda n: np.zeros(3),
        lambda n: [1, 2],
        raising,
        lambda n: n.no_such_name,
        lambda n: 1 / 0,
        lambda n: 10**400,
    ],
)
def test_a_python_function_without_numbers_is_refused(f: Any) -> None:
    refused(
        lambda: tu.unbiased(f, tu.DiscreteLaplace(2), (0, None))(4), tu.TrueupError, "at 0|number"
    )


def test_a_python_function_that_divides_by_zero_in_the_domain_has_no_value_there() -> None:
    refused(
        lambda: tu.unbiased(lambda n: 1 / n, tu.DiscreteLaplace(2), (0, None)),
        tu.NoUnbiasedEstimator,
        "not a finite number at n = 0",
    )
    est = tu.unbiased(lambda n: 1 / n, tu.DiscreteLaplace(2), (1, None))
    assert est(4) == pytest.approx(
        tu.unbiased("1/n", tu.DiscreteLaplace(2), (1, None))(4), rel=1e-12
    )


@pytest.mark.parametrize("noise", [tu.Laplace(1), tu.DiscreteLaplace(1), tu.Gaussian(1)], ids=repr)
@pytest.mark.parametrize("f", ["acosh(min(q - 100, 1/3))", "q*log(min(q - 100, -1/3))"])
def test_a_number_that_is_not_real_behind_a_minimum_is_refused(f: str, noise: tu.Noise) -> None:
    """On q ≥ 101 the minimum is the constant, and f is a real number nowhere."""
    with pytest.raises(tu.NoUnbiasedEstimator, match="not a finite real number"):
        tu.unbiased(f, noise, (101, None))


def test_between_integers_nothing_is_proved() -> None:
    """Uniform(0.3) on an integer shows it exactly: f(round(x)) is unbiased for every f."""
    with pytest.raises(tu.NoUnbiasedEstimator, match="was found") as told:
        tu.unbiased("where(q == -1, 2, q)", tu.Uniform(0.3), tu.Integers(None, -1))
    assert not told.value.proved


def test_an_integer_taken_for_a_real_number_proves_nothing() -> None:
    """A jump at 0.1 is not on the way of an integer; every function of one has an estimator."""
    noises = {"a": tu.Laplace(0.3), "b": tu.Laplace(1)}
    f = "where(b >= 0.1, a**2, exp(-a**2*b**2))"
    with pytest.raises(tu.NoUnbiasedEstimator, match="was found") as told:
        tu.unbiased(f, noises, {"b": tu.Integers(0, None)})
    assert not told.value.proved


@pytest.mark.parametrize("f", ["1/sin(q - 100)", "1/tan(2*q + 500)", "log(1 - cos(q - 77))"])
def test_poles_between_all_integers_cannot_be_excluded(f):
    with pytest.raises(tu.NoUnbiasedEstimator, match="could not be shown to be smooth"):
        tu.unbiased(f, tu.DiscreteLaplace(2))


def test_a_pole_in_one_case_is_called_a_pole():
    """1/s is there for n > 1 only, and s elsewhere has nothing to cancel."""
    noise = {"s": tu.Laplace(1), "n": tu.DiscreteLaplace(1)}
    with pytest.raises(tu.NoUnbiasedEstimator, match="pole at 0") as caught:
        tu.unbiased("where(n > 1, 1/s, s)", noise, {"n": (0, 9)})
    assert "limit" not in caught.value.message


def test_a_pole_at_integers_far_from_all_bounds_is_not_overlooked():
    """1000² + 1000² is 2000000: f is infinite at one point of many that no sample would meet."""
    noise, domain = dict.fromkeys("ab", tu.DiscreteLaplace(1)), dict.fromkeys("ab", (1, None))
    for f in ("1/(a**2 + b**2 - 2000000)", "1/(a**2 + b**2 - 2002001)"):
        refused(
            lambda f=f: tu.unbiased(f, noise, domain), tu.NoUnbiasedEstimator, r"smooth near|a = "
        )


def test_denominators_without_an_integer_zero_are_refused_too() -> None:
    noise = dict.fromkeys("ab", tu.DiscreteLaplace(1))
    f = "1/(2*a - 2*b + 1)"
    refused(lambda: tu.unbiased(f, noise), tu.NoUnbiasedEstimator, r"could not be shown")
