"""Calculating with published values: the whole formula is debiased, identity is remembered."""

import math
import operator
import pickle

import numpy as np
import pytest

import trueup as tu
from extras import needs


@pytest.fixture
def n():
    return tu.noisy([103, 50, 7], tu.DiscreteLaplace(2), domain=(1, None), name="n")


@pytest.fixture
def s():
    return tu.noisy([51.7, 20.0, 3.0], tu.Laplace(2), name="s")


def test_a_ratio_is_the_estimators(n, s):
    est = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)})
    values = {"s": np.array([51.7, 20.0, 3.0]), "n": np.array([103, 50, 7])}
    assert np.array_equal((s / n).estimate, est(**values))
    assert np.array_equal((s / n).variance, est.variance(**values))
    assert np.array_equal((s / n).stderr, est.stderr(**values))
    assert np.array_equal((s / n).interval(0.9), est.interval(level=0.9, **values))


def test_the_formula_is_debiased_as_a_whole(s):
    assert np.allclose((s**2).estimate, np.array([51.7, 20, 3]) ** 2 - 8)
    assert not np.allclose((s * s).estimate, s.estimate**2)
    assert np.array_equal((s * s).estimate, (s**2).estimate)


def test_identity_is_object_and_index(n):
    assert np.array_equal((n - n).estimate, np.zeros(3))
    assert (n[0] - n[0]).estimate == 0.0
    assert (n[0] - n[0]).variance == 0.0
    twin = tu.noisy([103, 50, 7], tu.DiscreteLaplace(2), domain=(1, None), name="n")
    assert (n[0] - twin[0]).variance > 0


def test_an_entry_meets_its_array(n):
    difference = n - n[0]
    assert np.array_equal(difference.estimate, [0, -53, -96])
    variance = difference.variance
    assert variance[0] == 0
    assert variance[1] == pytest.approx((n[1] - n[0]).variance)
    product = (n * n[0]).estimate
    assert product[0] == pytest.approx((n[0] ** 2).estimate)
    assert product[1] == pytest.approx(n[1].estimate * n[0].estimate)
    assert (n[1:][0] - n[1]).estimate == 0.0


def test_sums(n, s):
    assert s.sum().estimate == pytest.approx(74.7)
    assert s.sum().variance == pytest.approx(3 * 8)
    assert (s.sum() - s[0] - s[1] - s[2]).estimate == 0.0
    inverse = 1 / n[:2].sum()
    cells = {"a": tu.DiscreteLaplace(2), "b": tu.DiscreteLaplace(2)}
    est = tu.unbiased("1/(a + b)", cells, {"a": (1, None), "b": (1, None)})
    assert inverse.estimate == pytest.approx(est(a=103, b=50), rel=1e-14)
    assert sum(n[:2]).estimate == n[:2].sum().estimate


def test_conditions(n):
    above = n > 5
    with pytest.raises(tu.TrueupError, match="not known"):
        bool(above)
    with pytest.raises(tu.TrueupError, match="not known"):
        bool(n)
    chosen = tu.where(above & ~(n >= 100), n, 0)
    est = tu.unbiased("where(n > 5 and n < 100, n, 0)", tu.DiscreteLaplace(2), (1, None))
    assert np.allclose(chosen.estimate, est(np.array([103, 50, 7])))
    assert tu.where(True, 3, n).estimate[0] == 3


@pytest.mark.parametrize(
    ("function", "text"),
    [(np.log, "log(n)"), (np.sqrt, "sqrt(n)"), (np.exp, "exp(n/9)"), (np.log1p, "log(1 + n)"),
     (np.square, "n**2"), (np.reciprocal, "1/n"), (np.tanh, "tanh(n)"), (np.abs, "abs(n)")],
)  # fmt: skip
def test_numpy_functions(n, function, text):
    value = function(n / 9) if text == "exp(n/9)" else function(n)
    est = tu.unbiased(text, tu.DiscreteLaplace(2), (1, None))
    assert np.allclose(value.estimate, est(np.array([103, 50, 7])), rtol=1e-12)


def test_known_arrays_take_part(n):
    weights = np.array([2.0, 3.0, 5.0])
    assert np.allclose((weights * n).estimate, weights * n.estimate)
    assert np.allclose((n / weights).variance, n.variance / weights**2)
    assert np.allclose(np.multiply(weights, n).estimate, (n * weights).estimate)


