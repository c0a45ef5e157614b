"""The paper reproduced: its figures and numbers, recomputed, and where they differ.

``trueup paper`` prints and draws what is computed here.

::

    curves, examples, skewed_sums   the mechanisms compared · Remark and Example · per-record sums
    printed, excess                 what the paper prints · why small n differs
    comparison, output              the report · figures and tables as files
"""

from __future__ import annotations

from dataclasses import dataclass

from trueup.paper import curves, examples, excess, skewed_sums

__all__ = ["Results", "reproduce"]


@dataclass(frozen=True)
class Results:
    """Everything that is printed or drawn."""

    curves: curves.Curves
    shown: dict[int, list[float]]
    far: dict[float, list[float]]
    bounds: list[excess.Bound]
    by_degree: dict[int, float]
    bias: examples.Bias
    powers: list[examples.Power]
    multiples: list[examples.Multiple]
    curved: str
    population: skewed_sums.Population
    per_record: list[skewed_sums.Row]


def reproduce() -> Results:
    """Compute everything."""
    found = curves.curves()
    bounds = excess.bounds(found)
    population, rows = skewed_sums.compare()
    return Results(
        found,
        curves.shown(found),
        curves.far(found),
        bounds,
        excess.by_degree(found, (2, 3, 4, 5, 10, 20, 50)),
        examples.absolute_bias(),
        examples.powers(),
        examples.multiples(),
        examples.self_unbiased_curve(),
        population,
        rows,
    )
