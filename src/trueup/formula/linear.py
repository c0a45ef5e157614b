"""Linear conditions between statistics: ``0 <= s <= n``, ``a + b >= 1``, ``s <= 300*n``.

They are read by the grammar of formulas, never evaluated.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sympy

from trueup.domain import Integers, Interval
from trueup.errors import FormulaError, TrueupError
from trueup.exact import symbolic
from trueup.formula.grammar import parse
from trueup.formula.substitution import decimal
from trueup.formula.text import text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HINT = 'e.g. "0 <= s <= n, n >= 1" or "a + b >= 1": sums of statistics times numbers, <= or >='
_SIGN = re.compile(r"(<=|>=|≤|≥|<|>)")
_OTHER = re.compile(r"[=!]=|=|^\s*$")
_COMMA = re.compile(r",|\band\b")
_DECIMAL = re.compile(r"(?<![\w.])(?:\d{1,30}\.\d{0,30}|\.\d{1,30})(?![\w.])")
_ROUNDS = 8  # of tightening: bounds rounded to integers may narrow the others
_LARGEST = 1_000_000  # number in a condition for a solver with tolerances of 1e-7
_NODES = 1_000  # of its search among integers, which may be endless without bounds
_INFEASIBLE = 2  # its answer

Box = dict[str, Interval]


@dataclasses.dataclass(frozen=True)
class Condition:
    """Σ cᵢ·qᵢ ≥ low, or > low if it is strict; the cᵢ are integers without a common divisor.

    Examples
    --------
    >>> conditions("0 <= s <= n")[1][0]
    Condition(terms=(('n', 1), ('s', -1)), low=0, strict=False)
    >>> print(*conditions("s <= 300*n, a + 2*b >= 1")[1], sep="; ")
    s <= 300*n; a + 2*b >= 1
    """

    terms: tuple[tuple[str, sympy.Rational], ...]
    low: sympy.Rational
    strict: bool = False

    @property
    def names(self) -> set[str]:
        """The statistics it ties together."""
        return {name for name, _ in self.terms}

    @property
    def key(self) -> str:
        """The sum as a formula, as a domain has it for a key."""
        return text(self._sum(lambda c: c))

    def _sum(self, coefficient: Any) -> sympy.Expr:
        return sympy.Add(*(coefficient(c) * sympy.Symbol(n, real=True) for n, c in self.terms))

    def at(self, known: Mapping[str, sympy.Expr]) -> Condition:
        """Return the condition with numbers for some statistics."""
        terms = tuple((name, c) for name, c in self.terms if name not in known)
        return Condition(terms, self.low - sum(c * known[n] for n, c in self.terms if n in known))

    def closed(self, integers: set[str]) -> Condition:
        """Return the condition as it is on the integers; refuse a strict one elsewhere.

        Examples
        --------
        >>> print(conditions("0.2*a + 0.2*b < 0.8")[1][0].closed({"a", "b"}))
        a + b <= 3
        """
        real = ", ".join(sorted(self.names - integers))
        if self.strict and real:
            shown = str(self).replace("=", "")
            raise TrueupError(
                f"{shown} means the same as {self}: the noise of {real} is continuous, so the "
                "least difference is not known",
                f'write "{self}", with the least difference if one is known',
            )
        low = sympy.floor(self.low) + 1 if self.strict else sympy.ceiling(self.low)
        return self if real else Condition(self.terms, low)

    def excess(self, values: Mapping[str, Any]) -> Any:
        """Return Σ cᵢ·qᵢ − low: not negative where the condition holds."""
        return sum(c * values[name] for name, c in self.terms) - self.low

    def least(self, box: Mapping[str, Interval]) -> Any:
        """Return the least excess on a box."""
        ends = {name: box[name].low if c > 0 else box[name].high for name, c in self.terms}
        found = sum(c * symbolic(ends[name]) for name, c in self.terms) - self.low
        return -sympy.oo if found is sympy.nan else found

    def implied(self, box: Mapping[str, Interval]) -> Iterator[tuple[str, Interval]]:
        """Yield what the condition says of each statistic, given bounds of the others.

        Examples
        --------
        >>> box, (tied,) = conditions("0 <= s <= 9, 2*s <= n")
        >>> [*tied.implied(box | {"n": Interval(None, 6)})]
        [('n', Interval(0, None)), ('s', Interval(None, 3))]
        """
        for name, c in self.terms:
            others = tuple((n, -k) for n, k in self.terms if n != name)
            end = Condition(others, -self.low).least(box) / c
            if end.is_finite:
                yield name, Interval(*((end, None) if c > 0 else (None, end)))

    def __str__(self) -> str:
        more, less = self._sum(lambda c: max(c, 0)), self._sum(lambda c: max(-c, 0))
        if less == 0:
            return f"{text(more)} >= {text(self.low)}"
        return f"{text(less)} <= {text(more - self.low)}"


def conditions(
    domain: str | Mapping[Any, Any], integers: set[str] | None = None
) -> tuple[Box, tuple[Condition, ...]]:
    """Return the bounds of single statistics, and the conditions between several.

    ``integers`` are the statistics that are; if it is None, what is strict is among the conditions.

    Examples
    --------
    >>> conditions({"a": (0, None), "a + b": (1, None)})
    ({'a': Interval(0, None)}, (Condition(terms=(('a', 1), ('b', 1)), low=1, strict=False),))
    >>> box, tied = conditions("0 < n, 2*s < 3*n", {"s", "n"})
    >>> box, *map(str, tied)
    ({'n': Interval(1, None)}, '2*s <= 3*n - 1')
    """
    sides = _of_text(domain) if isinstance(domain, str) else _of_mapping(domain)
    box: Box = {}
    found: dict[Condition, None] = {}
    for difference, strict, shown in sides:
        condition = _linear(difference, strict, shown)
        condition = condition if integers is None else condition.closed(integers)
        if condition.strict or len(condition.terms) > 1:
            found[condition] = None
        else:
            ((name, c),) = condition.terms
            pair = (condition.low / c, None) if c > 0 else (None, condition.low / c)
            box[name] = both(name, box.get(name, Interval()), Interval(*pair))
    return box, tuple(found)


def _of_text(domain: str) -> Iterable[tuple[sympy.Expr, bool, str]]:
    """Yield differences that are not negative, or positive, each with the text it is from."""
    for part in filter(str.strip, _COMMA.split(domain)):
        sides = _SIGN.split(part)
        if len(sides) < 3 or any(_OTHER.search(side) for side in sides[::2]):
            raise FormulaError(f"{part.strip()!r} is not a condition between statistics", _HINT)
        exact = [_DECIMAL.sub(lambda d: f"({Fraction(d[0])})", side) for side in sides[::2]]
        values = [parse(side.strip()) for side in exact]  # 0.1 + 0.2 is 3/10
        for left, sign, right in zip(values, sides[1::2], values[1:], strict=False):
            yield (right - left if sign in "<=≤" else left - right), sign in "<>", part.strip()


def _of_mapping(domain: Mapping[Any, Any]) -> Iterable[tuple[sympy.Expr, bool, str]]:
    for key, pair in domain.items():
        value = parse(key)
        low, high = Interval.read(pair).bounds
        if low is not None:
            yield value - symbolic(low), False, key
        if high is not None:
            yield symbolic(high) - value, False, key


def _linear(difference: sympy.Expr, strict: bool, shown: str) -> Condition:
    """Return the condition that a difference is not negative."""
    exact = decimal(difference)
    symbols = sorted(exact.free_symbols, key=str)
    poly = sympy.Poly(exact, *symbols) if symbols and exact.is_polynomial() else None
    if poly is None or poly.total_degree() > 1 or not all(c.is_Rational for c in poly.coeffs()):
        raise FormulaError(f"{shown!r} is not a linear condition between statistics", _HINT)
    terms = [(s.name, poly.coeff_monomial(s)) for s in symbols]
    bottom = sympy.ilcm(1, *(c.q for _, c in terms))
    size = sympy.Rational(bottom, sympy.igcd(0, *(c * bottom for _, c in terms)))
    scaled = tuple((name, c * size) for name, c in terms)
    return Condition(scaled, -poly.coeff_monomial(1) * size, strict)


def both(name: str, first: Interval, second: Interval) -> Interval:
    """Return what two bounds of one statistic leave."""
    low, high = max(first.low, second.low), min(first.high, second.high)
    lattice = first.lattice or second.lattice
    if lattice:
        low = low if math.isinf(low) else math.ceil(low)
        high = high if math.isinf(high) else math.floor(high)
    if low > high:
        raise TrueupError(
            f"the conditions leave no value for {name}: at least {low} and at most {high}",
            "check the conditions",
        )
    return (Integers if lattice else Interval)(low, high)


def tightened(
    box: Mapping[str, Interval], tied: Sequence[Condition], integers: set[str]
) -> tuple[Box, tuple[Condition, ...]]:
    """Return what conditions say of single statistics, and those that say more than that.

    Examples
    --------
    >>> box, tied = conditions("1 <= s <= n, s + n >= 2")
    >>> tightened(box, tied, {"s", "n"})[0]["n"], *map(str, tightened(box, tied, set())[1])
    (Integers(1, None), 's <= n')
    """
    known = {name: Interval() for condition in tied for name in condition.names} | dict(box)
    known = {n: b.integers() if n in integers else b for n, b in known.items()}
    integers = {name for name, bounds in known.items() if bounds.lattice}
    tied = tuple(dict.fromkeys(c.closed(integers) for c in tied))
    for _ in range(_ROUNDS):
        before = dict(known)
        for condition in tied:
            for name, bounds in condition.implied(known):
                known[name] = both(name, known[name], bounds)
        if known == before:
            break
    if not possible(known, tied):
        shown = ", ".join(map(str, tied))
        raise TrueupError(f"no true value meets {shown} and the bounds", "check the conditions")
    return known, tuple(c for c in tied if not c.least(known) >= 0)


def possible(box: Mapping[str, Interval], tied: Sequence[Condition]) -> bool:
    """Whether some values meet all conditions, integers where the bounds say so.

    It is taken to be so where numbers are large beside the tolerances of the solver.

    Examples
    --------
    >>> box, tied = conditions("0 <= a <= 9, 0 <= b <= 9, 6*a + 10*b >= 7, 6*a + 10*b <= 9")
    >>> possible(box, tied), possible({n: b.integers() for n, b in box.items()}, tied)
    (True, False)
    """
    numbers = [abs(x) for c in tied for x in (*dict(c.terms).values(), c.low)]
    numbers += [abs(b) for i in box.values() for b in i.bounds if b is not None]
    if not tied or max(numbers) > _LARGEST:
        return True
    found = scipy.optimize.milp(
        np.zeros(len(box)),
        integrality=np.array([b.lattice for b in box.values()], int),
        bounds=scipy.optimize.Bounds(
            [float(b.low) for b in box.values()], [float(b.high) for b in box.values()]
        ),
        constraints=scipy.optimize.LinearConstraint(
            [[float(dict(c.terms).get(name, 0)) for name in box] for c in tied],
            [float(c.low) for c in tied],
        ),
        options={"node_limit": _NODES},
    )
    return bool(found.status != _INFEASIBLE)
