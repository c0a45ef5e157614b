"""A function given region by region: each statistic is below, inside or above its bounds."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.formula.limits import is_long
from trueup.kernels.blocks import Block, Program, is_total, sweep
from trueup.kernels.calls import function
from trueup.kernels.compiled import Compilation
from trueup.kernels.limits import Range, bounded, guarded, limits
from trueup.kernels.tape import Tape, lower

Region = tuple[int, ...]

_SYMPY = threading.RLock()  # symbolic work is done by one thread at a time
_MOST_WORK = 8_000  # regions times operations to be written down: a millisecond each, once
_SHORT = 200  # parts up to which it pays to look for common factors

Formula: TypeAlias = "tuple[Sequence[Bounds], tuple[int, ...], Callable[[Region], sympy.Expr]]"
"""The bounds of cells, the inputs that are read, and the expression on each region."""
Products: TypeAlias = "Sequence[Sequence[tuple[Formula, int]]]"
"""A sum of products of powers."""
Summand: TypeAlias = (
    "Formula | tuple[Sequence[Bounds], tuple[int, ...], Callable[[Region], sympy.Expr], Products]"
)


class Bounds(NamedTuple):
    """Where an input's branches begin; a missing branch has an infinite bound.

    ``below`` and ``above`` are the branch indices for x ≤ low and x ≥ high; 0 is inside.
    """

    input: int
    low: float
    high: float
    below: int
    above: int

    def branch(self, x: float) -> int:
        """Return the branch of one number."""
        if x <= self.low:
            return self.below
        return self.above if x >= self.high else 0

    def range(self, branch: int, whole: bool) -> Range:
        """Return between which numbers a branch lies."""
        if branch:
            return (-math.inf, self.low) if branch == self.below else (self.high, math.inf)
        return self.low + whole, self.high - whole


class Piece:
    """One region's expression, ready for numbers and for arrays; NaN beyond its limits."""

    def __init__(
        self, expr: sympy.Expr, inputs: tuple[sympy.Symbol, ...], ranges: tuple[Range, ...]
    ) -> None:
        tidy = expr if is_long(expr, _SHORT) else sympy.factor_terms(expr)
        self.tape: Tape = lower([tidy], inputs)
        self.limits = limits(self.tape, ranges)
        self.guarded = guarded(self.tape, self.limits)
        self.is_total = is_total(self.tape)

    @cached_property
    def number(self) -> Callable[..., float]:
        """The expression as a function of numbers."""
        return function(self.guarded)

    @cached_property
    def _within(self) -> Program:
        return Program(bounded(self.tape, self.limits))

    @cached_property
    def _anywhere(self) -> Program:
        return Program(self.guarded)

    def block(self, columns: Sequence[Block], out: Block) -> None:
        """Fill one block."""
        most = -1.0 if self.limits.tiny else self.limits.inputs
        inside = len(out) and all(c.max() <= most and c.min() >= -most for c in columns)
        (self._within if inside else self._anywhere)(columns, out)


piece = lru_cache(maxsize=1024)(Piece)
"""A piece, lowered once for all estimators that share it."""


