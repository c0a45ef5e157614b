"""Kinks, jumps, single values and 0/0 at the bounds, beside them and away: what exists, and that.

Two smooth pieces meet at a point a of a drawn function. Whether an unbiased estimator exists then
follows from the pieces alone: inside the domain value and slope must agree and the value at a be
their limit, at a bound only the piece inside counts, with the value at a. What exists must be
accepted and be unbiased by quadrature; what does not must be refused as proved.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import oracle
import trueup as tu
from oracle import Axis, expect
from work import at_most

SCALE = 0.7
PLACES = ("low", "high", "inside", "beside low", "beside high", "away")


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Left piece, right piece, value at a, all polynomials in t = q − a, and the domain."""

    text: str
    left: tuple[int, int, int]
    right: tuple[int, int, int]
    at: float
    a: float
    domain: tuple[float | None, float | None]
    place: str

    def __call__(self, q: float) -> float:
        """Return f(q), read off the pieces."""
        t = q - self.a
        piece = self.left if t < 0 else self.right
        return self.at if t == 0 else piece[0] + piece[1] * t + piece[2] * t * t

    @property
    def exists(self) -> bool:
        """Whether f is C¹ on the closed domain, with its limits at a."""
        if self.place == "away":
            return True
        if self.place == "low":
            return self.right[0] == self.at
        if self.place == "high":
            return self.left[0] == self.at
        return self.left[:2] == self.right[:2] and self.left[0] == self.at


def written(piece: tuple[int, int, int], a: float) -> str:
    t = f"(q - {a:g})" if a >= 0 else f"(q + {-a:g})"
    return f"({piece[0]} + {piece[1]}*{t} + {piece[2]}*{t}**2)"


def drawn(seed: int) -> Drawn:
    """Return a function whose pieces agree in nothing, in the value, or in value and slope."""
    pick = random.Random(seed)
    a, place = pick.choice((-1.5, 0.0, 2.0)), PLACES[seed % len(PLACES)]
    left = tuple(pick.choice((-2, -1, 0, 1, 3)) for _ in range(3))
    agree = pick.choice((0, 1, 2, 2))
    right = left[:agree] + tuple(pick.choice((-2, -1, 0, 1, 3)) for _ in range(3 - agree))
    domain = {
        "low": (a, pick.choice((None, a + 3))),
        "high": (pick.choice((None, a - 3)), a),
        "inside": pick.choice(((None, None), (a - 2, a + 1), (a - 1, None))),
        "beside low": (a - 2.0**-10, None),
        "beside high": (a - 3, a + 2.0**-10),
        "away": pick.choice(((a + 0.5, None), (None, a - 0.25))),
    }[place]
    below, above = written(left, a), written(right, a)
    kind = pick.choice((">", ">=", "==", "between"))
    at: float = right[0] if kind == ">=" else left[0]
    text = f"where(q {kind} {a:g}, {above}, {below})"
    if kind == "==":
        at = pick.choice((left[0], 7))
        text = f"where(q == {a:g}, {at:g}, where(q > {a:g}, {above}, {below}))"
    if kind == "between":
        at = pick.choice((right[0], -5))
        text = f"where(q > {a:g}, {above}, where(q >= {a:g}, {at:g}, {below}))"
    return Drawn(text, left, right, at, a, domain, place)  # type: ignore[arg-type]


def truths(f: Drawn) -> list[float]:
    """Return the bounds, a, what lies beside them, and something further on."""
    marks = [b for b in f.domain if b is not None] + ([] if f.place == "away" else [f.a])
    near = {m + d for m in marks for d in (0.0, 1e-7, -1e-7, 0.3, -0.3)} or {0.0, 1.0}
    low = -math.inf if f.domain[0] is None else f.domain[0]
    high = math.inf if f.domain[1] is None else f.domain[1]
    return sorted(q for q in near if low <= q <= high)


@pytest.mark.parametrize("seed", range(72))
def test_what_exists_is_unbiased_and_what_is_refused_does_not_exist(seed: int) -> None:
    f = drawn(seed)
    if not f.exists:
        with pytest.raises(tu.NoUnbiasedEstimator) as info:
            tu.unbiased(f.text, tu.Laplace(SCALE), f.domain)
        assert info.value.proved
        return
    est = tu.unbiased(f.text, tu.Laplace(SCALE), f.domain)
    breaks = tuple(b for b in (*f.domain, f.a) if b is not None)
    for q in truths(f):
        mean = expect(est, Axis(oracle.laplace(SCALE), q, breaks))
        assert mean == pytest.approx(f(q), abs=1e-9, rel=1e-9), (f.text, f.domain, q)
        assert est.expectation(q) == pytest.approx(f(q), abs=1e-12, rel=1e-12)


