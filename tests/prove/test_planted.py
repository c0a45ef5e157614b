"""Every check finds a fault that is planted for it, and finds none in the same case without."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueup as tu
import work
from prove import checks, runner
from prove.grammar import Case
from prove.reliability import COMPARED
from prove.runner import certain, examined
from trueup.formula import given_derivatives, source

INVERSE = Case("1/q", {"q": "Laplace(2)"}, {"q": (1, None)}, 1)
COUNT = Case("sqrt(n)", {"n": "DiscreteLaplace(2)"}, {"n": (0, None)}, 2)
NARROW = Case("log(q)", {"q": "Laplace(0.3)"}, {"q": (0.1, None)}, 8)
PRODUCT = Case(
    "s*n**2",
    {"s": "Laplace(1)", "n": "DiscreteLaplace(1)"},
    {"s": (0, None), "n": (1, None)},
    4,
)
TIED = Case(
    "b/(a + b)",
    {"a": "DiscreteLaplace(1)", "b": "DiscreteLaplace(2)"},
    {"a": (0, None), "b": (0, None), "a + b": (1, None)},
    7,
)
RATIO = Case(
    "s/n", {"s": "Laplace(1)", "n": "DiscreteLaplace(2)"}, {"s": (0, None), "n": (4, None)}, 4
)
BOX = Case("s*n**2", {"s": "Gaussian(1)", "n": "Gaussian(1)"}, {"s": (2, None), "n": (3, None)}, 3)


class Planted:
    """An estimator with some of its answers exchanged."""

    def __init__(self, est: Any, **faults: Callable[..., Any]) -> None:
        self._est, self._faults = est, faults

    def __getattr__(self, name: str) -> Any:
        if name in self._faults:
            return lambda *a, **k: self._faults[name](self._est, *a, **k)
        return getattr(self._est, name)

    def __call__(self, *x: Any, **named: Any) -> Any:
        return self._faults.get("call", lambda est, *a, **k: est(*a, **k))(self._est, *x, **named)


def _plain(named: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(est, "_est", est) for name, est in named.items()}


def planted(case: Case, monkeypatch: pytest.MonkeyPatch, **faults: Callable[..., Any]) -> set[str]:
    """Return the checks that complain of a case with these faults."""
    est, debias = case.build(), tu.debias
    monkeypatch.setattr(tu, "debias", lambda frame, **named: debias(frame, **_plain(named)))
    monkeypatch.setattr(Case, "build", lambda _: Planted(est, **faults))
    return {f.check for f in checks.examine(case).findings}


@pytest.mark.parametrize("case", [INVERSE, COUNT, NARROW, PRODUCT, RATIO], ids=lambda c: c.formula)
def test_nothing_is_found_where_nothing_is_planted(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert planted(case, monkeypatch) == set()


@pytest.mark.parametrize("by", [1e-7, 1e-3])
def test_only_what_is_far_off_is_certain(by: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred-millionth is tolerated, and ten of them where a second look is taken."""
    est = INVERSE.build()
    monkeypatch.setattr(Case, "build", lambda _: Planted(est, call=lambda e, q: e(q=q) * (1 + by)))
    found = {f.check: f for f in checks.examine(INVERSE).findings}
    assert certain(found["value"]) == (by == 1e-3)
    monkeypatch.undo()
    assert not certain(found["value"])  # nor what is there no longer


