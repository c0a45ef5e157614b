"""What the user passes: formula, noise, domain, and values by name, all checked here."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import reprlib
import warnings
from collections.abc import Mapping
from itertools import pairwise
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.errors import BoundWarning, TrueupError
from trueup.exact import number, symbolic
from trueup.formula import given_derivatives, source
from trueup.formula.linear import both, conditions, tightened
from trueup.formula.substitution import denominators
from trueup.formula.text import text
from trueup.inverse.signs import sign
from trueup.inverse.solve import Statistic
from trueup.noise.base import Noise
from trueup.noise.elementwise import check_unmasked
from trueup.noise.extension import check_degree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from trueup.formula.linear import Box, Condition

NUMBER = (float, int, np.floating)
_HUGE = 2**1000


def by_statistic(value: Any, what: str) -> Mapping[str, Any]:
    """Return the columns of the statistics, none if they are not given."""
    if not isinstance(value, (Mapping, type(None))):
        raise TrueupError(
            f"{what} must map statistics to columns, got {value!r}", f"{what}={{'n': 'emp'}}"
        )
    return value or {}


def read_level(value: Any, name: str = "level") -> float:
    """Return how often an interval covers, or refuse it."""
    if isinstance(value, NUMBER) and not isinstance(value, bool) and 0 < value < 1:
        return float(value)
    raise TrueupError(f"{name} must be a level between 0 and 1, got {value!r}", f"e.g. {name}=0.95")


def values_of(names: Sequence[str], x: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Return the values passed to a call, in the order of the statistics."""
    if len(x) == len(names) == 1 and not named:
        return [column(x[0], names[0])]
    missing, unknown = sorted({*names} - {*named}), sorted({*named} - {*names})
    if x or missing or unknown:
        problem = f"missing {', '.join(missing)}" if missing else f"unknown {', '.join(unknown)}"
        raise TrueupError(
            f"{f'{len(x)} values without names' if x else problem}: the statistics are "
            f"{', '.join(names) or 'none'}",
            f"call with {', '.join(f'{n}=...' for n in names)}",
        )
    _check_indexes(named)
    return [column(named[n], n) for n in names]


def _check_indexes(named: Mapping[str, Any]) -> None:
    """Refuse pandas Series whose rows have different labels: side by side they do not belong."""
    indexes: dict[str, Any] = {name: getattr(value, "index", None) for name, value in named.items()}
    labelled = {name: index for name, index in indexes.items() if hasattr(index, "equals")}
    for (one, first), (two, second) in pairwise(labelled.items()):
        if len(first) == len(second) and not first.equals(second):
            raise TrueupError(
                f"the Series {one} and {two} have different indexes: which rows belong together "
                "is not clear",
                "align them first (one.align(two)), or pass .to_numpy() to go by position",
            )


def column(value: Any, name: str) -> Any:
    """Return a number, or an array of numbers, or refuse the value.

    A number in less than double precision stays what it is: it may be a bound, rounded.
    """
    if type(value) in NUMBER and abs(value) < _HUGE:
        return value
    if not isinstance(value, (np.ndarray, Number, list, tuple, str)):
        _check_table(value, name)
    check_unmasked(value, name)
    array = _numbers(value)
    if array.dtype.kind not in "iuf":
        raise TrueupError(
            f"{name} must be a number or an array of numbers, got {reprlib.repr(value)}",
            "pass floats, integers, or arrays of them",
        )
    if array.ndim or isinstance(value, np.ndarray):
        return array
    return array[()] if array.dtype.kind == "f" and array.dtype.itemsize < 8 else float(array)


