"""The short form of the search for neighbours, and one planted fault for each of its checks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

import trueup as tu
import trueup.mechanisms as tm
from mechanisms.neighbours import summed_in_floats
from prove import privacy
from prove.privacy import SUBJECTS, TABLES, Subject, halved, searched, table_is_private
from trueup.limit.table import Row, Table
from trueup.mechanisms.whole_numbers import Grid, Whole

pytest.importorskip("opendp", reason="private releases need OpenDP")

FEW = [
    "Mean, centred, bounds (0.1, 0.7)",
    "Mean, plain, bounds (-3, 1)",
    "Mean, discrete count, bounds (1000000000000000, 1000000000000001)",
    "TwoTotalsMean, two totals, bounds (100000000000000000, 100000000000000010)",
    "GroupMean, midpoint, bounds (0.1, 0.7)",
    "GroupMean, a value, bounds (100000000000000000, 100000000000000010)",
    "GroupShare",
    "Shares, 2 categories",
    "Shares, 3 categories",
    "PerRecordSum, laplace, root:2",
    "PerRecordSum, gaussian, log",
]
FAR = "Mean, centred, bounds (1000000000000000, 1000000000000001)"


@pytest.mark.parametrize("name", FEW)
def test_no_output_is_more_likely_than_stated_and_half_the_noise_is_noticed(name: str) -> None:
    subject = SUBJECTS[name]
    honest = searched(subject, subject.make())
    assert not honest.exceeded
    assert honest.share > 0.99  # and no noise is wasted
    assert searched(subject, halved(subject.make())).exceeded


def test_every_mechanism_is_looked_at() -> None:
    named = (getattr(tm, name) for name in tm.__all__)
    assert {m.__name__ for m in named if hasattr(m, "release")} == privacy.COVERED


def _of(name: str) -> tuple[Subject, Any]:
    return SUBJECTS[name], SUBJECTS[name].make()


def test_floats_that_are_summed_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grid, "total", summed_in_floats)
    assert searched(*_of(FAR)).share > 2


def test_records_that_are_not_clipped_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grid, "ends", (-(2**62), 2**62))
    assert searched(*_of(FEW[0])).exceeded


def test_a_scale_that_depends_on_the_data_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    subject, mechanism = _of(FAR)
    release = mechanism.release

    def peeking(values: Sequence[Any]) -> Any:
        mechanism.noise["n"] = tu.Laplace(2 + len(values) % 2)
        return release(values)

    monkeypatch.setattr(mechanism, "release", peeking)
    assert searched(subject, mechanism).share == math.inf


def test_a_number_that_gets_less_noise_than_it_says_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The scale is right, but the steps that get the noise are twice as long."""
    twice = lambda self: Whole(tuple(2 * m for m in self.multiples), self.step)  # noqa: E731
    subject, mechanism = _of("Shares, 3 categories")
    with privacy.caught() as seen, monkeypatch.context() as patch:
        caught = Whole.plus
        patch.setattr(Whole, "plus", lambda self, z: caught(twice(self), z))
        mechanism.release_counts([1, 2, 3])
        mechanism.release_counts([1, 2, 4])
    assert privacy.loss(seen[:3], seen[3:]) > subject.stated(mechanism, 0)


def test_a_policy_that_states_too_little_is_found() -> None:
    subject, mechanism = _of("PerRecordSum, laplace, root:2")
    low = dataclasses.replace(subject, stated=lambda m, r: Fraction(m.policy(r)) * 99 / 100)
    assert searched(low, mechanism).exceeded


def test_the_loss_of_known_laws() -> None:
    """Over all outputs, one by one: the ratio is largest at a centre."""
    one = [privacy.Drawn(3, Fraction(1), Fraction(7, 2), "laplace")]
    two = [privacy.Drawn(-2, Fraction(1), Fraction(7, 2), "laplace")]
    row = [[-abs(k - c) / 3.5 for k in range(-40, 40)] for c in (3, -2)]
    largest = max(a - b for a, b in zip(*row, strict=True))
    assert float(privacy.loss(one, two)) == pytest.approx(largest)


# -- tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["n", "abs(n - 2)"])
def test_tables_are_private_and_those_of_twice_epsilon_are_not(name: str) -> None:
    f, domain, epsilon = TABLES[name]
    assert table_is_private(tm.OptimalRelease(f, domain, epsilon), epsilon)
    assert not table_is_private(tm.OptimalRelease(f, domain, 2 * epsilon), epsilon)


def test_a_mean_of_few_records_is_private_and_one_of_twice_epsilon_is_not() -> None:
    epsilon, most = 1, 3
    assert table_is_private(tm.OptimalMean(epsilon, most), epsilon)
    assert not table_is_private(tm.OptimalMean(2 * epsilon, most), epsilon)


def test_one_probability_too_large_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    release = tm.OptimalRelease("n", (0, 2), 1)
    first, *others = release.table.rows
    k = max(range(len(first.weights)), key=first.weights.__getitem__)
    moved = Row(tuple(w * 21 // 20 if j == k else w for j, w in enumerate(first.weights)))
    table = Table(release.table.truths, release.table.labels, (moved, *others))
    monkeypatch.setattr(release, "table", table)
    assert not table_is_private(release, 1)


def test_a_draw_that_is_off_by_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    release = tm.OptimalRelease("n", (0, 2), 1)
    draw = Row.draw
    monkeypatch.setattr(Row, "draw", lambda row, rng: (draw(row, rng) + 1) % len(row.weights))
    assert privacy.table_of(release) == []


# -- simulations -----------------------------------------------------------------------------------


def test_a_simulation_that_claims_to_be_private_is_found() -> None:
    mechanism = tm.SmoothSensitivityMean(1, 1)
    assert privacy.owns_up(mechanism)
    claiming = dataclasses.replace(mechanism.release([0.2]), simulated=False)

    class Claims:
        def release(self, _: Any) -> Any:
            return claiming

    assert not privacy.owns_up(Claims())
