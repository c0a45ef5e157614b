"""Two of the old defects, put back: drawn cases find them. ``make prove`` does it with all."""

from __future__ import annotations

import pytest

from prove.put_back import DEFECTS, found

QUICK = {10: "masked", 11: "value"}
"""Found by the first cases drawn."""


@pytest.mark.parametrize("number", QUICK)
def test_a_defect_that_is_put_back_is_found(number: int) -> None:
    (defect,) = (d for d in DEFECTS if d.number == number)
    assert found(defect).check == QUICK[number]


def test_there_are_sixteen() -> None:
    assert [d.number for d in DEFECTS] == list(range(1, 17))
