"""The table that comes out: noisy totals, estimates and their errors, for every public group."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.mechanisms.sampling import publish
from trueup.notebook import table
from trueup.tables.totals import SIMULATION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from trueup.mechanisms.whole_numbers import Whole
    from trueup.microdata.design import Design
    from trueup.microdata.privacy_notice import Privacy
    from trueup.microdata.public_keys import Keys

NOT_PRIVATE = "not private"
_SHOWN = 20  # rows in a notebook; .table has all


@dataclasses.dataclass(frozen=True, repr=False)
class PrivateTable:
    """A released table.

    ``table`` has the keys, for every measure the noisy totals (..._noisy), the unbiased estimate
    and its standard error (NAME, NAME_stderr; null where the unbiased variance is negative), and,
    if it is only a simulation, a column that says so. ``spec`` is the sidecar that ``trueup debias
    --spec`` reads, ``privacy`` says what was promised, ``report`` tells it all in words, and
    ``page()`` with pictures.
    """

    table: Any
    spec: str
    privacy: Privacy
    report: str
    design: Design = dataclasses.field(repr=False)
    columns: dict[str, list[Any]] = dataclasses.field(repr=False)

    def page(self) -> str:
        """Return the report as a page of HTML with pictures, which needs no network."""
        from trueup.microdata.page import page

        return page(self.design, self.columns, self.report)

    @property
    def simulated(self) -> bool:
        """Whether this is a simulation, which is not private."""
        return self.privacy.simulated

    def __repr__(self) -> str:
        size = len(next(iter(self.columns.values())))
        kind, note = ("simulation of a ", "; not private") if self.simulated else ("", "")
        groups = f"{size} group{'s' * (size != 1)}"
        return f"<{kind}private table: {groups}, {self.privacy.loss}{note}>"

    def _repr_html_(self) -> str:
        rows = list(itertools.islice(zip(*self.columns.values(), strict=True), _SHOWN))
        shown = [["–" if x is None else _digits(x) for x in row] for row in rows]
        size = len(next(iter(self.columns.values())))
        rest = f"; the first {_SHOWN} of {size:,} groups" if size > _SHOWN else ""
        return table(list(self.columns), shown, f"{self.privacy}{rest}")


def check_noise(design: Design) -> None:
    """Draw nothing from every noise: what cannot be drawn is refused before a budget is spent."""
    for statistic in design.statistics:
        if statistic.part != "rounding":
            publish(statistic.whole([]), statistic.noise)


def noisy(design: Design, wholes: Mapping[str, Whole], rng: Any) -> dict[str, NDArray[Any]]:
    """Return the published numbers of each statistic: here the noise is drawn."""
    found = {}
    for s in design.statistics:
        whole = wholes[s.name]
        if s.part == "rounding":
            found[s.name] = np.array(list(whole))
        else:
            found[s.name] = publish(whole.multiples if s.noise.lattice else whole, s.noise, rng)
    return found


def columns(
    design: Design, keys: Keys, published: dict[str, NDArray[Any]], *, simulated: bool
) -> dict[str, list[Any]]:
    """Return the table by columns; everything in it is a function of what is published."""
    known = dict(published)
    if design.shared:
        known[design.divisor] = published[f"{design.count}_noisy"]
    found: dict[str, list[Any]] = keys.columns()
    for name in design.measures:
        for s in design.of(name):
            found[s.column] = published[s.name].tolist()
        for e in design.estimates:
            if e.measure == name:
                estimator = design.estimators[e.name]
                values = {n: known[n] for n in estimator.statistics}
                found[e.name] = (np.asarray(estimator(**values), float) + 0.0).tolist()  # no -0
                found[f"{e.name}_stderr"] = _numbers(estimator.stderr(**values))
    if simulated:
        found[SIMULATION] = [NOT_PRIVATE] * len(keys)
    return found


def _digits(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _numbers(values: Any) -> list[float | None]:
    """Return numbers, None for those that are none."""
    return [v if v == v else None for v in np.asarray(values, float).tolist()]
