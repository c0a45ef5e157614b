"""Compiled kernels against mpmath, and digit for digit against NumPy."""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import depth
import trueup as tu
from estimator import drawn
from kernels.test_interpreted import expressions, x, y
from trueup.kernels.compiled import Compilation
from trueup.kernels.fused import fuse
from trueup.kernels.generated import write
from trueup.kernels.grid import Grid, columns

ALL = ("value", "variance", "stderr")
BOTH = {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(3)}
THREE = {"a": tu.Laplace(1), "b": tu.Laplace(2), "c": tu.DiscreteLaplace(1)}
TALLIES = {"a": tu.DiscreteLaplace(2), "b": tu.DiscreteLaplace(2)}
MADE: dict[str, Callable[[], tu.Estimator]] = {
    "reciprocal": lambda: tu.unbiased("1/q", tu.Laplace(2), (1, None)),
    "interval": lambda: tu.unbiased("1/(q + 1)", tu.Laplace(2), (0, 100)),
    "extension": lambda: tu.unbiased("1/q", tu.Laplace(2), (1, None), extension=3),
    "long extension": lambda: tu.unbiased("1/q", tu.Laplace(2), (1, None), extension=30),
    "constant": lambda: tu.unbiased("3", tu.Laplace(2)),
    "identity": lambda: tu.unbiased("q", tu.Laplace(2)),
    "point": lambda: tu.unbiased("1/q", tu.Laplace(2), (4, 4)),
    "exponential polynomial": lambda: tu.unbiased("q**2*exp(q/9) + sin(q)", tu.Gaussian(1)),
    "logistic": lambda: tu.unbiased("1/(1 + exp(-q))", tu.Laplace(2)),
    "nested": lambda: tu.unbiased("exp(-sin(q)**2)", tu.Laplace(1)),
    "power": lambda: tu.unbiased("q**1.7", tu.Laplace(1), (1, None)),
    "piecewise": lambda: tu.unbiased("where(abs(q) < 2, q**2, 4*abs(q) - 4)", tu.Laplace(1)),
    "maximum": lambda: tu.unbiased("max(q - 2, 0)**2 - min(q - 1, 0)**3 + q*abs(q)", tu.Laplace(1)),
    "count": lambda: tu.unbiased("1/n", tu.DiscreteLaplace(2), (1, None)),
    "table": lambda: tu.unbiased({k: (k * k % 7) / 3 for k in range(40)}, tu.DiscreteLaplace(2)),
    "python": lambda: tu.unbiased(lambda n: float(int(n) % 3), tu.DiscreteLaplace(1), (0, 9)),
    "ratio": lambda: tu.unbiased("s/n", BOTH, {"n": (1, None)}),
    "sum": lambda: tu.unbiased("a**2 + 1/b + log(c)", THREE, {"b": (1, None), "c": (2, 30)}),
    "corners": lambda: tu.unbiased(
        "a/(b + c)", THREE, {"a": (0, 9), "b": (1, 20), "c": (1, 30)}
    ),
    "holes": lambda: tu.unbiased("b/(a + b)", TALLIES, "a >= 0, b >= 0, a + b >= 1"),
    "slanted": lambda: tu.unbiased("b/a", TALLIES, "0 <= b <= a, a >= 1"),
}  # fmt: skip


@functools.cache
def made(name: str) -> tu.Estimator:
    return MADE[name]()


def rows(est: tu.Estimator, seed: int = 1, size: int = 3000) -> list[np.ndarray]:
    """Return values inside, outside and on the bounds, with NaN and infinities among them."""
    rng = np.random.default_rng(seed)
    special = np.array([np.nan, np.inf, -np.inf, 0, 1, -1, 2, 4, 9, 100, 1e6, 1e150])
    out = []
    for name in est.statistics:
        column = rng.uniform(-12, 60, size)
        column[rng.integers(0, size, 200)] = rng.choice(special, 200)
        out.append(np.floor(column) if est.noise[name].lattice else column)
    return out


def identical(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)
        assert a.dtype == e.dtype


# -- the numbers -------------------------------------------------------------------------


@pytest.mark.parametrize("name", MADE)
def test_every_kind_equals_numpy_digit_for_digit(name, compiled, plain) -> None:
    est = made(name)
    values = rows(est)
    together = compiled(lambda: est._columns(values, ALL))
    identical(together, plain(lambda: est._columns(values, ALL)))
    used = [c for c in est._value.compilations.values() if c.outputs == ALL]
    assert (used[0].kernels is not None) == (name != "python"), "only Python functions stay outside"


