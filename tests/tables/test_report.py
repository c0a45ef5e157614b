"""Expected errors by size class, against simulated releases and sums that share no code."""

import dataclasses
import json
import math

import numpy as np
import pytest

import trueup as tu
from backends.engines import spark_session
from extras import needs
from frames.backends import BACKENDS, Backend
from frames.spark_frames import make, read
from trueup.tables.decision import Decision
from trueup.tables.size_classes import FINE, Size, shares
from trueup.tables.typical import Clipped, summed

pd, pl = needs("pandas"), needs("polars")

CELLS, LARGEST, RELEASES = 20_000, 5_000, 100
LAW = tu.DiscreteLaplace(5)
PAY = tu.unbiased("s/n", {"s": LAW, "n": LAW}, {"n": (1, None)})
KINDS = ("unbiased", "nearly_unbiased", "clipped")


def drawn(rng, size):
    """Return discrete Laplace noise of scale 5: a difference of geometric numbers."""
    p = 1 - math.exp(-1 / 5)
    return (rng.geometric(p, size) - rng.geometric(p, size)).astype(float)


@pytest.fixture(scope="module", params=[40.0, 0.5], ids=["pay", "share"])
def truth(request):
    rng = np.random.default_rng(7)
    n = np.floor(np.exp(rng.uniform(0, math.log(LARGEST + 1), CELLS)))
    return np.rint(request.param * np.exp(rng.normal(-0.02, 0.2, CELLS)) * n), n


@pytest.fixture(scope="module")
def release(truth):
    rng = np.random.default_rng(1)
    s, n = (q + drawn(rng, CELLS) for q in truth)
    return {"s": s.tolist(), "n": n.tolist()}


@pytest.fixture(scope="module")
def simulated(truth):
    """Return bias and mean squared error of an average cell, unbiased by theory and clipped.

    g = x·(1/y − λ(1/(y+1) − 2/y + 1/(y−1))) for y > 1, and x·(1 + κ/2) up to 1.
    """
    s, n = truth
    rng, alpha = np.random.default_rng(2), math.exp(-1 / 5)
    lam, kappa = alpha / (1 - alpha) ** 2, alpha / (1 - alpha)
    off = {"unbiased": [], "clipped": []}
    for _ in range(RELEASES):
        x, y = s + drawn(rng, CELLS), n + drawn(rng, CELLS)
        z = np.maximum(y, 2)
        inside = 1 / z - lam * (1 / (z + 1) - 2 / z + 1 / (z - 1))
        off["unbiased"].append(x * np.where(y > 1, inside, 1 + kappa / 2) - s / n)
        off["clipped"].append(x / np.maximum(y, 1) - s / n)
    return {kind: (np.mean(e), np.mean(np.square(e))) for kind, e in off.items()}


@pytest.fixture(scope="module")
def reported(release):
    return tu.report(pd.DataFrame(release), ratio=PAY)


def with_clipped(row):
    """Return the break-even with the clipped estimate, from the errors that are reported."""
    bias, spread = {}, {}
    for kind in ("unbiased", "clipped"):
        bias[kind] = row[f"{kind}_bias"] ** 2
        spread[kind] = (row[f"{kind}_average"] ** 2 - bias[kind]) * row["average_of"]
    return (spread["unbiased"] - spread["clipped"]) / (bias["clipped"] - bias["unbiased"])


def test_the_break_even_is_that_of_the_simulation(reported, simulated):
    bias, clipped = simulated["clipped"]
    shown = 1 + (simulated["unbiased"][1] - clipped) / bias**2
    assert shown / 2 < with_clipped(reported.rows[-1]) < 2 * shown


