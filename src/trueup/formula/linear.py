"""Linear conditions between statistics: ``0 <= s <= n``, ``a + b >= 1``, ``s <= 300*n``.

They are read by the grammar of formulas, never evaluated.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sympy

from trueup.domain import Interval
from trueup.errors import FormulaError, TrueupError
from trueup.exact import symbolic
from trueup.formula.grammar import parse
from trueup.formula.text import text

if TYPE_CHECKING:
    from collections.abc import Iterable

_HINT = 'e.g. "0 <= s <= n, n >= 1" or "a + b >= 1": sums of statistics times numbers, <= or >='
_SIGN = re.compile(r"(<=|>=|≤|≥)")
_OTHER = re.compile(r"[<>]|[=!]=|=")
_COMMA = re.compile(r",(?![^\[(]*[\])])|\band\b")
_MEMBER = re.compile(r"(.+)\bin\s*\[(.+),(.+)\]\s*", re.DOTALL)
_ROUNDS = 8  # of tightening: each passes a bound on to one more statistic

Box = dict[str, Interval]


@dataclasses.dataclass(frozen=True)
class Condition:
    """Σ cᵢ·qᵢ ≥ low, with two statistics or more.

    Examples
    --------
    >>> conditions("0 <= s <= n")[1][0]
    Condition(terms=(('n', 1), ('s', -1)), low=0)
    >>> print(*conditions("s <= 300*n, a + 2*b >= 1")[1], sep="; ")
    s <= 300*n; a + 2*b >= 1
    """

    terms: tuple[tuple[str, sympy.Rational], ...]
    low: sympy.Rational

    @property
    def names(self) -> set[str]:
        """The statistics it ties together."""
        return {name for name, _ in self.terms}

    @property
    def key(self) -> str:
        """The sum as a formula, as a domain has it for a key."""
        terms = (c * sympy.Symbol(name, real=True) for name, c in self.terms)
        return text(sympy.Add(*terms))

    def at(self, known: Mapping[str, sympy.Expr]) -> Condition:
        """Return the condition with numbers for some statistics."""
        terms = tuple((name, c) for name, c in self.terms if name not in known)
        return Condition(terms, self.low - sum(c * known[n] for n, c in self.terms if n in known))

    def excess(self, values: Mapping[str, Any]) -> Any:
        """Return Σ cᵢ·qᵢ − low: not negative where the condition holds."""
        return sum(c * values[name] for name, c in self.terms) - self.low

    def least(self, box: Mapping[str, Interval]) -> Any:
        """Return the least excess on a box."""
        ends = {name: box[name].low if c > 0 else box[name].high for name, c in self.terms}
        found = sum(c * symbolic(ends[name]) for name, c in self.terms) - self.low
        return -sympy.oo if found is sympy.nan else found

    def __str__(self) -> str:
        symbols = {name: sympy.Symbol(name, real=True) for name in self.names}
        more = sympy.Add(*(c * symbols[n] for n, c in self.terms if c > 0))
        less = sympy.Add(*(-c * symbols[n] for n, c in self.terms if c < 0))
        if less == 0:
            return f"{text(more)} >= {text(self.low)}"
        if more == 0 or self.low > 0:
            return f"{text(less)} <= {text(more - self.low)}"
        return f"{text(less - max(self.low, 0))} <= {text(more - min(self.low, 0))}"


def conditions(domain: str | Mapping[Any, Any]) -> tuple[Box, tuple[Condition, ...]]:
    """Return the bounds of single statistics, and the conditions between several.

    Examples
    --------
    >>> conditions({"a": (0, None), "a + b": (1, None)})
    ({'a': Interval(0, None)}, (Condition(terms=(('a', 1), ('b', 1)), low=1),))
    """
    sides = _of_text(domain) if isinstance(domain, str) else _of_mapping(domain)
    box: Box = {}
    found: dict[Condition, None] = {}
    for difference, shown in sides:
        terms, low = _linear(difference, shown)
        if len(terms) > 1:
            found[Condition(terms, low)] = None
        else:
            ((name, c),) = terms
            pair = (low / c, None) if c > 0 else (None, low / c)
            box[name] = both(name, box.get(name, Interval()), Interval(*pair))
    return box, tuple(found)


def _of_text(domain: str) -> Iterable[tuple[sympy.Expr, str]]:
    """Yield differences that are not negative, each with the text it is from."""
    for part in filter(str.strip, _COMMA.split(domain)):
        member = _MEMBER.fullmatch(part)
        sides = [member[2], "<=", member[1], "<=", member[3]] if member else _SIGN.split(part)
        if len(sides) < 3 or any(_OTHER.search(side) for side in sides[::2]):
            raise FormulaError(f"{part.strip()!r} is no condition between statistics", _HINT)
        values = [parse(side.strip()) for side in sides[::2]]
        for left, sign, right in zip(values, sides[1::2], values[1:], strict=False):
            yield (right - left if sign in "<=≤" else left - right), part.strip()


def _of_mapping(domain: Mapping[Any, Any]) -> Iterable[tuple[sympy.Expr, str]]:
    for key, pair in domain.items():
        value = parse(key)
        low, high = Interval.read(pair).bounds
        if low is not None:
            yield value - symbolic(low), key
        if high is not None:
            yield symbolic(high) - value, key


def _linear(
    difference: sympy.Expr, shown: str
) -> tuple[tuple[tuple[str, sympy.Rational], ...], sympy.Rational]:
    """Return the terms and the bound of a difference that is not negative."""
    floats = {x: sympy.Rational(x) for x in difference.atoms(sympy.Float)}
    difference = difference.xreplace(floats)
    symbols = sorted(difference.free_symbols, key=str)
    poly = sympy.Poly(difference, *symbols) if symbols and difference.is_polynomial() else None
    if poly is None or poly.total_degree() > 1 or not all(c.is_Rational for c in poly.coeffs()):
        raise FormulaError(f"{shown!r} is no linear condition between statistics", _HINT)
    return (
        tuple((s.name, poly.coeff_monomial(s)) for s in symbols),
        -poly.coeff_monomial(1),
    )


def both(name: str, first: Interval, second: Interval) -> Interval:
    """Return what two bounds of one statistic leave."""
    low, high = max(first.low, second.low), min(first.high, second.high)
    if low > high:
        raise TrueupError(
            f"the conditions leave no value for {name}: at least {low} and at most {high}",
            "check the conditions",
        )
    kind = type(first) if first.lattice else type(second)
    return kind(*(None if math.isinf(end) else end for end in (low, high)))


def together(box: Mapping[str, Interval], domain: str) -> dict[str, Any]:
    """Return bounds and conditions as one domain.

    Examples
    --------
    >>> together({"n": Interval(1, None)}, "0 <= s <= n")
    {'n': Interval(1, None), 's': Interval(0, None), 'n - s': Interval(0, None)}
    """
    further, tied = conditions(domain)
    found: dict[str, Any] = dict(box)
    for name, bounds in further.items():
        found[name] = both(name, found.get(name, Interval()), bounds)
    for condition in tied:
        own = Interval(condition.low, None)
        found[condition.key] = both(condition.key, found.get(condition.key, Interval()), own)
    return found


def tightened(
    box: Mapping[str, Interval], tied: Sequence[Condition], whole: set[str]
) -> tuple[Box, tuple[Condition, ...]]:
    """Return what conditions say of single statistics, and those that say more than that.

    Examples
    --------
    >>> box, tied = conditions("1 <= s <= n, s + n >= 2")
    >>> tightened(box, tied, {"s", "n"})[0]["n"], *map(str, tightened(box, tied, set())[1])
    (Integers(1, None), 's <= n')
    """
    known = {name: Interval() for condition in tied for name in condition.names} | dict(box)
    for name in whole & {*known}:
        known[name] = known[name].integers()
    for _ in range(_ROUNDS):
        before = dict(known)
        for condition in tied:
            _pass_on(condition, known, whole)
        if known == before:
            break
    for condition in tied:
        farthest = Condition(tuple((n, -c) for n, c in condition.terms), -condition.low)
        if farthest.least(known) > 0:
            raise TrueupError(f"no true value fulfils {condition}", "check the conditions")
    return known, tuple(c for c in tied if not c.least(known) >= 0)


def _pass_on(condition: Condition, known: Box, whole: set[str]) -> None:
    """Tighten the bounds of each statistic by those of the others."""
    for name, c in condition.terms:
        others = [(n, k) for n, k in condition.terms if n != name]
        most = sum(k * symbolic(known[n].high if k > 0 else known[n].low) for n, k in others)
        if not most.is_finite:
            continue
        end = (condition.low - most) / c
        bound = Interval(end, None) if c > 0 else Interval(None, end)
        narrow = both(name, known[name], bound)
        known[name] = narrow.integers() if name in whole else narrow