def _numbers(value: Any) -> NDArray[Any]:
    """Return a value as an array, of another kind than numbers if it is none; NA becomes NaN."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        array: NDArray[Any] = np.asarray("" if value is None else value)
        if array.dtype.kind != "O" or any(isinstance(v, (str, bytes)) for v in array.flat):
            return array
        missing = np.array([type(v).__name__ == "NAType" for v in array.flat], bool)
        return np.where(missing.reshape(array.shape), np.nan, array).astype(float)
    return np.array("")


def _check_table(value: Any, name: str) -> None:
    """Refuse a data frame, and a column of text."""
    from narwhals import dependencies, from_native

    if dependencies.is_into_dataframe(value):
        columns = from_native(value, eager_only=True).columns
        named = name if name in columns or not columns else columns[0]
        raise TrueupError(
            f"{name} must be one column, got a table with the columns {', '.join(columns[:9])}",
            f"name the column: {name}=frame[{named!r}], or tu.debias(frame, ...) for a whole table",
        )
    if dependencies.is_into_series(value):
        series = from_native(value, series_only=True)
        if not (series.dtype.is_numeric() or str(series.dtype) in ("Object", "Unknown")):
            raise TrueupError(
                f"the column {series.name!r} given for {name} holds {series.dtype}, not numbers",
                f"name a column of numbers: {name}=frame[...]",
            )


def at_truth(
    function: Callable[[dict[sympy.Symbol, float]], float],
    statistics: Sequence[Statistic],
    q: Sequence[Any],
    named: Mapping[str, Any],
) -> Any:
    """Return a function of the true values, at one point or row by row."""
    symbols = [s.symbol for s in statistics]
    given = values_of([s.name for s in symbols], q, named)
    values = [_truth(v, s) for v, s in zip(given, statistics, strict=True)]
    columns = broadcast(symbols, values)
    rows = zip(*(c.ravel().tolist() for c in columns), strict=True)
    out = [function(dict(zip(symbols, map(float, row), strict=True))) for row in rows]
    if all(isinstance(v, NUMBER) for v in given):
        return out[0]
    return np.array(out).reshape(columns[0].shape)


def _truth(value: Any, statistic: Statistic) -> NDArray[Any]:
    """Return true values."""
    values = np.asarray(value)
    q = np.asarray(values, float)
    broken = np.isfinite(q) & (q != np.floor(q))
    if statistic.noise.lattice and broken.any():
        raise TrueupError(
            f"the true value of {statistic.symbol.name} must be an integer under integer noise, "
            f"got {float(q[broken][0])!r}",
            "give integers, or describe the noise as continuous",
        )
    return values


def broadcast(symbols: Sequence[sympy.Symbol], values: Sequence[Any]) -> Sequence[NDArray[Any]]:
    """Return the values in a common shape, or refuse them."""
    try:
        return np.broadcast_arrays(*map(np.asarray, values))
    except ValueError:
        shapes = ", ".join(f"{s.name}: {np.shape(v)}" for s, v in zip(symbols, values, strict=True))
        raise TrueupError(
            f"the shapes do not match: {shapes}", "pass arrays that broadcast together"
        ) from None


def read_arguments(
    f: object, noise: object, domain: object, derivatives: Any = None
) -> tuple[source.Source, tuple[Statistic, ...], tuple[Condition, ...]]:
    """Return the formula, its statistics, and the conditions between them, all checked.

    A condition that names other statistics too is left out, after a warning.
    """
    several = {} if isinstance(noise, Noise) else _noises(noise)
    src = source.read(f, tuple(several) or None, derivatives)
    used = sorted(s.name for s in src.expr.free_symbols)
    noises = several or _noises({used[0] if used else source.DEFAULT: noise})
    unknown = ", ".join(name for name in used if name not in noises)
    if unknown:
        raise TrueupError(
            f"no noise is given for {unknown} in {text(src.expr)}",
            f"give one for each: noise={{{', '.join(f'{name!r}: ...' for name in used)}}}",
        )
    box, tied = read_known(domain, noises)
    read = [name for name in noises if name in used or not used]
    statistics = (_statistic(n, noises[n], box.get(n, Interval()), src) for n in read)
    for condition in tied:
        if not condition.names <= {*read}:
            warnings.warn(
                f"the condition {condition} is used only for the bounds that follow from it: the "
                f"formula does not read {', '.join(sorted(condition.names - {*read}))}",
                BoundWarning,
                stacklevel=4,  # unbiased() is called by the user
            )
    return src, tuple(statistics), tuple(c for c in tied if c.names <= {*read})


def read_known(domain: object, noises: Mapping[str, Noise]) -> tuple[Box, tuple[Condition, ...]]:
    """Return the bounds of each statistic, and the conditions between several of them.

    Examples
    --------
    >>> from trueup.noise.laplace import Laplace
    >>> noises = {"s": Laplace(1), "n": Laplace(1)}
    >>> sorted(read_known("0 <= s <= n, n >= 1", noises)[0].items())
    [('n', Interval(1, None)), ('s', Interval(0, None))]
    """
    integers = {name for name, law in noises.items() if law.lattice}
    if isinstance(domain, str):
        box, tied = conditions(domain, integers)
    elif isinstance(domain, Mapping):
        formulas = {k: v for k, v in domain.items() if k not in noises and {*str(k)} & {*"-+*/"}}
        box, tied = conditions(formulas)
        for name in (k for k in domain if k not in formulas):
            box[name] = both(name, box.get(name, Interval()), Interval.read(domain[name]))
    elif domain is None or len(noises) == 1:
        return {next(iter(noises)): Interval.read(domain)}, ()
    else:
        raise TrueupError(
            f"the domain {domain!r} does not say which statistic it bounds",
            f"give it by name: domain={{{next(iter(noises))!r}: {domain!r}}}",
        )
    without = {*map(str, box)}.union(*(c.names for c in tied)) - {*noises}
    if without:
        raise TrueupError(
            f"the domain names {', '.join(sorted(without))}, which has no noise",
            f"the statistics are {', '.join(noises)}",
        )
    return tightened(box, tied, integers) if tied else (box, ())


def _noises(noise: object) -> dict[str, Noise]:
    hint = "give a noise such as Laplace(2), or {'s': Laplace(2), 'n': DiscreteLaplace(2)}"
    if not isinstance(noise, Mapping) or not noise:
        raise TrueupError(f"noise must be a noise or a dict of them, got {noise!r}", hint)
    for name, value in noise.items():
        if not isinstance(name, str) or not isinstance(value, Noise):
            raise TrueupError(f"the noise of {name!r} must be a noise, got {value!r}", hint)
    return dict(noise)


def _statistic(name: str, noise: Noise, domain: Interval, src: source.Source) -> Statistic:
    domain = domain.integers() if noise.lattice else domain
    whole = noise.lattice or (domain.lattice and noise.many_points == "cells")
    if src.domain is not None or src.note:
        _check_function(src.expr, domain, noise, whole)
    if src.domain is not None:
        table, domain = src.domain, src.domain if domain.bounds == (None, None) else domain
        if domain.low < table.low or domain.high > table.high:
            raise TrueupError(
                f"the table covers {table} but the domain is {domain}",
                "extend the table, or narrow the domain",
            )
    return Statistic(sympy.Symbol(name, real=True), noise, domain)


def _check_function(f: sympy.Expr, domain: Interval, noise: Noise, whole: bool) -> None:
    """Refuse a function, or a table, without derivatives that are needed, or with wrong ones."""
    functions, kind = [], type(f)
    while kind is not None:
        functions.append(kind.implementation)
        kind = kind.derivative
    if len(functions) < 3 and not whole:
        raise TrueupError(
            f"{f}, known by its values only, needs its first and second derivative under "
            f"continuous noise ({noise!r})",
            "write a function of several statistics as a formula"
            if len(f.free_symbols) > 1
            else "give derivatives=(f1, f2), write the function as a formula, or say that the "
            "statistic is an integer: domain=Integers(low, high), for Laplace noise",
        )
    spread = 0.0
    with contextlib.suppress(TrueupError):
        spread = math.sqrt(noise.variance)
    given_derivatives.check(functions, domain, spread if 0 < spread < math.inf else 1.0)


def check_extension(extension: object, statistics: Sequence[Statistic]) -> object:
    """Return the extension if some statistic can have it."""
    if extension == "optimal":
        return extension
    degree = check_degree(extension)
    bounded = [s for s in statistics if s.domain.bounds != (None, None)] or statistics
    if not any(s.noise.by_curvature for s in bounded):
        raise TrueupError(
            f"a polynomial extension (extension={degree}) is for Laplace noise only",
            "leave extension='optimal', which has the smallest variance",
        )
    return degree


def unhelpful(
    f: sympy.Expr, condition: Condition, statistics: Sequence[Statistic], *, empty: bool
) -> str:
    """Return why a condition would not lower the variance of an estimator, "" if it does.

    Beyond a slanted bound f is bent, which is made for quotients: a polynomial needs no bending,
    and where n may be 0 only s ≤ n on the integers bends it in the right way.
    """
    own = [s for s in statistics if s.symbol.name in condition.names]
    fits = {abs(c) for _, c in condition.terms} == {1} and all(s.noise.lattice for s in own)
    if len({c > 0 for _, c in condition.terms}) == 1:  # a corner
        return ""
    if f.is_polynomial(*(s.symbol for s in own)):
        return "it would raise the variance of a polynomial"
    return "with empty= only s <= n between integers helps" if empty and not fits else ""


def with_convention(
    src: source.Source,
    statistics: Sequence[Statistic],
    tied: Sequence[Condition],
    empty: object,
) -> source.Source:
    """Return a formula with a value for empty cells, where its denominator is 0."""
    value, shown = symbolic(number(empty, "empty")), text(src.expr)
    found = denominators(src.expr)
    if not found:
        raise TrueupError(
            f"{shown} divides by nothing, so no cell is empty for it",
            "leave empty out, give a quotient such as 's/n', or write where(n == 0, 0, log(n))",
        )
    integers = {s.symbol for s in statistics if s.noise.lattice}
    box = {s.symbol.name: s.domain for s in statistics}
    for d in found:
        problem = "the stated bounds exclude that" if excludes(d, box, tied) else ""
        if not d.free_symbols <= integers:
            problem = "this needs integer noise: under continuous noise no estimate can jump"
        if problem:
            raise TrueupError(
                f"empty={empty!r} is what {shown} is where {text(d)} = 0, but {problem}",
                "use DiscreteLaplace noise and bounds that reach 0, or leave empty out",
            )
    cell = sympy.Or(*(sympy.Eq(d, 0) for d in found))
    expr = sympy.Piecewise((value, cell), (src.expr, True), evaluate=False)
    return dataclasses.replace(src, expr=expr, record=src.record and text(expr))


def excludes(d: sympy.Expr, box: Mapping[str, Interval], tied: Sequence[Condition]) -> bool:
    """Whether bounds or conditions keep a denominator from being 0."""
    named = {symbol: box[symbol.name] for symbol in d.free_symbols}
    own = [c for c in tied if c.names <= {*map(str, d.free_symbols)}]
    return bool(sign(d, named, tied=own))
