"""Privacy, computed: the exact probabilities of what every mechanism publishes.

A private release is a whole number of steps and noise drawn by OpenDP as a whole number of steps,
so its output is discrete. The draw is caught where OpenDP is asked for it: the whole numbers and
the scale are then exactly those of the release, and the log ratio of the probabilities of every
output on two neighbouring data sets is a fraction. It must not exceed the stated ε, wherever the
neighbours are; it must come near it, and with half the noise it must exceed it: the search is
powerful enough to see that.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import multiprocessing
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any
from unittest import mock

import mpmath

import trueup.mechanisms as tm
from mechanisms.neighbours import BOUNDS, GROUPS, MEANS, SIZES, TRANSFORMS, added, is_served
from prove.section import Section
from trueup.mechanisms.whole_numbers import Whole

# -- what is drawn ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Drawn:
    """One published number: its law is that of noise on the whole numbers around the centre."""

    centre: int
    step: Fraction
    scale: Fraction
    """In steps, as OpenDP was given it."""
    family: str


@contextmanager
def caught() -> Iterator[list[Drawn]]:
    """Give what releases draw, in place of drawing it."""
    seen: list[Drawn] = []
    asked: list[tuple[str, Fraction]] = []

    def sampler(family: str, *_: Any, scale: float) -> Callable[[list[int]], list[int]]:
        asked.append((family, Fraction(scale)))
        return lambda zeros: zeros

    def plus(self: Whole, noise: Sequence[int]) -> Whole:
        family, scale = asked[-1]
        seen.extend(Drawn(m, self.step, scale, family) for m in self.multiples)
        assert not any(noise)
        return self

    with (
        mock.patch("opendp.measurements.make_laplace", partial(sampler, "laplace")),
        mock.patch("opendp.measurements.make_gaussian", partial(sampler, "gaussian")),
        mock.patch.object(Whole, "plus", plus),
        mock.patch.object(secrets, "randbelow", lambda bound: bound // 3),
    ):
        yield seen


def drawn(release: Callable[[Any], Any], data: Any) -> list[Drawn]:
    """Return every number that a private release of the data draws noise around."""
    with caught() as seen:
        release(data)
    return seen


def loss(here: list[Drawn], there: list[Drawn]) -> Fraction | float:
    """Return the privacy loss: ε under Laplace noise, ρ (zCDP) under Gaussian noise.

    What a release draws in the corner of few records has exact rows, which tests/mechanisms proves.

    Log P(k) is −|k − centre|/scale and a constant. The log ratio of two such laws bends at the two
    centres only and is constant beyond, so the largest of all outputs is at one of the centres.
    """
    if len(here) != len(there):
        return math.inf
    total = Fraction(0)
    for a, b in zip(here, there, strict=True):
        if (a.step, a.scale, a.family) != (b.step, b.scale, b.family):
            return math.inf  # the noise itself tells the data sets apart
        if a.family == "gaussian":
            total += ((a.centre - b.centre) / a.scale) ** 2 / 2
        else:
            outputs = {a.centre, b.centre}
            total += max(abs(abs(k - b.centre) - abs(k - a.centre)) for k in outputs) / a.scale
    return total


# -- subjects --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Subject:
    """A mechanism, neighbours to look at, and the loss that it states for each."""

    make: Callable[[], Any]
    neighbours: Callable[[], Iterator[tuple[Any, list[Any], list[Any]]]]
    """Data, the records (or counts) that come in addition, one at a time, and their data sets."""
    stated: Callable[[Any, Any], Fraction]
    release: str = "release"


@dataclasses.dataclass
class Figures:
    """What a search found."""

    pairs: int = 0
    share: float = 0.0
    """The largest loss, as a part of what is stated."""
    exceeded: bool = False

    def add(self, found: Fraction | float, stated: Fraction) -> None:
        """Add one pair of neighbours."""
        self.pairs += 1
        self.exceeded |= found > stated
        self.share = max(self.share, float(found / stated) if stated else math.inf * bool(found))


def searched(subject: Subject, mechanism: Any) -> Figures:
    """Return the largest loss over all neighbours of a subject."""
    figures, honest = Figures(), subject.make()
    release = getattr(mechanism, subject.release)
    for data, records, larger in subject.neighbours():
        without = drawn(release, data)
        for record, more in zip(records, larger, strict=True):
            stated = subject.stated(honest, record)
            with_it = drawn(release, more)
            figures.add(max(loss(without, with_it), loss(with_it, without)), stated)
    return figures


def halved(mechanism: Any) -> Any:
    """Return a mechanism with half of its noise."""
    getattr(mechanism, "corner", None)  # made for the noise as it was: for half it refuses to be
    half = lambda noise: type(noise)(noise.scale / 2)  # noqa: E731
    if isinstance(mechanism.noise, dict):
        mechanism.noise = {name: half(noise) for name, noise in mechanism.noise.items()}
    else:
        mechanism.noise = half(mechanism.noise)
    return mechanism


def _added(sets: list[Any], records: list[Any]) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    for data in sets:
        yield data, records, [[*data, r] for r in records]


def _counts(k: int) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """Give every database of up to 6 records in k categories, the empty one too, and large ones."""
    small = (s for s in itertools.product(range(7), repeat=k) if sum(s) <= 6)
    large = ([10**6, 3, 1, 0][:k], [10**17 + 8, 2**53, 1, 0][:k])
    for counts in (*map(list, small), *large):
        more = [[c + (i == j) for j, c in enumerate(counts)] for i in range(k)]
        yield counts, list(range(k)), more


def _epsilon(mechanism: Any, _: Any) -> Fraction:
    return Fraction(mechanism.epsilon)


def _policy(mechanism: Any, record: Any) -> Fraction:
    return Fraction(mechanism.policy(record))


_SUMS: list[Any] = [[], [1e17], [1e17, 8], [0.1] * 9, [3, 0.7, 1e-9], [2**53, 1.0]]

SUBJECTS: dict[str, Subject] = {
    f"{kind(name)}, {name}, bounds {bounds}": Subject(
        partial(makers[name], bounds),
        lambda bounds=bounds: (x for d, more in added(bounds) for x in _added([d], more)),
        _epsilon,
    )
    for makers, kind in (
        (MEANS, lambda name: "TwoTotalsMean" if "totals" in name else "Mean"),
        (GROUPS, lambda name: "GroupMean"),
    )
    for name in makers
    for bounds in BOUNDS
    if is_served(name, bounds)
}
SUBJECTS["GroupShare"] = Subject(
    lambda: tm.GroupShare(1), lambda: _added([[], [0], [1, 1, 0]], [0, 1]), _epsilon
)
SUBJECTS |= {
    f"Shares, {k} categories": Subject(
        partial(tm.Shares, epsilon, list("abcd"[:k]), least),
        partial(_counts, k),
        _epsilon,
        "release_counts",
    )
    for k, epsilon, least in ((2, Fraction(1, 3), 1), (3, 1, 1), (4, 0.7, 5))
}
SUBJECTS |= {
    f"PerRecordSum, {noise}, {name}": Subject(
        partial(tm.PerRecordSum, *options, noise),
        lambda: _added(_SUMS, SIZES),
        _policy,
    )
    for name, options in TRANSFORMS.items()
    for noise in ("laplace", "gaussian")
}


# -- tables ----------------------------------------------------------------------------------------

TABLES: dict[str, tuple[str, tuple[int, int], Any]] = {
    "1/n": ("1/n", (1, 12), 1),
    "n": ("n", (0, 10), Fraction(1, 2)),
    "abs(n - 2)": ("abs(n - 2)", (0, 4), 0.1),
    "sqrt(n)": ("sqrt(n)", (0, 20), 3),
}


MEANS_OF_FEW: dict[str, tuple[Any, int]] = {"ε = 1": (1, 4), "ε = 1/2": (Fraction(1, 2), 3)}
"""Of at most how many records, at which ε, an optimal mean is looked at."""


def table_of(release: Any) -> list[list[Fraction]]:
    """Return the probability of every output at every true value, read off the draws themselves.

    The source of randomness is asked for a whole number below some bound. It answers with the ends
    of the interval that belongs to each output, so that these intervals are seen to be its own.
    """
    rows = []
    labels, pairs = release.table.labels, isinstance(release, tm.OptimalMean)
    for q in _truths(release):
        weights = release.table.row(q if pairs else q[0]).weights
        total = sum(weights)
        for label, weight, end in zip(labels, weights, accumulate(weights), strict=True):
            for uniform in (end - weight, end - 1) if weight else ():
                if _value(release, q, uniform, total) != label:
                    return []
        rows.append([Fraction(w, total) for w in weights])
    return rows


def _truths(release: Any) -> list[tuple[int, ...]]:
    """Return what a table has rows for: counts, or pairs of zeros and ones."""
    if isinstance(release, tm.OptimalMean):
        return list(release.databases)
    return [(q,) for q in release.truths]


def _value(release: Any, q: tuple[int, ...], uniform: int, total: int) -> float:
    def below(n: int) -> int:
        assert n == total
        return uniform

    with mock.patch.object(secrets, "randbelow", below):
        published = release.release(*q)
    return float(getattr(published, "value", published))


def table_is_private(release: Any, epsilon: Any) -> bool:
    """Say whether P(y|q) ≤ e^ε P(y|q′) for all outputs and neighbours q and q′, in fractions."""
    with mpmath.workdps(60):
        limit = mpmath.exp(mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator)
        below = Fraction(int(mpmath.floor(limit * 10**40)), 10**40)
    rows = list(zip(_truths(release), table_of(release), strict=False))
    return bool(rows) and all(
        p <= below * r and r <= below * p
        for (here, one), (there, two) in itertools.combinations(rows, 2)
        if sum(abs(a - b) for a, b in zip(here, there, strict=True)) == 1
        for p, r in zip(one, two, strict=True)
    )


# -- what says that it is not private --------------------------------------------------------------


def owns_up(mechanism: Any) -> bool:
    """Say whether a release, also without an rng, says that it is only a simulation."""
    release = mechanism.release([0.2, 0.9])
    return bool(release.simulated) and "not private" in repr(release)


SIMULATIONS: dict[str, Callable[[], Any]] = {
    "SmoothSensitivityMean": lambda: tm.SmoothSensitivityMean(1, 1),
}

COVERED = (
    {name.split(",")[0] for name in SUBJECTS} | {"OptimalMean", "OptimalRelease"} | {*SIMULATIONS}
)
"""Every mechanism of the library: a test compares them."""


# -- figures ---------------------------------------------------------------------------------------


def figures(processes: int) -> Section:
    """Search all subjects, tables and simulations."""
    if processes == 1:
        found = dict(map(_both, SUBJECTS))
    else:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            found = dict(pool.imap_unordered(_both, SUBJECTS))
    faults = []
    for name, (honest, half) in found.items():
        if honest.exceeded:
            faults.append(f"{name}: the loss is {honest.share:.6f} of what is stated")
        if not half.exceeded:
            faults.append(f"{name}: half the noise is not noticed")
    for name, (private, doubled) in _tables().items():
        if not private or doubled:
            faults.append(f"{name}: private {private}, made for twice ε {doubled}")
    faults += [
        f"{name} says that it is private" for name, m in SIMULATIONS.items() if not owns_up(m())
    ]
    pairs = sum(honest.pairs for honest, _ in found.values())
    drawn = (
        f"the exact loss of {len(found)} mechanisms over {pairs:,} pairs of neighbours and of "
        f"{len(TABLES) + len(MEANS_OF_FEW)} tables of probabilities is at most what is stated, "
        "and with half the noise more"
    )
    return Section(drawn, faults)


def _both(name: str) -> tuple[str, tuple[Figures, Figures]]:
    subject = SUBJECTS[name]
    return name, (searched(subject, subject.make()), searched(subject, halved(subject.make())))


def _tables() -> dict[str, tuple[bool, bool]]:
    """Say of every table whether it is private, and whether one made for twice ε is."""
    return {
        f"OptimalRelease of {name}": tuple(
            table_is_private(tm.OptimalRelease(f, domain, k * epsilon), epsilon) for k in (1, 2)
        )
        for name, (f, domain, epsilon) in TABLES.items()
    } | {
        f"OptimalMean at {name}": tuple(
            table_is_private(tm.OptimalMean(k * epsilon, most), epsilon) for k in (1, 2)
        )
        for name, (epsilon, most) in MEANS_OF_FEW.items()
    }
