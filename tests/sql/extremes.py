"""Doubles that break things, and what every engine must make of them."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import count, islice
from typing import Any

import mpmath
import numpy as np
import sympy

from backends.kinds import Column, Kind, around, kinds
from backends.reference import exact
from extras import needs
from trueup.kernels.blocks import NUMPY
from trueup.kernels.grid import Grid, Part
from trueup.sql import statement
from trueup.sql.dialects import dialect_of

sqlglot = needs("sqlglot")
exp = sqlglot.exp
MAX = 1.7976931348623157e308
_POSITIVE = [
    5e-324, 1e-310, 2.2250738585072014e-308, 1e-200, 1.5e-154, 1e-100, 1e-20, 1e-3, 0.5, 2.0, 3.0,
    20.5, 350.0, 709.5, 710.5, 745.5, 1e4, 1e8, 2.0**53, 1e20, 1e50, 1e77, 1e103, 1.3e154, 1.4e154,
    1e200, 1e300, MAX / 4, MAX, math.inf,
]  # fmt: skip
EXTREMES: Column = [
    *(None, math.nan, 0.0, -0.0, *_POSITIVE, *(-x for x in _POSITIVE)),
    *around(1.0, 50.0, 199.0),
]
NAMES = ("select", 'a"b`c', "ünï cödé \\ 1", "t.n")
"""Four columns."""


@lru_cache(maxsize=1)
def table() -> dict[str, Column]:
    """Every extreme in the first column, and random companions in the others."""
    rng = np.random.default_rng(5)
    first = EXTREMES * 6
    others = [[EXTREMES[k] for k in rng.integers(0, len(EXTREMES), len(first))] for _ in NAMES[1:]]
    return dict(zip(NAMES, (first, *others), strict=True))


def render(grid: Any, columns: Any, dialect: Any, **options: Any) -> str:
    """Return a grid as SQL."""
    return statement.text(statement.expression(grid, columns, dialect, **options), dialect)


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """A function of the first columns; ``scales`` of its inputs, the last ones, are scales."""

    name: str
    grid: Any
    root: bool = False
    scales: int = 0
    kind: Kind | None = None

    @cache  # noqa: B019  (there is one of each question)
    def sql(self, dialect: Any) -> str:
        names = dict(zip((s.name for s in self.grid.inputs), NAMES, strict=False))
        if self.kind is None:
            return render(self.grid, names, dialect, root=self.root)
        own = {n: NAMES[i] for i, n in enumerate(self.kind.est.statistics)}
        scales = {n: NAMES[len(own) + i] for i, n in enumerate(self.kind.scales)}
        return self.kind.est.sql(
            dialect, "stderr" if self.root else "value", own, scales, comment=False
        )

    def guard(self, dialect: Any) -> str:
        """The limits: 1 where a row is within them, 0 beyond, as a double."""
        name = dialect_of(dialect).name
        tree = sqlglot.parse_one(self.sql(dialect), dialect=name).args["ifs"][0].this
        one, zero = (exp.cast(exp.Literal.number(x), "double") for x in (1, 0))
        return str(exp.case().when(tree, one).else_(zero).sql(name))

    @property
    def columns(self) -> list[Column]:
        return list(table().values())[: len(self.grid.inputs)]


x, y = sympy.symbols("x y", real=True)
UNARY = [
    sympy.sqrt, sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.tan, sympy.asin, sympy.acos,
    sympy.atan, sympy.sinh, sympy.cosh, sympy.tanh, sympy.asinh, sympy.acosh, sympy.atanh,
    sympy.Abs, sympy.sign,
]  # fmt: skip
FORMULAS = [
    *(f(x) for f in UNARY),
    *(x + y, x - y, x * y, x / y, 3 * x - 1e300 * y, 1e-200 * x / y),
    *(x**2, x**5, x**-3, x**9 - y**7, (x + y) ** 4, (1 + x**2) ** -5, 1e-100 / x**4),
    *(1 / sympy.sqrt(x), x ** sympy.Rational(1, 3), x**2.5, sympy.Integer(2) ** x),
    *(sympy.exp(-(x**2) / 2), sympy.log(1 + sympy.exp(x)), 1 / (1 + sympy.exp(-x))),
    sympy.exp(x * y),
    *(sympy.Max(x, y, 3), sympy.Min(x, y**2), sympy.Max(x - y, x * y)),
    sympy.Piecewise((x, x < y), (2 * y, sympy.And(x > 1, y > 1)), (x * y, True)),
    sympy.Piecewise((x, sympy.Or(x >= y, sympy.Not(y <= 0))), (y, sympy.Ne(x, 3))),
    sympy.Piecewise((1, sympy.atan(x) - y / 3 > 0), (0, True)),
    sympy.Add(*(sympy.cos(k * x) / (k + y**2) for k in range(1, 13))),
]  # fmt: skip


_SHAPES = [
    *UNARY, lambda e: 1 / e, lambda e: e**5, lambda e: e**-3, lambda e: e ** sympy.Rational(1, 3),
    lambda e: sympy.log(1 + e**2), lambda e: 1 / (1 + sympy.exp(-e)),
]  # fmt: skip
_PAIRS = [
    sympy.Add, sympy.Mul, lambda a, b: a - b, lambda a, b: a / b, lambda a, b: a / (1 + b**2),
    sympy.Max, sympy.Min, lambda a, b: sympy.Piecewise((a, a < b), (b, True)),
    lambda a, b: sympy.Piecewise((a, sympy.And(a > 1, b > 1)), (a * b, True)),
]  # fmt: skip
_LEAVES = [
    x,
    y,
    x,
    y,
    sympy.Integer(2),
    sympy.Rational(1, 3),
    sympy.Float(1e-150),
    sympy.Float(1e160),
]


def drawn(seed: int, depth: int = 4) -> sympy.Expr:
    """A random formula in x and y."""
    rng = random.Random(seed)

    def grown(depth: int) -> sympy.Expr:
        if depth == 0:
            return rng.choice(_LEAVES)
        if rng.random() < 0.45:
            return rng.choice(_SHAPES)(grown(depth - 1))
        return rng.choice(_PAIRS)(grown(depth - 1), grown(rng.randint(0, depth - 1)))

    return grown(depth)


def _real_formulas() -> Iterator[sympy.Expr]:
    """Yield random formulas in both variables that are real somewhere."""
    for seed in count():
        try:
            f = drawn(seed)
        except TypeError:  # a comparison of what is not real
            continue
        if f.free_symbols == {x, y} and not f.has(sympy.I, sympy.nan, sympy.zoo, sympy.oo):
            yield f


@lru_cache(maxsize=1)
def questions() -> tuple[Question, ...]:
    """Every kind of estimator, and every operation."""
    return (*_estimators(), *_operations())


def _estimators() -> Iterator[Question]:
    for kind in kinds():
        for root, what in ((False, "value"), (True, "variance")):
            name = f"{kind.name}, {'stderr' if root else 'value'}"
            yield Question(name, kind.grid(what), root, len(kind.scales), kind)


def _operations() -> Iterator[Question]:
    for f in FORMULAS:
        inputs = tuple(sorted(f.free_symbols, key=str))
        grid = Grid.of(f, inputs)
        yield Question(str(f)[:60], grid)
    for f in islice(_real_formulas(), 24):
        grid = Grid.of(f, (x, y))
        yield Question(str(f)[:120], grid)
    parts = [Part((x, y), [i], lambda _, f=f: f) for i, f in enumerate((x**3, 1 / y))]
    grid = Grid((x, y), [[part] for part in parts])
    yield Question("sum of parts", grid, root=True)


@cache
def in_doubles(question: Question) -> list[float]:
    """Return what plain doubles give, without the rescue of what overflows on the way."""
    grid = question.grid
    columns = [np.array([math.nan if v is None else v for v in c]) for c in question.columns]
    with np.errstate(all="ignore"):
        found = grid.block(columns)
        found = np.sqrt(found) if question.root else found
        for i in grid.whole:
            found[np.floor(columns[i]) != columns[i]] = math.nan
        for scale in columns[len(columns) - question.scales :]:
            found[~((scale > 0) & (scale < math.inf))] = math.nan
    return [float(v) for v in found]


@cache
def expectation(question: Question, row: tuple[float, ...]) -> tuple[Any, Any] | None:
    """Return the exact value and its magnitude, computed once for all engines."""
    return exact(question.grid, list(row))


def undefined(grid: Any, row: Any) -> bool:
    """Whether a step on the way divides by zero, is at a pole, or is no number."""
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for node in grid.terms[0][0].piece(()).tape.steps:
            args = [values[a] for a in node.args]
            if node.op == "input":
                values.append(np.float64(row[node.data]))
            elif node.op in ("const", "truth"):
                values.append(np.float64(node.data))
            elif node.op == "where":
                values.append(args[1] if args[0] else args[2])
            elif (node.op == "div" and args[1] == 0) or (node.op == "atanh" and abs(args[0]) == 1):
                return True
            else:
                values.append(NUMPY[node.op](*args))
            if values[-1] != values[-1]:
                return True
    return False


def problems(question: Question, text: str, answers: Column, inside: Column) -> list[str]:
    """Return what is wrong with a column of answers, given which rows are within the limits.

    Exponentials have limits of their own, in the text; where they vanish, what is left out is
    below 1e-100.
    """
    wrong, sure = [], not any(f in text for f in ("EXP(", "SINH(", "COSH("))
    dust = mpmath.mpf("1e-290" if sure else "1e-100")
    rows = zip(*question.columns, strict=True)
    found = zip(rows, answers, inside, in_doubles(question), strict=True)
    for row, got, within, near in found:
        if not _fits(question, row, got, within == 1.0, sure, near, dust):
            wrong.append(f"{question.name} at {row}: got {got!r}, doubles give {near!r}")
    return wrong


def ordinary(question: Question, row: Any) -> bool:
    """Whether a row is one that no limit may leave out: every number zero or of ordinary size.

    The limits of a formula such as e^{xy} are narrow where overflow stops a query: 17 each.
    """
    first = len(row) - question.scales
    most = 100 if question.kind else 16
    return all(
        v is not None and (v == 0 or 1e-3 <= abs(v) <= (most if i < first else 20.5))
        for i, v in enumerate(row)
    )


def _fits(
    question: Question,
    row: Any,
    got: float | None,
    within: bool,
    sure: bool,
    near: float,
    dust: Any,
) -> bool:
    """Whether an answer is right: NULL for no number or beyond the limits, else near the exact."""
    finite = all(v is not None and math.isfinite(v) for v in row)
    if got is None:
        if not math.isfinite(near) or (not (within and sure) and not ordinary(question, row)):
            return True
        return question.kind is None and (not finite or undefined(question.grid, row))
    if not within:
        return False
    if not math.isfinite(got) or any(v is None or math.isnan(v) for v in row):
        return False
    if math.isfinite(near) and abs(got - near) <= 1e-11 * abs(near) + 1e-290:
        return True
    if not finite:
        return not question.kind
    expected = expectation(question, row)
    if expected is None:
        return False
    value, size = expected
    allowed = mpmath.mpf("1e-10") * size + dust
    return bool(abs(mpmath.mpf(got) ** (2 if question.root else 1) - value) <= allowed)
