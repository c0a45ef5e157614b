"""The report in words: nothing in it depends on the data but through the published numbers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from trueup.microdata.expected import SIZES, TOTALS, error, proposed, usable_from
from trueup.microdata.measures import Mean, PerRecord, Share
from trueup.microdata.noisy_totals import ROUNDED
from trueup.microdata.privacy_notice import Privacy, words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.microdata.design import Design
    from trueup.microdata.public_keys import Keys

_CLASSES = (-math.inf, *SIZES, math.inf)


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
    rows = "all rows" if design.unit is None else f"the rows of each {design.unit} that are used"
    is_some = any(isinstance(m, PerRecord) for m in design.measures.values())
    rounded = " or, in per-record sums, rounded as said: by less than 2^-20 for each record"
    lines = [f"{kind} of {groups}.", "", str(privacy), "", "Method"]
    lines += [f"  {name}: {method(design, name)}" for name in design.measures]
    lines += [
        "  The groups were listed beforehand; rows of other groups were left out.",
        f"Bias: none, over the noise, in every group, for {rows} and values clipped to "
        f"their bounds{rounded * is_some}. The mean of no records is the middle of the bounds, "
        "their shares are equal.",
        "",
        errors,
    ]
    return "\n".join([*lines, *_achieved(design, columns)])


def method(design: Design, name: str) -> str:
    """Return how a measure was made."""
    measure = design.measures[name]
    what = words(measure)
    if name in design.sources:
        sources = _listed(design.sources[name])
        return f"{what}: estimated from the noisy counts of {sources}, at no further cost"
    statistic = design.of(name)[0]
    kind = "discrete Laplace" if statistic.noise.lattice else "Laplace"
    drawn = f"{kind} noise of scale {statistic.scale:.6g}"
    part = f", epsilon {float(design.budget[name]):.6g}" if name in design.budget else ""
    return f"{what}: {_means(design, name)}{drawn}{part}"


def _listed(names: Sequence[str]) -> str:
    """Return names as they stand in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _means(design: Design, name: str) -> str:
    """Return what the noise is added to, where that is not plain."""
    if name in design.shared:
        return f"sums that the noisy {design.count} divides, "
    if isinstance(design.measures[name], PerRecord):
        return f"{ROUNDED}, "
    if design.is_split(name):
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
    width = max(len(name) for name in [*design.measures, "records"]) + 2
    lines = ["Standard errors to expect, at worst over what the records can be"]
    for head, sizes, is_total, wide in (("records", at, False, 12), ("total", TOTALS, True, 16)):
        named = [n for n, m in design.measures.items() if isinstance(m, PerRecord) is is_total]
        if named:
            lines += ["", f"  {head:<{width}}" + "".join(f"{size:>{wide},}" for size in sizes)]
        for name in named:
            errors = (_short(error(design, name, size)) for size in sizes)
            lines.append(f"  {name:<{width}}" + "".join(f"{e:>{wide}}" for e in errors))
    return "\n".join(lines)


def _achieved(design: Design, columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the standard errors that were achieved, by classes of the estimated count."""
    noisy = ["", *_too_noisy(design, columns)]
    if design.count is None:
        return noisy
    counts = columns[design.count]
    named = [e.name for e in design.estimates]
    width = max(len(name) for name in [*named, "count"]) + 2
    heads = [f"below {SIZES[0]:,}", *(f"from {size:,}" for size in SIZES)]
    lines = ["", "Standard errors achieved, median by estimated count", ""]
    lines.append(f"  {'count':<{width}}" + "".join(f"{head:>14}" for head in heads))
    for name in named:
        cells = (_median(columns[f"{name}_stderr"], counts, *ends) for ends in pairwise(_CLASSES))
        lines.append(f"  {name:<{width}}" + "".join(f"{cell:>14}" for cell in cells))
    return [*lines, *noisy]


def _median(errors: Sequence[Any], counts: Sequence[Any], low: float, high: float) -> str:
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
    """Return which cells say little, by the errors to expect: those that are estimated are wild.

    A mean or share is usable if its group has enough records even with two standard errors less.
    """
    lines = []
    for e in design.estimates:
        reach, values = _scale_of(design, e.measure), columns[e.name]
        errors = columns[f"{e.name}_stderr"]
        if reach is not None:
            known, where = _few(design, e.measure, reach, columns)
        elif isinstance(design.measures[e.measure], PerRecord):
            pairs = zip(values, errors, strict=True)
            known = sum(s is None or 2 * s > value for value, s in pairs)
            where = "where two standard errors exceed the number itself"
        else:
            limit = 2 * error(design, e.measure, 1)
            known, where = sum(abs(v) < limit for v in values), f"within {_short(limit)} of 0"
        lines.append(f"{e.name}: too noisy to use {where}: {known} of {len(values)} groups.")
        if None in errors:
            lines.append(
                f"{e.name}: {errors.count(None)} groups have no standard error (its square would "
                "be negative): see the errors to expect."
            )
    return lines


def _few(
    design: Design, name: str, reach: float, columns: Mapping[str, Sequence[Any]]
) -> tuple[int, str]:
    """Return how many groups have too few records for a mean or share, and when it is so."""
    counts, size = columns[str(design.count)], usable_from(design, name, reach)
    if size is None:
        return len(counts), "at any size"
    limit = math.ceil(size + 2 * error(design, str(design.count), 1))
    return sum(n < limit for n in counts), f"where {design.count} is below {limit:,}"


def _scale_of(design: Design, name: str) -> float | None:
    """Return half the range of a mean or share; None for what has no range."""
    measure = design.measures[name]
    if isinstance(measure, Mean):
        return (float(measure.bounds[1]) - float(measure.bounds[0])) / 2
    return 0.5 if isinstance(measure, Share) else None
