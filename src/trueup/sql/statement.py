"""What is asked of an estimator in SQL: which output, which columns, which noise scales.

Its value or variance is a grid: CASE WHEN the inputs are in a box THEN the plain formula END. In
the box no step overflows, underflows or is undefined, and every number is ordinary. Beyond it the
result is NULL. Where no box is sure, engines with infinities compute with them and drop what is
not finite; the others refuse.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.inputs import by_statistic
from trueup.inverse.projection import ENDS
from trueup.sql import glot, magnitudes
from trueup.sql.dialects import dialect_of
from trueup.sql.glot import exp
from trueup.sql.parts import Finish, PartWriter, SumOfProducts
from trueup.sql.safe_inputs import Input, Range, ordinary
from trueup.sql.writer import MAX, too_long

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trueup.estimator import Estimator
    from trueup.kernels.grid import Grid
    from trueup.sql.dialects import Dialect
    from trueup.sql.glot import Sql
    from trueup.sql.safe_inputs import Box

MAX_LENGTH = 200_000
"""The length of the text, in characters."""

MAX_REGIONS = 300
"""How many formulas an estimator may consist of."""

MAX_STEPS = 4_000
"""Formulas times their operations: each takes a millisecond or two to write."""

OUTPUTS = ("value", "variance", "stderr", *ENDS)


def statement(
    est: Estimator,
    dialect: str | Dialect = "duckdb",
    output: str = "value",
    columns: Mapping[str, Any] | None = None,
    scales: Mapping[str, Any] | None = None,
    level: float = 0.95,
) -> Any:
    """Return an estimator as a tree of sqlglot; see :meth:`trueup.estimator.Estimator.sql`.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> statement(unbiased("q", Laplace(2)), "tsql", columns={"q": ("t", "x y")}).sql("tsql")
    'CASE WHEN [t].[x y] BETWEEN -1e100 AND 1e100 THEN CAST([t].[x y] AS FLOAT) END'
    """
    if output not in OUTPUTS:
        raise TrueupError(f"{output!r} is no output", f"outputs are {', '.join(OUTPUTS)}")
    named = dict(by_statistic(columns, "columns"))
    scaled = dict(by_statistic(scales, "scales"))
    _check("columns", named, est.statistics)
    _check("scales", scaled, est.statistics)
    if output in ENDS:
        return _end(est, dialect, output, named, scaled, level)
    what, root = ("value" if output == "value" else "variance"), output == "stderr"
    if not scaled:
        grid = est._value if what == "value" else est._variance
        return expression(grid, named, dialect, root=root)
    form = est._scaled(tuple(scaled))
    grid, largest = form.grid(what), form.largest(what)
    symbols = zip(grid.inputs[len(est.statistics) :], scaled.items(), strict=True)
    limits = {}
    for symbol, (name, column) in symbols:
        named[symbol.name], limits[symbol.name] = column, largest[name]
    return expression(grid, named, dialect, root=root, limits=limits)


def _end(
    est: Estimator,
    dialect: str | Dialect,
    output: str,
    columns: dict[str, Any],
    scales: dict[str, Any],
    level: float,
) -> Any:
    """Return an end of the interval."""
    ends = est._closed_ends(level, tuple(scales))
    if ends is not None:
        grid = ends[ENDS.index(output)]
        symbols = grid.inputs[len(est.statistics) :]
        named = dict(zip((q.name for q in symbols), scales.values(), strict=True))
        return expression(grid, columns | named, dialect)
    engine = dialect_of(dialect)
    value, error = (
        statement(est, engine, what, columns, scales or None) for what in ("value", "stderr")
    )
    z, fixed, share = est._spread(level)
    spread = glot.mul(glot.literal(z), error, engine)
    if fixed:
        spread = glot.add(spread, glot.literal(fixed), engine)
    if share:
        size = glot.of_double("ABS", value.copy(), engine)
        spread = glot.add(spread, glot.mul(glot.literal(share), size, engine), engine)
    combine = glot.sub if output == "low" else glot.add
    return exp.Paren(this=combine(value, spread, engine))


def _check(what: str, names: Iterable[str], statistics: tuple[str, ...]) -> None:
    for name in names:
        if name not in statistics:
            raise TrueupError(
                f"{what} are given for {name!r}, which is no statistic",
                f"the statistics are {', '.join(statistics)}",
            )


def expression(
    grid: Grid,
    columns: Mapping[str, Any],
    dialect: str | Dialect,
    *,
    root: bool = False,
    limits: Mapping[str, float] | None = None,
) -> Any:
    """Return a grid as a sqlglot expression.

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
    limits
        For inputs that are noise scales, below which they are valid.
    """
    engine = dialect_of(dialect)
    inputs = []
    for i, symbol in enumerate(grid.inputs):
        limit = (limits or {}).get(symbol.name, math.inf) if symbol.is_positive else None
        name = columns.get(symbol.name, symbol.name)
        inputs.append(Input(glot.column(name, engine), i in grid.whole, limit))
    try:
        return Assembly(grid, inputs, engine, root=root).expression()
    except RecursionError:
        raise too_long() from None


def render(grid: Grid, columns: Mapping[str, Any], dialect: str | Dialect, **options: Any) -> str:
    """Return a grid as SQL text; the options are those of :func:`expression`.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> render(unbiased("q**2", Laplace(3))._value, {"q": "sales"}, "mysql")
    'CASE WHEN `sales` BETWEEN -1e100 AND 1e100 THEN CAST(`sales` AS DOUBLE) * `sales` - 18 END'
    """
    return text(expression(grid, columns, dialect, **options), dialect)


def text(tree: Any, dialect: str | Dialect, *, pretty: bool = False) -> str:
    """Return an expression as text, with ``pretty`` on several lines."""
    try:
        written: str = tree.sql(dialect=dialect_of(dialect).name, pretty=pretty)
    except RecursionError:
        raise too_long() from None
    if len(written) > MAX_LENGTH:
        raise TrueupError(
            f"the estimator is too long for SQL: {len(written)} characters, at most {MAX_LENGTH}",
            "debias the parts of the formula one by one, or compute it in Python",
        )
    return written


class Assembly:
    """One grid being written, or its root, NULL where that is none; ``inputs`` are its columns."""

    def __init__(
        self, grid: Grid, inputs: Sequence[Input], dialect: Dialect, *, root: bool = False
    ) -> None:
        self.dialect, self.inputs, self.root = dialect, inputs, root
        self.parts = [
            (SumOfProducts if part.products else PartWriter)(part, inputs, dialect)
            for part in grid.parts
        ]
        if sum(part.size for part in self.parts) > MAX_REGIONS:
            raise too_long()
        if sum(part.steps for part in self.parts) > MAX_STEPS:
            raise too_long()

    def expression(self) -> Sql:
        """Return the expression."""
        box = ordinary(self.inputs, self._safe)
        sure = box is not None
        if self.dialect.overflow == "infinite" and (box is None or self._is_narrow(box)):
            sure, box = False, (Range(-MAX, MAX),) * len(self.inputs)
        if box is None:
            raise TrueupError(
                f"{self.dialect.name} stops at overflow, and no range of inputs is sure to "
                "stay clear of it in this estimator",
                "compute it in another engine, or in Python",
            )
        finish = Finish(self.dialect, self.root, guard=not sure)
        return glot.case([(self._inside(box), self._formula(box, finish))], None, self.dialect)

    def _is_narrow(self, box: Box) -> bool:
        return any(x.is_narrow(given) for x, given in zip(self.inputs, box, strict=True))

    # -- which rows ----------------------------------------------------------------------------

    def _safe(self, box: Box) -> bool:
        total = magnitudes.constant(0.0)
        for part in self.parts:
            s = part.span(box)
            if s is None:
                return False
            total = magnitudes.add(total, s)
        return total.top <= magnitudes.HUGE and not total.nan

    def _inside(self, box: Box) -> Sql:
        """Return the condition that every input is in the box: neither NULL nor NaN is."""
        conditions = []
        for x, given in zip(self.inputs, box, strict=True):
            if self.dialect.finite:
                conditions.append(glot.function(self.dialect.finite, x.leaf.copy()))
            conditions.append(
                self._scale(x, given) if x.limit is not None else self._size(x, given)
            )
            if x.whole:
                conditions.append(self._whole(x))
        return glot.both(*conditions)

    def _whole(self, x: Input) -> Sql:
        rounded = glot.function(self.dialect.floor, x.leaf.copy())
        return self._compare("eq", rounded, x.leaf.copy())

    def _size(self, x: Input, given: Range) -> Sql:
        within = glot.between(x.leaf.copy(), given.low, given.high, self.dialect)
        symmetric = given.low == -given.high
        if not given.least:
            if symmetric and self.dialect.literal == "text":  # so long that it stands but once
                return self._compare(
                    "le", glot.function("ABS", x.leaf.copy()), glot.literal(given.high)
                )
            return within
        zero = self._at(x, "eq", 0.0)
        size = glot.of_double("ABS", x.leaf.copy(), self.dialect)
        if symmetric:
            return glot.either(zero, glot.between(size, given.least, given.high, self.dialect))
        least = glot.literal(given.least)
        return glot.both(within, glot.either(zero, self._compare("ge", size, least)))

    def _scale(self, x: Input, given: Range) -> Sql:
        limit = math.inf if x.limit is None else x.limit
        below, high = ("lt", limit) if limit <= given.high else ("le", given.high)
        above = "ge" if given.least else "gt"
        return glot.both(self._at(x, above, given.least), self._at(x, below, high))

    def _compare(self, op: str, a: Sql, b: Sql) -> Sql:
        return glot.compare(op, a, b, self.dialect)

    def _at(self, x: Input, op: str, end: float) -> Sql:
        return self._compare(op, x.leaf.copy(), glot.literal(end))

    # -- what they get -------------------------------------------------------------------------

    def _formula(self, box: Box, finish: Finish) -> Sql:
        if len(self.parts) == 1:
            return self.parts[0].cases(box, finish)
        first, *others = [part.cases(box, Finish(self.dialect)) for part in self.parts]
        for other in others:
            first = glot.add(first, other, self.dialect)
        return finish(first, magnitudes.LINE)
