"""The warning about bounds that the data contradict."""

import math
import re
import warnings

import numpy as np
import pytest

import trueup as tu
from extras import needs
from frames.backends import BACKENDS
from trueup.cli import main
from trueup.tables.bounds import Bound

pl = needs("polars")

LAPLACE = tu.unbiased("1/q", tu.Laplace(2), (1, None))
DISCRETE = tu.unbiased("1/q", tu.DiscreteLaplace(2), (1, None))
BOTH = tu.unbiased("q**2", tu.Laplace(2), (0, 10))


def warned(estimator, values, **scales):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        columns = {"q": values} | ({"b": scales["b"]} if scales else {})
        tu.debias(pl.DataFrame(columns), scales={"q": "b"} if scales else None, e=estimator)
    assert all(w.category in (tu.BoundWarning, tu.SelectionWarning) for w in caught)
    return [str(w.message) for w in caught if w.category is tu.BoundWarning]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("size", [1, 10, 1000, 100_000])
def test_true_values_at_the_bound_do_not_warn(seed, size):
    """The worst case that the bounds allow, hundreds of times at odds of one in a million."""
    rng = np.random.default_rng([seed, size])
    assert not warned(LAPLACE, 1 + tu.Laplace(2).sample(size, rng))
    assert not warned(DISCRETE, 1 + tu.DiscreteLaplace(2).sample(size, rng))
    ends = rng.choice([0, 10], size) + tu.Laplace(2).sample(size, rng)
    assert not warned(BOTH, ends)
    b = rng.choice([0.5, 2.0, 9.0], size)
    assert not warned(LAPLACE, 1 + b * tu.Laplace(1).sample(size, rng), b=b)


@pytest.mark.parametrize("seed", range(5))
def test_true_values_beyond_the_bound_do(seed):
    rng = np.random.default_rng(seed)
    assert warned(LAPLACE, -1 + tu.Laplace(2).sample(2000, rng))
    assert warned(DISCRETE, -1 + tu.DiscreteLaplace(2).sample(2000, rng))
    below, above = warned(BOTH, rng.choice([-3, 13], 2000) + tu.Laplace(2).sample(2000, rng))
    assert "below the bound 0" in below
    assert "above the bound 10" in above
    b = rng.choice([0.5, 2.0, 9.0], 2000)
    assert warned(LAPLACE, -3 + b * tu.Laplace(1).sample(2000, rng), b=b)


def test_one_impossible_value_is_enough():
    (message,) = warned(LAPLACE, [5.0] * 50 + [-400.0])
    assert re.match(
        r"1 of 51 values of 'q' lie far below the bound 1 of q; .*Laplace\(2\)", message
    )
    assert "Hint:" in message
    assert not warned(LAPLACE, [5.0] * 50 + [-9.0])


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("kind", ["laplace", "discrete", "scales"])
def test_the_numbers_in_the_warning_are_those_of_the_table(kind, side):
    """Whole numbers repeat: they are counted as they stand, beyond the bound and far beyond it."""
    rng = np.random.default_rng(5)
    x = 5000.0 + side * rng.integers(-250, 1000, 3000)
    law = tu.DiscreteLaplace(2) if kind == "discrete" else tu.Laplace(2)
    estimator = tu.unbiased("2*q", law, (5000, None) if side < 0 else (0, 5000))
    scales = {"b": rng.choice([1.0, 40.0], 3000)} if kind == "scales" else {}
    (message,) = warned(estimator, x, **scales)
    beyond = int((side * (x - 5000) > 0).sum())
    numbers = re.match(
        r"([\d,]+) of 3,000 values of 'q' lie (below|above) the bound 5000 of q"
        r"(?:, ([\d,]+) of them far (?:below|above) it)?; .* would take ([\d,]+) of them there",
        message,
    )
    assert numbers
    assert int(numbers[1].replace(",", "")) == beyond
    assert numbers[2] == ("below" if side < 0 else "above")
    if numbers[3] is None:  # the odds of any value beyond the bound
        odds = 1 / (1 + math.exp(0.5)) if kind == "discrete" else 0.5
        assert numbers[4] == f"{3000 * odds:,.0f}"
    else:  # where the noise takes one in ten: P(Z ≤ −b·log 5) = 1/10
        distance = scales.get("b", 2.0) * math.log(5)
        assert int(numbers[3].replace(",", "")) == int((side * (x - 5000) >= distance).sum())
        assert numbers[4] == "300"


