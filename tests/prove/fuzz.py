"""Ask everything of drawn cases: only a TrueupError may be raised, and every answer must come.

In tests a few hundred cases run in the process itself; the deep run has workers with limits::

    PYTHONPATH=src:tests python -m prove.fuzz --count 20000

``--without sd,sql`` leaves out questions by the beginning of their names, for more cases in
the same time. A case that needs more than 20 s of its processor, or more than 4 GB, is a fault
like any other. Faults are printed by the place in the library where they arose, one example each
and written to ``--out`` as JSON lines, one per case.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import trueup as tu
from prove.grammar import Case, cases, draw

SECONDS = 20  # of processor time for all that is asked of one case
MEMORY = 4 * 2**30  # bytes of address space: libraries alone map more than one of them
_GRACE = 600  # seconds on the clock, where others use the machine too, before a worker is given up


class OverTimeError(BaseException):
    """The time of a case is over. Not an Exception, so that nothing in between takes it for one."""


class Fault(NamedTuple):
    """What went wrong: in which step, with which error, where in the library."""

    step: str
    error: str
    site: str


class Outcome(NamedTuple):
    """What became of a case."""

    seed: int
    answered: bool
    seconds: float
    faults: list[Fault]


def examine(case: Case, without: tuple[str, ...] = ()) -> tuple[bool, list[Fault]]:
    """Ask everything of a case; return whether there is an estimator, and the faults."""
    faults: list[Fault] = []

    def attempt(step: str, action: Callable[[], Any]) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", tu.BoundWarning)  # it tells, like a reason
                return action()
        except tu.TrueupError:
            return None
        except (Exception, OverTimeError) as error:
            faults.append(Fault(step, f"{type(error).__name__}: {error}"[:200], _site(error)))
            if isinstance(error, OverTimeError):
                raise
            return None

    with contextlib.suppress(OverTimeError):
        estimator = attempt("build", case.build)
        if estimator is not None:
            for step, action in _questions(case, estimator):
                if not step.startswith(without):
                    attempt(step, action)
        return estimator is not None, faults
    return False, faults


def _questions(case: Case, est: tu.Estimator) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield everything that can be asked of an estimator."""
    published, truths = case.published(), case.truths()
    columns = {name: np.array([x[name] for x in published]) for name in case.noises}
    for x in published:
        yield "value", lambda x=x: est(**x)
        yield "variance", lambda x=x: est.variance(**x)
        yield "interval", lambda x=x: est.interval(**x)
    yield "array", lambda: (est(**columns), est.stderr(**columns))
    for q in truths:
        yield "expectation", lambda q=q: (est.expectation(**q), est.bias(**q))
        yield "sd", lambda q=q: est.sd(**q)
    yield "explain", est.explain
    yield "formula", lambda: est.formula
    yield "sql", lambda: est.sql()
    yield "sql variance", lambda: est.sql(output="variance")
    yield "json", lambda: _read_back(est, published)


def _read_back(est: tu.Estimator, published: list[dict[str, float]]) -> None:
    """Check that JSON gives the same estimator back."""
    again = tu.Estimator.from_json(est.to_json())
    for x in published:
        one, two = est(**x), again(**x)
        if not (one == two or (math.isnan(one) and math.isnan(two))):
            raise AssertionError(f"read back from JSON, {one} became {two} at {x}")


def _site(error: BaseException) -> str:
    """Return the innermost place in the library that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/trueup/" in f.filename]
    if not own:
        return "outside"
    return f"{own[-1].filename.partition('/trueup/')[2]}:{own[-1].name}"


# -- workers ---------------------------------------------------------------------------------------


def _over(*_: object) -> None:
    raise OverTimeError(f"more than {SECONDS} s")


def _work(pipe: Connection, without: tuple[str, ...]) -> None:
    """Answer seeds until there are no more."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, _over)
    while (seed := pipe.recv()) is not None:
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS, 1.0)
        try:
            answered, faults = examine(draw(seed), without)
        except OverTimeError:
            answered, faults = False, [Fault("late", "OverTimeError", "outside")]
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send(Outcome(seed, answered, time.process_time() - start, faults))


class _Worker:
    """A process and the case it is at."""

    def __init__(self, without: tuple[str, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, without))
        self.process.start()
        theirs.close()
        self.seed, self.since = 0, 0.0

    def give(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        self.pipe.send(seed)

    def outcome(self) -> Outcome:
        """Return what came, or that the process died."""
        try:
            outcome: Outcome = self.pipe.recv()
        except EOFError:
            return self.lost("died")
        return outcome

    def lost(self, why: str) -> Outcome:
        """End the process; the case it was at is a fault."""
        self.process.kill()
        self.process.join()
        return Outcome(self.seed, False, time.monotonic() - self.since, [Fault("all", why, why)])


def run(seeds: Iterator[int], workers: int, without: tuple[str, ...] = ()) -> Iterator[Outcome]:
    """Yield the outcome of every seed, in the order they come."""
    crew: list[_Worker] = []
    for seed in seeds:
        if len(crew) < workers:
            crew.append(_Worker(without))
            crew[-1].give(seed)
            continue
        yield from _served(crew, seed, without)
    for worker in crew:
        worker.process.join(0)
        yield worker.outcome() if worker.pipe.poll(SECONDS + _GRACE) else worker.lost("stuck")
        if worker.process.is_alive():
            worker.pipe.send(None)
            worker.process.join()


def _served(crew: list[_Worker], seed: int, without: tuple[str, ...]) -> Iterator[Outcome]:
    """Wait for one worker to be free, give it the seed, yield what it had."""
    while True:
        ready = wait([w.pipe for w in crew], timeout=5)
        for place, worker in enumerate(crew):
            late = time.monotonic() - worker.since > SECONDS + _GRACE
            if worker.pipe not in ready and not late:
                continue
            outcome = worker.outcome() if worker.pipe in ready else worker.lost("stuck")
            if not worker.process.is_alive():
                crew[place] = worker = _Worker(without)
            worker.give(seed)
            yield outcome
            return


def main() -> int:
    """Run many cases and print the faults by place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--without", default="", help="questions not to ask, e.g. sd,sql")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--again", type=Path, help="the cases in an earlier --out, no others")
    options = parser.parse_args()
    seeds = [case.seed for case in cases(options.seed, options.count)]
    if options.again:
        seeds = [json.loads(line)["seed"] for line in options.again.read_text().splitlines()]
    without = tuple(filter(None, options.without.split(",")))
    sites: Counter[tuple[str, str]] = Counter()
    answered = bad = 0
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(options.out.open("w")) if options.out else None
        for outcome in run(iter(seeds), options.workers, without):
            answered += outcome.answered
            bad += bool(outcome.faults)
            if out is not None and (outcome.faults or outcome.seconds > SECONDS / 4):
                case = draw(outcome.seed)
                record = {**outcome._asdict(), "case": [case.formula, case.noises, case.domain]}
                out.write(json.dumps(record) + "\n")
                out.flush()
            for fault in outcome.faults:
                key = (fault.site, fault.error.partition(":")[0])
                sites[key] += 1
                if sites[key] == 1:
                    print(
                        f"{key[0]} {fault.step}: {fault.error}\n    {draw(outcome.seed)}",
                        flush=True,
                    )
    for (site, error), count in sites.most_common():
        print(f"{count:6} {error} at {site}")
    print(f"{len(seeds)} cases, {answered} estimators, {bad} cases with faults")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
