"""Proofs on cells: signs, directions, and what is said where f is not smooth."""

import math

import numpy as np
import pytest
import sympy

from trueup.domain import Integers, Interval
from trueup.formula.grammar import parse
from trueup.formula.linear import conditions
from trueup.inverse.signs import image, inside, is_defined_on, monotone, sign
from trueup.inverse.smooth import Kind, breaks, troubles

a, b, n, q, s = sympy.symbols("a b n q s", real=True)
LINE, POSITIVE, COUNT = Interval(), Interval(0, None), Integers(0, None)


def said(text, domain, order=2):
    """Return what is said of a formula in q under continuous noise, place by place."""
    f = inside(parse(text), {q: domain})
    return [(t.kind.name, round(t.point, 9)) for t in breaks(f, q, {q: domain}, order)]


@pytest.mark.parametrize(
    ("text", "domain", "expected"),
    [
        ("1/q", Interval(1, None), []),
        ("q*exp(-q) + log(q + 1)", POSITIVE, []),
        ("abs(q - 5)", LINE, [("KINK", 5)]),
        ("abs(q - 5)", Interval(5, None), []),
        ("max(q, 1)", POSITIVE, [("KINK", 1)]),
        ("where(q >= 10, 1, 0)", POSITIVE, [("JUMP", 10)]),
        ("1/(q - 3)", POSITIVE, [("POLE", 3)]),
        ("1/q**0.3", POSITIVE, [("POLE", 0)]),
        ("log(q)", POSITIVE, [("POLE", 0)]),
        ("log(abs(q))", LINE, [("POLE", 0)]),
        ("sqrt(q)", POSITIVE, [("STEEP", 0)]),
        ("sqrt(log(q))", Interval(1, None), [("STEEP", 1)]),
        ("asin(q)", Interval(0, 1), [("STEEP", 1)]),
        ("tan(q)", Interval(0, 2), [("POLE", 1.570796327)]),
        ("q**1.5", POSITIVE, [("MILD", 0)]),
        ("abs(q)**1.5", LINE, [("MILD", 0)]),
        ("q*abs(q)", LINE, [("MILD", 0)]),
        ("q**1.5*(q - 1)", POSITIVE, [("MILD", 0)]),
        ("where(q**2 < 2, q**2, 2*sqrt(2)*q - 2)", POSITIVE, [("UNDECIDED", 1.414213562)]),
        ("where(q < 0.3, 0.1*q, 0.2*q - 0.03)", LINE, [("KINK", 0.3)]),
        ("where(q < 0.3, 0.3*q**2, 0.18*q - 0.027)", LINE, [("MILD", 0.3)]),
        ("where(q < 0, q, (1 + 1e-10)*q)", LINE, [("KINK", 0)]),
        ("exp(q) - q**2", LINE, []),
        ("1/(exp(q) - q**2)", POSITIVE, []),
        ("1/(exp(q) - q**2)", LINE, [("POLE", -0.703467422)]),
        ("sin(q)/q", LINE, [("UNDECIDED", 0)]),
        ("q**2*log(q)", POSITIVE, [("UNDECIDED", 0)]),
        ("where(q <= 0, -q**3, q**3)", LINE, [("MILD", 0)]),
    ],
)
def test_what_happens_along_a_line(text, domain, expected):
    assert said(text, domain) == expected


def test_sums_of_noises_need_higher_derivatives():
    assert said("q**3*abs(q)", LINE, order=4) == [("MILD", 0)]
    assert said("q*abs(q)", LINE, order=4) == [("UNDECIDED", 0)]
    assert said("q**2.5", POSITIVE, order=4) == [("UNDECIDED", 0)]


@pytest.mark.parametrize("text", ["log(q)", "sqrt(q)", "q**1.5", "asin(q)", "log(log(q))"])
def test_what_is_not_a_real_number_is_undefined(text):
    assert said(text, LINE)[0][0] == "UNDEFINED"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("where(n > 0, 1/n, 0)", []),
        ("max(n - 10, 0) + abs(n - 5)", []),
        ("1/(n - 1000.5)", []),
        ("sqrt(n)", []),
        ("1/n", [Kind.UNDEFINED]),
        ("1/(n - 1000)", [Kind.UNDEFINED]),
        ("log(n)", [Kind.UNDEFINED]),
        ("sqrt(n - 3)", [Kind.UNDEFINED]),
    ],
)
def test_on_integers_f_only_needs_values(text, kinds):
    assert [t.kind for t in troubles(parse(text), {n: COUNT}, {})][:1] == kinds


def test_a_pole_far_from_all_bounds_is_not_overlooked():
    whole = Integers(1, None)
    f = parse("1/(a**2 + b**2 - 2000000)")  # 1001² + 1000² is not, 1000² + 1000² is
    assert list(troubles(f, {a: whole, b: whole}, {}))


def test_several_statistics():
    box = {s: LINE, n: Interval(1, None)}
    orders = {s: 2, n: 2}
    assert not list(troubles(parse("s**2/n + log(n)"), box, orders))
    assert not list(troubles(parse("n**1.5*s"), {s: LINE, n: POSITIVE}, orders))[1:]
    (kink,) = list(troubles(parse("abs(s)*n"), box, orders))
    assert (kink.kind, kink.point, kink.symbol) == (Kind.KINK, 0, s)
    found = next(troubles(parse("1/(s - n)"), box, orders))
    assert found.kind is Kind.UNDECIDED


