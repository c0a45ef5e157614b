"""What is said about a table: the privacy of a release in words, and the sidecar in TOML."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from typing import TYPE_CHECKING

from trueup.microdata.measures import Mean, PerRecord, Share, Sum
from trueup.noise.record import snake

if TYPE_CHECKING:
    from trueup.microdata.design import Design
    from trueup.microdata.noisy_totals import Sides, Statistic
    from trueup.noise import Noise

UNRELEASED = "nothing was released"
"""What a refusal ends with."""
READER = "_debiased"
"""How the estimates end that a reader makes again: the table has columns of the other names."""
_SIMULATED = "This is a simulation with a seeded generator: it is NOT private."
_SIZES = (1_000, 1_000_000)  # values of which the loss through a per-record sum is told


@dataclasses.dataclass(frozen=True)
class Privacy:
    """The privacy of a table: the neighbouring relation, and the loss of each measure.

    ``epsilon`` is the total over all measures but those of ``per_record``, whose loss is a function
    of the record; None if there are no others.

    Examples
    --------
    >>> from trueup.microdata.design import Design
    >>> print(Privacy.of(Design.read({"n": "count"}, 1), simulated=False))
    Neighbours differ by one row, added or removed.
    Pure differential privacy with epsilon = 1 in total: n 1.
    """

    neighbours: str
    epsilon: float | None
    measures: dict[str, float]
    per_record: dict[str, str]
    simulated: bool
    free: dict[str, str] = dataclasses.field(default_factory=dict)
    """What costs nothing, as it is made from what is published of another measure."""

    @classmethod
    def of(cls, design: Design, *, simulated: bool) -> Privacy:
        """Return what a design promises."""
        budget = {n: float(e) for n, e in design.budget.items()}
        sums = {n: m for n, m in design.measures.items() if isinstance(m, PerRecord)}
        policies = {name: _policy(measure, design) for name, measure in sums.items()}
        total = float(Fraction(design.epsilon)) if budget else None
        free = {name: " and ".join(sources) for name, sources in design.sources.items()}
        return cls(_neighbours(design), total, budget, policies, simulated, free)

    @property
    def loss(self) -> str:
        """The loss of the whole table, in short."""
        through = f"per-record loss through {', '.join(self.per_record)}"
        parts = [] if self.epsilon is None else [f"epsilon {self.epsilon:g}"]
        return " + ".join([*parts, *[through] * bool(self.per_record)])

    def __str__(self) -> str:
        lines = [f"Neighbours differ by {self.neighbours}."]
        if self.epsilon is None:
            lines.append("No measure has a part of epsilon: the loss depends on the record.")
        else:
            each = ", ".join(f"{name} {e:.6g}" for name, e in self.measures.items())
            total = f"epsilon = {self.epsilon:.6g}{' in total' * (not self.per_record)}"
            lines.append(f"Pure differential privacy with {total}: {each}.")
        for name, source in self.free.items():
            lines.append(
                f"{name} costs nothing: it is estimated from the noisy counts of {source}."
            )
        for name, words in self.per_record.items():
            lines.append(
                f"{'In addition, through' if self.measures else 'Through'} {name}: {words}."
            )
        return "\n".join([*lines, *[_SIMULATED] * self.simulated])


def _neighbours(design: Design) -> str:
    """Return by what two data sets differ that must look alike."""
    if design.unit is None:
        return "one row, added or removed"
    rows = (
        "1 row of each is" if design.at_most == 1 else f"at most {design.at_most} rows of each are"
    )
    return (
        f"one {design.unit} with all its rows, added or removed; {rows} used, chosen at random and "
        "independently of all values"
    )


def _policy(measure: PerRecord, design: Design) -> str:
    """Return the loss of a record through a per-record sum, in words."""
    mechanism = measure.mechanism
    loss = ", ".join(f"{mechanism.policy(size):.3g} at {size:,}" for size in _SIZES)
    root = measure.transform.partition(":")[2]
    a, scale = measure.offset, float(measure.scale)

    def phi(x: str) -> str:
        return f"log({x})" if measure.transform == "log" else f"({x})^(1/{root})"

    moved = f"({phi(f'r + {a}')} − {phi(f'{a}')})" if a else phi("r")
    rows = f", and the losses of the rows of one {design.unit} add up" * (design.at_most > 1)
    return f"a row with {measure.column} = r loses {moved} / {scale:g} ({loss}){rows}"


# -- the sidecar -----------------------------------------------------------------------------------


def sidecar(design: Design, privacy: Privacy) -> str:
    """Return the TOML that ``trueup debias --spec`` reads: noise, bounds, formulas, privacy."""
    lines = ["# The noise of a private table, for `trueup debias TABLE OUT --spec THIS`"]
    lines += [f"# {text(line)[1:-1]}" for line in str(privacy).splitlines()]
    for statistic in design.statistics:
        lines += _noise(statistic.name, statistic, statistic.bounds, statistic.about)
        if statistic.measure == design.count and design.shared:
            about = (
                "the same count as a divisor: in a group without records what is divided is 0 "
                "too, so that quotients have no bias there either"
            )
            lines += _noise(design.divisor, statistic, (1, None), about)
    lines += ["", "[estimate]"]
    lines += [f"{key(e.name + READER)} = {text(e.formula)}" for e in design.estimates]
    return "\n".join([*lines, *_privacy(design, privacy), ""])


def _noise(name: str, statistic: Statistic, bounds: Sides, about: str) -> list[str]:
    low = "-inf" if bounds[0] is None else _number(bounds[0])
    high = "inf" if bounds[1] is None else _number(bounds[1])
    known = [] if bounds == (None, None) else [f"bounds = [{low}, {high}]"]
    return [
        "",
        f"# {text(about)[1:-1]}",
        f"[noise.{key(name)}]",
        *_law(statistic.noise),
        *known,
        f"column = {text(statistic.column)}",
    ]


def _law(noise: Noise) -> list[str]:
    """Return a noise, of one parameter, as a sidecar writes it."""
    family = text(snake(type(noise).__name__))
    return [f"family = {family}", f"{noise.scale_name} = {_number(noise.unit)}"]


def _privacy(design: Design, privacy: Privacy) -> list[str]:
    simulation = f"simulation = {str(privacy.simulated).lower()}"
    lines = ["", "[privacy]", simulation, f"neighbours = {text(privacy.neighbours)}"]
    if privacy.per_record:
        lines.append(f"per_record = [{', '.join(map(text, privacy.per_record))}]")
    if privacy.epsilon is not None:
        total = "epsilon_of_the_others" if privacy.per_record else "epsilon"
        lines.append(f"{total} = {_number(privacy.epsilon)}")
    if design.unit is not None:
        lines += [f"unit = {text(design.unit)}", f"at_most = {design.at_most}"]
    lines += [f"by = [{', '.join(map(text, design.by))}]", "", "[privacy.measures]"]
    for name, measure in design.measures.items():
        entry = f"measure = {text(words(measure))}"
        if name in privacy.free:
            entry += f", epsilon = 0, from = {text(privacy.free[name])}"
        elif name in privacy.measures:
            entry += f", epsilon = {_number(privacy.measures[name])}"
        else:
            entry += f", loss = {text(privacy.per_record[name])}"
        lines.append(f"{key(name)} = {{ {entry} }}")
    return lines


def words(measure: object) -> str:
    """Return a measure as it is written."""
    if isinstance(measure, (Mean, Sum)):
        low, high = (_number(b) for b in measure.bounds)
        return f"{type(measure).__name__.lower()}({_argument(measure.column)}, {low}, {high})"
    if isinstance(measure, Share):
        listed = ", ".join(map(_quoted, measure.categories))
        return f"share({_argument(measure.column)}, [{listed}])"
    if isinstance(measure, PerRecord):
        offset = f", offset={_number(measure.offset)}" if measure.offset else ""
        scale = _number(measure.scale)
        return f"per_record({_argument(measure.column)}, {measure.transform}, {scale}{offset})"
    return "count"


def _argument(column: str) -> str:
    return column if column.isidentifier() else _quoted(column)


def _quoted(value: str) -> str:
    """Return text in quotes that it does not hold itself: measures know no escapes."""
    mark = next((m for m in "\"'`" if m not in value), '"')
    return f"{mark}{value}{mark}"


def _number(value: int | float | Fraction) -> str:
    """Return a number of TOML that is read as the same double."""
    return str(value) if isinstance(value, int) else repr(float(value))


def text(value: str) -> str:
    """Return a string of TOML: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def key(value: str) -> str:
    """Return a key of TOML."""
    plain = value.isascii() and value.replace("_", "").replace("-", "").isalnum()
    return value if plain else text(value)
