"""Worker processes: every computation bounded in time and memory, and cancellable.

A computation runs in a process of its own choosing from a small pool. When it takes too long, or
nobody waits for it any longer, its process is killed; the next one is forked from a server that
has everything imported already, which takes milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from trueup.explorer import allowances
from trueup.explorer.refused import Refusal
from trueup.explorer.worker import SHARE, work

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from typing import Self

_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_SETTINGS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TRUEUP_NUMBA": "0",
}
"""Of the workers: one thread each, and no compiler for a few hundred points."""

_TRIES = allowances.WORKERS + 2
"""Workers to ask until one has begun: every idle one may have been killed meanwhile."""


class Pool:
    """A few workers, and a queue of bounded length before them.

    Examples
    --------
    >>> async def twice():
    ...     async with Pool(size=1) as pool:
    ...         return await pool.run("curve", {"formula": "q**"})
    >>> answer = asyncio.run(twice())
    >>> answer["error"]["field"], answer["error"]["message"].splitlines()[0]
    ('formula', 'invalid syntax at character 4')
    """

    def __init__(self, size: int = allowances.WORKERS, memory: int = allowances.MEMORY) -> None:
        self.size, self.memory = size, memory
        self.waiting = 0
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        self._context = _context()
        self._places = asyncio.Semaphore(self.size)
        self._threads = ThreadPoolExecutor(4 * self.size, "trueup-worker")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        for worker in list(self._all):
            self._drop(worker)
        self._threads.shutdown(wait=True)

    async def warm(self) -> None:
        """Start a worker before somebody asks."""
        async with self._places:
            self._idle.append(await self._take())

    async def run(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return a worker's answer; cancelling the call kills the computation."""
        if self.waiting >= allowances.WAITING:
            raise Refusal(
                f"{self.waiting} computations are waiting already", "try again in a moment", 503
            )
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        try:
            return await self._ask(kind, request)
        finally:
            self._places.release()

    async def _ask(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        for _ in range(_TRIES):
            with contextlib.suppress(_Gone):
                return await self._asked(kind, request)
        raise Refusal("no worker process stays alive", "start trueup explore again", 503)

    async def _asked(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        worker, seconds = await self._take(), allowances.SECONDS[kind]
        loop = asyncio.get_running_loop()
        healthy = False
        try:
            async with asyncio.timeout(seconds):
                answer = await loop.run_in_executor(self._threads, worker.ask, kind, request)
            healthy = True
        except TimeoutError:
            raise _too_much(kind, f"took more than {seconds:g} seconds") from None
        except (EOFError, OSError):
            raise _too_much(kind, "ended its process, most likely for want of memory") from None
        finally:
            if healthy and worker.asked < allowances.JOBS and not self._closed:
                self._idle.append(worker)
            else:
                self._drop(worker)
        return answer

    async def _take(self) -> _Worker:
        """Return an idle worker, or a new one."""
        while self._idle:
            worker = self._idle.pop()
            if worker.process.is_alive():
                return worker
            self._drop(worker)
        loop = asyncio.get_running_loop()
        starting = loop.run_in_executor(self._threads, _Worker, self._context, self.memory)
        starting.add_done_callback(self._keep_track)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._adopt)
            raise

    def _keep_track(self, started: asyncio.Future[_Worker]) -> None:
        if not started.cancelled() and not started.exception():
            self._all.add(started.result())

    def _adopt(self, started: asyncio.Future[_Worker]) -> None:
        """Keep a worker whose caller went away while it started."""
        if started.exception():
            return
        if self._closed or len(self._idle) >= self.size:
            self._drop(started.result())
        else:
            self._idle.append(started.result())

    def _drop(self, worker: _Worker) -> None:
        self._all.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        worker.kill()


def _context() -> Any:
    """Return what starts processes that have everything imported already."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    context: Any = multiprocessing.get_context(_METHOD)
    if _METHOD == "forkserver":
        context.set_forkserver_preload(["trueup.explorer.worker"])
    return context


async def alone(
    kind: str, request: dict[str, Any], watch: Callable[[float], None] = lambda share: None
) -> dict[str, Any]:
    """Return the answer of a process of its own, with room for a file; its error is a refusal.

    Cancelling the call, or letting the time pass, kills the process. ``watch`` is told the share
    done, from 0 to 1, in another thread.
    """
    worker = await asyncio.to_thread(_Worker, _context(), allowances.FILE_MEMORY)
    seconds, hint = allowances.SECONDS[kind], "use trueup debias in a terminal"
    try:
        async with asyncio.timeout(seconds):
            answer = await asyncio.to_thread(worker.ask, kind, request, watch)
    except TimeoutError:
        problem = f"it took more than {seconds:g} seconds and was stopped"
        raise Refusal(problem, hint, field="file") from None
    except (EOFError, OSError, _Gone):
        raise Refusal("it needs more memory than the page allows", hint, field="file") from None
    finally:
        await asyncio.shield(asyncio.to_thread(worker.kill))
    if "error" in answer:
        raise Refusal(**{**answer["error"], "field": "file"})
    return answer


class _Gone(Exception):
    """A worker had died before it was asked: nothing is known of the question."""


class _Worker:
    """One process, and the pipe to it."""

    def __init__(self, context: Any, memory: int) -> None:
        self.asked = 0
        pipe: tuple[Connection, Connection] = context.Pipe()
        self._pipe, theirs = pipe
        self.process = context.Process(target=work, args=(theirs, memory), daemon=True)
        _leave_interrupts_to_the_server()
        self.process.start()
        theirs.close()

    def ask(
        self,
        kind: str,
        request: dict[str, Any],
        watch: Callable[[float], None] = lambda share: None,
    ) -> dict[str, Any]:
        """Return the answer to a request; raise EOFError when the process dies of it."""
        self.asked += 1
        try:
            self._pipe.send_bytes(json.dumps([kind, request, allowances.SECONDS[kind]]).encode())
            self._pipe.recv_bytes()  # it has begun
        except (EOFError, OSError):
            raise _Gone from None
        while (reply := self._pipe.recv_bytes()).startswith(SHARE):
            watch(float(reply.removeprefix(SHARE)))
        answer: dict[str, Any] = json.loads(reply)
        return answer

    def kill(self) -> None:
        """End the process: whoever reads from it finds the end of the pipe."""
        self.process.kill()
        self.process.join(1)


def _leave_interrupts_to_the_server() -> None:
    """Block Ctrl-C in this thread, so that the processes it starts inherit that."""
    if _METHOD == "forkserver":
        resource_tracker.ensure_running()  # it would lift the block when it starts by itself
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _too_much(kind: str, what: str) -> Refusal:
    problem = f"the computation {what}: it was stopped"
    if kind == "plan":  # it has no formula
        return Refusal(problem, "call tu.plan in Python, which has no such limit")
    return Refusal(
        problem,
        "simplify the formula, use fewer statistics, or call the library, which has no such limit",
        field="formula",
    )