def test_two_cases_that_meet_on_one_line_only_do_not_count_as_one():
    f = parse("where(s < 0, 0, s*(n - 7.5))")
    found = list(troubles(f, {s: LINE, n: Interval(1, 14)}, {s: 2, n: 2}))
    assert found
    assert found[0].kind is not Kind.MILD


@pytest.mark.parametrize("text", ["where(s == 0, n - 8, s)", "where(s == 0, n - 9, s)"])
def test_a_value_that_is_the_limit_on_one_line_only_is_none(text):
    """With n = 8, where it is looked at, n - 8 is the limit of s."""
    box, orders = {s: LINE, n: Integers(1, None)}, {s: 2}
    kinds = {found.kind for found in troubles(parse(text), box, orders)}
    assert kinds <= {Kind.JUMP, Kind.UNDECIDED}
    assert kinds


def test_conditions_drop_cells_and_bound_sums():
    tied = conditions("a + b >= 1")[1]
    both = {a: COUNT, b: COUNT}
    assert list(troubles(parse("b/(a + b)"), both, {}))
    assert not list(troubles(parse("b/(a + b)"), both, {}, tied))
    real = {a: POSITIVE, b: POSITIVE}
    assert not list(troubles(parse("log(a + b - 0.5)"), real, {a: 2, b: 2}, tied))


def test_a_difference_that_a_condition_keeps_positive():
    tied = conditions("s <= n")[1]
    box, orders = {s: POSITIVE, n: Interval(1, None)}, {s: 2, n: 2}
    assert list(troubles(parse("log(n - s + 1)"), box, orders))
    assert not list(troubles(parse("log(n - s + 1)"), box, orders, tied))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b", 1),
        ("a - b", 0),
        ("-a**2 - 1/b", -1),
        ("exp(a) - a", 1),
        ("a - 1", 0),
        ("1/(a - 5)", 0),
    ],
)
def test_signs(text, expected):
    box = {a: Interval(1, None), b: Interval(1, None)}
    assert sign(parse(text), box) == expected


def test_signs_that_may_vanish():
    box = {a: Interval(1, None)}
    assert sign(a - 1, box) == 0
    assert sign(a - 1, box, strict=False) == 1
    assert sign(parse("log(a - 5)"), box, strict=False) == 0


def test_a_sign_needs_values_but_not_continuity():
    assert sign(parse("where(a < 2, 1, a)"), {a: Interval(1, None)}) == 1
    assert sign(parse("where(a < 2, log(a - 5)**2 + 1, a)"), {a: Interval(1, None)}) == 0
    assert sign(parse("(-1)**a + 2"), {a: Integers(1, None)}) == 0


def test_signs_under_conditions():
    tied = conditions("s <= n")[1]
    assert sign(n - s, {s: POSITIVE, n: POSITIVE}, strict=False, tied=tied) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1/q", -1),
        ("q**2", 1),
        ("q - log(q)", 1),
        ("q/(q + 10)", 1),
        ("abs(q - 5)", 0),
        ("max(q, 3)", 1),
        ("where(q > 5, q, 2*q)", 0),
    ],
)
def test_directions(text, expected):
    assert monotone(parse(text), q, {q: Interval(1, None)}) == expected


def test_an_image_holds_every_value():
    rng = np.random.default_rng(3)
    f = parse("s/n + abs(s - 2)")
    low, high = rng.uniform(1, 2, (2, 20)), rng.uniform(2, 5, (2, 20))
    least, most = image(f, {s: (low[0], high[0]), n: (low[1], high[1])})
    for t in np.linspace(0, 1, 9):
        for u in np.linspace(0, 1, 9):
            x, y = low[0] + t * (high[0] - low[0]), low[1] + u * (high[1] - low[1])
            values = x / y + abs(x - 2)
            assert (least <= values).all()
            assert (values <= most).all()


def test_continuity():
    for f, expected in {
        "max(q, 1) + sqrt(q)": True,
        "where(q < 1, 0, 1)": False,
        "1/q": False,
    }.items():
        assert is_defined_on(parse(f), {q: POSITIVE}, continuous=True) == expected
    assert is_defined_on(parse("where(q < 1, 0, 1)"), {q: POSITIVE})


def test_cases_are_decided_only_where_both_sides_are_real():
    f = parse("max(log(q), -1e9)")
    assert inside(f, {q: LINE}) == f
    assert inside(parse("abs(s*n)"), {s: POSITIVE, n: POSITIVE}) == s * n


def test_breaks_tell_the_jumps():
    (found,) = breaks(parse("abs(q - 3)"), q, {q: LINE})
    assert (found.point, found.kind, found.gap) == (3, Kind.KINK, 2)
    (found,) = breaks(parse("where(q < 1, 0, 5)"), q, {q: LINE})
    assert (found.point, found.gap) == (1, 5)
    (found,) = breaks(parse("q**1.25"), q, {q: POSITIVE})
    assert math.isclose(found.exponent, -0.75, abs_tol=1e-6)
