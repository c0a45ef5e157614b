"""A few drawn counts and shares, and one planted fault for each."""

from __future__ import annotations

import pytest

from prove.published import found
from prove.put_back import DEFECTS

FEW = 60


@pytest.mark.parametrize("check", ["count", "shares"])
def test_what_is_published_elsewhere_is_read_as_it_is(check: str) -> None:
    assert found(check, range(FEW)) == []


@pytest.mark.parametrize(("check", "number"), [("count", 16), ("shares", 14)])
def test_an_old_defect_is_found(check: str, number: int) -> None:
    (defect,) = (d for d in DEFECTS if d.number == number)
    with defect.back():
        assert {w.check for w in found(check, range(FEW))} == {check}
