"""What is asked of a table: which estimator reads which columns, and the names of its results."""

from __future__ import annotations

import dataclasses
import difflib
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trueup.errors import InfiniteVariance, TrueupError
from trueup.estimator import Estimator
from trueup.inverse.component import Component
from trueup.noise.discrete_laplace import DiscreteLaplace
from trueup.noise.laplace import Laplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import sympy

    from trueup.inverse.solve import Statistic
    from trueup.kernels.grid import Grid

_SQUARES = (
    Laplace,
    DiscreteLaplace,
)  # under these the variance of one statistic is a sum of squares


@dataclasses.dataclass(frozen=True)
class Wanted:
    """One estimator on a table.

    Parameters
    ----------
    name
        What the column of estimates is called; standard errors are ``name_stderr``.
    estimator
        What is computed.
    columns
        The column of each statistic.
    scaled, scales
        The statistics whose noise scale differs from row to row, and the columns of the scales.
    stderr
        Whether standard errors are wanted.
    """

    name: str
    estimator: Estimator
    columns: tuple[Any, ...]
    scaled: tuple[str, ...]
    scales: tuple[Any, ...]
    stderr: bool

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The columns read: of the statistics, then of the scales."""
        return (*self.columns, *self.scales)

    @property
    def column_of(self) -> dict[str, Any]:
        """The column of each statistic."""
        return dict(zip(self.estimator.statistics, self.columns, strict=True))

    @property
    def scale_of(self) -> dict[str, Any]:
        """The column of each scale that differs from row to row."""
        return dict(zip(self.scaled, self.scales, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns written."""
        return (self.name, f"{self.name}_stderr") if self.stderr else (self.name,)

    @property
    def value(self) -> Grid:
        """The estimator as a function of the inputs."""
        return self._scaled("value") if self.scaled else self.estimator._value

    @property
    def variance(self) -> Grid:
        """Its variance as a function of the inputs."""
        try:
            return self._scaled("variance") if self.scaled else self.estimator._variance
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
            and isinstance(getattr(c.cells[0].noise, "family", c.cells[0].noise), _SQUARES)
            for c in self.components
        )

    @property
    def scale_symbols(self) -> Mapping[sympy.Symbol, sympy.Symbol]:
        """The symbol of each scale that differs from row to row, by statistic."""
        return self.estimator._scaled(self.scaled).scales if self.scaled else {}

    def _scaled(self, what: str) -> Grid:
        return self.estimator._scaled(self.scaled).grid(what)

    @property
    def largest(self) -> tuple[float, ...]:
        """Below which scale the results are valid, scale by scale."""
        if not self.scaled:
            return ()
        limits = self.estimator._scaled(self.scaled).largest("variance" if self.stderr else "value")
        return tuple(limits[name] for name in self.scaled)

    def sql(self, dialect: str, output: str) -> str:
        """Return the value, variance or stderr as an SQL expression."""
        if output != "value":
            _ = self.variance  # refused here, with a hint of ours
        scales = self.scale_of or None
        return self.estimator.sql(dialect, output=output, columns=self.column_of, scales=scales)


def read_wanted(
    present: Sequence[Any],
    columns: Any,
    scales: Any,
    estimators: Mapping[str, Any],
    *,
    stderr: Any = True,
    kept: Sequence[Any] | None = None,
    fold: Callable[[Any], Any] = lambda name: name,
) -> list[Wanted]:
    """Return what is asked, every argument checked against the columns that are present.

    ``kept`` are the columns beside which the new ones are written, by default all; ``fold`` makes
    equal what the engine holds for one name, say Mean and mean.
    """
    _check_estimators(estimators, stderr)
    columns, scales = _mapping(columns, "columns"), _mapping(scales, "scales")
    statistics = {s for e in estimators.values() for s in e.statistics}
    for given, what in ((columns, "columns"), (scales, "scales")):
        _check_known(given, what, statistics)
    wanted = [
        Wanted(
            name,
            estimator,
            tuple(columns.get(s, s) for s in estimator.statistics),
            tuple(s for s in estimator.statistics if s in scales),
            tuple(scales[s] for s in estimator.statistics if s in scales),
            stderr,
        )
        for name, estimator in estimators.items()
    ]
    for w in wanted:
        for statistic, column in zip(w.estimator.statistics, w.columns, strict=True):
            argument = f"columns={{{statistic!r}: …}}"
            check_column(column, present, f"the statistic {statistic}", argument, fold)
        for statistic, column in zip(w.scaled, w.scales, strict=True):
            argument = f"scales={{{statistic!r}: …}}"
            check_column(column, present, f"the noise scale of {statistic}", argument, fold)
    check_new((n for w in wanted for n in w.names), present if kept is None else kept, fold)
    return wanted


def _check_estimators(estimators: Mapping[str, Any], stderr: Any) -> None:
    hint = "name it: tu.debias(frame, mean=tu.unbiased('s/n', {'s': ..., 'n': ...}))"
    if not isinstance(stderr, bool):
        raise TrueupError(
            f"stderr must be True or False, got {stderr!r}",
            "stderr=False leaves out the standard errors; give an estimator another name",
        )
    if not estimators:
        raise TrueupError("no estimator is given", hint)
    for name, estimator in estimators.items():
        if not isinstance(estimator, Estimator):
            raise TrueupError(f"{name} must be an estimator, got {estimator!r}", hint)


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TrueupError(
            f"{what} must map statistics to columns, got {value!r}", f"{what}={{'n': 'emp'}}"
        )
    return value


def _check_known(given: Mapping[str, Any], what: str, statistics: set[str]) -> None:
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
    seen = Counter(map(fold, present))
    for name in names:
        if seen[fold(name)]:
            raise TrueupError(
                f"there is a column {name!r} already",
                "give the estimator another name, or drop that column first",
            )
        seen[fold(name)] += 1
