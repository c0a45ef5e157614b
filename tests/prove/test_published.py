"""A few drawn counts and shares, and one planted fault for each."""

from __future__ import annotations

import math
from typing import Any

import pytest

from prove.published import found
from trueup.adapters import clamping, opendp_summary
from trueup.mechanisms import shares

FEW = 60


@pytest.mark.parametrize("check", ["count", "shares"])
def test_what_is_published_elsewhere_is_read_as_it_is(check: str) -> None:
    assert found(check, range(FEW)) == []


def _on_any_grid(found: Any) -> tuple[list[float], None]:
    largest = max(1.0, *(abs(float(s)) for s in found))
    step = 2.0 ** (math.ceil(math.log2(len(found) * largest)) - 52)
    *first, _ = (round(float(s) / step) * step for s in found)
    return [*first, 1.0 - sum(first)], None


def _as_if_signed(row: Any, name: str, _: Any) -> Any:
    return opendp_summary._noise(row, name)


FAULTS = {
    "count": ((clamping, "REACH", 0), (opendp_summary, "_from_zero", _as_if_signed)),
    "shares": ((shares, "_exactly_one", _on_any_grid),),
}


@pytest.mark.parametrize("check", FAULTS)
def test_a_planted_fault_is_found(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for patch in FAULTS[check]:
        monkeypatch.setattr(*patch)
    assert {w.check for w in found(check, range(FEW))} == {check}
