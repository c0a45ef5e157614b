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
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from prove.checks import Finding, Report, examine, tolerant
from prove.expectations import finer
from prove.grammar import Case, draw
from prove.shrink import shrunk

SECONDS = 20
"""Processor time (not time by the clock) after which a question counts as one that never ends."""
CASE = 5
"""Seconds for all questions of a case together: what is not asked by then is not settled."""
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


class Clock:
    """Interrupts a case after some seconds of processor time, but for a question under way.

    That is waited for, and is a finding if it takes as many seconds as no question should.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.began = seconds, 0.0
        self.question: FrameType | None = None
        self.endless = False

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Raise TooLongError in what takes too long."""
        before = signal.signal(signal.SIGVTALRM, self._look)
        signal.setitimer(signal.ITIMER_VIRTUAL, min(CASE, self.seconds), min(1.0, self.seconds))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
            self.question = None

    def _look(self, _: int, frame: FrameType | None) -> None:
        asked = _question(frame)
        if asked is None or self.question not in (None, asked):
            raise TooLongError
        if self.question is None:
            self.question, self.began = asked, time.process_time()
        elif time.process_time() - self.began >= self.seconds:
            self.endless = True
            raise TooLongError


def _question(frame: FrameType | None) -> FrameType | None:
    """Return the outermost call of the library, unless it is one value of an integral."""
    found = None
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith("expectations.py"):
            return None
        if "/trueup/" in name or frame.f_code.co_name == "build":
            found = frame
        frame = frame.f_back
    return found


def examined(case: Case, seconds: float = SECONDS, thorough: bool = True) -> Report:
    """Return the report of a case; a question that does not come to an end is a finding."""
    clock, report = Clock(seconds), Report("too long")
    try:
        with clock.limited():
            examine(case, thorough, report)
    except TooLongError:
        if clock.endless:
            expected = f"an answer within {seconds} s"
            report.findings.append(Finding("too long", case, "", expected, "none"))
        else:
            report.unsettled["not all asked for want of time"] += 1
    return report


def certain(finding: Finding) -> bool:
    """Whether the same check complains again: asked by a finer rule, ten times as tolerant."""
    with finer(), tolerant():
        return any(f.check == finding.check for f in examined(finding.case).findings)


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
