"""The tests, collected once; every trial runs in a fork of the process that collected them.

A fork starts with NumPy, sympy, trueup and all test modules in memory, and with no cache filled by
another test. A function is changed there by giving it the code of the mutant.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import os
import pickle
import resource
import select
import signal
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "trueup"
MEMORY = 6 * 2**30
"""Bytes of data that a trial may hold: a mutant that asks for more fails."""


BROKEN = 70
"""What a fork exits with if it fails where no test does."""


class Suite:
    """What pytest collected, as a plugin that forks instead of running."""

    def __init__(self, work: Callable[[Suite], None]) -> None:
        self.work = work
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[tuple[str, str, int], list[types.FunctionType]] = {}
        self.caches: list[Any] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do the work in place of the tests."""
        if session.testsfailed:
            raise SystemExit("the tests cannot be collected")
        self.items = {item.nodeid: item for item in session.items}
        for item in session.items:
            _stop_at_first_failure(getattr(item, "obj", None))
        self._look_around()
        gc.collect()
        gc.freeze()  # collections in a child would copy every page
        self.work(self)
        return True

    def _look_around(self) -> None:
        """Find every function of the library, and every cache."""
        for thing in gc.get_objects():
            if isinstance(thing, types.FunctionType):
                code = thing.__code__
                key = code.co_filename, code.co_qualname, code.co_firstlineno
                if code.co_filename.startswith(str(SOURCE)):
                    self.functions.setdefault(key, []).append(thing)
            elif isinstance(thing, functools._lru_cache_wrapper):
                ours = str(getattr(thing, "__module__", "")).startswith("trueup")
                self.caches += [thing] if ours else []

    def passes(self, name: str) -> bool:
        """Run one test and say whether it passes (or is skipped)."""
        item = self.items[name]
        failed = item.session.testsfailed
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return item.session.testsfailed == failed


def _stop_at_first_failure(test: Any) -> None:
    """Let Hypothesis end with the first example that fails: nobody reads the smallest one."""
    from hypothesis import Phase, settings  # pytest must come first, to rewrite its assertions

    test = getattr(test, "__func__", test)
    name = "_hypothesis_internal_use_settings"
    if hasattr(test, name):
        phases = (Phase.explicit, Phase.generate)
        faster = settings(getattr(test, name), phases=phases, report_multiple_bugs=False)
        setattr(test, name, faster)


def collected(paths: list[str], work: Callable[[Suite], None]) -> None:
    """Collect the tests below the paths and do the work there."""
    options = ["-q", "-s", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=no"]
    os.chdir(ROOT)
    code = pytest.main([*options, *paths], plugins=[Suite(work)])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(f"pytest ended with {code!r}")


# -- forks -----------------------------------------------------------------------------------------


@dataclasses.dataclass
class Child:
    """A fork at work on one job."""

    job: Any
    pipe: int
    until: float
    """When it is stopped, by the clock: only a child that waits for something gets there."""
    said: bytes = b""


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a fork ended."""

    job: Any
    answers: list[Any]
    status: int
    """As of os.wait: 0, or what it exited with, or minus the signal that ended it."""


def in_forks(
    jobs: Iterable[Any], run: Callable[[Any, Callable[[Any], None]], None], processes: int = 1,
    patience: float = 900.0,
) -> Iterator[Ended]:  # fmt: skip
    """Run each job in a fork, which says what it finds through a pipe."""
    waiting, running = iter(jobs), {}
    more = True
    while more or running:
        while more and len(running) < processes:
            job = next(waiting, None)
            more = job is not None
            if more:
                pid, pipe = _fork(job, run)
                running[pid] = Child(job, pipe, time.monotonic() + patience)
        ready = select.select([c.pipe for c in running.values()], [], [], 1.0)[0] if running else []
        for pid, child in list(running.items()):
            if time.monotonic() > child.until:
                os.kill(pid, signal.SIGKILL)
            if child.pipe in ready and not _hear(child):
                os.close(child.pipe)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                del running[pid]
                yield Ended(child.job, list(_read(child.said)), status)


def _fork(job: Any, run: Callable[[Any, Callable[[Any], None]], None]) -> tuple[int, int]:
    sys.stdout.flush()
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    code = BROKEN
    try:
        os.close(read)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        run(job, lambda answer: _say(write, answer))
        code = 0
    finally:
        os._exit(code)


def _say(pipe: int, answer: Any) -> None:
    text = pickle.dumps(answer)
    text = len(text).to_bytes(4, "little") + text
    while text:
        text = text[os.write(pipe, text) :]


def _hear(child: Child) -> bool:
    """Read on; say whether the child may say more."""
    part = os.read(child.pipe, 1 << 20)
    child.said += part
    return bool(part)


def _read(said: bytes) -> Iterator[Any]:
    while len(said) >= 4:
        end = 4 + int.from_bytes(said[:4], "little")
        if len(said) < end:
            return
        yield pickle.loads(said[4:end])  # noqa: S301 - from our own fork
        said = said[end:]


def allow(seconds: float) -> None:
    """End this process by a signal after so much more processor time."""
    used = time.process_time()
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 1, hard))
