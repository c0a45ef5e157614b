"""The report in words: nothing in it depends on the data but through the published numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trueup.microdata.expected import SIZES, expected, proposed
from trueup.microdata.measures import Count, Mean
from trueup.microdata.statement import Privacy, words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.microdata.design import Design
    from trueup.microdata.public_keys import Keys

_CLASSES = (0, *SIZES, math.inf)


def report(
    design: Design,
    keys: Keys,
    columns: Mapping[str, Sequence[Any]],
    privacy: Privacy,
    errors: str,
) -> str:
    """Return how the table was made, what it promises, and how sure its numbers are.

    ``errors`` are the :func:`plan_lines`, which are made before anything is spent.
    """
    groups = f"{len(keys)} groups of {', '.join(design.by)}" if design.by else "one group"
    kind = "NOT private, a simulation: a table" if privacy.simulated else "A private table"
    lines = [f"{kind} of {groups}.", "", str(privacy), "", "Method"]
    lines += [f"  {name}: {method(design, name)}" for name in design.measures]
    lines += [
        "  The groups were listed beforehand; rows of other groups were left out.",
        f"Bias: none, over the noise, in every group, for {_used(design)} and values clipped to "
        "their bounds. The mean of no records is the middle of the bounds, their shares are equal.",
        "",
        errors,
    ]
    return "\n".join([*lines, *_achieved(design, columns)])


def _used(design: Design) -> str:
    return "all rows" if design.unit is None else f"the rows of each {design.unit} that are used"


def method(design: Design, name: str) -> str:
    """Return how a measure was made."""
    measure = design.measures[name]
    what = words(measure)
    if isinstance(measure, Count) and design.counted_by is not None:
        return f"{what}: estimated from the noisy counts of {design.counted_by}, at no further cost"
    statistic = design.of(name)[0]
    kind = "discrete Laplace" if statistic.noise.lattice else "Laplace"
    drawn = f"{kind} noise of scale {statistic.scale:.6g}"
    part = f", epsilon {float(design.budget[name]):.6g}" if name in design.budget else ""
    return f"{what}: {_means(design, name)}{drawn}{part}"


def _means(design: Design, name: str) -> str:
    """Return what the noise is added to, where that is not plain."""
    if name in design.shared:
        return f"sums that the noisy {design.count} divides, "
    if isinstance(design.measures[name], Mean):
        times = design.times(name)
        counts = "counts" if times == 1 else f"counts of 1/{times} of a record"
        return f"two {counts}, one for each bound, rounded together at random, each with "
    return ""


def planned(design: Design, sizes: Sequence[int] = SIZES, size: int | None = None) -> str:
    """Return what to expect of a table before any data is touched, and weights to consider."""
    privacy = Privacy.of(design, simulated=False)
    middle = size or sizes[len(sizes) // 2]
    better = proposed(design, middle)
    weights = ", ".join(f"{name} {float(w):g}" for name, w in better.weights.items())
    lines = [str(privacy), "", "Method", *(f"  {n}: {method(design, n)}" for n in design.measures)]
    lines += ["", plan_lines(design, sizes)]
    lines += ["", f"Weights proposed for groups of {middle:,} records: {weights}", ""]
    return "\n".join([*lines, plan_lines(better, sizes)])


def plan_lines(design: Design, at: Sequence[int] = SIZES) -> str:
    """Return the standard errors to expect, by group size, as a table."""
    table = expected(design, at)
    sizes = "".join(f"{size:>12,}" for size in at)
    width = max(len(name) for name in [*table, "records"]) + 2
    lines = ["Standard errors to expect, at worst over what the records can be", ""]
    lines.append(f"  {'records':<{width}}{sizes}")
    for name, errors in table.items():
        shown = "".join(f"{_short(e):>12}" for e in errors)
        lines.append(f"  {name:<{width}}{shown}")
    return "\n".join(lines)


def _achieved(design: Design, columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the standard errors that were achieved, by classes of the estimated count."""
    if design.count is None:
        return []
    counts = columns[design.count]
    named = [e.name for e in design.estimates]
    width = max(len(name) for name in [*named, "count"]) + 2
    heads = [f"below {SIZES[0]:,}", *(f"from {size:,}" for size in SIZES)]
    lines = ["", "Standard errors achieved, median by estimated count", ""]
    lines.append(f"  {'count':<{width}}" + "".join(f"{head:>14}" for head in heads))
    for name in named:
        cells = (_median(columns[f"{name}_stderr"], counts, c) for c in range(len(heads)))
        lines.append(f"  {name:<{width}}" + "".join(f"{cell:>14}" for cell in cells))
    return [*lines, "", *_too_noisy(design, columns)]


def _median(errors: Sequence[Any], counts: Sequence[Any], c: int) -> str:
    low = -math.inf if c == 0 else SIZES[c - 1]
    high = _CLASSES[c + 1]
    inside = [e for e, n in zip(errors, counts, strict=True) if low <= n < high and e is not None]
    return _short(sorted(inside)[len(inside) // 2]) if inside else "–"


def _short(value: float) -> str:
    """Return a number to four digits, or as a whole number.

    Examples
    --------
    >>> _short(10382.4), _short(0.007341)
    ('10,382', '0.007341')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"  # whole in doubles


def _too_noisy(design: Design, columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return how many cells say little: of a count and a sum those below two standard errors."""
    lines = []
    for e in design.estimates:
        reach = _scale_of(design, e.measure)
        pairs = zip(columns[e.name], columns[f"{e.name}_stderr"], strict=True)
        weak = sum(
            error is None or 2 * error > (abs(value) if reach is None else reach)
            for value, error in pairs
        )
        limit = "the number itself" if reach is None else f"{_short(reach)}, half of its range"
        lines.append(
            f"{e.name}: too noisy to use in {weak} of {len(columns[e.name])} groups "
            f"(two standard errors exceed {limit})."
        )
    return lines


def _scale_of(design: Design, name: str) -> float | None:
    """Return half the range of a mean or share; None for what has no range."""
    measure = design.measures[name]
    bounds = getattr(measure, "bounds", None)
    if isinstance(measure, Count) or (bounds is None and not hasattr(measure, "categories")):
        return None
    if bounds is None:
        return 0.5
    return (float(bounds[1]) - float(bounds[0])) / 2 if isinstance(measure, Mean) else None
