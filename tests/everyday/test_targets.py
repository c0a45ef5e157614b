"""Arrays, Polars, DuckDB and SQLite answer what the estimator answers, value for value."""

from __future__ import annotations

import functools
import math
import random
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest

import trueup as tu
from everyday.cases import CASES, Case
from everyday.known import MISSING, built, oracle
from extras import needs

SAME = 1e-9
ROWS = 24
LONGEST = 20_000
"""Characters of SQL: what takes more is refused."""
MIDDLING = 8_000
"""Characters of SQL of an estimate, beyond which that of its error is too long."""
IN_SQL = ("1/n", "log(n)", "n**1.5")
"""Formulas whose SQL is asked for where an integer has continuous noise: it takes seconds."""

HERE = [case for case in CASES if case.name not in MISSING]
IDS = [case.name for case in HERE]


def rows(case: Case) -> dict[str, list[float]]:
    """Return published values at, below and above the bounds."""
    rng = random.Random(case.name)
    columns = {}
    for name, low in oracle(case).lows.items():
        start = 0.0 if low is None else low
        lattice = oracle(case).laws[name].lattice
        near = [start + step for step in (0.0, 1.0, -1.0, 2.0)]
        rng.shuffle(near)
        far = [start + rng.uniform(-15, 60) for _ in range(ROWS - len(near))]
        columns[name] = [*near, *(float(round(x)) if lattice else x for x in far)]
    return columns


def answers(case: Case, columns: Mapping[str, list[float]]) -> tuple[list[float], list[float]]:
    """Return estimates and standard errors, number by number."""
    est = built(case)
    points = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [est(**x) for x in points], [est.stderr(**x) for x in points]


def assert_same(got: list[Any], right: list[float], squares: bool = False) -> None:
    """Assert equality; a variance near 0 keeps half the digits of its root."""
    size = max(abs(x) for x in right if not math.isnan(x))
    found = [math.nan if x is None else x for x in got]
    if squares:
        found, right, size = [x * x for x in found], [x * x for x in right], size * size
    assert found == pytest.approx(right, rel=SAME, abs=SAME * size, nan_ok=True)


@pytest.mark.parametrize("case", HERE, ids=IDS)
def test_arrays_and_sql(case: Case) -> None:
    columns = rows(case)
    values, errors = answers(case, columns)
    est = built(case)
    assert_same(list(est(**columns)), values)
    assert_same(list(est.stderr(**columns)), errors, squares=True)
    if case.integers and case.formula not in IN_SQL:
        return
    short = True
    for dialect, ask in (("duckdb", _duckdb), ("sqlite", _sqlite)):
        text = written(est, dialect, "value")
        if text is not None:
            assert_same(ask(text, columns), values)
        short &= text is not None and len(text) <= MIDDLING
    text = written(est, "duckdb", "stderr") if short else None
    if text is not None:
        assert_same(_duckdb(text, columns), errors, squares=True)


def written(est: tu.Estimator, dialect: str, output: str) -> str | None:
    """Return the SQL, None where it takes more characters than are allowed."""
    try:
        text = est.sql(dialect, output)
    except tu.TrueupError as error:
        assert "too long" in str(error)  # noqa: PT017
        return None
    return text if len(text) <= LONGEST else None


@functools.cache
def _connection() -> Any:
    return needs("duckdb").connect()


def _duckdb(text: str, columns: Mapping[str, list[float]]) -> list[Any]:
    return _asked(_connection(), text, columns)


def _sqlite(text: str, columns: Mapping[str, list[float]]) -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as connection:
        return _asked(connection, text, columns)


def _asked(connection: Any, text: str, columns: Mapping[str, list[float]]) -> list[Any]:
    data = ", ".join(
        str((float(i), *row)) for i, row in enumerate(zip(*columns.values(), strict=True))
    )
    names = ", ".join(f'"{name}"' for name in ("row of t", *columns))
    found = connection.execute(
        f'WITH t ({names}) AS (VALUES {data}) SELECT {text} FROM t ORDER BY "row of t"'  # noqa: S608
    )
    return [value for (value,) in found.fetchall()]


@pytest.mark.filterwarnings("ignore::trueup.BoundWarning")  # rows are far beyond the bounds
def test_polars() -> None:
    """All estimators of the same statistics at once."""
    polars = needs("polars")
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in HERE:
        groups.setdefault(tuple(case.noises), []).append(case)
    for cases in groups.values():
        columns = rows(cases[0])
        columns = {name: [float(round(x)) for x in column] for name, column in columns.items()}
        named = {f"e{i}": built(case) for i, case in enumerate(cases)}
        frame = tu.debias(polars.DataFrame(columns), **named)
        for name, case in zip(named, cases, strict=True):
            values, errors = answers(case, columns)
            assert_same(frame[name].to_list(), values)
            assert_same(frame[f"{name}_stderr"].to_list(), errors, squares=True)