def test_both_kinds_are_drawn_at_every_place() -> None:
    seen = {(f.place, f.exists) for f in map(drawn, range(72))}
    assert seen >= {*itertools.product(PLACES[:-1], (True, False)), ("away", True)}


def shown(value: object) -> str:
    """Return a name for a parameter that is the same in every process."""
    return "f" if callable(value) else str(value)[:30]


# -- the slope at a bound is the one from inside ---------------------------------------------------

AT_A_BOUND: list[tuple[str, Any, Callable[[float], float]]] = [
    ("abs(q - 3)", (None, 3), lambda q: 3 - q),
    ("abs(q - 0.1)", (0.1, None), lambda q: q - 0.1),
    ("max(q, 3)", (None, 3), lambda q: 3.0),
    ("min(q, 3)", (3, None), lambda q: 3.0),
    ("where(q > 1, 1/q, 1)", (1, None), lambda q: 1 / q),
    ("abs(sin(q))", (0, 3), math.sin),
]


@pytest.mark.parametrize(("f", "domain", "truth"), AT_A_BOUND, ids=shown)
@pytest.mark.parametrize("extension", ["optimal", 4])
def test_at_a_bound_the_slope_is_the_one_from_inside(
    f: str, domain: Any, truth: Callable[[float], float], extension: Any
) -> None:
    bounds = tuple(float(x) for x in domain if x is not None)
    est = tu.unbiased(f, tu.Laplace(1), domain, extension=extension)
    for q in (bounds[0], bounds[-1], bounds[0] + (0.5 if domain[0] is not None else -0.5)):
        mean = expect(est, Axis(oracle.laplace(1), q, bounds))
        assert mean == pytest.approx(truth(q), abs=1e-9)


def test_at_a_bound_under_a_sum_of_noises() -> None:
    noise = tu.Laplace(1) + tu.Laplace(0.5)
    est, plain = (tu.unbiased(f, noise, (None, 3)) for f in ("abs(q - 3)**3", "(3 - q)**3"))
    x = np.array([-1.0, 2.5, 3.0, 3.75, 8.0])
    np.testing.assert_allclose(est(x), plain(x), rtol=1e-12)


def test_at_a_bound_in_tables_scales_and_sql() -> None:
    duckdb = pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    est = tu.unbiased("abs(q - 3)", tu.Laplace(1), (None, 3))
    frame = pandas.DataFrame({"q": [5.0, 1.0], "b": [2.0, 2.0]})
    assert tu.debias(frame, f=est)["f"].tolist() == [-1.0, 2.0]
    assert tu.debias(frame, scales={"q": "b"}, f=est)["f"].tolist() == [-2.0, 2.0]
    query = f"SELECT {est.sql()} FROM (VALUES (5.0::DOUBLE)) t(q)"  # noqa: S608
    (row,) = duckdb.connect().sql(query).fetchall()
    assert row == (-1.0,)
    assert "3 - q" in str(est.formula)
    assert est.variance(5.0) == 1.0


# -- the other statistics' cases -------------------------------------------------------------------

CASES = [
    ("where(n == 100, abs(s), s)", {}, "kink at 0"),
    ("where(n > 100, abs(s), s)", {}, "could not be shown"),
    ("where(n > m, abs(s), s)", {}, "could not be shown"),
    ("where(n > 100, sqrt(s), s)", {"s": (0, None)}, "could not be shown"),
    ("where(n > 100, where(s > 2, 5, 4), s)", {}, "could not be shown"),
    ("where(n > 100, where(s > 2, 5, 4), s)", {"n": (98, 102)}, "jump at 2"),
    ("abs(s - n)", {}, "could not be shown"),
    ("where(t > 100, abs(s), s)", {}, "could not be shown"),
]


@pytest.mark.parametrize(("f", "domain", "reason"), CASES, ids=str)
def test_every_case_of_the_other_statistics_is_looked_at(f: str, domain: Any, reason: str) -> None:
    noise = {"s": tu.Laplace(1), "n": tu.DiscreteLaplace(1)}
    noise |= {name: tu.DiscreteLaplace(2) for name in "m" if name in f.split("(", 1)[1]}
    noise |= {"t": tu.Laplace(2)} if "t >" in f else {}
    noise = {
        name: z for name, z in noise.items() if name in f.replace("sqrt", "").replace("abs", "")
    }
    with pytest.raises(tu.NoUnbiasedEstimator, match=reason) as info:
        tu.unbiased(f, noise, domain or None)
    assert info.value.proved == ("shown" not in reason)