def test_the_scale_in_place_of_kappa(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(est: Any, n: Any) -> Any:
        below = -2 * (math.sqrt(1) - math.sqrt(0))  # −b·Δf, right is −κ·Δf
        return (
            np.where(np.asarray(n) <= 0, below, est(n=n))
            if np.ndim(n)
            else float(below if n <= 0 else est(n=n))
        )

    assert {"value", "unbiased", "expectation", "function"} <= planted(
        COUNT, monkeypatch, call=call
    )


def test_a_bound_that_takes_the_branch_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(est: Any, q: Any) -> Any:
        return 1 / q - 8 / q**3 if np.ndim(q) == 0 and q == 1 else est(q=q)

    assert "value" in planted(INVERSE, monkeypatch, call=call)


def test_a_slope_from_the_wrong_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """|q − 3| on (−∞, 3]: the slope at the bound is −1, not 0 and not +1."""
    case = Case("abs(q-3)", {"q": "Laplace(1)"}, {"q": (None, 3)}, 5)
    right = tu.unbiased("3-q", tu.Laplace(1), (None, 3))

    def call(_: Any, q: Any) -> Any:
        wrong = np.where(np.asarray(q) >= 3, 1.0, right(q=q))
        return wrong if np.ndim(q) else float(wrong)

    monkeypatch.setattr(Case, "build", lambda _: Planted(right, call=call))
    assert {"value", "unbiased"} <= {f.check for f in checks.examine(case).findings}


def test_another_value_in_a_hole_that_is_no_mere_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(est: Any, a: Any, b: Any) -> Any:
        corner = (np.asarray(a) <= 0) & (np.asarray(b) <= 0)
        wrong = est(a=a, b=b) + 0.01 * corner
        return wrong if np.ndim(a) else float(wrong)

    assert {"unbiased", "expectation"} <= planted(TIED, monkeypatch, call=call)


def test_a_table_that_is_off_where_f_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solved table is met to 1e-13 of the largest value of f, and no worse."""
    noise = "Noise.from_scipy(stats.skellam(2, 2))"
    case = Case("min(n, 0, 0)", {"n": noise}, {"n": (-2, 38)}, 202611190014963)

    def call(est: Any, n: Any) -> Any:
        return est(n=n) + 1e-11 * (np.asarray(n) > 20)

    assert "unbiased" in planted(case, monkeypatch, call=call)


def test_a_kink_that_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("abs(q)", {"q": "Laplace(1)"}, {"q": (None, None)}, 6)
    est = tu.unbiased("q", tu.Laplace(1))
    monkeypatch.setattr(Case, "build", lambda _: est)
    assert "existence" in {f.check for f in checks.examine(case).findings}


@pytest.mark.parametrize(
    ("formula", "noise", "domain", "reason"),
    [
        ("abs(q)", "Laplace(1)", (None, None), "kink"),
        ("where(q > 1, 1, 0)", "Laplace(1)", (None, None), "jump"),
        ("where(q > 1, 1, 0)", "Uniform(1)", (None, None), "jump"),
        ("1/q", "Laplace(1)", (-1, 1), "pole"),
        ("sqrt(q)", "Laplace(1)", (0, None), "steep"),
        ("q*(-log(q))**0.1", "Laplace(1)", (0, 0.5), "steep"),
        ("where(q == 2, 5, q)", "Laplace(1)", (None, None), "point"),
        ("where(q > 1, 1/q, 7)", "Laplace(1)", (1, None), "point"),
        ("exp(2*q)", "Laplace(1)", (None, None), "growth"),
        ("log(q)", "DiscreteLaplace(1)", (-2, None), "undefined"),
    ],
)
def test_the_oracle_sees_why_nothing_exists(
    formula: str, noise: str, domain: Any, reason: str
) -> None:
    judged = checks.Examination(Case(formula, {"q": noise}, {"q": domain}, 0)).judged
    assert (judged.answer, judged.reason) == ("none", reason)


@pytest.mark.parametrize(
    ("formula", "noise", "domain"),
    [
        ("1/atanh(1/q)", "DiscreteLaplace(1)", (1, None)),  # 1/∞ may be read as 0
        ("min(0.001, q)**9", "Laplace(1)", (None, None)),  # its slope jumps by 9e-24
        ("cosh(where(q > 0, 1/(3*q), 1))", "Laplace(1)", (None, None)),  # e^(3e23) is beyond it
    ],
)
def test_what_the_oracle_leaves_open(formula: str, noise: str, domain: Any) -> None:
    case = Case(formula, {"q": noise}, {"q": domain}, 0)
    assert checks.Examination(case).judged.answer == "open"
    assert not checks.examine(case).findings


@pytest.mark.parametrize(
    ("formula", "noise", "domain"),
    [
        ("abs(q)", "Laplace(1)", (0, None)),
        ("abs(q)**1.5", "Laplace(1)", (None, None)),
        ("abs(q)", "DiscreteLaplace(1)", (None, None)),
        ("sin(q)/q", "Laplace(1)", (None, None)),
        ("exp(-3*q)", "Laplace(1)", (0, None)),
        ("where(q > 1, 2*q - 1, q**2)", "Laplace(1)", (None, None)),
        ("(q - 0.1)**1.5", "Laplace(1)", (0.1, None)),
    ],
)
def test_a_false_claim_that_nothing_exists(
    formula: str, noise: str, domain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(formula, {"q": noise}, {"q": domain}, 0)

    def refuse(_: Case) -> Any:
        raise tu.NoUnbiasedEstimator(f"no unbiased estimator of {formula}: planted", "none")

    monkeypatch.setattr(Case, "build", refuse)
    assert [f.check for f in checks.examine(case).findings] == ["existence"]


def test_a_variance_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    found = planted(INVERSE, monkeypatch, variance=lambda est, **x: est.variance(**x) * 1.001)
    assert found == {"variance", "estimated variance", "stderr"}


@pytest.mark.parametrize("what", ["expectation", "bias", "sd"])
def test_an_exact_law_that_is_not(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = {what: lambda est, **q: getattr(est, what)(**q) + 1e-4}
    assert planted(INVERSE, monkeypatch, **fault) == {what}


def test_an_interval_for_another_level(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = {"interval": lambda est, *a, level=0.95, **x: est.interval(*a, level=level - 0.02, **x)}
    assert planted(INVERSE, monkeypatch, **fault) == {"coverage"}


@pytest.mark.parametrize(("case", "less"), [(RATIO, 0.08), (BOX, 0.4)], ids=["s/n", "s*n**2"])
def test_an_interval_from_two_statistics_for_another_level(
    case: Case, less: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a ratio has little to spare, a box around both much."""
    fault = {"interval": lambda est, level=0.95, **x: est.interval(level=level - less, **x)}
    assert planted(case, monkeypatch, **fault) == {"joint coverage"}


@pytest.mark.parametrize("formula", ["where(s > n, 0, 1)", "where(s == n, 100, s + n)"])
def test_a_jump_between_statistics_is_in_the_interval(formula: str) -> None:
    noises = {"s": "DiscreteLaplace(1)", "n": "DiscreteLaplace(1)"}
    case = Case(formula, noises, {"s": (0, None), "n": (0, None)}, 7)
    assert not checks.examine(case).findings


def test_an_end_of_an_interval_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def interval(est: Any, level: float = 0.95, **x: Any) -> Any:
        low, high = est.interval(level=level, **x)
        return low * math.nan, high

    assert planted(RATIO, monkeypatch, interval=interval) == {"joint coverage"}


def test_a_standard_error_that_is_a_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    found = planted(INVERSE, monkeypatch, stderr=lambda est, **x: est.variance(**x))
    assert found == {"stderr"}


def test_arrays_that_differ_from_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(est: Any, **x: Any) -> Any:
        wrong = next(iter(x.values()))
        off = 1e-6 if np.ndim(wrong) and 1 < len(wrong) < 15 and wrong.dtype == float else 0
        return est(**x) + off

    assert planted(INVERSE, monkeypatch, call=call) == {"array"}


def test_whole_numbers_that_differ_from_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(est: Any, n: Any) -> Any:
        return est(n=n) + (1e-6 if np.ndim(n) and np.asarray(n).dtype.kind == "i" else 0)

    assert planted(COUNT, monkeypatch, call=call) == {"int64"}


def test_a_function_that_gets_its_statistics_in_the_order_of_the_noises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noises = {"s": "DiscreteLaplace(1)", "n": "DiscreteLaplace(2)"}
    case = Case("s - n**2", noises, {"s": (0, None), "n": (1, None)}, 4)
    assert planted(case, monkeypatch) == set()
    monkeypatch.setattr(source, "_by_name", lambda f, _: f)
    assert {f.check for f in checks.examine(case).findings} == {"function"}


def test_a_second_derivative_that_is_taken_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    unbiased = tu.unbiased

    def swapped(f: Any, noise: Any, domain: Any, derivatives: Any = ()) -> Any:
        if derivatives:
            return unbiased("2/q", noise, domain)
        return unbiased(f, noise, domain)

    est = INVERSE.build()
    monkeypatch.setattr(Case, "build", lambda _: est)
    monkeypatch.setattr(tu, "unbiased", swapped)
    found = {f.check for f in checks.examine(INVERSE).findings}
    assert found == {"derivatives", "false derivatives"}


def test_derivatives_that_are_not_compared_with_f(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_derivatives, "check", lambda *_: None)
    assert planted(INVERSE, monkeypatch) == {"false derivatives"}


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("kink at 0: the slope of abs(q) jumps by 2 at q = 0, inside the domain", []),
        ("kink at 1: the slope of abs(q) jumps by 2 at q = 1, inside the domain", ["witness"]),
        ("it outgrows the noise on the right, whose tail only carries less", ["witness"]),
    ],
)
def test_a_witness_that_is_none(
    message: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("abs(q)", {"q": "Laplace(1)"}, {"q": (None, None)}, 6)

    def refuse(_: Case) -> Any:
        raise tu.NoUnbiasedEstimator(f"no unbiased estimator of abs(q): {message}", "none")

    monkeypatch.setattr(Case, "build", refuse)
    assert [f.check for f in checks.examine(case).findings] == found


def test_an_answer_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def variance(*_: Any, **__: Any) -> Any:
        raise tu.TrueupError("too late", "none")

    assert planted(INVERSE, monkeypatch, variance=variance) == {"refused"}


def test_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def sd(est: Any, **q: Any) -> Any:
        np.float64(1e308) * np.float64(1e308)
        return est.sd(**q)

    assert planted(INVERSE, monkeypatch, sd=sd) == {"warned"}


def test_float32_beside_a_bound_that_it_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(est: Any, q: Any) -> Any:
        narrow = getattr(q, "dtype", None) == np.float32
        return est(q=np.maximum(q, 0.11)) if narrow else est(q=q)

    assert planted(NARROW, monkeypatch, call=call) == {"float32"}


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_an_engine_that_reads_another_formula(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sql(est: Any, asked: str = "", **options: Any) -> str:
        return f"{est.sql(asked or 'duckdb', **options)}" + (" + 0.001" if asked == dialect else "")

    assert planted(NARROW, monkeypatch, sql=sql) == {dialect}


def test_json_that_reads_back_as_another_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def to_json(est: Any) -> str:
        record = json.loads(est.to_json())
        record["domain"]["q"][0] = "2"
        return json.dumps(record)

    assert planted(INVERSE, monkeypatch, to_json=to_json) == {"json"}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_that_answers_in_another_order(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    debias = tu.debias

    def reversed_rows(frame: Any, **estimators: Any) -> Any:
        out = debias(frame, **_plain(estimators))
        if not type(frame).__module__.startswith(library):
            return out
        return out.iloc[::-1] if library == "pandas" else out.reverse()

    monkeypatch.setattr(tu, "debias", reversed_rows)
    assert planted(INVERSE, monkeypatch) == {library}


def test_a_raw_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    def variance(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    assert planted(INVERSE, monkeypatch, variance=variance) == {"raised"}


def test_a_case_that_never_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(_: Case) -> Any:
        while True:
            pass

    monkeypatch.setattr(Case, "build", build)
    monkeypatch.setattr(work, "LONG", 0.2)
    monkeypatch.setattr(runner, "LINES", 100_000)
    assert [f.check for f in examined(INVERSE).findings] == ["too long"]


def test_a_question_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def explain(_: Any) -> str:
        raise ZeroDivisionError

    found = planted(INVERSE, monkeypatch, explain=explain)
    assert found == {"raised"}
    assert examined(INVERSE, only="answers").findings


def test_every_row_of_the_table_has_a_planted_fault() -> None:
    """Each check that RELIABILITY.md counts is named in this file as what finds a fault."""
    own = Path(__file__).read_text("utf-8")
    confirmed = {"existence", "refusal confirmed"}  # one check, looked at from both sides
    missing = [check for check in COMPARED if f'"{check}"' not in own and check not in confirmed]
    assert [check for check in missing if check not in PARAMETRIZED] == []


PARAMETRIZED = {"pandas", "polars", "duckdb", "sqlite", "sd", "expectation"}
