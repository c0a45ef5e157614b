"""OpenDP on Polars frames: the table that ``query.summarize()`` returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from reprlib import repr as shortly
from typing import Any

from trueup.adapters.attributes import law, parameter, refusal
from trueup.adapters.clamping import REACH, unclamped
from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Noise

FAMILIES = {
    "Integer Laplace": DiscreteLaplace,
    "Integer Gaussian": DiscreteGaussian,
    "Float Laplace": Laplace,
    "Float Gaussian": Gaussian,
}
COLUMNS = ("column", "aggregate", "distribution", "scale")


def is_summary(source: Any) -> bool:
    """Return whether something is a table with the columns of a summary.

    Examples
    --------
    >>> is_summary({"column": [], "aggregate": [], "distribution": [], "scale": []})
    True
    """
    names = source if isinstance(source, dict) else getattr(source, "columns", ())
    return all(name in list(names) for name in COLUMNS)


def read_summary(
    summary: Any, domain: Interval | Mapping[str, Interval] | None = None, signed: bool = False
) -> dict[str, Noise]:
    """Return {column: noise} for the rows of a summary, or refuse it with the column's name.

    A summary does not say whether integers are unsigned and so stop at 0. Under Laplace noise that
    does not matter once the domain starts at 0 or above, under Gaussian noise it does: the integers
    must be ``signed``, or the domain out of reach of the noise.

    Examples
    --------
    >>> read_summary({"column": ["x"], "aggregate": ["Sum"], "distribution": ["Float Gaussian"],
    ...               "scale": [3.0]})
    {'x': Gaussian(3)}
    """
    rows = _rows(summary)
    names = [str(row["column"]) for row in rows]
    for row, name in zip(rows, names, strict=True):
        _check(row, name, [r["aggregate"] for r in rows if r["column"] == row["column"]])
    domains = _by_column(domain, names)
    return {
        name: _noise(row, name) if signed else _from_zero(row, name, domains.get(name))
        for row, name in zip(rows, names, strict=True)
    }


def _by_column(
    domain: Interval | Mapping[str, Interval] | None, names: Sequence[str]
) -> Mapping[str, Interval]:
    """Return the domain of each column, where one is stated."""
    if not isinstance(domain, Mapping):
        return {} if domain is None else dict.fromkeys(names, domain)
    strange = [name for name in domain if name not in names]
    if strange:
        raise TrueupError(
            f"the domain names {strange[0]!r}, which is no column of the summary",
            f"the columns are {', '.join(names)}",
        )
    return domain


def _from_zero(row: Mapping[str, Any], name: str, domain: Interval | None) -> Noise:
    """Return the noise of a column that may stop at 0, or refuse it if that would matter."""
    noise = _noise(row, name)
    if not isinstance(noise, DiscreteGaussian):
        return noise
    try:
        return unclamped(noise, Interval(0, None), domain, f"the column {name}")
    except TrueupError:
        length = row["aggregate"] == "Frame Length"
        like = ", as dp.len() is," if length else ""
        signed = "ask for dp.len(signed=True)" if length else "sum signed integers"
        why = f"it may be unsigned{like} and stop at 0, within reach of {noise!r}"
        hint = (
            f"{signed} and say from_opendp(..., signed=True); or pass domain={{{name!r}: …}} "
            f"if it starts {REACH} standard deviations above 0; or use Laplace noise"
        )
        raise refusal(f"the column {name}", why, hint) from None


def _rows(summary: Any) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a table of any dataframe library, or of a mapping of columns."""
    hint = "pass the frame that query.summarize() returns"
    if isinstance(summary, dict):
        lists = all(isinstance(column, Sequence) for column in summary.values())
        if not lists or len({len(column) for column in summary.values()}) > 1:
            problem = "the columns of a summary are lists of one length"
            raise TrueupError(f"{problem}, got {shortly(summary)}", hint)
        rows = zip(*summary.values(), strict=True)
        return [dict(zip(summary, row, strict=True)) for row in rows]
    import narwhals as nw

    try:
        return list(nw.from_native(summary, eager_only=True).iter_rows(named=True))
    except TypeError:
        raise TrueupError(f"a summary is a frame, got {shortly(summary)}", hint) from None


def _check(row: Mapping[str, Any], name: str, aggregates: list[Any]) -> None:
    """Raise if the published column is not a number plus noise."""
    others = f"read the others: summary.filter(pl.col('column') != {name!r})"
    threshold = row.get("threshold")
    if threshold is not None and not (isinstance(threshold, float) and math.isnan(threshold)):
        why = f"groups with {name} below {threshold} are dropped, which biases those that are kept"
        raise refusal(f"the column {name}", why, f"group by public keys; or {others}")
    if len(aggregates) > 1:
        parts = " and ".join(str(a) for a in aggregates)
        why = f"it is computed from several noisy numbers: {parts}"
        hint = "ask for the sum and the length, and let trueup divide, e.g. 's/n'"
        raise refusal(f"the column {name}", why, hint)
    if str(row["distribution"]) not in FAMILIES:
        why = f"its distribution is {row['distribution']}: it selects a value"
        raise refusal(f"the column {name}", why, others)


def _noise(row: Mapping[str, Any], name: str) -> Noise:
    scale = parameter(row["scale"], f"the scale of {name}")
    return law(FAMILIES[str(row["distribution"])], scale)
