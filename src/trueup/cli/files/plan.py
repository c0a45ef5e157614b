"""What is asked of a file: which estimator reads which columns, and what it writes."""

from __future__ import annotations

import dataclasses
import difflib
import math
from typing import TYPE_CHECKING

from trueup.cli.files.paths import folder_keys
from trueup.errors import InfiniteVariance, TrueupError
from trueup.formula.refusal import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trueup.cli.files.sources import Source
    from trueup.cli.release import Release
    from trueup.estimator import Estimator

SUFFIXES = {"value": "", "stderr": "_stderr", "variance": "_variance"}
"""What is written for each estimator, and how the columns are called."""


@dataclasses.dataclass(frozen=True)
class Task:
    """One estimator, the columns of its statistics, and those of their noise scales."""

    name: str
    estimator: Estimator
    columns: dict[str, str]
    scales: dict[str, str]

    def sql(
        self,
        dialect: str,
        output: str,
        numbers: Mapping[str, str] | None = None,
        scales: Mapping[str, str] | None = None,
    ) -> str:
        """Return an output as SQL; ``numbers`` and ``scales`` call the columns otherwise."""
        numbers, scales = numbers or {}, scales or {}
        try:
            return self.estimator.sql(
                dialect,
                output=output,
                columns={s: numbers.get(c, c) for s, c in self.columns.items()},
                scales={s: scales.get(c, c) for s, c in self.scales.items()} or None,
            )
        except TrueupError as error:
            hint = "in Python tu.debias has no such limit"
            hint = f"{hint}; or add --no-stderr" if output != "value" else hint
            raise TrueupError(f"{self.name}, {output}: {error.message}", hint) from None


@dataclasses.dataclass(frozen=True)
class Plan:
    """The tasks, and which outputs they have."""

    tasks: tuple[Task, ...]
    outputs: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The names of the new columns, in order, as often as they occur."""
        return [task.name + SUFFIXES[output] for task in self.tasks for output in self.outputs]

    @property
    def written(self) -> dict[str, tuple[Task, str]]:
        """The new columns: of which task, and which output."""
        return {
            task.name + SUFFIXES[output]: (task, output)
            for task in self.tasks
            for output in self.outputs
        }

    @property
    def numbers(self) -> dict[str, bool]:
        """The columns of statistics, and whether they must hold whole numbers."""
        whole: dict[str, bool] = {}
        for task in self.tasks:
            for statistic, column in task.columns.items():
                lattice = task.estimator.noise[statistic].lattice
                whole[column] = whole.get(column, False) or lattice
        return whole

    @property
    def scales(self) -> dict[str, float]:
        """The columns of noise scales, and below which scale the results are valid."""
        limits: dict[str, float] = {}
        what = "value" if self.outputs == ("value",) else "variance"
        for task in self.tasks:
            if task.scales:
                largest = task.estimator._scaled(tuple(task.scales)).largest(what)
                for statistic, column in task.scales.items():
                    limits[column] = min(limits.get(column, math.inf), largest[statistic])
        return limits


def make_plan(release: Release, outputs: Sequence[str]) -> Plan:
    """Return what a release asks for; refuse what cannot be estimated."""
    tasks = []
    for name, estimator in release.estimators().items():
        statistics = estimator.statistics
        task = Task(name, estimator, release.columns(statistics), release.scales(statistics))
        if {"stderr", "variance"} & {*outputs}:
            _check_variance(task)
        tasks.append(task)
    return Plan(tuple(tasks), tuple(outputs))


def _check_variance(task: Task) -> None:
    try:
        _ = task.estimator.variance_formula
    except InfiniteVariance as error:
        raise InfiniteVariance(
            f"{task.name}: {error.message}", "add --no-stderr: the estimate is still unbiased"
        ) from None


def fitted(plan: Plan, source: Source, *, new: bool = True) -> Plan:
    """Return the plan on the columns of a source; refuse ``new`` ones that are there already."""
    tasks = [
        dataclasses.replace(
            task,
            columns={s: found(c, f"--column {s}=", source) for s, c in task.columns.items()},
            scales={s: found(c, f"--scale {s}=", source) for s, c in task.scales.items()},
        )
        for task in plan.tasks
    ]
    check_new(plan.names, source.columns if new else ())
    return dataclasses.replace(plan, tasks=tuple(tasks))


def found(column: str, option: str, source: Source) -> str:
    """Return the column of a source that an option names; refuse one that is not there."""
    letters = getattr(column, "letters", column)
    same = [name for name in dict.fromkeys((letters, str(column))) if name in source.columns]
    flag, _, name = option.partition(" ")
    if len(same) > 1:
        raise TrueupError(
            f"{source.name} has the columns {' and '.join(map(repr, same))}: {flag} "
            f"{name + letters!r} does not say which",
            f"in backticks it is to the letter: {flag} '{name}`{letters}`'",
        )
    if same:
        return same[0]
    shown = ", ".join(source.columns[:12]) + (", …" if len(source.columns) > 12 else "")
    use = "" if name else f" for {flag}"
    raise TrueupError(
        f"{source.name} has no column {quoted(column)}{use}; it has {shown}",
        _likely(column, option, source),
    )


def _likely(column: str, option: str, source: Source) -> str:
    """Return what to do about a column that is not there."""
    if column in {key for file in source.files for key in folder_keys(file)}:
        return f"add --hive: there are folders called {column}=…"
    folded = {name.lower(): name for name in source.columns}
    near = [folded[c] for c in difflib.get_close_matches(column.lower(), folded, 1)]
    return f"did you mean {option}{near[0]}?" if near else f"say which column it is: {option}…"


def check_new(names: Iterable[str], present: Sequence[str]) -> None:
    """Refuse names that are there already: SQL does not tell mean from Mean."""
    taken = {name.lower(): name for name in present}
    for name in names:
        if name.lower() in taken:
            raise TrueupError(
                f"there is a column {quoted(taken[name.lower()])} already",
                f'give the result another name, e.g. "{name}_unbiased = …"',
            )
        taken[name.lower()] = name