def test_cases_of_other_statistics_that_cannot_occur_do_no_harm() -> None:
    noise = {"s": tu.Laplace(1), "n": tu.DiscreteLaplace(1)}
    est = tu.unbiased("where(n > 100, abs(s), s)", noise, {"n": (None, 50)})
    assert est(s=-1.5, n=3) == -1.5
    with pytest.raises(tu.NoUnbiasedEstimator, match="could not be shown"):
        tu.unbiased("n*abs(s)**3", noise)  # a kink that is mild whatever n is


def test_the_expectation_at_a_cancelled_point_is_the_limit() -> None:
    est = tu.unbiased("(q**2 - 1)/(q - 1)", tu.Laplace(1))
    assert est.expectation(1.0) == pytest.approx(2.0, rel=1e-12)
    assert abs(est.bias(1.0)) < 1e-12


# -- what was refused, or accepted, by mistake -----------------------------------------------------

EXIST: list[tuple[str, float, Any, Callable[[float], float]]] = [
    ("where(q > 1, log(q), q - 1)", 1.0, None, lambda q: math.log(q) if q > 1 else q - 1),
    ("q**5*sin(1/q)", 1.0, (0.5, None), lambda q: q**5 * math.sin(1 / q)),
]


@pytest.mark.parametrize(("f", "b", "domain", "truth"), EXIST, ids=shown)
def test_what_exists_is_not_refused(
    f: str, b: float, domain: Any, truth: Callable[[float], float]
) -> None:
    est = tu.unbiased(f, tu.Laplace(b), domain)
    low = 1.0 if domain is None else float(domain[0])
    for q in (low, low + 0.5):
        assert expect(est, Axis(oracle.laplace(b), q, (low,), 0.2)) == pytest.approx(truth(q))


REFUSED = [
    ("q*(-log(q))**0.1", (0, 0.5), False),
    ("q*sin(log(q))", (0, 1), False),
    ("q**3*sin(1/q)", (0, 1), False),
    ("log(1 + exp(exp(q)))", None, False),
    ("exp(q)", None, True),
    ("s*t/(s + t)", {"s": (0, None), "t": (0, None)}, False),
]


@pytest.mark.parametrize(("f", "domain", "proved"), REFUSED, ids=str)
def test_proved_or_not_found(f: str, domain: Any, proved: bool) -> None:
    noise: Any = {"s": tu.Laplace(1), "t": tu.Laplace(1)} if "t)" in f else tu.Laplace(1)
    with pytest.raises(tu.NoUnbiasedEstimator) as info:
        tu.unbiased(f, noise, domain)
    assert info.value.proved is proved
    assert ("was found" in info.value.message) is not proved


def test_a_logarithm_decides_whether_the_tail_is_integrable() -> None:
    assert math.isfinite(tu.unbiased("exp(q)/log(q)", tu.Laplace(1), (2, None))(3.0))


def test_touching_at_the_edge_of_the_domain() -> None:
    noise = {"s": tu.Laplace(1), "t": tu.Laplace(1)}
    box = {"s": (0, None), "t": (0, None)}
    est, plain = tu.unbiased("abs(s*t)", noise, box), tu.unbiased("s*t", noise, box)
    s, t = np.meshgrid([-1.0, 0.0, 2.0], [-3.0, 0.0, 1.0])
    assert (est(s=s, t=t) == plain(s=s, t=t)).all()


HINTED = [
    ("1/q", (-3, 3)),
    ("1/q", None),
    ("tan(q)", (0, 2)),
    ("1/(q**2 - 4)", (0, None)),
    ("abs(q - 3)", (1, None)),
    ("max(q, 2)", (0, 9)),
    ("where(q > 5, 1, 0)", None),
    ("sqrt(q)", (0, None)),
    ("sqrt(5 - q)", (0, 5)),
    ("where(q == 2, 5, q)", None),
]


def test_a_hint_names_the_statistic_it_bounds() -> None:
    noise = {"s": tu.Laplace(1), "pay roll": tu.Laplace(1)}
    with pytest.raises(tu.NoUnbiasedEstimator) as info:
        tu.unbiased("s + 1/`pay roll`", noise)
    proposed = ast.literal_eval(info.value.hint.split("e.g. domain=")[1])
    assert tu.unbiased("s + 1/`pay roll`", noise, proposed).domain["pay roll"].low == 1


