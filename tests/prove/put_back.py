"""Defects that once were, put back one by one: what finds them, and after how many cases.

Each is a small change of the present code that makes it wrong in the way it was. Cases are drawn in
order from a fixed seed and only those that touch what was changed are examined, with everything
that is asked of them; a case counts as a find if a check complains of it that does not complain of
the same case in the unchanged code. Regression tests are not looked at.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import multiprocessing
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np

from prove import published
from prove.faults import shown
from prove.grammar import Case, cases
from prove.runner import examined
from trueup import estimator, inputs
from trueup.adapters import clamping, opendp_summary
from trueup.formula import given_derivatives, source
from trueup.inverse import component, exact_law, existence, regularity, solve
from trueup.kernels import grid
from trueup.kernels.evaluate import RepairedProgram
from trueup.mechanisms import shares
from trueup.mechanisms.whole_numbers import Grid
from trueup.noise.laplace_sums import LaplaceSum
from trueup.noise.scipy_noise import ScipyNoise

SEED = 4
MOST = 150
"""Cases examined for one defect before it counts as missed."""
ENOUGH = 12
"""Defects, of sixteen, that a run must find."""
DRAWN = 20_000
"""Cases drawn for one defect: no more than a whole run draws."""

Patch = tuple[Any, str, Any]


@dataclasses.dataclass(frozen=True)
class Defect:
    """One defect: what it did, how it is put back, which cases it can touch."""

    number: int
    what: str
    patches: tuple[Patch, ...] = ()
    formula: str = ""
    noise: str = ""
    domain: Callable[[Case], bool] = lambda _: True

    def touches(self, case: Case) -> bool:
        """Whether a case may show it."""
        noises = " ".join(case.noises.values())
        found = re.search(self.formula, case.formula) and re.search(self.noise, noises)
        return bool(found) and self.domain(case)

    @contextmanager
    def back(self) -> Iterator[None]:
        """Put it back for a while."""
        with ExitStack() as stack:
            for where, name, wrong in self.patches:
                stack.enter_context(patch.object(where, name, wrong))
            yield


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What found a defect: the check, how many cases were drawn and examined, the case."""

    number: int
    check: str = ""
    drawn: int = 0
    examined: int = 0
    case: str = ""


# -- the old ways ----------------------------------------------------------------------------------


def _from_outside(f: Any, point: Any, beside: Any = component.beside) -> Any:
    return beside(f, {s: (value, -side) for s, (value, side) in point.items()})


def _first_scene(*given: Any, scenes: Any = regularity.scenes) -> Any:
    return scenes(*given)[:1]


def _partial_fractions(law: LaplaceSum) -> Any:
    groups = [[b] * n for b, n in law.counts.items()]
    return [[law._cluster(group, 0.0, power) for group in groups] for power in (0, 1)]


def _heavier_tail(noise: ScipyNoise) -> tuple[float, float]:
    rate = min(rate for rate, _ in noise._tails)
    return rate, rate


def _without_series(f: Any, symbol: Any, domain: Any, steadied: Any = solve.steadied) -> Any:
    return steadied(f, symbol, domain)._replace(f=f)


def _f_itself(law: Any, truth: Any) -> float:
    if all(truth[s.symbol] in s.domain for s in law.statistics):
        return exact_law._value(law.inverse.f, truth)
    return sum(part.mean(truth) for part in law.parts())


def _slow_is_finite(found: Any, jumps: Any, kind: Any = regularity._kind) -> str:
    told = kind(found, jumps)
    slow = all(abs(side.exponent) < 0.05 for side in found[1])  # slower than any power
    return "mild" if told == "steep" and slow else told


def _nothing(*_: Any) -> None:
    return None


def _as_it_is(first: Any, *_: Any) -> Any:
    return first


def _sum_of_floats(grid: Grid, records: Any) -> int:
    clipped = np.clip(records.high, *map(float, grid.bounds))
    total = float(np.sum(clipped)) - len(records) * float(grid.origin)
    return round(Fraction(total) / grid.reach * grid.steps)


