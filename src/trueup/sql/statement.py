"""What est.sql is asked, answered by one CASE: NULL beyond the limits, else the plain formula.

The limits are one number for all inputs and one for exponents. Within them no step of any formula
overflows, so nothing else is guarded but what is undefined.
"""

from __future__ import annotations

import math
import re
from functools import reduce
from itertools import product as combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup._version import __version__
from trueup.errors import TrueupError
from trueup.formula.opaque import Table
from trueup.formula.operations import FUNCTIONS
from trueup.inputs import by_statistic
from trueup.inverse.projection import ENDS
from trueup.kernels.blocks import NUMPY
from trueup.kernels.grid import nearest
from trueup.kernels.limits import LEAST, Survey
from trueup.kernels.tape import run
from trueup.sql import arithmetic
from trueup.sql.arithmetic import (
    MAX_LENGTH,
    Arithmetic,
    Factor,
    Number,
    exp,
    too_long,
)
from trueup.sql.dialects import dialect_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.estimator import Estimator
    from trueup.kernels.grid import Grid, Part, Piece, Region
    from trueup.kernels.limits import Size
    from trueup.sql.arithmetic import Sql
    from trueup.sql.dialects import Dialect

MAX_STEPS = 4_000
"""Formulas times their operations: each takes a millisecond or two to write."""

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
    'CASE WHEN `t`.`x y` BETWEEN -1e100 AND 1e100 THEN CAST(`t`.`x y` AS DOUBLE) END'
    """
    if output not in OUTPUTS:
        raise TrueupError(f"{output!r} is no output", f"outputs are {', '.join(OUTPUTS)}")
    named = dict(by_statistic(columns, "columns"))
    scaled = dict(by_statistic(scales, "scales"))
    _check("columns", named, est.statistics)
    _check("scales", scaled, est.statistics)
    engine = dialect_of(dialect)
    try:
        if output in ENDS:
            return _end(est, engine, output, named, scaled, level)
        what = "value" if output == "value" else "variance"
        if not scaled:
            grid = est._value if what == "value" else est._variance
            return expression(grid, named, engine, root=output == "stderr")
        form = est._scaled(tuple(scaled))
        grid, largest = form.grid(what), form.largest(what)
        symbols = [s.name for s in grid.inputs[len(est.statistics) :]]
        named |= dict(zip(symbols, scaled.values(), strict=True))
        limits = dict(zip(symbols, (largest[name] for name in scaled), strict=True))
        return expression(grid, named, engine, root=output == "stderr", largest=limits)
    except RecursionError:
        raise too_long(MAX_LENGTH) from None


def _end(
    est: Estimator,
    dialect: Dialect,
    output: str,
    columns: dict[str, Any],
    scales: dict[str, Any],
    level: float,
) -> Sql:
    """Return an end of the interval."""
    ends = est._intervals.closed(level, tuple(scales))
    if ends is not None:
        grid = ends[ENDS.index(output)]
        symbols = grid.inputs[len(est.statistics) :]
        named = dict(zip((q.name for q in symbols), scales.values(), strict=True))
        return expression(grid, columns | named, dialect)
    value, error = (
        arithmetic.single(Factor(statement(est, dialect, what, columns, scales or None).copy))
        for what in ("value", "stderr")
    )
    on = Arithmetic(dialect)
    z, fixed, share = map(arithmetic.constant, est._spread(level))
    spread = on.add(on.mul(z, error), fixed)
    if share.c:
        spread = on.add(spread, on.mul(share, on.abs(value)))
    return exp.Paren(this=on.value((on.sub if output == "low" else on.add)(value, spread)))


def _check(what: str, names: Iterable[str], statistics: tuple[str, ...]) -> None:
    for name in names:
        if name not in statistics:
            raise TrueupError(
                f"{what} are given for {name!r}, which is no statistic",
                f"the statistics are {', '.join(statistics)}",
            )


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
        written: str = tree.sql(dialect=dialect_of(dialect).name, pretty=pretty)
    except RecursionError:
        raise too_long(MAX_LENGTH) from None
    if len(written) > most:
        raise too_long(len(written), most)
    return written


# -- grids -----------------------------------------------------------------------------------------


class Input(NamedTuple):
    """One column: a statistic, or the noise scale of one (positive and below ``largest``)."""

    name: Sql
    whole: bool
    largest: float | None = None


def render(grid: Grid, columns: Mapping[str, Any], dialect: str | Dialect, **options: Any) -> str:
    """Return a grid as SQL text; the options are those of :func:`expression`.

    Examples
    --------
    >>> from trueup import Laplace, unbiased
    >>> render(unbiased("q**2", Laplace(3))._value, {"q": "sales"}, "spark")
    'CASE WHEN `sales` BETWEEN -1e100 AND 1e100 THEN CAST(`sales` AS DOUBLE) * `sales` - 18e0 END'
    """
    return text(expression(grid, columns, dialect, **options), dialect)


def expression(
    grid: Grid,
    columns: Mapping[str, Any],
    dialect: str | Dialect,
    *,
    root: bool = False,
    largest: Mapping[str, float] | None = None,
) -> Sql:
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
    largest
        For inputs that are noise scales, below which they are valid.
    """
    engine = dialect_of(dialect)
    inputs = []
    for i, symbol in enumerate(grid.inputs):
        limit = (largest or {}).get(symbol.name, math.inf) if symbol.is_positive else None
        name = column(columns.get(symbol.name, symbol.name), engine)
        inputs.append(Input(name, i in grid.whole, limit))
    regions = [Regions(part, inputs) for part in grid.parts]
    _check_functions(regions, engine)
    if sum(r.steps for r in regions) > MAX_STEPS:
        raise too_long(MAX_LENGTH)
    limits = Limits(regions, engine)
    on = Arithmetic(engine, limits.exponent, limits.vanishing)
    total, *more = [r.number(on, root and len(regions) == 1) for r in regions]
    for number in more:
        total = on.add(total, number)
    if root and more:
        total = on.root(total)
    inside = [c for i, x in enumerate(inputs) for c in _inside(i, x, on, limits)]
    return exp.Case(ifs=[exp.If(this=arithmetic.both(*inside), true=on.value(total))])