@pytest.mark.parametrize(("f", "domain"), HINTED, ids=str)
def test_what_a_hint_proposes_works(f: str, domain: Any) -> None:
    with pytest.raises(tu.NoUnbiasedEstimator) as info:
        tu.unbiased(f, tu.Laplace(0.5), domain)
    assert (
        "e.g. domain=" in info.value.hint
        or "point" in str(info.value)
        or "limit" in str(info.value)
    )
    if "e.g. domain=" in info.value.hint:
        proposed = ast.literal_eval(info.value.hint.split("e.g. domain=")[1].split(";")[0])
        est = tu.unbiased(f, tu.Laplace(0.5), proposed)
        bounds = tuple(float(b) for b in proposed["q"] if b is not None)
        q = bounds[0]
        mean = expect(est, Axis(oracle.laplace(0.5), q, bounds, 0.1))
        assert mean == pytest.approx(float(est.expectation(q)), rel=1e-8, abs=1e-9)


def _power_at_bound(p: float, b: float, q: float) -> tuple[Any, Any]:
    """E g and sd g for f = t^p, t = q − 1 ≥ 0, under Laplace noise; t = u¹² tames the bound."""
    with mpmath.workdps(30):
        p, b, q = mpmath.mpf(p), mpmath.mpf(b), mpmath.mpf(q)

        def mean(h: Callable[[Any], Any], beyond: Any) -> Any:
            def term(u: Any) -> Any:
                return 12 * u**11 * h(u**12) * mpmath.exp(-abs(1 + u**12 - q) / b) / (2 * b)

            low = mpmath.exp((1 - q) / b) / 2 if q > 1 else 1 - mpmath.exp((q - 1) / b) / 2
            ends = sorted({mpmath.mpf(0), max(q - 1, mpmath.mpf(0)), mpmath.mpf(9), mpmath.mpf(99)})
            return beyond * low + mpmath.quad(term, [x ** (mpmath.mpf(1) / 12) for x in ends])

        def g(t: Any) -> Any:
            return t**p - b * b * p * (p - 1) * t ** (p - 2)

        middle = mean(g, 0)
        return middle, mpmath.sqrt(mean(lambda t: (g(t) - middle) ** 2, middle**2))


@pytest.mark.parametrize("p", [1.9, 1.95])
@pytest.mark.parametrize("q", [-0.884, 3.0])
def test_infinite_curvature_at_a_bound_other_than_zero(p: float, q: float) -> None:
    g = tu.unbiased(f"(q - 1)**{p}", tu.Laplace(1.7), (1, None))
    mean, sd = _power_at_bound(p, 1.7, q)
    assert math.isclose(g.expectation(q), mean, rel_tol=1e-9, abs_tol=1e-9)
    assert math.isclose(g.sd(q), sd, rel_tol=1e-9)


@pytest.mark.parametrize("f", ["(q - 1)**1.5", "(q**2 - 1)**1.5", "abs(q - 5)**3 + (q - 1)**1.2"])
def test_much_curvature_at_a_bound_other_than_zero_is_beyond_doubles(f: str) -> None:
    """Doubles beside 1 keep no digits of q − 1: what is lost is stated, or less than 1e-9."""
    g, truth = tu.unbiased(f, tu.Laplace(1.7), (1, None)), sympy.sympify(f).subs("q", 3)
    assert g.sd(3.0) == math.inf
    if "1.2" in f:
        with pytest.raises(tu.TrueupError, match="did not settle"):
            g.expectation(3.0)
    else:
        assert g.expectation(3.0) == pytest.approx(float(truth), rel=2e-9)
    with pytest.raises(tu.TrueupError, match="did not settle"):
        tu.unbiased("(q - 1)**1.6", tu.Laplace(1.7), (1, None)).sd(3.0)


