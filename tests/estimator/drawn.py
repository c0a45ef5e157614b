"""What the tests draw: formulas with their truth, scales, bounds; and the one check they share.

A :class:`Formula` is text for the library and, read a second time by Python with numpy's functions,
the truth it is compared with.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import trueup as tu
from oracle import Axis, Law, expect, moments

TOLERANCE = 1e-9
"""|E g − f| / max(1, |f|) and |E V̂ − Var g| / max(1, Var g) must not exceed it."""

SHARP = {"rel_tol": 1e-8, "abs_tol": 1e-12}
"""The same for small numbers: relative to themselves."""

RAN: Counter[str] = Counter()
"""How many drawn cases each family has run, counted where they run."""

_WORDS = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "where": np.where,
    "max": lambda *a: np.maximum.reduce(np.broadcast_arrays(*a)),
    "min": lambda *a: np.minimum.reduce(np.broadcast_arrays(*a)),
    "pi": np.pi,
}


def truth(text: str, **values: Any) -> Any:
    """Return the formula's value, read by Python itself."""
    names = {**_WORDS, **{k: np.asarray(v, float) for k, v in values.items()}}
    with np.errstate(all="ignore"):
        return eval(text, {"__builtins__": {}}, names)  # noqa: S307 (the tests' own text)


@dataclasses.dataclass(frozen=True)
class Formula:
    """A formula in q and what the oracle must know about it."""

    text: str
    kinks: tuple[float, ...] = ()
    feature: float = 1.0
    left: float = 0.0
    """f grows like e^{left·|q|} towards −∞ (negative: it decays)."""
    right: float = 0.0

    def __call__(self, q: Any) -> Any:
        return truth(self.text, q=q)

    def finite_variance(self, b: float, low: float | None, high: float | None) -> bool:
        """Whether g² e^{−|x|/b} is integrable: 2·growth·b < 1 on every side without a bound."""
        sides = [self.left] * (low is None) + [self.right] * (high is None)
        return all(2 * c * float(b) < 1 for c in sides)


# -- numbers -----------------------------------------------------------------------------


def decimals(low: float, high: float) -> st.SearchStrategy[float]:
    """Return short decimals and full floats between the bounds."""
    short = st.integers(math.ceil(low * 100), math.floor(high * 100)).map(lambda k: k / 100)
    full = st.floats(low, high).map(lambda v: v if abs(v) > 1e-6 else 0.0)
    return st.one_of(short, full)


def scales(low: float = 0.25, high: float = 4.0) -> st.SearchStrategy[Any]:
    """Return noise scales: whole, rational, float."""
    exact = [
        v for v in (Fraction(1, 3), Fraction(1, 2), 1, Fraction(5, 3), 2, 3) if low <= v <= high
    ]
    return st.one_of(st.sampled_from(exact), decimals(low, high))


def word(value: Any) -> str:
    """Return a number as it may stand inside a formula."""
    if isinstance(value, Fraction):
        return f"({value.numerator}/{value.denominator})"
    return f"({value!r})" if value < 0 else repr(value)


def signs() -> st.SearchStrategy[int]:
    """Return 1 or −1."""
    return st.sampled_from([1, -1])


# -- formulas on the line ----------------------------------------------------------------


@st.composite
def polynomials(draw: Any, least: int = 0, most: int = 5) -> Formula:
    """Draw a polynomial with its leading coefficient away from 0."""
    degree = draw(st.integers(least, most))
    inner = draw(st.lists(decimals(-3, 3), min_size=degree, max_size=degree))
    lead = draw(signs()) * draw(decimals(0.5, 2))
    terms = [f"{word(c)}*q**{k}" if k else word(c) for k, c in enumerate([*inner, lead])]
    return Formula(" + ".join(terms))


@st.composite
def waves(draw: Any, fastest: float = 3.0, powers: int = 1) -> Formula:
    """Draw q^p sin(uq + a) or the cosine."""
    u, a = draw(decimals(0.1, fastest)), draw(st.sampled_from([0, 0, 1, -0.5]))
    power = draw(st.integers(0, powers))
    wave = f"{draw(st.sampled_from(['sin', 'cos']))}({word(u)}*q + {word(a)})"
    return Formula(f"q**{power}*{wave}" if power else wave)


@st.composite
def exponentials(draw: Any, b: float, fractions: Sequence[float], powers: int = 2) -> Formula:
    """Draw q^p e^{cq} (times a wave) with |c|b among the fractions."""
    c = draw(st.sampled_from(fractions)) / float(b) * draw(signs())
    power = draw(st.integers(0, powers))
    factor = draw(st.sampled_from(["", "*cos(q)", "*sin(q/2)"]))
    return Formula(f"q**{power}*exp({word(c)}*q){factor}", left=-c, right=c)


@st.composite
def piecewise(draw: Any) -> Formula:
    """Draw a function in C¹ whose second derivative jumps at a."""
    a = draw(st.one_of(st.integers(-3, 3), st.sampled_from([Fraction(1, 2), Fraction(-7, 4)])))
    w, v = word(a), word(draw(decimals(-2, 2)))
    text = draw(
        st.sampled_from(
            [
                f"where(q < {w}, q**2, 2*{w}*q - {w}**2)",
                f"where(q >= {w}, {v}*(q - {w})**2, 0)",
                f"where(q > {w}, {v}*(q - {w})**3, (q - {w})**2) + q",
                f"abs(q - {w})**3",
                f"max(q - {w}, 0)**2",
                f"min(q, {w})**3 - 3*{w}**2*min(q, {w}) - 2*max(q - {w}, 0)**2",
                f"(q - {w})*abs(q - {w}) + {v}*q",
                f"where(q <= {w}, exp(q - {w}) - 1, sin(q - {w}))",
            ]
        )
    )
    return Formula(text, kinks=(float(a),))


