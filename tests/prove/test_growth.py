"""The budget is noticed when it is ignored; a few rungs of the ladders stay below it."""

import pytest

import trueup as tu
from prove import growth
from prove.growth import LADDERS, Step, beyond, measured, rung, written
from trueup.inverse import exact_law


def ladder(name):
    return next(found for found in LADDERS if found.name == name)


RUNGS = (
    ("terms 1/(q + k), Laplace", 8),
    ("1 over a sum, discrete", 6),
    ("1 over a sum, Laplace", 7),
    ("scale, discrete Laplace", 10**9),
    ("scale, rounded Laplace", 10**4),
    ("rows, 1/q", 10**6),
)


@pytest.mark.parametrize(("name", "size"), RUNGS)
def test_a_rung_is_served_or_refused_within_the_budget(name, size):
    growth.warm()
    assert not beyond(list(rung(ladder(name), size)))


def test_what_goes_on_beyond_its_budget_is_found(monkeypatch):
    """With the count of work ignored, an sd that is refused at once is computed, and is noticed."""
    monkeypatch.setattr(growth, "BUDGET", {**growth.BUDGET, "sd": 0.2})
    question = ladder("1 over a sum, discrete"), 6
    growth.warm()
    assert [s.step for s in beyond(list(rung(*question)))] == []
    monkeypatch.setattr(exact_law, "_MOST_WORK", float("inf"))
    monkeypatch.setattr(growth, "_GIVEN_UP", 1.0)
    late = beyond(list(rung(*question)))
    assert [(s.step, s.outcome) for s in late] == [("sd", "never ended")]


def test_too_much_memory_is_found(monkeypatch):
    monkeypatch.setattr(growth, "MEMORY", 32 * 2**20)
    steps = [measured("planted", 1, "call", lambda: len(bytearray(b"x" * 2**26)))]
    assert beyond(steps) == steps


def test_another_error_is_found():
    steps = [measured("planted", 1, "call", lambda: [][0])]
    assert beyond(steps) == steps


def test_a_refusal_in_time_is_no_fault():
    steps = [measured("planted", 1, "build", lambda: tu.unbiased("abs(q)", tu.Laplace(1)))]
    assert steps[0].outcome.startswith("refused")
    assert not beyond(steps)


def test_the_table_names_what_is_beyond():
    steps = [Step("planted", 7, "build", 0.1, 0), Step("planted", 7, "sd", 99.0, 0, "never ended")]
    page = "\n".join(written(steps))
    assert "| planted | 7 | 0.10 |  |  |  | – 99.00 | 0 |" in page
    assert "1 of 2 steps" in page
    assert "- planted, 7: sd 99.0 s" in page
