"""Cases drawn from a grammar: formulas, noises and domains, pure functions of a seed.

A :class:`Case` is text and numbers only::

    Case(
        formula="where(q > 1, 1/q, 7)",             # what unbiased() is given
        noises={"q": "Laplace(2)"},                 # statistic: noise, written as its repr is
        domain={"q": (1, None)},                    # (low, high) or (low, high, "integers");
                                                    # "s + n": (1, None) ties two of them
        seed=3000017,                               # draw(seed) is this very case
    )

``noises`` are expressions in the names of ``trueup`` (and ``stats``, scipy's). ``case.noise()``
evaluates them, ``case.bounds()`` is the domain as ``unbiased`` takes it, ``case.build()`` calls
``unbiased``, ``case.published()`` and ``case.truths()`` are values to ask the estimator at: beside,
at and far from everything special. ``cases(seed, count)`` yields cases, ``draw(seed)`` makes one.

What is special about a case is planted on purpose: every statistic has an *anchor*, a number where
its kinks, guards, poles and single values sit, and the bounds of its domain are drawn on, beside
and far from it. A third of the cases are one such feature alone, the rest combine them at random.
Not every case has an answer: whether it has is for the library to say, in words.
"""

from __future__ import annotations

import dataclasses
import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import scipy.stats

import trueup as tu

_CASES_PER_SEED = 10_000_000  # more than any run draws, so that two seeds share no case

TIES = 0.15
"""The part of the cases in several statistics that have a condition between two of them."""

COMPARED = 0.2
"""The part of the conditions in several statistics that compare two of them."""

Number = int | float
Bounds = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Case:
    """One question to the library."""

    formula: str
    noises: dict[str, str]
    domain: dict[str, Bounds]
    seed: int

    def noise(self) -> dict[str, tu.Noise]:
        """Return the noises as objects."""
        names = {name: getattr(tu, name) for name in tu.__all__} | {"stats": scipy.stats}
        return {s: eval(text, {"__builtins__": {}}, names) for s, text in self.noises.items()}  # noqa: S307 (the tests' own text)

    def bounds(self) -> dict[str, Any]:
        """Return the domain as ``unbiased`` takes it."""
        return {
            name: tu.Integers(*bounds[:2]) if "integers" in bounds[2:] else bounds
            for name, bounds in self.domain.items()
        }

    def build(self) -> tu.Estimator:
        """Return the estimator, or raise what the library says instead."""
        return tu.unbiased(self.formula, self.noise(), self.bounds())

    def published(self) -> list[dict[str, float]]:
        """Return published values: at, beside and far from what is special."""
        rng = random.Random(self.seed + 1)
        return [{name: _near(rng, self, name) for name in self.noises} for _ in range(6)]

    def truths(self) -> list[dict[str, float]]:
        """Return true values inside the domain, its ends among them."""
        rng = random.Random(self.seed + 2)
        return [{name: _inside(rng, self, name) for name in self.noises} for _ in range(4)]


def cases(seed: int, count: int) -> Iterator[Case]:
    """Yield ``count`` cases; the same for the same seed."""
    for index in range(count):
        yield draw(seed * _CASES_PER_SEED + index)


def draw(seed: int) -> Case:
    """Return the case of a seed."""
    rng = random.Random(seed)
    names = rng.choice((("q",), ("q",), ("q",), ("n",), ("s", "n"), ("a", "b", "c")))
    plan = {name: _anchor(rng) for name in names}
    writer = _Writer(rng, plan)
    alone = rng.random() < 1 / 3
    formula = writer.feature(writer.name()) if alone else writer.value(rng.choice((2, 3, 4)))
    used = [name for name in names if re.search(rf"\b{name}\b", formula)] or names[:1]
    if len(used) > 1 and rng.random() < TIES:
        return _tied(rng, formula, {name: plan[name] for name in used}, seed)
    noises = {name: _noise(rng) for name in used}
    domain = {name: _domain(rng, plan[name]) for name in used}
    return Case(formula, noises, domain, seed)


# -- numbers ---------------------------------------------------------------------------------------


def _anchor(rng: random.Random) -> Number:
    """Return where a statistic's features sit: mostly a small whole number."""
    return rng.choice((0, 0, 0, 1, 1, 2, 3, -1, -2, 0.5, 0.1, 7, 100))


