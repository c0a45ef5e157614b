"""Text for eleven engines: it parses back, its numbers are doubles, its names are quoted."""

from __future__ import annotations

import itertools
import math
import re
import sys
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import depth
import trueup as tu
from backends.engines import ENGINES, engine
from backends.kinds import KINDS
from backends.kinds import kind as kind_of
from extras import needs
from sql.extremes import render
from trueup.kernels.grid import Grid
from trueup.sql.arithmetic import literal
from trueup.sql.dialects import DIALECTS, dialect_of
from trueup.sql.statement import MAX_LENGTH

sqlglot = needs("sqlglot")
HOSTILE = [
    "select",
    'a"b',
    "ünï cödé",
    "with space",
    "t.n",
    "a`b",
    "a]b",
    "x'; DROP TABLE t; --",
    "\\",
]
x, y = sympy.symbols("x y", real=True)


HYPERBOLIC = {"roots and powers": "tanh", "quotient, scales per row": "sinh"}
"""Kinds with functions that some engines lack."""


def of(f: Any, *inputs: sympy.Symbol) -> Grid:
    return Grid.of(f, inputs)


def pairs() -> list[tuple[str, str]]:
    """Return every kind with every dialect; every day half of them, as on a chessboard."""
    places = itertools.product(enumerate(KINDS), enumerate(DIALECTS))
    return [(k, d) for (i, k), (j, d) in places if depth.DEPTH > 1 or (i + j) % 2 == 0]


@pytest.mark.parametrize(("name", "dialect"), pairs())
def test_the_text_parses_back(name: str, dialect: str) -> None:
    kind = kind_of(name)
    if name in HYPERBOLIC and HYPERBOLIC[name] not in DIALECTS[dialect].has:
        with pytest.raises(tu.TrueupError, match=f"{dialect} has no function {HYPERBOLIC[name]}"):
            kind.est.sql(dialect, scales=kind.scales or None)
        return
    executed = dialect in ENGINES  # there stderr has to prove itself
    for output in ("value",) if executed else ("value", "stderr"):
        text = kind.est.sql(dialect, output, scales=kind.scales or None, comment=False)
        query = sqlglot.parse_one(f"SELECT {text} AS y FROM t", dialect=dialect)
        again = query.expressions[0].this.sql(dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)
        assert again.replace("DOUBLE PRECISION", "FLOAT8") == text
        assert len(text) <= MAX_LENGTH
        check_numbers(query, dialect)


def check_numbers(query: Any, dialect: str) -> None:
    """Every operation has an operand that is a double, and so has every CASE a value."""
    exp = sqlglot.exp
    for operation in query.find_all(exp.Add, exp.Sub, exp.Mul, exp.Div):
        sides = (operation.this, operation.expression)
        assert any(is_double(side, dialect) for side in sides), operation.sql(dialect)
    for case in query.find_all(exp.Case):
        values = [branch.args["true"] for branch in case.args["ifs"]]
        values += [case.args["default"]] if case.args.get("default") else []
        cast = case.find_ancestor(exp.Cast)
        assert cast or any(is_double(value, dialect) for value in values), case.sql(dialect)
        assert not any(isinstance(value, exp.Column) for value in values), case.sql(dialect)


def is_double(e: Any, dialect: str) -> bool:
    """Whether an expression is a double whatever the columns are."""
    exp = sqlglot.exp
    if isinstance(e, (exp.Paren, exp.Neg)):
        return is_double(e.this, dialect)
    if isinstance(e, exp.Literal):
        marks = {"exponent": "e", "point": "e."}.get(DIALECTS[dialect].literal, "")
        return any(mark in e.this for mark in marks)
    return not isinstance(e, exp.Column)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_one_quoted_identifier(name: str, dialect: str) -> None:
    est = tu.unbiased("q**2", tu.Laplace(1))
    if dialect == "bigquery" and "." in name:
        with pytest.raises(tu.TrueupError, match="in BigQuery a name cannot hold a dot"):
            est.sql(dialect, columns={"q": name})
        return
    text = est.sql(dialect, columns={"q": (name, name)})
    query = sqlglot.parse_one(f"SELECT {text} FROM t", dialect=dialect)
    columns = [c for c in query.find_all(sqlglot.exp.Column) if c.table]
    assert columns
    assert all(c.name == c.table == name and c.this.quoted for c in columns)
    assert not list(query.find_all(sqlglot.exp.Drop))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back(value: float) -> None:
    for name, dialect in DIALECTS.items():
        text = literal(value, dialect).sql(name)
        assert float(re.sub(r"CAST\('|' AS DOUBLE\)", "", text)) == value


