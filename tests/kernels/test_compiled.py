"""Compiled loops against mpmath and against NumPy."""

from __future__ import annotations

import ast
import functools
import math
import os
import re
import subprocess
import sys
import textwrap
import threading
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
from extras import needs
from kernels.test_tape import expressions, values, x, y
from trueup.kernels.compiled import WORDS, fuse, loop_of, source
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


FUNCTIONS = ("exponential polynomial", "logistic", "nested", "power", "sum")
"""What NumPy's own functions compute in vectors, to the last digit but one."""

WITH_NUMPY = ("table", "python", "long extension", "extension")
"""Functions of the user's, tables and series."""


@pytest.mark.parametrize("name", MADE)
def test_every_kind_equals_numpy(name, compiled, plain) -> None:
    est = made(name)
    values = rows(est)
    together = compiled(lambda: est._columns(values, ALL))
    alone = plain(lambda: est._columns(values, ALL))
    if name in FUNCTIONS:
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
    else:
        identical(together, alone)
    used = fuse([est._value, est._variance, est._variance], ALL)
    assert (used is not None) == (name not in WITH_NUMPY)


@pytest.mark.parametrize("name", MADE)
def test_numbers_equal_arrays(name, plain) -> None:
    est = made(name)
    values = rows(est, seed=3, size=300)
    for ask in (est, est.variance, est.stderr):
        out = plain(lambda ask=ask: ask(**named(est, values)))
        one = [ask(**named(est, list(map(float, row)))) for row in zip(*values, strict=True)]
        np.testing.assert_allclose(one, out, rtol=1e-9)


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
@given(expressions, st.lists(st.tuples(values, values), min_size=1, max_size=4))
def test_any_expression_agrees_with_sympy(compiled, expr, points) -> None:
    grid = Grid.of(expr, (x, y))
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
    for a, b in zip(together, plain(lambda: est._columns(values, ALL)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    (symbol,) = est.formula.free_symbols or {x}
    for k in np.flatnonzero(np.abs(values[0]) < 50)[:3]:
        q = sympy.Rational(*float(values[0][k]).as_integer_ratio())
        formula = est.formula.subs(symbol, q)
        terms = sympy.Add.make_args(formula)
        size = float(sum(abs(t.evalf(20)) for t in terms))
        assert abs(together[0][k] - float(formula.evalf(30))) <= 1e-10 * max(1, size)


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
    grid = Grid.of(x - sympy.floor(x), (x,))
    points = np.array([-1.25, 3.75, 8.0, np.nan])
    (out,) = compiled(lambda: columns(grid, None, [points], ["value"]))
    np.testing.assert_array_equal(out, [0.75, 0.75, 0.0, np.nan])


@pytest.mark.parametrize("numba", ["0", "1"])
def test_beyond_the_limit_of_an_exponent_nothing_is_said(numba, monkeypatch) -> None:
    """f(800) = 1 to the last digit; e^800 is no double, and 800/∞ is not 1."""
    if numba == "1":
        needs("numba", "compiled kernels come with trueup[fast]")
    monkeypatch.setenv("TRUEUP_NUMBA", numba)
    est = tu.unbiased("n/log(1+exp(n))", tu.DiscreteLaplace(1), (1, None))
    near, far = np.arange(2.0, 300.0), np.array([800.0, 1e5, 1e200])
    for ask in (est, est.stderr):
        assert np.isnan(ask(far)).all()
        assert all(math.isnan(ask(x)) for x in far)
        assert np.isfinite(ask(near)).all()
    side = 1 / (4 * mpmath.sinh(mpmath.mpf(1) / 2) ** 2)
    with mpmath.workdps(40):
        f = {k: k / mpmath.log(1 + mpmath.exp(k)) for k in range(1, 300)}
        right = [f[k] - side * (f[k + 1] - 2 * f[k] + f[k - 1]) for k in range(2, 299)]
    np.testing.assert_allclose(est(near[:-1]), np.array(right, float), rtol=1e-12)


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


def source_of(est: tu.Estimator, *outputs: str) -> str:
    tape = fuse([est._value if o == "value" else est._variance for o in outputs], outputs)
    assert tape is not None
    return source(tape)[0]


def test_what_value_and_variance_share_is_computed_once() -> None:
    est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
    assert source_of(est, "value", "stderr").count(" / ") == 1
    assert source_of(made("ratio"), "value").count(" / ") == 3  # by n − 1, n and n + 1


@pytest.mark.parametrize("name", [n for n in MADE if n not in WITH_NUMPY])
def test_the_text_holds_nothing_but_our_own_names(name) -> None:
    """No name of the user's, no call but those of the list."""
    tree = ast.parse(source_of(made(name), *ALL))
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    ours = {n for n in names if re.fullmatch(r"[rx]\d+", n)}
    assert names - ours <= {"abs", *WORDS}
    calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call)}
    assert calls <= {"abs", *WORDS}


