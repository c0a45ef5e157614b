"""Totals inside engines: sums of estimates and of variances, group by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw

from trueup.tables.totals import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.frames.columns import Engine
    from trueup.tables.request import Request
    from trueup.tables.totals import Totals


def aggregate(
    engine: Engine,
    frame: Any,
    requests: Sequence[Request],
    totals: Totals,
) -> Any:
    """Return one row for each group: keys, rows, totals and their standard errors.

    Unless they are to be skipped, rows that miss a number make the total of their group null.
    """
    new: dict[str, tuple[Request, str]] = {}
    taken, keys = list(engine.names(frame)), totals.by
    for what in totals.summed(requests):
        name = nw.generate_temporary_column_name(8, taken)
        taken.append(name)
        new[name] = what
    cells = nw.from_native(engine.extend(frame, new))
    known = totals.weights is not None
    weight = nw.col(totals.weights).cast(nw.Float64()) if known else nw.lit(1.0)
    count = nw.generate_temporary_column_name(8, taken)
    cells = cells.select(
        *keys,
        weight.alias(count),
        *(
            (nw.col(name) * (weight if output == "value" else weight * weight)).alias(name)
            for name, (_, output) in new.items()
        ),
    )
    if totals.skip:
        cells = cells.drop_nulls([*new, count])
        cells = cells.filter(*(~nw.col(name).is_nan() for name in [*new, count]))
    summed = _summed(cells, keys, [*new, count])
    return summed.select(*keys, *_results(new, count, mean=totals.average)).to_native()


def _summed(cells: Any, keys: Sequence[str], names: Sequence[str]) -> Any:
    sums = [nw.col(name).sum().alias(name) for name in names]
    known = [nw.col(name).count().alias(f"{name}#") for name in names]
    rows = nw.len().alias(ROWS)
    return (
        cells.group_by(*keys).agg(rows, *sums, *known)
        if keys
        else cells.select(rows, *sums, *known)
    )


def _results(new: Mapping[str, tuple[Request, str]], count: str, *, mean: bool) -> list[nw.Expr]:
    over = nw.col(count) if mean else nw.lit(1.0)
    columns = [nw.col(ROWS).cast(nw.Int64())]
    for name, (w, output) in new.items():
        whole = [nw.col(f"{n}#") == nw.col(ROWS) for n in (name, count)]
        if output == "value":
            columns.append(nw.when(*whole).then(nw.col(name) / over).alias(w.name))
        else:
            root = nw.col(name).abs().sqrt() / over.abs()
            error = nw.when(*whole, nw.col(name) >= 0).then(root)
            columns.append(error.alias(f"{w.name}_stderr"))
    return columns
