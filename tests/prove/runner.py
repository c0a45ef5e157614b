"""Run many cases, on several processes, and say what came of them.

``python -m prove`` (with ``tests`` and ``src`` on the path, see ``make prove``) draws 20,000 cases,
shrinks and keeps every disagreement and writes RELIABILITY.md. The tests run a few hundred.
"""

from __future__ import annotations

import collections
import dataclasses
import multiprocessing
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prove.checks import Finding, Report, examine
from prove.grammar import Case, draw
from prove.shrink import shrunk

SECONDS = 20
"""Processor time (not time by the clock) after which a case counts as one that never returns."""
PER_WORKER = 400
"""Cases after which a process is replaced: sympy's caches grow with every formula."""


class TooLongError(BaseException):
    """A case took more processor time than any case should."""


@dataclasses.dataclass
class Figures:
    """The sums over all cases."""

    seed: int
    processes: int = 1
    cases: int = 0
    seconds: float = 0.0
    outcomes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    compared: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    unsettled: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    found: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    findings: list[Finding] = dataclasses.field(default_factory=list)

    def add(self, report: Report) -> None:
        """Add one case."""
        self.cases += 1
        self.outcomes[report.outcome] += 1
        self.compared.update(report.compared)
        self.unsettled.update(report.unsettled)
        self.found.update({f.check for f in report.findings})
        self.findings += first_of_each(report.findings)


def first_of_each(findings: list[Finding]) -> list[Finding]:
    """Return the first finding of every check."""
    return list({f.check: f for f in reversed(findings)}.values())


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Interrupt what takes more processor time than this."""

    def stop(*_: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def examined(case: Case, seconds: float = SECONDS, thorough: bool = True) -> Report:
    """Return the report of a case; one that does not come to an end is a finding."""
    try:
        with limited(seconds):
            return examine(case, thorough)
    except TooLongError as error:
        report = Report("too long")
        if _in_the_library(error):
            expected = f"an answer within {seconds} s"
            report.findings.append(Finding("too long", case, "", expected, "none"))
        else:
            report.unsettled["the oracle takes too long"] += 1
        return report


def _in_the_library(error: BaseException) -> bool:
    """Whether one question took so long, not the thousands of values of an integral."""
    frames = traceback.extract_tb(error.__traceback__)
    if any(f.filename.endswith("expectations.py") for f in frames):
        return False
    return any("/trueup/" in f.filename or f.name == "build" for f in frames)


def by_seed(seed: int) -> Report:
    """Draw and examine one case; what is dear is asked of some."""
    return examined(draw(seed), thorough=False)


def run(seed: int, count: int, processes: int = 1, start: int = 0) -> Figures:
    """Examine ``count`` cases, from the one with the number ``start`` on."""
    began, figures = time.monotonic(), Figures(seed, processes)
    first = seed * 10_000_000 + start
    seeds = range(first, first + count)
    if processes == 1:
        for one in seeds:
            figures.add(by_seed(one))
    else:
        context = multiprocessing.get_context("spawn")
        with context.Pool(processes, maxtasksperchild=PER_WORKER // 8) as pool:
            for report in pool.imap_unordered(by_seed, seeds, chunksize=8):
                figures.add(report)
    figures.seconds = time.monotonic() - began
    return figures


def smallest(finding: Finding) -> Case:
    """Return a small case on which the same check still fails."""

    def shows(case: Case) -> bool:
        return any(f.check == finding.check for f in examined(case, 8).findings)

    return shrunk(finding.case, shows)
