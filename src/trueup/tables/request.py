"""What is asked of a table: which estimator reads which columns, and the names of its results."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.confidence import NORMAL
from trueup.errors import InfiniteVariance, TrueupError
from trueup.estimator import Estimator
from trueup.inputs import by_statistic, read_level
from trueup.inverse.component import Component
from trueup.inverse.projection import ENDS
from trueup.kernels.grid import columns
from trueup.near.estimator import NearlyUnbiased
from trueup.noise.laplace import DiscreteLaplace, Laplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import sympy

    from trueup.domain import Interval
    from trueup.inverse.solve import Statistic
    from trueup.kernels.grid import Grid
    from trueup.noise.base import Noise

_SQUARES = (Laplace, DiscreteLaplace)  # the variance of one statistic is a sum of squares

SUFFIXES = {
    "value": "", "stderr": "_stderr", "variance": "_variance", "low": "_low", "high": "_high",
    "bias": "_bias",
}  # fmt: skip
"""What can be computed, and how the columns of it are called after the name of the estimator."""


class Readable:
    """What can be asked of a table beside estimators: it has what is known of them."""

    statistics: tuple[str, ...]
    noise: Mapping[str, Noise]
    domain: Mapping[str, Interval]


@dataclasses.dataclass(frozen=True)
class Request:
    """One estimator on a table: the columns that it reads, and what is written.

    ``columns`` and ``scales`` say where each statistic is, and its noise scale where that differs
    from row to row; ``outputs`` are some of SUFFIXES, and the interval covers with ``level``.
    """

    name: str
    estimator: Estimator
    columns: Mapping[str, Any]
    scales: Mapping[str, Any]
    outputs: tuple[str, ...]
    level: float = 0.95

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The columns read: of the statistics, then of the scales."""
        return (*self.columns.values(), *self.scales.values())

    @property
    def written(self) -> dict[str, str]:
        """The columns written, with the output that each holds."""
        return {self.name + SUFFIXES[output]: output for output in self.outputs}

    @property
    def has_errors(self) -> bool:
        """Whether the variance is wanted too, or its root."""
        return needs_variance(self.outputs)

    @property
    def scaled(self) -> tuple[str, ...]:
        """The statistics whose noise scale differs from row to row."""
        return tuple(self.scales)

    @property
    def by_level(self) -> bool:
        """Whether there is one estimator for each noise scale, and no formula in it."""
        return bool(self.scaled) and isinstance(self.estimator, NearlyUnbiased)

    def at_level(self, scales: Sequence[float]) -> Request:
        """Return what is asked of the rows with these noise scales."""
        found: Any = self.estimator
        own = found._at_scales(dict(zip(self.scaled, scales, strict=True)))
        return dataclasses.replace(self, estimator=own, scales={})

    @property
    def value(self) -> Grid:
        """The estimator as a function of the inputs."""
        return self._grid("value")

    @property
    def variance(self) -> Grid:
        """Its variance as a function of the inputs."""
        try:
            return self._grid("variance")
        except InfiniteVariance as error:
            raise InfiniteVariance(
                error.message, "the estimate is still unbiased: stderr=False gives it alone"
            ) from None

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What is known of each published number."""
        return self.estimator._statistics

    @property
    def components(self) -> Sequence[Component]:
        """The pieces of the estimator, with the scales that differ from row to row as symbols."""
        if self.scaled:
            return self.estimator._scaled(self.scaled).components
        return self.estimator._inverse.components

    @property
    def never_negative(self) -> bool:
        """Whether the variance is proven not to be negative: V̂ = 2b²f′² + b⁴f″² and the like."""
        return self.estimator.extension == "optimal" and all(
            type(c) is Component
            and not c.waves
            and len(c.cells) == 1
            and isinstance(c.cells[0].noise, _SQUARES)
            for c in self.components
        )

    @property
    def scale_symbols(self) -> Mapping[sympy.Symbol, sympy.Symbol]:
        """The symbol of each scale that differs from row to row, by statistic."""
        return self.estimator._scaled(self.scaled).scales if self.scaled else {}

    def _grid(self, what: str) -> Grid:
        if self.scaled:
            return self.estimator._scaled(self.scaled).grid(what)
        return self.estimator._value if what == "value" else self.estimator._variance

    @property
    def largest(self) -> dict[str, float]:
        """Below which scale the results are valid, for each statistic that is scaled."""
        if not self.scaled or self.by_level:
            return dict.fromkeys(self.scaled, math.inf)
        what = "variance" if self.has_errors else "value"
        limits = self.estimator._scaled(self.scaled).largest(what)
        return {name: limits[name] for name in self.scaled}

    def interval(self, arrays: Sequence[Any]) -> tuple[Any, Any]:
        """Return the ends of the interval at columns in the order of ``inputs``."""
        given, count = [np.asarray(v, float) for v in arrays], len(self.columns)
        intervals = self.estimator._intervals
        if intervals.method == NORMAL:
            grids = self._grid("value"), self._grid("variance")
            center, error = columns(*grids, given, ("value", "stderr"))
            return self.estimator._around(center, error, self.level)
        scales = dict(zip(self.scales, given[count:], strict=True))
        return intervals.in_rows(given[:count], self.level, scales)

    def sql(self, dialect: str, output: str) -> str:
        """Return an output as an SQL expression."""
        if needs_variance((output,)):
            _ = self.variance  # refused here, with a hint of ours
        from trueup.sql import statement

        scales = self.scales or None
        tree = statement.statement(
            self.estimator, dialect, output, self.columns, scales, self.level
        )
        return statement.text(tree, dialect, most=statement.MAX_QUERY)


def read_requests(
    present: Sequence[Any],
    columns: Any,
    scales: Any,
    estimators: Mapping[str, Any],
    *,
    outputs: Sequence[str] = ("value", "stderr"),
    level: float = 0.95,
    kept: Sequence[Any] | None = None,
    fold: Callable[[Any], Any] = lambda name: name,
    find: Callable[[Any, str, str], Any] | None = None,
) -> list[Request]:
    """Return what is asked, every argument checked against the columns that are present.

    ``kept`` are the columns beside which the new ones are written, by default all; ``fold`` makes
    equal what the engine holds for one name, say Mean and mean; ``find`` returns the column that is
    meant, or refuses it, given "column" or "scale" and the statistic.
    """
    check_estimators(estimators)
    columns, scales = by_statistic(columns, "columns"), by_statistic(scales, "scales")
    statistics = {s for e in estimators.values() for s in e.statistics}
    for given, what in ((columns, "columns"), (scales, "scales")):
        check_known(given, what, statistics)

    def check(column: Any, kind: str, statistic: str) -> Any:
        purpose = {"column": "the statistic", "scale": "the noise scale of"}[kind]
        argument = f"{kind}s={{{statistic!r}: …}}"
        check_column(column, present, f"{purpose} {statistic}", argument, fold)
        return column

    find = find or check
    requests = [
        Request(
            name,
            estimator,
            {s: find(columns.get(s, s), "column", s) for s in estimator.statistics},
            {s: find(scales[s], "scale", s) for s in estimator.statistics if s in scales},
            tuple(outputs),
            level,
        )
        for name, estimator in estimators.items()
    ]
    new = [name for request in requests for name in request.written]
    check_new(new, present if kept is None else kept, fold)
    return requests


def outputs_of(stderr: Any, interval: Any = None) -> tuple[str, ...]:
    """Return what is written, with or without standard errors and intervals."""
    if not isinstance(stderr, bool):
        raise TrueupError(
            f"stderr must be True or False, got {stderr!r}",
            "stderr=False leaves out the standard errors; give an estimator another name",
        )
    ends = () if level_of(interval) is None else ENDS
    return ("value", *(("stderr",) if stderr else ()), *ends)


def read_flag(value: Any, name: str) -> bool:
    """Return True or False, and refuse anything else."""
    if not isinstance(value, bool):
        raise TrueupError(f"{name} must be True or False, got {value!r}", f"e.g. {name}=True")
    return value


def level_of(interval: Any) -> float | None:
    """Return the level of an interval, None if none is wanted."""
    return None if interval is None else read_level(interval, "interval")


def needs_variance(outputs: Iterable[str]) -> bool:
    """Whether some of the outputs are made from the variance.

    Examples
    --------
    >>> needs_variance(("value", "low", "high")), needs_variance(("value", "stderr"))
    (False, True)
    """
    return bool({"stderr", "variance"} & {*outputs})


_OPTIONS = {"average", "by", "cells", "clamped", "interval", "shared", "stderr", "weights"}
_OPTIONS |= {"columns", "empty", "missing", "scales"}
"""Of other functions of tables: where one has no such option it is no name of a new column."""


_ALIKE = 0.8  # one letter of five left out or changed; mean is none of missing


def check_estimators(estimators: Mapping[str, Any]) -> None:
    """Refuse what is no estimator."""
    hint = "name one: mean=tu.unbiased('s/n', {'s': ..., 'n': ...}, {'n': (1, None)})"
    if not estimators:
        raise TrueupError("no estimator is given", hint)
    for name, estimator in estimators.items():
        if not isinstance(estimator, (Estimator, Readable)):
            near = difflib.get_close_matches(name, _OPTIONS, 1, _ALIKE)
            if name in _OPTIONS:
                hint = f"{name} is no option here; {hint}"
            elif near:
                hint = f"did you mean {near[0]}? If {name} is a new column, {hint}"
            raise TrueupError(f"{name} must be an estimator, got {estimator!r}", hint)


def check_formulas(formulas: Mapping[str, Any], options: str) -> None:
    """Refuse options of other functions of tables as names of formulas; ``options`` are the own."""
    for name in {*formulas} & _OPTIONS:
        if not isinstance(formulas[name], (Estimator, Readable)):
            raise TrueupError(f"{name} is no option here", f"the options are {options}")


def check_known(given: Mapping[str, Any], what: str, statistics: set[str]) -> None:
    """Raise where an argument names a statistic that no estimator reads."""
    unknown = [name for name in given if name not in statistics]
    if unknown:
        raise TrueupError(
            f"{what}= names {unknown[0]!r}, which is a statistic of no estimator",
            f"the statistics are {', '.join(sorted(statistics))}: {what}={{statistic: column}}",
        )


def check_column(
    column: Any,
    present: Sequence[Any],
    purpose: str,
    argument: str,
    fold: Callable[[Any], Any] = lambda name: name,
) -> None:
    """Raise unless a column is there, once; ``argument`` is the one that says which it is."""
    found = Counter(map(fold, present))[fold(column)]
    if found > 1:
        raise TrueupError(
            f"the table has {found} columns {column!r}, wanted for {purpose}",
            "rename them, so that it is clear which is meant",
        )
    if not found:
        shown = ", ".join(map(repr, present[:12])) + (", …" if len(present) > 12 else "")
        near = difflib.get_close_matches(str(column), [c for c in present if isinstance(c, str)], 1)
        raise TrueupError(
            f"the table has no column {column!r} for {purpose}; it has {shown or 'none'}",
            f"did you mean {near[0]!r}?" if near else f"say which column it is: {argument}",
        )


def check_new(
    names: Iterable[str],
    present: Sequence[Any],
    fold: Callable[[Any], Any] = lambda name: name,
) -> None:
    """Raise if a column to be written is there already, or would be written twice."""
    taken = {fold(name): name for name in present}
    for name in names:
        if fold(name) in taken:
            raise TrueupError(
                f"there is a column {taken[fold(name)]!r} already",
                f"give the result another name, e.g. {name}_unbiased, or drop that column first",
            )
        taken[fold(name)] = name
