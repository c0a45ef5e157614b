"""A function given region by region: each statistic is below, inside or above its bounds."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.formula.build import is_long
from trueup.kernels.blocks import BLOCK, NUMPY, Block, sweep
from trueup.kernels.compiled import ROWS, Compilation, function
from trueup.kernels.limits import Range, guarded, limits
from trueup.kernels.tape import Emitter, Tape, is_total, lower, run

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
    """One region's expression as a tape, and the limits beyond which it is NaN."""

    def __init__(
        self, expr: sympy.Expr, inputs: tuple[sympy.Symbol, ...], ranges: tuple[Range, ...]
    ) -> None:
        tidy = expr if is_long(expr, _SHORT) else sympy.factor_terms(expr)
        self.tape: Tape = lower([tidy], inputs)
        self.limits = limits(self.tape, ranges)
        self.guarded = guarded(self.tape, self.limits)

    @cached_property
    def number(self) -> Callable[..., float]:
        """The expression as a function of numbers."""
        return function(self.guarded)


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
        self.bounds, self.reads, self.whole = tuple(bounds), reads, whole
        self.symbols = tuple(inputs[i] for i in reads)
        self.expression = expression
        self.pieces: dict[Region, Piece] = {}
        self.inside: Region = tuple(0 for _ in self.bounds)

    @property
    def factors(self) -> list[list[Part]]:
        """The products whose sum the part is, powers written out."""
        return [[f for f, n in term for _ in range(n)] for term in self.products] or [[self]]

    def piece(self, region: Region) -> Piece:
        """Return what is evaluated on a region, made when first entered."""
        if region not in self.pieces:
            with _SYMPY:
                ranges = tuple(self._range(i, region) for i in self.reads)
                self.pieces[region] = piece(self.expression(region), self.symbols, ranges)
        return self.pieces[region]

    def _range(self, i: int, region: Region) -> Range:
        sides = zip(self.bounds, region, strict=True)
        ranges = [b.range(branch, i in self.whole) for b, branch in sides if b.input == i]
        return ranges[0] if ranges else (-math.inf, math.inf)

    def number(self, values: Sequence[float]) -> float:
        """Return the part at one point."""
        if self.products:
            return sum([math.prod([f.number(values) for f in term]) for term in self.factors])
        region = tuple([b.branch(values[b.input]) for b in self.bounds])
        found = self.pieces.get(region) or self.piece(region)
        return found.number(*[values[i] for i in self.reads])


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
        The inputs that must be integers.
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
        self.programs: dict[tuple[Grid | str, ...], _Program] = {}
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
        self.program([self], ["value"]).block(columns, [out])

    def check_whole(self, columns: Sequence[Block], which: Iterable[int]) -> None:
        """Refuse what is not an integer where integers are published."""
        for i in which:
            broken = np.abs(np.floor(columns[i]) - columns[i]) > 0
            if broken.any():
                raise _not_whole(self.inputs[i], float(columns[i][broken][0]))

    def program(self, grids: Sequence[Grid], outputs: Sequence[str]) -> _Program:
        """Return what computes outputs of which this grid makes the first."""
        key: tuple[Grid | str, ...] = (*grids, *outputs)
        if key not in self.programs:
            self.programs[key] = _Program(grids, outputs)
        return self.programs[key]

    def ends(self, i: int) -> set[float]:
        """Return the bounds at which branches of an input begin."""
        bounds = [b for part in self.parts for b in part.bounds if b.input == i]
        return {end for b in bounds for end in (b.low, b.high) if math.isfinite(end)}


# -- arrays ----------------------------------------------------------------------------------------


