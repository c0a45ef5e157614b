"""Two hundred cases against the oracle, and every disagreement found so far.

``TRUEUP_SEED=… make test`` draws other cases, ``make prove`` many more.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from prove import kept
from prove.runner import examined, run

CASES = 40
"""In each part: a few seconds, so that parts spread over processes."""
OPEN = {r["check"] for r in kept.kept() if r["open"]}
"""Checks known to fail on some cases: until those are mended their finds are printed only."""
MENDED = [r for r in kept.kept() if not r["open"]]


@pytest.mark.parametrize("part", range(5))
def test_drawn_cases_agree_with_the_oracle(part: int) -> None:
    seed = int(os.environ.get("TRUEUP_SEED", "2")) + part
    print(f"seed {seed}")
    figures = run(seed, CASES)
    print(*figures.findings, sep="\n")
    new = [f for f in figures.findings if f.check not in OPEN]
    assert not new, "\n".join([f"TRUEUP_SEED={seed - part}", *map(str, new)])
    settled, open_ones = sum(figures.compared.values()), sum(figures.unsettled.values())
    assert settled > open_ones, f"the oracle settles too little: {figures.unsettled}"


@pytest.mark.parametrize("record", MENDED, ids=lambda r: f"{r['check']}: {r['formula']}")
def test_a_disagreement_once_found_is_mended(record: dict[str, Any]) -> None:
    found = [f for f in examined(kept.case_of(record)).findings if f.check == record["check"]]
    assert not found, str(found[0])