def test_the_break_even_is_with_the_rival_that_is_beaten_last(reported):
    """The naive estimate: it is closer than the clipped one, and for far more cells."""
    for row in reported.rows:
        at = row["break_even"]
        if at is None or at == 1:
            continue
        assert row["rival"] in ("clipped", "naive")
        errors = {}
        for kind in ("unbiased", "clipped", "naive"):
            bias = row[f"{kind}_bias"] ** 2
            spread = (row[f"{kind}_average"] ** 2 - bias) * row["average_of"]
            errors[kind] = [bias + spread / m for m in (at / 1.1, at * 1.1)]
        before, after = (min(errors["clipped"][i], errors["naive"][i]) for i in (0, 1))
        assert before < errors["unbiased"][0]
        assert after > errors["unbiased"][1]
        assert errors[row["rival"]][0] == before
    every = reported.rows[-1]
    assert every["rival"] == "naive"
    assert every["break_even"] > 5 * with_clipped(every)
    assert f"closest for {CELLS:,} cells: " in str(reported)


def test_errors_are_those_of_the_simulation(reported, simulated):
    every = reported.rows[-1]
    for kind, (_, square) in simulated.items():
        assert every[kind] == pytest.approx(math.sqrt(square), rel=0.1)
    bias, square = simulated["clipped"]
    average = math.sqrt(bias**2 + (square - bias**2) / CELLS)
    assert every["clipped_average"] == pytest.approx(average, rel=0.25)
    assert every["unbiased_average"] == pytest.approx(every["unbiased"] / math.sqrt(CELLS))


@pytest.fixture(scope="module")
def backends():
    return [*BACKENDS, Backend("spark", lambda data: make(spark_session(), data), read)]


@pytest.mark.parametrize("truth", [40.0], indirect=True, ids=["pay"])
def test_every_library_counts_the_same(backends, release, monkeypatch):
    """A report is made from sums in bins of the size, and from notes: on any library the same."""
    counted = []

    def decide(name, estimator, counts, cells):
        counted.append(counts)
        return Decision(name, "", "n", "", 0, (), None, None, "", ())

    monkeypatch.setattr("trueup.frames.report.decide", decide)
    s, n = (release[name][:2000] for name in ("s", "n"))
    data = {"emp": [None, *n], "s": [7.0, *s], "b": [5.0] * 2001}
    notes = {
        tu.report(backend(data), {"n": "emp"}, {"s": "b"}, ratio=PAY).decisions[0].notes
        for backend in backends
    }
    assert len(notes) == 1
    said = "\n".join(notes.pop())
    assert "root mean square was taken: s 5" in said
    assert "1 rows miss a number" in said
    assert "n = 0: " in said
    first, *others = counted
    assert first.cells.sum() == 2000
    assert first.sums["n"].sum() == sum(n)
    assert first.squares["s"].sum() == pytest.approx(sum(v**2 for v in s))
    for counts in others:
        assert counts.bins.tolist() == first.bins.tolist()
        assert counts.cells.tolist() == first.cells.tolist()
        for name in ("s", "n"):
            assert counts.sums[name] == pytest.approx(first.sums[name])
            assert counts.squares[name] == pytest.approx(first.squares[name])


def test_the_table_is_of_the_same_kind(backends):
    small = tu.report(pl.DataFrame({"n": [7.5, 30, -2]}), square=tu.unbiased("n**2", tu.Laplace(2)))
    rows = small.rows
    for backend in backends:
        frame = backend({"n": [1.0, 2.0]})
        table = dataclasses.replace(small, like=frame).table
        assert type(table) is type(frame)
        found = backend.read(table)
        assert list(found) == list(rows[0])
        for name, values in found.items():
            assert values == pytest.approx([row[name] for row in rows])


NOISE = 2 * math.exp(-1 / 5) / (1 - math.exp(-1 / 5)) ** 2


def inverse(n, clip):
    """Return E g(y) and E g(y)² for g = 1/max(y, 1), or for the unbiased one, by sums."""
    alpha = math.exp(-1 / 5)
    k = np.arange(-250, 251)
    mass = (1 - alpha) / (1 + alpha) * alpha ** np.abs(k)
    y = n + k
    lam, z = alpha / (1 - alpha) ** 2, np.maximum(y, 2)
    inside = 1 / z - lam * (1 / (z + 1) - 2 / z + 1 / (z - 1))
    g = 1 / np.maximum(y, 1) if clip else np.where(y > 1, inside, 1 + alpha / (1 - alpha) / 2)
    return mass @ g, mass @ g**2


