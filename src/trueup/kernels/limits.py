"""How large inputs may be: up to there no step of a formula leaves the range of doubles.

The limits hold in every target alike: where an input is larger than ``inputs``, or e^a is asked
for with |a| beyond ``exponent``, the answer is NaN (NULL in SQL).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from trueup.formula.opaque import Table
from trueup.formula.operations import COMPARISONS, CONNECTIVES
from trueup.kernels.tape import Emitter, Tape, run

LEAST = 1e-15
"""The least size, but 0, of an input that is divided by."""
EXPONENTIAL = ("exp", "sinh", "cosh")

_ALONE = [(float(f"1e{k}"), 690.0) for k in range(100, 0, -1)]
_EXPONENTS = (*range(690, 60, -6), *range(60, 0, -1))
_WIDE = 230.0  # e^±230 is 1e±100: a wider exponent is not worth a smaller limit of inputs
_BESIDE_EXPONENTIAL = sorted(  # beyond 2⁵³ a double holds no fraction
    [(x, float(a)) for x in (1e15, 1e9, 1e6, 1e4) for a in _EXPONENTS],
    key=lambda pair: (min(pair[1], _WIDE), *pair),
    reverse=True,
)
_VANISHED = -690.0  # below which e^a counts as 0 where nothing is divided by it
_DOUBLES = 690.8  # e^±690.8 is 1e±300: there a double has all its digits, with room to round
_LOST = 37.0  # e^−37 is 1e-16: by how much a difference can be below its terms unless it is 0
_ANGLE = 34.5  # e^34.5 is 1e15: up to there a double knows where in its period it is

Logarithm: TypeAlias = Any
"""A logarithm of a size for each of the limits that are tried, or one for all."""


class Range(NamedTuple):
    """Where an input lies, and whether it is an integer."""

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False

    @property
    def least(self) -> float:
        """The least |x| but 0; 0 where it may be below ``LEAST``."""
        least = max(self.low, -self.high, float(self.whole))
        return least if least >= LEAST else 0.0


class Limits(NamedTuple):
    """Where a formula may be evaluated.

    Parameters
    ----------
    inputs
        The largest |x| of any input.
    exponent
        The largest |a| for which e^a, sinh a and cosh a are computed.
    vanishing
        Whether e^a is computed for every a below, and is 0 from −690 on: nothing is divided by it.
    tiny
        The inputs of which |x| below ``LEAST`` is beyond the limit, too, unless x = 0: something
        is divided by them, and the result may be infinite there.
    """

    inputs: float
    exponent: float
    vanishing: bool = False
    tiny: frozenset[int] = frozenset()


def limits(tape: Tape, ranges: Sequence[Range], *, floors: bool = False) -> Limits:
    """Return the widest limits of a tape whose inputs lie in given ranges, 0 if there are none.

    With ``floors`` no step may underflow even if that does no harm: some SQL engines stop there.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> n = sympy.Symbol("n", real=True)
    >>> limits(lower([1 / n - 8 / n**3], [n]), [Range(1)]).inputs
    1e+100
    >>> limits(lower([n / sympy.log(1 + sympy.exp(n))], [n]), [Range(1)]).exponent
    690.0
    """
    near = [i for i, r in enumerate(ranges) if not r.least]
    for tiny in map(frozenset[int], [near] if floors else [(), *((i,) for i in near), near]):
        for vanishing in (False,) if floors else (True, False):
            survey = Survey([tape], vanishing)
            survey.size(tape, ranges, tiny)
            inputs, exponent = survey.widest()
            if inputs and (exponent >= _WIDE or not vanishing):
                return Limits(inputs, exponent, vanishing, tiny)
    return Limits(0.0, 0.0)


def guarded(tape: Tape, given: Limits) -> Tape:
    """Return a tape of one formula that is NaN beyond its limits.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> n = sympy.Symbol("n", real=True)
    >>> [step.op for step in guarded(lower([1 / n], [n]), Limits(1e100, 690.0)).steps]
    ['input', 'const', 'div', 'abs', 'const', 'le', 'const', 'where']
    """
    new = Emitter()
    inputs = new.inputs(len(tape.inputs))
    (result,) = run(bounded(tape, given), inputs, new.ops)
    for i, x in enumerate(inputs):
        size = new.emit("abs", x)
        result = new.within(size, given.inputs, result)
        if i in given.tiny:
            zero, least, nan = map(new.const, (0.0, LEAST, math.nan))
            fits = new.emit("or", new.emit("ge", size, least), new.emit("eq", x, zero))
            result = new.emit("where", fits, result, nan)
    return Tape(tape.inputs, tuple(new.steps), (result,))


def bounded(tape: Tape, given: Limits) -> Tape:
    """Return a tape that is NaN, or 0 if it vanishes, where an exponent is beyond its limit."""
    if not any(step.op in EXPONENTIAL for step in tape.steps):
        return tape
    new = Emitter()

    def exponential(op: str, a: int) -> int:
        vanishes = op == "exp" and given.vanishing
        size = a if vanishes else new.emit("abs", a)
        value = new.within(size, given.exponent, new.emit(op, a))
        gone = new.emit("lt", a, new.const(_VANISHED))
        return new.emit("where", gone, new.const(0.0), value) if vanishes else value

    ops = new.ops | {op: partial(exponential, op) for op in EXPONENTIAL}
    outputs = run(tape, new.inputs(len(tape.inputs)), ops)
    return Tape(tape.inputs, tuple(new.steps), tuple(outputs))


# -- how large and how small steps can get ---------------------------------------------------------


class Size(NamedTuple):
    """How large a number is: e^``low`` ≤ |x| ≤ e^``high`` unless x is 0.

    Where terms cancel, x may be smaller than the least of them by a factor of e^``lost``.
    """

    high: Logarithm
    low: Logarithm
    positive: bool = False
    lost: float = 0.0

    def times(self, n: float) -> Size:
        """Return the size of xⁿ."""
        if n < 0:
            return Size(self.lost - self.low, -self.high, self.positive).times(-n)
        return Size(self.high * n, self.low * n, self.positive or n % 2 != 1, self.lost * n)


class Survey:
    """Tries limits: all steps that are seen have to fit them.

    With ``vanishing`` an exponential may be as small as 0.
    """

    def __init__(self, tapes: Sequence[Tape], vanishing: bool) -> None:
        exponential = any(step.op in EXPONENTIAL for tape in tapes for step in tape.steps)
        self.tried = np.array(_BESIDE_EXPONENTIAL if exponential else _ALONE)
        self.fits = np.ones(len(self.tried), bool)
        self.vanishing = vanishing
        own = {"exp": self._exp, "sinh": self._sinh, "cosh": self._cosh, "log": self._log}
        rules = _SIZES | own | dict.fromkeys(["sin", "cos", "tan"], self._wave)
        self.ops = {op: self._noted(rule) for op, rule in rules.items()}
        """The operations on sizes: what does not fit is noted."""

    def widest(self) -> tuple[float, float]:
        """Return the limits of inputs and exponents that all steps fit, 0 if there are none."""
        if not self.fits.any():
            return 0.0, 0.0
        inputs, exponent = self.tried[self.fits.argmax()].tolist()
        return inputs, exponent

    def size(self, tape: Tape, ranges: Sequence[Range], tiny: frozenset[int]) -> Size:
        """Return the size of a formula whose inputs lie in given ranges."""
        inputs = [self._input(r, LEAST if i in tiny else r.least) for i, r in enumerate(ranges)]
        with np.errstate(invalid="ignore"):  # ∞ − ∞, which does not fit
            (size,) = run(tape, inputs, self.ops)
        return size  # type: ignore[no-any-return]

    def _input(self, within: Range, least: float) -> Size:
        farthest = math.log(max(abs(within.low), abs(within.high), LEAST))
        high = np.minimum(np.log(self.tried[:, 0]), farthest)
        return Size(high, math.log(least) if least else -math.inf, within.low >= 0)

    def _noted(self, rule: Callable[..., Size]) -> Callable[..., Size]:
        def noted(*args: Any) -> Size:
            size = rule(*args)
            self.fits &= size.high <= _DOUBLES
            self.fits &= (size.low >= -_DOUBLES) | (size.low == -math.inf)
            return size

        return noted

    def _exp(self, a: Size) -> Size:
        reach = np.minimum(self.tried[:, 1], np.exp(np.minimum(a.high, 7.0)))
        return Size(reach, np.array(-math.inf) if self.vanishing else -reach, positive=True)

    def _sinh(self, a: Size) -> Size:
        return Size(np.maximum(self._exp(a).high, a.high), a.low, lost=a.lost)

    def _cosh(self, a: Size) -> Size:
        return Size(self._exp(a).high, 0.0, positive=True)

    def _log(self, a: Size) -> Size:
        self.fits &= a.low > -math.inf
        return Size(7.0, 0.0, lost=_LOST)

    def _wave(self, a: Size) -> Size:
        self.fits &= a.high <= _ANGLE
        return _near_zero(a)._replace(high=_LOST)


_UNIT = Size(0.0, 0.0)


def _const(*values: float) -> Size:
    sizes = [math.log(abs(v)) for v in values if v and math.isfinite(v)] or [0.0]
    return Size(max(sizes), min(sizes), positive=all(v >= 0 for v in values))


def _add(a: Size, b: Size) -> Size:
    high = np.logaddexp(a.high, b.high)
    if a.positive and b.positive:
        return Size(high, np.maximum(a.low - a.lost, b.low - b.lost), positive=True)
    return Size(high, np.minimum(a.low, b.low), lost=max(a.lost, b.lost, _LOST))


def _mul(a: Size, b: Size) -> Size:
    positive = a is b or (a.positive and b.positive)
    return Size(a.high + b.high, a.low + b.low, positive, a.lost + b.lost)


def _union(a: Size, b: Size) -> Size:
    high, low = np.maximum(a.high, b.high), np.minimum(a.low, b.low)
    return Size(high, low, a.positive and b.positive, max(a.lost, b.lost))


def _near_zero(a: Size) -> Size:
    """Return the size of a function whose values near its zero are as small as its argument."""
    return Size(7.0, np.minimum(a.low, 0.0), lost=a.lost + _LOST)


_SIZES: dict[str, Callable[..., Size]] = {
    "const": _const,
    "add": _add,
    "sub": lambda a, b: _add(a, b._replace(positive=False)),
    "mul": _mul,
    "div": lambda a, b: _mul(a, b.times(-1)),
    "pow": lambda a, b: a.times(math.exp(b.high) * (1 if b.positive else -1)),
    "sqrt": lambda a: a.times(0.5),
    "abs": lambda a: a._replace(positive=True),
    "floor": lambda a: Size(np.maximum(a.high, 0.0), 0.0),
    "max": _union,
    "min": _union,
    "where": lambda _, a, b: _union(a, b),
    **dict.fromkeys(["truth", "sign", *COMPARISONS, *CONNECTIVES], lambda *_: _UNIT),
    **dict.fromkeys(["atan", "tanh", "asin", "acos", "asinh", "acosh", "atanh"], _near_zero),
    "laguerre": lambda *_: _UNIT,  # nothing is divided by it: where it overflows all does
    "call": lambda f, *_: _const(*f.values.tolist()) if isinstance(f, Table) else _UNIT,
}