def test_a_number_repeated_in_many_cells_is_one_draw():
    """1 of 20 states is a bit below its bound, with a thousand cells each: no reason to warn."""
    n = np.repeat([40.0 + i for i in range(19)] + [-8.5], 1000)
    assert not warned(LAPLACE, n)
    assert not warned(DISCRETE, np.floor(n).astype(int))


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("law", [tu.DiscreteLaplace(2), tu.DiscreteGaussian(3)], ids=repr)
def test_equal_numbers_of_a_sorted_table_are_draws_of_their_own(law, order):
    """Counts sorted by size: a third of the true ones 0, or all of them as the bound says."""
    rng = np.random.default_rng(8)
    estimator = tu.unbiased("2*q", law, (1, None))
    true = np.where(rng.random(6000) < 1 / 3, 0, 1 + rng.geometric(0.3, 6000))
    noise = law.sample(6000, rng)
    for shift, expected in ((-3, True), (0, False)):
        values = np.sort(np.maximum(true, 1) + shift + noise)[::order]
        assert bool(warned(estimator, values)) == expected
    assert not warned(estimator, np.repeat([-8, *range(40, 59)], 1000)[::order])  # of 20 states


@pytest.mark.parametrize("kind", ["laplace", "discrete", "scales"])
def test_a_number_far_beyond_the_bound_in_very_many_cells(kind):
    """P(Z ≤ −9) is at most 0.007: that half of all rows repeat such a number is rare."""
    far = np.repeat([-8, 20], 1000)
    estimator = tu.unbiased("2*q", tu.DiscreteLaplace(2), (1, None))
    scales = {"b": np.repeat([2.0, 1.9], 1000)} if kind == "scales" else {}
    for values in (far, far[::-1], np.full(2000, -8), np.tile([-8, 20], 1000)):
        (message,) = warned(LAPLACE if kind == "laplace" else estimator, values, **scales)
        assert re.match(r"[12],000 of 2,000 values of 'q' lie (far )?below the bound 1", message)


def test_tables_that_repeat_numbers_warn_by_chance_as_seldom_as_is_said():
    """Every true value at the bound, each number in 100 rows: one table in fifty."""
    rng, found = np.random.default_rng(3), []
    bound = Bound("q", "q", None, tu.Laplace(2), 1.0, -1)
    for draws in (1, 2, 5):
        x = 1 + tu.Laplace(2).sample((1000, draws), rng)
        rows = np.repeat(x, 100, axis=1)
        found += [bound.doubt(r, None, r.size, r.min()) is not None for r in rows]
    assert 0.01 < np.mean(found) < 0.03  # 4 standard errors of 3,000 tables


@pytest.mark.parametrize("law", [tu.DiscreteLaplace(2), tu.DiscreteGaussian(3)], ids=repr)
def test_tables_sorted_within_groups(law):
    """60 groups of 50 cells, each sorted by its counts: half the true ones below the bound."""
    rng = np.random.default_rng(8)
    noise = law.sample(3000, rng).reshape(60, 50)
    true = np.where(rng.random((60, 50)) < 1 / 2, 1, 1 + rng.geometric(0.2, (60, 50)))
    estimator = tu.unbiased("2*q", law, (1, None))
    for shift, expected in ((4, True), (0, False)):
        values = np.sort(true - shift * (true == 1) + noise, axis=1).ravel()
        assert bool(warned(estimator, values)) == expected
        if isinstance(law, tu.DiscreteLaplace):
            assert bool(warned(estimator, values, b=np.full(3000, 2.0))) == expected


def test_many_impossible_values_warn_once():
    assert len(warned(LAPLACE, [-1e4] * 9)) == 1


def test_clamped_releases_do_not_warn():
    values = np.maximum(1, 1 + tu.Laplace(2).sample(10_000, 3))
    assert not warned(LAPLACE, values)


def test_unbounded_and_unknown_laws_do_not_warn():
    assert not warned(tu.unbiased("q", tu.Laplace(1)), [-1e9] * 10)
    assert not warned(tu.unbiased("q", tu.Moments([0, 2]), (0, None)), [-1e9] * 10)
    both = tu.DiscreteLaplace(1) + tu.DiscreteLaplace(2)
    assert not warned(tu.unbiased("q", both, (0, None)), [-3, -2, -1, 0, 4, 9])