KNOWN = {
    "float": lambda: np.float64(2.0),
    "array of no dimension": lambda: np.array(2.0),
    "array": lambda: np.array([2.0, 3.0, 5.0]),
    "other shape": lambda: np.array([[2.0], [3.0]]),
    "series": lambda: needs("pandas").Series([2.0, 3.0, 5.0]),
    "frame": lambda: needs("pandas").DataFrame([[2.0, 3.0, 5.0]]),
}


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.pow], ids=str)
@pytest.mark.parametrize("make", KNOWN.values(), ids=KNOWN)
def test_known_numbers_on_the_left(make, op):
    """They leave the operation to the noisy value."""
    known, x = make(), tu.noisy([0.4, 0.3, 0.1], tu.Laplace(0.1), (0, 1))
    array = np.asarray(known)
    got = op(known, x)
    assert isinstance(got, tu.values.Noisy)
    assert got.shape == np.broadcast_shapes(array.shape, (3,))
    want = op(array, x.estimate) * (1 - np.log(array) ** 2 / 100 if op is operator.pow else 1)
    assert np.allclose(got.estimate, want, rtol=1e-12)


@pytest.mark.parametrize("make", KNOWN.values(), ids=KNOWN)
def test_known_numbers_on_the_left_of_a_comparison(make, n):
    found = tu.where(make() < n, 1, 0)
    assert np.array_equal(found.estimate, np.broadcast_to(1.0, found.shape))


def test_a_total_that_grows_in_a_loop(n):
    total = n[0]
    for entry in n[1:]:
        total += entry
    assert total.estimate == n.sum().estimate
    assert n[0].estimate == 103
    with pytest.raises(tu.TrueupError, match="not an array"):
        np.asarray(n)


def test_other_numpy_functions_are_refused(n):
    with pytest.raises(tu.TrueupError, match=r"np\.floor"):
        np.floor(n)
    with pytest.raises(tu.TrueupError, match="plain number"):
        float(n[0])


def test_display():
    s = tu.noisy(3.4217, tu.Laplace(0.2157))
    assert repr(s) == "3.42 ± 0.31"
    assert repr(tu.noisy([1.0, 2.0], tu.Laplace(1))) == "[1.0 ± 1.4, 2.0 ± 1.4]"
    assert "kink at 0" in repr(abs(s))


def test_a_scalar_gives_floats():
    n = tu.noisy(103, tu.DiscreteLaplace(2), domain=(1, None), name="n")
    m = 1 / n
    assert type(m.estimate) is float
    assert type(m.stderr) is float
    assert all(type(end) is float for end in m.interval())


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: tu.noisy("3", tu.Laplace(1)), "must be a number"),
        (lambda: tu.noisy(3, 2), "noise must be a noise"),
        (lambda: tu.noisy(3.5, tu.DiscreteLaplace(1)), "must be integers"),
        (lambda: tu.noisy([1, 2], tu.Laplace(1)) + tu.noisy([1, 2, 3], tu.Laplace(1)), "shapes"),
        (lambda: tu.noisy(3, tu.Laplace(1)) + "x", "must be a number"),
        (lambda: tu.noisy(3, tu.Laplace(1))[0], "no entries"),
        (lambda: (1 / tu.noisy(3, tu.Laplace(1))).estimate, "pole at 0"),
        (lambda: 1 / tu.noisy(np.arange(1, 8), tu.Laplace(1), (1, None)).sum() * 1, None),
    ],
)
def test_bad_input(make, match):
    if match is None:
        with pytest.raises(tu.TrueupError, match="at most 6"):
            _ = make().estimate
        return
    with pytest.raises(tu.TrueupError, match=match) as caught:
        make()
    assert "\nHint: " in str(caught.value)


def test_nan_stays_nan():
    value = 1 / tu.noisy([math.nan, 9.0], tu.Laplace(2), (1, None))
    assert math.isnan(value.estimate[0])
    assert value.estimate[1] == pytest.approx(1 / 9 - 8 / 9**3)


@pytest.mark.parametrize(
    "make",
    [
        lambda n, s: n + 0,
        lambda n, s: n * 1,
        lambda n, s: n**1,
        lambda n, s: 2 * n - n,
        lambda n, s: n + s - s,
        lambda n, s: 0 - (0 - n),
        lambda n, s: (n * s) / s,
        lambda n, s: tu.where(True, n, 0),
    ],
    ids=["sum", "product", "power", "difference", "cancelled", "negated", "quotient", "where"],
)
def test_a_formula_that_collapses_is_still_a_value(n, s, make):
    assert np.array_equal(make(n, s).estimate, n.estimate)