def _constant(rng: random.Random) -> str:
    """Return a constant as a formula writes it."""
    common = ("0", "1", "2", "3", "5", "10", "0.5", "1/3", "0.1", "1.5", "100", "pi")
    rare = ("1e-3", "1e6", "1e-12", "1e15", "7/4", "-1", "-2.5")
    return rng.choice(common if rng.random() < 0.85 else rare)


def _written(number: Number) -> str:
    return f"({number})" if number < 0 else str(number)


# -- formulas --------------------------------------------------------------------------------------

_FUNCTIONS = (
    *("abs", "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "abs", "log", "sqrt", "exp"),
)
_COMPARISONS = ("<", "<=", ">", ">=", "<", "<=", ">", ">=", "==", "!=")


class _Writer:
    """Writes formulas in some statistics, with features at their anchors."""

    def __init__(self, rng: random.Random, anchors: dict[str, Number]) -> None:
        self.rng, self.anchors = rng, anchors

    def name(self) -> str:
        return self.rng.choice(tuple(self.anchors))

    def at(self, name: str) -> str:
        """Return a statistic's anchor."""
        return _written(self.anchors[name])

    def shifted(self, name: str) -> str:
        """Return the distance of a statistic from its anchor."""
        return f"({name} - {self.at(name)})" if self.anchors[name] else name

    def value(self, depth: int) -> str:
        """Return any formula, at most so deep."""
        if depth <= 0 or self.rng.random() < 0.12:
            return self.leaf()
        return self.rng.choice(self.productions())(depth - 1)

    def leaf(self) -> str:
        if self.rng.random() < 0.3:
            return _written_constant(_constant(self.rng))
        return self.name() if self.rng.random() < 0.7 else self.shifted(self.name())

    def productions(self) -> tuple[Callable[[int], str], ...]:
        """Return the ways to make a value; what is listed twice is drawn twice as often."""
        return (
            *(self.arithmetic, self.arithmetic, self.arithmetic, self.power, self.call, self.call),
            *(self.extremum, self.extremum, self.choice, self.choice, self.quotient),
            *(lambda _: self.feature(self.name()), lambda _: self.feature(self.name())),
        )

    def arithmetic(self, depth: int) -> str:
        sign = self.rng.choice(("+", "-", "*", "*"))
        return f"({self.value(depth)} {sign} {self.value(depth)})"

    def quotient(self, depth: int) -> str:
        return f"{self.value(depth)} / ({self.value(depth)})"

    def power(self, depth: int) -> str:
        exponent = self.rng.choice(("2", "3", "4", "0.5", "1.5", "-1", "-2", "(1/3)", "0.1", "9"))
        return f"({self.value(depth)})**{exponent}"

    def call(self, depth: int) -> str:
        return f"{self.rng.choice(_FUNCTIONS)}({self.value(depth)})"

    def extremum(self, depth: int) -> str:
        count = self.rng.choice((2, 2, 2, 3))
        values = ", ".join(self.value(depth) for _ in range(count))
        return f"{self.rng.choice(('min', 'max'))}({values})"

    def choice(self, depth: int) -> str:
        return f"where({self.condition(depth)}, {self.value(depth)}, {self.value(depth)})"

    def condition(self, depth: int) -> str:
        """Return a condition: mostly one comparison at an anchor."""
        kind = self.rng.random()
        if len(self.anchors) > 1 and kind < COMPARED:
            one, two = self.rng.sample(list(self.anchors), 2)
            return f"{one} {self.rng.choice(_COMPARISONS)} {two}"
        if kind < 0.6:
            name = self.name()
            return f"{name} {self.rng.choice(_COMPARISONS)} {self.at(name)}"
        if kind < 0.8:
            sign = self.rng.choice(_COMPARISONS)
            return f"{self.value(depth - 1)} {sign} {self.value(depth - 1)}"
        if kind < 0.9:
            return f"not ({self.condition(depth - 1)})"
        word = self.rng.choice(("and", "or"))
        return f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})"

    def feature(self, name: str) -> str:
        """Return one thing that deserves care, at the anchor."""
        template = self.rng.choice(_FEATURES)
        return template.format(
            q=name,
            d=self.shifted(name),
            a=self.at(name),
            c=_constant(self.rng),
            k=self.rng.choice(("2", "3", "10", "50", "0.1", "0.6")),
            o=(other := self.name()),
            p=self.at(other),
        )


