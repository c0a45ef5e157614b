"""Give everything that reads text a million texts: only a TrueupError may come out.

``python -m prove.inputs`` (with ``tests`` and ``src`` on the path) runs them; ``figures`` is the
part of RELIABILITY.md. A text that leads to another error, to more work than ``LINES`` or to more
than 500 MiB is shrunk and kept in ``inputs.json``, which the tests replay.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import gc
import json
import multiprocessing
import os
import random
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import trueup as tu
from prove.readers import READERS, Reader
from prove.section import Section
from work import TooMuchError, bounded

LINES = 20_000_000
"""Lines of Python that the reading of one text may execute: a few seconds of them."""
LONG = 2.0
"""Seconds of processor time after which a text is read again and its lines are counted."""
MEMORY = 500 * 2**20
"""Bytes by which one text may enlarge the process."""
FILE = Path(__file__).with_name("inputs.json")

_LONGEST = 600  # seconds of processor time after which the system ends what cannot be interrupted
_ADDRESSES = 2 * 2**30  # bytes of address space beyond the first: the machine itself is not harmed
_TASK = 250  # texts for a worker at once
_PER_WORKER = 40_000  # texts, after which caches have grown enough and a new process starts
_TRIES = 400  # texts tried to shrink one
_MOST = 40  # faults shrunk in one run: more of them have a cause in common
_FAULTS = 200  # faults after which a run has seen enough


class Fault(NamedTuple):
    """A text, and what came out instead of an answer or a reason."""

    reader: str
    text: str
    error: str
    site: str

    @property
    def kind(self) -> tuple[str, str, str]:
        """What two texts with the same cause have in common."""
        return self.reader, self.error.partition(":")[0], self.site


@dataclasses.dataclass
class Tally:
    """The sums over the texts of one reader."""

    texts: int = 0
    taken: int = 0
    memory: int = 0
    faults: list[Fault] = dataclasses.field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the sums of other texts."""
        self.texts += other.texts
        self.taken += other.taken
        self.memory = max(self.memory, other.memory)
        self.faults += other.faults


# -- one text --------------------------------------------------------------------------------------


def examine(
    reader: Reader, text: str, tally: Tally | None = None, floor: int | None = None
) -> Fault | None:
    """Give a reader a text; return what went wrong.

    ``floor`` is the memory of the process before this and other texts, in bytes.
    """
    tally = Tally() if tally is None else tally
    before = peak()
    try:
        fault, taken = bounded(lambda: _attempt(reader, text), LINES, LONG)
    except TooMuchError:
        fault, taken = Fault(reader.name, text, f"TooMuchError: {LINES:,} lines", "outside"), False
    after = peak()
    grown = after - (before if floor is None else floor)
    if fault is None and after > before and grown > MEMORY:
        fault = Fault(reader.name, text, f"MemoryError: {grown >> 20} MiB", "outside")
    tally.texts += 1
    tally.taken += taken
    tally.memory = max(tally.memory, grown)
    if fault is not None:
        tally.faults.append(fault)
    return fault


def _attempt(reader: Reader, text: str) -> tuple[Fault | None, bool]:
    """Return what went wrong, and whether the text was taken."""
    try:
        reader.read(text)
    except tu.TrueupError:
        return None, False
    except Exception as error:
        said = f"{type(error).__name__}: {error}"[:200]
        return Fault(reader.name, text, said, _site(error)), False
    return None, True


def _site(error: BaseException) -> str:
    """Return the innermost place in the library that an error went through."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if "/trueup/" in f.filename]
    return f"{own[-1].filename.partition('/trueup/')[2]}:{own[-1].name}" if own else "outside"


def peak() -> int:
    """Return the most memory that the process has had, in bytes.

    On Linux that of its own image: ``ru_maxrss`` remembers that of the process it was forked from.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [x for x in status.read_text("utf-8").splitlines() if x.startswith("VmHWM")]
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak() -> None:
    """Let the peak start anew from what the process has now, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


# -- many texts ------------------------------------------------------------------------------------


def prepared() -> None:
    """Import what is imported when first needed: that is nobody's work."""
    for reader in READERS:
        for seed in range(12):
            with contextlib.suppress(tu.TrueupError):
                reader.read(reader.valid(random.Random(seed)))