def test_views_of_one_array_meet_entry_by_entry():
    n = tu.noisy([5.0, 7.0, 9.0], tu.Laplace(1))
    outer = (n[:, None] - n[None, :]).estimate
    assert np.array_equal(outer, np.subtract.outer([5, 7, 9], [5, 7, 9]))
    product = (n[:, None] * n[None, :]).estimate
    assert np.array_equal(np.diag(product), np.array([25, 49, 81]) - 2)
    assert product[0, 1] == 35


def test_identity_survives_pickling_and_names_do_not_make_it():
    n = tu.noisy(5.0, tu.Laplace(1), name="n")
    assert (n - pickle.loads(pickle.dumps(n))).estimate == 0.0  # noqa: S301  (our own bytes)
    assert (n - tu.noisy(9.0, tu.Laplace(1), name="n")).estimate == -4.0


def test_numpy_sums_and_known_conditions(n):
    assert np.sum(n).estimate == n.sum().estimate
    chosen = tu.where(np.array([True, False, True]), n, 0)
    assert np.array_equal(chosen.estimate, [103, 0, 7])
    with pytest.raises(tu.TrueupError, match="axis"):
        n.sum(axis=0)


@pytest.mark.parametrize(
    "mixed",
    [
        lambda n: n + True,
        lambda n: np.True_ * n,
        lambda n: n > True,
        lambda n: n + np.array([True]),
        lambda n: n ** (n > 5),
        lambda n: np.sqrt(n > 5),
        lambda n: tu.where(n > 5, True, 0),
        lambda n: (n > 5) & 1,
        lambda n: np.logical_and(n, n > 5),
        lambda n: tu.where(n, 1, 0),
    ],
)
def test_conditions_are_no_numbers_and_numbers_no_conditions(n, mixed):
    with pytest.raises(tu.TrueupError, match=r"is not a (number|condition)"):
        mixed(n)


def test_messages_have_the_names_of_the_user():
    s = tu.noisy(51.7, tu.Laplace(2), name="s")
    with pytest.raises(tu.NoUnbiasedEstimator, match=r"abs\(s\)") as refusal:
        _ = abs(s).estimate
    assert "#" not in str(refusal.value)
    assert "#" not in repr(abs(s))
    assert (s * tu.noisy(3.0, tu.Laplace(1), name="s")).estimator.statistics == ("s", "s_2")


def test_a_division_by_zero_is_told_as_such():
    s = tu.noisy(51.7, tu.Laplace(2), name="s")
    for make in (lambda: s / 0, lambda: s * np.reciprocal(s - s), lambda: np.log(s - s)):
        with pytest.raises(tu.TrueupError, match="division by 0"):
            make()


def test_a_function_of_plain_numbers_is_pointed_to_numpy():
    n = tu.noisy(103, tu.DiscreteLaplace(2), domain=(1, None), name="n")
    with pytest.raises(tu.TrueupError, match=r"np\.sqrt\(n\)"):
        math.sqrt(n)
    assert np.sqrt(n).estimate == tu.unbiased("sqrt(n)", tu.DiscreteLaplace(2), (1, None))(103)


def test_numbers_before_an_operator():
    """5 − x, 5/x and 0.5**x under Laplace noise: g = f − b²·f″, V̂ = g² − (f² − b²·(f²)″)."""
    x, log2 = 9.0, math.log(2)
    n = tu.noisy(x, tu.Laplace(1), domain=(1, None), name="n")
    free = tu.noisy(x, tu.Laplace(0.5), name="x")
    inverse = 5 / x - 10 / x**3
    power, damped = 2**-x, 2**-x * (1 - log2**2)
    for value, estimate, squared in (
        (5 - free, 5 - x, (5 - x) ** 2 - 0.5),
        (5 / n, inverse, 25 / x**2 - 150 / x**4),
        (0.5**n, damped, power**2 * (1 - 4 * log2**2)),
    ):
        assert value.estimate == pytest.approx(estimate, rel=1e-13)
        variance = estimate**2 - squared
        assert value.variance == pytest.approx(variance, rel=1e-11)
        assert value.stderr == pytest.approx(math.sqrt(variance), rel=1e-11)
    assert (5 + free).estimate == 5 + x
    assert (5 * free).stderr == pytest.approx(5 * math.sqrt(0.5), rel=1e-13)