def named(est: tu.Estimator, values: list[Any]) -> dict[str, Any]:
    return dict(zip(est.statistics, values, strict=True))


@pytest.mark.parametrize("name", MADE)
def test_together_is_what_the_methods_say(name, compiled, plain) -> None:
    est = made(name)
    given = named(est, rows(est, seed=2))
    names = ("stderr", "value", "variance", "stderr")
    for run in (compiled, plain) if name in ("ratio", "table", "power") else (plain,):
        stderr, value, variance, again = run(lambda: est._columns([*given.values()], names))
        identical(run(lambda: [est(**given)]), [value])
        identical(run(lambda: [est.variance(**given)]), [variance])
        identical(run(lambda: [est.stderr(**given)] * 2), [stderr, again])


@settings(max_examples=depth.examples(30))
@given(expressions, st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=4))
def test_any_expression_agrees_with_sympy(compiled, expr, points) -> None:
    grid = Grid((x, y), [([], (0, 1), lambda _: expr)], frozenset())
    a, b = (np.array(column) for column in zip(*points, strict=True))
    (out,) = compiled(lambda: columns(grid, None, [a, b], ["value"]))
    for i, (p, q) in enumerate(points):
        exact = expr.subs({x: sympy.Float(p, 40), y: sympy.Float(q, 40)}).evalf(30)
        if exact.is_real and exact.is_finite and abs(exact) < 1e200:
            size = sum(abs(float(t.subs({x: p, y: q}))) for t in sympy.Add.make_args(expr)) + 1
            assert abs(out[i] - float(exact)) <= 1e-9 * size


@st.composite
def estimators(draw: Any) -> tu.Estimator:
    """Draw an estimator of one statistic: formulas, scales, bounds, extensions, both noises."""
    low, scale = draw(drawn.decimals(0.5, 4)), draw(drawn.scales())
    f = draw(st.one_of(drawn.positive(bounded=True), drawn.smooth(), drawn.polynomials()))
    domain = (low, low + draw(st.sampled_from([1, 2.5, 30])))
    if draw(st.booleans()):
        return tu.unbiased(f.text, tu.DiscreteLaplace(scale), (1, 3 + int(domain[1])))
    return tu.unbiased(f.text, tu.Laplace(scale), domain, draw(st.sampled_from(["optimal", 2, 4])))


@settings(max_examples=depth.examples(10, least=5))
@given(estimators(), st.integers(0, 1000))
def test_drawn_estimators_equal_numpy_and_the_formula(compiled, plain, est, seed) -> None:
    values = rows(est, seed, size=400)
    together = compiled(lambda: est._columns(values, ALL))
    identical(together, plain(lambda: est._columns(values, ALL)))
    (symbol,) = est.formula.free_symbols or {x}
    for k in np.flatnonzero(np.abs(values[0]) < 50)[:3]:
        q = sympy.Rational(*float(values[0][k]).as_integer_ratio())
        formula = est.formula.subs(symbol, q)
        terms = sympy.Add.make_args(formula)
        size = float(sum(abs(t.evalf(20)) for t in terms))
        assert abs(together[0][k] - float(formula.evalf(30))) <= 1e-10 * max(1, size)


def test_rows_that_a_quick_form_leaves_out_are_compiled_too(compiled, plain) -> None:
    """Beside a slanted bound small counts are in a table; large ones have a kernel of their own."""
    est = made("slanted")
    a = 100.0 + np.arange(3000) % 900
    given = {"a": a, "b": a - 3 + np.arange(3000) % 7}
    identical(compiled(lambda: [est(**given)]), plain(lambda: [est(**given)]))
    (used,) = (c for c in est._value.compilations.values() if c.outputs == ("value",))
    assert used.rest is not None
    assert used.rest.kernels is not None
    other = made("ratio")
    compiled(lambda: other(s=np.full(3000, 1e200), n=np.full(3000, 9.0)))
    assert all(c.rest.kernels is None for c in other._value.compilations.values())