def test_a_hostile_name_stays_outside() -> None:
    est = tu.unbiased("1/система", {"система": tu.Laplace(2)}, {"система": (1, None)})
    assert "система" not in source_of(est, "value")


def test_huge_formulas_stay_with_numpy(monkeypatch, compiled) -> None:
    monkeypatch.setattr("trueup.kernels.compiled._MOST_STEPS", 3)
    est = tu.unbiased("1/q + q", tu.Laplace(2), (1, None))
    assert compiled(lambda: est(np.array([4.0])))[0] == est(4.0)
    assert loop_of((est._value,), ("value",)) is None


# -- when --------------------------------------------------------------------------------


def test_rows_add_up_until_it_pays(monkeypatch) -> None:
    """Small arrays never load numba; many of them do."""
    needs("numba", "compiled kernels come with trueup[fast]")
    monkeypatch.delenv("TRUEUP_NUMBA", raising=False)
    monkeypatch.setattr("trueup.kernels.compiled.NEW", 5_000)

    def compiled_after(est: tu.Estimator) -> int:
        for calls in range(1, 20):
            est(np.full(500, 3.0))
            if loop_of((est._value,), ("value",)):
                return calls
        return 0

    assert compiled_after(tu.unbiased("1/q", tu.Laplace(2), (1, None))) == 10
    monkeypatch.setenv("TRUEUP_NUMBA", "0")
    assert compiled_after(tu.unbiased("1/q", tu.Laplace(4), (1, None))) == 0


def test_a_broken_compiler_leaves_numpy_to_do_it(monkeypatch) -> None:
    needs("numba", "compiled kernels come with trueup[fast]")
    monkeypatch.setattr("trueup.kernels.compiled.NEW", 0)
    monkeypatch.delenv("TRUEUP_NUMBA", raising=False)

    def fails(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("trueup.kernels.compiled._loop", fails)
    est = tu.unbiased("1/(q + 3)", tu.Laplace(2), (1, None))
    assert est(np.array([4.0]))[0] == est(4.0)
    monkeypatch.setenv("TRUEUP_NUMBA", "1")
    with pytest.raises(OSError, match="no space left"):
        loop_of((est._value,), ("value",))


def python(code: str, **env: str) -> None:
    """Run code in a process of its own."""
    subprocess.run(  # noqa: S603  (our own interpreter and text)
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**os.environ, **env},
        check=True,
    )


def test_importing_and_small_arrays_do_not_load_numba() -> None:
    code = """
        import sys, numpy as np, trueup as tu
        est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
        est(4.0), est(np.full(100_000, 4.0)), est.stderr(np.full(9, 4.0))
        assert "numba" not in sys.modules
    """
    python(code, TRUEUP_NUMBA="")


def test_without_numba_numpy_does_it_and_a_demand_gets_a_hint() -> None:
    code = """
        import os, sys, numpy as np
        sys.modules["numba"] = None
        import trueup as tu
        from trueup.kernels import compiled
        compiled.NEW = 0
        est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
        assert est(np.array([4.0]))[0] == 0.125
        os.environ["TRUEUP_NUMBA"] = "1"
        try:
            tu.unbiased("2/q", tu.Laplace(2), (1, None))(np.array([4.0]))
        except tu.MissingExtra as error:
            assert "trueup[fast]" in str(error), error
        else:
            raise AssertionError("no hint")
    """
    python(code, TRUEUP_NUMBA="")


def test_threads_that_start_together_get_the_same_numbers(monkeypatch) -> None:
    needs("numba", "compiled kernels come with trueup[fast]")
    monkeypatch.setenv("TRUEUP_NUMBA", "1")
    n = np.random.default_rng(1).uniform(-5, 200, 150_000)
    estimators = [tu.unbiased(f"1/(q + {k % 2})", tu.Laplace(2), (1, None)) for k in range(6)]
    found: dict[int, np.ndarray] = {}
    gate = threading.Barrier(len(estimators))

    def work(k: int) -> None:
        gate.wait()
        found[k] = estimators[k](n)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(estimators))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(6):
        m = n + k % 2
        low = 1 + k % 2
        exact = np.where(n <= 1, 1 / low + 2 / low**2, 1 / m - 8 / m**3)
        np.testing.assert_allclose(found[k], exact, rtol=1e-12, atol=1e-13)


def test_a_forked_process_can_go_on() -> None:
    """Kernels leave no threads behind, so multiprocessing by fork works after them."""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    code = """
        import multiprocessing, numpy as np, trueup as tu
        est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
        n = np.full(300_000, 4.0)
        est(n)

        def total(k):
            return float(est(n + k).sum())

        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(total, [0, 0]) == [37500.0, 37500.0]
    """
    python(code, TRUEUP_NUMBA="1")