def _written_constant(text: str) -> str:
    return f"({text})" if text.startswith("-") or "/" in text else text


_FEATURES = (
    # smooth, steep and flat
    *("{q}", "{d}**2", "{d}**3 - {q}", "exp(-{k}*{d})", "exp({d}/{k})", "cos({k}*{q})"),
    *("1/(1 + exp(-{k}*{d}))", "log(1 + exp({d}))", "tanh({k}*{d})", "atan({k}*{d})"),
    *("1/(1 + {d}**2)", "{d}*exp(-{d}**2)", "sqrt(1 + {d}**2)", "1e-12*{q}**2", "1e9*{d}"),
    # poles, beside them and at them
    *("1/{d}", "{c}/{d}**2", "1/({d} + {c})", "{q}/({d} + 1)", "1/sin({d})", "tan({d})"),
    *("{o}/{q}", "{o}/{d}", "1/({q}*{o})", "1/({q} + {o})", "1/abs({d})", "1/max({d}, 0)"),
    # kinks
    *("abs({d})", "max({q}, {a})", "min({q}, {a})", "max({d}, 0)**2", "min({q}, {q}*{q})"),
    *("max({q}, {o})", "abs({d})**1.5", "abs({d})**3", "min(sqrt({q}), {q})"),
    *("max(sqrt({q}), log({q}))", "min({a}, max({q}, {c}))", "max(1, log({q}))", "abs({q}*{o})"),
    # guards, jumps and values at single points
    *("where({q} > {a}, 1/{d}, {c})", "where({q} >= {a}, {q}, {c})", "where({q} == {a}, {c}, {q})"),
    *("where({q} != {a}, {q}, {c})", "where({q} > {a}, 1, 0)", "where({q} <= {a}, {d}**2, 0)"),
    *("where({q} > {c}, abs({o}), {o})", "where(log({q}) <= 1, {q}, 0)", "{q}/{q}"),
    *("where({q} > {a} and {o} > {c}, {q}, {o})", "where({d} > 0, {o}, {q})"),
    *("where({q} >= {a}, max({o}, {p}), {o})", "where({q} > {a}, sqrt({o} - {p}), {o})"),
    *("where({q} > {o}, {c}, {q})", "where({q} == {o}, {c}, {q} + {o})"),
    # limited domains and infinite slopes
    *("sqrt({d})", "log({d})", "{d}*log({d})", "{d}**1.5", "log({q} + 1)", "asin({q})"),
    *("acosh({q})", "{q}*(-log({q}))**0.1", "sqrt({q})/{c}", "sqrt({d}**2)", "sqrt(4 - {q}**2)"),
    # removable
    *("sin({d})/{d}", "({q}**2 - {a}**2)/{d}", "(exp({d}) - 1)/{d}", "{d}/(exp({d}) - 1)"),
    *("where({q} == {a}, 1, sin({d})/{d})", "(1 - cos({d}))/{d}**2", "(1-cos({d}))**1.5"),
    # several statistics
    *("{q}*{o}", "({q} - {o})**2", "sqrt({q}*{o})", "log({q}/{o})", "({q} + {o})/(1 + {q}**2)"),
)  # fmt: skip


# -- noises and domains ----------------------------------------------------------------------------

_SCALES = ("1", "2", "3", "1/3", "0.5", "0.3", "1.7", "10")
_SINGLE = (
    *("Laplace({b})",) * 8,
    *("DiscreteLaplace({b})",) * 6,
    *("Gaussian({b})", "Gaussian({b})", "DiscreteGaussian({b})", "RoundedLaplace({b})"),
    *("RoundedGaussian({b})", "Staircase(1)", "Staircase(0.5, sensitivity=2)", "Uniform({b})"),
    *("StudentT(5)", "StudentT(12, {b})", "Moments([0, 2, 0, 24])", "Moments([0, 1, 0, 3, 0, 15])"),
    *("Mass({-1: 0.1, 0: 0.8, 1: 0.1})", "Mass({0: 0.7, 1: 0.3})"),
    *("Noise.from_scipy(stats.norm(0, 2))", "Noise.from_scipy(stats.expon(loc=-1))"),
    "Noise.from_scipy(stats.expon(loc=-1, scale=1/3))",
    *("Noise.from_scipy(stats.logistic())", "Noise.from_scipy(stats.triang(0.5, -1, 2))"),
    *("Noise.from_scipy(stats.dlaplace(0.8))", "Noise.from_scipy(stats.skellam(2, 2))"),
)
_SUMS = (
    *("Laplace({b}) + Laplace({c})", "DiscreteLaplace({b}) + DiscreteLaplace({c})"),
    *("Laplace({b}) + Gaussian({c})", "Laplace({b}) + Laplace({b}) + Laplace({c})"),
    *("Laplace({b}) + Uniform({c})", "DiscreteLaplace({b}) + RoundedGaussian(1)"),
    "Laplace(0.3) + Laplace(0.1+0.2)",
)