@pytest.mark.parametrize(
    ("formula", "low", "q", "f", "slope"),
    [
        ("abs(q - 5)**1.7", 0, -1.0, 5**1.7, -1.7 * 5**0.7),
        ("abs(q - 5)**1.7 + (q - 2)**3", 2, 1.0, 3**1.7, -1.7 * 3**0.7),
    ],
)
def test_expectation_below_a_bound(
    formula: str, low: float, q: float, f: float, slope: float
) -> None:
    """E g(q) = c·P(x < L) + e^{(q−L)/b}·(f(L) − c/2) with c = f(L) − b·f′(L): E g(L) = f(L)."""
    c, far = f - slope, math.exp(q - low)
    expected = c * (1 - far / 2) + far * (f - c / 2)
    got = tu.unbiased(formula, tu.Laplace(1), (low, None)).expectation(q)
    assert math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize(
    ("formula", "b", "c"),
    [
        ("where(b > -2, a, c**(1/3))", tu.DiscreteLaplace(2), tu.DiscreteLaplace(1)),
        ("where(b > -2 and not (c == 0), a, c**(1/3))", tu.DiscreteLaplace(2), tu.Laplace(1)),
    ],
)
def test_a_case_that_others_leave_aside_needs_no_value_at_a_bound(formula, b, c):
    """The limit at the bound is taken in every case, not in one of them whatever holds."""
    bounds = {"b": (-1, None), "c": (-4, -1)}
    est = tu.unbiased(formula, {"a": tu.Laplace(0.5), "b": b, "c": c}, bounds)
    for published in (-7.0, -4.0, -2.0, -1.0, 3.0):
        assert est(a=101.0, b=4.0, c=published) == pytest.approx(101.0, rel=1e-12)
        assert est.variance(a=101.0, b=4.0, c=published) == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize(
    "f",
    [
        "where(q < 0, 0, where(q < 1e-16, 0, 5))",
        "where(q < 3, 0, where(q < 3.0000000000000004, 0, 5))",
        "abs(q)**3 + abs(q - 1e-17)",
        "abs(q)**3 + where(q > 1e-17, 1, 0)",
        "where(q == 1e-17, 5, abs(q)**3)",
        "q*abs(q) + abs(q + 1e-18)",
    ],
)
def test_a_break_beside_a_harmless_point_is_not_overlooked(f: str) -> None:
    with pytest.raises(tu.NoUnbiasedEstimator):
        tu.unbiased(f, tu.Laplace(1))


# -- what repeats without end --------------------------------------------------------------


def test_a_kink_or_pole_in_every_period_is_refused() -> None:
    for f in ("abs(sin(q))", "max(sin(q), cos(q))", "1/(1 + cos(q))", "tan(3*q)"):
        with pytest.raises(tu.NoUnbiasedEstimator):
            tu.unbiased(f, tu.Laplace(1), (0.1, None))


@pytest.mark.parametrize(
    ("f", "domain"),
    [
        ("sqrt(1 + cos(q))", (1, 5)),
        ("sqrt(q**4 - 4*q**2 + 4)", (1, 2)),
        ("acos(cos(q))**2", (1, 5)),
        ("asin(sin(q))", (1, 4)),
    ],
)
def test_a_kink_where_a_guard_only_touches_zero(f: str, domain: tuple[float, float]) -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match=r"kink|could not be shown"):
        tu.unbiased(f, tu.Laplace(0.1), domain)


@pytest.mark.parametrize("f", ["abs(q**2 - 4)**3", "((q**2 - 4)**2)**1.5"])
def test_no_kink_where_a_guard_only_touches_zero(f: str) -> None:
    est, q = tu.unbiased(f, tu.Laplace(0.1), (1, 5)), 2.5
    assert est.expectation(q) == pytest.approx(abs(q * q - 4) ** 3, rel=1e-9)


def test_a_mild_kink_at_an_irrational_number_is_not_looked_at() -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match="could not be shown"):
        tu.unbiased("abs(q**2 - 2)**3", tu.Laplace(0.1), (1, 5))


@pytest.mark.parametrize(
    "f",
    ["log(1 + (q - 0.3))/(q - 0.3)", "(exp(q - 0.1) - 1 - (q - 0.1))/(q - 0.1)**2"],
)
def test_a_pole_of_rounded_decimals_proves_nothing(f: str) -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match="was found") as error:
        tu.unbiased(f, tu.Laplace(0.5), (0, 2))
    assert not error.value.proved
    with pytest.raises(tu.NoUnbiasedEstimator) as error:
        tu.unbiased("0.7 + 1e-9/(q - 0.3)", tu.Laplace(0.5), (0, 2))
    assert error.value.proved


def test_zeros_that_only_doubles_see_are_not_looked_at():
    with at_most(2_000_000), pytest.raises(tu.NoUnbiasedEstimator, match="could not be shown"):
        tu.unbiased("asin((n - 0.1)/n)", tu.Laplace(1.7), (1.1, None))