def _on_any_grid(found: Any) -> tuple[list[float], None]:
    largest = max(1.0, *(abs(float(s)) for s in found))
    step = 2.0 ** (math.ceil(math.log2(len(found) * largest)) - 52)
    *first, _ = (round(float(s) / step) * step for s in found)
    return [*first, 1.0 - sum(first)], None


def _as_if_signed(row: Any, name: str, _: Any) -> Any:
    return opendp_summary._noise(row, name)


def _kinks_behind_counts(case: Case) -> bool:
    """Whether a statistic on the line may bend in a case that whole numbers pick."""
    kinds = {bool(re.match("Discrete|Rounded|Mass", text)) for text in case.noises.values()}
    return len(kinds) > 1


def _several(case: Case) -> bool:
    return len(case.noises) > 1


def _bounded(case: Case) -> bool:
    return any(b is not None for bounds in case.domain.values() for b in bounds[:2])


def _narrow_bound(case: Case) -> bool:
    ends = [b for bounds in case.domain.values() for b in bounds[:2] if b is not None]
    return any(float(np.float32(b)) != b for b in ends)


def _on_the_line(case: Case) -> bool:
    return not any("integers" in bounds for bounds in case.domain.values())


_LINE = r"^Laplace\([^)]*\)$"
DEFECTS = (
    Defect(
        1,
        "slopes at a bound taken from outside",
        ((solve, "inside", _as_it_is), (component, "beside", _from_outside)),
        r"abs|max|min|where",
        _LINE,
        _bounded,
    ),
    Defect(
        2,
        "other statistics frozen at one value",
        ((regularity, "scenes", _first_scene), (existence, "scenes", _first_scene)),
        r"where\(.*(abs|max|min|sqrt)",
        r"(^|[^ed])Laplace",
        _kinks_behind_counts,
    ),
    Defect(
        3,
        "a function's statistics in the order of the dict",
        ((source, "by_name", _as_it_is),),
        "",
        r"^(DiscreteLaplace\([^)]*\) ?){2,}$",
        _several,
    ),
    Defect(
        4,
        "sums of nearly equal Laplace noises by partial fractions",
        ((LaplaceSum, "_separate", property(_partial_fractions)),),
        "",
        r"0\.1\+0\.2",
    ),
    Defect(
        5,
        "values at single points accepted",
        ((solve, "check_points", _nothing),),
        r"where",
        _LINE,
        _on_the_line,
    ),
    Defect(
        6,
        "overflow on the way to a finite answer",
        ((RepairedProgram, "_repair", _nothing),),
        r"exp|cosh|sinh|tanh",
        r"Laplace",
    ),
    Defect(7, "sums of floats under noise for one record"),
    Defect(
        8,
        "float32 compared with a bound that it cannot hold",
        ((grid, "at_bounds", _as_it_is), (inputs, "at_bounds", _as_it_is)),
        "",
        r"^Laplace",
        _narrow_bound,
    ),
    Defect(
        9,
        "one-sided noises with the heavier tail on both sides",
        ((ScipyNoise, "tail_rates", property(_heavier_tail)),),
        r"exp",
        r"expon",
    ),
    Defect(
        10,
        "masks lost",
        ((estimator, "with_mask", _as_it_is), (inputs, "with_mask", _as_it_is)),
    ),
    Defect(
        11,
        "0/0 computed as it is written, beside the point",
        ((solve, "steadied", _without_series),),
        r"sin\(.*/|cos\(.*/|exp\(.*/|/\(exp",
        _LINE,
    ),
    Defect(
        12,
        "the expectation at 0/0 is no number",
        ((exact_law.ExactLaw, "expectation", _f_itself),),
        r"/",
        r"Laplace",
        _on_the_line,
    ),
    Defect(
        13,
        "an infinite slope as slow as a logarithm accepted",
        ((regularity, "_kind", _slow_is_finite),),
        r"log",
        _LINE,
        _on_the_line,
    ),
    Defect(
        14,
        "shares of many cells that sum to 0",
        ((shares, "_exactly_one", _on_any_grid),),
        "shares",
    ),
    Defect(
        15,
        "derivatives never compared with f",
        ((given_derivatives, "check", _nothing),),
        "",
        _LINE,
        _on_the_line,
    ),
    Defect(
        16,
        "clamped Gaussian counts read as plain ones",
        ((clamping, "REACH", 0), (opendp_summary, "_from_zero", _as_if_signed)),
        "count",
    ),
)