def _noise(rng: random.Random) -> str:
    """Return a noise: Laplace and discrete Laplace mostly, sums now and then."""
    text = rng.choice(_SUMS if rng.random() < 0.12 else _SINGLE)
    for letter in ("b", "c"):
        text = text.replace("{" + letter + "}", rng.choice(_SCALES))
    return text


def _domain(rng: random.Random, anchor: Number) -> Bounds:
    """Return bounds on, beside and far from the anchor; sometimes a single point."""
    low = rng.choice((None, None, None, anchor, anchor, anchor + 1, anchor + 0.1, anchor - 3))
    high = rng.choice((None, None, None, None, None, None, anchor, anchor + 5, anchor + 40))
    if rng.random() < 0.03:
        low = high = rng.choice((anchor, anchor + 1, -1))
    if rng.random() < 0.04 and low is not None:
        low = rng.choice((_beside(low, 1), _beside(low, -1), low + 1e-9))
    if low is not None and high is not None and low > high:
        low, high = high, low
    whole = all(b is None or float(b).is_integer() for b in (low, high))
    if whole and rng.random() < 0.08:
        return (low, high, "integers")
    return (low, high)


def _tied(rng: random.Random, formula: str, anchors: dict[str, Number], seed: int) -> Case:
    """Return a case of counts with a condition between two of them: a hole, or a slanted bound."""
    lows = {name: math.ceil(a) + rng.choice((0, 0, 1)) for name, a in anchors.items()}
    noises = {name: f"DiscreteLaplace({rng.choice(('1', '2', '0.5', '1/3'))})" for name in lows}
    domain: dict[str, Bounds] = {
        name: (low, rng.choice((None, None, low + 6))) for name, low in lows.items()
    }
    one, two = rng.sample(list(lows), 2)
    if rng.random() < 0.5:
        domain[f"{one} + {two}"] = (lows[one] + lows[two] + rng.choice((1, 1, 2)), None)
    else:
        domain[f"{two} - {one}"] = (lows[two] - lows[one], None)
    return Case(formula, noises, domain, seed)


def _beside(number: Number, side: int) -> float:
    """Return the next double on a side; beside 0 it is so small that its square is none."""
    return math.nextafter(number, side * math.inf) if number else side * 1e-30


# -- where to ask ----------------------------------------------------------------------------------


def _near(rng: random.Random, case: Case, name: str) -> float:
    """Return a published value: around the bounds, now and then far away."""
    centre = _some_end(rng, case, name)
    step = rng.choice((0, 1, -1, 2, 5, -7, 0.5, 1e-9, -1e-9, 40, 300, -1e4, 1e6))
    value = centre + step
    return float(round(value)) if _is_lattice(case, name) else float(value)


def _inside(rng: random.Random, case: Case, name: str) -> float:
    """Return a true value inside the domain."""
    low, high = case.domain[name][:2]
    value = _some_end(rng, case, name) + rng.choice((0, 0, 0.25, 1, 1, 3, 12, -2, -1))
    value = min(max(value, low if low is not None else value), high if high is not None else value)
    if not _is_lattice(case, name):
        return float(value)
    floor = math.ceil(low) if low is not None else -math.inf
    ceiling = math.floor(high) if high is not None else math.inf
    return float(min(max(round(value), floor), ceiling))


def _some_end(rng: random.Random, case: Case, name: str) -> float:
    """Return one of the bounds, or a small number where there is none."""
    low, high = case.domain[name][:2]
    end = rng.choice((low, low, high))
    return float(rng.choice((0, 1, 3)) if end is None else end)


def _is_lattice(case: Case, name: str) -> bool:
    """Tell whether values of a statistic are whole numbers."""
    if "integers" in case.domain[name][2:]:
        return True
    noise = case.noise()[name]
    return bool(getattr(noise, "lattice", False))