def of_seeds(reader: Reader, seeds: Sequence[int], note: Callable[[int], None] = id) -> Tally:
    """Examine the texts of some seeds; each is noted before it is read."""
    tally = Tally()
    forget_peak()
    floor = peak()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in seeds:
            note(seed)
            examine(reader, reader.draw(seed), tally, floor)
    return tally


def shares(count: int) -> dict[str, int]:
    """Return how many of so many texts each reader gets, one at least."""
    whole = sum(reader.share for reader in READERS)
    return {reader.name: max(1, count * reader.share // whole) for reader in READERS}


def run(seed: int, count: int, processes: int = 1) -> dict[str, Tally]:
    """Examine ``count`` texts and return the sums by reader; one process is this one."""
    tallies = {reader.name: Tally() for reader in READERS}
    tasks = collections.deque(_tasks(seed, count))
    if processes == 1:
        prepared()
        for place, seeds in tasks:
            tallies[READERS[place].name].add(of_seeds(READERS[place], seeds))
        return tallies
    for place, tally in _by_crew(tasks, processes):
        tallies[READERS[place].name].add(tally)
        if sum(len(t.faults) for t in tallies.values()) > _FAULTS:
            break
    return tallies


def _tasks(seed: int, count: int) -> list[tuple[int, range]]:
    """Return which reader gets which seeds, the dear and the cheap mixed."""
    found = []
    for place, share in enumerate(shares(count).values()):
        first = seed * 10**8
        starts = range(first, first + share, _TASK)
        found += [(place, range(s, min(s + _TASK, first + share))) for s in starts]
    random.Random(seed).shuffle(found)
    return found


class _Worker:
    """A process, what it is at, and how much it has done."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.at = context.Value("q", 0, lock=False)
        self.process = context.Process(target=_work, args=(theirs, self.at), daemon=True)
        self.process.start()
        theirs.close()
        self.place, self.done = 0, 0

    def give(self, task: tuple[int, range]) -> None:
        self.place = task[0]
        self.done += len(task[1])
        self.pipe.send(task)

    def taken(self) -> Tally:
        """Return what came; a process that died has a fault at the text it was at."""
        with contextlib.suppress(EOFError, ConnectionResetError):
            tally: Tally = self.pipe.recv()
            return tally
        self.process.join()
        self.done = _PER_WORKER
        reader = READERS[self.place]
        why = f"Died: exit code {self.process.exitcode}"
        fault = Fault(reader.name, reader.draw(self.at.value), why, "outside")
        return Tally(texts=_TASK, faults=[fault])

    def end(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


def _work(pipe: Connection, at: Any) -> None:
    """Do tasks until the process is ended from outside."""
    os.nice(5)
    prepared()
    gc.collect()
    gc.freeze()  # libraries are not looked through again and again
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _ADDRESSES, resource.RLIM_INFINITY))

    def note(seed: int) -> None:
        at.value = seed
        most = int(time.process_time()) + _LONGEST
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))

    while True:
        place, seeds = pipe.recv()
        pipe.send(of_seeds(READERS[place], seeds, note))


def _by_crew(
    tasks: collections.deque[tuple[int, range]], processes: int
) -> Iterator[tuple[int, Tally]]:
    """Yield what workers find, as it comes."""
    crew: dict[Connection, _Worker] = {}
    try:
        while tasks or crew:
            while tasks and len(crew) < processes:
                worker = _Worker()
                worker.give(tasks.popleft())
                crew[worker.pipe] = worker
            for pipe in wait(list(crew)):
                worker = crew[pipe]  # type: ignore[index]
                place, tally = worker.place, worker.taken()
                if tasks and worker.done < _PER_WORKER:
                    worker.give(tasks.popleft())
                else:
                    worker.end()
                    del crew[worker.pipe]
                yield place, tally
    finally:
        for worker in crew.values():
            worker.end()


# -- shrinking and keeping -------------------------------------------------------------------------


def shrunk(text: str, shows: Callable[[str], bool], tries: int = _TRIES) -> str:
    """Return a shorter text that still shows the fault: parts are left out, halves first."""
    size = max(1, len(text) // 2)
    while True:
        start, before = 0, text
        while start < len(text) and tries > 0:
            shorter = text[:start] + text[start + size :]
            tries -= 1
            if shows(shorter):
                text = shorter
            else:
                start += size
        if tries <= 0 or (size == 1 and text == before):
            return text
        size = max(1, min(size // 2, len(text) // 2))


def smallest(fault: Fault) -> Fault:
    """Return the same fault of a shorter text; one that ends the process is left alone."""
    if fault.error.startswith(("Died", "MemoryError")):
        return fault
    reader = by_name(fault.reader)

    def shows(text: str) -> bool:
        found = examine(reader, text)
        return found is not None and found.kind == fault.kind

    tries = 40 if fault.error.startswith("TooMuch") else _TRIES
    return fault._replace(text=shrunk(fault.text, shows, tries))


def by_name(name: str) -> Reader:
    """Return a reader."""
    return next(reader for reader in READERS if reader.name == name)


def kept() -> list[dict[str, Any]]:
    """Return the texts found so far: reader, text, what came out, whether it still does."""
    return json.loads(FILE.read_text("utf-8")) if FILE.exists() else []


def keep(faults: Sequence[Fault]) -> None:
    """Add faults to the file, and write down which of the old ones are mended."""
    records = [{**r, "open": examine(by_name(r["reader"]), r["text"]) is not None} for r in kept()]
    known = {(r["reader"], r["text"]) for r in records}
    for f in faults:
        if (f.reader, f.text) not in known:
            error = f"{f.error} at {f.site}"
            records.append({"reader": f.reader, "text": f.text, "error": error, "open": True})
    lines = ",\n".join(json.dumps(r) for r in records)
    FILE.write_text(f"[\n{lines}\n]\n", "utf-8")


def first_of_each(tallies: dict[str, Tally]) -> list[Fault]:
    """Return one fault of every kind, of the shortest text."""
    found: dict[tuple[str, str, str], Fault] = {}
    for fault in (f for tally in tallies.values() for f in tally.faults):
        if fault.kind not in found or len(fault.text) < len(found[fault.kind].text):
            found[fault.kind] = fault
    return list(found.values())


# -- figures ---------------------------------------------------------------------------------------


def figures(processes: int, count: int = 10**6, seed: int | None = None) -> Section:
    """Run, keep what is found, and return what came of it."""
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    tallies = run(seed, count, processes)
    found = first_of_each(tallies)
    keep([smallest(f) for f in found[:_MOST]])
    return section(tallies)


def section(tallies: dict[str, Tally]) -> Section:
    """Return the sums in a line."""
    total = Tally()
    for tally in tallies.values():
        total.add(tally)
    drawn = (
        f"{total.texts:,} texts for {len(tallies)} readers, {total.taken:,} of them taken: valid, "
        "spoilt and hostile ones; nothing but a `TrueupError` comes out, "
        f"within {LINES:,} lines of Python and {MEMORY >> 20} MiB"
    )
    return Section(
        drawn, [f"{f.reader}: {f.error} at {f.site}: {f.text!a:.200}" for f in total.faults]
    )


def main() -> int:
    """Run many texts and print the faults."""
    parser = argparse.ArgumentParser(prog="prove.inputs", description=__doc__)
    parser.add_argument("--count", type=int, default=10**6)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="shrink and keep what is found")
    options = parser.parse_args()
    tallies = run(options.seed, options.count, options.processes)
    found = first_of_each(tallies)
    if options.keep:
        found = [smallest(f) for f in found[:_MOST]]
        keep(found)
    for fault in found:
        print(f"{fault.reader}: {fault.error} at {fault.site}\n    {fault.text[:300]!a}")
    print(section(tallies).drawn)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
