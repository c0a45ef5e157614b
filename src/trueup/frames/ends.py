"""Where the values of an engine's columns end: those near either end are read into memory."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import narwhals as nw

from trueup.errors import SelectionWarning, TrueupError
from trueup.tables.bounds import SAMPLE, warn
from trueup.tables.selection import published_in, reach
from trueup.tables.totals import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.tables.request import Request


def warn_selected(cells: Any, requests: Sequence[Request], *, clamped: bool = False) -> None:
    """Warn of columns of a lazy frame of narwhals that end as no noise ends.

    Columns with a noise scale per row, and noise of which the law is not known, are not looked at.
    """
    for published in published_in(requests, clamped=clamped):
        noise, column = published.noise, published.column
        named = dataclasses.replace(published, column=published.statistic)
        try:
            far = reach(noise) if published.scale is None and not noise.known else math.nan
        except TrueupError:
            far = math.nan
        if math.isnan(far):
            continue
        x = nw.col(column).cast(nw.Float64())
        known = cells.select(nw.when(x.abs() <= LARGEST).then(x).alias(column))
        value = nw.col(column)
        ends = known.select(value.min().alias("low"), value.max().alias("high"), value.count())
        low, high, rows = (series.to_list()[0] for series in ends.collect().iter_columns())
        if not rows:
            continue
        for side, near in ((-1, value <= low + far), (1, value >= high - far)):
            values = known.filter(near).head(SAMPLE).collect()[column].to_numpy()
            warn(named.doubt(side, values, rows=int(rows)), SelectionWarning)
