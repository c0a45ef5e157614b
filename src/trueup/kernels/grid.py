"""Evaluate a function given region by region: each cell is below, inside or above its bounds."""

from __future__ import annotations

import math
import threading
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.formula.limits import is_long
from trueup.formula.opaque import Opaque
from trueup.kernels.compiled import Compilation
from trueup.kernels.evaluate import RepairedProgram
from trueup.kernels.interpreted import BLOCK, scalar
from trueup.kernels.sweep import cores, sweep
from trueup.kernels.tape import Tape, lower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from trueup.kernels.sweep import Block, Run, Worker

Region = tuple[int, ...]

_SYMPY = threading.RLock()  # symbolic work is done by one thread at a time
_MANY = 100_000  # rows from which it pays to use several threads
_SHARED = 65_536  # rows per block of NumPy's then: threads wait for the interpreter in between
_FEW = 4  # and more threads than this would only wait
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
        """Return the branch of one number (NaN counts as inside, and stays NaN there)."""
        if x <= self.low:
            return self.below
        return self.above if x >= self.high else 0


class Piece:
    """One region's expression, ready for numbers and for arrays when asked for one."""

    def __init__(self, expr: sympy.Expr, inputs: tuple[sympy.Symbol, ...]) -> None:
        tidy = expr if is_long(expr, _SHORT) else sympy.factor_terms(expr)
        self.expr, self.inputs = expr, inputs
        self.tape: Tape = lower([tidy], inputs)
        self.constant = self.tape.constant
        self.total = not expr.has(Opaque)  # can be evaluated anywhere, if only to NaN
        self.passes_nan = not expr.has(sympy.Piecewise, Opaque) and expr.free_symbols == {*inputs}

    @cached_property
    def number(self) -> Callable[..., float]:
        """The expression as a function of numbers."""
        return scalar(self.tape)

    @cached_property
    def array(self) -> RepairedProgram:
        """The expression as a program for arrays."""
        return RepairedProgram(self.expr, self.inputs, self.tape)


@lru_cache(maxsize=1024)
def piece(expr: sympy.Expr, inputs: tuple[sympy.Symbol, ...]) -> Piece:
    """Return a piece, lowered once for all estimators that share it."""
    return Piece(expr, inputs)


class Grid:
    """A sum of region-wise functions of common inputs; a region is compiled when first entered.

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
        self.parts = [Part(inputs, *part) for part in parts]
        self.compilations: dict[tuple[Grid | str, ...], Compilation] = {}
        self.unread = set(range(len(inputs))) - {i for part in self.parts for i in part.reads}

    def number(self, *values: float) -> float:
        """Return the function at one point."""
        for i, x in enumerate(values):
            if x != x:
                return math.nan
            if i in self.whole and x != math.inf and x != -math.inf and x != int(x):
                raise _not_whole(self.inputs[i], x)
        try:
            result = sum([part.number(values) for part in self.parts])
        except (ArithmeticError, ValueError):
            return self._in_array(values)
        return result if math.isfinite(result) else self._in_array(values)

    def _in_array(self, values: Sequence[float]) -> float:
        """Return the function where Python's floats fail: at a pole, beyond the range."""
        out = np.empty(1)
        with np.errstate(all="ignore"):
            self.block([np.array([x]) for x in values], out)
        return float(out[0])

    def block(self, columns: Sequence[Block], out: Block) -> None:
        """Compute one block of doubles."""
        self.parts[0].block(columns, out)
        if len(self.parts) > 1:
            extra = np.empty(len(out))
            for part in self.parts[1:]:
                part.block(columns, extra)
                out += extra
        for i in self.unread:
            np.copyto(out, np.nan, where=np.isnan(columns[i]))

    def check_whole(self, columns: Sequence[Block], which: Iterable[int]) -> None:
        """Refuse broken numbers where whole ones are published."""
        for i in which:
            _check_whole(self.inputs[i], columns[i])

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

    @property
    def is_shortened(self) -> bool:
        """Whether a part has a quicker form that leaves rows out."""
        return any(part.shorter(part.inside) is not None for part in self.parts)

    @property
    def is_total(self) -> bool:
        """Whether no part calls a function that the user wrote."""
        return all(part.piece(part.inside).total for part in self.parts)


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
    blocks = _Blocks(grids, outputs, arrays)
    worker: Worker = blocks.worker
    block, threads = BLOCK, 1
    rows = math.prod(np.broadcast_shapes(*(a.shape for a in arrays)))
    compilation = grids[0].compilation(grids, outputs)
    if compilation.ready(rows):
        worker, block = compilation.worker(blocks.worker), compilation.block
        threads = cores() if rows >= _MANY else 1
    elif rows >= _MANY and all(grid.is_total for grid in grids):
        block, threads = _SHARED, min(cores(), _FEW)
    return sweep(worker, arrays, len(outputs), dtype, block, threads)


