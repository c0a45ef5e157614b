"""What the options of a command say of a release, over what its sidecar says.

Options override the sidecar (:mod:`trueup.tables.spec`), statistic by statistic; formulas given on
the command line replace ``[estimate]``.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from trueup.adapters.notation import Name, assignment, read_number, split
from trueup.errors import TrueupError, quoted
from trueup.files.job import Job
from trueup.formula.linear import conditions
from trueup.noise.reading import read_noise
from trueup.tables.spec import Spec, read_spec

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from trueup.noise.reading import Number

_NAME_HINT = 'give the column a name: "mean = s/n"'
_MEMBER = re.compile(r"(.+?)\s+in\s+\[([^,\]]*),([^,\]]*)\]\s*")


def read_release(args: argparse.Namespace, formulas: Iterable[str]) -> Spec:
    """Return what the sidecar and the options say together, the options first."""
    release = Spec() if args.spec is None else read_spec(args.spec)
    for text in args.column:
        name, column = _pair(text, "--column", "n=emp")
        release.given(name).column = column
    for text in args.scale:
        name, column = _pair(text, "--scale", "n=emp_scale")
        release.given(name).scale_column = column
    for text in args.noise:
        of, law = assignment(text)
        if of is not None and "(" in of and "`" not in text:  # laplace(epsilon=1), of all
            of, law = None, text
        if of is None:
            release.default = read_noise(law)
        else:
            statistic = release.given(of)
            statistic.noise = read_noise(law, scaled=statistic.scale_column is not None)
    _read_bounds(release, args.domain)
    for option in ("empty", "max_bias", "cells"):
        for text in getattr(args, option):
            of, value = assignment(text)
            getattr(release, option)[of or ""] = read_number(value)
    release.clamped = release.clamped or args.clamped
    release.formulas = named(formulas, "formula", _NAME_HINT) or release.formulas
    return release


def _read_bounds(release: Spec, texts: Iterable[str]) -> None:
    """Set the bounds; two texts on the two sides of one statistic add up."""
    given: dict[str, list[Number | None]] = {}
    for text in texts:
        box, tied = conditions(_as_inequality(text))
        if tied:
            release.options |= set(box).union(*(c.names for c in tied))
            release.conditions.append(text)
            continue
        for name, interval in box.items():
            sides = given.setdefault(name, [None, None])
            for side, value in enumerate(interval.bounds):
                if value is not None and sides[side] is not None:
                    raise TrueupError(
                        f"a bound of {quoted(name)} is given twice, in {quoted(text)} again",
                        "give one bound for each side",
                    )
                sides[side] = sides[side] if value is None else value
    for name, (low, high) in given.items():
        release.given(name).bounds = (low, high)


def _as_inequality(text: str) -> str:
    """Return a condition in the notation of the library.

    Examples
    --------
    >>> _as_inequality("n in [1, 500]"), _as_inequality("n in [1, inf]"), _as_inequality("n >= 1")
    ('1 <= n <= 500', '1 <= n', 'n >= 1')
    """
    member = _MEMBER.fullmatch(text.strip())
    if member is None:
        return text
    low, high = (side.strip() for side in member.groups()[1:])
    below = "" if low.endswith("inf") else f"{low} <= "
    above = "" if high.endswith("inf") else f" <= {high}"
    return f"{below}{member[1]}{above}"


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    name, value = split(text)
    if not name or not value.strip():
        problem = f"{option} needs a name and a column, got {quoted(text)}"
        raise TrueupError(problem, f"e.g. {example}")
    return name, Name(value)


def named(texts: Iterable[str], what: str, hint: str) -> dict[str, str]:
    """Return the formulas, or whatever they are, by name: each text has one of its own."""
    found: dict[str, str] = {}
    for text in texts:
        name, value = assignment(text)
        if not name or (what == "measure" and "(" in name):  # per_record(pay, log, offset=1)
            raise TrueupError(f"the {what} {quoted(text)} has no name", hint)
        if name in found:
            raise TrueupError(f"two {what}s have the name {quoted(name)}", "rename one of them")
        found[name] = value
    return found


def make_job(release: Spec, args: argparse.Namespace, made: Mapping[str, Any], **more: Any) -> Job:
    """Return the job of a command: its arguments, what is estimated in which columns, and more.

    Arguments that a job knows have the same names there.
    """
    statistics = {s for e in made.values() for s in e.statistics}
    known = {f.name for f in dataclasses.fields(Job)}
    given = {key: value for key, value in vars(args).items() if key in known}
    return Job(
        **given | {"clamped": release.clamped, "simulated": release.simulated} | more,
        estimators=made,
        columns=release.columns_of(statistics),
        scales=release.scales_of(statistics),
    )