def test_empty_cells_beside_a_slanted_bound_are_in_the_table(compiled, plain) -> None:
    est = tu.unbiased("b/a", TALLIES, "0 <= b <= a", empty=0.25)
    assert "int32" in source_of(est, "value").text.split("def ")[1]
    values = [np.floor(c / 2) for c in rows(est)]
    identical(
        compiled(lambda: est._columns(values, ("value",))),
        plain(lambda: est._columns(values, ("value",))),
    )


def test_the_scale_may_be_a_column(compiled) -> None:
    """1/n − 2b²/n³ with b from row to row, against mpmath."""
    est = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    scaled = est._scaled(("n",))
    n, b = np.array([4.0, 9.5, 33.0, np.nan]), np.array([2.0, 0.5, 3.25, 1.0])
    (out,) = compiled(lambda: columns(scaled.grid("value"), None, [n, b], ["value"]))
    for i in range(3):
        exact = 1 / mpmath.mpf(n[i]) - 2 * mpmath.mpf(b[i]) ** 2 / mpmath.mpf(n[i]) ** 3
        assert abs(out[i] - exact) < 1e-15
    assert math.isnan(out[3])


def test_a_floor_is_compiled(compiled) -> None:
    grid = Grid((x,), [([], (0,), lambda _: x - sympy.floor(x))], frozenset())
    points = np.array([-1.25, 3.75, 8.0, np.nan])
    (out,) = compiled(lambda: columns(grid, None, [points], ["value"]))
    np.testing.assert_array_equal(out, [0.75, 0.75, 0.0, np.nan])


def test_what_overflows_on_the_way_is_looked_at_again(compiled) -> None:
    est = made("logistic")
    points = np.array([-800.0, -40.0, 0.3, 40.0, 800.0, np.nan])
    out = compiled(lambda: est(points))
    with mpmath.workdps(40):
        for i, q in enumerate(points[:-1]):
            s = 1 / (1 + mpmath.exp(-mpmath.mpf(q)))
            assert out[i] == pytest.approx(float(s - 4 * s * (1 - s) * (1 - 2 * s)), rel=1e-12)
    assert math.isnan(out[-1])


# -- whole numbers -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 700_001])
def test_broken_numbers_are_refused_in_the_same_words(size, compiled, plain) -> None:
    est = made("count")
    n = np.full(size, 7.0)
    n[size // 2 :] = 8.25
    n[size // 2] = 7.5
    said = []
    for run in (compiled, plain):
        with pytest.raises(tu.TrueupError, match=r"whole numbers, got 7\.5\b") as error:
            run(lambda: est(n))
        said.append(str(error.value))
    assert said[0] == said[1]


def test_whole_numbers_are_whole_in_every_form(compiled) -> None:
    est = made("count")
    n = np.array([1, 5, 9, 200])
    expected = est(n.astype(float))
    for kind in ("i1", "u8", "i4", "f4", ">i8"):
        wide = n.astype(kind) if kind != "i1" else np.minimum(n, 100).astype(kind)
        np.testing.assert_allclose(compiled(lambda w=wide: est(w))[:3], expected[:3], rtol=1e-6)
    assert np.isnan(compiled(lambda: est([np.nan, 3.0]))[0])


# -- the text ----------------------------------------------------------------------------


def source_of(est: tu.Estimator, *outputs: str) -> Any:
    grids = [est._value if o == "value" else est._variance for o in outputs]
    program = fuse(grids, outputs)
    assert program is not None
    return write(program)


def test_scales_and_bounds_share_one_kernel() -> None:
    first = source_of(tu.unbiased("1/q", tu.Laplace(2), (1, None)), "value", "stderr")
    other = source_of(tu.unbiased("1/q", tu.Laplace(3), (5, None)), "value", "stderr")
    assert first.text == other.text
    assert first.constants != other.constants
    bounded = source_of(tu.unbiased("1/q", tu.Laplace(2), (1, 9)), "value", "stderr")
    assert bounded.text != first.text


def test_what_value_and_variance_share_is_computed_once() -> None:
    est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
    assert source_of(est, "value", "stderr").text.count(" / ") == 1
    assert source_of(made("ratio"), "value").text.count(" / ") <= 2


@pytest.mark.parametrize("name", [n for n in MADE if n != "python"])
def test_the_text_holds_nothing_but_our_own_names(name) -> None:
    """No name of the user's, no number of the formula, no call but those of the list."""
    tree = ast.parse(source_of(made(name), *ALL).text)
    assert [type(n).__name__ for n in tree.body[:2]] == ["Expr", "ImportFrom"]
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    allowed = {"c", "i", "state", "unknown", "lost", "broken", "least", "most"}
    allowed |= {"first", "j", "nan"}
    called = {"range", "empty", "int32", "uint32", "abs", "floor", "sqrt"}
    ours = {n for n in names if re.fullmatch(r"[rkjst]\d\w*|(all_)?[xy]\d+", n)}
    assert names - ours <= allowed | called
    calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call)}
    assert calls <= called