@st.composite
def huber(draw: Any) -> Formula:
    """Draw Huber's function, with two kinks."""
    a = draw(st.integers(1, 4))
    return Formula(f"where(abs(q) < {a}, q**2, 2*{a}*abs(q) - {a}**2)", kinks=(-a, a))


@st.composite
def smooth(draw: Any) -> Formula:
    """Draw an analytic function that is no exponential polynomial and has no real pole."""
    a, c = word(draw(decimals(1, 3))), word(draw(decimals(0.2, 1.2)))
    text = draw(
        st.sampled_from(
            [
                f"1/(q**2 + {a})",
                f"q/(q**2 + {a})",
                f"(q**2 - {c})/(q**4 + {a})",
                f"exp(-q**2/{a})",
                f"q*exp(-(q - {c})**2)",
                f"log(q**2 + {a})",
                f"tanh({c}*q)",
                f"atan({c}*q)",
                f"sqrt(q**2 + {a})",
                f"asinh(q) + {c}*q",
                f"1/(1 + exp(-{c}*q))",
                f"1/cosh({c}*q)",
                f"sin(q)/(q**2 + {a})",
                f"log(1 + exp({c}*q))",
            ]
        )
    )
    return Formula(text, feature=0.6)


# -- formulas on the right of a positive bound -------------------------------------------


@st.composite
def positive(draw: Any, bounded: bool = False) -> Formula:
    """Draw a function that is smooth for q > 0; fast growth only if the domain is bounded."""
    a, u = word(draw(decimals(0.5, 3))), word(draw(decimals(0.5, 3)))
    texts = [
        "1/q",
        "1/q**2",
        "log(q)",
        "sqrt(q)",
        "q**1.7",
        "q**(-0.5)",
        "q*log(q)",
        "log(q)**2",
        f"1/(q + {a})",
        f"q/(q + {a})",
        f"{a}/q - {u}*log(q)",
        f"sin({u}*q)/q",
        "1/(q*(q + 1))",
        "abs(q)",
        "max(q, 0)**1.5",
        "exp(-2*q)",
        f"exp(-{a}*q)*log(q)",
        "atan(q)",
        f"where(q > -1, {a}*q**2, 5)",
    ]
    fast = ["exp(q)", "exp(q**2/9)", "exp(-3*q) + exp(q/2)", "q**4*log(q)", f"cosh({a}*q)"]
    text = draw(st.sampled_from(texts + fast * bounded))
    return Formula(text)


def mirrored(formula: Formula) -> Formula:
    """Return f(−q)."""
    return Formula(re.sub(r"\bq\b", "(-q)", formula.text))


# -- the check ---------------------------------------------------------------------------


def close(actual: float, expected: float, tolerance: float = TOLERANCE) -> bool:
    """Return whether |actual − expected| ≤ tolerance · max(1, |expected|)."""
    return abs(actual - expected) <= tolerance * max(1.0, abs(expected))


def called(method: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return the method as a function of arrays in the order of the names."""
    if len(names) == 1:
        return method
    return lambda *x: method(**dict(zip(names, x, strict=True)))


@dataclasses.dataclass(frozen=True)
class Check:
    """An estimator before the oracle: g, V̂, and what it says about itself at true values."""

    est: tu.Estimator
    names: tuple[str, ...] = ("q",)
    order: int = 16

    def unbiased(self, f: float, *axes: Axis, finite: bool = True) -> None:
        """Assert E g = f, E V̂ = Var g, and that the estimator knows both."""
        q = [a.q for a in axes]
        g = called(self.est, self.names)
        if finite:
            mean, variance = moments(g, *axes, order=self.order)
            spread = expect(called(self.est.variance, self.names), *axes, order=self.order)
            assert close(spread, variance), f"E V̂ = {spread!r}, Var g = {variance!r}"
            assert math.isclose(spread, variance, **SHARP), (spread, variance)
            self._knows(q, mean, math.sqrt(variance), float(f))
        else:
            mean = expect(g, *axes, order=self.order)
            self._knows(q, mean, math.inf, float(f))
            with pytest.raises(tu.InfiniteVariance, match=r"(?m)^Hint: "):
                called(self.est.variance, self.names)(*q)
        assert close(mean, f), f"E g = {mean!r}, f = {f!r}"
        assert math.isclose(mean, f, **SHARP), (mean, f)

    def outside(self, f: float, *axes: Axis) -> None:
        """Assert that the estimator knows its mean and sd where its bound is wrong."""
        q = [a.q for a in axes]
        mean, variance = moments(called(self.est, self.names), *axes, order=self.order)
        self._knows(q, mean, math.sqrt(variance), float(f))

    def _knows(self, q: Sequence[float], mean: float, sd: float, f: float) -> None:
        said = called(self.est.expectation, self.names)(*q)
        assert isinstance(said, float)
        assert close(said, mean), f"expectation says {said!r}, it is {mean!r}"
        if math.isfinite(f):
            bias = called(self.est.bias, self.names)(*q)
            assert abs(bias - (mean - f)) <= TOLERANCE * max(1.0, abs(f), abs(mean)), bias
        said = called(self.est.sd, self.names)(*q)
        assert said == sd or close(said, sd), f"sd says {said!r}, it is {sd!r}"


def axis(law: Law, q: float, f: Formula, *bounds: float | None, singular: bool = False) -> Axis:
    """Return the axis of one statistic under the formula."""
    inner = tuple(float(b) for b in bounds if b is not None)
    return Axis(law, float(q), (*inner, *f.kinks), f.feature, singular=singular)
