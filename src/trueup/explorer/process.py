"""A Python process of ours, with its own bounds of time and memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from typing import TYPE_CHECKING

from trueup.explorer import limits
from trueup.explorer.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SAID = 4_000
"""Characters kept of what a process says about its failure."""

_SHARE = re.compile(r"(\d{1,3}) %")
_CODES = re.compile(r"[^\n]*\r(?!\n)|\x1b\[[0-9;]*[A-Za-z]")


async def run(
    arguments: list[str],
    seconds: float,
    watch: Callable[[float], None] | None = None,
    names: Mapping[str, str] | None = None,
) -> tuple[bytes, str]:
    """Return what ``python -m ARGUMENTS`` prints and says; its failure is a refusal.

    Cancelling the call, or letting the time pass, kills the process. ``watch`` is told the share
    done, from 0 to 1, whenever the process draws its progress bar. ``names`` says what to call the
    paths of which it may speak.

    Examples
    --------
    >>> printed, said = asyncio.run(run(["trueup", "--version"], 30))
    >>> printed.startswith(b"trueup "), said
    (True, '')
    """
    ours, theirs = _terminal()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1", "NO_COLOR": "1"},
    )
    os.close(theirs)
    hearing = asyncio.create_task(asyncio.to_thread(_hear, ours, watch))
    try:
        _limit(process.pid)
        async with asyncio.timeout(seconds):
            out, _ = await process.communicate()
    except TimeoutError:
        problem = f"it took more than {seconds:g} seconds and was stopped"
        raise Refusal(problem, "use trueup debias in a terminal", field="file") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        said = await asyncio.shield(hearing)
        for path, name in (names or {}).items():
            said = said.replace(path, name)
    if process.returncode:
        raise failure(said, process.returncode)
    return out, plain(said)


def _terminal() -> tuple[int, int]:
    """Return two ends of a line: a terminal, so that progress is shown, or else a pipe."""
    if sys.platform == "win32":
        return os.pipe()
    return os.openpty()


def _hear(end: int, watch: Callable[[float], None] | None) -> str:
    """Return the last of what a process says until it ends."""
    said = ""
    with contextlib.suppress(OSError):  # the other end of a terminal was closed
        while piece := os.read(end, 4096):
            words = piece.decode("utf-8", "replace")
            shares = _SHARE.findall(words)
            if shares and watch:
                watch(min(int(shares[-1]), 100) / 100)
            said = (said + words)[-_SAID:]
    os.close(end)
    return said


def _limit(pid: int) -> None:
    """Bound the memory of a process and what it writes (Linux; elsewhere time is the limit)."""
    if sys.platform != "linux":
        return
    import resource

    bounds = {
        resource.RLIMIT_AS: limits.FILE_MEMORY,
        resource.RLIMIT_FSIZE: limits.FILE_SIZE,
        resource.RLIMIT_CORE: 0,
    }
    for what, most in bounds.items():
        with contextlib.suppress(OSError, ValueError):  # it has ended, or has a lower limit already
            resource.prlimit(pid, what, (most, most))


def plain(said: str) -> str:
    r"""Return words without the signs that steer a terminal, or what those wiped out.

    Examples
    --------
    >>> plain("[##   ] 40 %\r\x1b[Kdone\r\n")
    'done'
    """
    return _CODES.sub("", said).replace("\r", "").strip()


def failure(said: str, code: int) -> Refusal:
    r"""Return what a command said of its failure as a refusal: message, and hint.

    Examples
    --------
    >>> failure("trueup: no column n\r\nHint: choose another\r\n", 1).record()["hint"]
    'choose another'
    """
    lines = plain(said).splitlines()
    hints = [i for i, line in enumerate(lines) if line.startswith("Hint: ")]
    if hints and not any(line.startswith("Traceback") for line in lines):
        message = "\n".join(lines[: hints[-1]]).removeprefix("trueup: ")
        return Refusal(message, lines[hints[-1]].removeprefix("Hint: "), field="file")
    memory = code < 0 or any("memory" in line.lower() for line in lines[-3:])
    problem = "it needs more memory than the page allows" if memory else "an error of ours"
    detail = f": {lines[-1][:200]}" if lines and not memory else ""
    return Refusal(f"{problem}{detail}", "use trueup debias in a terminal", field="file")
