"""Privacy, tested with power: the claimed ε is accepted, half the noise and a smaller ε are not.

What a release of two neighbouring data sets publishes is drawn many times and binned, and
simultaneous Clopper–Pearson bounds on the frequencies of all bins say whether P(bin | D) ≤
e^ε P(bin | D′) can hold, in both directions. The same number of draws must show that half the noise
breaks it, and that the loss is not half of what is claimed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import trueup as tu
from trueup.mechanisms import (
    GroupMean,
    GroupShare,
    Mean,
    PerRecordSum,
    Shares,
    TwoTotalsMean,
    means,
    per_record,
    shares,
)
from trueup.mechanisms.corner import Corner
from trueup.mechanisms.whole_numbers import Grid

RELEASES = 4_000
FEW = 20
"""Releases that are made in full."""
LEVEL = 1e-4
"""The probability that an honest mechanism would be rejected, all bins and directions together."""


def counts(draws: Any, edges: list[list[float]]) -> Any:
    """Return how many draws fall in each cell of the grid."""
    cells = [np.digitize(x, e) for x, e in zip(draws.T, edges, strict=True)]
    shape = [len(e) + 1 for e in edges]
    flat = np.ravel_multi_index(cells, shape)
    return np.bincount(flat, minlength=math.prod(shape))


def smallest_epsilon(draws: Any, others: Any, edges: list[list[float]]) -> float:
    """Return a loss that the mechanism exceeds or equals, with confidence 1 − LEVEL."""
    found = -math.inf
    first, second = counts(draws, edges), counts(others, edges)
    level = LEVEL / (4 * first.size)
    for these, those in ((first, second), (second, first)):
        n, m = these.sum(), those.sum()
        lower = np.where(these > 0, beta.ppf(level, these, n - these + 1), 0.0)
        upper = np.where(those < m, beta.ppf(1 - level, those + 1, np.maximum(m - those, 1)), 1.0)
        with np.errstate(divide="ignore"):
            found = max(found, float(np.log(lower / upper).max()))
    return found


@dataclasses.dataclass(frozen=True)
class Audit:
    """A mechanism, two neighbouring data sets, and the values that it publishes of them."""

    make: Callable[[], Any]
    module: ModuleType
    data: list[Any]
    more: Any
    epsilon: float
    edges: list[list[float]]
    """Where the bins are cut, for each published value: at the true values of both data sets."""

    def published(self, monkeypatch: Any, mechanism: Any, values: list[Any], seed: int) -> Any:
        """Return what publish returns in many releases, one row each.

        A release hands the same numbers and noises to publish every time, which is seen in a few;
        the many releases then are many draws of publish itself.
        """
        asked = [self.handed_over(monkeypatch, mechanism, values, seed + i) for i in range(FEW)]
        assert all(again == asked[0] for again in asked)
        rng = np.random.default_rng(seed)
        return np.column_stack(
            [
                self.module.publish(given * RELEASES, noise, rng).reshape(RELEASES, -1)
                for given, noise in asked[0]
            ]
        ).astype(float)

    def handed_over(
        self, monkeypatch: Any, mechanism: Any, values: list[Any], seed: int
    ) -> list[tuple[list[float], Any]]:
        """Return the numbers and the noise of every call of publish in one release."""
        seen: list[tuple[list[float], Any]] = []
        publish = self.module.publish

        def spy(values: Any, noise: Any, rng: Any = None) -> Any:
            seen.append((np.asarray(values).tolist(), noise))
            return publish(values, noise, rng)

        with monkeypatch.context() as patch:
            patch.setattr(self.module, "publish", spy)
            mechanism.release(values, np.random.default_rng(seed))
        return seen

    def loss(self, monkeypatch: Any, mechanism: Any) -> float:
        """Return the loss that is certain."""
        without = self.published(monkeypatch, mechanism, self.data, seed=101)
        with_it = self.published(monkeypatch, mechanism, [*self.data, self.more], seed=202)
        return smallest_epsilon(without, with_it, self.edges)


FIVE = [0.5, 0.2, 0.9, 0.4, 0.7]  # sum 2.7, centred 0.2
AUDITS = {
    # one record more: the count moves by 1 and the centred sum by ½, the outlier is clipped
    "mean": Audit(
        lambda: Mean(0.5, 0.5), means, FIVE, 1000.0, 1, [[5.0, 6.0], [0.2, 0.7]]
    ),
    "mean, low": Audit(
        lambda: Mean(0.5, 0.5), means, FIVE, -1000.0, 1, [[5.0, 6.0], [-0.3, 0.2]]
    ),
    "plain mean": Audit(
        lambda: Mean(0.5, 0.5, centred=False),
        means,
        FIVE,
        1.0,
        1,
        [[5.0, 6.0], [2.7, 3.7]],
    ),
    "plain mean, other bounds": Audit(
        lambda: Mean(0.5, 0.5, bounds=(-3, 1), centred=False),
        means,
        FIVE,
        -9.0,
        1,
        [[5.0, 6.0], [-0.3, 2.7]],
    ),
    "mean, discrete count": Audit(
        lambda: Mean(0.5, 0.5, count_noise="discrete"),
        means,
        FIVE,
        1000.0,
        1,
        [[4.5, 5.5], [0.2, 0.7]],
    ),
    # one record more moves the two totals by (c, 1 − c)
    "two totals": Audit(
        lambda: TwoTotalsMean(1), means, FIVE, 0.3, 1, [[2.7, 3.0], [2.3, 3.0]]
    ),
    "two totals, outlier": Audit(
        lambda: TwoTotalsMean(1), means, FIVE, -50.0, 1, [[2.7], [2.3, 3.3]]
    ),
    "shares": Audit(
        lambda: Shares(1, ["a", "b", "c"]),
        shares,
        ["a", "b", "a"],
        "b",
        1,
        [[2.0], [1.0, 2.0], []],
    ),
    # √4 / 2 = 1 from nothing
    "per-record sum": Audit(
        lambda: PerRecordSum("root:2", 2), per_record, [], 4.0, 1, [[0.0, 2.0]]
    ),
    "per-record sum, offset": Audit(
        lambda: PerRecordSum("log", 0.4, offset=2), per_record, [], 1.5, math.log(1.75) / 0.4,
        [[math.log(2), math.log(3.5)]],
    ),
}  # fmt: skip


@pytest.fixture(params=AUDITS)
def audit(request: pytest.FixtureRequest) -> Audit:
    """One audit after the other."""
    return AUDITS[request.param]


def test_the_claimed_epsilon_holds_and_is_not_much_too_large(monkeypatch, audit):
    mechanism = audit.make()
    claimed = mechanism.policy(audit.more) if audit.module is per_record else mechanism.epsilon
    assert float(claimed) == pytest.approx(audit.epsilon)
    loss = audit.loss(monkeypatch, mechanism)
    assert loss <= audit.epsilon
    assert loss > 0.5 * audit.epsilon


def halved(noise: tu.Noise) -> tu.Noise:
    return type(noise)(noise.scale / 2)


def test_half_the_noise_is_noticed(monkeypatch, audit):
    mechanism = audit.make()
    if isinstance(mechanism, Mean):
        mechanism.noise = {name: halved(noise) for name, noise in mechanism.noise.items()}
    else:
        mechanism.noise = halved(mechanism.noise)
    assert audit.loss(monkeypatch, mechanism) > audit.epsilon


@pytest.mark.parametrize("part", ["s", "n"])
@pytest.mark.parametrize("name", ["mean", "mean, discrete count"])
def test_half_the_noise_in_one_of_two_numbers_is_noticed(monkeypatch, name, part):
    audit = AUDITS[name]
    mechanism = audit.make()
    mechanism.noise[part] = halved(mechanism.noise[part])
    assert audit.loss(monkeypatch, mechanism) > audit.epsilon


def test_records_are_clipped_for_privacy(monkeypatch):
    """Without clipping, one outlier would move the sum by a thousand."""
    audit = AUDITS["mean"]
    mechanism = audit.make()
    with monkeypatch.context() as patch:
        patch.setattr(Grid, "ends", (-(2**62), 2**62))
        loss = audit.loss(patch, mechanism)
    assert loss > 2 * audit.epsilon


@pytest.mark.parametrize("data", [[1.0], [0.5, 8.0, 90.0]], ids=["one", "three"])
def test_larger_sums_lose_less(monkeypatch, data):
    """A concave transform is most sensitive at the empty data set."""
    audit = AUDITS["per-record sum"]
    before, after = math.sqrt(sum(data)), math.sqrt(sum(data) + 4)
    moved = dataclasses.replace(audit, data=data, edges=[[before, after]])
    assert moved.loss(monkeypatch, audit.make()) <= (after - before) / 2 < audit.epsilon


def test_a_release_that_hands_over_random_numbers_is_noticed(monkeypatch):
    """Draws of publish alone would not show what was random before."""
    mechanism = AUDITS["mean"].make()
    monkeypatch.setattr(Grid, "total", lambda *_: np.random.default_rng().integers(1000))
    with pytest.raises(AssertionError):
        AUDITS["mean"].loss(monkeypatch, mechanism)


# -- groups: what is published near no records is drawn, not only noise ---------------------------

GROUPS = {"share": GroupShare, "mean": GroupMean}


def lost_by_groups(mechanism: Any, more: tuple[int, int]) -> float:
    """Return a loss that is certain from what an empty group and one of one record publish."""
    found = []
    for seed, truth in ((11, (0, 0)), (12, more)):
        rng = np.random.default_rng(seed)
        made = [mechanism.draw(truth, rng) for _ in range(RELEASES)]
        pairs = [o if isinstance(o, tuple) else (mechanism.corner.labels[o], -1) for o in made]
        found.append(np.array(pairs, float))
    edges = [[-0.4, 0.3, 0.7, 1.4, 2.4], [-0.5, 0.5, 1.5, 2.5]]
    return smallest_epsilon(*found, edges)


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("epsilon", [1.5, 1, 0.6])
def test_an_empty_group_and_its_neighbours_are_told_apart_by_epsilon_at_most(name, epsilon):
    """And by half of it at least; twice the budget is noticed."""
    for more in ((0, 1), (1, 0)):
        loss = lost_by_groups(GROUPS[name](epsilon), more)
        assert 0.5 * epsilon < loss <= epsilon
        assert lost_by_groups(GROUPS[name](2 * epsilon), more) > epsilon


def test_an_empty_group_that_is_drawn_in_another_way_is_noticed(monkeypatch):
    """Pairs beyond the corner that are always the next one."""
    monkeypatch.setattr(Corner, "outside", lambda self, side, noise: (2, 2))
    assert lost_by_groups(GroupShare(1), (0, 1)) > 1


def test_the_bounds_themselves():
    """Known frequencies: 3:1 in a bin of two is a loss of log 3, the bound is just below."""
    half = np.repeat([0.0, 1.0], 50_000)[:, None]
    tilted = np.repeat([0.0, 1.0], [75_000, 25_000])[:, None]
    assert smallest_epsilon(half, half, [[0.5]]) < 0
    assert smallest_epsilon(half, tilted, [[0.5]]) == pytest.approx(math.log(2), rel=0.07)
    assert smallest_epsilon(half, tilted, [[0.5]]) < math.log(2)
