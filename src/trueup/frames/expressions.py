"""The narwhals target: a tape as an expression of any dataframe library or engine.

narwhals has +, −, ×, ÷, powers, exp, log, sqrt, sin, cos and cases; the other functions are
composed from these so that no digits are lost. Python functions are refused by name.

Polars has the same names, and its own expressions are made by the same code: narwhals would
translate every step that is used twice twice again.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw

from trueup.errors import TrueupError
from trueup.formula.opaque import Table
from trueup.kernels.grid import nearest
from trueup.kernels.tape import run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.kernels.grid import Grid, Part
    from trueup.kernels.tape import Tape

Expr: TypeAlias = Any
"""An expression of narwhals, or of Polars."""

MOST = 50_000
"""Operations that one expression may have, common ones counted every time."""

_MOST_ENTRIES = 4096


def expression(tape: Tape, inputs: Sequence[Expr], home: Any = None) -> Expr:
    """Return a tape as an expression in its inputs, of the module ``home`` or else of theirs.

    Examples
    --------
    >>> import polars as pl, sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> frame = nw.from_native(pl.DataFrame({"x": [4.0]}))
    >>> frame.select(expression(lower([1 / x - 8 / x**3], [x]), [nw.col("x")])).item()
    0.125
    """
    _check_size(tape)
    home = _home(inputs[0]) if home is None else home
    number = {"const": lambda c: home.lit(c, home.Float64()), "truth": home.lit}
    return run(tape, inputs, _OPERATIONS | number)[0]


def _home(expression: Any) -> Any:
    """Return the module of an expression: narwhals, or Polars itself."""
    return nw if isinstance(expression, nw.Expr) else nw.dependencies.get_polars()


def _check_size(tape: Tape) -> None:
    sizes: list[int] = []
    for step in tape.steps:
        sizes.append(1 + sum(sizes[a] for a in step.args))
    size = sizes[tape.outputs[0]]
    if size > MOST:
        raise TrueupError(
            f"the formula is too long for an expression ({size} operations)",
            "collect the frame first: in memory it goes through the kernels",
        )


def _lifted(value: Any, home: Any) -> Any:
    return home.lit(value, home.Float64()) if isinstance(value, (float, int)) else value


# -- functions that narwhals lacks -----------------------------------------------------------------


def _where(condition: Any, a: Any, b: Any) -> Any:
    home = _home(condition)
    return home.when(condition).then(_lifted(a, home)).otherwise(_lifted(b, home))


def _series(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Return x·Σ cᵢ x²ⁱ."""
    square: Expr = x * x
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * square + c
    return total * x


_SINH = [1 / math.factorial(2 * i + 1) for i in range(9)]


def _sinh(x: Expr) -> Expr:
    wide = (x.exp() - (-x).exp()) * 0.5
    return _where(x.abs() < 1, _series(x, _SINH), wide)


def _cosh(x: Expr) -> Expr:
    return (x.exp() + (-x).exp()) * 0.5


def _tanh(x: Expr) -> Expr:
    e = (x.abs() * -2.0).exp()
    wide = (1 - e) / (1 + e)
    return _where(x.abs() < 1, _series(x, _SINH) / _cosh(x), _where(x < 0, -wide, wide))


def _log1p(x: Expr) -> Expr:
    """Return log(1 + x): the rounding of 1 + x is made good by x/((1 + x) − 1)."""
    moved = 1.0 + x
    return _where(moved == 1.0, x, moved.log() * x / (moved - 1.0))


def _asinh(x: Expr) -> Expr:
    a = x.abs()
    near = _log1p(a + a * a / (1.0 + (a * a + 1.0).sqrt()))
    size = _where(a < 1e100, near, a.log() + math.log(2))
    return _where(x < 0, -size, size)


def _acosh(x: Expr) -> Expr:
    t = x - 1.0
    return _where(x < 1e100, _log1p(t + (t * (x + 1.0)).sqrt()), x.log() + math.log(2))


def _atanh(x: Expr) -> Expr:
    a = x.abs()
    size = _log1p(2.0 * a / (1.0 - a)) * 0.5
    return _where(x < 0, -size, size)


_ATAN = [(-1) ** i / (2 * i + 1) for i in range(24)]


def _atan(x: Expr) -> Expr:
    """Return atan x: beyond 1 by its reciprocal, then half the angle, then the power series."""
    a = x.abs()
    y = _where(a > 1, 1.0 / a, a)
    angle = 2.0 * _series(y / (1.0 + (1.0 + y * y).sqrt()), _ATAN)
    size = _where(a > 1, math.pi / 2 - angle, angle)
    return _where(x < 0, -size, size)


def _asin(x: Expr) -> Expr:
    return _atan(x / ((1.0 - x) * (1.0 + x)).sqrt())


