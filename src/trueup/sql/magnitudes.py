"""How large and how small every step of a tape can get: which steps need a guard.

Each register gets a :class:`Span`: an interval that holds its values, how small it can be without
being zero, and whether it can be lost. The arithmetic is that of doubles, which is monotone; the
limits ``HUGE`` and ``SMALL`` keep a distance from the true ones for the last digits of functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from trueup.formula.opaque import Table
from trueup.inverse.ranges import times
from trueup.kernels.tape import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trueup.kernels.tape import Step, Tape

TINY = 5e-324
"""The smallest double above zero."""
HUGE = 1e305
"""What is larger may overflow."""
SMALL = 1e-300
"""What is smaller may underflow."""

FAINT = -300.0
"""Where underflow is an error e^z is zero from here on: a product of two is then far from it."""

_ULP = 2.0**-56


class Span(NamedTuple):
    """Where the values of a register lie.

    ``least`` bounds those from below, in magnitude, that are not zero; ``zero`` says whether zero
    occurs, ``null`` whether NULL does (a guarded step that is undefined) and ``nan`` whether NaN
    does (∞ − ∞ and the like).
    """

    low: float
    high: float
    least: float = TINY
    zero: bool = True
    null: bool = False
    nan: bool = False

    @property
    def top(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def floor(self) -> float:
        """The smallest magnitude."""
        return 0.0 if self.zero else self.least

    @property
    def lost(self) -> bool:
        """Whether the value can be NULL or NaN."""
        return self.null or self.nan

    def with_losses(self, *others: Span) -> Span:
        """Return the span, lost where one of the others is."""
        null = self.null or any(o.null for o in others)
        return self._replace(null=null, nan=self.nan or any(o.nan for o in others))


def span(low: float, high: float, least: float = TINY, *, zero: bool = True) -> Span:
    """Return the span of an interval.

    Examples
    --------
    >>> span(2.0, 5.0)
    Span(low=2.0, high=5.0, least=2.0, zero=False, null=False, nan=False)
    """
    if low > 0 or high < 0:
        least, zero = max(least, min(abs(low), abs(high))), False
    return Span(low, high, max(least, TINY), zero)


LINE = Span(-math.inf, math.inf)
"""All doubles, the infinities among them."""

ANYTHING = LINE._replace(null=True, nan=True)
"""What is said of a function of which nothing is known."""


NOTHING = Span(math.inf, -math.inf, math.inf, zero=False)
"""No value at all."""


def hull(values: Iterable[float]) -> Span:
    """Return the span of some numbers; what is not one is NULL."""
    known = [float(v) for v in values if v == v]
    least = min((abs(v) for v in known if v), default=math.inf)
    if not known:
        return Span(0.0, 0.0, null=True)
    return Span(min(known), max(known), least, 0.0 in known, null=True)


def union(a: Span, b: Span) -> Span:
    """Return what holds the values of both."""
    zero = a.zero or b.zero
    joined = Span(min(a.low, b.low), max(a.high, b.high), min(a.least, b.least), zero)
    return joined.with_losses(a, b)


def constant(x: float) -> Span:
    """Return the span of one number."""
    if x != x:
        return LINE._replace(null=True)
    return Span(x, x, abs(x) or math.inf, x == 0)


def add(a: Span, b: Span) -> Span:
    """Return the span of a + b.

    Where a + b is not zero it is at least the last digit of the smaller one, and if one of them
    keeps away from zero by L, at least about the last digit of L.
    """
    low, high = a.low + b.low, a.high + b.high
    nan = math.inf in (a.high, b.high) and -math.inf in (a.low, b.low)
    low, high = (-math.inf if low != low else low), (math.inf if high != high else high)
    if min(a.low, b.low) >= 0 or max(a.high, b.high) <= 0:
        zero = a.zero and b.zero
        least = max(min(a.least, b.least), a.floor, b.floor)
    else:
        zero, least = True, _ULP * max(min(a.least, b.least), a.floor, b.floor)
    return span(low, high, least, zero=zero)._replace(nan=nan).with_losses(a, b)


def negative(a: Span) -> Span:
    """Return the span of −a."""
    return a._replace(low=-a.high, high=-a.low)


def mul(a: Span, b: Span) -> Span:
    """Return the span of a·b."""
    corners = [times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    least = a.least * b.least
    zero = a.zero or b.zero or least < SMALL
    nan = (a.zero and math.isinf(b.top)) or (b.zero and math.isinf(a.top))
    result = span(min(corners), max(corners), least, zero=zero)
    return result._replace(zero=zero, nan=nan).with_losses(a, b)


def reciprocal(a: Span) -> Span:
    """Return the span of 1/a, NULL at zero."""
    least = 1 / a.top if a.top else math.inf
    peak = 1 / a.least if a.least > 1e-308 else math.inf
    low = -peak if a.low < 0 else 1 / a.high if a.high else 0.0
    high = peak if a.high > 0 else 1 / a.low if a.low else 0.0
    zero = least < SMALL
    return (
        span(low, high, least, zero=zero)
        ._replace(zero=zero)
        .with_losses(a, Span(0, 0, null=a.zero))
    )


def div(a: Span, b: Span) -> Span:
    """Return the span of a/b, NULL where b is zero."""
    nan = math.isinf(a.top) and math.isinf(b.top)
    return mul(a, reciprocal(b))._replace(nan=nan).with_losses(a, b)


def power(a: Span, n: int) -> Span:
    """Return the span of aⁿ, n > 0."""
    ends = [_power(x, n) for x in (a.low, a.high)]
    low, high = min(ends), max(ends)
    if n % 2 == 0 and a.low < 0 < a.high:
        low = _power(a.floor, n)
    least = _power(a.least, n)
    zero = a.zero or least < SMALL
    return span(low, high, least, zero=zero)._replace(zero=zero).with_losses(a)


def _power(x: float, n: int) -> float:
    try:
        return x**n
    except OverflowError:
        return math.copysign(math.inf, x) if n % 2 else math.inf


def _exp(a: Span) -> Span:
    low, high = _value(math.exp, a.low), _value(math.exp, a.high)
    return span(low, high, low, zero=low < SMALL)._replace(zero=low < SMALL).with_losses(a)


def _log(a: Span) -> Span:
    if a.high <= 0:
        return LINE._replace(null=True)
    low = -math.inf if a.zero else math.log(max(a.low, a.least))
    zero = a.low <= 1 <= a.high
    return span(low, math.log(a.high), _ULP, zero=zero).with_losses(a, Span(0, 0, null=a.low < 0))


def _sqrt(a: Span) -> Span:
    root = span(
        math.sqrt(max(a.low, 0)), math.sqrt(max(a.high, 0)), math.sqrt(a.least), zero=a.zero
    )
    return root.with_losses(a, Span(0, 0, null=a.low < 0))


def _wave(a: Span) -> Span:
    least = min(a.least / 2, 1e-20)  # no double comes closer to a multiple of π
    return Span(-1, 1, least, a.zero, a.null or math.isinf(a.top), a.nan)


def _tan(a: Span) -> Span:
    return _wave(a)._replace(low=-1e20, high=1e20)


def _monotone(
    function: Callable[[float], float], low: float, high: float
) -> Callable[[Span], Span]:
    """Return the rule of an increasing odd-like function defined on [low, high]."""

    def rule(a: Span) -> Span:
        ends = [_value(function, min(max(x, low), high)) for x in (a.low, a.high)]
        outside = a.low < low or a.high > high
        return span(*ends).with_losses(a, Span(0, 0, null=outside))

    return rule


def _value(function: Callable[[float], float], x: float) -> float:
    try:
        return function(x)
    except (OverflowError, ValueError):  # exp or sinh of a large number, atanh of one
        return math.copysign(math.inf, x)


def _odd(function: Callable[[float], float], low: float, high: float) -> Callable[[Span], Span]:
    """Return the rule of an increasing odd function with f(x) ~ x at zero."""
    plain = _monotone(function, low, high)

    def rule(a: Span) -> Span:
        result = plain(a)
        least = max(result.least, min(a.least / 2, 0.5))
        return result._replace(zero=a.zero and result.zero, least=least)

    return rule


def _cosh(a: Span) -> Span:
    inner = 0.0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return span(_value(math.cosh, inner), _value(math.cosh, a.top)).with_losses(a)


def _acos(a: Span) -> Span:
    return Span(0, math.pi, 1e-9).with_losses(a, Span(0, 0, null=a.top > 1))


def _abs(a: Span) -> Span:
    low = 0.0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return Span(low, a.top, a.least, a.zero, a.null, a.nan)


def _floor(a: Span) -> Span:
    low, high = (x if math.isinf(x) else float(math.floor(x)) for x in (a.low, a.high))
    return span(low, high, 1.0, zero=low <= 0 <= high).with_losses(a)


def _sign(a: Span) -> Span:
    return Span(-1.0 if a.low < 0 else 0.0, 1.0 if a.high > 0 else 0.0, 1.0, a.zero, a.null, a.nan)


def _max(a: Span, b: Span) -> Span:
    low, high, both = max(a.low, b.low), max(a.high, b.high), union(a, b)
    return span(low, high, both.least, zero=both.zero).with_losses(both)


def _min(a: Span, b: Span) -> Span:
    return negative(_max(negative(a), negative(b)))


def _pow(a: Span, b: Span) -> Span:
    """Return the span of a^b; NULL where it is not real, and for 0 to a negative power."""
    logs = _log(span(0.0, a.top, a.least, zero=a.zero))
    size = _exp(mul(logs, b)._replace(nan=False))
    undefined = (a.low < 0 and not _whole(b)) or (a.zero and b.low < 0)
    low = -size.high if a.low < 0 else size.low
    zero = size.zero or a.zero
    return Span(low, size.high, size.least, zero).with_losses(a, b, Span(0, 0, null=undefined))


def _whole(a: Span) -> bool:
    return a.low == a.high and a.low == math.floor(a.low)


_RULES: dict[str, Callable[..., Span]] = {
    "add": add,
    "sub": lambda a, b: add(a, negative(b)),
    "mul": mul,
    "div": div,
    "pow": _pow,
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "sin": _wave,
    "cos": lambda a: _wave(a)._replace(least=1e-20, zero=False),
    "tan": _tan,
    "asin": _odd(math.asin, -1, 1),
    "acos": _acos,
    "atan": _odd(math.atan, -math.inf, math.inf),
    "sinh": _odd(math.sinh, -math.inf, math.inf),
    "cosh": _cosh,
    "tanh": _odd(math.tanh, -math.inf, math.inf),
    "asinh": _odd(math.asinh, -math.inf, math.inf),
    "acosh": _monotone(math.acosh, 1, math.inf),
    "atanh": _odd(math.atanh, -1, 1),
    "abs": _abs,
    "sign": _sign,
    "floor": _floor,
    "max": _max,
    "min": _min,
    "where": lambda c, a, b: union(a, b).with_losses(c),
}


def _cut(a: Span) -> Span:
    """Return the span of e^z, zero for z ≤ FAINT."""
    whole = _exp(a._replace(low=max(a.low, FAINT), high=max(a.high, FAINT)))
    return union(whole, constant(0.0)) if a.low <= FAINT else whole


def spans(tape: Tape, inputs: Sequence[Span], *, cut: bool = False) -> list[Span]:
    """Return the span of every register; with ``cut``, e^z is zero where it is very small.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> spans(lower([1 / x - 8 / x**3], [x]), [span(1.0, math.inf)])[-1]
    Span(low=-8.0, high=1.0, least=5e-324, zero=True, null=False, nan=False)
    """
    found: list[Span] = []
    for node in tape.steps:
        args = [found[a] for a in node.args]
        found.append(_cut(*args) if cut and node.op == "exp" else _span(node, args, inputs))
    return found


def _span(node: Step, args: Sequence[Span], inputs: Sequence[Span]) -> Span:
    if node.op == "input":
        given: Span = inputs[node.data]
        return given
    if node.op == "const":
        return constant(node.data)
    if node.op == "truth":
        return Span(0, 1)
    if node.op in BOOLEAN:
        return Span(0, 1).with_losses(*args)
    if node.op == "power":
        return power(args[0], node.data)
    if node.op == "mul" and node.args[0] == node.args[1]:
        return power(args[0], 2)
    if node.op == "laguerre":
        return _series(node.data, args[0])
    if node.op == "call":
        return _table(node.data, args[0])
    rule = _RULES.get(node.op)
    return ANYTHING if rule is None else rule(*args)


def _series(coefficients: Sequence[float], t: Span) -> Span:
    """Return the span of Σ cₙ Lagₙ(t): at most Σ |cₙ| Lagₙ(−|t|)."""
    total = 0.0
    for n, c in enumerate(coefficients):
        total += abs(c) * sum(
            math.comb(n, j) / math.factorial(j) * _power(t.top, j) for j in range(n + 1)
        )
    return Span(-total, total, 1e-60).with_losses(t)


def _table(table: object, k: Span) -> Span:
    if not isinstance(table, Table):
        return ANYTHING
    return hull(table.values).with_losses(k)