def _check_functions(regions: Sequence[Regions], dialect: Dialect) -> None:
    used = {step.op for r in regions for f in r.factors for step in f.inside.tape.steps}
    lacking = sorted(used & FUNCTIONS.keys() - dialect.has - {*arithmetic.COMPOSED})
    if lacking:
        raise TrueupError(
            f"{dialect.name} has no function {lacking[0]}",
            "compute this estimator in another engine, or in Python",
        )


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


def _inside(i: int, x: Input, on: Arithmetic, limits: Limits) -> Iterator[Sql]:
    """Yield the conditions on a column within its limits: neither NULL nor NaN is."""
    dialect = on.dialect
    ends = (LEAST, limits.most)
    least, most = (arithmetic.literal(end, dialect) for end in ends)
    if dialect.finite:
        yield arithmetic.call(dialect.finite, x.name.copy())
    if x.largest is not None:
        yield exp.Between(this=on.compared(x.name.copy()), low=least, high=most)
        if x.largest < limits.most:
            yield on.compare("lt", x.name.copy(), x.largest)
    elif i in limits.tiny:
        size = arithmetic.call("ABS", on.double(x.name.copy()))
        zero = on.compare("eq", x.name.copy(), 0.0)
        yield exp.Or(this=zero, expression=exp.Between(this=size, low=least, high=most))
    elif dialect.literal == "text":  # long numbers: the limit stands once
        yield exp.LTE(this=arithmetic.call("ABS", x.name.copy()), expression=most)
    else:
        low = arithmetic.literal(-limits.most, dialect)
        yield exp.Between(this=on.compared(x.name.copy()), low=low, high=most)
    if x.whole:
        rounded = arithmetic.call(dialect.floor, x.name.copy())
        yield exp.EQ(this=rounded, expression=on.compared(x.name.copy()))


