"""What the tests know of a case without the library, and what is still wrong today.

An entry that is right fails its test: whoever mends a case takes it off the list.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping

import numpy as np

import trueup as tu
from everyday.cases import CASES, Case
from everyday.sums import Array
from prove import reading
from prove.laws import Law, law

MISSING: frozenset[str] = frozenset()
"""Cases that are refused."""

WITHOUT_SD: frozenset[str] = frozenset()
"""Formulas of four counts whose sd is refused."""

BY_NAME = {case.name: case for case in CASES}


@functools.cache
def _built(case_name: str) -> tu.Estimator:
    return BY_NAME[case_name].build()


def built(case: Case) -> tu.Estimator:
    """Return the estimator, built once."""
    return _built(case.name)


@dataclasses.dataclass(frozen=True)
class Oracle:
    """The formula, the laws of the noises and the bounds."""

    case: Case

    @property
    def laws(self) -> dict[str, Law]:
        found = {name: law(text) for name, text in self.case.noises.items()}
        return {name: noise for name, noise in found.items() if noise is not None}

    @property
    def lows(self) -> dict[str, float | None]:
        """The least true value of each statistic, None where there is none."""
        return {name: self._low(name) for name in self.case.noises}

    def _low(self, name: str) -> float | None:
        domain = self.case.domain
        if found := re.search(rf"(?:^|, ){name} >= (\d+)", domain):
            return float(found[1])
        if found := re.match(r"(\d) <= s <= n", domain):
            return float(found[1]) if name == "s" else max(1.0, float(found[1]))
        return None

    @property
    def unbounded(self) -> tuple[str, ...]:
        return tuple(name for name, low in self.lows.items() if low is None)

    def scale(self, name: str) -> float:
        """Return the scale of a discrete Laplace noise."""
        (scale,) = self.laws[name].laplaces
        return scale

    @property
    def cut(self) -> float:
        """Probability, relative to the top, of what sums leave out: less where there are few."""
        bounded = len(self.case.noises) - len(self.unbounded)
        return {0: 1e-20, 1: 1e-20, 3: 1e-12}.get(bounded, 1e-16)

    def f_of_arrays(self, **at: Array) -> Array:
        return reading.values(reading.read(self.case.formula), at)

    def f(self, q: Mapping[str, float]) -> float:
        return float(self.f_of_arrays(**{n: np.asarray(v) for n, v in q.items()}))

    @property
    def truths(self) -> list[dict[str, float]]:
        """True values: at the bounds, beside them and away from them."""
        lows = {n: -2.0 if low is None else low for n, low in self.lows.items()}
        if self.case.domain.startswith("a >= 0, b >= 0"):
            return [{"a": 0.0, "b": 1.0}, {"a": 1.0, "b": 0.0}, {"a": 3.0, "b": 2.0}]
        tied = "<= s <= n" in self.case.domain
        away = ({"s": 0, "n": 0}, {"s": 1, "n": 4}) if tied else _away(list(lows))
        return [{n: low + step[n] for n, low in lows.items()} for step in away]

    @property
    def sums(self) -> list[dict[str, float]]:
        """The true values for sums, one where they are long."""
        return self.truths[1:] if len(self.lows) - len(self.unbounded) == 3 else self.truths


def _away(names: list[str]) -> list[dict[str, float]]:
    """Return distances of true values from the bounds."""
    if len(names) == 1:
        return [{names[0]: step} for step in (0.0, 1.0, 6.0, 40.0)]
    corner = dict.fromkeys(names, 0.0)
    return [corner, {n: 3.0 * i for i, n in enumerate(names)}]


@functools.cache
def _oracle(name: str) -> Oracle:
    return Oracle(BY_NAME[name])


def oracle(case: Case) -> Oracle:
    """Return what is known of a case."""
    return _oracle(case.name)
