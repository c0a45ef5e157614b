"""For which inputs an expression is safe: no step overflows, underflows or is undefined."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

from trueup.sql.magnitudes import HUGE, SMALL, TINY, Span, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trueup.kernels.grid import Bounds
    from trueup.kernels.tape import Tape
    from trueup.sql.dialects import Dialect
    from trueup.sql.glot import Sql

_LARGE = 1e10  # over what overflows it is still below SMALL
_UNDERFLOW = {"mul", "div", "power", "exp", "pow"}


class Range(NamedTuple):
    """The ordinary sizes of an input: from ``low`` to ``high``, and zero or at least ``least``."""

    low: float
    high: float
    least: float = 0.0


Box = tuple[Range, ...]
"""One range for each input."""

_MOST: tuple[float, ...] = (
    *(1e100, 1e75, 1e50, 1e30, 1e15, 1e10, 1e6, 1e4),
    *(1e3, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0),
)
"""How large an input may be; the plain limit is the first."""
_LEAST = (0.0, 1e-100, 1e-50, 1e-30, 1e-15, 1e-10)
_LEAST_SCALE = (0.0, 1e-100, 1e-50, 1e-20, 1e-10, 1e-5, 1e-3, 1e-2, 0.1)
_NARROW = 1e3  # statistics do get this large


@dataclasses.dataclass(frozen=True)
class Input:
    """One column: a statistic, or the noise scale of one (below ``limit``)."""

    leaf: Sql
    whole: bool = False
    limit: float | None = None

    @property
    def ladder(self) -> tuple[float, ...]:
        """The lower ends that a range may have, from wide to narrow."""
        if self.whole:
            return (0.0,)
        return _LEAST if self.limit is None else _LEAST_SCALE

    def span(self, given: Range) -> Span:
        """Return where the values of a range lie."""
        if self.limit is not None:
            return span(max(given.least, TINY), min(self.limit, given.high))
        least = 1.0 if self.whole else max(given.least, TINY)
        return Span(given.low, given.high, least)

    def is_narrow(self, given: Range) -> bool:
        """Whether a range leaves out statistics that do occur."""
        return self.limit is None and min(-given.low, given.high) < _NARROW


def within(given: Span, bounds: Bounds, branch: int, *, whole: bool) -> Span | None:
    """Return the part of a span on one side of the bounds; None if nothing is left."""
    low, high = bounds.low, bounds.high
    if branch == 0:
        low = _next(low, math.inf, whole=whole) if bounds.below else -math.inf
        high = _next(high, -math.inf, whole=whole) if bounds.above else math.inf
    elif branch == bounds.below:
        low, high = -math.inf, low
    else:
        low, high = high, math.inf
    low, high = max(low, given.low), min(high, given.high)
    return span(low, high, given.least) if low <= high else None


def _next(x: float, towards: float, *, whole: bool) -> float:
    if not whole or abs(x) > 2**52:
        return math.nextafter(x, towards)
    return math.floor(x) + 1.0 if towards > x else math.ceil(x) - 1.0


def is_safe(tape: Tape, spans: Sequence[Span], dialect: Dialect) -> bool:
    """Whether the output is a finite double or NULL, and no step stops the query."""
    output = spans[tape.outputs[0]]
    if output.nan or output.top > HUGE:
        return False
    if any(node.op == "div" and _loses(*(spans[i] for i in node.args)) for node in tape.steps):
        return False
    if dialect.overflow == "infinite":
        return True
    if any(s.nan or s.top > HUGE for s in spans):
        return False
    risky = (s for node, s in zip(tape.steps, spans, strict=True) if node.op in _UNDERFLOW)
    return not dialect.underflow or all(s.least > SMALL for s in risky)


def _loses(a: Span, b: Span) -> bool:
    """Whether in a/b the divisor may be zero by underflow, or infinite beside a large dividend.

    Where a tape takes powers of 1/b the text divides by powers of b, which overflow a little
    before those vanish.
    """
    return (b.zero and b.least < SMALL) or (b.top > HUGE and a.top > _LARGE)


def ordinary(inputs: Sequence[Input], safe: Callable[[Box], bool]) -> Box | None:
    """Return a large box that is safe: one found on a coarse scale, then widened side by side."""
    box = next(filter(safe, _boxes(inputs)), None)
    if box is None:
        return None
    for i, x in enumerate(inputs):
        sides: list[list[dict[str, float]]] = [
            [{"low": -most} for most in _MOST],
            [{"high": most} for most in _MOST],
            [{"least": least} for least in x.ladder],
        ]
        for side in sides:
            wider = ((*box[:i], box[i]._replace(**end), *box[i + 1 :]) for end in side)
            box = next(b for b in wider if b == box or safe(b))
    return box


def _boxes(inputs: Sequence[Input]) -> Iterator[Box]:
    """Yield boxes from wide to narrow, all inputs alike."""
    for i, most in enumerate(_MOST):
        yield tuple(Range(-most, most, x.ladder[min(i, len(x.ladder) - 1)]) for x in inputs)
