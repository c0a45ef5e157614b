"""``trueup report``: what ``tu.report`` says, of a file."""

import csv

import pytest

import trueup as tu
from extras import needs

pl = needs("polars")

NOISE = ("--noise", "n=laplace(2)")
ROWS = {"n": [7.5, 30.0, -2.0, 411.0, 80.25], "square": [1, 2, 3, 4, 5]}


@pytest.fixture
def table(tmp_path):
    pl.DataFrame(ROWS).write_csv(tmp_path / "cells.csv")
    return tmp_path / "cells.csv"


def test_says_what_the_library_says(table, tmp_path, run):
    figures, picture = tmp_path / "figures.csv", tmp_path / "picture.svg"
    done = run("report", table, "square = n**2", *NOISE, "--table", figures, "--plot", picture)
    found = tu.report(pl.DataFrame(ROWS), square=tu.unbiased("n**2", tu.Laplace(2)))
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{found}\n"
    written = list(csv.DictReader(figures.read_text(encoding="utf-8").splitlines()))
    assert [float(row["unbiased"]) for row in written] == [row["unbiased"] for row in found.rows]
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_cells_are_those_of_the_total(tmp_path, run):
    (tmp_path / "cells.csv").write_text("n;x\n7,5;1\nNA;2\n30;3\n", encoding="utf-8")
    form = ("--delimiter", ";", "--decimal", ",", "--null", "NA", "--domain", "n>=1")
    done = run("report", tmp_path / "cells.csv", "inverse = 1/n", *NOISE, *form, "--cells", "9")
    assert done.code == 0
    assert "the average of 9 such cells" in done.out
    assert "certified; made for cells=9\n" in done.out
    assert "1 rows miss a number" in done.out


def test_cells_go_with_a_value_in_empty_cells_but_for_rows(tmp_path, run):
    rows = pl.DataFrame({"s": [20, 3, 0, 41], "n": [7, 30, -2, 12]})
    rows.write_csv(tmp_path / "cells.csv")
    law, given = "discrete_laplace(2)", ("--domain", "n>=0", "--empty", "0")
    done = run("report", tmp_path / "cells.csv", "mean = s/n", "--noise", law, *given, "--cells=9")
    noise = dict.fromkeys("sn", tu.DiscreteLaplace(2))
    found = tu.report(rows, mean=tu.unbiased("s/n", noise, {"n": (0, None)}, empty=0), cells=9)
    assert (done.code, done.out) == (0, f"{found}\n")
    out = tmp_path / "out.csv"
    done = run("debias", tmp_path / "cells.csv", out, "mean = s/n", "--noise", law, *given,
               "--cells=9")  # fmt: skip
    assert done.code == 1
    assert "no bias can be bounded" in done.err
    scaled = ("--noise", "s=laplace(2)", "--noise", "n=discrete_laplace", "--scale", "n=s")
    done = run("debias", tmp_path / "cells.csv", out, "mean = s/n", *scaled, "--domain", "n>=1",
               "--cells=9")  # fmt: skip
    assert (done.code, "noise scale per row, of n, and a bias" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ((), 2, "there is no formula\nHint: give one after IN"),
        (("x = n**2", *NOISE, "--plot", "a.gif"), 1, "--plot a.gif is no kind of picture"),
        (("x = m**2", "--noise", "laplace(2)"), 1, "cells.csv has no column 'm'"),
    ],
)
def test_refusals(given, code, message, table, run):
    done = run("report", table, *given)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert "\nHint: " in done.err


def test_files_are_replaced_only_if_told(table, tmp_path, run):
    figures = tmp_path / "figures.csv"
    figures.write_text("mine", encoding="utf-8")
    asked = ("report", table, "square = n**2", *NOISE, "--table", figures)
    done = run(*asked)
    assert done.code == 1
    assert f"{figures} exists\nHint: add --force" in done.err
    assert figures.read_text(encoding="utf-8") == "mine"
    assert run(*asked, "--force").code == 0
    assert figures.read_text(encoding="utf-8").startswith("estimate,sizes,")


def test_a_value_in_empty_cells_is_no_bound_and_what_is_proposed_is_one(tmp_path, run):
    pl.DataFrame({"s": [20, 3, 0, 41], "n": [7, 30, -9, 12]}).write_csv(tmp_path / "cells.csv")
    asked = ["report", tmp_path / "cells.csv", "mean = s/n", "--noise", "discrete_laplace(2)"]
    done = run(*asked, "--empty", "0")
    assert (done.code, "\n-9 to -5 " in done.out) == (0, True)
    assert 'if n is a count, --domain "n>=0" says so' in done.out
    done = run(*asked, "--empty", "0", "--domain", "n>=0")
    assert (done.code, " to -" in done.out, "--domain" in done.out) == (0, False, False)
    assert "it is no bound" in " ".join(run("report", "--help").out.split())
