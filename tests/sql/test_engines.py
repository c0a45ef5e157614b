"""Nothing stops an engine: extreme doubles, hostile names, every type of column, nulls and NaN.

All that one engine is asked is in one test, so that it is started once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

import pytest
import sympy

import trueup as tu
from backends.engines import ENGINES, Engine, engine
from backends.kinds import Column
from sql.extremes import NAMES, Question, problems, questions, render, table
from trueup.kernels.grid import Grid

AT_ONCE = 12  # expressions in one query


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine(name: str) -> None:
    running = engine(name)
    wrong = [
        *extreme_doubles(running),
        *whole_and_decimal_columns(running),
        *poles(running),
        *aggregates_and_filters(running),
    ]
    if name == "duckdb":  # the other arithmetic that it can be set to: poles are errors
        running.run("SET ieee_floating_point_ops = false")
        wrong += extreme_doubles(running)
        running.run("RESET ieee_floating_point_ops")
    assert not wrong, "\n".join(wrong[:40])


def extreme_doubles(running: Engine) -> Iterator[str]:
    """A finite double within the limits, or NULL; an estimator is refused nowhere."""
    running.load(table(), {})
    asked = [q for q in questions() if q.kind or is_written(q, running.dialect)]
    for i in range(0, len(asked), AT_ONCE):
        some = asked[i : i + AT_ONCE]
        texts = [(q.sql(running.dialect), q.guard(running.dialect)) for q in some]
        answers = running.ask([text for pair in texts for text in pair])
        found = zip(some, texts, answers[::2], answers[1::2], strict=True)
        for question, (text, _), column, inside in found:
            yield from problems(question, text, column, inside)


def is_written(question: Question, dialect: str) -> bool:
    """Whether there is a range of inputs in which no step overflows."""
    try:
        question.sql(dialect)
    except tu.TrueupError as error:
        if "no range of inputs" not in str(error):
            raise
        return False
    return True


def whole_and_decimal_columns(running: Engine) -> Iterator[str]:
    """Integers neither divide as integers nor overflow; decimals keep their digits."""
    whole = [1, 2, 3, 7, -4, 2**53, 2**62, None]
    exact = [*map(Decimal, ("0.125", "-3.5", "99999999.999", "1", "2", "3", "7")), None]
    columns = {NAMES[0]: whole, NAMES[1]: exact}
    cubed = tu.unbiased("q**3", tu.Gaussian(2))
    ratio = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)})
    texts = [
        cubed.sql(running.dialect, columns={"q": NAMES[0]}),
        cubed.sql(running.dialect, columns={"q": NAMES[1]}),
        ratio.sql(running.dialect, columns={"s": NAMES[1], "n": NAMES[0]}),
    ]
    got = running.select(columns, texts, {NAMES[0]: "integer", NAMES[1]: "decimal"})
    pairs = zip(exact, whole, strict=True)
    expected = [
        [None if q is None else cubed(float(q)) for q in whole],
        [None if q is None else cubed(float(q)) for q in exact],
        [None if s is None else ratio(s=float(s), n=float(n or 0)) for s, n in pairs],
    ]
    for text, answers, right in zip(texts, got, expected, strict=True):
        if not same(answers, right, 1e-13):
            yield f"{text[:200]}: got {answers}, expected {right}"


def same(got: Column, right: Column, digits: float = 1e-15) -> bool:
    numbers = [[math.nan if v is None else v for v in column] for column in (got, right)]
    return numbers[0] == pytest.approx(numbers[1], rel=digits, abs=0, nan_ok=True)


def poles(running: Engine) -> Iterator[str]:
    """A pole is NULL, also on the way to a number, and so are ∞ − ∞ and what is not whole."""
    x = sympy.Symbol("x", real=True)
    formulas = (
        1 / x,
        sympy.atan(1 / x),
        sympy.Piecewise((1, 1 / x > 0), (2, True)),
    )
    grids = [Grid.of(f, (x,)) for f in formulas]
    texts = [render(grid, {}, running.dialect) for grid in grids]
    texts.append(tu.unbiased("1/x", tu.DiscreteLaplace(2), (1, None)).sql(running.dialect))
    got = running.select({"x": [0.0, -0.0, 0.5, -0.5, 1e20]}, texts)
    half = math.atan(2)
    expected = [
        [None, None, 2.0, -2.0, 1e-20],
        [None, None, half, -half, 1e-20],
        [None, None, 1.0, 2.0, 1.0],
    ]
    if not all(map(same, got[:-1], expected)):
        yield f"poles: {got}"
    if [v is None for v in got[-1]] != [False, False, True, True, False]:
        yield f"not whole: {got[-1]}"


def aggregates_and_filters(running: Engine) -> Iterator[str]:
    """The expression may stand in an aggregate, in a condition and beside others of its kind."""
    est = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    text = est.sql(running.dialect, columns={"n": ("t", "n")})
    running.load({"n": [4.0, 0.3, 1e200, None]}, {})
    rows = running.run(f"SELECT SUM({text}), COUNT({text}) FROM t WHERE {text} > 0.1")
    if tuple(rows[0]) != (3.125, 2):
        yield f"aggregate: {rows}"
