"""Totals of debiased cells: sums, weighted means, groups, and cells that share a statistic."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import trueup as tu
from extras import needs
from frames.backends import BACKENDS, same
from trueup.cli import main
from trueup.frames import of_polars
from trueup.frames.total import Cells, covariances
from trueup.tables.request import read_requests
from trueup.tables.totals import Totals

pl = needs("polars")

D = tu.DiscreteLaplace


@functools.cache
def mean_under(b):
    return tu.unbiased("s/n", {"s": tu.Laplace(2), "n": D(b)}, {"n": (1, None)})


MEAN = mean_under(2)
COUNT = tu.unbiased("1/n", D(2), (1, None))
DATA = {
    "state": ["B", "A", "B", None, "A", None],
    "industry": [1, 1, 2, 2, 1, 2],
    "s": [51.7, 13.0, -22.5, 12.0, 7.0, 31.0],
    "n": [103, 25, 70, 80, 60, 33],
    "w": [1.0, 2.0, 0.5, 1.0, -1.0, 3.0],
}


@pytest.fixture(params=BACKENDS, ids=repr)
def constructor(request):
    return request.param


def by_hand(keys, weights=None, mean=False):
    """Sums of g and of V̂ in plain Python, {key: (rows, total, stderr)}."""
    found = {}
    for i in range(len(DATA["s"])):
        key = tuple(DATA[k][i] for k in keys)
        w = 1.0 if weights is None else DATA[weights][i]
        cell = {"s": DATA["s"][i], "n": float(DATA["n"][i])}
        rows, total, spread, over = found.get(key, (0, 0.0, 0.0, 0.0))
        found[key] = (
            rows + 1,
            total + w * MEAN(**cell),
            spread + w * w * MEAN.variance(**cell),
            over + w,
        )
    return {
        key: (rows, total / (over if mean else 1), math.sqrt(v) / abs(over if mean else 1))
        for key, (rows, total, v, over) in found.items()
    }


KEYS = ([], ["state"], ["state", "industry"])
WEIGHED = ((None, False), ("w", False), ("w", True))


@pytest.mark.parametrize("keys", KEYS, ids=len)
def test_independent_cells(constructor, keys):
    """Every library has each grouping and each weighing; all pairs of them occur among the lot."""
    weights, mean = WEIGHED[(len(keys) + BACKENDS.index(constructor)) % 3]
    frame = constructor(DATA)
    by = keys or None
    result = tu.total(frame, by=by, weights=weights, average=mean, pay=MEAN)
    out = constructor.read(result)
    assert list(out) == [*keys, "rows", "pay", "pay_stderr"]
    want = by_hand(keys, weights, mean)
    got = list(zip(*out.values(), strict=True))
    assert len(got) == len(want)
    for *key, rows, value, stderr in got:
        r, v, e = want[tuple(key)]
        assert rows == r
        assert same(value, v, 1e-11)
        assert same(stderr, e, 1e-11)
    if constructor.eager:
        assert [tuple(row[: len(keys)]) for row in got] == list(want)  # as they first appear


def test_the_same_kind_comes_back(constructor):
    frame = constructor(DATA)
    assert type(tu.total(frame, by="state", pay=MEAN)) is type(frame)


def test_scales_in_totals(constructor):
    data = DATA | {"b": [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]}
    out = constructor.read(tu.total(constructor(data), scales={"n": "b"}, pay=MEAN))
    total = spread = 0.0
    for s, n, b in zip(data["s"], data["n"], data["b"], strict=True):
        own = mean_under(b)
        total, spread = total + own(s=s, n=float(n)), spread + own.variance(s=s, n=float(n))
    assert same(out["pay"][0], total, 1e-10)
    assert same(out["pay_stderr"][0], math.sqrt(spread), 1e-10)


def test_missing_numbers(constructor):
    data = DATA | {"s": [51.7, None, -22.5, 12.0, 7.0, 31.0]}
    frame = constructor(data)
    kept = {k: [v for i, v in enumerate(c) if i != 1] for k, c in data.items()}
    want = constructor.read(tu.total(constructor(kept), by="industry", pay=MEAN))
    out = constructor.read(tu.total(frame, by="industry", missing="skip", pay=MEAN))
    order = [out["industry"].index(i) for i in want["industry"]]
    for name, column in want.items():
        assert [out[name][i] for i in order] == pytest.approx(column)
    if constructor.eager:
        with pytest.raises(tu.TrueupError, match=r"1 of 6 rows miss a number.*row 1 .column 's'"):
            tu.total(frame, by="industry", pay=MEAN)
    else:
        null = constructor.read(tu.total(frame, by="industry", pay=MEAN))
        gone = dict(zip(null["industry"], null["pay"], strict=True))
        assert gone[1] is None
        assert gone[2] is not None


def test_groups_without_numbers_stay():
    frame = pl.DataFrame({"g": ["a", "b"], "n": [None, 4]})
    out = tu.total(frame, by="g", missing="skip", e=COUNT)
    assert out.rows() == [("a", 0, 0.0, 0.0), ("b", 1, COUNT(4.0), COUNT.stderr(4.0))]


@pytest.mark.parametrize("huge", [1e200, -math.inf, None])
def test_numbers_beyond_the_limit_are_missing_and_every_group_stays(constructor, huge):
    data = {"g": ["a", "a", "b"], "s": [huge, 1.0, huge], "n": [20, 21, 30]}
    frame, cell = constructor(data), {"s": 1.0, "n": 21.0}
    out = constructor.read(tu.total(frame, by="g", missing="skip", pay=MEAN))
    got = sorted(zip(*out.values(), strict=True))
    assert [row[:2] for row in got] == [("a", 1), ("b", 0)]
    assert got[0][2:] == pytest.approx((MEAN(**cell), MEAN.stderr(**cell)), rel=1e-12)
    assert got[1][2:] == (0, 0)
    if constructor.eager:
        beyond = "" if huge is None else rf" has {huge:g}: beyond ±1e100".replace("+", r"\+")
        with pytest.raises(tu.TrueupError, match=rf"2 of 3 rows miss.*row 0 .column 's'{beyond}"):
            tu.total(frame, by="g", pay=MEAN)
    else:
        assert constructor.read(tu.total(frame, by="g", pay=MEAN))["pay"] == [None, None]


@pytest.mark.parametrize("rows", [0, 2])
def test_a_mean_over_no_weight(constructor, rows):
    """It is refused in memory, and null where nothing can be refused."""
    data = {"s": [1.0, 2.0], "n": [20.0, 21.0], "w": [1.0, -1.0]}
    frame = constructor({name: np.array(values[:rows]) for name, values in data.items()})
    if constructor.eager:
        with pytest.raises(tu.TrueupError, match="add up to 0"):
            tu.total(frame, weights="w", average=True, m=MEAN)
    else:
        found = constructor.read(tu.total(frame, weights="w", average=True, m=MEAN))
        assert found == {"rows": [rows], "m": [None], "m_stderr": [None]}


def test_negative_variance_is_null(constructor):
    product = tu.unbiased("a*b", {"a": tu.Laplace(2), "b": tu.Laplace(2)})
    frame = constructor({"g": [1, 2], "a": [0.1, 9.0], "b": [0.1, 9.0]})
    out = constructor.read(tu.total(frame, by="g", p=product))
    errors = dict(zip(out["g"], out["p_stderr"], strict=True))
    assert errors[1] is None
    assert same(errors[2], product.stderr(a=9.0, b=9.0))


def test_totals_without_standard_errors(constructor):
    steep = tu.unbiased("exp(0.7*q)", tu.Laplace(1))
    frame = constructor({"q": [1.0, 2.0, 3.0], "g": [1, 1, 1]})
    with pytest.raises(tu.InfiniteVariance, match="stderr=False"):
        tu.total(frame, by="g", e=steep)
    out = constructor.read(tu.total(frame, by="g", stderr=False, e=steep))
    assert list(out) == ["g", "rows", "e"]
    assert out["e"] == pytest.approx([steep(1.0) + steep(2.0) + steep(3.0)])


def test_sums_do_not_lose_digits():
    x = np.full(10**6, 0.1)
    frame = pl.DataFrame({"q": x})
    total = tu.total(frame, e=tu.unbiased("q", tu.Laplace(1)))["e"][0]
    assert abs(total - math.fsum(x)) < 1e-11 * total


# -- cells that share a statistic: exact expectations ----------------------------------------------


def masses(noise, q, reach):
    k, b = np.arange(-reach, reach + 1), float(noise.scale)
    if isinstance(noise, tu.RoundedLaplace):
        tails = math.sinh(0.5 / b) * np.exp(-np.abs(k) / b)
        return q + k, np.where(k == 0, 1 - math.exp(-0.5 / b), tails)
    assert isinstance(noise, D)
    return q + k, math.tanh(0.5 / b) * np.exp(-np.abs(k) / b)


def expectations(estimator, cells, weights=None, mean=False, reach=6, scales=None):
    """(Var of the total, E of its estimate, E of the sum of variances), summed over all outcomes.

    ``cells`` holds, row by row, {statistic: (name of the draw, true value)}.
    """
    draws = {(s, name): q for cell in cells for s, (name, q) in cell.items()}
    laws = [
        masses(D(scales[s]) if scales else estimator.noise[s], q, reach)
        for (s, _), q in draws.items()
    ]
    points = np.meshgrid(*(x for x, _ in laws), indexing="ij")
    chance = np.ones(1)
    for _, p in laws:
        chance = np.multiply.outer(chance, p)
    chance = chance.ravel()
    values = {key: x.ravel() for key, x in zip(draws, points, strict=True)}
    rows, outcomes = len(cells), np.repeat(np.arange(chance.size), len(cells))
    columns = {"outcome": outcomes}
    for s in cells[0]:
        columns[s] = np.stack([values[s, cell[s][0]] for cell in cells], axis=1).ravel()
        names = [cell[s][0] for cell in cells]
        columns[f"draw of {s}"] = outcomes * 10 + np.tile(
            [names.index(n) for n in names], chance.size
        )
        if scales:
            columns[f"b{s}"] = np.full(rows * chance.size, scales[s])
    if weights is not None:
        columns["w"] = np.tile(np.asarray(weights, float), chance.size)
    frame = pl.DataFrame(columns)
    shared = {s: f"draw of {s}" for s in cells[0]}
    options = {
        "by": "outcome",
        "weights": None if weights is None else "w",
        "scales": {s: f"b{s}" for s in scales} if scales else None,
    }
    out = tu.total(frame, shared=shared, average=mean, e=estimator, **options)
    total = out["e"].to_numpy()
    spread = variances(frame, estimator, shared, mean, **options)
    stderr = out["e_stderr"].to_numpy()
    positive = spread >= 0
    assert np.allclose(stderr[positive] ** 2, spread[positive], rtol=1e-12)
    assert np.isnan(stderr[~positive]).all()
    alone = variances(frame, estimator, {}, mean, **options)
    expected = chance @ total
    return (chance @ (total - expected) ** 2, chance @ spread, chance @ alone, expected)


def variances(frame, estimator, shared, mean, by, weights, scales):
    """The estimated variances before the root, negative ones included."""
    requests = read_requests(frame.columns, None, scales, {"e": estimator}, kept=[by])
    cells = Cells(of_polars, frame, requests, Totals((by,), weights))
    variance = cells.output(requests[0], "variance")
    spread = cells.sums(cells.weight**2 * variance) + covariances(cells, requests[0], shared)
    return spread / cells.sums(cells.weight) ** 2 if mean else spread


def cell(**statistics):
    return statistics


B = Fraction(3, 10)
SHARED = {
    "one count for all": (
        ("s/n", {"s": D(B), "n": D(B)}, {"n": (1, None)}),
        [cell(s=(i, q), n=("a", 2)) for i, q in enumerate((3, 5, -1))],
    ),
    "two counts": (
        ("s/n", {"s": D(B), "n": D(B)}, {"n": (1, None)}),
        [cell(s=(0, 3), n=("a", 1)), cell(s=(1, 5), n=("a", 1)), cell(s=(0, 3), n=("b", 4))],
    ),
    "kinks and two components": (
        ("abs(n - 2)*s + m**2", {"s": D(B), "n": D(B), "m": D(B)}, {"n": (0, 5)}),
        [cell(s=(0, 3), n=("a", 1), m=("x", 2)), cell(s=(1, 2), n=("a", 1), m=("x", 2))],
    ),
    "two ways of sharing": (
        ("m/n", {"n": D(B), "m": D(B)}, {"n": (1, None)}),
        [cell(n=(a, q), m=(x, r)) for a, q, x, r in (
            ("a", 2, "x", 3), ("a", 2, "y", 1), ("b", 3, "x", 3), ("a", 2, "x", 3))],
    ),
    "a sum of a shared and an own count": (
        ("1/(n + k)", {"n": D(B), "k": D(B)}, {"n": (1, None), "k": (0, 9)}),
        [cell(n=("a", 1), k=(0, 1)), cell(n=("a", 1), k=(1, 0))],
    ),
    "a rounded count": (
        ("s/n + s**2", {"s": D(B), "n": tu.RoundedLaplace(B)}, {"n": (1, 9)}),
        [cell(s=(i, q), n=("a", 2)) for i, q in enumerate((3, 5, 1))],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::trueup.SelectionWarning")  # all values, not draws
@pytest.mark.filterwarnings("ignore::trueup.BoundWarning")
@pytest.mark.parametrize("kind", SHARED)
def test_variance_of_a_total_is_unbiased(kind):
    (f, noise, domain), cells = SHARED[kind]
    est = tu.unbiased(f, noise, domain)
    true, estimated, alone, _ = expectations(est, cells)
    assert estimated == pytest.approx(true, rel=1e-6)
    assert abs(alone - true) > 0.05 * true  # the covariances matter, and the test sees them


@pytest.mark.filterwarnings("ignore::trueup.SelectionWarning")  # all values, not draws
@pytest.mark.filterwarnings("ignore::trueup.BoundWarning")
def test_weights_means_and_scales_of_shared_cells():
    (f, noise, domain), cells = SHARED["two counts"]
    est = tu.unbiased(f, noise, domain)
    weights = [1.0, 2.5, -0.5]
    for mean in (False, True):
        true, estimated, _, _ = expectations(est, cells, weights, mean)
        assert estimated == pytest.approx(true, rel=1e-6)
    loud = tu.unbiased(f, {"s": D(5), "n": D(5)}, domain)
    scaled = expectations(loud, cells, weights, scales={"s": 0.3, "n": 0.25})
    assert scaled[1] == pytest.approx(scaled[0], rel=1e-6)
    assert scaled[3] == pytest.approx(3 / 1 + 2.5 * 5 / 1 - 0.5 * 3 / 4, rel=1e-6)


GAUSS = np.polynomial.hermite_e.hermegauss(6)


def laplace_rule(b, q, low, order=28):
    """Nodes and weights of E h(q + Z), Z ~ Lap(b), for h smooth beside ``low`` < q."""
    t, w = np.polynomial.laguerre.laggauss(order)
    x, v = np.polynomial.legendre.leggauss(order)
    half = (q - low) / 2
    middle = low + half * (1 + x)
    return (
        np.concatenate([low - b * t, middle, q + b * t]),
        np.concatenate(
            [
                w / 2 * math.exp(-(q - low) / b),
                v * half * np.exp(-(q - middle) / b) / (2 * b),
                w / 2,
            ]
        ),
    )


@pytest.mark.filterwarnings("ignore::trueup.BoundWarning")
@pytest.mark.parametrize("extension", ["optimal", 5])
def test_shared_laplace_and_gaussian_statistics(extension):
    """Gaussian s and t, Laplace n on [1, ∞): all outcomes by quadrature."""
    est = tu.unbiased(
        "s**2/n + t", {"s": tu.Gaussian(2), "n": tu.Laplace(1), "t": tu.Gaussian(1)},
        {"n": (1, None)}, extension,
    )  # fmt: skip
    nodes, mass = GAUSS[0], GAUSS[1] / math.sqrt(2 * math.pi)
    s, t = (3 + 2 * nodes, mass), (nodes, mass)
    n = laplace_rule(1.0, 3.0, 1.0)
    # two cells share s and n, and each has a t of its own; a third shares n only
    axes = [s, (5 + 2 * nodes, mass), n, t]
    points = np.meshgrid(*(x for x, _ in axes), indexing="ij")
    chance = np.ones(1)
    for _, p in axes:
        chance = np.multiply.outer(chance, p)
    s1, s2, n1, t1 = (x.ravel() for x in points)
    chance = chance.ravel()
    outcome = np.repeat(np.arange(chance.size), 3)
    tile = np.tile(np.arange(3), chance.size)
    frame = pl.DataFrame(
        {
            "outcome": outcome,
            "s": np.stack([s1, s1, s2], 1).ravel(),
            "n": np.repeat(n1, 3),
            "t": np.stack([t1, t1, t1], 1).ravel(),
            "ds": outcome * 2 + (tile == 2),
            "dn": outcome,
        }
    )
    options = {"by": "outcome", "weights": None, "scales": None}
    shared = {"s": "ds", "n": "dn", "t": "dn"}
    total = tu.total(frame, by="outcome", shared=shared, e=est)["e"].to_numpy()
    spread = variances(frame, est, shared, False, **options)
    alone = variances(frame, est, {}, False, **options)
    expected = chance @ total
    true = chance @ (total - expected) ** 2
    assert expected == pytest.approx((9 + 9 + 25) / 3, rel=1e-7)
    assert chance @ spread == pytest.approx(true, rel=1e-6)
    assert abs(chance @ alone - true) > 0.1 * true


def test_rows_that_share_more_than_a_rounded_count_are_refused():
    est = tu.unbiased("s/n", {"s": D(1), "n": tu.RoundedLaplace(1)}, {"n": (1, 9)})
    frame = pl.DataFrame({"s": [4, 4], "n": [3, 3], "id": [1, 1]})
    with pytest.raises(tu.TrueupError, match="share n, s in s/n has no closed form"):
        tu.total(frame, shared={"s": "id", "n": "id"}, e=est)


def test_shared_exponentials_are_refused():
    est = tu.unbiased("a*exp(s/9)", {"a": tu.Laplace(1), "s": tu.Gaussian(1)})
    frame = pl.DataFrame({"a": [1.0, 2.0], "s": [3.0, 3.0], "id": [1, 1]})
    with pytest.raises(tu.TrueupError, match="only if the formula is a polynomial in s"):
        tu.total(frame, shared={"s": "id"}, e=est)


def test_simulated_national_total():
    """40 states with 25 cells each: the error of the total is what was said, ±10 % is not."""
    rng = np.random.default_rng(7)
    states, cells, draws = 40, 25, 3000
    truth_n = rng.integers(40, 90, states)
    truth_s = rng.uniform(0, 100, (states, cells))
    est = tu.unbiased("s/n", {"s": tu.Laplace(3), "n": D(2)}, {"n": (1, None)})
    n = truth_n + D(2).sample((draws, states), rng)
    s = truth_s + tu.Laplace(3).sample((draws, states, cells), rng)
    true = (truth_s / truth_n[:, None]).sum()
    g = est(s=s, n=n[:, :, None].astype(float))
    error = g.sum(axis=(1, 2)).std()
    said = []
    for i in range(20):
        frame = pl.DataFrame(
            {"s": s[i].ravel(), "n": np.repeat(n[i], cells), "id": np.repeat(range(states), cells)}
        )
        out = tu.total(frame, shared={"n": "id"}, e=est)
        assert abs(out["e"][0] - true) < 5 * error
        said.append(out["e_stderr"][0] ** 2)
    assert math.sqrt(np.mean(said)) == pytest.approx(error, rel=0.08)
    assert math.sqrt(np.mean(said)) != pytest.approx(1.2 * error, rel=0.08)
    alone = tu.total(frame, e=est)["e_stderr"][0]
    assert alone < 0.5 * error  # forgetting that n is shared claims far too much


# -- arguments -------------------------------------------------------------------------------------


def test_shared_statistics_are_checked():
    frame = pl.DataFrame({"s": [1.0, 2.0], "n": [3, 4], "id": [1, 1]})
    with pytest.raises(tu.TrueupError, match=r"rows 0 and 1 agree in 'id'.*'n' has 3 and 4"):
        tu.total(frame, shared={"n": "id"}, e=MEAN)
    with pytest.raises(tu.TrueupError, match="shared= names 'q'"):
        tu.total(frame, shared={"q": "id"}, e=MEAN)
    with pytest.raises(
        tu.TrueupError, match=r"'state' for the draws of n; .*\nHint: .*: shared=\{'n': …\}"
    ):
        tu.total(frame, shared={"n": "state"}, e=MEAN)


def test_engines_do_not_share():
    lazy = pl.LazyFrame({"s": [1.0, 2.0], "n": [3, 3], "id": [1, 1]})
    with pytest.raises(tu.TrueupError, match="in memory only"):
        tu.total(lazy, shared={"n": "id"}, e=MEAN)


def test_refusals(constructor):
    frame = constructor(DATA)
    for message, options in {
        "no column 'county' for by; .*\nHint: .*: by=…": {"by": "county", "pay": MEAN},
        "no column 'v' for weights; .*\nHint: .*: weights=…": {"weights": "v", "pay": MEAN},
        "there is a column 'state' already": {"by": "state", "state": MEAN},
        "there is a column 'rows' already": {"rows": MEAN},
        "missing must be": {"missing": "ignore", "pay": MEAN},
        "no estimator": {},
    }.items():
        with pytest.raises(tu.TrueupError, match=message):
            tu.total(frame, **options)


def test_means_need_weights():
    frame = pl.DataFrame({"n": [3, 4], "w": [1.0, -1.0]})
    with pytest.raises(tu.TrueupError, match="add up to 0"):
        tu.total(frame, weights="w", average=True, e=COUNT)


def test_text_as_weights(constructor):
    with pytest.raises(tu.TrueupError, match="the column 'state' holds"):
        tu.total(constructor(DATA), weights="state", e=MEAN)


def test_pairs_of_a_group_by_brute_force():
    """The one-pass sum over pairs against every pair on its own, with renamed statistics."""
    noise, domain = {"s": tu.Laplace(2), "n": tu.Laplace(1)}, {"n": (1, None)}
    est = tu.unbiased("s/n", noise, domain)
    pair = tu.unbiased("s1*s2/n**2", {"s1": noise["s"], "s2": noise["s"], "n": noise["n"]}, domain)
    s = [4.0, -1.0, 2.5, 7.0]
    for n in (0.3, 2.0, 11.0):
        frame = pl.DataFrame({"s": s, "n": [n] * 4, "id": [0] * 4})
        requests = read_requests(frame.columns, None, None, {"e": est}, kept=[])
        cells = Cells(of_polars, frame, requests, Totals())
        (got,) = covariances(cells, requests[0], {"n": "id"})
        want = sum(
            est(s=a, n=n) * est(s=b, n=n) - pair(s1=a, s2=b, n=n)
            for a, b in itertools.permutations(s, 2)
        )
        assert got == pytest.approx(want, rel=1e-10)


def test_noisy_weights_are_refused(constructor):
    hint = r"weights 'n' are noisy themselves \(n \+ .*\n?Hint: .*tu\.ratio"
    with pytest.raises(tu.TrueupError, match=hint):
        tu.total(constructor(DATA), weights="n", average=True, pay=MEAN)


def test_a_copy_of_a_noisy_column_is_no_weight(eager_constructor):
    data = {"s": [51.7, 30.2, 8.0], "n": [103, 61, 9], "w": [103.0, 61.0, 9.0]}
    with pytest.raises(tu.TrueupError, match=r"weights 'w' are noisy themselves \(a copy of 'n'"):
        tu.total(eager_constructor(data), weights="w", pay=MEAN)
    known = data | {"w": [103.0, 61.0, 8.0]}
    assert tu.total(eager_constructor(known), weights="w", pay=MEAN) is not None
    level = data | {"n": [9, 9, 9], "w": [9.0, 9.0, 9.0]}  # one number proves nothing
    assert tu.total(eager_constructor(level), weights="w", pay=MEAN) is not None


class TestNonempty:
    """`average="nonempty"`: the average over cells that are not empty, with its error."""

    NOISE = dict.fromkeys("sn", tu.DiscreteLaplace(2))

    @staticmethod
    def drawn(seed, rows=4000):
        rng = np.random.default_rng(seed)
        n = np.floor(np.exp(rng.normal(np.log(13), 1.6, rows)))
        n[rng.random(rows) < 0.09] = 0
        s = np.rint(59 * n * np.exp(rng.normal(-0.02, 0.2, rows)))
        noise = tu.DiscreteLaplace(2)
        table = {"s": s + noise.sample(rows, rng=rng), "n": n + noise.sample(rows, rng=rng)}
        return table, float(np.mean(s[n > 0] / n[n > 0]))

    @pytest.mark.parametrize(
        ("low", "empty"), [(0, 0), (0, 7), (1, None)], ids=["convention", "another", "denied"]
    )
    @pytest.mark.filterwarnings("ignore:about .* cells")
    def test_it_is_what_was_true(self, low, empty):
        est = tu.unbiased("s/n", self.NOISE, {"n": (low, None)}, empty=empty)
        scores = []
        for seed in range(60):
            table, truth = self.drawn(seed)
            found = tu.total(pd.DataFrame(table), average="nonempty", pay=est)
            scores.append((found["pay"][0] - truth) / found["pay_stderr"][0])
        assert abs(np.mean(scores)) < 4 / math.sqrt(60)
        assert 0.65 < np.std(scores) < 1.35  # χ² of 60, at 4 standard deviations

    def test_all_cells_are_another_average(self):
        table, truth = self.drawn(0, 50_000)
        est = tu.unbiased("s/n", self.NOISE, {"n": (0, None)}, empty=0)
        all_cells = tu.total(pd.DataFrame(table), average=True, pay=est)
        others = tu.total(pd.DataFrame(table), average="nonempty", pay=est)
        assert all_cells["pay"][0] < truth - 4 * all_cells["pay_stderr"][0]
        assert others["pay"][0] == pytest.approx(truth, abs=4 * others["pay_stderr"][0])

    def test_engines_and_files_say_the_same(self, tmp_path):
        duckdb = needs("duckdb")
        table, _ = self.drawn(1)
        frame = pd.DataFrame(table | {"w": 1.0 + np.arange(4000) % 3, "g": np.arange(4000) % 2})
        est = tu.unbiased("s/n", self.NOISE, {"n": (0, None)}, empty=0)
        given = {"by": "g", "weights": "w", "average": "nonempty", "pay": est}
        ours = tu.total(frame, **given)
        relation = tu.total(duckdb.from_df(frame), **given).df().sort_values("g")
        source, out = tmp_path / "in.csv", tmp_path / "out.csv"
        frame.to_csv(source, index=False)
        argv = "--noise discrete_laplace(2) --domain n>=0 --empty 0 --total --nonempty --by g"
        assert (
            main(["debias", str(source), str(out), "pay = s/n", *argv.split(), "--weights", "w"])
            == 0
        )
        for other in (relation, pd.read_csv(out)):
            for name in ("rows", "pay", "pay_stderr"):
                assert other[name].to_numpy() == pytest.approx(ours[name].to_numpy(), rel=1e-9)

    def test_what_cannot_tell_empty_cells_is_refused(self):
        frame = pd.DataFrame({"s": [1.0], "n": [2.0]})
        noise = {"s": tu.Laplace(1), "n": tu.Laplace(1)}
        est = tu.unbiased("s/n", noise, {"n": (1, None)})
        with pytest.raises(tu.TrueupError, match="which cells are empty is not known"):
            tu.total(frame, average="nonempty", pay=est)
        with pytest.raises(tu.TrueupError, match="average must be True, False or 'nonempty'"):
            tu.total(frame, average="empty", pay=est)
