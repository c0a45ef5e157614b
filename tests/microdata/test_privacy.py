"""The privacy of a table, computed: one unit more changes what is drawn by at most ε.

The noise is caught where OpenDP is asked for it, so that the log ratio of the probabilities of
every output is a fraction. At worst it is ε and no less, and with half the noise it is more.
"""

import dataclasses
import tomllib
from fractions import Fraction

import pytest

import trueup as tu
from extras import needs
from trueup.microdata import private_table, release
from trueup.microdata.design import Design

MEASURES = {
    "n": "count",
    "wage": "mean(wage, 0, 100)",
    "sex": "share(sex, ['f', 'm'])",
    "hours": "sum(hours, -5, 60)",
}
OTHERS = [("A", 1, 30.0, "f", 8.0), ("A", 2, 1e9, "m", -70.0), ("B", 2, 55.5, "m", 0.25)]
NEWCOMERS = {
    "at the upper ends": [("A", 9, 1e300, "f", 1e9)] * 3,
    "at the lower end": [("B", 9, -1e300, "m", 60.0)] * 3,
    "in several groups": [("A", 9, 100.0, "m", 60.0), ("B", 9, 0.0, "f", 60.0)],
    "in the middle": [("A", 9, 50.0, "m", 1.0)] * 3,
    "not public": [("C", 9, 50.0, "m", 1.0)] * 3,
}


@pytest.fixture
def drawn(monkeypatch):
    """Return what a private release of rows draws noise around, for one choice of rows."""
    needs("opendp")
    from prove.privacy import caught

    def drawn(rows, at_most, **asked):
        monkeypatch.setattr(release, "_secret", lambda rng: "the same rows of the others")
        columns = dict(
            zip(["state", "id", "wage", "sex", "hours"], zip(*rows, strict=True), strict=True)
        )
        frame = needs("pandas").DataFrame(columns)
        given = {"epsilon": Fraction(3, 7), "unit": "id", "at_most": at_most, **MEASURES, **asked}
        with caught() as seen:
            tu.release(frame, "state", ["A", "B", "empty"], **given)
        return seen

    return drawn


@pytest.mark.parametrize("newcomer", NEWCOMERS)
@pytest.mark.parametrize("at_most", [1, 2])
def test_one_unit_moves_what_is_drawn_by_epsilon_at_most(drawn, newcomer, at_most):
    from prove.privacy import loss

    more = [*OTHERS, *NEWCOMERS[newcomer]]
    found = loss(drawn(OTHERS, at_most), drawn(more, at_most))
    assert found <= Fraction(3, 7)
    if newcomer.startswith("at the"):
        assert found > Fraction(3, 7) * (1 - Fraction(1, 2**40))
    if newcomer == "not public":
        assert found == 0