def common_dtype(arrays: Sequence[Block]) -> np.dtype[Any]:
    """Return the dtype of results: that of the arrays if they are of floats, double otherwise.

    Half precision ends at 65,504, which the square of 300 passes: it comes back as single.
    """
    dtype = np.result_type(*arrays) if arrays else np.dtype(float)
    return np.promote_types(dtype, np.float32) if dtype.kind == "f" else np.dtype(float)


class _Blocks:
    """The NumPy target: every grid's block after block, and roots of variances."""

    def __init__(
        self, grids: Sequence[Grid], outputs: Sequence[str], arrays: Sequence[Block]
    ) -> None:
        names = zip(grids, outputs, strict=True)
        self.columns = {g: [i for i, other in enumerate(grids) if other is g] for g in grids}
        self.roots = [i for i, (_, name) in enumerate(names) if name == "stderr"]
        floats = {i for i, a in enumerate(arrays) if not np.issubdtype(a.dtype, np.integer)}
        self.first, self.whole = grids[0], sorted(grids[0].whole & floats)

    def worker(self, rows: int) -> Run:
        return self.run

    def run(self, inputs: list[Block], outs: list[Block]) -> None:
        self.first.check_whole(inputs, self.whole)
        for grid, (first, *others) in self.columns.items():
            grid.block(inputs, outs[first])
            for other in others:
                outs[other][...] = outs[first]
        for i in self.roots:
            np.sqrt(outs[i], out=outs[i])


class Part:
    """One summand: the bounds of its cells and its expression on each region."""

    def __init__(
        self,
        inputs: tuple[sympy.Symbol, ...],
        bounds: Sequence[Bounds],
        reads: tuple[int, ...],
        expression: Callable[[Region], sympy.Expr],
        products: Products = (),
    ) -> None:
        self.products = [[(Part(inputs, *f), n) for f, n in product] for product in products]
        self.bounds, self.reads = list(bounds), reads
        self.symbols = tuple(inputs[i] for i in reads)
        self.expression = expression
        self.pieces: dict[Region, Piece] = {}
        self.inside: Region = tuple(0 for _ in self.bounds)

    def piece(self, region: Region) -> Piece:
        """Return what is evaluated on a region, made when first entered."""
        if region not in self.pieces:
            with _SYMPY:
                self.pieces[region] = piece(self.expression(region), self.symbols)
        return self.pieces[region]

    def quick(self, region: Region, shortened: bool = True) -> Tape:
        """Return what a compiled program computes: rows that it leaves out get a second look."""
        found = self.shorter(region) if shortened else None
        return self.piece(region).tape if found is None else lower([found], self.symbols)

    def shorter(self, region: Region) -> sympy.Expr | None:
        """Return a form that is not a number on some rows of a region, if there is one."""
        found: sympy.Expr | None = getattr(self.expression, "quick", lambda _: None)(region)
        return found

    def number(self, values: Sequence[float]) -> float:
        """Return the part at one point."""
        region = tuple([b.branch(values[b.input]) for b in self.bounds])
        found = self.pieces.get(region) or self.piece(region)
        if found.constant is not None:
            return found.constant
        return found.number(*[values[i] for i in self.reads])

    def block(self, columns: Sequence[Block], out: Block) -> None:
        """Compute one block: everything as if inside, then what is not."""
        own = [columns[i] for i in self.reads]
        outside = list(self._outside(columns))
        main = self.piece(self.inside)
        self._check_work(main, [region for region, _ in outside if region not in self.pieces])
        inside = ~np.logical_or.reduce([rows for _, rows in outside]) if outside else None
        if inside is None or main.total:
            main.array.run(own, out, inside)
        else:
            self._fill(self.inside, own, inside, out)
        for region, rows in outside:
            self._fill(region, own, rows, out)
        if not main.passes_nan or (outside and len(own) > 1):
            for column in own:
                np.copyto(out, np.nan, where=np.isnan(column))

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
                region = tuple(int(code) // 3**i % 3 for i in cells)
                yield region, codes == code

    def _fill(self, region: Region, own: Sequence[Block], rows: Block, out: Block) -> None:
        constant = self.piece(region).constant
        if constant is not None:
            np.copyto(out, constant, where=rows)
        else:
            some = [column[rows] for column in own]
            result = np.empty(int(rows.sum()))
            self.piece(region).array.run(some, result)
            out[rows] = result


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


def _check_whole(symbol: sympy.Symbol, column: Block) -> None:
    broken = (np.floor(column) != column) & (column == column)
    if broken.any():
        raise _not_whole(symbol, float(column[broken][0]))


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
