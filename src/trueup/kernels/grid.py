"""A function given region by region: each statistic is below, inside or above its bounds."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.formula.build import is_long
from trueup.kernels.blocks import BLOCK, NUMPY, Block, sweep
from trueup.kernels.compiled import ROWS, function, loop_of
from trueup.kernels.limits import Range, guarded, limits
from trueup.kernels.tape import Emitter, Tape, lower, run

Region = tuple[int, ...]

_SYMPY = threading.RLock()  # symbolic work is done by one thread at a time
_MOST_WORK = 100_000  # regions times operations to be written down, 0.1 ms each: once
_SHORT = 200  # parts up to which it pays to look for common factors


class End(NamedTuple):
    """Where a branch begins: x ``op`` ``bound``, or x is what single precision holds for it.

    A release clamped to 0.1 and stored in single precision holds 0.100000001490116, which is above
    the bound although it lies at it.
    """

    branch: int
    op: str
    bound: float
    single: float | None


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Where an input's branches begin; a missing branch has an infinite bound.

    ``below`` and ``above`` are the branch indices for x ≤ low and x ≥ high; 0 is inside.
    """

    input: int
    low: float
    high: float
    below: int
    above: int
    whole: bool = False

    @cached_property
    def ends(self) -> tuple[End, ...]:
        """Where the outer branches begin."""
        sides = ((self.above, "ge", self.high), (self.below, "le", self.low))
        return tuple(End(*side, self._single(*side[1:])) for side in sides if side[0])

    def _single(self, op: str, bound: float) -> float | None:
        with np.errstate(over="ignore", under="ignore"):
            single = float(np.float32(bound))
        inside = single > bound if op == "le" else single < bound
        return single if inside and math.isfinite(single) and not self.whole else None

    def branch(self, x: float) -> int:
        """Return the branch of one number."""
        if x <= self.low:
            return self.below
        if x >= self.high:
            return self.above
        for end in self.ends:
            if x == end.single:
                return end.branch
        return 0

    def range(self, branch: int) -> Range:
        """Return between which numbers a branch lies; inside the bounds themselves are left out."""
        low, high = self.low, self.high
        if branch:
            low, high = (-math.inf, low) if branch == self.below else (high, math.inf)
        elif self.whole:
            low, high = low + 1, high - 1
        else:
            low = math.nextafter(low, math.inf) if low > -math.inf else low
            high = math.nextafter(high, -math.inf) if high < math.inf else high
        return Range(low, high, float(self.whole))


class Piece:
    """One region's expression as a tape, and the limits beyond which it is NaN."""

    def __init__(
        self, expr: sympy.Expr, inputs: tuple[sympy.Symbol, ...], ranges: tuple[Range, ...]
    ) -> None:
        if not is_long(expr, _SHORT):  # a number that all terms have in common stays in each
            expr = sympy.Mul(*sympy.factor_terms(expr).as_coeff_Mul())
        self.tape: Tape = lower([expr], inputs)
        self.limits = limits(self.tape, ranges)
        self.guarded = guarded(self.tape, self.limits)

    @cached_property
    def number(self) -> Callable[..., float]:
        """The expression as a function of numbers."""
        return function(self.guarded)


piece = lru_cache(maxsize=1024)(Piece)
"""A piece, lowered once for all estimators that share it."""


class Part:
    """A function of some inputs, given region by region.

    Parameters
    ----------
    inputs
        All inputs of the grid.
    reads
        Which of them the function reads.
    expression
        The formula of a region.
    bounds
        Of its cells, in the order of the branches that make a region.
    whole
        The inputs that are integers.
    """

    def __init__(
        self,
        inputs: Sequence[sympy.Symbol],
        reads: Sequence[int],
        expression: Callable[[Region], sympy.Expr],
        bounds: Sequence[Bounds] = (),
        whole: frozenset[int] = frozenset(),
    ) -> None:
        self.bounds, self.reads, self.whole = tuple(bounds), tuple(reads), whole
        self.symbols = tuple(inputs[i] for i in reads)
        self.expression = expression
        self.pieces: dict[Region, Piece] = {}
        self.inside: Region = tuple(0 for _ in self.bounds)

    def piece(self, region: Region) -> Piece:
        """Return what is evaluated on a region, made when first entered."""
        if region not in self.pieces:
            with _SYMPY:
                ranges = self.ranges(region)
                self.pieces[region] = piece(self.expression(region), self.symbols, ranges)
        return self.pieces[region]

    def ranges(self, region: Region) -> tuple[Range, ...]:
        """Return where the inputs that are read lie in a region; noise scales are positive."""
        pairs = zip(self.bounds, region, strict=True)
        found = {b.input: b.range(branch) for b, branch in pairs}
        return tuple(
            found.get(i, Range(0.0 if s.is_positive else -math.inf, unit=float(i in self.whole)))
            for i, s in zip(self.reads, self.symbols, strict=True)
        )

    def number(self, values: Sequence[float]) -> float:
        """Return the part at one point."""
        region = tuple([b.branch(values[b.input]) for b in self.bounds])
        found = self.pieces.get(region) or self.piece(region)
        return found.number(*[values[i] for i in self.reads])

    def choice(
        self,
        new: Emitter,
        region: Callable[[Part, Region], int],
        column: Callable[[int], int],
        begun: Region = (),
    ) -> int:
        """Return the register of a choice between the regions that begin with some branches."""
        if len(begun) == len(self.bounds):
            return region(self, begun)
        b = self.bounds[len(begun)]
        chosen = self.choice(new, region, column, (*begun, 0))
        for end in b.ends:
            x, other = column(b.input), self.choice(new, region, column, (*begun, end.branch))
            beyond = new.emit(end.op, x, new.const(end.bound))
            if end.single is not None:
                beyond = new.emit("or", beyond, new.emit("eq", x, new.const(end.single)))
            chosen = new.emit("where", beyond, other, chosen)
        return chosen

    def block(self, columns: Sequence[Block]) -> Block:
        """Return a block, region by region."""
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
            for end in b.ends:
                beyond = NUMPY[end.op](column, end.bound)
                if end.single is not None:
                    beyond |= column == end.single
                if beyond.any():
                    sides.append((end.branch * digit, beyond))
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
        ways, steps = len(regions), len(self.piece(self.inside).tape.steps)
        if ways * steps > _MOST_WORK:
            raise TrueupError(
                f"the values lie below and above their bounds in {ways} ways: {ways} formulas of "
                f"{steps} operations are too many to write down",
                "publish totals with a noise of their own, leave bounds out, or debias parts",
            )


