"""What is known of a release: noise, bounds, columns and estimates, as a sidecar TOML says it.

::

    [noise.n]                       family = "discrete_laplace", its parameters, and perhaps
                                    bounds = [1, inf], column = "emp", scale_column = "emp_scale"
    [noise]                         s = "laplace(2)", the short form
    [estimate]                      mean = "s/n"
    conditions = ["0 <= s <= n"]    between statistics
    empty, max_bias, cells          a number, or a table with one for each estimate
    clamped = true                  values were moved to a bound before they were published
    [privacy], [table]              what a release promised; the SHA-256 of its table

Options of the command line override it, statistic by statistic (:mod:`trueup.cli.sidecar`).
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.domain import Interval
from trueup.errors import TrueupError, quoted
from trueup.estimator import Estimator, unbiased
from trueup.formula.grammar import parse
from trueup.formula.linear import both, conditions
from trueup.formula.substitution import denominators
from trueup.near.estimator import nearly_unbiased
from trueup.noise.reading import Number, make_noise, nearest, read_noise
from trueup.tables.bounds import warn
from trueup.tables.ratios import RatioOfSums
from trueup.tables.totals import noisy_weights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trueup.noise import Noise

KEYS = (
    "noise",
    "estimate",
    "conditions",
    "empty",
    "max_bias",
    "cells",
    "clamped",
    "privacy",
    "table",
)
_OWN = ("family", "bounds", "column", "scale_column")
_ALIKE = 0.8  # one letter of six, as bound for bounds; scale is no scale_column
_HINT = "the schema is in `trueup debias --help`"
_USUAL = {"empty": "0", "max_bias": "0.2", "cells": "400"}
_LARGEST = 2**20  # bytes of a TOML
_DEEPEST = 16  # tables in tables
_DOTTED = re.compile(rb"(?:[^\s.]+\s*\.\s*){64}")  # a key without end, which takes minutes to read


@dataclasses.dataclass
class Statistic:
    """What is known of one noisy statistic."""

    noise: Noise | None = None
    bounds: tuple[Number | None, Number | None] = (None, None)
    column: str | None = None
    scale_column: str | None = None


@dataclasses.dataclass
class Spec:
    """What is known of a release: the noisy statistics by name, and the formulas to estimate.

    ``tu.debias(table, spec.columns, spec.scales, **spec.estimators)`` takes it all; ``noise`` are
    the noises of its statistics.

    Examples
    --------
    >>> from trueup.noise import DiscreteLaplace
    >>> spec = Spec({"n": Statistic(DiscreteLaplace(2), (1, None), "emp")}, {"inverse": "1/n"})
    >>> spec.noise, spec.columns
    ({'n': DiscreteLaplace(2)}, {'n': 'emp'})
    >>> spec.estimators["inverse"].domain
    {'n': Integers(1, None)}
    """

    statistics: dict[str, Statistic] = dataclasses.field(default_factory=dict)
    formulas: dict[str, str] = dataclasses.field(default_factory=dict)
    conditions: list[str] = dataclasses.field(default_factory=list)
    empty: dict[str, Number] = dataclasses.field(default_factory=dict)  # by estimate, "" for all
    max_bias: dict[str, Number] = dataclasses.field(default_factory=dict)
    cells: dict[str, Number] = dataclasses.field(default_factory=dict)
    clamped: bool = False
    simulated: bool = False
    table_hash: str = ""  # SHA-256 of the table that the sidecar was written for
    default: Noise | None = None  # of every statistic that has none of its own
    options: set[str] = dataclasses.field(default_factory=set)  # what options speak of

    @cached_property
    def estimators(self) -> dict[str, Any]:
        """One estimator for each formula."""
        self._check_names()
        return {name: self.estimator(f, name) for name, f in self.formulas.items()}

    @property
    def noise(self) -> dict[str, Noise]:
        """The noise of each statistic."""
        return {name: s.noise for name, s in self.statistics.items() if s.noise is not None}

    @property
    def columns(self) -> dict[str, str]:
        """The column of each statistic that an estimate reads."""
        return self.columns_of(self._read)

    @property
    def scales(self) -> dict[str, str]:
        """The column of noise scales, of those statistics that have one."""
        return self.scales_of(self._read)

    @property
    def _read(self) -> list[str]:
        return sorted({s.name for f in self.formulas.values() for s in parse(f).free_symbols})

    def given(self, name: str) -> Statistic:
        """Return the statistic that an option speaks of."""
        self.options.add(name)
        return self.statistics.setdefault(name, Statistic())

    def ratios(self) -> dict[str, Any]:
        """Return what is summed for each formula: a ratio of sums needs no bound of the cells."""
        self._check_names()
        return {name: self._ratio(f, name) for name, f in self.formulas.items()}

    def check_table(self, path: str) -> None:
        """Refuse a table that the sidecar was not written for.

        A release puts its sidecar in place before its table: one that was killed in between leaves
        the new sidecar beside an old table.
        """
        if not self.table_hash or not Path(path).is_file():
            return
        with Path(path).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.table_hash:
            raise TrueupError(
                f"the sidecar was written for another table than {path}: its SHA-256 is not the "
                "one of [table]",
                "make the release again; if the table was changed on purpose, delete [table] from "
                "the sidecar",
            )

    def _check_names(self) -> None:
        self.check_used(self.formulas.values())
        for given, purpose in (
            (self.empty, "a value in empty cells"),
            (self.max_bias, "a largest bias"),
            (self.cells, "a number of cells"),
        ):
            strange = sorted({*given} - {"", *self.formulas})
            if strange:
                raise TrueupError(
                    f"there is no estimate {quoted(strange[0])} to be given {purpose}",
                    f"the estimates are {', '.join(self.formulas)}",
                )

    def estimator(self, formula: str, estimate: str = "") -> Estimator:
        """Return the estimator of a formula."""
        noises, domain, asked = self._known_of(formula, estimate)
        scaled = [name for name in noises if self._known(name).scale_column is not None]
        if scaled and asked and "empty" not in asked:
            raise TrueupError(
                f"{quoted(formula)} has a noise scale per row, of {scaled[0]}, and a bias that is "
                "allowed, which is traded under one scale",
                "in Python, in memory, tu.debias takes both; or leave out the bias, or the scales",
            )
        return _made(formula, noises, domain, asked)

    def _ratio(self, formula: str, estimate: str) -> RatioOfSums:
        """Return the ratio of sums for a formula; it has no bias to allow, and that is told."""
        noises, domain, asked = self._known_of(formula, estimate)
        unused = sorted(asked.keys() - {"empty"})
        if unused:
            left = " and ".join(f"[{name}]" for name in unused)
            said = f"{estimate}: {left} is left out, a ratio of sums is unbiased"
            warn(said)
        if "empty" in asked:
            return RatioOfSums.of(_made(formula, noises, domain, {"empty": asked["empty"]}))
        return RatioOfSums.read(formula, noises, domain)

    def _known_of(self, formula: str, estimate: str) -> tuple[Any, Any, dict[str, Number]]:
        """Return the noises and the domain of a formula, and what else is asked of its estimate."""
        names = sorted(s.name for s in parse(formula).free_symbols)
        noises = {name: noise for name in names if (noise := self._noise(name)) is not None}
        if not names:
            raise TrueupError(f"{quoted(formula)} reads no statistic", 'e.g. "mean = s/n"')
        missing = [name for name in names if name not in noises]
        if missing:
            raise TrueupError(
                f"no noise is given for {', '.join(missing)} in {quoted(formula)}",
                f'add --noise "{missing[0]}=laplace(2)" with its family and scale, or --spec',
            )
        domain: dict[str, Any] = {
            name: s.bounds for name, s in self.statistics.items() if name in noises
        }
        domain |= self._known_together(names, noises)
        curved = not parse(formula).is_polynomial()  # what needs no bias gets none
        wide = {"empty": bool(denominators(parse(formula))), "max_bias": curved, "cells": curved}
        asked = {
            name: given.get(estimate, given.get("") if for_all else None)
            for name, for_all in wide.items()
            if (given := getattr(self, name))
        }
        return noises, domain, {name: v for name, v in asked.items() if v is not None}

    def _known_together(self, names: list[str], noises: dict[str, Noise]) -> dict[str, Any]:
        """Return the domain with the conditions that speak of some statistics, and their noises."""
        tied = [c for text in self.conditions for c in conditions(text)[1]]
        spoken = {*names}.union(*(c.names for c in tied if c.names & {*names}))
        noises |= {n: law for n in spoken if (law := self._noise(n)) is not None}
        known: dict[str, Any] = {n: Interval(*self._known(n).bounds) for n in sorted(spoken)}
        whole = {n for n in spoken if n in noises and noises[n].lattice}
        box, closed = conditions(", ".join(self.conditions), whole)
        for key, bounds in [*box.items(), *((c.key, Interval(c.low, None)) for c in closed)]:
            known[key] = both(key, known.get(key, Interval()), bounds)
        return {key: value for key, value in known.items() if key in spoken or _is_of(key, spoken)}

    def columns_of(self, statistics: Iterable[str]) -> dict[str, str]:
        """Return the column of each statistic."""
        return {name: self._known(name).column or name for name in statistics}

    def scales_of(self, statistics: Iterable[str]) -> dict[str, str]:
        """Return the column of noise scales, of the statistics that have one."""
        given = {name: self._known(name).scale_column for name in statistics}
        return {name: column for name, column in given.items() if column is not None}

    def check_weights(self, weights: str, read: Iterable[str]) -> None:
        """Refuse weights that are the column of a noisy statistic, though no formula reads it."""
        for name, statistic in self.statistics.items():
            column = statistic.column or name
            known = name in read or statistic.noise is None or statistic.noise.known
            if column.lower() == weights.lower() and not known:
                raise noisy_weights(weights, f"{name} + {statistic.noise!r}")

    def check_used(self, formulas: Iterable[str]) -> None:
        """Refuse options for statistics that no formula reads: they may be misspelt."""
        known = sorted({s.name for formula in formulas for s in parse(formula).free_symbols})
        for name in sorted(self.options):
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                others = f"they read {', '.join(known) or 'none'}; a sidecar may describe others"
                raise TrueupError(
                    f"no formula reads the statistic {quoted(name)}",
                    f"one reads {near[0]}: spell both alike" if near else others,
                )

    def _known(self, name: str) -> Statistic:
        return self.statistics.get(name, Statistic())

    def _noise(self, name: str) -> Noise | None:
        return self._known(name).noise or self.default


def _made(formula: str, noises: Any, domain: Any, asked: dict[str, Number]) -> Estimator:
    """Return the unbiased estimator, or the one with the bias allowed."""
    if not asked.keys() - {"empty"}:
        return unbiased(formula, noises, domain, empty=asked.get("empty"))
    if "empty" in asked:
        raise TrueupError(
            f"{quoted(formula)} has a value in empty cells, where no bias can be bounded, and a "
            "bias that is allowed",
            "leave one of them out: with a bound above 0 cells that are all 0 average 0 anyway",
        )
    relative = "max_bias" in asked or None
    made: Estimator = nearly_unbiased(formula, noises, domain, relative=relative, **asked)
    return made


def _is_of(key: str, names: set[str]) -> bool:
    """Whether the key of a domain is a sum of some statistics."""
    return {s.name for s in parse(key).free_symbols} <= names


# -- the TOML --------------------------------------------------------------------------------------


def read_spec(path: Any) -> Spec:
    """Return what a sidecar says: estimators, columns and noise.

    Parameters
    ----------
    path
        A TOML file, as ``trueup release`` writes it beside a table, or as ``trueup debias --help``
        describes it.

    Returns
    -------
    Spec
        With ``estimators``, ``columns``, ``scales`` and ``noise``:
        ``tu.debias(table, spec.columns, spec.scales, **spec.estimators)``.
    """
    path = Path(path)
    data = read_toml(path, KEYS, _HINT)
    release = Spec(clamped=_flag(path, data, "clamped"))
    release.simulated = _flag(path, table_of(path, data, "privacy"), "simulation")
    release.table_hash = str(table_of(path, data, "table").get("sha256", ""))
    release.conditions = _conditions(path, data.get("conditions", []))
    release.empty = _numbers(path, data, "empty", "a value in empty cells")
    release.max_bias = _numbers(path, data, "max_bias", "a largest bias")
    release.cells = _numbers(path, data, "cells", "how many cells there are")
    for name, entry in table_of(path, data, "noise").items():
        try:
            release.statistics[name] = _statistic(name, entry)
        except TrueupError as error:
            raise TrueupError(f"{path}, noise.{name}: {error.message}", error.hint) from None
    for name, formula in table_of(path, data, "estimate").items():
        if not isinstance(formula, str):
            raise TrueupError(
                f"{path}, estimate.{name}: a formula is text, got {formula!r}",
                f'write {name} = "s/n"',
            )
        try:
            parse(formula)
        except TrueupError as error:
            raise TrueupError(f"{path}, estimate.{name}: {error.message}", error.hint) from None
        release.formulas[name] = formula
    return release


def _conditions(path: Path, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TrueupError(
            f"{path}: conditions are a list of texts, got {value!r}",
            'write conditions = ["0 <= s <= n"]',
        )
    for text in value:
        try:
            conditions(text)
        except TrueupError as error:
            raise TrueupError(f"{path}, conditions: {error.message}", error.hint) from None
    return value


def _flag(path: Path, data: Mapping[str, Any], key: str) -> bool:
    value = data.get(key, False)
    if isinstance(value, bool):
        return value
    shown = quoted(repr(value))
    raise TrueupError(f"{path}: {key} is true or false, got {shown}", f"write {key} = true")


def _numbers(path: Path, data: Mapping[str, Any], key: str, what: str) -> dict[str, Number]:
    """Return one number for each estimate, "" for one that is for all."""
    value = data.get(key, {})
    values = value if isinstance(value, dict) else {"": value}
    for name, number in values.items():
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise TrueupError(
                f"{path}, {key}: {what} is a number, got {number!r}",
                f"write [{key}] and {name or 'mean'} = {_USUAL[key]}",
            )
    return values


def read_toml(path: Path, known: tuple[str, ...], hint: str) -> dict[str, Any]:
    """Return what is in a TOML file that may have these keys."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
        long = len(text) > _LARGEST or _DOTTED.search(text) is not None
        data = {} if long else tomllib.loads(text.decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise TrueupError(f"there is no file {path}", "check the path of the TOML") from None
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, numbers or nests without end
        raise TrueupError(f"{path} is not TOML: {error}", hint) from None
    if long or _depth(data) > _DEEPEST:
        raise TrueupError(f"{path} has more than 1 MiB, or tables in tables without end", hint)
    for key in data:
        if key not in known:
            hint = nearest(key, known) or f"it knows {', '.join(known)}"
            raise TrueupError(f"{path} has no key {quoted(key)}", hint)
    return data


def _depth(data: Any) -> int:
    """Return how deep tables and lists lie in each other, without recursion."""
    depth, inside = 0, [data]
    while inside and depth <= _DEEPEST:
        nested = [v.values() if isinstance(v, dict) else v for v in inside]
        inside = [v for values in nested for v in values if isinstance(v, (dict, list))]
        depth += 1
    return depth


def table_of(path: Path, data: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a table of a TOML file, empty if it has none."""
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise TrueupError(f"{path}: {key} must be a table, got {table!r}", f"write [{key}]")
    return table


def _statistic(name: str, entry: Any) -> Statistic:
    if isinstance(entry, str):
        return Statistic(read_noise(entry))
    if not isinstance(entry, dict) or not isinstance(entry.get("family"), str):
        raise TrueupError(
            f"a noise is a table with a family, or text, got {entry!r}",
            f'write [noise.{name}] and family = "laplace", scale = 2',
        )
    parameters = {key: value for key, value in entry.items() if key not in _OWN}
    _check_parameters(entry["family"], parameters)
    scaled = "scale_column" in entry
    noise = (
        make_noise(entry["family"], [], parameters, scaled=scaled)
        if parameters
        else read_noise(entry["family"], scaled=scaled)
    )
    return Statistic(
        noise, _bounds(entry.get("bounds")), _text(entry, "column"), _text(entry, "scale_column")
    )


def _check_parameters(family: str, parameters: Iterable[str]) -> None:
    """Refuse keys that are misspelt, and parameters beside a family that has them in it."""
    for key in parameters:
        if meant := nearest(key, _OWN, _ALIKE):
            raise TrueupError(f"there is no key {quoted(key)}", meant)
        if "(" in family or "+" in family:
            raise TrueupError(
                f"{quoted(family)} has its parameters in it, and {quoted(key)} stands beside it",
                f'give them in one place: family = "laplace" and {key} = …, or leave {key} out',
            )


def _bounds(value: Any) -> tuple[Number | None, Number | None]:
    if value is None:
        return None, None
    numbers = isinstance(value, list) and all(
        isinstance(v, (int, float)) and not isinstance(v, bool) for v in value
    )
    if not numbers or len(value) != 2:
        shown = quoted(repr(value), 60)
        raise TrueupError(f"bounds are two numbers, got {shown}", "e.g. bounds = [1, inf]")
    Interval(*value)  # refuses bounds beyond double precision, and a low one above the high one
    return value[0], value[1]


def _text(entry: Mapping[str, Any], key: str) -> str | None:
    value = entry.get(key)
    if value is not None and not (isinstance(value, str) and value):
        raise TrueupError(f"{key} is the name of a column, got {value!r}", f'e.g. {key} = "emp"')
    return value
