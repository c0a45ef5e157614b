"""Estimators made of tables: constant beyond the table in SQL as in Python, and ⌊x⌋ in SQL."""

import math
import sqlite3

import pytest

import trueup as tu
from extras import needs

ESTIMATORS = {
    "Laplace on integers": tu.unbiased("1/n", tu.Laplace(0.5), tu.Integers(1, 5)),
    "discrete Gaussian": tu.unbiased("1/n", tu.DiscreteGaussian(0.3), (1, 5)),
    "rounded Laplace": tu.unbiased("1/n", tu.RoundedLaplace(1), (1, 300)),
    "rounded Laplace, one bound": tu.unbiased("log(n)", tu.RoundedLaplace(2), (1, None)),
    "a table of the user's": tu.unbiased({1: 2.0, 2: 5.0, 3: 7.0}, tu.DiscreteLaplace(1)),
}
WHOLE = [-1000, -3, 0, 1, 2, 3, 4, 5, 6, 30, 299, 300, 301, 302, 5000]


def duckdb_rows(sql, name, values):
    connection = needs("duckdb").connect()
    connection.execute(f'CREATE TABLE t ("{name}" DOUBLE)')
    connection.executemany("INSERT INTO t VALUES (?)", [[v] for v in values])
    return [row[0] for row in connection.execute(f"SELECT {sql} FROM t").fetchall()]


def sqlite_rows(sql, name, values):
    connection = sqlite3.connect(":memory:")
    connection.execute(f'CREATE TABLE t ("{name}" REAL)')
    connection.executemany("INSERT INTO t VALUES (?)", [[v] for v in values])
    return [row[0] for row in connection.execute(f"SELECT {sql} FROM t").fetchall()]


@pytest.mark.parametrize("output", ["value", "stderr"])
@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("rows", [duckdb_rows, sqlite_rows], ids=["duckdb", "sqlite"])
def test_values_beyond_a_table(rows, kind, output):
    est = ESTIMATORS[kind]
    (name,) = est.statistics
    values = WHOLE + ([0.25, 1.5, 4.999, 7.7] if "integers" in kind else [])
    dialect = rows.__name__.split("_")[0]
    found = rows(est.sql(dialect, output), name, [*map(float, values), None])
    assert found.pop() is None
    ask = est if output == "value" else est.stderr
    for x, got in zip(values, found, strict=True):
        wanted = ask(float(x))
        if math.isfinite(wanted):
            assert got == pytest.approx(wanted, rel=1e-10), x
        else:
            assert got is None, x