def _acos(x: Expr) -> Expr:
    return 2.0 * _atan(((1.0 - x) / (1.0 + x)).sqrt())


def _sign(x: Expr) -> Expr:
    return _where(x > 0, 1.0, _where(x < 0, -1.0, 0.0))


def _laguerre(coefficients: Sequence[float], t: Expr) -> Expr:
    raise TrueupError(
        f"an extension of degree {len(coefficients) - 1} cannot run inside an engine",
        "collect the frame first: in memory it goes through the kernels",
    )


def _table(implementation: Any, *args: Expr) -> Expr:
    """Return a table as cases, halved and halved again; other Python functions are refused."""
    if not isinstance(implementation, Table):
        name = getattr(implementation, "__name__", "it")
        raise TrueupError(
            f"the Python function {name} cannot run inside an engine",
            "write it as a formula or a table {k: value}, or collect the frame first",
        )
    if len(implementation.values) > _MOST_ENTRIES:
        raise TrueupError(
            f"a table of {len(implementation.values) - 2} entries is too long for an expression, "
            f"at most {_MOST_ENTRIES - 2}",
            "collect the frame first: in memory it goes through the kernels",
        )
    values = [float(v) for v in implementation.values]
    return _halved(args[0], implementation.low - 1, values)


def _halved(k: Expr, low: int, values: Sequence[float]) -> Any:
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    left, right = _halved(k, low, values[:middle]), _halved(k, low + middle, values[middle:])
    return _where(k < low + middle, left, right)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.invert,
    "where": _where,
    "laguerre": _laguerre,
    "call": _table,
    "max": lambda a, b: _home(a).max_horizontal(a, b),
    "min": lambda a, b: _home(a).min_horizontal(a, b),
    **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    **{name: operator.methodcaller(name) for name in ("exp", "log", "sqrt", "sin", "cos", "abs")},
    "floor": operator.methodcaller("floor"),
    "asin": _asin,
    "acos": _acos,
    "atan": _atan,
    "tan": lambda x: x.sin() / x.cos(),
    "sign": _sign,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
}


# -- regions ---------------------------------------------------------------------------------------


def of_grid(
    grid: Grid, columns: Sequence[str], largest: Sequence[float] = (), home: Any = nw
) -> Any:
    """Return a grid as an expression of columns: those of the statistics, then of the scales.

    A row is null where an input is null, where integer noise has left a broken number, and where
    a scale is not positive and below its limit; it is NaN where an input is.
    """
    inputs = [home.col(name).cast(home.Float64()) for name in columns]
    parts = [_regions(part, inputs, grid.whole, ()) for part in grid.parts]
    total = sum(parts[1:], parts[0])
    scales = inputs[len(columns) - len(largest) :] if largest else []
    proper = [~x.is_null() for x in inputs]
    proper += [(inputs[i].floor() == inputs[i]) | inputs[i].is_nan() for i in sorted(grid.whole)]
    proper += [scale > 0 for scale in scales]
    proper += [s < limit for s, limit in zip(scales, largest, strict=True) if limit < math.inf]
    nulls = {"ignore_nulls": True} if home is nw else {}
    undefined = home.any_horizontal(*(x.is_nan() for x in inputs), **nulls)
    defined = _where(undefined, math.nan, total)
    return home.when(home.all_horizontal(*proper, **nulls)).then(defined)


def root(variance: Any) -> Any:
    """Return the standard error: null where the variance is negative."""
    return _home(variance).when(variance >= 0).then(variance.abs().sqrt())


def _regions(
    part: Part, inputs: Sequence[Expr], integers: frozenset[int], chosen: tuple[int, ...]
) -> Expr:
    """Return a part as cases: below, inside or above each bound."""
    if len(chosen) == len(part.bounds):
        own = [inputs[i] for i in part.reads]
        return expression(part.piece(chosen).guarded, own, _home(inputs[0]))
    bound = part.bounds[len(chosen)]
    x, result = inputs[bound.input], _regions(part, inputs, integers, (*chosen, 0))
    whole = bound.input in integers
    if bound.above:
        beyond = _regions(part, inputs, integers, (*chosen, bound.above))
        result = _where(_beyond(operator.ge, x, bound.high, whole), beyond, result)
    if bound.below:
        beyond = _regions(part, inputs, integers, (*chosen, bound.below))
        result = _where(_beyond(operator.le, x, bound.low, whole), beyond, result)
    return result


def _beyond(compare: Callable[..., Any], x: Expr, bound: float, whole: bool) -> Expr:
    """Return whether x is at or beyond a bound, or what single precision holds for the bound."""
    near = nearest(bound)
    beyond: Expr = compare(x, bound)
    if whole or near is None or compare(near, bound):
        return beyond
    found: Expr = beyond | (x == near)
    return found
