"""Arithmetic on published values: write the formula with the numbers themselves.

A :class:`Noisy` value is a formula in published statistics, together with their values, noises and
bounds. Arithmetic keeps it symbolic, so ``(s / n)**2`` is debiased as a whole; the estimate is
made when it is asked for. Identity is (object, index): ``x - x`` is 0, two values are independent
unless they are the same object.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
import uuid
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.estimator import Estimator
from trueup.exact import number, symbolic
from trueup.formula.operations import COMPARISONS, CONNECTIVES, FUNCTIONS
from trueup.formula.source import DEFAULT, Source
from trueup.formula.text import text
from trueup.inputs import column
from trueup.noise.base import Noise
from trueup.noise.noiseless import Noiseless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

MAX_SUM = 4096
"""Cells that one sum may have."""

_counter = itertools.count(1)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "square": lambda a: a**2,
    "reciprocal": lambda a: 1 / a,
    "negative": operator.neg,
    "positive": operator.pos,
    "log1p": lambda a: sympy.log(1 + a),
    "log2": lambda a: sympy.log(a) / sympy.log(2),
    "log10": lambda a: sympy.log(a) / sympy.log(10),
    "expm1": lambda a: sympy.exp(a) - 1,
    "maximum": sympy.Max,
    "minimum": sympy.Min,
    **{row.ufunc.__name__: row.symbolic for row in (*FUNCTIONS.values(), *COMPARISONS.values())},
}
_LOGIC: dict[str, Callable[..., Any]] = {
    **{row.ufunc.__name__: row.symbolic for row in CONNECTIVES.values()},
    "bitwise_and": sympy.And,
    "bitwise_or": sympy.Or,
    "invert": sympy.Not,
}


@dataclasses.dataclass(frozen=True, eq=False)
class _Leaf:
    """Published values of one object, and which of its entries they are."""

    values: NDArray[Any]
    index: NDArray[np.intp]
    noise: Noise
    domain: Interval
    origin: str
    name: str


Leaves = dict[sympy.Symbol, _Leaf]


def noisy(values: ArrayLike, noise: Noise, domain: object = None, name: str | None = None) -> Noisy:
    """Return published values to calculate with.

    Parameters
    ----------
    values
        One published number, or an array of them with independent noise.
    noise
        The noise that was added to each.
    domain
        Where the true values are known to lie, e.g. ``(1, None)``.
    name
        The name shown in formulas.

    Examples
    --------
    >>> from trueup import DiscreteLaplace, Laplace, noisy
    >>> n = noisy(103, DiscreteLaplace(2), domain=(1, None), name="n")
    >>> s = noisy(51.7, Laplace(2), name="s")
    >>> s / n
    0.502 ± 0.031
    >>> (n - n).estimate
    0.0
    """
    if not isinstance(noise, Noise):
        raise TrueupError(f"noise must be a noise, got {noise!r}", "e.g. Laplace(2)")
    array = np.asarray(column(values, "values"))
    interval = Interval.read(domain)
    interval = interval.integers() if noise.lattice else interval
    if noise.lattice and (np.floor(array) != array)[np.isfinite(array)].any():
        raise TrueupError(
            f"values under integer noise must be integers, got {values!r}",
            "check the values, or describe the noise as continuous",
        )
    shown = name if name is not None else f"x{next(_counter)}"
    origin = uuid.uuid4().hex  # identity, also after a journey to another process
    index = np.arange(array.size).reshape(array.shape)
    leaf = _Leaf(array, index, noise, interval, origin, shown)
    symbol = sympy.Symbol(f"{shown}#{origin}", real=True)
    return Noisy(symbol, {symbol: leaf}, array.shape)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition on published values holds, b elsewhere, as a formula.

    Examples
    --------
    >>> from trueup import DiscreteLaplace, noisy, where
    >>> n = noisy(7, DiscreteLaplace(1), domain=(0, None), name="n")
    >>> where(n > 5, 1, 0)
    1.00 ± 0.00
    """
    parts = [_lift(condition, Condition), _lift(a, Noisy), _lift(b, Noisy)]
    test, yes, no = (part.expr for part in parts)
    return _combine(parts, sympy.Piecewise((yes, test), (no, True)))