def exact(s, n, first, second):
    """Return bias and mean squared error of x·g(y), given moments of g; empty cells have 0."""
    true = s / np.maximum(n, 1)
    return s * first - true, (s**2 + NOISE) * second - 2 * s * first * true + true**2


def test_errors_of_a_class_are_exact():
    """Cells of one size and one s: the class {1} is looked at there and nowhere else."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"s": 40 + 0 * drawn(rng, 4000), "n": 1 + drawn(rng, 4000)})
    law = {"s": tu.Noiseless(), "n": LAW}
    row = tu.report(frame, ratio=tu.unbiased("s/n", law, {"n": (1, 1000)})).rows[0]
    assert row["sizes"] == "1"
    typical = row["value"]  # s is estimated beside n; with n = 1 it is the ratio
    for kind, clip in (("unbiased", False), ("clipped", True)):
        first, second = inverse(1.0, clip)
        square = exact(typical, 1.0, first, second)[1] - NOISE * second  # s has no noise here
        assert row[kind] == pytest.approx(math.sqrt(square), rel=0.02)


@pytest.fixture(scope="module", params=[0.0, 0.1], ids=["none empty", "some empty"])
def by_size(request):
    """Return employees and establishments: establishments of one are small, some cells empty."""
    rng = np.random.default_rng(14)
    s = np.floor(np.exp(rng.uniform(0, math.log(LARGEST + 1), CELLS)))
    n = np.maximum(1, np.rint(s / np.exp(rng.normal(math.log(12), 0.5, CELLS))))
    full = rng.random(CELLS) >= request.param
    return s * full, n * full


def averages(s, n, rng, near, cells=400, times=2000):
    """Return the errors of averages of random cells, naive ones leaving out n ≤ 0."""
    at = rng.integers(0, len(n), (times, cells))
    x, y = (q[at] + drawn(rng, at.shape) for q in (s, n))
    true = (s / np.maximum(n, 1))[at].mean(axis=1)
    kept = np.where(y > 0, x / np.where(y > 0, y, 1), 0).sum(axis=1) / (y > 0).sum(axis=1)
    made = {
        "clipped": (x / np.maximum(y, 1)).mean(axis=1),
        "naive": kept,
        "nearly_unbiased": near(s=x, n=y).mean(axis=1),
    }
    return {kind: math.sqrt(np.mean((e - true) ** 2)) for kind, e in made.items()}


def test_values_that_depend_on_size_and_empty_cells(by_size, monkeypatch):
    """Ratios of the smallest cells are half the others', and bounds say that no cell is empty."""
    s, n = by_size
    sizes, at = np.unique(n, return_inverse=True)
    errors = {}
    for clip in (False, True):
        first, second = np.array([inverse(q, clip) for q in sizes])[at].T
        bias, square = (np.mean(e) for e in exact(s, n, first, second))
        errors[clip] = bias**2, square - bias**2
    (low, wide), (high, narrow) = errors.values()
    shown = (wide - narrow) / (high - low)
    near = tu.nearly_unbiased("s/n", PAY.noise, {"n": (1, None)}, cells=400)
    monkeypatch.setattr("trueup.tables.decision.nearly_unbiased", lambda *_, **__: near)
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"s": s + drawn(rng, CELLS), "n": n + drawn(rng, CELLS)})
        found.append(tu.report(frame, ratio=PAY, cells=400))
    every = [r.rows[-1] for r in found]
    assert shown / 2 < np.median([with_clipped(row) for row in every]) < 2 * shown
    known = averages(s, n, np.random.default_rng(9), near)
    for kind, error in known.items():
        assert np.median([row[f"{kind}_average"] for row in every]) == pytest.approx(error, rel=0.3)
    for row in every:
        chosen = min(known, key=lambda kind: row[f"{kind}_average"])
        assert known[chosen] < 1.2 * min(known.values())
    doubted = sum("look empty; they are counted with the value 0" in str(r) for r in found)
    assert doubted >= 2 if (n == 0).any() else doubted == 0
    closer = min(known, key=lambda kind: every[0][f"{kind}_average"]) == "naive"
    assert ("naive is closer here, with no bound on its bias" in str(found[0])) == closer