# -- the search ------------------------------------------------------------------------------------


def found(defect: Defect) -> Outcome:
    """Return what finds a defect first."""
    if defect.number == 7:
        return _by_privacy(defect)
    if defect.formula in published.CHECKS:
        return _by_published(defect)
    looked = itertools.count(1)
    for drawn, case in enumerate(cases(SEED, DRAWN), 1):
        if not defect.touches(case):
            continue
        turn = next(looked)
        check = _complaint(defect, case)
        if check:
            return Outcome(defect.number, check, drawn, turn, _shown(case))
        if turn >= MOST:
            break
    return Outcome(defect.number)


def _complaint(defect: Defect, case: Case) -> str:
    """Return a check that complains of a case only while the defect is back."""
    with defect.back():
        wrong = {f.check for f in examined(case).findings}
    if not wrong:
        return ""
    new = wrong - {f.check for f in examined(case).findings}
    return min(new, default="")


def _by_privacy(defect: Defect) -> Outcome:
    from prove.privacy import SUBJECTS, searched

    for turn, (name, subject) in enumerate(SUBJECTS.items(), 1):
        with patch.object(Grid, "total", _sum_of_floats):
            share = searched(subject, subject.make()).share
        if share > 1 and not searched(subject, subject.make()).exceeded:
            text = f"{name}: {share:.3g} times the loss stated"
            return Outcome(defect.number, "privacy", turn, turn, text)
    return Outcome(defect.number)


def _by_published(defect: Defect) -> Outcome:
    for seed in range(published.CASES):
        with defect.back():
            wrong = published.CHECKS[defect.formula](seed)
        if wrong is not None and published.CHECKS[defect.formula](seed) is None:
            text = f"{wrong.asked}: {wrong.got}"
            return Outcome(defect.number, wrong.check, seed + 1, seed + 1, text)
    return Outcome(defect.number)


def _shown(case: Case) -> str:
    def bound(b: Any) -> str:
        return "∞" if b is None or math.isinf(b) else f"{b:g}"

    noises = ", ".join(f"{n}: {text}" for n, text in case.noises.items())
    domain = ", ".join(f"[{bound(b[0])}, {bound(b[1])}]" for b in case.domain.values())
    return f"`{case.formula}`, {noises} on {domain}"


def outcomes(processes: int) -> list[Outcome]:
    """Return what finds each defect."""
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=1) as pool:
        return pool.map(_numbered, [d.number for d in DEFECTS], chunksize=1)


def _numbered(number: int) -> Outcome:
    return found(next(d for d in DEFECTS if d.number == number))


def figures(processes: int) -> list[str]:
    """Return the section of RELIABILITY.md."""
    seen = outcomes(processes)
    count = sum(bool(o.check) for o in seen)
    rows = [
        f"| {d.number} | {d.what} | {o.check} | {o.drawn:,} | {o.examined} | {o.case} |"
        if o.check
        else f"| {d.number} | {d.what} | not found | | | |"
        for d, o in zip(DEFECTS, seen, strict=True)
    ]
    return [
        "## Defects put back",
        "",
        f"{shown(count, count < ENOUGH)} of {len(seen)} defects that once were, "
        f"put back one by one (`tests/prove/put_back.py`, seed {SEED}), are found. Only cases",
        "that touch what was changed are examined; all that were drawn until then are counted.",
        "",
        "| | put back | found by | cases drawn | examined | the case |",
        "| --- | --- | --- | --- | --- | --- |",
        *rows,
        "",
    ]


if __name__ == "__main__":
    print("\n".join(figures(2)))
