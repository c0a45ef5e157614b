"""Evaluate a function given region by region: each cell is below, inside or above its bounds."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.formula.opaque import Opaque
from trueup.kernels.arrays import BLOCK, ArrayProgram
from trueup.kernels.scalar import scalar
from trueup.kernels.tape import Tape, is_long, lower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Block = NDArray[Any]

Region = tuple[int, ...]

_SHORT = 200  # parts up to which it pays to look for common factors


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
    """One region's expression, ready for numbers and for arrays."""

    def __init__(self, expr: sympy.Expr, inputs: tuple[sympy.Symbol, ...]) -> None:
        tidy = expr if is_long(expr, _SHORT) else sympy.factor_terms(expr)
        self.tape: Tape = lower(tidy, inputs)
        self.number: Callable[..., float] = scalar(self.tape)
        self.array = ArrayProgram(self.tape)
        self.constant = self.tape.constant
        self.total = not expr.has(Opaque)  # can be evaluated anywhere, if only to NaN
        self.passes_nan = not expr.has(sympy.Piecewise, Opaque) and expr.free_symbols == {*inputs}


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
        region.
    whole
        The inputs that must be whole numbers.
    """

    def __init__(
        self,
        inputs: tuple[sympy.Symbol, ...],
        parts: Sequence[tuple[Sequence[Bounds], tuple[int, ...], Callable[[Region], sympy.Expr]]],
        whole: frozenset[int],
    ) -> None:
        self.inputs = inputs
        self.whole = whole
        self.parts = [_Part(inputs, *part) for part in parts]
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
            return float(self.arrays([np.array(x) for x in values], np.dtype(float)))
        return result if result == result else self._exactly(values)

    def _exactly(self, values: Sequence[float]) -> float:
        """Return the function where doubles overflow on the way, in exact arithmetic."""
        if not all(map(math.isfinite, values)):
            return math.nan
        return sum(part.exactly(values) for part in self.parts)

    def arrays(self, values: Sequence[Block], dtype: np.dtype[Any]) -> Block:
        """Return the function on arrays that broadcast, block by block."""
        roles: list[Any] = [*(["readonly"] for _ in values), ["writeonly", "allocate"]]
        with np.errstate(all="ignore"):
            blocks = np.nditer(
                [*values, None],
                flags=["external_loop", "buffered", "zerosize_ok"],
                op_flags=roles,
                op_dtypes=[*(np.dtype(float) for _ in values), dtype],
                casting="same_kind",
                buffersize=BLOCK,
            )
            integral = [np.issubdtype(v.dtype, np.integer) for v in values]
            with blocks:
                for *columns, out in blocks:
                    for i in self.whole:
                        if not integral[i]:
                            _check_whole(self.inputs[i], columns[i])
                    self._block(columns, out)
                result: Block = blocks.operands[-1]
                return result

    def _block(self, columns: Sequence[Block], out: Block) -> None:
        target = out if out.dtype == np.float64 else np.empty(len(out))
        self.parts[0].block(columns, target)
        if len(self.parts) > 1:
            extra = np.empty(len(target))
            for part in self.parts[1:]:
                part.block(columns, extra)
                target += extra
        lost = np.isnan(target)
        if lost.any():
            lost &= np.logical_and.reduce([np.isfinite(c) for c in columns])
            for row in np.flatnonzero(lost):
                target[row] = self._exactly([float(c[row]) for c in columns])
        for i in self.unread:
            np.copyto(target, np.nan, where=np.isnan(columns[i]))
        if target is not out:
            out[...] = target


class _Part:
    """One summand: the bounds of its cells and its expression on each region."""

    def __init__(
        self,
        inputs: tuple[sympy.Symbol, ...],
        bounds: Sequence[Bounds],
        reads: tuple[int, ...],
        expression: Callable[[Region], sympy.Expr],
    ) -> None:
        self.bounds, self.reads = list(bounds), reads
        self.symbols = tuple(inputs[i] for i in reads)
        self.expression = expression
        self.pieces: dict[Region, Piece] = {}
        self.inside: Region = tuple(0 for _ in self.bounds)

    def piece(self, region: Region) -> Piece:
        if region not in self.pieces:
            self.pieces[region] = piece(self.expression(region), self.symbols)
        return self.pieces[region]

    def number(self, values: Sequence[float]) -> float:
        region = tuple([b.branch(values[b.input]) for b in self.bounds])
        found = self.pieces.get(region) or self.piece(region)
        if found.constant is not None:
            return found.constant
        return found.number(*[values[i] for i in self.reads])

    def exactly(self, values: Sequence[float]) -> float:
        """Return the part at one point with twenty digits and no overflow."""
        region = tuple([b.branch(values[b.input]) for b in self.bounds])
        expr = self.expression(region)
        if expr.has(Opaque):
            return math.nan
        point = {
            s: sympy.Rational(*values[i].as_integer_ratio())
            for s, i in zip(self.symbols, self.reads, strict=True)
        }
        value = expr.xreplace(point).evalf(20)
        return float(value) if value.is_number and value.is_extended_real else math.nan

    def block(self, columns: Sequence[Block], out: Block) -> None:
        """Compute one block: everything as if inside, then what is not."""
        own = [columns[i] for i in self.reads]
        outside = list(self._outside(columns))
        main = self.piece(self.inside)
        if not outside or main.total:
            main.array.run(own, out)
        else:
            inside = ~np.logical_or.reduce([rows for _, rows in outside])
            self._fill(self.inside, own, inside, out)
        for region, rows in outside:
            self._fill(region, own, rows, out)
        if not main.passes_nan or (outside and len(own) > 1):
            for column in own:
                np.copyto(out, np.nan, where=np.isnan(column))

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
