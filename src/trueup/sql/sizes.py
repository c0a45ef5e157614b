"""How large and how small the steps of a tape can get, in powers of the limits of its inputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.formula.opaque import Table
from trueup.formula.operations import COMPARISONS, CONNECTIVES
from trueup.kernels.tape import run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.kernels.tape import Tape

_TERMS = 3.0  # decades by which a sum can be above its largest term: a thousand terms
_LOST = 16.0  # decades by which a difference can be below its terms unless it is 0
_NEAR = 19.0  # decades below 1 of the least |sin x|


class Decades(NamedTuple):
    """A number of decades: ``degree``·d + ``exponents``·e + ``more``.

    Inputs lie within 10^±d or are 0, exponentials are computed within 10^±e; ``room`` is the part
    of ``more`` that covers sums.
    """

    degree: float = 0.0
    exponents: float = 0.0
    more: float = 0.0
    room: float = 0.0

    def plus(self, other: Decades) -> Decades:
        """Return the sum, for a product."""
        return Decades(*(x + y for x, y in zip(self[:3], other[:3], strict=True)))

    def times(self, n: float) -> Decades:
        """Return a multiple, for a power."""
        return Decades(self.degree * n, self.exponents * n, self.more * n)


def _most(*decades: Decades, room: float = 0.0) -> Decades:
    """Return the largest of several, and room for sums."""
    bare = [(d.degree, d.exponents, d.more - d.room * bool(room)) for d in decades]
    degree, exponents, more = (max(column) for column in zip(*bare, strict=True))
    return Decades(degree, exponents, more + room, room)


class Size(NamedTuple):
    """A step: 10^−depth ≤ |x| ≤ 10^height unless it is 0; ``constant`` if it is a number."""

    height: Decades = Decades()
    depth: Decades = Decades()
    positive: bool = False
    constant: float | None = None

    def times(self, n: float) -> Size:
        """Return the size of a power."""
        height, depth = self.height.times(abs(n)), self.depth.times(abs(n))
        if n < 0:
            height, depth = depth, height
        return Size(height, depth, self.positive or n % 2 == 0)


def product(a: Size, b: Size) -> Size:
    """Return the size of a·b."""
    positive = a is b or (a.positive and b.positive)
    return Size(a.height.plus(b.height), a.depth.plus(b.depth), positive)


def either(*sizes: Size) -> Size:
    """Return the size of one of several."""
    height, depth = _most(*(s.height for s in sizes)), _most(*(s.depth for s in sizes))
    return Size(height, depth, all(s.positive for s in sizes))


def total(a: Size, b: Size) -> Size:
    """Return the size of a + b."""
    height = _most(a.height, b.height, room=_TERMS)
    if a.positive and b.positive:
        return Size(height, min(a.depth, b.depth), positive=True)
    return Size(height, _most(a.depth, b.depth, room=_LOST))


def _flat(height: float, depth: float, **more: Any) -> Size:
    return Size(Decades(more=height), Decades(more=depth), **more)


def _constant(x: float) -> Size:
    decades = math.log10(abs(x)) if x and math.isfinite(x) else 0.0
    return _flat(max(decades, 0.0), max(-decades, 0.0), positive=x >= 0, constant=x)


def _call(function: Any, *_: Size) -> Size:
    values = function.values if isinstance(function, Table) else (1.0,)
    return either(*(_constant(float(v)) for v in values))._replace(positive=False)


_POWER = Size(Decades(0.0, 1.0, 0.5), Decades(0.0, 1.0, 0.5), positive=True)
_WAVE = Decades(more=_NEAR)
_OPERATIONS: dict[str, Callable[..., Size]] = {
    **dict.fromkeys([*COMPARISONS, *CONNECTIVES, "truth", "sign"], lambda *_: Size()),
    "const": _constant,
    "add": total,
    "sub": lambda a, b: total(a, b._replace(positive=False)),
    "mul": product,
    "div": lambda a, b: product(a, b.times(-1)),
    "pow": lambda a, b: _POWER if b.constant is None else a.times(b.constant),
    "sqrt": lambda a: a.times(0.5),
    "abs": lambda a: a._replace(positive=True),
    "floor": lambda a: a._replace(positive=False),
    "max": either,
    "min": either,
    "where": lambda _, a, b: either(a, b),
    **dict.fromkeys(["exp", "cosh"], lambda _: _POWER),
    "sinh": lambda a: either(a, _POWER),
    "log": lambda _: _flat(3.0, _LOST),
    **dict.fromkeys(["sin", "cos", "tan"], lambda a: Size(depth=_most(a.depth, _WAVE))),
    **dict.fromkeys(
        ["asin", "acos", "atan", "tanh", "asinh", "acosh", "atanh"],
        lambda a: Size(Decades(more=3.0), _most(a.depth, _WAVE)),
    ),
    "laguerre": lambda *_: Size(),
    "call": _call,
}


def sizes(tape: Tape, inputs: Sequence[Size]) -> list[Size]:
    """Return the sizes of the steps of a tape of one formula, that of the formula last."""
    found: list[Size] = []

    def noted(rule: Callable[..., Size]) -> Callable[..., Size]:
        def size(*args: Any) -> Size:
            found.append(rule(*args))
            return found[-1]

        return size

    results = run(tape, inputs, {op: noted(rule) for op, rule in _OPERATIONS.items()})
    return [*found, *results]