def test_shares_are_of_true_sizes_not_of_noisy_ones():
    rng = np.random.default_rng(4)
    n = np.repeat([3.0, 30.0, 300.0], [5000, 3000, 2000])
    x = n + drawn(rng, len(n))
    size = Size(("n",), LAW, 1, math.inf, True)
    bins, cells = np.unique(np.floor(FINE * np.arcsinh(x / size.unit)), return_counts=True)
    found = shares(size, bins, cells.astype(float))
    small = sum(s for c, s in zip(found.classes, found.shares, strict=True) if c.high <= 10)
    assert small == pytest.approx(0.5, abs=0.01)
    assert abs(np.mean(x < 10) - 0.5) > 0.05  # what counting noisy sizes gives


@pytest.mark.parametrize("truth", [40.0], indirect=True, ids=["pay"])
def test_cells_choose_the_nearly_unbiased_one(release, reported):
    some, every = tu.report(pl.DataFrame(release), ratio=PAY, cells=400), reported
    near = tu.nearly_unbiased("s/n", {"s": LAW, "n": LAW}, {"n": (1, None)}, cells=400)
    assert near.certified in "\n".join(some.conclusions["ratio"])
    assert some.rows[-1]["average_of"] == 400
    assert some.rows[-1]["nearly_unbiased_average"] < min(
        some.rows[-1][f"{kind}_average"] for kind in ("unbiased", "clipped")
    )
    assert some.rows[-1]["nearly_unbiased"] < every.rows[-1]["nearly_unbiased"]
    given = tu.report(pl.DataFrame(release), ratio=near)
    assert given.rows[0]["nearly_unbiased"] == pytest.approx(some.rows[0]["nearly_unbiased"])


def test_rows_are_plain_and_words_complete(reported):
    assert json.loads(json.dumps(reported.rows, allow_nan=False)) == reported.rows
    text = str(reported)
    assert "break-even" in text
    assert all(line in text for line in reported.conclusions["ratio"])
    assert "certified" in text
    assert "n = 0: " in text
    assert reported.rows[-1]["cells"] == CELLS
    assert abs(sum(row["cells"] for row in reported.rows[:-1]) - CELLS) < 10
    assert sum(row["too_noisy"] for row in reported.rows[:-1]) == pytest.approx(
        reported.rows[-1]["too_noisy"], abs=10
    )
    page = reported._repr_html_()
    assert page.count("<tr>") == len(reported.rows) + 2


def test_other_formulas():
    rng, law = np.random.default_rng(5), tu.DiscreteLaplace(2)
    a = rng.integers(20, 100, 3000).astype(float)
    p = 1 - math.exp(-1 / 2)
    noisy = [a * k + rng.geometric(p, 3000) - rng.geometric(p, 3000) for k in (1, 3)]
    frame = pd.DataFrame({"a": noisy[0], "b": noisy[1], "scale": 2.0})
    both = {"a": law, "b": law}
    found = tu.report(
        frame,
        share=tu.unbiased("a/(a + b)", both, "a >= 0, b >= 0, a + b >= 1"),
        square=tu.unbiased("a**2", law),
        cells=tu.unbiased("log(a)", law, (1, None)),
    )
    last = {row["estimate"]: row for row in found.rows if row["sizes"] == "all"}
    assert [*last] == ["cells", "share", "square"]
    assert last["share"]["value"] == pytest.approx(0.25, abs=0.01)
    assert last["square"]["value"] == pytest.approx(np.mean(a**2), rel=0.05)
    assert last["cells"]["value"] == pytest.approx(np.mean(np.log(a)), abs=0.05)
    assert last["square"]["break_even"] == 1  # the plug-in is noisier and biased
    assert found.decisions[1].size == "a + b"
    assert "no bias can be traded" in str(found)  # of a share, whose statistics do not stand apart
    scaled = tu.report(frame, scales={"a": "scale"}, square=tu.unbiased("a**2", law))
    same = [row | {"estimate": "square"} for row in found.rows if row["estimate"] == "square"]
    assert scaled.rows == same
    assert "their root mean square was taken: a 2" in str(scaled)