class Part:
    """One summand: the bounds of its cells and its expression on each region.

    Where its statistics separate, ``products`` are what it is the sum of, each a list of factors
    with their powers: those are evaluated.
    """

    def __init__(
        self,
        inputs: tuple[sympy.Symbol, ...],
        whole: frozenset[int],
        bounds: Sequence[Bounds],
        reads: tuple[int, ...],
        expression: Callable[[Region], sympy.Expr],
        products: Products = (),
    ) -> None:
        self.products = [[(Part(inputs, whole, *f), n) for f, n in terms] for terms in products]
        self.bounds, self.reads, self.whole = list(bounds), reads, whole
        self.symbols = tuple(inputs[i] for i in reads)
        self.expression = expression
        self.pieces: dict[Region, Piece] = {}
        self.inside: Region = tuple(0 for _ in self.bounds)

    def piece(self, region: Region) -> Piece:
        """Return what is evaluated on a region, made when first entered."""
        if region not in self.pieces:
            with _SYMPY:
                ranges = tuple(self._range(i, region) for i in self.reads)
                self.pieces[region] = piece(self.expression(region), self.symbols, ranges)
        return self.pieces[region]

    def _range(self, i: int, region: Region) -> Range:
        ranges = [
            b.range(branch, i in self.whole)
            for b, branch in zip(self.bounds, region, strict=True)
            if b.input == i
        ]
        return ranges[0] if ranges else (-math.inf, math.inf)

    def number(self, values: Sequence[float]) -> float:
        """Return the part at one point."""
        if self.products:
            terms = ([f.number(values) for f, n in t for _ in range(n)] for t in self.products)
            return sum(math.prod(factors) for factors in terms)
        region = tuple([b.branch(values[b.input]) for b in self.bounds])
        found = self.pieces.get(region) or self.piece(region)
        return found.number(*[values[i] for i in self.reads])

    def block(self, columns: Sequence[Block], out: Block) -> None:
        """Fill one block: everything as if inside, then what is not."""
        if self.products:
            self._multiplied(columns, out)
            return
        own = [columns[i] for i in self.reads]
        outside = list(self._outside(columns))
        main = self.piece(self.inside)
        self._check_work(main, [region for region, _ in outside if region not in self.pieces])
        if main.is_total or not outside:
            main.block(own, out)
        else:
            outside.append((self.inside, ~np.logical_or.reduce([rows for _, rows in outside])))
        for region, rows in outside:
            some = np.empty(int(rows.sum()))
            self.piece(region).block([column[rows] for column in own], some)
            out[rows] = some

    def _multiplied(self, columns: Sequence[Block], out: Block) -> None:
        """Fill one block with the sum of the products."""
        out[...] = 0.0
        total, own = np.empty(len(out)), np.empty(len(out))
        for factors in self.products:
            total[...] = 1.0
            for factor, n in factors:
                factor.block(columns, own)
                for _ in range(n):
                    total *= own
            out += total

    def _check_work(self, main: Piece, new: Sequence[Region]) -> None:
        """Refuse rows in so many regions at once that their formulas take long to write down."""
        if len(new) * len(main.tape.steps) > _MOST_WORK:
            raise TrueupError(
                f"the values of {len(self.bounds)} statistics lie below and above their bounds in "
                f"{len(new)} ways, and each needs a formula of its own, of some "
                f"{len(main.tape.steps)} operations: too many to write down",
                "publish totals with a noise of their own, leave bounds out, or debias parts that "
                "are then added",
            )

    def _outside(self, columns: Sequence[Block]) -> Iterator[tuple[Region, Block]]:
        """Yield every region that occurs, other than the inside, with its rows."""
        sides = [
            (i, branch, rows)
            for i, b in enumerate(self.bounds)
            for branch, rows in _beyond(b, columns[b.input])
        ]
        cells = range(len(self.bounds))
        if len({i for i, _, _ in sides}) == 1:
            yield from ((tuple(b * (i == j) for j in cells), rows) for i, b, rows in sides)
        elif sides:
            codes = np.zeros(len(sides[0][2]), np.intp)
            for i, branch, rows in sides:
                codes[rows] += branch * 3**i
            for code in np.flatnonzero(np.bincount(codes))[int(not codes.all()) :]:
                yield tuple(int(code) // 3**i % 3 for i in cells), codes == code


def _beyond(b: Bounds, column: Block) -> Iterator[tuple[int, Block]]:
    """Yield the branches beyond the bounds of an input that occur, with their rows."""
    for branch, compare, bound in (
        (b.below, np.less_equal, b.low),
        (b.above, np.greater_equal, b.high),
    ):
        if branch:
            rows = compare(column, bound)
            if rows.any():
                yield branch, rows


class Grid:
    """A sum of region-wise functions of common inputs; a region is lowered when first entered.

    Parameters
    ----------
    inputs
        The statistics, in the order in which values are passed.
    parts
        For each summand the bounds of its cells, the inputs it reads, and its expression on a
        region; then, where its statistics separate, the products whose sum it is, each a list of
        such tuples with their powers.
    whole
        The inputs that must be whole numbers.
    """

    def __init__(
        self,
        inputs: tuple[sympy.Symbol, ...],
        parts: Sequence[Summand],
        whole: frozenset[int],
    ) -> None:
        self.inputs = inputs
        self.whole = whole
        self.parts = [Part(inputs, whole, *part) for part in parts]
        self.compilations: dict[tuple[Grid | str, ...], Compilation] = {}
        self.unread = set(range(len(inputs))) - {i for part in self.parts for i in part.reads}

    def number(self, *values: float) -> float:
        """Return the function at one point, NaN where it is not finite."""
        for i, x in enumerate(values):
            if x != x:
                return math.nan
            if i in self.whole and math.isfinite(x) and not x.is_integer():
                raise _not_whole(self.inputs[i], x)
        try:
            result = sum([part.number(values) for part in self.parts])
        except (ArithmeticError, ValueError):  # Python raises where NumPy gives NaN or ∞
            out = np.empty(1)
            with np.errstate(all="ignore"):
                self.block([np.array([x]) for x in values], out)
            result = float(out[0])
        return result if math.isfinite(result) else math.nan

    def block(self, columns: Sequence[Block], out: Block) -> None:
        """Fill one block of doubles, NaN where the function is not finite."""
        self.parts[0].block(columns, out)
        if len(self.parts) > 1:
            extra = np.empty(len(out))
            for part in self.parts[1:]:
                part.block(columns, extra)
                out += extra
        for i in self.unread:
            out[np.isnan(columns[i])] = np.nan
        finite = np.isfinite(out)
        if not finite.all():
            out[~finite] = np.nan

    def check_whole(self, columns: Sequence[Block], which: Iterable[int]) -> None:
        """Refuse what is not an integer where integers are published."""
        for i in which:
            broken = np.abs(np.floor(columns[i]) - columns[i]) > 0
            if broken.any():
                raise _not_whole(self.inputs[i], float(columns[i][broken][0]))

    def compilation(self, grids: Sequence[Grid], outputs: Sequence[str]) -> Compilation:
        """Return the compiled form of outputs of which this grid makes the first."""
        key: tuple[Grid | str, ...] = (*grids, *outputs)
        if key not in self.compilations:
            self.compilations[key] = Compilation(grids, outputs)
        return self.compilations[key]

    def ends(self, i: int) -> set[float]:
        """Return the bounds at which branches of an input begin."""
        bounds = [b for part in self.parts for b in part.bounds if b.input == i]
        return {end for b in bounds for end in (b.low, b.high) if math.isfinite(end)}


def columns(
    value: Grid | None,
    variance: Grid | None,
    arrays: Sequence[Block],
    outputs: Sequence[str],
    dtype: np.dtype[Any] | None = None,
) -> list[Block]:
    """Return what is asked of "value", "variance" and "stderr", in one pass over the arrays.

    Parameters
    ----------
    value, variance
        The grids of the estimator and of its variance, on the same inputs; one that no output
        needs may be None.
    arrays
        One for each input; they broadcast.
    outputs
        The names of the columns wanted, in the order in which they are returned.
    dtype
        Of the columns; by default the common one of the arrays, or double for whole numbers.

    Examples
    --------
    >>> x = sympy.Symbol("x", real=True)
    >>> half = Grid((x,), [([], (0,), lambda region: x / 2)], frozenset())
    >>> columns(half, half, [np.array([2, 8])], ["value", "stderr"])
    [array([1., 4.]), array([1., 2.])]
    """
    chosen = [variance if name != "value" else value for name in outputs]
    grids = [g for g in chosen if g is not None]
    dtype = dtype or common_dtype(arrays)
    arrays = [at_bounds(array, grids[0].ends(i)) for i, array in enumerate(arrays)]
    floats = {i for i, a in enumerate(arrays) if not np.issubdtype(a.dtype, np.integer)}
    whole = sorted(grids[0].whole & floats)

    def run(inputs: list[Block], outs: list[Block]) -> None:
        grids[0].check_whole(inputs, whole)
        done: dict[Grid, Block] = {}
        for grid, out in zip(grids, outs, strict=True):
            if grid in done:
                out[...] = done[grid]
            else:
                grid.block(inputs, out)
                done[grid] = out
        for name, out in zip(outputs, outs, strict=True):
            if name == "stderr":
                np.sqrt(out, out=out)

    rows = math.prod(np.broadcast_shapes(*(a.shape for a in arrays)))
    compilation = grids[0].compilation(grids, outputs)
    if not compilation.ready(rows):
        return sweep(run, arrays, len(outputs), dtype)

    def run_compiled(inputs: list[Block], outs: list[Block]) -> None:
        grids[0].check_whole(inputs, whole)
        compilation(inputs, outs)

    return sweep(run_compiled, arrays, len(outputs), dtype, compilation.rows_at_a_time)


def common_dtype(arrays: Sequence[Block]) -> np.dtype[Any]:
    """Return the dtype of results: that of the arrays if they are of floats, double otherwise.

    Half precision ends at 65,504, which the square of 300 passes: it comes back as single.
    """
    dtype = np.result_type(*arrays) if arrays else np.dtype(float)
    return np.promote_types(dtype, np.float32) if dtype.kind == "f" else np.dtype(float)


def _not_whole(symbol: sympy.Symbol, x: float) -> TrueupError:
    return TrueupError(
        f"{symbol.name} has integer noise, so its published values are whole numbers, got {x!r}",
        "check the column, or describe the noise as continuous, e.g. Laplace(scale)",
    )


def at_bounds(array: Block, bounds: Iterable[float]) -> Block:
    """Return the numbers, those that a narrow float holds for a bound replaced by the bound.

    A release clamped to 0.1 and stored in single precision holds 0.100000001490116, which is above
    the bound although it lies at it.

    Examples
    --------
    >>> at_bounds(np.array([0.1, 0.25], "f4"), [0.1])
    array([0.1 , 0.25])
    """
    if array.dtype.kind != "f" or array.dtype.itemsize >= 8:
        return array
    narrow = array
    for bound in bounds:
        near = nearest(bound, narrow.dtype.type)
        if near is not None and (at := narrow == near).any():
            array = array.astype(float) if array is narrow else array
            array[at] = bound
    return array


def nearest(bound: float, kind: type[Any] = np.float32) -> float | None:
    """Return what a narrow float holds for a bound, None if that is the bound or not finite.

    Examples
    --------
    >>> nearest(0.1), nearest(0.5)
    (0.10000000149011612, None)
    """
    with np.errstate(over="ignore", under="ignore"):
        near = float(kind(bound))
    return near if near != bound and math.isfinite(near) else None