@pytest.mark.parametrize("backend", [b for b in BACKENDS if b.eager], ids=repr)
def test_the_warning_points_at_the_caller(backend):
    frame = backend({"q": [-1e3] * 3 + [2.0], "g": [1, 1, 2, 2]})
    with pytest.warns(tu.BoundWarning, match="'q'") as caught:
        tu.debias(frame, e=LAPLACE)
    assert caught[0].filename == __file__
    with pytest.warns(tu.BoundWarning, match="'q'") as caught:
        tu.total(frame, by="g", e=LAPLACE)
    assert caught[0].filename == __file__


ROWS = np.arange(400)
SAID_BY_BOTH = {
    # P(Binomial(400, ½) ≥ 248) is 9e-7
    "62 % of 400 rows below": (np.where(ROWS < 248, 0.9 - ROWS / 1000, 5.0 + ROWS), True),
    "61 % of 400 rows below": (np.where(ROWS < 244, 0.9 - ROWS / 1000, 5.0 + ROWS), False),
    "one value repeated": (np.where(ROWS < 300, -4.5, 5.0 + ROWS), False),
    "one impossible value": (np.where(ROWS == 77, -80.0, 5.0), True),
    "nothing known": (np.full(400, np.nan), False),
}


@pytest.mark.parametrize("name", SAID_BY_BOTH)
@pytest.mark.parametrize("lattice", [False, True], ids=["laplace", "discrete"])
def test_python_and_the_command_line_warn_of_the_same(name, lattice, tmp_path, capsys):
    needs("duckdb")
    q, expected = SAID_BY_BOTH[name]
    if lattice:  # runs of one number are one draw: next to each other are others
        q = np.where((ROWS % 2 == 1) & (q != -4.5) & (q < 1), np.floor(q) - 1, np.floor(q))
    law = tu.DiscreteLaplace(2) if lattice else tu.Laplace(2)
    if name.startswith("6") and lattice:
        expected = True  # at the bound or beyond is less likely: 0.38 each
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pl.DataFrame({"q": q}).write_parquet(source)
    noise = f"q={'discrete_' * lattice}laplace(2)"
    options = ["--noise", noise, "--domain", "q>=1"]
    assert main(["debias", str(source), str(out), "e = 1/q", *options]) == 0
    said = capsys.readouterr().err
    assert bool(warned(tu.unbiased("1/q", law, (1, None)), q)) == expected
    assert ("the bound 1 of q" in said) == expected


def test_large_tables_are_judged_by_a_sample_and_by_their_farthest_value(tmp_path, capsys):
    """No sample of 65,536 of 200,000 rows need hold the one value that cannot be."""
    needs("duckdb")
    q = 1 + np.abs(tu.Laplace(2).sample(200_000, 4))
    for value, expected in ((-9.0, False), (-90.0, True)):
        q[12_345] = value
        source, out = tmp_path / "in.parquet", tmp_path / f"{expected}.parquet"
        pl.DataFrame({"q": q}).write_parquet(source)
        arguments = ["e = 1/q", "--noise", "q=laplace(2)", "--domain", "q>=1"]
        assert main(["debias", str(source), str(out), *arguments]) == 0
        told = r"1 of (200,000 values of q|[\d,]+ values of q looked at) lie far below"  # by chance
        assert bool(re.search(told, capsys.readouterr().err)) == expected
        assert bool(warned(LAPLACE, q)) == expected
    pl.DataFrame({"q": q - 5}).write_parquet(source)
    assert main(["debias", str(source), str(out), *arguments, "--force"]) == 0
    words = r"([\d,]+) of ([\d,]+) values of '?q'? looked at lie below the bound 1 of q"
    told = re.search(words, capsys.readouterr().err)
    assert 0.2 < int(told[1].replace(",", "")) / 200_000 < int(told[2].replace(",", "")) / 200_000
    assert int(told[2].replace(",", "")) == pytest.approx(65_536, rel=0.02)
    (message,) = warned(LAPLACE, q - 5)
    assert re.search(words, message)[1] == f"{int((q[::4] - 5 < 1).sum()):,}"