def test_what_does_not_exist_is_said():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"n": rng.uniform(1, 100, 500) + rng.normal(0, 2, 500)})
    near = tu.nearly_unbiased("1/n", tu.Gaussian(2), (1, 200), max_bias=0.2, relative=True)
    found = tu.report(frame, inverse=near)
    assert found.rows[-1]["unbiased"] is None
    assert found.rows[-1]["break_even"] is None
    assert "no unbiased estimator of 1/n was found" in str(found)
    assert "bias at most 20 % of the true value, certified" in str(found)
    assert "beat" not in str(found)


def test_scales_that_differ_much_are_refused():
    square = tu.unbiased("n**2", tu.Laplace(5))
    frame = pl.DataFrame({"n": [100.0, 90, 80], "b": [1.0, 2, 9]})
    for kind in (frame, frame.lazy()):
        with pytest.raises(tu.TrueupError, match=r"from 1 to 9; .*\nHint: make one for the rows"):
            tu.report(kind, scales={"n": "b"}, x=square)
    with pytest.raises(tu.TrueupError, match="Hint: by is no option here"):
        tu.report(frame, by="b", x=square)


def test_what_is_clipped_respects_a_condition_between_statistics():
    """Against sums over both noises; and the bias that is allowed is said not to use it."""
    noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
    share = tu.unbiased("s/n", noise, "0 <= s <= n, n >= 1")
    k = np.arange(-80, 81)
    p = noise["s"].pmf(k)
    s, n = np.maximum(3 + k, 0)[:, None], np.maximum(4 + k, 1)
    values = np.minimum(s, n) / n
    mean, square = Clipped(share).moments(s=np.array([3.0]), n=np.array([4.0]))
    assert mean[0] == pytest.approx(p @ values @ p, rel=1e-7)
    assert square[0] == pytest.approx(p @ values**2 @ p, rel=1e-7)
    with pytest.warns(tu.BoundWarning, match="s <= n is not used where a bias is allowed"):
        tu.nearly_unbiased("s/n", noise, "0 <= s <= n, n >= 1", max_bias=0.2, relative=True)


def test_scales_are_those_of_the_rows_looked_at():
    square = tu.unbiased("n**2", tu.Laplace(5))
    frame = pl.DataFrame({"n": [100.0, 90, None], "b": [1.0, 1, 100]})
    told = [str(tu.report(kind, scales={"n": "b"}, x=square)) for kind in (frame, frame.lazy())]
    assert all("their root mean square was taken: n 1\n" in f"{text}\n" for text in told)
    for bad in (None, -1.0):
        wrong = frame.with_columns(b=pl.Series([1.0, bad, 1.0]))
        for kind in (wrong, wrong.lazy()):
            with pytest.raises(tu.TrueupError, match="noise scale of n"):
                tu.report(kind, scales={"n": "b"}, x=square)


@pytest.mark.parametrize(
    ("f", "domain", "given"),
    [("s/n", "0 <= s <= n", {"empty": 0}), ("s/(s + n)", "s >= 0, n >= 0, s + n >= 1", {})],
    ids=["part of a whole", "corner"],
)
def test_errors_under_conditions_are_those_of_the_exact_law(f, domain, given, monkeypatch):
    est = tu.unbiased(f, dict.fromkeys("sn", tu.DiscreteLaplace(2)), domain, **given)
    frame = pd.DataFrame({"s": [1, 3, 9, 30], "n": [2, 5, 11, 60]})
    exact = est.sd(s=np.array([1.0, 4]), n=np.array([3.0, 20]))
    mean, variance = summed(est, est.noise, s=np.array([1.0, 4]), n=np.array([3.0, 20]))
    assert np.sqrt(variance) == pytest.approx(exact, rel=1e-4)
    assert mean == pytest.approx(est.expectation(s=np.array([1.0, 4]), n=np.array([3.0, 20])))
    monkeypatch.setattr(type(est), "sd", None)  # a second for each truth
    found = tu.report(frame, share=est, cells=9)
    assert found.rows[-1]["unbiased"] > 0


