"""What is known of several statistics together, against sums and formulas of their own."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import trueup as tu
from estimator import drawn
from trueup.inputs import read_known

HALF = 1 / math.log(2)
"""The scale at which α = ½, so that estimators of fractions are fractions."""


def law(scale: float, reach: int) -> np.ndarray:
    """Return the masses of discrete Laplace noise from −reach to reach."""
    k = np.arange(-reach, reach + 1)
    alpha = math.exp(-1 / scale)
    return (1 - alpha) / (1 + alpha) * alpha ** np.abs(k)


def moments(est, truth, scales, reach=60):
    """Return E g and its variance, summed over the noises of two statistics."""
    (a, q), (b, r) = truth.items()
    x, y = (np.arange(-reach, reach + 1) + v for v in (q, r))
    g = est(**{a: x[:, None].astype(float), b: y[None, :].astype(float)})
    p = law(scales[0], reach)[:, None] * law(scales[1], reach)[None, :]
    mean = (p * g).sum()
    return mean, (p * (g - mean) ** 2).sum()


@pytest.fixture(scope="module")
def share():
    """Return the share of b, by convention ½ in an empty cell."""
    noise = {"a": tu.DiscreteLaplace(HALF), "b": tu.DiscreteLaplace(HALF)}
    whole = {"a": (0, None), "b": (0, None)}
    return tu.unbiased("where(a + b > 0, b/(a + b), 1/2)", noise, whole)


class TestFormulasOnTheIntegers:
    @pytest.mark.parametrize(
        ("a", "b", "value"),
        [
            (0, 0, 1 / 2),
            (-3, 1, 17 / 6),
            (0, 2, 7 / 6),
            (0, 3, 71 / 60),
            (1, 2, 9 / 10),
            (1, 3, 3 / 4),
            (2, 3, 41 / 70),
            (2, 5, 289 / 420),
        ],
    )
    def test_a_case_of_several_statistics_has_the_known_values(self, share, a, b, value):
        assert share(a=a, b=b) == pytest.approx(value, rel=1e-12)

    @pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 1), (1, 1), (3, 0), (7, 4)])
    def test_it_is_unbiased_in_empty_cells_too(self, share, a, b):
        mean, variance = moments(share, {"a": a, "b": b}, (HALF, HALF))
        assert mean == pytest.approx(b / (a + b) if a + b else 0.5, abs=1e-12)
        assert share.sd(a=a, b=b) == pytest.approx(math.sqrt(variance), rel=1e-9)

    def test_a_pole_is_found_though_another_statistic_has_no_bounds(self):
        noise = {"s": tu.DiscreteLaplace(1), "n": tu.DiscreteLaplace(1)}
        with pytest.raises(tu.NoUnbiasedEstimator, match="n = 0"):
            tu.unbiased("(s + 1)/n", noise, {"n": (0, None)})

    @pytest.mark.parametrize("f", ["1/(a + 3*b - 1000)", "log(a - b)", "1/((a - 70)*b - 4)"])
    def test_what_is_undefined_at_whole_numbers_is_refused(self, f):
        noise = {"a": tu.DiscreteLaplace(1), "b": tu.DiscreteLaplace(1)}
        with pytest.raises(tu.NoUnbiasedEstimator, match="not a finite number") as caught:
            tu.unbiased(f, noise, {"a": (0, None), "b": (0, None)})
        assert caught.value.proved


def binary(scale, at_least=1, **options):
    """Return the share of ones among zeros and ones, two counts that are not negative."""
    noise = {"a": tu.DiscreteLaplace(scale), "b": tu.DiscreteLaplace(scale)}
    return tu.unbiased("b/(a + b)", noise, f"a >= 0, b >= 0, a + b >= {at_least}", **options)


FIGURES = {
    1: {
        (0, 0): "1/2",
        (0, 1): "17/6",
        (0, 2): "7/6",
        (0, 3): "71/60",
        (1, 2): "9/10",
        (1, 3): "3/4",
        (2, 3): "41/70",
        (2, 5): "289/420",
    },
    2: {(0, 1): "9/5", (0, 2): "101/60", (1, 2): "23/60"},
    5: {
        (0, 1): "1",
        (0, 2): "239/210",
        (1, 2): "67/105",
        (2, 3): "163/280",
        (0, 5): "73/60",
    },
}
"""g at published points, α = ½: share of ones if there are at least so many records."""


def bounded_inverse(high):
    """Return T on {0..high}, α = ½, as a matrix: λ = 2 and κ = 1."""
    t = 5 * np.eye(high + 1) - 2 * (np.eye(high + 1, k=1) + np.eye(high + 1, k=-1))
    t[[0, -1]] = 0
    t[[0, 0, -1, -1], [0, 1, -1, -2]] = 2, -1, 2, -1
    return t


def clamped_masses(high, q):
    """Return the law of a published value clamped to {0..high}, α = ½."""
    p = 0.5 ** np.abs(np.arange(high + 1) - q) / 3
    p[[0, -1]] *= 2
    return p


class TestHoles:
    def test_far_from_a_corner_of_a_finite_box_nothing_varies_less(self):
        """All unbiased estimators are T[f̃] with any values of f̃ in the holes: least squares."""
        f, ends, known, holes = "1/(a + b)", (3, 10), "a + b >= 5", 14
        noise = {name: tu.DiscreteLaplace(HALF) for name in "ab"}
        est = tu.unbiased(f, noise, f"0 <= a <= {ends[0]}, 0 <= b <= {ends[1]}, {known}")
        a, b = np.meshgrid(*(np.arange(end + 1.0) for end in ends), indexing="ij")
        cut = ~drawn.truth(known, a=a, b=b)
        assert cut.sum() == holes
        table = np.where(cut, 0.0, drawn.truth(f, a=a, b=b))
        left, right = (bounded_inverse(end) for end in ends)
        units = [np.outer(left[:, i], right[:, j]).ravel() for i, j in np.argwhere(cut)]
        for q in [(3, 10), (3, 5)]:
            law = np.outer(*(clamped_masses(end, v) for end, v in zip(ends, q, strict=True)))
            root = np.sqrt(law).ravel()
            error = (left @ table @ right.T).ravel() - drawn.truth(f, a=q[0], b=q[1])
            basis = np.array(units).T * root[:, None]
            error = error * root - basis @ np.linalg.lstsq(basis, error * root, rcond=None)[0]
            assert est.sd(a=q[0], b=q[1]) == pytest.approx(np.linalg.norm(error), rel=1e-9)

    def test_shares_of_three_categories(self):
        noise = {name: tu.DiscreteLaplace(HALF) for name in "abc"}
        known = "a >= 0, b >= 0, c >= 0, a + b + c >= 1"
        shares = [tu.unbiased(f"{name}/(a + b + c)", noise, known) for name in "abc"]
        for y, values in {(0, 1, 2): "-1/4 -1/20 13/10", (1, 0, 0): "16/3 -13/6 -13/6"}.items():
            found = [est(**dict(zip("abc", y, strict=True))) for est in shares]
            assert found == pytest.approx([float(Fraction(v)) for v in values.split()], rel=1e-12)

    @pytest.mark.parametrize("at_least", FIGURES)
    def test_the_estimator_has_the_values_of_the_far_rule(self, at_least):
        est = binary(HALF, at_least)
        for (a, b), value in FIGURES[at_least].items():
            assert est(a=a, b=b) == pytest.approx(float(Fraction(value)), rel=1e-13)
            assert est(a=a - 3 * (a == 0), b=b) == est(a=a, b=b)

    @pytest.mark.parametrize(
        ("scale", "at_least", "sds"),
        [
            (
                1,
                1,
                {(0, 1): 0.7309, (1, 1): 0.7187, (1, 2): 0.4949, (2, 3): 0.2748, (5, 5): 0.1099},
            ),
            (4, 1, {(0, 1): 7.456, (0, 5): 4.717, (10, 10): 0.9165}),
            (1, 5, {(0, 5): 0.1760, (3, 2): 0.2130, (0, 10): 0.0935, (15, 5): 0.0551}),
            (0.5, 5, {(0, 5): 0.0747, (3, 2): 0.0899}),
        ],
    )
    def test_the_standard_deviations_are_those_of_the_note(self, scale, at_least, sds):
        est = binary(scale, at_least)
        for (a, b), sd in sds.items():
            reach = math.ceil(45 * scale)
            mean, variance = moments(est, {"a": a, "b": b}, (scale, scale), reach)
            assert mean == pytest.approx(b / (a + b), abs=1e-12)
            assert math.sqrt(variance) == pytest.approx(sd, abs=0.6 * 10.0 ** -(4 - (sd > 1)))
            assert est.sd(a=a, b=b) == pytest.approx(math.sqrt(variance), rel=1e-9)

    def test_the_variance_is_unbiased(self):
        est = binary(1)
        for y, value in {(0, 0): 0.4603, (0, 1): 0.8888, (1, 1): 1.0295}.items():
            assert est.variance(a=y[0], b=y[1]) == pytest.approx(value, abs=6e-5)
        for a, b in [(0, 1), (1, 1), (2, 5)]:
            mean, _ = moments(lambda a, b: est.variance(a=a, b=b), {"a": a, "b": b}, (1, 1), 45)
            assert mean == pytest.approx(est.sd(a=a, b=b) ** 2, rel=1e-10)

    def test_a_corner_above_is_a_slanted_bound(self):
        noise = {"a": tu.DiscreteLaplace(2), "b": tu.DiscreteLaplace(2)}
        above = tu.unbiased("(9 - b)/(18 - a - b)", noise, "a <= 9, b <= 9, a + b <= 17")
        for a, b in [(9, 8), (8, 8), (5, 7)]:
            mean, variance = moments(above, {"a": a, "b": b}, (2, 2), 80)
            assert mean == pytest.approx((9 - b) / (18 - a - b), abs=1e-11)
            assert above.sd(a=a, b=b) == pytest.approx(math.sqrt(variance), rel=1e-9)

    def test_beside_a_corner_below_one_above_is_left_out(self):
        noise = {"a": tu.DiscreteLaplace(2), "b": tu.DiscreteLaplace(2)}
        box = "0 <= a <= 9, 0 <= b <= 9, a + b >= 1"
        with pytest.warns(tu.BoundWarning, match=r"a \+ b <= 12 is not used .* cuts a corner off"):
            both = tu.unbiased("b/(a + b)", noise, f"{box}, a + b <= 12")
        assert both(a=0, b=1) == tu.unbiased("b/(a + b)", noise, box)(a=0, b=1)

    def test_beside_further_statistics_holes_are_not_filled(self):
        noise = {"s": tu.Laplace(2), "a": tu.DiscreteLaplace(HALF), "b": tu.DiscreteLaplace(HALF)}
        with pytest.raises(
            tu.NoUnbiasedEstimator, match=r"at a = 0, b = 0.* a \+ b >= 1 is not used"
        ):
            tu.unbiased("s*b/(a + b)", noise, "a >= 0, b >= 0, a + b >= 1")
        with pytest.warns(tu.BoundWarning, match=r"a \+ b >= 1 is not used .* further statistics"):
            est = tu.unbiased("s*b/(a + b + 1)", noise, "a >= 0, b >= 0, a + b >= 1")
        box = tu.unbiased("s*b/(a + b + 1)", noise, "a >= 0, b >= 0")
        assert est(s=3.0, a=1, b=2) == box(s=3.0, a=1, b=2)


@pytest.fixture(scope="module")
def part():
    """Return s/n of a part and a whole."""
    noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
    return tu.unbiased("s/n", noise, "0 <= s <= n, n >= 1")


class TestSlanted:
    def test_it_is_unbiased_on_the_whole_triangle(self, part):
        reach = 70
        s, n = np.arange(-reach, 60 + reach), np.arange(-reach, 60 + reach)
        g = part(s=s[:, None].astype(float), n=n[None, :].astype(float))
        mass = law(2, 3 * reach)
        rows = np.array([mass[3 * reach + s - q] for q in range(61)])
        means = rows @ g @ rows.T
        for q in range(1, 61):
            assert np.abs(means[: q + 1, q] - np.arange(q + 1) / q).max() < 1e-9

    def test_the_standard_deviations_are_small_on_both_sides(self, part):
        for (s, n), sd in {
            (0, 10): 0.415,
            (5, 10): 0.425,
            (10, 10): 0.413,
            (40, 40): 0.097,
        }.items():
            _, variance = moments(part, {"s": s, "n": n}, (2, 2), 80)
            assert math.sqrt(variance) <= sd * 1.005
            assert part.sd(s=s, n=n) == pytest.approx(math.sqrt(variance), rel=1e-9)

    def test_an_upper_bound_of_the_whole_does_no_harm(self, part):
        noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
        est = tu.unbiased("s/n", noise, "0 <= s <= n, 1 <= n <= 20")
        for s, n in [(0, 10), (5, 10), (10, 10), (15, 15), (20, 20)]:
            mean, variance = moments(est, {"s": s, "n": n}, (2, 2), 80)
            assert mean == pytest.approx(s / n, abs=1e-11)
            assert (
                math.sqrt(variance) <= 1.005 * moments(part, {"s": s, "n": n}, (2, 2), 80)[1] ** 0.5
            )

    def test_a_whole_of_two_values_is_possible(self):
        noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
        est = tu.unbiased("s/n", noise, "0 <= s <= n, 19 <= n <= 20")
        for s, n in [(0, 19), (19, 19), (20, 20)]:
            mean, _ = moments(est, {"s": s, "n": n}, (2, 2), 80)
            assert mean == pytest.approx(s / n, abs=1e-11)

    def test_the_variance_is_unbiased(self, part):
        mean, _ = moments(lambda s, n: part.variance(s=s, n=n), {"s": 9, "n": 10}, (2, 2), 80)
        assert mean == pytest.approx(part.sd(s=9, n=10) ** 2, rel=1e-9)

    def test_compiled_or_not_it_has_the_same_digits(self, part, monkeypatch):
        rng = np.random.default_rng(3)
        n = rng.integers(-5, 90, 200_000).astype(float)
        s = n + rng.integers(-40, 20, 200_000)
        for function in (part, part.variance):
            monkeypatch.setenv("TRUEUP_NUMBA", "0")
            plain = function(s=s, n=n)
            monkeypatch.delenv("TRUEUP_NUMBA")
            np.testing.assert_allclose(function(s=s, n=n), plain, rtol=1e-12)

    @pytest.mark.parametrize(
        ("of_s", "of_n", "n", "part"),
        [
            (12, 12, 300, 1.0),
            (5, 30, 800, 1.0),
            (30, 5, 300, 1.0),
            (10, 60, 1500, 1.0),
            (60, 6, 600, 1.0),
            (2, 200, 4000, 1.0),
        ],
    )
    def test_under_wide_noise_it_never_costs(self, of_s, of_n, n, part):
        """At s = n the sd is at most that part of the sd without the condition."""
        noise = {"s": tu.DiscreteLaplace(of_s), "n": tu.DiscreteLaplace(of_n)}
        slanted = tu.unbiased("s/n", noise, "0 <= s <= n, n >= 1")
        box = tu.unbiased("s/n", noise, "s >= 0, n >= 1")
        z = [np.arange(-18 * b, 18 * b + 1.0) for b in (of_s, of_n)]
        p, q = law(of_s, 18 * of_s), law(of_n, 18 * of_n)
        for s, most in ((n // 2, 1.0), (n, part)):
            errors = [e(s=s + z[0][:, None], n=n + z[1][None, :]) - s / n for e in (slanted, box)]
            assert p @ errors[0] @ q == pytest.approx(0, abs=1e-6)
            known, plain = (p @ error**2 @ q for error in errors)
            assert known <= 1.0001 * most**2 * plain

    @pytest.mark.parametrize(("of_s", "of_n"), [(1, 5e-4), (5e-4, 1)])
    def test_one_noise_may_be_next_to_nothing(self, of_s, of_n):
        noise = {"s": tu.DiscreteLaplace(of_s), "n": tu.DiscreteLaplace(of_n)}
        est = tu.unbiased("s/n", noise, "0 <= s <= n, n >= 1")
        for s, n in [(0, 1), (1, 1), (3, 4), (20, 20)]:
            mean, variance = moments(est, {"s": s, "n": n}, (of_s, of_n))
            assert mean == pytest.approx(s / n, abs=1e-12)
            assert est.sd(s=s, n=n) == pytest.approx(math.sqrt(variance), rel=1e-9)

    def test_values_up_to_a_multiple(self):
        noise = {"s": tu.DiscreteLaplace(10), "n": tu.DiscreteLaplace(2)}
        est = tu.unbiased("s/n", noise, "0 <= s <= 5*n, n >= 1")
        for s, most in {0: 0.49, 25: 0.47, 50: 0.43}.items():
            mean, variance = moments(est, {"s": s, "n": 10}, (10, 2), 400)
            assert mean == pytest.approx(s / 10, abs=1e-11)
            assert math.sqrt(variance) / 5 <= most

    @pytest.mark.parametrize(
        ("f", "domain", "truth"),
        [
            ("s/n*(1 - s/n)", "0 <= s <= n, n >= 1", (3, 4)),
            ("sqrt(n - s)", "0 <= s <= n", (4, 6)),
            ("log(1 + s - n)", "s >= n, n >= 1", (6, 3)),
            ("s/n", "2*n <= s <= 6*n, n >= 1", (8, 3)),
        ],
    )
    def test_other_functions_are_unbiased_too(self, f, domain, truth):
        noise = {"s": tu.DiscreteLaplace(1), "n": tu.DiscreteLaplace(1.5)}
        s, n = truth
        est = tu.unbiased(f, noise, domain)
        mean, variance = moments(est, {"s": s, "n": n}, (1, 1.5), 70)
        values = {"s": s, "n": n, "sqrt": math.sqrt, "log": math.log}
        assert mean == pytest.approx(eval(f, {}, values), abs=1e-10)  # noqa: S307
        assert est.sd(s=s, n=n) == pytest.approx(math.sqrt(variance), rel=1e-8)

    @pytest.mark.parametrize("f", ["s + n", "s*n"])
    def test_a_polynomial_is_not_bent(self, f):
        noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
        with pytest.warns(tu.BoundWarning, match="of a polynomial"):
            est = tu.unbiased(f, noise, "0 <= s <= n")
        box = tu.unbiased(f, noise, "s >= 0, n >= 0")
        assert est.sd(s=1, n=1) == pytest.approx(box.sd(s=1, n=1), rel=1e-12)

    @pytest.mark.parametrize(
        ("s", "domain"),
        [
            (tu.Laplace(80), "0 <= s <= 200*n"),
            (tu.Laplace(2), "0 <= s <= n"),
            (tu.DiscreteLaplace(2), "0 <= s <= 3*n"),
        ],
        ids=str,
    )
    def test_what_does_not_help_beside_empty_cells_is_told(self, s, domain):
        noise = {"s": s, "n": tu.DiscreteLaplace(2)}
        with pytest.warns(tu.BoundWarning, match="with empty= only"):
            est = tu.unbiased("s/n", noise, domain, empty=0)
        box = tu.unbiased("s/n", noise, "s >= 0, n >= 0", empty=0)
        for truth in ({"s": 0, "n": 0}, {"s": 1, "n": 1}):
            f = truth["s"] / truth["n"] if truth["n"] else 0
            assert est.expectation(**truth) == pytest.approx(f, abs=1e-9)
            assert est.sd(**truth) == pytest.approx(box.sd(**truth), rel=1e-9)

    def test_a_large_corner_is_no_worse_than_a_smaller_one(self):
        noise = {"a": tu.DiscreteLaplace(3), "b": tu.DiscreteLaplace(3)}
        large, small = (
            tu.unbiased("b/(a + b)", noise, f"a >= 0, b >= 0, a + b >= {least}")
            for least in (40, 20)
        )
        for truth in ({"a": 0, "b": 40}, {"a": 20, "b": 20}, {"a": 10, "b": 30}):
            # the far rule is best for truths without end: at others by a few parts in 10⁵ it is not
            assert large.sd(**truth) <= 1.001 * small.sd(**truth)
            assert large.expectation(**truth) == pytest.approx(truth["b"] / 40, abs=1e-12)


def corner(y0, y1, b=1.0, at_least=1.0):
    """Return the mean of two totals under Laplace noise, as the note has it."""
    middle = 1 / at_least + 2 * b / at_least**2 + 2 * b**2 / at_least**3
    slope = -1 / at_least**2 - 4 * b / at_least**3 - 6 * b**2 / at_least**4
    if y0 > 0 and y1 > 0:
        v, u = y1 - y0, y0 + y1
        if u >= at_least:
            return 1 / 2 + v / 2 * (1 / u - 4 * b**2 / u**3 + 24 * b**4 / u**5)
        return 1 / 2 + v / 2 * (middle + slope * (u - at_least + 2 * b))
    if y0 <= 0 and y1 <= 0:
        return 1 / 2
    if y1 <= 0:
        return 1 - corner(y1, y0, b, at_least)
    if y1 >= at_least:
        return 1 + b / y1 - 2 * b**3 / y1**3
    return 1 / 2 + ((y1 + b) * (middle - at_least * slope) + slope * (y1**2 + 2 * b * y1)) / 2


def quotient(s, n, a=2.0, b=3.0, low=1.0):
    """Return s/n under Laplace noise with 0 ≤ s ≤ n, n ≥ L, as the note has it."""
    if s <= 0:
        return -a * (1 / n - 2 * b**2 / n**3) if n > low else -a * (1 / low + b / low**2)
    if n <= low:
        if s <= low:
            return s / low + b * s / low**2
        outer = -(a + b) / s - a * b / s**2 + (a + 2 * b) / low + a * b / low**2
        return 1 + math.log(s / low) + outer
    if s > n:
        inner = (a + b) / n - 2 * b**2 / n**2 - 2 * a * b**2 / n**3
        return 1 + math.log(s / n) - (a + b) / s - a * b / s**2 + inner
    return s / n - 2 * b**2 * s / n**3


def panels(breaks, truth, scale, reach=40):
    """Return nodes and weights of a Laplace law, no panel across a break; rows are rules."""
    steps = np.concatenate([-np.geomspace(reach, 0.5, 14), [0], np.geomspace(0.5, reach, 14)])
    breaks = np.atleast_2d(breaks)
    fixed = np.broadcast_to(truth + scale * steps, (len(breaks), len(steps)))
    inside = np.clip(breaks, fixed[:, :1], fixed[:, -1:])
    edges = np.sort(np.concatenate([fixed, inside], axis=1), axis=1)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half, middle = np.diff(edges)[..., None] / 2, (edges[:, 1:] + edges[:, :-1])[..., None] / 2
    x = (middle + half * nodes).reshape(len(breaks), -1)
    w = (half * weights).reshape(len(breaks), -1)
    return x, w * np.exp(-np.abs(x - truth) / scale) / (2 * scale)


def mean_over_the_plane(g, truth, scales, bounds, slope, low):
    """Return E g of two Laplace statistics that break at their bounds and where s + slope·n = low.

    Bounds are (low, high) of s and of n, infinite ones included.
    """
    (s0, s1), (n0, n1) = bounds
    ends = [e for e in (n0, n1) if math.isfinite(e)]
    crossing = [(low - e) / slope for e in (s0, s1, truth[0]) if math.isfinite(e)]
    n, v = (a[0] for a in panels([*ends, *crossing], truth[1], scales[1]))
    line = low - slope * np.clip(n, n0, n1)
    own = [np.full_like(n, e) for e in (s0, s1) if math.isfinite(e)]
    s, w = panels(np.stack([line, *own], axis=1), truth[0], scales[0])
    values = g(s=s.ravel(), n=np.repeat(n, s.shape[1])).reshape(s.shape)
    return float(v @ (w * values).sum(axis=1))


INF = math.inf
REAL, QUADRANT = (-INF, INF), ((0, INF), (0, INF))


class TestContinuous:
    @pytest.mark.parametrize(
        ("f", "exact", "scales", "bounds", "slope", "low", "truths"),
        [
            ("s/n", lambda s, n: s / n, (1, 1), (REAL, (1, INF)), 1, 2, [(3, 2), (-2, 4)]),
            ("s/(n + 1)", lambda s, n: s / (n + 1), (1, 1), QUADRANT, 1, 1, [(0.2, 0.9)]),
            ("s*n/(n + 1)", lambda s, n: s * n / (n + 1), (1, 1), QUADRANT, 1, 1, [(0.2, 0.9)]),
            ("s/max(n, 1)", lambda s, n: s / n, (1, 1), (REAL, (1, INF)), 1, 2, [(0.5, 1.6)]),
            ("where(n > 0, s/n, 0)", lambda s, n: s / n, (1, 1), (REAL, (1, INF)), 1, 2, [(1, 1)]),
            (
                "(2*s + 3*n)/(s + 4*n)",
                lambda s, n: (2 * s + 3 * n) / (s + 4 * n),
                *((1, 1), QUADRANT, 2, 3, [(3, 0), (0.5, 1.5)]),
            ),
            ("s**2/n", lambda s, n: s**2 / n, (1, 0.5), (REAL, (1, INF)), 1, 2, [(-1, 3.5)]),
            (
                "(s - n)/(s + n)",
                lambda s, n: (s - n) / (s + n),
                *((1, 0.5), ((0, 3), (0, INF)), 2, 3, [(1, 1), (3, 0.5)]),
            ),
            ("1/(s + n)", lambda s, n: 1 / (s + n), (1, 0.5), ((1, 6), (0, 3)), 2, 3, [(3, 0.5)]),
        ],
    )
    def test_beyond_any_bound_it_is_a_number_and_unbiased(
        self, f, exact, scales, bounds, slope, low, truths
    ):
        """E g and E V̂ by a quadrature laid by hand, V̂ against E g² − f²."""
        noise = {"s": tu.Laplace(scales[0]), "n": tu.Laplace(scales[1])}
        est = tu.unbiased(
            f, noise, dict(zip("sn", bounds, strict=True)) | {f"s + {slope}*n": (low, None)}
        )
        for truth in truths:
            around, value = (truth, scales, bounds, slope, low), exact(*truth)
            assert mean_over_the_plane(est, *around) == pytest.approx(value, abs=1e-9)
            square = mean_over_the_plane(lambda **x: est(**x) ** 2, *around)
            spread = mean_over_the_plane(est.variance, *around)
            assert spread == pytest.approx(square - value**2, rel=1e-9)

    @pytest.mark.parametrize("f", ["log(s)*n", "sqrt(s)*n"])
    def test_a_fraction_in_a_bound_is_no_obstacle(self, f):
        """E g by sums over s and panels along n that break at s + 2·n = 3."""
        noise = {"s": tu.DiscreteLaplace(2), "n": tu.Laplace(0.5)}
        est = tu.unbiased(f, noise, {"s": (1, None), "s + 2*n": (3, None)})
        s = 2.0 + np.arange(-80, 81)
        n, w = panels((3 - np.maximum(s[:, None], 1) + [-1, 0, 1]) / 2, 1.5, 0.5)
        values = est(s=np.repeat(s, n.shape[1]), n=n.ravel()).reshape(n.shape)
        truth = {"log(s)*n": math.log(2), "sqrt(s)*n": math.sqrt(2)}[f] * 1.5
        assert law(2, 80) @ (w * values).sum(axis=1) == pytest.approx(truth, abs=1e-9)

    @pytest.mark.parametrize(
        ("f", "low", "truth"),
        [
            ("s*exp(-n)", 0, lambda s, n: s * math.exp(-n)),
            ("s*n/(n + 1)", 0, lambda s, n: s * n / (n + 1)),
            ("(s - n)/(s + n)", 1, lambda s, n: (s - n) / (s + n)),
        ],
    )
    def test_where_the_bend_would_be_a_kink_the_box_alone_is_used(self, f, low, truth):
        noise = {"s": tu.DiscreteLaplace(1), "n": tu.Laplace(1)}
        box = {"s": (low, None), "n": (0, None)}
        with pytest.warns(tu.BoundWarning, match="n <= s is not used by the estimate: n may be"):
            est = tu.unbiased(f, noise, {**box, "s - n": (0, None)})
        plain = tu.unbiased(f, noise, box)
        s = 3.0 + np.arange(-45, 46)
        n, w = panels(np.zeros((len(s), 1)), 2.5, 1)
        values = est(s=np.repeat(s, n.shape[1]), n=n.ravel())
        np.testing.assert_array_equal(values, plain(s=np.repeat(s, n.shape[1]), n=n.ravel()))
        mean = law(1, 45) @ (w * values.reshape(n.shape)).sum(axis=1)
        assert mean == pytest.approx(truth(3, 2.5), abs=1e-9)

    def test_a_bound_given_by_a_count_is_bent_all_the_same(self):
        noise = {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}
        est = tu.unbiased("s/(n + 1)", noise, "0 <= s <= n")
        box = tu.unbiased("s/(n + 1)", noise, "s >= 0, n >= 0")
        assert est.sd(s=9, n=9) < 0.8 * box.sd(s=9, n=9)
        assert est.bias(s=9, n=9) == pytest.approx(0, abs=1e-9)

    @pytest.mark.parametrize("below", ["n**5 + n + 3", "n**7 + n + 3"])
    def test_an_integral_without_a_short_formula_leaves_the_box_alone(self, below):
        noise = {"s": tu.Laplace(1), "n": tu.Laplace(1)}
        with pytest.warns(tu.BoundWarning, match="no short integral"):
            est = tu.unbiased(f"s/({below})", noise, "s >= 0, n >= 0, s + n >= 1")
        box = tu.unbiased(f"s/({below})", noise, "s >= 0, n >= 0")
        grid = np.linspace(-1, 3, 9)
        s, n = (m.ravel() for m in np.meshgrid(grid, grid))
        np.testing.assert_array_equal(est(s=s, n=n), box(s=s, n=n))

    def test_a_refusal_of_the_box_alone_is_no_proof(self):
        noise = {"s": tu.DiscreteLaplace(1), "n": tu.Laplace(1)}
        domain = {"s": (0, None), "n": (0, None), "s - n": (0, None)}
        with pytest.raises(tu.NoUnbiasedEstimator, match="was found") as refused:
            tu.unbiased("n/(s + 1/2 - n)", noise, domain)
        assert not refused.value.proved

    @pytest.mark.parametrize(
        ("f", "noise", "domain"),
        [
            (
                "(s/n)**2",
                {"s": tu.Laplace(1), "n": tu.DiscreteLaplace(1)},
                {"s": (0, None), "n": (0, None), "s + n": (2, None)},
            ),
            (
                "s*n/(n + 1)",
                {"s": tu.Laplace(0.5), "n": tu.DiscreteLaplace(1)},
                {"s": (0, 3), "s + n": (1, None)},
            ),
            (
                "sqrt(s)/n",
                {"s": tu.DiscreteLaplace(1), "n": tu.Laplace(1)},
                {"n": (1, None), "s + n": (2, None)},
            ),
        ],
        ids=["pole", "pole at a bound", "undefined"],
    )
    def test_a_pole_far_along_a_real_statistic_is_found(self, f, noise, domain):
        with pytest.raises(
            tu.NoUnbiasedEstimator, match=r"not a finite number at [ns] = |smooth near n = "
        ):
            tu.unbiased(f, noise, domain)

    def test_a_corner_has_the_closed_form(self):
        noise = {"a": tu.Laplace(1), "b": tu.Laplace(1)}
        est = tu.unbiased("b/(a + b)", noise, "a >= 0, b >= 0, a + b >= 1")
        for a, b in product([-1.0, 0.0, 0.2, 0.25, 0.45, 0.75, 1.5, 4.0], repeat=2):
            assert est(a=a, b=b) == pytest.approx(corner(a, b), rel=1e-12)

    def test_a_slanted_bound_has_the_closed_form(self):
        noise = {"s": tu.Laplace(2), "n": tu.Laplace(3)}
        est = tu.unbiased("s/n", noise, "0 <= s <= n, n >= 1")
        for s, n in product([-1.0, 0.0, 0.4, 1.3, 2.5, 9.0], [-2.0, 0.5, 1.0, 1.7, 2.5, 8.0]):
            assert est(s=s, n=n) == pytest.approx(quotient(s, n), rel=1e-11)

    def test_the_standard_deviations_are_those_of_the_note(self):
        noise = {"a": tu.Laplace(1), "b": tu.Laplace(1)}
        est = tu.unbiased("b/(a + b)", noise, "a >= 0, b >= 0, a + b >= 1")
        for (a, b), sd in {(0, 1): 2.55247, (0.5, 0.5): 2.81823, (0, 4): 0.61556}.items():
            assert est.sd(a=a, b=b) == pytest.approx(sd, abs=6e-6)
            assert est.bias(a=a, b=b) == pytest.approx(0, abs=1e-12)
        noise = {"s": tu.Laplace(2), "n": tu.Laplace(2)}
        est = tu.unbiased("s/n", noise, "0 <= s <= n, n >= 1")
        for q, sd in {2: 5.6548, 10: 1.0311}.items():
            assert est.sd(s=q, n=q) == pytest.approx(sd, abs=6e-5)

    @pytest.mark.parametrize(
        ("first", "second"),
        [(tu.Laplace(2), tu.DiscreteLaplace(2)), (tu.DiscreteLaplace(2), tu.Laplace(2))],
        ids=["s continuous", "n continuous"],
    )
    def test_one_continuous_noise(self, first, second):
        est = tu.unbiased("s/n", {"s": first, "n": second}, "0 <= s <= n, n >= 1")
        box = tu.unbiased("s/n", {"s": first, "n": second}, "s >= 0, n >= 1")
        assert est.bias(s=9, n=10) == pytest.approx(0, abs=1e-12)
        assert est.sd(s=10, n=10) < 0.45 < 3 * 0.45 < box.sd(s=10, n=10)

    def test_the_law_agrees_with_plain_sums(self):
        """E g over rows of an outer sum and panels laid by hand along the continuous statistic."""
        est = tu.unbiased(
            "s/n", {"s": tu.Laplace(1), "n": tu.DiscreteLaplace(1)}, "0 <= s <= n, n >= 1"
        )
        nodes, weights = np.polynomial.legendre.leggauss(12)
        mean = square = 0.0
        for k, mass in zip(range(-45, 46), law(1, 45), strict=True):
            n = 3 + k
            ends = {max(n, 1) + step for step in (-1, 0, 1)} | {0, 2}
            edges = np.unique([*np.arange(-42, 43.0), *np.arange(-8, 12, 0.125), *ends])
            x = ((edges[1:] + edges[:-1]) / 2)[:, None] + np.diff(edges)[:, None] / 2 * nodes
            w = (np.diff(edges)[:, None] / 2 * weights).ravel()
            x = x.ravel()
            density = w * np.exp(-np.abs(x - 2)) / 2
            g = est(s=x, n=np.full(len(x), float(n)))
            mean, square = mean + mass * density @ g, square + mass * density @ g**2
        assert mean == pytest.approx(2 / 3, abs=1e-10)
        assert est.sd(s=2, n=3) == pytest.approx(math.sqrt(square - mean**2), rel=1e-8)


class TestAsItStands:
    """One step within s ≤ n is outside 1 ≤ s: no bend beyond it follows from log(s) − log(n)."""

    @pytest.mark.parametrize("f", ["log(s)-log(n)", "log(s/n)"])
    def test_a_formula_that_cannot_be_bent_goes_on_beyond_the_bound(self, f):
        noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
        est = tu.unbiased(f, noise, "1 <= s <= n")
        assert "goes on beyond it as it stands" in est.explain()
        for s, n in [(1, 1), (1, 4), (4, 4), (9, 12)]:
            mean, variance = moments(est, {"s": s, "n": n}, (2, 2), 80)
            assert mean == pytest.approx(math.log(s / n), abs=1e-10)
            assert est.sd(s=s, n=n) == pytest.approx(math.sqrt(variance), rel=1e-8)


class TestReading:
    NOISE = {"a": tu.DiscreteLaplace(1), "b": tu.DiscreteLaplace(1)}  # noqa: RUF012

    def test_text_and_keys_say_the_same(self):
        text = tu.unbiased("b/(a + b)", self.NOISE, "a >= 0 and b >= 0, a + b >= 1")
        keys = {"a": (0, None), "b": (0, None), "a + b": (1, None)}
        both = tu.unbiased("b/(a + b)", self.NOISE, keys)
        assert text(a=0, b=1) == both(a=0, b=1)
        assert text.conditions == both.conditions == ("a + b >= 1",)
        assert "a + b >= 1" in repr(text)
        assert "known:      a + b >= 1" in text.explain()

    def test_json_and_pickle_keep_conditions(self):
        est = tu.unbiased("b/(a + b)", self.NOISE, "0 <= a, 0 <= b, a + b >= 2")
        for copy in (type(est).from_json(est.to_json()), pickle.loads(pickle.dumps(est))):  # noqa: S301
            assert copy(a=1, b=0) == est(a=1, b=0)
            assert copy.conditions == est.conditions

    def test_bounds_that_follow_are_known(self):
        est = tu.unbiased("b/a", self.NOISE, "2 <= b <= a")
        assert est.domain["a"] == tu.Integers(2, None)
        plain = tu.unbiased("b/a", self.NOISE, "1 <= a, b >= 0, a + b >= 1")
        assert plain.conditions == ()

    @pytest.mark.parametrize(
        "domain",
        [
            "a < b",
            "a*b >= 1",
            "a = b",
            "a >= b >= ",
            "__import__('os')",
            "a >= c",
            "a >= 5, a <= 4",
        ],
    )
    def test_what_is_no_condition_is_refused(self, domain):
        with pytest.raises(tu.TrueupError) as caught:
            tu.unbiased("b/(1 + a)", self.NOISE, domain)
        assert caught.value.hint

    @pytest.mark.parametrize(
        "domain",
        [
            "b >= 1, 0 <= a <= b, a >= b + 1",
            "b >= 1, 0 <= a <= b, a >= 2*b",
            "a >= b + 1, b >= a",
            "2*a - 2*b <= 1, 2*a - 2*b >= 1",
            "0 <= a <= 9, 0 <= b <= 9, 3*a + 5*b >= 7, 3*a + 5*b <= 7",
        ],
    )
    def test_conditions_that_contradict_each_other_are_refused(self, domain):
        with pytest.raises(tu.TrueupError, match=r"no true value|leave no value"):
            tu.unbiased("a*b", self.NOISE, domain)

    def test_the_bounds_that_follow_are_those_of_all_points(self):
        """Against all whole points of a square, for conditions drawn at random."""
        rng = np.random.default_rng(1)
        a, b = np.meshgrid(np.arange(-30, 31), np.arange(-30, 31))
        possible = 0
        for rows in rng.integers(-5, 6, (60, 3, 3)).tolist():
            terms = [(u or 1, v or 1, w) for u, v, w in rows]
            given = [f"{u}*a + {v}*b >= {w}" for u, v, w in terms]
            domain = ", ".join(["-30 <= a <= 30", "-30 <= b <= 30", *given])
            fits = np.all([u * a + v * b >= w for u, v, w in terms], axis=0)
            if not fits.any():
                with pytest.raises(tu.TrueupError):
                    read_known(domain, self.NOISE)
                continue
            possible += 1
            box, tied = read_known(domain, self.NOISE)
            inside = np.all([a >= box["a"].low, a <= box["a"].high], axis=0)
            inside &= (b >= box["b"].low) & (b <= box["b"].high)
            assert (fits <= inside).all()
            for condition in tied:
                terms = {name: int(c) for name, c in condition.terms}
                inside &= terms["a"] * a + terms["b"] * b >= int(condition.low)
            assert (fits == inside).all()
        assert 10 < possible < 60

    def test_real_bounds_are_exact(self):
        noise = {"a": tu.Laplace(1), "b": tu.Laplace(1)}
        box, _ = read_known("0 <= a <= b/3 + 1, 0 <= b, 10*b <= 1", noise)
        assert box == {
            "a": tu.Interval(0, Fraction(31, 30)),
            "b": tu.Interval(0, Fraction(1, 10)),
        }

    @pytest.mark.parametrize(
        ("domain", "low"),
        [
            ({"a": (1, None), "2*a": (10, None)}, 5),
            ({"2*a": (10, None), "a": (1, None)}, 5),
            ({"a": (0, None), "b": (0, None), "2*a": (1, None)}, 1),
            ({"a": (1, None), "b": (0, None), "a + b": (None, None)}, 1),
        ],
    )
    def test_a_key_of_one_statistic_goes_with_its_bounds(self, domain, low):
        assert tu.unbiased("b/a", self.NOISE, domain).domain["a"] == tu.Integers(low, None)

    @pytest.mark.parametrize(
        ("condition", "highs", "shown"),
        [
            ("2*a + 3*b <= 7", (3, 2), "2*a + 3*b <= 7"),
            ("a + b <= 4.5", (4, 4), "a + b <= 4"),
            ("2*a + 2*b <= 9", (4, 4), "a + b <= 4"),
            ("0.1*a + 0.2*b <= 0.3", (3, 1), "a + 2*b <= 3"),
            ("0.1*a + 0.2*a + 0.3*b <= 0.9", (3, 3), "a + b <= 3"),
        ],
    )
    def test_bounds_of_integers_are_rounded_inwards(self, condition, highs, shown):
        box, tied = read_known(f"a >= 0, b >= 0, a + b >= 1, {condition}", self.NOISE)
        assert tuple(box[name].high for name in "ab") == highs
        assert [*map(str, tied)] == ["a + b >= 1", shown]

    def test_decimals_are_read_as_written(self):
        for domain in (
            "0 <= a <= 0.1*b, b >= 1",
            {"a": (0, 99), "b": (1, 999), "a - 0.1*b": (None, 0)},
        ):
            _, tied = read_known(domain, self.NOISE)
            assert [*map(str, tied)] == ["10*a <= b"]
        est = tu.unbiased("a/b", self.NOISE, "0 <= a <= 0.1*b, b >= 1")
        assert moments(est, {"a": 1, "b": 10}, (1, 1))[0] == pytest.approx(0.1, abs=1e-10)

    @pytest.mark.parametrize(
        ("strict", "closed"),
        [
            ("0 <= a < b", "0 <= a <= b - 1"),
            ("a > -1, b >= 0, 2*a + 2*b > 1", "a >= 0, b >= 0, a + b >= 1"),
            ("a >= 0, 0 < b < 9", "a >= 0, 1 <= b <= 8"),
        ],
    )
    def test_strict_conditions_are_read_on_the_integers(self, strict, closed):
        one, two = (read_known(domain, self.NOISE) for domain in (strict, closed))
        assert one == two
        assert tu.unbiased("a/b", self.NOISE, "0 <= a < b").conditions == ("a <= b - 1",)
        assert tu.unbiased("1/q", tu.DiscreteLaplace(2), "q > 0").domain["q"].low == 1

    @pytest.mark.parametrize("domain", ["0 <= a < b, b >= 1", "a > 0, b >= 1", "b > a, b >= 1"])
    def test_strict_conditions_of_real_numbers_are_refused(self, domain):
        noise = {"a": tu.Laplace(1), "b": tu.DiscreteLaplace(1)}
        with pytest.raises(tu.TrueupError, match=r"means the same as .*noise of a is") as caught:
            tu.unbiased("a/b", noise, domain)
        assert "<=" in caught.value.hint or ">=" in caught.value.hint

    def test_two_slanted_bounds_of_three_statistics_reach_all_regions(self):
        """Every sign of three noises at once, as an exact sum over 41³ published values."""
        noise = {name: tu.DiscreteLaplace(1) for name in "abn"}
        est = tu.unbiased("a*b/n**2", noise, "0 <= a <= n, 0 <= b <= n, n >= 1")
        z = np.arange(-20, 21)
        p = math.tanh(0.5) * np.exp(-np.abs(z))
        mesh = np.meshgrid(1 + z, 2 + z, 2 + z, indexing="ij")
        found = est(**{name: m.ravel().astype(float) for name, m in zip("abn", mesh, strict=True)})
        assert np.einsum("i,j,k,ijk->", p, p, p, found.reshape(41, 41, 41)) == pytest.approx(
            0.5,
            abs=1e-5,  # what lies beyond: 6·e⁻²⁰ times values that grow
        )
        assert found[0] == pytest.approx(est(a=-19.0, b=-18.0, n=-18.0), rel=1e-12)

    def test_a_condition_that_cannot_be_used_is_named(self):
        with pytest.warns(tu.BoundWarning, match="does not read a"):
            assert tu.unbiased("b", self.NOISE, "0 <= a <= b").domain["b"].low == 0
        with pytest.warns(tu.BoundWarning, match="a <= b is not used .* not for Gaussian"):
            tu.unbiased("a*exp(b)", {"a": tu.Gaussian(1), "b": tu.Gaussian(1)}, "a <= b")
        with pytest.warns(tu.BoundWarning, match="factor 1 on no side"):
            est = tu.unbiased("a/b", self.NOISE, "a >= 0, b >= 1, 2*a <= 3*b")
        box = tu.unbiased("a/b", self.NOISE, "a >= 0, b >= 1")
        assert est.sd(a=3, b=2) == box.sd(a=3, b=2)


class TestEmpty:
    NOISE = {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}  # noqa: RUF012

    def test_empty_cells_have_the_value_on_average(self):
        est = tu.unbiased("s/n", self.NOISE, "n >= 0", empty=7)
        assert est.expectation(s=3.0, n=0) == pytest.approx(7, abs=1e-12)
        assert est.expectation(s=3.0, n=2) == pytest.approx(1.5, abs=1e-12)
        assert type(est).from_json(est.to_json())(s=1.0, n=0) == est(s=1.0, n=0)

    @pytest.mark.parametrize("f", ["s/n", "where(n > 0, s/n, 7)"])
    def test_a_sum_under_any_noise_is_a_factor(self, f):
        """E s·h(n) = s·E h(n): the variance of s + Z, σ = 3, and exact sums of h and h²."""
        empty = 7 if f == "s/n" else None
        noise = {"s": tu.Gaussian(3), "n": tu.DiscreteLaplace(2)}
        est = tu.unbiased(f, noise, "n >= 0", empty=empty)
        z, p = np.arange(-90, 91), math.tanh(0.25) * np.exp(-np.abs(np.arange(-90, 91)) / 2)
        for n in (0, 1, 4):
            zero, one = (est(s=s, n=(n + z).astype(float)) for s in (0.0, 1.0))
            h = one - zero  # the factor of s; what is left is the value in empty cells
            assert p @ h == pytest.approx(1 / n if n else 0, abs=1e-12)
            assert p @ zero == pytest.approx(0 if n else 7, abs=1e-11)
            second = p @ (zero**2 + 2 * 5 * zero * h + (5**2 + 3**2) * h**2)
            assert est.expectation(s=5.0, n=n) == pytest.approx(5 / n if n else 7, abs=1e-11)
            right = second - (5 / n if n else 7) ** 2
            assert est.sd(s=5.0, n=n) ** 2 == pytest.approx(right, rel=1e-9)

    def test_it_goes_with_a_slanted_bound(self):
        noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
        est = tu.unbiased("s/n", noise, "0 <= s <= n", empty=0.5)
        for s, n in [(0, 0), (0, 1), (1, 1), (9, 10)]:
            mean, variance = moments(est, {"s": s, "n": n}, (2, 2), 80)
            assert mean == pytest.approx(s / n if n else 0.5, abs=1e-10)
            assert est.sd(s=s, n=n) == pytest.approx(math.sqrt(variance), rel=1e-9)
        assert est.sd(s=10, n=10) < 0.415

    def test_beyond_a_slanted_bound_it_goes_on_as_if_no_cell_were_empty(self):
        noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
        est = tu.unbiased("s/n", noise, "0 <= s <= n", empty=0.5)
        full = tu.unbiased("s/n", noise, "0 <= s <= n, n >= 1")
        for s in (3, 4, 9, 30):
            for n in (-5, 0):
                assert est(s=s, n=n) == pytest.approx(full(s=s, n=n), rel=1e-12)

    def test_a_case_of_a_statistic_that_is_not_tied_is_no_convention(self):
        noise = {n: tu.DiscreteLaplace(b) for n, b in (("a", 0.6), ("s", 0.7), ("n", 0.5))}
        est = tu.unbiased("where(a == 0, s/n, s/(n*a))", noise, "a >= 0, 0 <= s <= n, n >= 1")
        for a, s, n in [(0, 1, 1), (0, 0, 1), (3, 4, 4), (1, 2, 3)]:
            axes = [np.arange(-25.0, 26.0) + q for q in (a, s, n)]
            g = est(a=axes[0][:, None, None], s=axes[1][:, None], n=axes[2])
            for scale in (0.5, 0.7, 0.6):
                g = g @ law(scale, 25)
            assert g == pytest.approx(s / n / (a or 1), abs=1e-11)

    @pytest.mark.parametrize(
        ("f", "noise", "domain", "reason"),
        [
            ("s/n", NOISE, "n >= 1", "exclude"),
            ("s/n", {"s": tu.Laplace(1), "n": tu.Laplace(1)}, None, "integer noise"),
            ("s*n", NOISE, None, "divides by nothing"),
        ],
        ids=["bound", "continuous", "product"],
    )
    def test_where_it_makes_no_sense_it_is_refused(self, f, noise, domain, reason):
        with pytest.raises(tu.TrueupError, match=reason):
            tu.unbiased(f, noise, domain, empty=0)

    def test_a_pole_in_the_domain_proposes_it(self):
        with pytest.raises(tu.NoUnbiasedEstimator) as caught:
            tu.unbiased("s/n", self.NOISE)
        assert "empty=value" in caught.value.hint