class _Cells:
    """Parts with the same bounds and inputs, computed together: they have much in common."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts, self.first = parts, parts[0]
        self.tapes: dict[Region, Tape] = {}

    def tape(self, region: Region) -> Tape:
        """Return the tape of all parts on a region, NaN beyond its limits."""
        if region not in self.tapes:
            new, pieces = Emitter(), [part.piece(region) for part in self.parts]
            inputs = [new.emit("input", data=i) for i in range(len(self.first.reads))]
            outputs = [new.splice(p.guarded, inputs)[0] for p in pieces]
            self.tapes[region] = Tape(self.first.symbols, tuple(new.steps), tuple(outputs))
        return self.tapes[region]

    def block(self, columns: Sequence[Block]) -> list[Block]:
        """Return a block of each part: everything as if inside, then what is not."""
        own = [columns[i] for i in self.first.reads]
        outside = list(self._outside(columns))
        main, rows = self.tape(self.first.inside), len(columns[0])
        self._check_work(len(main.steps), [r for r, _ in outside if r not in self.tapes])
        rest: Any = slice(None)
        if outside and not is_total(main):
            rest = np.delete(np.arange(rows), np.concatenate([some for _, some in outside]))
        outs = [np.empty(rows) for _ in self.parts]
        for region, some in [(self.first.inside, rest), *outside]:
            found = run(self.tape(region), [c[some] for c in own], NUMPY)
            for out, values in zip(outs, found, strict=True):
                out[some] = values
        return outs

    def _outside(self, columns: Sequence[Block]) -> Iterator[tuple[Region, Block]]:
        """Yield every region that occurs, other than the inside, with its rows."""
        sides = []
        for place, b in enumerate(self.first.bounds):
            column, digit = columns[b.input], 3**place  # branches are digits to base 3
            if b.below and (beyond := column <= b.low).any():
                sides.append((b.below * digit, beyond))
            if b.above and (beyond := column >= b.high).any():
                sides.append((b.above * digit, beyond))
        if sides:
            rows = np.flatnonzero(reduce(np.logical_or, [beyond for _, beyond in sides]))
            codes = sum(code * beyond[rows] for code, beyond in sides)
            for code in np.unique(codes).tolist():
                region = tuple(code // 3**i % 3 for i in range(len(self.first.bounds)))
                yield region, rows[codes == code]

    def _check_work(self, steps: int, new: Sequence[Region]) -> None:
        """Refuse rows in so many regions at once that their formulas take long to write down."""
        if len(new) * steps > _MOST_WORK:
            raise TrueupError(
                f"the values of {len(self.first.bounds)} statistics lie below and above their "
                f"bounds in {len(new)} ways, and each needs a formula of its own, of some {steps} "
                "operations: too many to write down",
                "publish totals with a noise of their own, leave bounds out, or debias parts that "
                "are then added",
            )


class _Program:
    """Outputs of grids on the same inputs, in NumPy or as a compiled loop."""

    def __init__(self, grids: Sequence[Grid], outputs: Sequence[str]) -> None:
        self.grids, self.outputs = grids, outputs
        self.compilation = Compilation(grids, outputs)
        together: dict[Any, list[Part]] = {}
        parts = (part for grid in dict.fromkeys(grids) for part in grid.parts)
        for factor in (f for part in parts for term in part.factors for f in dict.fromkeys(term)):
            together.setdefault((factor.bounds, factor.reads), []).append(factor)
        self.cells = [_Cells(parts) for parts in together.values()]

    def block(self, columns: Sequence[Block], outs: Sequence[Block]) -> None:
        """Fill blocks of outputs."""
        known: dict[Part, Block] = {}
        for cells in self.cells:
            known.update(zip(cells.parts, cells.block(columns), strict=True))
        totals: dict[Grid, Block] = {}
        for grid, name, out in zip(self.grids, self.outputs, outs, strict=True):
            if grid not in totals:
                totals[grid] = self._total(grid, known, columns)
            (np.sqrt if name == "stderr" else np.positive)(totals[grid], out=out)

    def _total(self, grid: Grid, known: Mapping[Part, Block], columns: Sequence[Block]) -> Block:
        terms = [[known[f] for f in term] for part in grid.parts for term in part.factors]
        total: Block = reduce(np.add, [reduce(np.multiply, term) for term in terms])
        for i in grid.unread:
            total[np.isnan(columns[i])] = np.nan
        finite = np.isfinite(total)
        if not finite.all():
            total[~finite] = np.nan
        return total


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

    rows = math.prod(np.broadcast_shapes(*(a.shape for a in arrays)))
    program = grids[0].program(grids, outputs)
    compiled = program.compilation.ready(rows)
    fill = program.compilation if compiled else program.block

    def run_checked(inputs: list[Block], outs: list[Block]) -> None:
        grids[0].check_whole(inputs, whole)
        fill(inputs, outs)

    return sweep(run_checked, arrays, len(outputs), dtype, ROWS if compiled else BLOCK)


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