@pytest.mark.parametrize("drawn_at", [0, 1, 2], ids=["none", "half", "nearly all"])
def test_the_number_that_rounds_a_mean_may_be_known(drawn, drawn_at, monkeypatch):
    """For every U that is published with them, two counts of a mean lose ε at most."""
    from prove.privacy import loss

    def with_u(rows):
        monkeypatch.setattr(
            "trueup.microdata.noisy_totals.below",
            lambda steps, rng: [0, steps // 2, steps - 1][drawn_at],
        )
        return drawn(rows, 1, n="mean(hours, 0, 3)", sex="share(sex, ['f', 'm', 'x'])")

    found = [
        loss(with_u(OTHERS), with_u([*OTHERS, ("A", 9, wage, "f", hours)]))
        for wage, hours in ((0.0, 3.0), (33.3, 1.1), (100.0, 0.0))
    ]
    assert max(found) <= Fraction(3, 7)


def test_half_the_noise_is_seen(drawn, monkeypatch):
    from prove.privacy import loss

    honest = Design._scale
    monkeypatch.setattr(Design, "_scale", lambda *given: honest(*given) / 2)
    more = [*OTHERS, *NEWCOMERS["at the upper ends"]]
    assert loss(drawn(OTHERS, 2), drawn(more, 2)) > Fraction(3, 7) * Fraction(3, 2)


def test_more_rows_than_at_most_would_be_seen(drawn, monkeypatch):
    from prove.privacy import loss

    more = [*OTHERS, *NEWCOMERS["at the upper ends"]]
    few = drawn(OTHERS, 1)
    monkeypatch.setattr(
        release.engines,
        "totals",
        lambda data, reading, *rest, totals=release.engines.totals, **order: totals(
            data,
            dataclasses.replace(reading, design=dataclasses.replace(reading.design, at_most=3)),
            *rest,
            **order,
        ),
    )
    assert loss(few, drawn(more, 1)) > Fraction(3, 7)


def test_weights_split_the_budget_and_nothing_is_left_over(drawn):
    from prove.privacy import loss

    more = [*OTHERS, *NEWCOMERS["at the upper ends"]]
    few, many = (drawn(r, 2, weights={"wage": 5, "n": 0.1}) for r in (OTHERS, more))
    assert Fraction(3, 7) * (1 - Fraction(1, 2**40)) < loss(few, many) <= Fraction(3, 7)


def test_rows_of_a_unit_are_chosen_at_random_whatever_their_values():
    """Of 3,000 people with three rows each, every row has the same chance."""
    pandas, people = needs("pandas"), 3000
    rows = {
        "place": ["first", "second", "third"] * people,
        "id": [i for i in range(people) for _ in range(3)],
        "wage": [1.0, 50.0, 1e6] * people,
    }
    made = tu.release(
        *(pandas.DataFrame(rows), "place", ["first", "second", "third"], 1000),
        unit="id",
        at_most=1,
        rng=4,
        n="count",
        wage="mean(wage, 0, 100)",
    )
    counts = [round(n) for n in made.columns["n"]]
    assert sum(counts) == people
    assert all(abs(n - people / 3) < 4 * (people * 2 / 9) ** 0.5 for n in counts)


def test_a_loss_that_depends_on_the_record_is_no_epsilon():
    frame = needs("pandas").DataFrame({"x": [1.0, 2.0], "firm": [1, 1]})
    asked = {"epsilon": 1, "rng": 1, "p": "per_record(x, root:3, 1)"}
    alone = tu.release(frame, **asked)
    assert alone.privacy.epsilon is None
    assert "epsilon" not in repr(alone)
    assert "per-record loss through p" in repr(alone)
    assert "epsilon" not in tomllib.loads(alone.spec)["privacy"]
    assert "add up" not in str(alone.privacy)
    both = tu.release(frame, **asked, n="count", unit="firm", at_most=2)
    assert "epsilon 1 + per-record loss through p" in repr(both)
    told = tomllib.loads(both.spec)["privacy"]
    assert (told["epsilon_of_the_others"], told["per_record"]) == (1, ["p"])
    assert "epsilon" not in told
    assert "the losses of the rows of one firm add up" in str(both.privacy)
    assert "in total" not in str(both.privacy)


def test_simulations_say_so_everywhere():
    pandas = needs("pandas")
    frame = pandas.DataFrame({"x": [1.0, 2.0]})
    made = tu.release(frame, epsilon=1, rng=1, m="mean(x, 0, 9)")
    assert set(made.table["simulation"]) == {private_table.NOT_PRIVATE}
    assert repr(made).startswith("<simulation of a private table: 1 group, epsilon 1")
    assert made.report.startswith("NOT private")
    needs("matplotlib")
    assert "<title>NOT private" in made.page()
    assert all("NOT private" in text for text in (made.spec, made.report, str(made.privacy)))
    needs("opendp")
    real = tu.release(frame, epsilon=1, m="mean(x, 0, 9)")
    assert "simulation" not in real.table
    assert not any("NOT private" in text for text in (real.spec, real.report, repr(real)))