def test_words_say_what_was_made_for_what():
    frame = pl.DataFrame({"s": [400, 7, 9], "n": [10, 3, 0]})
    law = {"s": LAW, "n": LAW}
    near = tu.nearly_unbiased("s/n", law, {"n": (1, None)}, cells=400)
    said = str(tu.report(frame, ratio=near, cells=100))
    assert "certified; made for cells=400, not for the 100 looked at here" in said
    assert "the expected error of the nearly unbiased exceeds the value" in said
    empty = tu.report(frame, ratio=tu.unbiased("s/n", law, {"n": (0, None)}, empty=0), cells=100)
    assert "nearly unbiased: there is none for a value in empty cells" in str(empty)
    assert empty.rows[-1]["nearly_unbiased"] is None
    assert empty.rows[-1]["naive"] is not None


def test_a_value_in_empty_cells_is_no_bound_and_the_report_says_so():
    frame = pl.DataFrame({"s": [400, 7, 9, 0], "n": [10, 3, 0, -12]})
    law = {"s": LAW, "n": LAW}
    free = tu.report(frame, ratio=tu.unbiased("s/n", law, empty=0))
    assert any(row["low"] < 0 for row in free.rows)
    assert 'if n is a count, domain="n >= 0" says so' in str(free)
    told = tu.report(frame, ratio=tu.unbiased("s/n", law, "n >= 0", empty=0))
    assert all(row["low"] >= 0 for row in told.rows)
    assert told.rows[-1]["unbiased"] < free.rows[-1]["unbiased"]
    negative = tu.report(frame[["s"]], square=tu.unbiased("s**2", LAW))
    for found in (told, negative):
        assert "domain=" not in str(found)


def test_where_no_bound_moves_a_value_nothing_is_called_clipped():
    """The rival is the formula at published values, off by Var Z = 2·2² here."""
    frame = pl.DataFrame({"n": [3.0, 30.0, -2.0, 411.0]})
    found = tu.report(frame, square=tu.unbiased("n**2", tu.Laplace(2)))
    every = found.rows[-1]
    assert every["clipped"] is every["clipped_bias"] is None
    assert every["naive_bias"] == pytest.approx(2 * 2**2)
    assert every["break_even"] == 1
    (errors, wins, *_) = found.conclusions["square"]
    assert errors.endswith(" naive (n**2)")
    assert "clipped" not in errors + wins
    assert "–" not in errors
    bounded = tu.report(frame, square=tu.unbiased("n**2", tu.Laplace(2), (0, None)))
    (errors, wins, *_) = bounded.conclusions["square"]
    assert errors.endswith(" clipped (max(0, n)**2)")
    assert "clipped" in wins


@pytest.mark.parametrize(
    ("frame", "given", "message"),
    [
        ({"s": [1], "n": [2]}, {"cells": 0}, "cells must be at least 1, got 0"),
        ({"s": [None], "n": [None]}, {}, "the table has no row with numbers"),
        ({"s": [1], "m": [2]}, {}, "the table has no column 'n' for the statistic n"),
        ({"s": [1], "n": [2.5]}, {}, "the column 'n' has 2.5 at row 0"),
        (
            {"s": [1], "n": [2]},
            {"ratio": "s/n"},
            "ratio must be an estimator, got 's/n'\nHint: name one",
        ),
    ],
)
def test_refusals(frame, given, message):
    with pytest.raises(tu.TrueupError, match=message) as caught:
        tu.report(pl.DataFrame(frame), **{"ratio": PAY} | given)
    assert "\nHint: " in str(caught.value)


def test_one_row_is_enough():
    found = tu.report(pl.DataFrame({"s": [400, None], "n": [10, 3]}), ratio=PAY)
    assert found.rows[-1]["cells"] == 1
    assert "1 rows miss a number" in str(found)
