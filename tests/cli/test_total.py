"""``--total``: sums and means of debiased cells with standard errors, as ``tu.total`` has them."""

import csv
import io
import math
import sys

import pytest

import trueup as tu
from extras import needs
from trueup.files.duck import aligned

pa, pq, pc = needs("pyarrow"), needs("pyarrow.parquet"), needs("pyarrow.compute")
np = needs("numpy")

MEAN = {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(8)
    size = 3000
    table = pa.table(
        {
            "state": rng.choice(["MA", "NY", "VT"], size),
            "year": rng.integers(2020, 2023, size),
            "n": rng.integers(0, 57, size) + tu.DiscreteLaplace(2).sample(size, rng=rng),
            "s": rng.normal(300, 100, size),
            "w": rng.uniform(0.5, 2, size),
        }
    )
    pq.write_table(table, tmp_path / "cells.parquet")
    return table


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def by_hand(table, expected, keep=lambda row: True, weighted=False, mean=False):
    """Return Σ w·g and √Σ w²V̂ from the formulas of the theory."""
    total = spread = over = count = 0.0
    for row in table.to_pylist():
        if keep(row):
            w = row["w"] if weighted else 1.0
            g, v = expected(row["s"], row["n"])
            total, spread, over, count = total + w * g, spread + w * w * v, over + w, count + 1
    unit = over if mean else 1.0
    return count, total / unit, math.sqrt(spread) / unit


@pytest.mark.parametrize("mean", [False, True], ids=["sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_groups(mean, weighted, table, tmp_path, debias, expected):
    options = ["--weights", "w"] * weighted + ["--average"] * mean
    done = debias(tmp_path / "cells.parquet", "-", "--total", "--by", "state", *options)
    assert done.code == 0
    found = rows(done.out)
    assert list(found[0]) == ["state", "rows", "mean", "mean_stderr"]
    assert [row["state"] for row in found] == ["MA", "NY", "VT"]
    for row in found:
        count, total, stderr = by_hand(
            table, expected, lambda r, s=row["state"]: r["state"] == s, weighted, mean
        )
        assert int(row["rows"]) == count
        assert float(row["mean"]) == pytest.approx(total, rel=1e-9)
        assert float(row["mean_stderr"]) == pytest.approx(stderr, rel=1e-6)


@pytest.mark.filterwarnings("ignore:about .* cells are empty")  # the numbers are no draws of a law
def test_agrees_with_the_library(table, tmp_path, debias):
    est = tu.unbiased("s/n", MEAN, {"n": (1, None)})
    for by, options in (([], []), (["state", "year"], ["--by", "state,year"])):
        out = tmp_path / "out.parquet"
        done = debias(tmp_path / "cells.parquet", out, "--total", "--force", *options)
        assert done.code == 0
        assert f"{len(table):,} rows" in done.err
        ours = pq.read_table(out)
        theirs = tu.total(table, by=by or None, mean=est)
        theirs = theirs.sort_by([(name, "ascending") for name in by]) if by else theirs
        assert ours.column_names == theirs.column_names
        for name in ours.column_names:
            if name in by or name == "rows":
                assert ours[name].to_pylist() == theirs[name].to_pylist()
            else:
                np.testing.assert_allclose(
                    ours[name].to_numpy(), theirs[name].to_numpy(), rtol=1e-7
                )


def test_several_formulas_and_variance(table, tmp_path, debias, expected):
    done = debias(
        *(tmp_path / "cells.parquet", "-", "--total", "--variance", "--no-stderr"),
        formulas=["mean = s/n", "size = n"],
    )
    (row,) = rows(done.out)
    assert list(row) == ["rows", "mean", "mean_variance", "size", "size_variance"]
    _, total, stderr = by_hand(table, expected)
    assert float(row["mean"]) == pytest.approx(total, rel=1e-9)
    assert float(row["mean_variance"]) == pytest.approx(stderr**2, rel=1e-6)


def test_missing_numbers_are_refused_or_skipped(cells, debias, expected):
    done = debias(cells, "-", "--total", "--by", "state")
    assert (done.code, done.out) == (1, "")
    assert "1 of 5 rows miss a number: their total is unknown" in done.err
    done = debias(cells, "-", "--total", "--by", "state", "--skip-missing")
    assert [(row["state"], row["rows"]) for row in rows(done.out)] == [("MA", "2"), ("NY", "2")]
    total = sum(expected(s, n)[0] for s, n in ((51.7, 103), (30.25, 61)))
    assert float(rows(done.out)[0]["mean"]) == pytest.approx(total)


def test_no_rows(tmp_path, debias):
    source = tmp_path / "in.csv"
    source.write_text("s,n\n")
    (row,) = rows(debias(source, "-", "--total").out)
    assert [float(row[name]) for name in ("rows", "mean", "mean_stderr")] == [0, 0, 0]


def test_columns_that_are_not_there(table, tmp_path, debias):
    for options in (["--by", "county"], ["--weights", "county"]):
        done = debias(tmp_path / "cells.parquet", "-", "--total", *options)
        assert done.code == 1
        assert "no column 'county' for " + options[0] in done.err


def test_text_in_the_weights(tmp_path, debias):
    source = tmp_path / "in.csv"
    source.write_text("s,n,w\n1,2,3\n1,2,x\n")
    done = debias(source, "-", "--total", "--weights", "w")
    assert done.code == 1
    assert "line 3, column 'w': 'x' is no number" in done.err


def test_an_existing_column_may_be_summed_under_its_name(table, tmp_path, debias):
    noise = ("--noise", "s=laplace(2)")
    done = debias(tmp_path / "cells.parquet", "-", "--total", formulas=["s = s"], noise=noise)
    assert float(rows(done.out)[0]["s"]) == pytest.approx(pc.sum(table["s"]).as_py())


def test_a_table_on_a_terminal(table, tmp_path, debias, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    done = debias(tmp_path / "cells.parquet", "-", "--total", "--by", "state")
    head, *body = done.out.splitlines()
    assert head.split() == ["state", "rows", "mean", "mean_stderr"]
    assert [line.split()[0] for line in body] == ["MA", "NY", "VT"]


def test_aligned():
    text = aligned(["a", "bb"], [["long", 1], ["x", 22.5], ["", None]])
    assert text.split("\n") == ["a       bb", "long     1", "x     22.5", ""]


@pytest.mark.parametrize("read", [True, False], ids=["by the formula", "by no formula"])
def test_noisy_weights_are_refused(read, table, tmp_path, debias):
    spec = tmp_path / "release.toml"
    spec.write_text('[noise]\nw = "laplace(1)"\n')
    name = "n" if read else "w"
    done = debias(tmp_path / "cells.parquet", "-", "--total", "--spec", spec, "--weights", name)
    assert done.code == 1
    assert f"the weights '{name}' are noisy themselves ({name} + " in done.err
    assert "--ratio" in done.err


def test_ratios_of_sums_are_those_of_python(table, tmp_path, debias):
    options = ["--ratio", "--by", "state", "--interval", "0.9"]
    done = debias(tmp_path / "cells.parquet", "-", *options)
    assert done.code == 0
    assert done.err == "3,000 rows in 3 groups\n"
    found = rows(done.out)
    assert list(found[0]) == ["state", "rows", "mean", "mean_stderr", "mean_low", "mean_high"]
    expected = tu.ratio(
        table, "state", noise=MEAN, domain={"n": (1, None)}, interval=0.9, mean="s/n"
    )
    for row in expected.to_pylist():
        (same,) = [r for r in found if r["state"] == row["state"]]
        for name in ("rows", "mean", "mean_stderr", "mean_low", "mean_high"):
            assert float(same[name]) == pytest.approx(row[name], rel=1e-9)


def test_a_ratio_needs_no_bound_of_the_cells(table, tmp_path, run):
    noise = ["--noise", "s=laplace(2)", "--noise", "n=discrete_laplace(2)"]
    start = ("debias", str(tmp_path / "cells.parquet"), "-", "mean = s/n", *noise)
    expected = tu.ratio(table, noise=MEAN, domain={"n": (0, None)}, mean="s/n").to_pylist()[0]
    scaled = ["--scale", "n=w"]
    other = tu.ratio(table, scales={"n": "w"}, noise=MEAN, mean="s/n").to_pylist()[0]
    for options, law in (([], expected), (["--domain", "n>=0"], expected), (scaled, other)):
        done = run(*start, "--ratio", *options)
        assert done.code == 0, done.err
        assert done.err == "3,000 rows in 1 group\n"
        (found,) = rows(done.out)
        assert float(found["mean"]) == pytest.approx(law["mean"], rel=1e-9)
        assert float(found["mean_stderr"]) == pytest.approx(law["mean_stderr"], rel=1e-9)
    spec = tmp_path / "spec.toml"
    spec.write_text("[cells]\nmean = 400\n")
    done = run(*start, "--ratio", "--spec", str(spec))
    assert "warning: mean: [cells] is left out" in done.err
    assert float(rows(done.out)[0]["mean"]) == pytest.approx(expected["mean"], rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (["--ratio", "--cells", "400"], "--cells and --ratio do not go", "leave out --cells"),
        (["--ratio", "--max-bias", "0.1"], "--max-bias and --ratio do", "leave out --max-bias"),
        (["--ratio", "--total", "--variance"], "--total, --variance and", "leave out --total"),
        (["--by", "state"], "--by and --skip-missing go with --total or --ratio", "or --ratio"),
    ],
    ids=["cells", "max_bias", "total", "by"],
)
def test_what_does_not_go_together(options, message, hint, debias):
    done = debias("cells.parquet", "-", *options)
    assert done.code == 2
    assert message in done.err
    assert hint in done.err.split("Hint: ")[1]


def test_intervals_of_rows_are_those_of_python(cells, debias, run):
    done = debias(cells, "-", "--interval", "0.9", "--no-stderr")
    assert done.code == 0, done.err
    est = tu.unbiased("s/n", MEAN, {"n": (1, None)})
    found = rows(done.out)
    assert list(found[0])[-3:] == ["mean", "mean_low", "mean_high"]
    for row in found:
        if not row["s"]:
            assert row["mean_low"] == row["mean_high"] == ""
            continue
        ends = est.interval(s=float(row["s"]), n=float(row["n"]), level=0.9)
        assert (float(row["mean_low"]), float(row["mean_high"])) == pytest.approx(ends, rel=1e-10)
    assert (
        "--interval does not go with --total"
        in debias(cells, "-", "--total", "--interval", "0.9").err
    )


def test_totals_of_a_simulation_say_so(tmp_path, run):
    people = tmp_path / "people.csv"
    people.write_text("g,wage\n" + "".join(f"{'ab'[i % 2]},{i % 40}\n" for i in range(400)))
    keys = tmp_path / "keys.csv"
    keys.write_text("g\na\nb\n")
    made = tmp_path / "made.csv"
    asked = ["n = count", "wage = mean(wage, 0, 40)", "--by", "g", "--keys", keys, "--epsilon", "2"]
    assert run("release", people, made, *asked, "--seed", "1").code == 0
    spec = tmp_path / "made.toml"
    assert tu.read_spec(spec).simulated
    done = run("debias", made, "-", "--spec", spec, "--total", "--by", "g")
    assert done.code == 0, done.err
    assert {row["simulation"] for row in rows(done.out)} == {"not private"}


def test_an_address_is_no_output(table, tmp_path, debias):
    done = debias(tmp_path / "cells.parquet", "s3://bucket/out.parquet")
    assert done.code == 1
    assert "s3://bucket/out.parquet is not a local file" in done.err
