"""What est.sql is asked, answered by one CASE: NULL beyond the limits, else the plain formula.

The regions of all parts become choices on one tape, as in the compiled loop. Its limits are one
number for all inputs and one for exponents; within them no step overflows, so nothing else is
guarded but what is undefined.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup._version import __version__
from trueup.errors import TrueupError
from trueup.formula.opaque import Table
from trueup.inputs import by_statistic
from trueup.inverse.projection import ENDS
from trueup.kernels.blocks import NUMPY
from trueup.kernels.limits import LEAST, Range, bounded, limits
from trueup.kernels.tape import Emitter, Tape, run
from trueup.sql import arithmetic
from trueup.sql.arithmetic import Arithmetic, Number, exp
from trueup.sql.dialects import dialect_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from trueup.estimator import Estimator
    from trueup.kernels.grid import Grid, Part, Piece, Region
    from trueup.sql.arithmetic import Sql
    from trueup.sql.dialects import Dialect

MAX_LENGTH = 20_000
"""The length of a text that a person asks for, in characters."""

MAX_QUERY = 100_000
"""The length of an expression in a query of ours: engines read it in a tenth of a second."""

MAX_STEPS = 4_000
"""Operations of all regions together: each takes a millisecond or two to write."""

OUTPUTS = {
    "value": "estimate",
    "variance": "variance of the estimate",
    "stderr": "standard error of the estimate",
    "low": "lower end of the interval",
    "high": "upper end of the interval",
}


def statement(
    est: Estimator,
    dialect: str | Dialect = "duckdb",
    output: str = "value",
    columns: Mapping[str, Any] | None = None,
    scales: Mapping[str, Any] | None = None,
    level: float = 0.95,
) -> Sql:
    """Return an estimator as a tree of sqlglot; see :meth:`trueup.estimator.Estimator.sql`.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> statement(unbiased("q", Laplace(2)), "mysql", columns={"q": ("t", "x y")}).sql("mysql")
    'CASE WHEN ABS(CAST(`t`.`x y` AS DOUBLE)) <= 1e100 THEN CAST(`t`.`x y` AS DOUBLE) END'
    """
    if output not in OUTPUTS:
        raise TrueupError(f"{output!r} is no output", f"outputs are {', '.join(OUTPUTS)}")
    named, scaled = dict(by_statistic(columns, "columns")), dict(by_statistic(scales, "scales"))
    for what, given in (("columns", named), ("scales", scaled)):
        for name in sorted(given.keys() - {*est.statistics}):
            raise TrueupError(
                f"{what} are given for {name!r}, which is no statistic",
                f"the statistics are {', '.join(est.statistics)}",
            )
    what = "variance" if output == "stderr" else output
    largest: Mapping[str, float] = {}
    try:
        if output in ENDS:
            grid = est._intervals.closed(level, tuple(scaled))[ENDS.index(output)]
        elif scaled:
            form = est._scaled(tuple(scaled))
            grid, largest = form.grid(what), form.largest(what)
        else:
            grid = est._value if what == "value" else est._variance
        symbols = [symbol.name for symbol in grid.inputs[len(est.statistics) :]]
        named |= zip(symbols, scaled.values(), strict=True)
        limits = {s: largest.get(name, math.inf) for s, name in zip(symbols, scaled, strict=True)}
        return expression(grid, named, dialect, root=output == "stderr", largest=limits)
    except RecursionError:
        raise too_long(MAX_LENGTH) from None


def comment(est: Estimator, output: str, scales: Mapping[str, Any] | None, level: float) -> str:
    """Return a first line that says what is computed: formula, noise, bounds, output, version.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> comment(unbiased("`a*/b`/2", Laplace(2)), "value", {}, 0.95).partition(" (trueup")[0]
    '/* estimate: unbiased estimator of `a* /b`/2 (a* /b: Laplace(2) on (-∞, ∞))'
    """
    asked = f"{OUTPUTS[output]}, {level:g}" if output in ENDS else OUTPUTS[output]
    given = f", scales of {', '.join(scales)} from columns" if scales else ""
    words = f"{asked}: {repr(est)[1:-1]}{given} (trueup {__version__})"
    words = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return f"/* {re.sub(r'(?<=[*])(?=/)|(?<=/)(?=[*])', ' ', words)} */"


def text(tree: Sql, dialect: str | Dialect, *, pretty: bool = False, most: int = MAX_LENGTH) -> str:
    """Return an expression of at most so many characters, with ``pretty`` on several lines."""
    try:
        length = 2 * arithmetic.nodes(tree)  # at least
        if length <= most:
            written: str = tree.sql(dialect=dialect_of(dialect).name, pretty=pretty)
            length = len(written)
    except RecursionError:
        raise too_long(most) from None
    if length > most:
        raise too_long(length, most)
    return written


def too_long(length: int, most: int = MAX_LENGTH) -> TrueupError:
    """Return the refusal of an estimator whose SQL has no reasonable size."""
    return TrueupError(
        f"the estimator is too long for SQL: {length:,} characters or more, at most {most:,}",
        "debias the parts of the formula one by one, or compute it in Python",
    )


# -- grids -----------------------------------------------------------------------------------------


def expression(
    grid: Grid,
    columns: Mapping[str, Any],
    dialect: str | Dialect,
    *,
    root: bool = False,
    largest: Mapping[str, float] | None = None,
) -> Sql:
    """Return a grid, or its square root, as a tree of sqlglot.

    Parameters
    ----------
    grid
        The function: an estimator's value or variance.
    columns
        For each input of the grid its column: a name, or a tuple of names such as ``("t", "n")``.
    dialect
        One of ``DIALECTS``.
    root
        Whether to take the square root, for a standard error.
    largest
        For inputs that are noise scales, below which they are valid.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> expression(unbiased("q**2", Laplace(3))._value, {"q": "n"}, "spark").sql("spark")
    'CASE WHEN ABS(CAST(`n` AS DOUBLE)) <= 1e100 THEN CAST(`n` AS DOUBLE) * `n` - 18e0 END'
    """
    engine = dialect_of(dialect)
    names = [column(columns.get(s.name, s.name), engine) for s in grid.inputs]
    steps = Choices(grid, largest or {})
    total = grid.fused(steps, steps.region, steps.column)
    tape = Tape(sympy.symbols(f"x:{len(steps.reads)}"), tuple(steps.steps), (total,))
    found = limits(tape, [within for _, within in steps.reads], floors=engine.underflow)
    if not found.inputs:
        raise TrueupError(
            "no range of inputs is sure to stay within the range of doubles in this estimator",
            "compute it in Python, or debias the parts of the formula one by one",
        )
    on = Arithmetic(engine, found)
    reads = enumerate(steps.reads)
    numbers = [Number(names[i], found.within(k, within)) for k, (i, within) in reads]
    (result,) = run(bounded(tape, found), numbers, on.table)
    value = on.root(result) if root else on.double(result.tree)
    tiny = {steps.reads[k][0] for k in found.tiny}
    inside = []
    for i, name in enumerate(names):
        if engine.finite:
            inside.append(arithmetic.call(engine.finite, name))
        if i in steps.scales:
            most = min(steps.scales[i].high, found.inputs)
            inside.append(on.comparison("ge", Number(name), on.value(LEAST)))
            inside.append(on.comparison("lt", Number(name), on.value(most)))
        else:
            inside.append(_inside(on, Number(name), found.inputs, i in tiny))
        if i in grid.whole:
            rounded = arithmetic.call(engine.floor, name)
            inside.append(exp.EQ(this=rounded, expression=on.compared(name)))
    return exp.Case(ifs=[exp.If(this=exp.and_(*inside, copy=False), true=value)])


def _inside(on: Arithmetic, x: Number, limit: float, tiny: bool) -> Sql:
    """Return the condition on a statistic within its limits: neither NULL nor NaN is."""
    size, most = Number(on.function("abs", x)), on.value(limit)
    if not tiny:
        return on.comparison("le", size, most)
    large = exp.Between(this=size.tree, low=on.constant(LEAST), high=most.tree)
    return exp.or_(on.comparison("eq", x, on.value(0.0)), large, copy=False)


def column(name: object, dialect: Dialect) -> Sql:
    """Return a column, quoted; a sequence of names is a qualified one."""
    path = (name,) if isinstance(name, str) else name
    if not (
        isinstance(path, (tuple, list))
        and 1 <= len(path) <= 4
        and all(isinstance(p, str) and p and "\0" not in p for p in path)
    ):
        raise TrueupError(
            f"a column is a name, or a tuple of names such as ('t', 'n'), got {name!r}",
            "give the name as it is in the table, without quotes",
        )
    if dialect.name == "bigquery" and any("." in p for p in path):
        raise TrueupError(
            f"in BigQuery a name cannot hold a dot, got {name!r}",
            "give a qualified column as a tuple, e.g. ('t', 'n')",
        )
    return exp.column(*reversed(path), quoted=True)


# -- one tape --------------------------------------------------------------------------------------


class Choices(Emitter):
    """A grid as one tape, its regions as choices.

    A column is read by an input of its own for each range that it has in some region: ``reads`` are
    the columns of the inputs with their ranges. ``scales`` are the ranges of noise scales.
    """

    def __init__(self, grid: Grid, largest: Mapping[str, float]) -> None:
        super().__init__()
        self.grid = grid
        self.reads: list[tuple[int, Range]] = []
        self.scales = {
            i: Range(LEAST, largest.get(symbol.name, math.inf))
            for i, symbol in enumerate(grid.inputs)
            if symbol.is_positive
        }

    def emit(self, op: str, *args: int, data: Any = None) -> int:
        """Return the register of an operation; refuse what takes seconds to write."""
        if len(self.steps) > MAX_STEPS:
            raise too_long(MAX_LENGTH)
        return super().emit(op, *args, data=data)

    def column(self, i: int, within: Range | None = None) -> int:
        """Return the register of a column that lies in a range."""
        within = within or Range(unit=float(i in self.grid.whole))
        if (i, within) not in self.reads:
            self.reads.append((i, within))
        return self.emit("input", data=self.reads.index((i, within)))

    def region(self, part: Part, region: Region) -> int:
        """Return the register of the formula of a region."""
        piece, ranges = part.piece(region), zip(part.reads, part.ranges(region), strict=True)
        inputs = [self.column(i, self.scales.get(i, within)) for i, within in ranges]
        table = tabulated(piece) if {*part.reads} <= self.grid.whole else None
        if table is not None:
            return self.emit("call", *inputs, data=table)
        (result,) = run(piece.tape, inputs, self.ops)
        return int(result)


_FAR = np.array([0.0, 1.0, 2.0, 13.0, 1e6])  # steps from the end of a table, to see that it goes on


def tabulated(piece: Piece) -> Table | None:
    """Return a function of tables as one table; None if it goes on in some other way."""
    tables = [step.data for step in piece.tape.steps if isinstance(step.data, Table)]
    if not tables or len(piece.tape.inputs) > 1:
        return None
    first = min(t.low for t in tables) - 1
    last = max(t.low + len(t.values) for t in tables)

    def at(k: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            return np.full(len(k), run(piece.guarded, [k], NUMPY)[0])

    sides = [at(first - _FAR), at(last + _FAR)]
    if any(np.isfinite(side).any() and not (side == side[0]).all() for side in sides):
        return None
    known = at(np.arange(first, last + 1, dtype=float))
    table = Table(first, tuple(known.tolist()))
    table.values[[0, -1]] = [side[0] for side in sides]
    return table
