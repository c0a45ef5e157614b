"""Shares of a group: sums over all noisy counts, written out again, with the printed figures.

The inverse of the noise is applied here one count after the other, on all 3^k neighbours, and the
function below the promised number of records is continued count by count: nothing of the closed
forms of the library is used.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import trueup as tu
from trueup.errors import TrueupError
from trueup.mechanisms import GroupShare, Shares, shares
from trueup.mechanisms.many_counts import ManyCounts
from trueup.mechanisms.share_law import ShareLaw
from work import at_most

Cell = tuple[int, ...]


def names(k: int) -> list[str]:
    return [f"c{i}" for i in range(k)]


@functools.cache
def made(epsilon: Any, k: int, least: int = 1) -> Shares:
    return Shares(epsilon, names(k), count_at_least=least)


# -- the inverse, count by count -------------------------------------------------------------------


@functools.cache
def extended(alpha: Fraction, least: int, s: Cell) -> Fraction:
    """Return the share of the first count, continued by Π(1 − Sᵢ)(1 − αSᵢ)f = 0 from the top."""
    if sum(s) >= least:
        return Fraction(s[0], sum(s))
    weights, total = (Fraction(1), -(1 + alpha), alpha), Fraction(0)
    for move in itertools.product(range(3), repeat=len(s)):
        if any(move):
            there = tuple(a + b for a, b in zip(s, move, strict=True))
            total -= math.prod(weights[m] for m in move) * extended(alpha, least, there)
    return total


def undone(alpha: Fraction, least: int, y: Cell) -> tuple[Fraction, Fraction]:
    """Return T[f] and its variance T[f]² − T[f²] for the share of the first count."""
    lam = alpha / (1 - alpha) ** 2
    inside = ((-1, -lam), (0, 1 + 2 * lam), (1, -lam))
    outside = ((0, 1 / (1 - alpha)), (1, -alpha / (1 - alpha)))
    first = second = Fraction(0)
    for moves in itertools.product(*(inside if v > 0 else outside for v in y)):
        weight = math.prod(w for _, w in moves)
        f = extended(alpha, least, tuple(max(v, 0) + m for v, (m, _) in zip(y, moves, strict=True)))
        first, second = first + weight * f, second + weight * f**2
    return first, first**2 - second


INVERSES = [
    (2, 1, "1/2", 5),
    (2, 5, "1/3", 6),
    (3, 1, "1/2", 4),
    (3, 4, "2/5", 3),
    (4, 2, "1/2", 2),
]


@pytest.mark.parametrize(("k", "least", "alpha", "size"), INVERSES, ids=str)
def test_the_closed_form_is_the_inverse_count_by_count(k, least, alpha, size):
    """In fractions, shares and variances; only variances below the promise are rounded."""
    a = Fraction(alpha)
    counts = ManyCounts(a, k, least)
    for y in itertools.product(range(size), repeat=k):
        share, variance = undone(a, least, y)
        assert counts.shares(y)[0] == share
        assert sum(counts.shares(y)) == 1
        assert abs(counts.variances(y)[0] - variance) < Fraction(1, 10**40)
    negative = tuple(-v for v in range(k))
    assert counts.shares(negative) == counts.shares((0,) * k) == [Fraction(1, k)] * k


def test_the_printed_shares_of_three():
    counts = ManyCounts(Fraction(1, 2), 3)
    assert counts.shares((0, 1, 2)) == [Fraction(-1, 4), Fraction(-1, 20), Fraction(13, 10)]
    assert counts.shares((1, 0, 0)) == [Fraction(16, 3), Fraction(-13, 6), Fraction(-13, 6)]


@pytest.mark.parametrize("least", [1, 2, 5])
def test_the_share_below_the_promise_is_what_the_polynomial_needs(least):
    """(1 − αS)^k of the continued 1/n, in fractions but for 200 bits, is the polynomial."""
    a, k = Fraction(1, 3), 4
    counts = ManyCounts(a, k, least)
    for n in range(1, least + 1):
        found = (
            sum(math.comb(k, j) * (-a) ** j * counts._continued(n + j) for j in range(k + 1))
            / (1 - a) ** k
        )
        assert abs(found - counts._smooth(n)) < Fraction(1, 2**190)


def test_variances_keep_their_digits_under_much_noise():
    """Below the promise differences cancel ever more bits the nearer α is to 1."""
    a, least = 1 - Fraction(1, 2**40), 7
    counts = ManyCounts(a, 3, least)
    for y in ((0, 0, 0), (0, 1, 0), (1, 1, 2)):
        share, variance = undone(a, least, y)
        assert counts.shares(y)[0] == share
        assert abs(counts.variances(y)[0] / variance - 1) < Fraction(1, 2**150)


def test_two_categories_are_the_two_counts():
    plain = GroupShare(1, empty="n >= 3")
    for ones, n in ((0, 3), (2, 5), (5, 10), (10, 10)):
        found = made(1, 2, 3).sd(n, Fraction(ones, n))
        assert found == pytest.approx(plain.sd(n, Fraction(ones, n)), rel=1e-12)


# -- all that can come out -------------------------------------------------------------------------


def masses(a: float, s: int, most: int) -> Any:
    y = np.arange(most)
    return a ** np.abs(y - s) / (1 + a) * np.where(y == 0, 1, 1 - a)


def databases(k: int, most: int) -> Iterator[Cell]:
    return (s for s in itertools.product(range(most + 1), repeat=k) if sum(s) <= most)


CASES = [(2, 1, 6, 1, 38), (2, 1, 6, 4, 38), (3, 3, 6, 1, 16), (3, 3, 6, 3, 16)]


@pytest.mark.parametrize(("k", "epsilon", "most", "least", "reach"), CASES, ids=str)
def test_shares_are_unbiased_and_know_their_error(k, epsilon, most, least, reach):
    """Every database of up to 6 records, the empty one too: E g, E V̂ and the sd, by plain sums."""
    mechanism = made(epsilon, k, least)
    a, value, variance = math.exp(-float(epsilon)), *tables(mechanism, reach)
    for truth in databases(k, most):
        if truth[1:] != tuple(sorted(truth[1:])) or 0 < sum(truth) < least:
            continue
        if sum(truth) < least and least > 1:
            continue
        p = functools.reduce(np.multiply.outer, (masses(a, s, reach) for s in truth))
        share = truth[0] / sum(truth) if any(truth) else 1 / k
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert (p * value).sum() == pytest.approx(share, abs=1e-12)
        spread = (p * (value - share) ** 2).sum()
        assert mechanism.sd_counts(truth)["c0"] ** 2 == pytest.approx(spread, rel=1e-11)
        assert (p * variance).sum() == pytest.approx(spread, rel=1e-9)


def tables(mechanism: Shares, reach: int) -> tuple[Any, Any]:
    """Return what is said of the first category at all noisy counts: symmetric in the others."""
    k = len(mechanism.categories)
    value, variance = np.empty((reach,) * k), np.empty((reach,) * k)
    for y in itertools.product(range(reach), repeat=k):
        if y[1:] == tuple(sorted(y[1:])):
            found = mechanism.inverse.shares(y)[0], mechanism.inverse.variances(y)[0]
            for others in set(itertools.permutations(y[1:])):
                value[(y[0], *others)], variance[(y[0], *others)] = map(float, found)
    return value, variance


FIGURES = {
    (1, 3): {(3, 0, 0): (".4947", ".3392"), (1, 1, 1): (".5919",) * 2, (4, 3, 3): (".1255",)},
    (1, 2): {(0, 1): (".7309",), (1, 1): (".7187",), (0, 5): (".1885",), (5, 5): (".1099",)},
}


@pytest.mark.parametrize("case", FIGURES, ids=str)
def test_the_printed_standard_deviations(case):
    for truth, printed in FIGURES[case].items():
        found = list(made(*case).sd_counts(truth).values())
        assert found[: len(printed)] == pytest.approx([float(x) for x in printed], abs=5.1e-5)


def test_the_empty_group_is_a_group():
    """E share = 1/k; what the others are does not matter where there is nothing."""
    mechanism = made(1, 3)
    assert mechanism.sd(0, 0.4) == mechanism.sd_counts([0, 0, 0])["c1"]
    release = mechanism.release([], rng=1)
    assert sum(release.shares.values()) == 1


def test_a_wrong_bound_has_the_sd_that_it_has():
    mechanism, a = made(2, 2, 8), math.exp(-2)
    value, _ = tables(mechanism, 22)
    p = np.multiply.outer(masses(a, 3, 22), masses(a, 1, 22))
    centre = (p * value).sum()
    assert abs(centre - 0.75) > 0.005
    assert mechanism.sd(4, 0.75) == pytest.approx(math.sqrt((p * (value - centre) ** 2).sum()))


# -- large -----------------------------------------------------------------------------------------


def slow_law(mechanism: Shares, truth: Sequence[int], reach: int) -> float:
    """Return the variance of the first share by dictionaries over (y, n, p), in 40 digits."""
    with mpmath.workdps(40):
        a = mpmath.mpf(mechanism.inverse.alpha.numerator) / mechanism.inverse.alpha.denominator
        law: dict[tuple[int, int, int], Any] = {(0, 0, 0): mpmath.mpf(1)}
        for i, s in enumerate(truth):
            grown: dict[tuple[int, int, int], Any] = {}
            for (own, n, p), mass in law.items():
                for y in range(max(0, s - reach), s + reach + 1):
                    m = mass * a ** abs(y - s) / (1 + a) * (1 if y == 0 else 1 - a)
                    key = (y if i == 0 else own, n + y, p + (y > 0))
                    grown[key] = grown.get(key, 0) + m
            law = grown
        total, k, share = mpmath.mpf(0), len(truth), Fraction(truth[0], sum(truth))
        for (own, n, p), mass in law.items():
            x, c = own - Fraction(n, k), (own > 0) - Fraction(p, k)
            edge = mechanism.inverse.kappa * mechanism.inverse.slope(n - 1, p - 1)
            g = Fraction(1, k) + x * mechanism.inverse.slope(n, p) + c * edge - share
            total += mass * (mpmath.mpf(g.numerator) / g.denominator) ** 2
        return float(total)


@pytest.mark.parametrize(
    ("epsilon", "truth", "least", "reach"),
    [(4, (1, 2, 0, 1), 1, 7), (4, (3, 0, 1, 5), 4, 7), (5, (20, 0, 3, 30), 6, 6)],
    ids=str,
)
def test_more_categories_by_slow_sums(epsilon, truth, least, reach):
    mechanism = made(epsilon, len(truth), least)
    found = mechanism.sd_counts(truth)["c0"] ** 2
    assert found == pytest.approx(slow_law(mechanism, truth, reach), rel=1e-9)


@pytest.mark.parametrize(
    ("k", "least", "alpha"), [(3, 1, 0.5), (20, 1, 0.9), (20, 7, 0.375), (5, 30, 0.999)], ids=str
)
def test_the_slopes_have_all_their_digits(k, least, alpha):
    """Sums of 40 terms that alternate; against fractions, beside and far from the promise."""
    exact, law = ManyCounts(Fraction(alpha), k, least), ShareLaw(Fraction(alpha), k, least)
    for p in {1, 2, k - 1, k}:
        for n in (p, p + least - 1, p + least, p + least + 3, p + 1000):
            (found,) = law._slope(np.array([float(n)]), p)[1]
            assert found == pytest.approx(float(exact.slope(n, p)), rel=1e-11)


@pytest.mark.parametrize("n", [3_000, 10**6, 10**8, 10**12, 10**30], ids=str)
def test_large_data_sets(n):
    """n·sd tends to the sd of (yᵢ − n·p), which is √(2λ((1 − p)² + (k − 1)p²))."""
    lam = math.exp(-1) / (1 - math.exp(-1)) ** 2
    for share in (Fraction(0), Fraction(3, 10), Fraction(1)):
        sure = (n - int(share * n)) // 2 > 100
        limit = math.sqrt(2 * lam * ((1 - share) ** 2 + 2 * share**2))
        if share == 0:  # a count of 0 is known not to be negative: ½ of α/(1 + α) less
            limit = math.sqrt(2 * lam - lam / (1 + math.exp(-1)))
        elif not sure:
            limit = math.sqrt(2 * (2 * lam - lam / (1 + math.exp(-1))))
        assert n * made(1, 3).sd(n, share) == pytest.approx(limit, rel=1e-9 + 3 / n)


@pytest.mark.parametrize("epsilon", [3000, 10**6, 10**30])
def test_no_noise_to_speak_of_takes_no_time(epsilon):
    with at_most(50_000):  # 20,000: terms of an exponential are calls too
        mechanism = Shares(epsilon, ["f", "m"])
        assert mechanism.sd(3, Fraction(1, 3)) == 0
        assert mechanism.release_counts([1, 2], rng=1).shares["f"] == pytest.approx(1 / 3)


def test_many_categories_take_no_time():
    """A thousand records in 20 categories, and 10⁸: vectors over the total, not over the counts."""
    with at_most(150_000):  # 40,000
        near = made(1, 20).sd(1000, Fraction(1, 20))
        far = made(1, 20).sd(10**8, Fraction(1, 10))
    lam = math.exp(-1) / (1 - math.exp(-1)) ** 2
    assert near * 1000 == pytest.approx(math.sqrt(2 * lam * 0.95), rel=1e-3)
    assert far * 10**8 == pytest.approx(math.sqrt(2 * lam * (0.81 + 0.19)), rel=1e-8)


def test_a_sum_over_too_many_totals_is_refused():
    with pytest.raises(TrueupError, match=r"is a sum over [\d,]+ totals"):
        Shares(1e-6, names(5)).sd(10, 0.2)


def test_many_records_in_many_cells():
    release = Shares(1, range(20)).release_counts([10**8] * 20, rng=1)
    assert list(release.shares.values()) == pytest.approx([0.05] * 20, rel=1e-6)
    assert all(0 < e < 1e-7 for e in release.stderr.values())


def test_shares_too_large_for_an_exact_sum_say_so(monkeypatch):
    """Beyond 2⁵² the last bit of a share exceeds 1: no doubles near them sum to 1."""
    mechanism = Shares(0.1, names(13))
    add_noise(monkeypatch, *[0] * 13)
    release = mechanism.release_counts([1] * 12 + [2], rng=1)
    largest = max(map(abs, release.shares.values()))
    assert largest > 2**53
    assert sum(release.shares.values()) == pytest.approx(1, abs=1e-14 * largest)
    assert "cannot sum to 1" in repr(release)
    assert release.note is not None
    usual = mechanism.release_counts([1000] * 13, rng=1)
    assert usual.note is None
    assert sum(usual.shares.values()) == 1.0
    add_noise(monkeypatch, *[0] * 20)
    beyond = Shares(1e-9, names(20)).release_counts([1] * 19 + [2], rng=1)
    assert math.inf in map(abs, beyond.shares.values())
    assert beyond.note is not None


@pytest.mark.parametrize("bad", [[1.5, 2], [1, 2.0000001]], ids=str)
def test_counts_are_whole(bad):
    for ask in (made(1, 2).sd_counts, lambda c: made(1, 2).release_counts(c, rng=1)):
        with pytest.raises(TrueupError, match="whole numbers"):
            ask(bad)


@pytest.mark.parametrize(("n", "share"), [(3, 0.5), (2.5, 0.4), (10**12, 0.3000000000004)], ids=str)
def test_a_share_that_whole_counts_cannot_have_is_refused(n, share):
    with pytest.raises(TrueupError, match="no category can have the share"):
        made(1, 2).sd(n, share)
    assert made(1, 2).sd(10**12, 0.3) > 0  # a double is only near three tenths


def test_a_budget_that_cannot_be_told_from_none_is_refused_before_publishing(monkeypatch):
    monkeypatch.setattr(shares, "publish", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(TrueupError, match="scale is too large"):
        Shares(1e-80, names(2)).release_counts([1, 2], rng=1)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.5, 0.7, 2, 50, 300])
def test_the_noise_is_undone_with_all_its_digits(epsilon):
    """α/(1 − α), also where α cannot be told from 1 or from 0 beside 1."""
    mechanism = made(epsilon, 3)
    expected = 1 / math.expm1(1 / float(mechanism.noise.scale))
    assert float(mechanism.inverse.kappa) == pytest.approx(expected, rel=1e-13)


def test_a_budget_beyond_all_noise_publishes_the_shares_themselves():
    mechanism = Shares(800, names(3))
    release = mechanism.release_counts([5, 0, 15], rng=1)
    assert list(release.shares.values()) == [0.25, 0, 0.75]
    assert mechanism.sd_counts([5, 0, 15]) == dict.fromkeys(names(3), 0)
    assert mechanism.sd_counts([0, 0, 0]) == dict.fromkeys(names(3), 0)
    assert mechanism.sd(1, 0) == mechanism.sd(10**6, 0.25) == 0


# -- privacy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "epsilon"), [(2, 1), (3, Fraction(1, 3))], ids=str)
def test_no_database_of_up_to_6_records_tells_more_than_epsilon(k, epsilon):
    """Exact rows over all neighbours and all clamped outputs; the empty database is one of them."""
    mechanism = made(epsilon, k)
    with mpmath.workdps(70):
        e = [
            Fraction(int(mpmath.floor(mpmath.exp(_mp(x)) * mpmath.mpf(10) ** 60)), 10**60)
            for x in (Fraction(epsilon), 1 / Fraction(mechanism.noise.scale))
        ]
    limit, alpha = e[0], 1 / (e[1] + Fraction(1, 10**60))
    largest = Fraction(0)
    row = {(y, s): alpha ** abs(y - s) * (1 if y == 0 else 1 - alpha) / (1 + alpha)
           for y in range(9) for s in range(8)}  # fmt: skip
    for s in range(7):
        ratios = [row[y, s] / row[y, s + 1] for y in range(9)]
        largest = max(largest, *ratios, *(1 / r for r in ratios))
    outputs = list(itertools.product(range(3), repeat=k))
    for truth in databases(k, 6):
        p = [math.prod(row[y, s] for y, s in zip(out, truth, strict=True)) for out in outputs]
        for j in range(k):
            more = tuple(s + (i == j) for i, s in enumerate(truth))
            for out, here in zip(outputs, p, strict=True):
                there = math.prod(row[y, s] for y, s in zip(out, more, strict=True))
                assert here <= limit * there * (1 + Fraction(1, 10**50))
                assert there <= limit * here * (1 + Fraction(1, 10**50))
    assert limit * Fraction(999, 1000) < largest <= limit * (1 + Fraction(1, 10**50))


def _mp(x: Fraction) -> Any:
    return mpmath.mpf(x.numerator) / x.denominator


# -- the release -----------------------------------------------------------------------------------


def add_noise(monkeypatch: pytest.MonkeyPatch, *noises: int) -> None:
    """Let publish add these numbers instead of drawing."""

    def publish(values: Any, noise: Any, rng: Any = None) -> Any:
        return np.array(values) + noises

    monkeypatch.setattr(shares, "publish", publish)


@pytest.mark.parametrize("z", [(0, 0, 0), (2, -2, 1), (-9, -9, -9)], ids=str)
def test_a_release(monkeypatch, z):
    mechanism = Shares(1, ["a", "b", "c"])
    add_noise(monkeypatch, *z)
    release = mechanism.release(["b", "a", "b", "b"], rng=1)
    noisy = tuple(int(y) for y in np.array([1, 3, 0]) + z)
    alpha = Fraction(math.exp(-1))
    assert release.published == noisy
    assert release.counts.tolist() == list(noisy)
    assert release.count == sum(noisy)
    for i, name in enumerate("abc"):
        order = (noisy[i], *(y for j, y in enumerate(noisy) if j != i))
        share, variance = (float(x) for x in undone(alpha, 1, order))
        assert release.shares[name] == pytest.approx(share, rel=1e-12, abs=1e-12)
        assert release.variance[name] == pytest.approx(variance, rel=1e-9, abs=1e-12)
        error = math.sqrt(variance) if variance >= 0 else math.nan
        assert release.stderr[name] == pytest.approx(error, rel=1e-9, nan_ok=True)
    assert release.noise == tu.DiscreteLaplace(1)
    assert "not private" in repr(release)


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 4])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_shares_sum_to_exactly_1(k, epsilon):
    """Always, unless they are so large that 1 is below their last bit."""
    mechanism = Shares(epsilon, names(k))
    rng = np.random.default_rng(5)
    checked = 0
    for counts in ([0] * k, range(k), [1000] + [1] * (k - 1), [10**6] * k):
        for _ in range(15):
            found = list(mechanism.release_counts(list(counts), rng).shares.values())
            assert all(type(s) is float for s in found)
            if max(map(abs, found)) < 1e14:
                checked += 1
                assert sum(found) == sum(reversed(found)) == math.fsum(found) == 1.0
    assert checked > 35


def test_rounding_is_the_only_correction(monkeypatch):
    """The exact sum takes no more than rounding from any share."""
    mechanism = Shares(0.3, names(6))
    rng = np.random.default_rng(2)
    for _ in range(20):
        noisy = np.array([3, 1, 4, 1, 5, 9]) + mechanism.noise.sample(6, rng)
        add_noise(monkeypatch, *(noisy - [3, 1, 4, 1, 5, 9]))
        release = mechanism.release_counts([3, 1, 4, 1, 5, 9], rng=1)
        plain = np.array([float(s) for s in mechanism.inverse.shares(noisy.tolist())])
        gap = np.abs(np.array(list(release.shares.values())) - plain).max()
        assert gap <= 1e-14 * max(1.0, np.abs(plain).max())


def test_values_of_any_kind():
    mechanism = Shares(50, [1, 2, ("x", 3)])
    release = mechanism.release(iter([1] * 30 + [("x", 3)] * 10), rng=1)
    assert release.shares[1] == pytest.approx(0.75, abs=0.1)
    assert release.shares[2] == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("cells", [2, 3, 4, 13])
def test_shares_are_rounded_no_more_than_their_sum_needs(cells):
    """Sums of k shares of size 1 hold multiples of 2^(⌈log₂ k⌉ − 52): those stay as they are."""
    step = 2.0 ** (math.ceil(math.log2(cells)) - 52)
    first = [1 / 4 + step, *[step] * (cells - 2)]
    found, note = shares._exactly_one([*first, 0.7])
    assert found[:-1] == first
    assert sum(found) == 1
    assert note is None