def test_without_sqlglot_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.startswith("trueup.sql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(tu, "sql", raising=False)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(tu.MissingExtra, match="writing SQL needs the package sqlglot") as caught:
        tu.unbiased("q", tu.Laplace(1)).sql()
    assert caught.value.hint == "pip install 'trueup[tables]'"


def test_aliases_and_unknown_dialects() -> None:
    for alias, name in (("postgresql", "postgres"), ("Databricks", "spark"), ("MSSQL", "tsql")):
        assert dialect_of(alias).name == name
    with pytest.raises(tu.TrueupError, match="'oracle' is no SQL dialect") as caught:
        tu.unbiased("q", tu.Laplace(1)).sql("oracle")
    assert all(name in str(caught.value) for name in DIALECTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"output": "mean"}, "'mean' is no output"),
        ({"columns": {"n": "n"}}, "columns are given for 'n', which is no statistic"),
        ({"scales": {"n": "n"}}, "scales are given for 'n', which is no statistic"),
        ({"columns": "emp"}, "columns must map statistics to columns, got 'emp'"),
        ({"scales": 3}, "scales must map statistics to columns, got 3"),
        ({"columns": {"q": ""}}, "a column is a name, or a tuple of names"),
        ({"columns": {"q": 3}}, "a column is a name, or a tuple of names"),
        ({"columns": {"q": "a\0b"}}, "a column is a name, or a tuple of names"),
        ({"columns": {"q": ()}}, "a column is a name, or a tuple of names"),
    ],
    ids=lambda a: str(sorted(a)) if isinstance(a, dict) else "",
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(tu.TrueupError, match=message):
        tu.unbiased("q", tu.Laplace(1)).sql(**arguments)


@pytest.mark.parametrize(
    ("dialect", "name"),
    [("mysql", "asinh"), ("tsql", "atanh"), ("trino", "acosh"), ("redshift", "asinh")],
)
def test_functions_that_are_missing_are_refused_by_name(dialect: str, name: str) -> None:
    with pytest.raises(tu.TrueupError, match=f"{dialect} has no function {name}"):
        render(of(getattr(sympy, name)(x), x), {}, dialect)


def test_python_functions_are_refused_by_name() -> None:
    def doubled(k: float) -> float:
        return 2 * k

    est = tu.unbiased(doubled, tu.DiscreteLaplace(1), (0, None))
    with pytest.raises(
        tu.TrueupError, match="the Python function doubled cannot be written as SQL"
    ):
        est.sql()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_long_table_is_a_shallow_tree(dialect: str) -> None:
    values = {k: math.sin(k) + k for k in range(-150, 170)}
    est = tu.unbiased(values, tu.DiscreteLaplace(3))
    text = est.sql(dialect)
    assert text.count("CASE") < 400
    depth = max(text[:i].count("CASE") - text[:i].count("END") for i in range(0, len(text), 50))
    assert depth <= 8
    if dialect == "duckdb":
        k = [float(k) for k in range(-160, 180)]
        (got,) = engine("duckdb").select({est.statistics[0]: k}, [text])
        assert got == [est(v) for v in k]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_too_long_is_refused(dialect: str) -> None:
    nested = x
    for k in range(12):
        nested = sympy.sqrt(nested**2 + k) / (1 + sympy.log(nested + 2) ** 2)
    with pytest.raises(tu.TrueupError, match=r"too long for SQL: [0-9,]+ characters"):
        render(of(nested, x), {}, dialect)


def test_shared_powers_do_not_multiply() -> None:
    text = render(of((x + y) ** 64 + (x + y) ** 63, x, y), {}, "duckdb")
    assert len(text) < 2000


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_first_condition_says_how_large_an_input_may_be(dialect: str) -> None:
    """Beyond a limit, which is one for all inputs, every engine gives NULL."""
    noise = {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}
    text = tu.unbiased("s/n", noise, {"n": (1, None)}).sql(dialect, comment=False)
    limits = re.findall(r"(?:AND|<=) (?:CAST\(')?([\d.e]+)", text[: text.index("THEN")])
    assert len({float(limit) for limit in limits}) == 1
    assert float(limits[0]) >= 1e50


HOSTILE_COMMENTS = ["a*/ DROP TABLE t --", "*/*/*", "/*!50000 x", "two\nlines", "\u202eright"]


@pytest.mark.parametrize("name", HOSTILE_COMMENTS)
def test_the_first_line_is_a_comment_that_no_name_ends(name: str) -> None:
    est = tu.unbiased(f"1/`{name}`", tu.Laplace(2), (1, None)) if "\n" not in name else None
    if est is None:
        est = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    first, _, rest = est.sql("duckdb", "stderr").partition("\n")
    assert first.startswith("/* standard error of the estimate: unbiased estimator of 1/")
    assert first.endswith(f"Laplace(2) on [1, ∞)) (trueup {tu.__version__}) */")
    assert first.isprintable()
    assert first[2:-2].count("*/") == first[2:-2].count("/*") == 0
    assert rest == est.sql("duckdb", "stderr", comment=False)
