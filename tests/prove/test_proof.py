"""Every disagreement found so far, replayed."""

from __future__ import annotations

from typing import Any

import pytest

from prove import kept
from prove.runner import examined

MENDED = [r for r in kept.kept() if not r["open"]]


@pytest.mark.parametrize("record", MENDED, ids=lambda r: f"{r['check']}: {r['formula']}")
def test_a_disagreement_once_found_is_mended(record: dict[str, Any]) -> None:
    found = [f for f in examined(kept.case_of(record)).findings if f.check == record["check"]]
    assert not found, str(found[0])