class Grid:
    """A sum of products of region-wise functions of common inputs.

    Parameters
    ----------
    inputs
        The statistics, in the order in which values are passed.
    terms
        The factors of each product.
    whole
        The inputs that must be integers.
    """

    def __init__(
        self,
        inputs: tuple[sympy.Symbol, ...],
        terms: Sequence[Sequence[Part]],
        whole: frozenset[int] = frozenset(),
    ) -> None:
        self.inputs, self.terms, self.whole = inputs, terms, whole
        self.rows = 0
        """How many rows of arrays have been seen."""
        self.unread = {*range(len(inputs))} - {i for t in terms for part in t for i in part.reads}

    @classmethod
    def of(
        cls,
        expr: sympy.Expr,
        inputs: tuple[sympy.Symbol, ...],
        whole: frozenset[int] = frozenset(),
    ) -> Grid:
        """Return a formula without regions as a grid."""
        return cls(inputs, [[Part(inputs, range(len(inputs)), lambda _: expr, whole=whole)]], whole)

    def number(self, *values: float) -> float:
        """Return the function at one point, NaN where it is not finite."""
        for i, x in enumerate(values):
            if x != x:
                return math.nan
            if i in self.whole and math.isfinite(x) and not x.is_integer():
                raise _not_whole(self.inputs[i], x)
        try:
            result = 0.0
            for term in self.terms:
                product = 1.0
                for part in term:
                    product *= part.number(values)
                result += product
        except (ArithmeticError, ValueError):  # Python raises where NumPy gives NaN or ∞
            with np.errstate(all="ignore"):
                result = float(self.block([np.array([x]) for x in values])[0])
        return result if math.isfinite(result) else math.nan

    def block(self, columns: Sequence[Block]) -> Block:
        """Return a block of doubles, NaN where the function is not finite."""
        known = {f: f.block(columns) for f in dict.fromkeys(f for t in self.terms for f in t)}
        products = (reduce(np.multiply, [known[f] for f in term]) for term in self.terms)
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

    def fused(
        self,
        new: Emitter,
        region: Callable[[Part, Region], int],
        column: Callable[[int], int],
    ) -> int:
        """Return the register of the grid, its regions as choices.

        ``region`` writes the formula of a region, ``column`` an input where bounds are compared.
        """
        terms = ([part.choice(new, region, column) for part in term] for term in self.terms)
        return new.fold("add", [new.fold("mul", factors) for factors in terms])


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
    >>> half = Grid.of(x / 2, (x,))
    >>> columns(half, half, [np.array([2, 8])], ["value", "stderr"])
    [array([1., 4.]), array([1., 2.])]
    """
    chosen = [variance if name != "value" else value for name in outputs]
    grids = [g for g in chosen if g is not None]
    dtype = dtype or common_dtype(arrays)
    floats = {i for i, a in enumerate(arrays) if not np.issubdtype(a.dtype, np.integer)}
    whole = sorted(grids[0].whole & floats)

    def fill(inputs: list[Block], outs: list[Block]) -> None:
        blocks = {grid: grid.block(inputs) for grid in dict.fromkeys(grids)}
        for grid, name, out in zip(grids, outputs, outs, strict=True):
            (np.sqrt if name == "stderr" else np.positive)(blocks[grid], out=out)

    grids[0].rows += math.prod(np.broadcast_shapes(*(a.shape for a in arrays)))
    loop = loop_of(tuple(grids), tuple(outputs))

    def checked(inputs: list[Block], outs: list[Block]) -> None:
        grids[0].check_whole(inputs, whole)
        if loop is not None:
            loop(*inputs, *outs)
        else:
            fill(inputs, outs)

    return sweep(checked, arrays, len(outputs), dtype, BLOCK if loop is None else ROWS)


def common_dtype(arrays: Sequence[Block]) -> np.dtype[Any]:
    """Return the dtype of results: that of the arrays if they are of floats, double otherwise."""
    for array in arrays:
        if array.dtype == np.float16:
            raise TrueupError(
                "half precision holds three digits and ends at 65,504",
                "convert the array, e.g. with .astype(float)",
            )
    dtype = np.result_type(*arrays) if arrays else np.dtype(float)
    return dtype if dtype.kind == "f" else np.dtype(float)


def _not_whole(symbol: sympy.Symbol, x: float) -> TrueupError:
    return TrueupError(
        f"{symbol.name} has integer noise, so its published values are whole numbers, got {x!r}",
        "check the column, or describe the noise as continuous, e.g. Laplace(scale)",
    )