class Limits:
    """How large inputs and exponents may be so that every step is within the range of doubles.

    ``tiny`` are the inputs that may be 0 but not otherwise below ``LEAST`` in size.
    """

    def __init__(self, regions: Sequence[Regions], dialect: Dialect) -> None:
        pieces = [piece for r in regions for piece in r.pieces]
        self.vanishing = all(p.limits.vanishing for p, _ in pieces)
        near = {i for r in regions for i in r.near_zero}
        divided = {r for p, reads in pieces for i in p.limits.tiny for r in [reads[i]]}
        self.tiny = near if dialect.underflow else near & divided
        survey = Survey([p.tape for p, _ in pieces], self.vanishing and not dialect.stops)
        for r in regions:
            r.size(survey, self.tiny)
        self.most, self.exponent = survey.widest()
        if not self.most:
            raise TrueupError(
                "no range of inputs is sure to stay within the range of doubles in this estimator",
                "compute it in Python, or debias the parts of the formula one by one",
            )


class Regions:
    """One summand of a grid: its formula on each side of the bounds, or the products it is of."""

    def __init__(self, part: Part, inputs: Sequence[Input]) -> None:
        self.part, self.inputs = part, inputs
        self.products = [[(Regions(f, inputs), n) for f, n in term] for term in part.products]
        branches = ([0, *sorted({b.below, b.above} - {0})] for b in part.bounds)
        self.all: list[Region] = [] if self.products else list(combinations(*branches))
        self.tables: dict[Region, Values | None] = {}

    @property
    def factors(self) -> list[Regions]:
        """The summand itself, or those that it multiplies."""
        return [f for term in self.products for f, _ in term] or [self]

    @property
    def steps(self) -> int:
        """How many operations the formulas have, about."""
        if self.products:
            return sum(f.steps for f in self.factors)
        return len(self.all) * len(self.inside.tape.steps)

    @property
    def inside(self) -> Piece:
        """The formula within all bounds."""
        return self.part.piece(self.part.inside)

    def between(self, region: Region) -> list[tuple[float, float]]:
        """Return where the inputs that are read lie in a region."""
        largest = [self.inputs[i].largest for i in self.part.reads]
        ranges = self.part.ranges(region)
        return [
            (r.low, r.high) if scale is None else (LEAST, scale)
            for r, scale in zip(ranges, largest, strict=True)
        ]

    # -- limits ------------------------------------------------------------------------------------

    @property
    def near_zero(self) -> set[int]:
        """The inputs that may be close to 0 where they are read."""
        return {
            i
            for f in self.factors
            for region in f.all
            if f.part.piece(region).tape.constant is None
            for i, within in zip(f.part.reads, f.part.ranges(region), strict=True)
            if not within.least
        }

    @property
    def pieces(self) -> list[tuple[Piece, tuple[int, ...]]]:
        """Every formula with the inputs it reads."""
        return [(f.part.piece(r), f.part.reads) for f in self.factors for r in f.all]

    def size(self, survey: Survey, tiny: set[int]) -> Size:
        """Return the size of the values."""
        if not self.products:
            divided = frozenset(k for k, i in enumerate(self.part.reads) if i in tiny)
            sizes = (
                survey.size(self.part.piece(r).tape, self.part.ranges(r), divided) for r in self.all
            )
            return reduce(survey.ops["max"], sizes)
        terms = []
        for term in self.products:
            factors = (f.size(survey, tiny) for f, n in term for _ in range(n))
            terms.append(reduce(survey.ops["mul"], factors))
        return reduce(survey.ops["add"], terms)

    # -- formulas ----------------------------------------------------------------------------------

    def number(self, on: Arithmetic, root: bool) -> Number:
        """Return the values, or their roots."""
        if not self.products:
            return self._cases(on, root, ())
        total = arithmetic.constant(0.0)
        for term in self.products:
            product = arithmetic.constant(1.0)
            for factor, n in term:
                number = factor.number(on, root=False)
                for _ in range(n):
                    product = on.mul(product, number)
            total = on.add(total, product)
        return on.root(total) if root else total

    def _cases(self, on: Arithmetic, root: bool, region: Region) -> Number:
        """Return CASE over the bounds, one after the other."""
        if len(region) == len(self.part.bounds):
            return self._formula(on, root, region)
        b = self.part.bounds[len(region)]
        inside = self._cases(on, root, (*region, 0))
        branches = [
            (op, at, self._cases(on, root, (*region, i)))
            for op, at, i in (("le", b.low, b.below), ("ge", b.high, b.above))
            if i
        ]
        numbers = [inside, *(number for *_, number in branches)]
        if all(on.tree(number) == on.tree(inside) for number in numbers[1:]):
            return inside
        x = self.inputs[b.input]

        def write() -> Sql:
            if len(branches) == 1 and nearest(branches[0][1]) is None:  # faster: most rows first
                ((op, at, beyond),) = branches
                within = on.compare("gt" if op == "le" else "lt", x.name.copy(), at)
                return on.case([(within, on.tree(inside))], on.tree(beyond))
            cases = [(_beyond(x, on, op, at), on.tree(number)) for op, at, number in branches]
            return on.case(cases, on.tree(inside))

        return arithmetic.single(
            Factor(
                write,
                min(n.low for n in numbers),
                max(n.high for n in numbers),
                any(n.null for n in numbers),
                sum(n.operands + 2 for n in numbers),
            )
        )

    def _formula(self, on: Arithmetic, root: bool, region: Region) -> Number:
        names = [self.inputs[i].name for i in self.part.reads]
        between = self.between(region)
        columns = [
            arithmetic.single(Factor(name.copy, *ends))
            for name, ends in zip(names, between, strict=True)
        ]
        values = self._values(region)
        if values is not None:
            found = values.known.tolist()
            if root:
                found = [math.sqrt(v) if v >= 0 else math.nan for v in found]
            return on.lookup(columns[0], values.low, found, values.beyond)
        (result,) = run(self.part.piece(region).tape, columns, on.table)
        return on.root(result) if root else result

    def _values(self, region: Region) -> Values | None:
        """Return the values at the whole numbers of tables, None unless they say everything."""
        if region not in self.tables:
            piece = self.part.piece(region)
            found = [s.data for s in piece.tape.steps if s.op == "call"]
            alone = len(self.part.reads) == 1 and self.inputs[self.part.reads[0]].whole
            read = alone and found and all(isinstance(t, Table) for t in found)
            self.tables[region] = _read(piece, found) if read else None
        return self.tables[region]


