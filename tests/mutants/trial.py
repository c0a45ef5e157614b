"""One mutant after the other, each against the tests that reach its line."""

from __future__ import annotations

import ast
import dataclasses
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

from mutants.operators import Mutant
from mutants.reach import Reach, code_of
from mutants.suite import BROKEN, ROOT, SOURCE, Suite, allow, in_forks

LENIENT = 5.0
"""A test that takes this many times its own time, and SPARE seconds more, never ends."""
SPARE = 2.0


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    """killed, never ends, survived, unreached, or broken: the trial itself failed."""
    by: str
    tests: int
    """How many tests were run."""

    @property
    def killed(self) -> bool:
        """Whether the tests notice it."""
        return self.outcome in ("killed", "never ends")


def chosen(
    mutant: Mutant, reach: Reach, own: tuple[str, ...], budget: float, known: Container[str]
) -> list[str]:
    """Return the tests to run, within the budget.

    First those of the module, found by its name, then those of the package, the fastest first.
    """
    inside = bool(mutant.scope)
    names = reach.tests(mutant.path, mutant.statement) if inside else reach.all_of(mutant.path)
    module = Path(mutant.path).stem

    def rank(name: str) -> tuple[bool, bool, float, str]:
        named = module in name.split("::")[0]
        return not named, not name.startswith(own), reach.seconds[name], name

    order = sorted((n for n in names if n in known), key=rank)
    picked, total = [], 0.0
    for name in order:
        total += reach.seconds[name]
        if total > budget and picked:
            break
        picked.append(name)
    return picked


def tried(
    suite: Suite, mutants: list[Mutant], reach: Reach, own: dict[str, tuple[str, ...]],
    budget: float, processes: int,
) -> Iterator[Verdict]:  # fmt: skip
    """Yield the verdict of every mutant; the budget is in seconds of tests without it."""

    def run(job: tuple[Mutant, list[str]], say: Callable[[Any], None]) -> None:
        mutant, names = job
        if not exchanged(suite, mutant):
            say("elsewhere")
            return
        for name in names:
            say(name)
            allow(LENIENT * reach.seconds[name] + SPARE)
            if not suite.passes(name):
                say("failed")
                return

    jobs = []
    for mutant in mutants:
        names = chosen(mutant, reach, own[mutant.path.split("/")[0]], budget, suite.items)
        if names:
            jobs.append((mutant, names))
        else:
            yield Verdict(mutant, "unreached", "", 0)
    for ended in in_forks(jobs, run, processes):
        mutant, names = ended.job
        if ended.answers == ["elsewhere"]:
            yield from_scratch(mutant, names, reach)
        else:
            yield _verdict(mutant, ended.answers, ended.status)


def _verdict(mutant: Mutant, answers: list[str], status: int) -> Verdict:
    run = [a for a in answers if a != "failed"]
    by = run[-1] if run else ""
    if answers and answers[-1] == "failed":
        return Verdict(mutant, "killed", by, len(run))
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return Verdict(mutant, "never ends", by, len(run))
    if status:  # of the harness, or a crash of the interpreter
        return Verdict(mutant, "broken" if status == BROKEN else "killed", by, len(run))
    return Verdict(mutant, "survived", "", len(run))


# -- the change ------------------------------------------------------------------------------------


def exchanged(suite: Suite, mutant: Mutant) -> bool:
    """Give a function the code of the mutant; False if that cannot be done in a running module."""
    if not mutant.scope:
        return False
    file = SOURCE / mutant.path
    tree = mutant.tree(file.read_text("utf-8"))
    code = code_of(compile(tree, str(file), "exec"), mutant.scope, mutant.first)
    functions = suite.functions.get((str(file), mutant.scope, mutant.first), [])
    if code is None or not functions:
        return False
    try:
        for function in functions:
            function.__code__ = code
    except ValueError:  # it closes over other names than before
        return False
    for cache in suite.caches:
        cache.cache_clear()
    return True


def from_scratch(mutant: Mutant, names: list[str], reach: Reach) -> Verdict:
    """Run the tests on a copy of the library: for what happens when a module is imported."""
    names = [n for n in names if n.startswith("tests")]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "trueup"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = SOURCE / mutant.path
        tree = mutant.tree(file.read_text("utf-8"))
        (copy / mutant.path).write_text(ast.unparse(tree), "utf-8")
        listed = Path(folder) / "names"
        listed.write_text("\n".join(names), "utf-8")
        seconds = LENIENT * sum(reach.seconds[n] for n in names) + 60
        code = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p",
             "no:cacheprovider", "-o", f"pythonpath={folder} tests", f"@{listed}"],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": folder}, check=False, capture_output=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(seconds),) * 2),
        ).returncode  # fmt: skip
    outcome = {0: "survived", -signal.SIGXCPU: "never ends"}.get(code, "killed")
    return Verdict(mutant, outcome, "" if code == 0 else "a run from scratch", len(names))
