"""Groups of any size: exact rows over all small databases, and the printed figures.

The rows are read off the mechanism as probabilities of what it publishes, in fractions; the law of
the noise, the inverse and the sums below are written out again and share no code with the library.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import trueup as tu
from trueup.errors import TrueupError
from trueup.limit.table import Row
from trueup.mechanisms import GroupMean, GroupShare, groups
from trueup.mechanisms.corner import _punctured
from trueup.mechanisms.pair_law import PairLaw
from trueup.mechanisms.share_law import ShareLaw
from trueup.mechanisms.two_counts import TwoCounts, share

DATABASES = [(n - ones, ones) for n in range(7) for ones in range(n + 1)]
NEIGHBOURS = [
    ((a, b), more) for a, b in DATABASES for more in ((a + 1, b), (a, b + 1)) if sum(more) <= 6
]


@functools.cache
def made(kind: str, epsilon: Any, empty: Any = "midpoint") -> Any:
    return {"share": GroupShare, "mean": GroupMean}[kind](epsilon, empty=empty)


def e_to(epsilon: Any, below: bool) -> Fraction:
    """Return a rational number just below (or above) e^ε."""
    with mpmath.workdps(70):
        scaled = mpmath.exp(mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator)
        floor = int(mpmath.floor(scaled * mpmath.mpf(10) ** 60))
    return Fraction(floor + (not below), 10**60)


def published(mechanism: Any, truth: tuple[int, int], most: int) -> dict[Any, Fraction]:
    """Return the probability of everything that is published, pairs up to a size.

    Clamped discrete Laplace noise, P(t|s) ∝ α^|s − t|; in the corner a row of the table, whose last
    entry goes on outside, at pairs of positive counts, by the law that they have at (1, 1).
    """
    alpha = 1 / e_to(1 / Fraction(mechanism.noise.scale), below=True)

    def p(t: int, s: int) -> Fraction:
        return alpha ** abs(t - s) / (1 + alpha) * (1 if t == 0 else 1 - alpha)

    corner = mechanism.corner
    rows: dict[Any, Fraction] = {}
    size = corner.size if corner else -1
    for zeros in range(most):
        for ones in range(most):
            if max(zeros, ones) > size:
                rows[zeros, ones] = p(zeros, truth[0]) * p(ones, truth[1])
    if corner is None:
        return rows
    inside = math.prod(sum(p(t, s) for t in range(size + 1)) for s in truth)
    row = corner.rows[min(truth[0], size), min(truth[1], size)]
    for label, weight in enumerate(row.weights[:-1]):
        rows["label", label] = inside * Fraction(weight, sum(row.weights))
    again = inside * Fraction(row.weights[-1], sum(row.weights))
    if again:
        assert truth == (0, 0)
        whole = (1 / (1 + alpha)) ** 2 - ((1 - alpha**size) / (1 + alpha)) ** 2
        for (zeros, ones), _ in [x for x in rows.items() if x[0][0] != "label" and min(x[0]) > 0]:
            rows[zeros, ones] += again * p(zeros, 1) * p(ones, 1) / whole
    return rows


CASES = [("share", 1), ("share", 2), ("share", 0.8), ("share", Fraction(7, 10)), ("share", 0.5)]
CASES += [("mean", 1), ("mean", 1.5)]


@pytest.mark.parametrize(("kind", "epsilon"), CASES, ids=str)
def test_no_database_of_up_to_6_records_tells_more_than_epsilon(kind, epsilon):
    """Exactly, for every output: also the empty database, and one of six from its seventh."""
    mechanism = made(kind, epsilon)
    rows = {s: published(mechanism, s, 9) for s in DATABASES}
    limit, largest = e_to(epsilon, below=True), Fraction(0)
    for here, there in NEIGHBOURS:
        for output, p in rows[here].items():
            q = rows[there][output]
            assert p <= limit * q
            assert q <= limit * p
            largest = max(largest, p / q, q / p)
    assert largest > limit * Fraction(999, 1000)  # and no noise is wasted


@pytest.mark.parametrize(("kind", "epsilon"), CASES, ids=str)
def test_the_check_notices_a_smaller_epsilon(kind, epsilon):
    corner = made(kind, epsilon).corner
    assert corner.problem(e_to(epsilon, below=True)) is None
    assert corner.problem(e_to(Fraction(epsilon) * Fraction(999, 1000), below=True))


@pytest.mark.parametrize(
    ("epsilon", "empty"),
    [(1, "midpoint"), (2, "midpoint"), (0.8, "midpoint"), (0.5, "midpoint"),
     (1, 0), (1, 1), (0.5, Fraction(1, 3)), (1, "n >= 3")],
    ids=str,
)  # fmt: skip
def test_means_are_unbiased_for_every_small_database(epsilon, empty):
    """All outputs summed: probabilities to 1, labels to the mean, also without records."""
    mechanism = made("share", epsilon, empty)
    reach = math.ceil(31 / epsilon) + 7
    least = 3 if empty == "n >= 3" else 0
    labels: dict[Any, tuple[float, float]] = {}
    for truth in [s for s in DATABASES if sum(s) >= least]:
        rows = published(mechanism, truth, 12)
        whole = mean = variance = 0.0
        a = math.exp(-1 / mechanism.noise.scale)
        line = [
            np.array([a ** abs(t - s) / (1 + a) * (1 if t == 0 else 1 - a) for t in range(reach)])
            for s in truth
        ]
        for output in [(i, j) for i in range(reach) for j in range(reach)]:
            if mechanism.corner and max(output) <= mechanism.corner.size:
                continue
            p = line[0][output[0]] * line[1][output[1]]
            if truth == (0, 0) and mechanism.corner and min(output) > 0:
                p = line_at_one(a, output)
            if p < 1e-16:
                continue
            if output not in labels:
                labels[output] = said(mechanism, output, None)
            whole, mean = whole + p, mean + p * labels[output][0]
            variance += p * labels[output][1]
        for output, chance in rows.items():
            if output[0] == "label":
                value, spread = said(mechanism, (0, 0), output[1])
                whole, mean = whole + float(chance), mean + float(chance) * value
                variance += float(chance) * spread
        n = sum(truth)
        middle = 0.5 if isinstance(empty, str) else float(empty)
        assert whole == pytest.approx(1, abs=1e-12)
        assert mean == pytest.approx(truth[1] / n if n else middle, abs=1e-12)
        true = mechanism.sd(n, truth[1] / n if n else 0.5) ** 2
        if mechanism.is_of_pairs:
            assert variance == pytest.approx(true, rel=1e-10)
        else:
            assert true * (1 - (1e-12 if n else 1e-3)) <= variance <= 3 * true


def line_at_one(a: float, output: tuple[int, int]) -> float:
    return math.prod(a ** (t - 1) * (1 - a) / (1 + a) for t in output)


def said(mechanism: Any, cell: tuple[int, int], label: int | None) -> tuple[float, float]:
    """Return the mean and the variance that a release states."""
    outcome = published_as(mechanism, cell, label)
    return mechanism.estimates(outcome)[0], mechanism.variance(outcome)


def published_as(mechanism: Any, cell: tuple[int, int], label: int | None) -> Any:
    """Return a pair, that of a label too, or the number of a label that is a mean only."""
    if label is None:
        return cell
    return mechanism.corner.cells[label] if mechanism.corner.cells else label


# -- figures ---------------------------------------------------------------------------------------


def test_labels_at_one_half():
    counts = TwoCounts(Fraction(1, 2))
    found = {
        least: {t: counts.inverse(counts.continued(share, least), t) for t in cells}
        for least, cells in {
            1: [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (2, 5)],
            2: [(0, 1), (0, 2), (1, 2)],
            5: [(0, 1), (0, 2), (1, 2), (2, 3), (0, 5)],
        }.items()
    }
    assert [str(x) for x in found[1].values()] == [
        "17/6",
        "7/6",
        "71/60",
        "9/10",
        "3/4",
        "41/70",
        "289/420",
    ]
    assert [str(x) for x in found[2].values()] == ["9/5", "101/60", "23/60"]
    assert counts.continued(share, 2)(0, 1) == Fraction(209, 240)
    assert [str(x) for x in found[5].values()] == ["1", "239/210", "67/105", "163/280", "73/60"]
    assert counts.inverse(counts.continued(share, 1), (3, 0)) == 1 - Fraction(71, 60)
    assert float(_punctured(TwoCounts(Fraction(2, 5))).labels[0]) > 1.3
    at_half = _punctured(counts)
    assert at_half.labels[:2] == pytest.approx((5 / 3, -2 / 3), rel=1e-15)
    assert at_half.rows[0, 1].weights[2] == 0  # (1, 1) has no mass left


TABLES = {  # epsilon, empty: {(n, ones): sd}
    (1, "midpoint"): {
        (1, 0): ".530", (2, 0): ".372", (2, 1): ".593", (3, 0): ".276", (3, 1): ".430",
        (5, 5): ".176", (5, 2): ".260", (10, 0): ".0935", (10, 5): ".1097", (20, 20): ".0497",
        (20, 10): ".0495", (0, 0): ".593",
    },
    (2, "midpoint"): {
        (1, 1): ".225", (2, 0): ".149", (2, 1): ".292", (3, 3): ".110", (3, 1): ".185",
        (5, 0): ".073", (5, 2): ".100", (10, 10): ".0402", (10, 5): ".0442", (20, 10): ".0215",
    },
    (1, "n >= 5"): {(5, 0): ".1760", (5, 2): ".2130", (10, 0): ".0935", (10, 5): ".1095"},
    (0.5, "n >= 5"): {(5, 0): ".3998", (5, 2): ".4821", (20, 5): ".1189", (50, 25): ".0403"},
    (1, 0): {(1, 0): ".699", (1, 1): "1.277", (3, 0): ".323", (3, 3): ".509"},
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES, ids=str)
def test_the_table_of_standard_deviations(case):
    mechanism = made("share", *case)
    for (n, ones), printed in TABLES[case].items():
        found = mechanism.sd(n, Fraction(ones, n) if n else 0.5)
        assert found == pytest.approx(float(printed), abs=0.51 * 10 ** -len(printed.split(".")[1]))


def test_the_limits_that_are_promised():
    mechanism = made("share", 1)
    assert mechanism.sd(1, 0) <= 0.531
    assert max(mechanism.sd(5, Fraction(k, 5)) for k in range(6)) <= 0.261
    assert max(mechanism.sd(10, Fraction(k, 10)) for k in range(11)) <= 0.117
    half = made("share", 0.5)
    for (n, ones), most in {(1, 0): 1.10, (3, 0): 0.77, (5, 2): 0.70, (10, 5): 0.31}.items():
        assert half.sd(n, Fraction(ones, n)) <= most


def test_the_variance_of_a_group_of_values():
    mechanism = made("mean", 1)
    assert mechanism.sd(3, Fraction(13, 30)) ** 2 == pytest.approx(0.194635, abs=1e-6)
    means = [Fraction(k, 40) for k in range(41)]
    for n, most in {3: 0.40, 5: 0.25, 10: 0.12, 20: 0.057}.items():
        squares = [mechanism.sd(n, m) ** 2 for m in means]
        assert math.sqrt(np.trapezoid(squares, dx=1 / 40)) <= most


def test_what_efficiency_is_left():
    """Averages over all databases of up to 10 records, each size n with weight 1/n.

    The best possible ones are those of a linear programme, solved elsewhere to four digits.
    """
    best = {0.7: 0.35949, 1: 0.16060, 2: 0.02958, 0.5: 0.76443}
    for epsilon, limit in best.items():
        mechanism = made("share", Fraction(str(epsilon)))
        average = sum(
            mechanism.sd(n, Fraction(k, n)) ** 2 / (n * (n + 1))
            for n in range(1, 11)
            for k in range(n + 1)
        ) / sum(1 / n for n in range(1, 11))
        assert limit <= average <= (1.02 if epsilon >= 0.7 else 1.05) * limit


def test_the_limit_for_means_is_that_of_a_plain_linear_programme():
    """Three records at most: HiGHS on the same grid, written out; rows exact; the bound below."""
    best = tu.mechanisms.OptimalRelease.of_means(1, most=3)
    nodes = [(n - k, k) for n in range(4) for k in range(n + 1)]
    labels = np.linspace(-0.4, 1.4, 91)
    means = np.array([b / (a + b) if a + b else 0.5 for a, b in nodes])
    weight = np.array([1 / ((a + b) * (a + b + 1)) if a + b else 0 for a, b in nodes])
    cost = weight[:, None] / weight.sum() * (labels - means[:, None]) ** 2
    size, count = cost.shape
    pairs = [
        (i, j)
        for i, a in enumerate(nodes)
        for j, b in enumerate(nodes)
        if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1
    ]
    one = scipy.sparse.identity(count, format="csr")
    private = np.zeros((len(pairs), size))
    for row, (i, j) in enumerate(pairs):
        private[row, i], private[row, j] = 1, -math.e
    found = scipy.optimize.linprog(
        cost.ravel(),
        A_ub=scipy.sparse.kron(private, one),
        b_ub=np.zeros(len(pairs) * count),
        A_eq=scipy.sparse.vstack(
            [
                scipy.sparse.kron(np.eye(size), np.ones((1, count))),
                scipy.sparse.kron(np.eye(size), labels[None]),
            ]
        ),
        b_eq=np.concatenate([np.ones(size), means]),
    )
    assert best.lower_bound <= found.fun * (1 + 1e-6)
    assert found.fun - 0.02**2 / 4 <= best.average_variance <= 1.01 * found.fun
    assert best.gap < 0.02
    assert 1 <= best.efficiency(made("share", 1)) < 1.02
    limit = e_to(1, below=True)
    for (a, b), row in zip(best.databases, best.table.rows, strict=True):
        mean = sum(Fraction(y) * w for y, w in zip(best.table.labels, row.weights, strict=True))
        assert mean / row.total == (Fraction(b, a + b) if a + b else Fraction(1, 2))
    for i, j in pairs:
        one, two = best.table.rows[i], best.table.rows[j]
        for p, q in zip(one.weights, two.weights, strict=True):
            assert p * two.total <= limit * q * one.total
    assert best.release(1, 1) in best.table.labels
    with pytest.raises(TrueupError, match="more than 3 records"):
        best.variance(2, 2)


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.9, 1, 1.5], ids=str)
def test_labels_leave_mean_count_and_dither_unbiased(epsilon):
    """Pairs outside by a transform written out again; labels in the corner as they are released."""
    mechanism = made("mean", epsilon)
    a, reach = math.exp(-1 / mechanism.noise.scale), math.ceil(33 / epsilon) + 10
    lam, sides = a / (1 - a) ** 2, np.arange(reach + 1)
    inverse = (1 + 2 * lam) * np.eye(reach, reach + 1)
    inverse -= lam * (np.eye(reach, reach + 1, 1) + np.eye(reach, reach + 1, -1))
    inverse[0, :2] = 1 / (1 - a), -a / (1 - a)
    n = sides[:, None] + sides.astype(float)
    functions = {
        share: sides / np.maximum(n, 1),
        lambda z, o: Fraction(z + o): n,
        lambda z, o: Fraction(z + o, (z + o) ** 2 + 1): n / (n**2 + 1),
    }
    outside = np.maximum.outer(sides[:-1], sides[:-1]) > mechanism.corner.size
    for f, values in functions.items():
        pairs = np.where(outside, inverse @ values @ inverse.T, 0.0)
        labels = [float(mechanism.corner.estimate(f, cell)) for cell in mechanism.corner.cells]
        for truth in [*DATABASES[1:], (7, 6), (2, 9)]:
            line = [
                np.where(sides[:-1] > 0, 1 - a, 1) / (1 + a) * a ** np.abs(sides[:-1] - s)
                for s in truth
            ]
            inside = [float(p) for p in mechanism.corner.probabilities(truth)[:-1]]
            mean = line[0] @ pairs @ line[1] + np.dot(inside, labels)
            assert mean == pytest.approx(values[truth], abs=1e-12)


# -- rounding --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1, 0.7], ids=str)
def test_values_are_unbiased_and_know_their_error_over_the_rounding(epsilon):
    """Integrated over U by Gauss rules, where the published pair is what it is by sums."""
    mechanism, n, total = made("mean", epsilon), 3, 1.3
    nodes, weights = np.polynomial.legendre.leggauss(2)
    mean = square = stated = 0.0
    for low, high, ones in ((0.0, 0.7, 1), (0.7, 1.0, 2)):
        for u, w in zip(
            (low + high + (high - low) * nodes) / 2, weights * (high - low) / 2, strict=True
        ):
            shift = Fraction(0.5 - u)
            for p, x, v in outputs(mechanism, (n - ones, ones), shift):
                mean, square, stated = mean + w * p * x, square + w * p * x**2, stated + w * p * v
    assert mean == pytest.approx(total / n, abs=1e-12)
    true = mechanism.sd(n, Fraction(13, 30)) ** 2
    assert square - mean**2 == pytest.approx(true, rel=1e-10)
    if mechanism.is_of_pairs:
        assert stated == pytest.approx(true, rel=1e-10)
    else:
        assert true <= stated <= 3 * true


def test_without_a_dither_the_variance_of_rounding_counts_as_a_quarter(monkeypatch):
    """All pairs published once, weighted by the law of the rounding and of the noise."""
    mechanism, n, reach = GroupMean(0.65, empty="n >= 2"), 3, 48
    assert not mechanism.is_dithered
    stated, values = np.zeros((reach, reach)), np.zeros((reach, reach))
    for pair in np.ndindex(reach, reach):
        monkeypatch.setattr(groups, "publish", lambda *_, pair=pair: pair)
        release = mechanism.release([0.5] * n, rng=1)
        stated[pair], values[pair] = release.variance, release.mean
    a, y = math.exp(-1 / mechanism.noise.scale), np.arange(reach)
    line = [a ** abs(y - s) / (1 + a) * np.where(y > 0, 1 - a, 1) for s in range(n + 1)]
    for low, r in ((1, 0.5), (1, 0.3), (0, 0.9), (2, 0.0)):
        law = sum(c * np.outer(line[n - k], line[k]) for k, c in ((low, 1 - r), (low + 1, r)))
        mean = (law * values).sum()
        assert mean == pytest.approx((low + r) / n, abs=1e-10)
        true = (law * (values - mean) ** 2).sum()
        assert (law * stated).sum() == pytest.approx(true + (0.25 - r * (1 - r)) / n**2, rel=1e-9)


@functools.cache
def outputs(mechanism: Any, truth: tuple[int, int], shift: Fraction) -> Any:
    a = math.exp(-1 / mechanism.noise.scale)
    found, corner = [], mechanism.corner
    for cell in [(i, j) for i in range(50) for j in range(50)]:
        p = math.prod(
            a ** abs(t - s) / (1 + a) * (1 if t == 0 else 1 - a)
            for t, s in zip(cell, truth, strict=True)
        )
        if p > 1e-16 and max(cell) > corner.size:
            found.append((p, cell))
    for label, p in enumerate(corner.probabilities(truth)[:-1]):
        found.append((float(p), published_as(mechanism, (0, 0), label)))
    values = []
    for p, outcome in found:
        x, h = mechanism.estimates(outcome)
        values.append((p, float(x + shift * h), mechanism.variance(outcome, shift)))
    return values


def test_a_record_of_any_size_is_counted_once(monkeypatch):
    """⌊s + U⌋ over all U on the grid is s on average, exactly, and n is not rounded."""
    mechanism = GroupMean(1, bounds=(0, 8))
    seen = []
    steps = mechanism.grid.steps
    for uniform in (0, steps // 3, steps // 2, steps - 1):
        monkeypatch.setattr(groups, "below", lambda bound, rng, u=uniform: u)
        monkeypatch.setattr(groups, "publish", lambda v, noise, rng: np.array(v) + 50)
        release = mechanism.release([1, 6.5, 8, 9], rng=1)
        zeros, ones, u = release.published
        assert zeros + ones == 104
        assert ones - 50 == math.floor((1 + 6.5 + 8 + 8) / 8 + uniform / steps)
        assert u == pytest.approx(uniform / steps, abs=1e-14)
        seen.append(release)
    assert not any(math.isnan(r.stderr) for r in seen)


# -- hardly any noise ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [40, 60, 100, 300], ids=str)
def test_hardly_any_noise_is_private_too(epsilon):
    """The rows of one record and none, exactly; and the sd of what is nearly the truth."""
    mechanism = made("share", epsilon)
    with mpmath.workdps(400):
        limit = Fraction(int(mpmath.exp(epsilon) * mpmath.mpf(10) ** 100), 10**100)
    assert mechanism.corner.problem(limit) is None
    alpha = 1 / limit
    for here, there in (((0, 0), (0, 1)), ((0, 1), (1, 1))):
        one, two = (mechanism.corner.probabilities(c)[:-1] for c in (here, there))
        assert all(p <= limit * q and q <= limit * p for p, q in zip(one, two, strict=True))
    right = math.sqrt(4 * float(alpha) * 0.25) / 10**4  # to the leading order in n
    assert mechanism.sd(10**4, Fraction(1, 2)) == pytest.approx(right, rel=1e-6)
    assert mechanism.release([0, 1], rng=1).mean == pytest.approx(0.5, abs=1e-12)


# -- much noise ------------------------------------------------------------------------------------


def test_much_noise_is_summed_or_refused():
    """Against the leading order for many records, and refused before any long computation."""
    promised, n = GroupMean(Fraction(1, 1000), empty="n >= 5"), 10**7
    assert promised.sd(n, Fraction(1, 2)) == pytest.approx(1000 / n, rel=1e-4)
    assert made("share", 0.001).sd(n, Fraction(1, 2)) == pytest.approx(1000 / n, rel=1e-4)
    for call in (
        lambda: GroupShare(1e-4).corner,
        lambda: GroupShare(1e-9).release([0, 1], rng=1),
        lambda: GroupShare(1e-9, empty="n >= 2").sd(5, Fraction(1, 5)),
    ):
        with pytest.raises(TrueupError, match=r"no table|a sum over"):
            call()


# -- many records ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10**4, 10**8, 10**9, 10**12, 10**30], ids=str)
def test_no_digits_are_lost_for_many_records(n):
    """To the leading order: 2λ·(m² + (1 − m)²)/n² for 0/1 records, λ = α/(1 − α)²."""
    lam = math.exp(-1) / (1 - math.exp(-1)) ** 2
    right = math.sqrt(2 * lam * 0.58) / n
    assert made("share", 1).sd(n, Fraction(3, 10)) == pytest.approx(right, rel=1e-6)
    rounded = (
        math.sqrt(2 * lam * 0.58 + 1 / 12) / n
    )  # a dithered total has a rounding error of 1/12
    assert made("mean", 1).sd(n, Fraction(3, 10)) == pytest.approx(rounded, rel=1e-6)
    ones = 3 * n // 10
    stated = made("share", 1).variance((n - ones, ones))
    assert stated == pytest.approx(right**2, rel=1e-3)


def test_the_moments_are_sums_over_all_pairs():
    """Written out pair by pair, about any centre, for counts in and beyond the box."""
    a, centre = 0.5, Fraction(1, 3)
    law = PairLaw(ShareLaw(Fraction(1, 2), 2, 1), lambda n: n / (n**2 + 1), box=4)
    for truth in ((0, 0), (0, 2), (1, 3), (7, 2), (20, 0), (9, 30)):
        expected, both = np.zeros(4), np.zeros(4)
        for cell in [(i, j) for i in range(100) for j in range(100) if max(i, j) > 4]:
            p = math.prod(
                a ** abs(t - s) / (1 + a) * (1 if t == 0 else 1 - a)
                for t, s in zip(cell, truth, strict=True)
            )
            if p > 1e-17:
                x, h = pair_at_one_half(cell)
                x -= 1 / 3
                here = p * np.array([x, x**2, x * h, h**2])
                expected, both = expected + here, both + here * (min(cell) > 0)
        assert law.moments(truth, centre) == pytest.approx(expected, rel=1e-10, abs=1e-13)
        assert law.moments(truth, centre, (2,)) == pytest.approx(both, rel=1e-10, abs=1e-13)


@functools.cache
def pair_at_one_half(cell: tuple[int, int]) -> tuple[float, float]:
    counts = TwoCounts(Fraction(1, 2))
    return tuple(
        float(counts.inverse(f, cell))
        for f in (share, lambda z, o: Fraction(z + o, (z + o) ** 2 + 1))
    )


# -- releases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["share", "mean"])
@pytest.mark.parametrize("epsilon", [1, 0.5], ids=str)
def test_draws_follow_the_rows(kind, epsilon):
    """The empty group and a small one, drawn 1,000 times: mean and spread within 5 errors."""
    mechanism, rng = made(kind, epsilon), np.random.default_rng(5)
    for values in ([], [0, 1, 1]):
        found = np.array([mechanism.release(values, rng).mean for _ in range(1000)])
        n, mean = len(values), sum(values) / len(values) if values else 0.5
        sd = mechanism.sd(n, Fraction(sum(values), n) if n else 0.5)
        assert abs(found.mean() - mean) < 5 * sd / math.sqrt(1000)
        assert np.std(found) == pytest.approx(sd, rel=0.15)


@pytest.mark.parametrize("epsilon", [2, 1, 0.5], ids=str)
@pytest.mark.parametrize("kind", ["share", "mean"])
def test_empty_and_full_groups_draw_as_often(kind, epsilon, monkeypatch):
    """Whatever comes out: how long a release takes tells nothing of how many records there are."""
    mechanism, drawn = made(kind, epsilon), []
    spied = [(groups, "publish", len), (groups, "below", int), (Row, "draw", type)]
    for owner, name, size in spied:
        asked = getattr(owner, name)

        def spy(given, *more, name=name, size=size, asked=asked):
            drawn.append((name, size(given)))
            return asked(given, *more)

        monkeypatch.setattr(owner, name, spy)
    calls = set()
    for seed in range(40):
        for values in ([], [1], [0, 1] * 30):
            drawn.clear()
            mechanism.release(values, rng=seed)
            calls.add(tuple(drawn))
    assert len(calls) == 1


def test_pairs_outside_of_no_records_are_those_of_one_record_each():
    """What is drawn beyond the corner is as likely as at (1, 1), given that it is positive."""
    for size in (1, 3):
        corner = dataclasses.replace(made("share", 1).corner, size=size)
        alpha, found = corner.counts.alpha, dict[tuple[int, int], Fraction]()
        sides = [Fraction(w, corner.sides.total) for w in corner.sides.weights]
        reach = range(-6, 6)
        mass = {z: (1 - alpha) / (1 + alpha) * alpha ** abs(z) for z in reach}
        for side, chance in enumerate(sides):
            for one in reach:
                for two in reach:
                    pair = corner.outside(side, [one, two])
                    found[pair] = found.get(pair, Fraction(0)) + chance * mass[one] * mass[two]
        whole = 1 - (1 - alpha**size) ** 2
        for (zeros, ones), p in found.items():
            if max(zeros, ones) < size + 5:
                right = (1 - alpha) ** 2 * alpha ** (zeros + ones - 2) / whole
                assert min(zeros, ones) >= 1
                assert max(zeros, ones) > size
                # of one or two counts all numbers of noise were drawn but those beyond reach
                assert abs(p / right - 1) < 3 * alpha**5


def test_a_private_release_is_drawn_by_opendp():
    pytest.importorskip("opendp", reason="private releases need OpenDP")
    for mechanism in (GroupShare(1), GroupMean(0.5), GroupShare(3, empty=0)):
        for values in ([], [1], [0, 1] * 50):
            release = mechanism.release(values)
            assert not release.simulated
            assert "not private" not in repr(release)
            assert release.noise == {"zeros": mechanism.noise, "ones": mechanism.noise}
    assert abs(GroupShare(30).release([0, 1] * 50).mean - 0.5) < 0.1


@pytest.mark.parametrize("empty", ["n >= 2", "midpoint"])
def test_the_error_of_a_count_under_hardly_any_noise(empty):
    """Counts of 1 and 0 are off by 1 with probabilities 2α and α; it was √α at ε = 60."""
    found = GroupShare(60, empty=empty).sd_count(1, 0)
    assert found == pytest.approx(math.sqrt(3 * math.exp(-60)), rel=1e-9)


def test_the_noise_is_no_narrower_than_stated():
    for epsilon in (1, 0.3, Fraction(1, 3), 0.1, 7):
        for empty in ("midpoint", 0, "n >= 4"):
            scale = Fraction(GroupShare(epsilon, empty=empty).noise.scale)
            assert 1 / Fraction(epsilon) <= scale <= (1 + Fraction(1, 2**39)) / Fraction(epsilon)


def test_a_table_that_was_tampered_with_is_not_used():
    """What the cache holds is made exact and checked; private or not, it is never trusted."""
    corner = made("share", 0.5).corner
    spoiled = dict(corner.rows)
    row = list(spoiled[1, 0].weights)
    heavy = row.index(max(row))
    row[heavy] *= 4
    spoiled[1, 0] = Row(tuple(row))
    assert dataclasses.replace(corner, rows=spoiled).problem(e_to(0.5, below=True))


BAD = [
    (lambda: GroupShare(1, empty="none"), "empty says"),
    (lambda: GroupShare(1, empty=2), "must lie in the bounds"),
    (lambda: GroupMean(1, bounds=(5, 6), empty=4), "must lie in the bounds"),
    (lambda: GroupShare(1, empty="n >= 0"), "empty says"),
    (lambda: GroupShare(1, empty=None), "empty must be"),
    (lambda: GroupShare(0), "epsilon must be"),
    (lambda: GroupShare(1).release([0, 0.5]), "neither 0 nor 1"),
    (lambda: GroupShare(1).release([0, math.nan]), "not finite"),
    (lambda: GroupMean(1, outside="raise").release([2]), "lie outside"),
    (lambda: GroupShare(1).sd(3, 0.5), "cannot have the mean"),
    (lambda: GroupMean(1).sd(-1, 0.5), "no group has"),
    (lambda: GroupMean(1).sd(2, 1.5), "no group has"),
    (lambda: GroupShare(800), "too large"),
    (lambda: GroupMean(1, bounds=(0, 1e300)).release([1e299] * 20, rng=1), "beyond doubles"),
    (lambda: GroupMean(1, bounds=(0, 1e-200)).release([0] * 20, rng=1), "beyond doubles"),
    (
        lambda: tu.mechanisms.TwoTotalsMean(1, (0, 1e300)).release([1e299] * 20, rng=1),
        "beyond doubles",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[m + str(i) for i, (_, m) in enumerate(BAD)])
def test_bad_input(call, message):
    with pytest.raises(TrueupError, match=message) as caught:
        call()
    assert "\nHint: " in str(caught.value)
