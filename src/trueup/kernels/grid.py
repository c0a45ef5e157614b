"""A function given region by region: each statistic is below, inside or above its bounds."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.formula.build import is_long
from trueup.kernels.blocks import BLOCK, NUMPY, Block, sweep
from trueup.kernels.compiled import ROWS, Compilation, function
from trueup.kernels.limits import Range, guarded, limits
from trueup.kernels.tape import Tape, lower, run

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
        """Return between which numbers a branch lies; inside the bounds themselves are left out."""
        low, high = self.low, self.high
        if branch:
            low, high = (-math.inf, low) if branch == self.below else (high, math.inf)
        elif whole:
            low, high = low + 1, high - 1
        else:
            low = math.nextafter(low, math.inf) if low > -math.inf else low
            high = math.nextafter(high, -math.inf) if high < math.inf else high
        return Range(low, high, whole)


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
                ranges = self.ranges(region)
                self.pieces[region] = piece(self.expression(region), self.symbols, ranges)
        return self.pieces[region]

    def ranges(self, region: Region) -> tuple[Range, ...]:
        """Return where the inputs that are read lie in a region; noise scales are positive."""
        found = {
            b.input: b.range(branch, b.input in self.whole)
            for b, branch in zip(self.bounds, region, strict=True)
        }
        return tuple(
            found.get(i, Range(0.0 if symbol.is_positive else -math.inf, whole=i in self.whole))
            for i, symbol in zip(self.reads, self.symbols, strict=True)
        )

    def number(self, values: Sequence[float]) -> float:
        """Return the part at one point."""
        if self.products:
            return sum([math.prod([f.number(values) for f in term]) for term in self.factors])
        region = tuple([b.branch(values[b.input]) for b in self.bounds])
        found = self.pieces.get(region) or self.piece(region)
        return found.number(*[values[i] for i in self.reads])

    def block(self, columns: Sequence[Block]) -> Block:
        """Return a block of a part that is no product, region by region."""
        out = np.empty(len(columns[0]))
        for region, rows in self._regions(columns):
            own = [columns[i][rows] for i in self.reads]
            (out[rows],) = run(self.piece(region).guarded, own, NUMPY)
        return out

    def _regions(self, columns: Sequence[Block]) -> Iterator[tuple[Region, Any]]:
        """Yield every region that occurs with its rows."""
        sides = []
        for place, b in enumerate(self.bounds):
            column, digit = columns[b.input], 3**place  # branches are digits to base 3
            if b.below and (beyond := column <= b.low).any():
                sides.append((b.below * digit, beyond))
            if b.above and (beyond := column >= b.high).any():
                sides.append((b.above * digit, beyond))
        if not sides:
            yield self.inside, slice(None)
            return
        outside = reduce(np.logical_or, [beyond for _, beyond in sides])
        rows = np.flatnonzero(outside)
        codes = sum(code * beyond[rows] for code, beyond in sides)
        found = np.unique(codes).tolist()
        regions = [tuple(code // 3**i % 3 for i in range(len(self.bounds))) for code in found]
        self._check_work(regions)
        calls = any(step.op == "call" for step in self.piece(self.inside).tape.steps)
        yield self.inside, np.flatnonzero(~outside) if calls else slice(None)  # written over
        for region, code in zip(regions, found, strict=True):
            yield region, rows[codes == code]

    def _check_work(self, regions: Sequence[Region]) -> None:
        """Refuse rows in so many regions at once that their formulas take long to write down."""
        new = sum(region not in self.pieces for region in regions)
        steps = len(self.piece(self.inside).tape.steps)
        if new * steps > _MOST_WORK:
            raise TrueupError(
                f"the values lie below and above their bounds in {new} ways: {new} formulas of "
                f"{steps} operations are too many to write down",
                "publish totals with a noise of their own, leave bounds out, or debias parts",
            )


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
        self.loops: dict[tuple[Grid | str, ...], Compilation] = {}
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
            with np.errstate(all="ignore"):
                result = float(self.block([np.array([x]) for x in values])[0])
        return result if math.isfinite(result) else math.nan

    def block(self, columns: Sequence[Block]) -> Block:
        """Return a block of doubles, NaN where the function is not finite."""
        terms = [term for part in self.parts for term in part.factors]
        known = {f: f.block(columns) for f in dict.fromkeys(f for term in terms for f in term)}
        products = (reduce(np.multiply, [known[f] for f in term]) for term in terms)
        total: Block = reduce(np.add, products)
        finite = np.isfinite(total)
        for i in self.unread:
            finite &= ~np.isnan(columns[i])
        return total if finite.all() else np.where(finite, total, np.nan)

    def check_whole(self, columns: Sequence[Block], which: Iterable[int]) -> None:
        """Refuse what is not an integer where integers are published."""
        for i in which:
            broken = np.abs(np.floor(columns[i]) - columns[i]) > 0
            if broken.any():
                raise _not_whole(self.inputs[i], float(columns[i][broken][0]))

    def loop(self, grids: Sequence[Grid], outputs: Sequence[str]) -> Compilation:
        """Return the compiled loop of outputs of which this grid makes the first."""
        key: tuple[Grid | str, ...] = (*grids, *outputs)
        if key not in self.loops:
            self.loops[key] = Compilation(grids, outputs)
        return self.loops[key]

    def ends(self, i: int) -> set[float]:
        """Return the bounds at which branches of an input begin."""
        bounds = [b for part in self.parts for b in part.bounds if b.input == i]
        return {end for b in bounds for end in (b.low, b.high) if math.isfinite(end)}


# -- arrays ----------------------------------------------------------------------------------------


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

    def fill(inputs: list[Block], outs: list[Block]) -> None:
        blocks = {grid: grid.block(inputs) for grid in dict.fromkeys(grids)}
        for grid, name, out in zip(grids, outputs, outs, strict=True):
            (np.sqrt if name == "stderr" else np.positive)(blocks[grid], out=out)

    rows = math.prod(np.broadcast_shapes(*(a.shape for a in arrays)))
    loop = grids[0].loop(grids, outputs).ready(rows)

    def checked(inputs: list[Block], outs: list[Block]) -> None:
        grids[0].check_whole(inputs, whole)
        if loop is not None:
            loop(*inputs, *outs)
        else:
            fill(inputs, outs)

    return sweep(checked, arrays, len(outputs), dtype, BLOCK if loop is None else ROWS)


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
