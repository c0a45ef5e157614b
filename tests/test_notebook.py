"""What a notebook shows: tables of what repr says, and mathematics."""

from html.parser import HTMLParser

import pandas as pd
import pytest

import trueup as tu
from extras import needs
from trueup.mechanisms import GroupMean, PerRecordSum, Shares


class Cells(HTMLParser):
    """The cells of a table, row by row, and its caption."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.caption, self._inside = [], "", None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self._inside = tag
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "caption":
            self.caption += data
        else:
            self.rows[-1][-1] += data


def shown(thing):
    return Cells(thing._repr_html_())


def test_a_mean():
    release = GroupMean(1).release([0.2, 0.9] * 100, rng=1)
    found = shown(release)
    assert found.rows == [
        ["", "estimate", "standard error"],
        ["mean", "0.5472", "0.0050"],
        ["count", "201.0", ""],
    ]
    assert found.caption == "simulation: not private"
    assert repr(release) == "<mean 0.5472 ± 0.0050, count 201.0; simulation: not private>"


def test_a_total():
    release = PerRecordSum("root:2", scale=2).release([120.0, 80.5], rng=1)
    found = shown(release)
    assert [row[0] for row in found.rows[1:]] == ["total"]
    assert f"total {found.rows[1][1]} ± {found.rows[1][2]}" in repr(release)


def test_shares_with_names_that_are_markup():
    release = Shares(1, ["<b>", "a & b"]).release(["<b>"] * 30 + ["a & b"] * 20, rng=3)
    assert [row[0] for row in shown(release).rows[1:]] == ["<b>", "a & b", "count"]


def test_a_private_table():
    people = pd.DataFrame({"area": ["A", "B"] * 200, "wage": [10.0, 30.0] * 200})
    made = tu.release(
        people, by="area", keys={"area": ["A", "B", "C"]}, epsilon=1, rng=1,
        people="count", wage="mean(wage, 0, 40)",
    )  # fmt: skip
    found = shown(made)
    assert found.rows[0] == list(made.table.columns)
    assert [row[0] for row in found.rows[1:]] == ["A", "B", "C"]
    at = found.rows[0].index("wage")
    assert [float(row[at]) for row in found.rows[1:]] == pytest.approx(
        list(made.table["wage"]), 1e-5
    )
    assert "epsilon = 1" in found.caption
    assert "NOT private" in found.caption
    many = tu.release(
        people,
        by="area",
        keys={"area": [f"{k:02}" for k in range(30)]},
        epsilon=1,
        rng=1,
        n="count",
    )
    assert len(shown(many).rows) == 21
    assert "the first 20 of 30 groups" in shown(many).caption


def test_a_frontier():
    front = tu.frontier("1/n", tu.DiscreteGaussian(3), (12, 40), biases=[0.05, 1e-9])
    found = shown(front)
    assert found.rows[0] == ["bias bound", "largest sd", "at", "average sd", "best from"]
    for row in found.rows[1:]:
        (line,) = [line for line in repr(front).splitlines() if line.split()[0] == row[0]]
        assert line.split() == " ".join(row).split()


def test_an_estimator_is_mathematics_and_one_line_draws_it():
    est = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    assert est._repr_latex_().startswith("$")
    assert r"\frac{1}{n} - \frac{8}{n^{3}}" in est._repr_latex_()
    needs("matplotlib").use("Agg")
    assert len(est.plot().get_lines()) >= 2