class _Formula(np.lib.mixins.NDArrayOperatorsMixin):
    """An expression in published values; the base of numbers and of conditions.

    Its operators are those of NumPy, which come to ``__array_ufunc__``.
    """

    __array_priority__ = 1000  # a known array on the left leaves the operation to us,
    __pandas_priority__ = 5000  # and so does a frame of pandas, which has 4000, or a series
    __hash__ = object.__hash__

    def __init__(self, expr: Any, leaves: Leaves, shape: tuple[int, ...] = ()) -> None:
        self.expr = expr
        self.leaves = {s: leaf for s, leaf in leaves.items() if s in expr.free_symbols}
        self.shape = shape

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a NumPy function as a formula; ``n += 1`` makes a new one."""
        name = ufunc.__name__
        in_place = kwargs.get("out", (None,))[0] is inputs[0]
        kind = Condition if name in _LOGIC else Noisy
        if method != "__call__" or (kwargs and not in_place) or name not in _FUNCTIONS | _LOGIC:
            raise TrueupError(
                f"np.{name} of a noisy value is not a formula we can debias",
                f"use one of {', '.join(sorted(_FUNCTIONS))}",
            )
        parts = [_lift(part, kind) for part in inputs]
        return _combine(parts, (_FUNCTIONS | _LOGIC)[name](*(part.expr for part in parts)))

    def __array__(self, *_: object, **__: object) -> NDArray[Any]:
        raise TrueupError(
            f"{_display(self)} is a formula, not an array of numbers",
            "its .estimate is one; fill or compress masked arrays beside it",
        )

    def __bool__(self) -> bool:
        raise TrueupError(
            f"whether {_display(self)} is true is not known: the values are noisy",
            "ask for .estimate, or use it as a condition: tu.where(condition, a, b)",
        )


class Condition(_Formula):
    """A condition on published values: for :func:`where`, not a truth value."""

    def __repr__(self) -> str:
        return f"<condition {_display(self)}>"


class Noisy(_Formula):
    """A published value, or a formula in published values; see :func:`noisy`."""

    # -- what is asked -----------------------------------------------------------------------------

    @cached_property
    def estimate(self) -> Any:
        """The unbiased estimate: a float, or an array."""
        return self._each(lambda est, x: est(**x))

    @cached_property
    def variance(self) -> Any:
        """The unbiased estimate of its variance."""
        return self._each(lambda est, x: est.variance(**x))

    @cached_property
    def stderr(self) -> Any:
        """The root of the variance, NaN where that is negative."""
        return self._each(lambda est, x: est.stderr(**x))

    def interval(self, level: float = 0.95) -> Any:
        """Return a confidence interval (low, high)."""
        low = self._each(lambda est, x: est.interval(level=level, **x)[0])
        return low, self._each(lambda est, x: est.interval(level=level, **x)[1])

    @property
    def estimator(self) -> Estimator:
        """The estimator behind the estimate, for a formula in which no entry occurs twice."""
        shown = _shown(self.leaves)
        noises = tuple((shown[s].name, leaf.noise) for s, leaf in self.leaves.items())
        domains = tuple((shown[s].name, leaf.domain) for s, leaf in self.leaves.items())
        return _estimator(self.expr.xreplace(shown), noises, domains)

    def _each(self, ask: Callable[[Estimator, Mapping[str, Any]], Any]) -> Any:
        """Return what the estimator says, entry by entry where entries of one object meet.

        Two leaves of one object, say ``n`` and ``n[0]``, are the same statistic in some rows and
        independent ones in the others.
        """
        if self.shape and len({leaf.origin for leaf in self.leaves.values()}) < len(self.leaves):
            entries = [self[i]._each(ask) for i in np.ndindex(self.shape)]
            return np.array(entries).reshape(self.shape)
        shown = _shown(self.leaves)
        x: dict[str, Any] = {shown[s].name: leaf.values for s, leaf in self.leaves.items()}
        x = x if self.shape else {name: float(value) for name, value in x.items()}
        found = ask(self.estimator, x or {DEFAULT: 0.0})
        return np.broadcast_to(found, self.shape).copy() if self.shape else float(found)

    # -- containers --------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Noisy:
        shape = self.shape
        if not shape:
            raise TrueupError("a single noisy value has no entries", "index an array of them")
        replaced, leaves = {}, {}
        for symbol, leaf in self.leaves.items():
            values, index = (
                np.asarray(np.broadcast_to(part, shape)[key]) for part in (leaf.values, leaf.index)
            )
            entries = ",".join(map(str, index.ravel().tolist()))  # equal ones have equal symbols
            twin = sympy.Symbol(f"{leaf.name}[{entries}]{index.shape}#{leaf.origin}", real=True)
            replaced[symbol] = twin
            leaves[twin] = dataclasses.replace(leaf, values=values, index=index)
        return Noisy(self.expr.xreplace(replaced), leaves, np.empty(shape)[key].shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single noisy value has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Noisy]:
        return (self[i] for i in range(len(self)))

    def sum(self, axis: None = None, dtype: None = None, out: None = None) -> Noisy:
        """Return the sum of all entries; ``np.sum`` works too.

        Examples
        --------
        >>> from trueup import Laplace, noisy
        >>> noisy([3.0, 4.5], Laplace(1)).sum().estimate
        7.5
        """
        size = math.prod(self.shape)
        if size > MAX_SUM or not (axis is dtype is out is None):
            raise TrueupError(
                f"a sum of {size} noisy cells along axis {axis} is no formula, of all up to "
                f"{MAX_SUM} cells it is",
                "index it, or sum the estimates, and the variances of independent cells",
            )
        flat = [self[i] for i in np.ndindex(self.shape)] if self.shape else [self]
        total: Noisy = _combine(flat, sympy.Add(*(cell.expr for cell in flat)), ())
        return total

    def __float__(self) -> float:
        raise TrueupError(
            "a noisy value is not a plain number",
            "functions of it are NumPy's, e.g. np.sqrt(n); .estimate is the number at the end, "
            "and a function of that number would be biased again",
        )

    def __repr__(self) -> str:
        try:
            estimates, errors = np.ravel(self.estimate), np.ravel(self.stderr)
        except TrueupError as error:
            return f"<{_display(self)}: {error.message}>"
        shown = [plus_minus(e, s) for e, s in zip(estimates[:6], errors[:6], strict=True)]
        if not self.shape:
            return shown[0]
        return f"[{', '.join(shown)}{', …' if estimates.size > 6 else ''}]"

    def __format__(self, spec: str) -> str:
        """Return one value with its error, both as they are asked for.

        Examples
        --------
        >>> from trueup import Laplace
        >>> f"{noisy(3, Laplace(2)):.1f}"
        '3.0 ± 2.8'
        """
        if not spec or self.shape:
            return repr(self)
        return f"{self.estimate:{spec}} ± {self.stderr:{spec}}"


def plus_minus(estimate: float, error: float) -> str:
    """Return an estimate with its error, to two digits of the error.

    Examples
    --------
    >>> plus_minus(3.4217, 0.3051), plus_minus(10321.0, 1234.0)
    ('3.42 ± 0.31', '10300 ± 1200')
    """
    if not (math.isfinite(error) and error > 0 and math.isfinite(estimate)):
        return f"{estimate:.2f} ± {error:.2f}"
    error = float(f"{error:.1e}")
    digits = 1 - math.floor(math.log10(error))
    places = max(digits, 0)
    return f"{round(estimate, digits):.{places}f} ± {round(error, digits):.{places}f}"


# -- formulas --------------------------------------------------------------------------------------


def _combine(parts: Sequence[_Formula], expr: Any, shape: tuple[int, ...] | None = None) -> Any:
    leaves: Leaves = {}
    for part in parts:
        leaves |= part.leaves
    try:
        shape = np.broadcast_shapes(*(p.shape for p in parts)) if shape is None else shape
    except ValueError:
        raise TrueupError(
            f"the shapes do not match: {', '.join(str(p.shape) for p in parts)}",
            "combine values that broadcast together",
        ) from None
    if expr.has(sympy.zoo, sympy.nan):
        shown = ", ".join(_display(part) for part in parts)
        raise TrueupError(
            f"this has no finite value, whatever the noise: of {shown}",
            "check for a division by 0, or a logarithm of it",
        )
    return (Noisy if isinstance(expr, sympy.Expr) else Condition)(expr, leaves, shape)


def _lift(operand: Any, kind: type[_Formula]) -> _Formula:
    """Return an operand as a number or as a condition, whichever is meant, or refuse it."""
    if not isinstance(operand, _Formula):
        operand = _known(operand)
    if not isinstance(operand, kind):
        wanted = "number" if kind is Noisy else "condition"
        hint = "count with tu.where(condition, 1, 0); compare numbers, e.g. with > 0, == 1"
        raise TrueupError(f"{_display(operand)} is not a {wanted}", hint)
    return operand


def _known(operand: Any) -> _Formula:
    """Return a known number, array, or truth values, as a formula."""
    operand = operand[()] if isinstance(operand, np.ndarray) and not operand.ndim else operand
    if isinstance(operand, (bool, np.bool_)):
        return Condition(sympy.sympify(bool(operand)), {})
    if not np.ndim(operand):
        return Noisy(symbolic(number(operand, "an operand")), {})
    array = np.asanyarray(operand)
    values = np.asarray(column(array.astype(float) if array.dtype == bool else array, "an operand"))
    finite = values[np.isfinite(values)]
    domain = (finite.min(), finite.max()) if finite.size else None
    known = noisy(values, Noiseless(), domain, "w")
    return known != 0 if array.dtype == bool else known


@lru_cache(maxsize=256)  # entries of an array mostly have the same formula
def _estimator(
    expr: sympy.Expr,
    noises: tuple[tuple[str, Noise], ...],
    domains: tuple[tuple[str, Interval], ...],
) -> Estimator:
    return Estimator(Source(expr, None), dict(noises) or {DEFAULT: Noiseless()}, dict(domains))


def _shown(leaves: Leaves) -> dict[sympy.Symbol, sympy.Symbol]:
    """Return the symbols with the user's names, numbered where two values have the same."""
    taken: set[str] = set()
    shown = {}
    for symbol, leaf in leaves.items():
        names = itertools.chain([leaf.name], (f"{leaf.name}_{k}" for k in itertools.count(2)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        shown[symbol] = sympy.Symbol(name, real=True)
    return shown


def _display(value: _Formula) -> str:
    return text(value.expr.xreplace(_shown(value.leaves)))
