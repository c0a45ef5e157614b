"""A few of the drawn cases; ``python -m prove.fuzz`` runs as many as one likes."""

import pytest

from prove.fuzz import examine
from prove.grammar import Case, cases, draw


def test_cases_are_functions_of_their_seeds():
    drawn = list(cases(7, 50))
    assert drawn == list(cases(7, 50))
    assert drawn == [draw(case.seed) for case in drawn]
    assert len({case.formula for case in drawn}) > 40


@pytest.mark.parametrize("case", list(cases(1, 40)), ids=lambda case: case.formula)
def test_only_reasons_are_raised(case: Case):
    _, faults = examine(case)
    assert not faults