@pytest.mark.parametrize("name", ["table", "slanted"])
def test_a_table_is_read_in_a_loop_of_its_own(name) -> None:
    """For all a compiler knows results are stored into the table: such a loop goes row by row."""
    loops = [n for n in ast.walk(ast.parse(source_of(made(name), *ALL).text)) if is_inner(n)]
    reading = [loop for loop in loops if reads_a_table(loop)]
    assert reading, "there is a table"
    assert all(reads_a_table(line) for loop in reading for line in loop.body)


def is_inner(node: ast.AST) -> bool:
    return isinstance(node, ast.For) and sum(isinstance(n, ast.For) for n in ast.walk(node)) == 1


def reads_a_table(node: ast.AST) -> bool:
    found = (n.value for n in ast.walk(node) if isinstance(n, ast.Subscript))
    return any(isinstance(value, ast.Name) and value.id == "c" for value in found)


def test_a_hostile_name_stays_outside() -> None:
    est = tu.unbiased("1/система", {"система": tu.Laplace(2)}, {"система": (1, None)})
    assert "система" not in source_of(est, "value").text


def test_huge_formulas_stay_with_numpy(monkeypatch, compiled) -> None:
    monkeypatch.setattr("trueup.kernels.fused._MOST_NODES", 3)
    est = tu.unbiased("1/q + q", tu.Laplace(2), (1, None))
    assert compiled(lambda: est(np.array([4.0])))[0] == est(4.0)
    assert not next(iter(est._value.compilations.values())).possible


# -- when --------------------------------------------------------------------------------


def test_rows_add_up_until_it_pays(monkeypatch, kernels) -> None:
    """Small arrays never load numba; many of them do, sooner if the kernel lies on disk."""
    monkeypatch.setenv("TRUEUP_CACHE", str(kernels))
    monkeypatch.delenv("TRUEUP_NUMBA", raising=False)
    monkeypatch.setattr("trueup.kernels.compiled.ON_DISK", 2_000)
    monkeypatch.setattr("trueup.kernels.compiled.NEW", 5_000)
    monkeypatch.setattr("trueup.kernels.compiled.READY", 100)

    def loaded_after(est: tu.Estimator) -> int:
        for calls in range(1, 20):
            est(np.full(500, 3.0))
            if next(iter(est._value.compilations.values())).kernels:
                return calls
        return 0

    shape = "q**3 - 5*q + 1/(q + 17)"
    assert loaded_after(tu.unbiased(shape, tu.Laplace(2), (1, None))) == 10
    monkeypatch.setattr("trueup.kernels.compiled._LOADED", {})
    assert loaded_after(tu.unbiased(shape, tu.Laplace(3), (1, None))) == 4
    monkeypatch.setenv("TRUEUP_NUMBA", "0")
    assert loaded_after(tu.unbiased(shape, tu.Laplace(4), (1, None))) == 0


def test_a_broken_compiler_leaves_numpy_to_do_it(monkeypatch, kernels) -> None:
    monkeypatch.setattr("trueup.kernels.compiled.ON_DISK", 0)
    monkeypatch.setattr("trueup.kernels.compiled.NEW", 0)
    monkeypatch.setattr("trueup.kernels.compiled.READY", 0)
    monkeypatch.setenv("TRUEUP_CACHE", str(kernels))
    monkeypatch.delenv("TRUEUP_NUMBA", raising=False)

    def fails(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("trueup.kernels.compiled._compile", fails)
    est = tu.unbiased("1/(q + 3)", tu.Laplace(2), (1, None))
    assert est(np.array([4.0]))[0] == est(4.0)
    monkeypatch.setenv("TRUEUP_NUMBA", "1")
    with pytest.raises(OSError, match="no space left"):
        Compilation([est._value], ["value"]).ready(1)
