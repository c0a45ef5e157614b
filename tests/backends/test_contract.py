"""One contract: every kind of estimator on every backend agrees with 60 digits, to 1e-10."""

from __future__ import annotations

import math
from typing import Any

import pytest

from backends.engines import BACKENDS
from backends.kinds import KINDS, kinds
from backends.kinds import kind as kind_of
from backends.reference import disagreements

OUTPUTS = ("value", "stderr")


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_kind_of_estimator(backend: str) -> None:
    wrong: list[str] = []
    for kind in kinds():
        answers = BACKENDS[backend](kind, OUTPUTS)
        for output in OUTPUTS:
            wrong += disagreements(kind, output, answers[output])
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.parametrize("name", KINDS)
def test_a_near_miss_is_noticed(name: str) -> None:
    """What is off by a billionth of the magnitude, or null, or a row too late, does not pass."""
    kind = kind_of(name)
    right = [None if math.isnan(x) else x for x in numbers(kind)]
    assert not disagreements(kind, "value", right)
    for wrong in ([near(x) for x in right], [None] * len(right), [*right[1:], right[0]]):
        assert disagreements(kind, "value", wrong)


def near(x: float | None) -> float | None:
    return None if x is None else x * (1 + 1e-9)


def numbers(kind: Any) -> list[float]:
    grid, nan = kind.grid("value"), math.nan
    rows = zip(*kind.inputs, strict=True)
    return [grid.number(*row) if None not in row else nan for row in rows]
