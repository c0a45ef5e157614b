"""Shared parts of SQL: computed once, never unguarded, and without changing a number."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extras import needs

duckdb, sqlglot = needs("duckdb"), needs("sqlglot")

from trueup.files.shared_parts import layered  # noqa: E402

LEAVES = st.sampled_from(['"x"', '"y"', "2e0", "5e-1"])


def _grown(inner):
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda p: f"({p[0]}) + ({p[1]})"),
        pair.map(lambda p: f"({p[0]}) - ({p[1]})"),
        pair.map(lambda p: f"({p[0]}) * ({p[1]})"),
        pair.map(lambda p: f"({p[0]}) / ({p[1]})"),
        inner.map(lambda e: f"ABS({e})"),
        st.tuples(inner, st.integers(2, 5)).map(lambda p: f"POWER({p[0]}, {p[1]})"),
        inner.map(lambda e: f"-({e})"),
        inner.map(lambda e: f"CASE WHEN ({e}) > 0 THEN SQRT({e}) ELSE ({e}) END"),
        pair.map(lambda p: f"CASE WHEN ({p[0]}) <= ({p[1]}) THEN ({p[0]}) END"),
    )


EXPRESSIONS = st.recursive(LEAVES, _grown, max_leaves=8)
ROWS = "(VALUES (1.5, -2.0), (0.0, 3.0), (-4.0, 0.5), (NULL, 1.0)) t(x, y)"


def evaluate(layers, final):
    query = f"SELECT CAST(x AS DOUBLE) AS x, CAST(y AS DOUBLE) AS y FROM {ROWS}"  # noqa: S608
    for layer in layers:
        listed = ", ".join(f'{sql} AS "{name}"' for name, sql in layer.items())
        query = f"SELECT *, {listed} FROM ({query})"  # noqa: S608
    listed = ", ".join(f'{sql} AS "{name}"' for name, sql in final.items())
    return duckdb.sql(f"SELECT {listed} FROM ({query})").fetchall()  # noqa: S608


@settings(max_examples=60, deadline=None)
@given(EXPRESSIONS, EXPRESSIONS)
def test_the_same_numbers(a, b):
    given = {"a": a, "b": f"({a}) * ({b})"}
    expected, found = evaluate([], given), evaluate(*layered(given, "p"))
    for old, new in zip(expected, found, strict=True):
        for x, y in zip(old, new, strict=True):
            assert (x is None) == (y is None)
            if x is not None and math.isfinite(x):
                assert y == pytest.approx(x, rel=1e-12)


def test_parts_are_computed_once():
    square = "(x + 1e0) * (x + 1e0)"
    layers, final = layered({"a": f"{square} / y", "b": f"CASE WHEN y > 0 THEN {square} END"}, "p")
    assert layers == [{"p1": "x + 1e0"}, {"p2": '("p1") * ("p1")'}]
    assert final == {"a": '"p2" / y', "b": 'CASE WHEN y > 0 THEN "p2" END'}


def test_roots_and_logarithms_stay_in_their_case():
    guarded = "CASE WHEN x > 0 THEN LN(x) / SQRT(x) END"
    layers, final = layered({"a": guarded, "b": guarded}, "p")
    assert not any("LN" in sql or "SQRT" in sql for layer in layers for sql in layer.values())
    assert all("LN(x)" in sql for sql in final.values())


def test_small_powers_are_products():
    layers, final = layered({"a": "POWER(x + 1e0, 2)", "b": "POWER(x + 1e0, 3)"}, "p")
    assert layers == [{"p1": "x + 1e0"}, {"p2": '("p1") * ("p1")'}]
    assert final == {"a": '("p2")', "b": '("p2" * ("p1"))'}
    assert layered({"a": "POWER(x, 5)"}, "p") == ([], {"a": "POWER(x, 5)"})


@pytest.mark.parametrize("power", ["-2", "- 3", "'2'", "(2)", "2e0", '"2"'])
def test_only_a_plain_small_number_makes_a_product(power):
    found = layered({"a": f"POWER(x, {power})"}, "p")
    assert found == ([], {"a": sqlglot.transpile(f"POWER(x, {power})", "duckdb", "duckdb")[0]})
