"""The budget is noticed when it is ignored; a few rungs of the ladders are climbed."""

import functools
import multiprocessing
import operator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import trueup as tu
from prove import growth
from prove.growth import LADDERS, beyond, measured, rung
from trueup.inverse import exact_law
from trueup.kernels import grid
from trueup.sql import statement


def ladder(name):
    return next(found for found in LADDERS if found.name == name)


RUNGS = (
    ("terms 1/(q + k), Laplace", 8),
    ("1 over a sum, Laplace", 7),
    ("rows, 1/q", 10**6),
)


@pytest.mark.parametrize(("name", "size"), RUNGS)
def test_a_rung_is_served_or_refused(name, size):
    steps = list(rung(ladder(name), size))
    assert steps
    assert not beyond(steps)


def repeat_for_ever():
    while True:
        yield 1


def test_what_never_ends_is_found(monkeypatch):
    monkeypatch.setattr(growth, "CALLS", {"sd": 10_000})
    endless = measured("planted", 4, "sd", lambda: list(repeat_for_ever()))
    assert endless.outcome == "not at its end"
    assert beyond([endless]) == [endless]


def test_the_count_of_work_refuses_an_sd_before_it_is_begun(monkeypatch):
    names = "abcde"
    est = tu.unbiased(
        "1/(a + 2*b + 3*c + 4*d + 5*e)",
        dict.fromkeys(names, tu.DiscreteLaplace(2)),
        dict.fromkeys(names, (1, None)),
    )
    begun = []
    monkeypatch.setattr(exact_law.Expectation, "at", lambda *_: begun.append(1))
    with pytest.raises(tu.TrueupError, match="too large"):
        est.sd(**dict.fromkeys(names, 5.0))
    assert not begun


@pytest.mark.parametrize("output", ["value", "stderr"])
def test_formulas_beyond_many_bounds_are_refused_in_sql(output, monkeypatch):
    monkeypatch.setattr(statement, "MAX_STEPS", 100)
    noises, bounds = dict.fromkeys("ab", tu.Laplace(1)), dict.fromkeys("ab", (1, None))
    with pytest.raises(tu.TrueupError, match="too long for SQL"):
        tu.unbiased("exp(-a/9)/(a + b)", noises, bounds).sql(output=output)


def test_rows_beyond_many_bounds_are_refused(monkeypatch):
    monkeypatch.setattr(grid, "_MOST_WORK", 20)
    noises, bounds = dict.fromkeys("ab", tu.Laplace(1)), dict.fromkeys("ab", (1, None))
    est = tu.unbiased("1/(a + b)", noises, bounds)
    with pytest.raises(tu.TrueupError, match="in 3 ways"):
        est(a=np.array([0.0, 5.0, 0.0, 5.0]), b=np.array([0.0, 0.0, 5.0, 5.0]))


def test_the_variance_of_very_many_waves_is_refused():
    est = tu.unbiased(" + ".join(f"sin(q*{k}/9)" for k in range(1, 20)), tu.Gaussian(1))
    with pytest.raises(tu.TrueupError, match="1444 products of two waves"):
        est.variance(1.0)


def test_too_much_memory_is_found(monkeypatch):
    monkeypatch.setattr(growth, "MEMORY", 32 * 2**20)
    steps = [measured("planted", 1, "call", lambda: len(bytearray(b"x" * 2**26)))]
    assert beyond(steps) == steps


def test_memory_is_measured_in_the_process_of_a_larger_one():
    """As it is by ``make prove``: a child remembers how large its parent was."""
    large = bytearray(b"x" * 2**28)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        action = functools.partial(operator.mul, b"x", 2**26)
        step = pool.submit(measured, "planted", 1, "call", action).result()
    assert 2**25 < step.memory < len(large)


def test_another_error_is_found():
    steps = [measured("planted", 1, "call", lambda: [][0])]
    assert beyond(steps) == steps


def test_a_refusal_in_time_is_no_fault():
    steps = [measured("planted", 1, "build", lambda: tu.unbiased("abs(q)", tu.Laplace(1)))]
    assert steps[0].outcome.startswith("refused")
    assert not beyond(steps)


def test_a_system_as_wide_as_a_million_is_refused_before_it_is_made():
    with pytest.raises(tu.TrueupError, match="too large a system"):
        tu.unbiased("1/q", tu.DiscreteGaussian(2), (1, 10**6))


def test_a_sum_of_many_scales_under_a_bound_is_refused():
    noise = sum((tu.Laplace(k) for k in range(2, 10)), tu.Laplace(1))
    with pytest.raises(tu.TrueupError, match="9 different scales under a bound"):
        tu.unbiased("1/q", noise, (1, None))
    assert tu.unbiased("q**2", noise)(3.0) == pytest.approx(9 - 2 * sum(k**2 for k in range(1, 10)))