def _beyond(x: Input, on: Arithmetic, op: str, at: float) -> Sql:
    """Write that a column is at or beyond a bound, or what singles hold for the bound."""
    beyond, near = on.compare(op, x.name.copy(), at), nearest(at)
    if near is None or x.whole or (near < at) == (op == "le"):
        return beyond
    return exp.Or(this=beyond, expression=on.compare("eq", x.name.copy(), near))


class Values(NamedTuple):
    """What is ``known`` at the whole numbers from ``low`` on.

    ``beyond`` says on which sides the last value goes on for ever; else there is none.
    """

    low: int
    known: NDArray[np.float64]
    beyond: tuple[bool, bool]


_FAR = np.array([0.0, 1.0, 2.0, 13.0, 1e6])  # steps from the end of a table, to see that it goes on


def _read(piece: Piece, tables: Sequence[Table]) -> Values | None:
    """Return the values at and around tables; None if they go on in some other way."""
    first = min(t.low for t in tables) - 1
    last = max(t.low + len(t.values) for t in tables)

    def at(k: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            return np.full(len(k), run(piece.guarded, [k], NUMPY)[0])

    sides = [at(first - _FAR), at(last + _FAR)]
    if any(np.isfinite(side).any() and not (side == side[0]).all() for side in sides):
        return None
    values = at(np.arange(first, last + 1, dtype=float))
    finite = np.flatnonzero(np.isfinite(values))
    if not len(finite):
        return Values(first, np.array([np.nan]), (False, False))
    low, high = int(finite[0]), int(finite[-1])
    goes_on = tuple(bool(np.isfinite(side[0])) for side in sides)
    return Values(first + low, values[low : high + 1], (goes_on[0], goes_on[1]))
