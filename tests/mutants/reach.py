"""Which tests reach which line, and how long each takes."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import hashlib
import json
import time
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from mutants.suite import SOURCE, Ended, Suite, allow, in_forks


@dataclasses.dataclass
class Reach:
    """The map: tests with their durations, and for each line the tests that run it."""

    code: str
    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    failing: list[str]

    def tests(self, path: str, line: int) -> set[str]:
        """Return the tests that run the statement that begins in a line."""
        return set(self.lines.get(path, {}).get(line, ()))

    def all_of(self, path: str) -> set[str]:
        """Return the tests that run any line of a file inside a function."""
        return {t for tests in self.lines.get(path, {}).values() for t in tests}


def version(packages: list[str]) -> str:
    """Return what names the code of the packages."""
    return version_of(sorted(f for p in packages for f in (SOURCE / p).glob("*.py")))


def version_of(files: Iterable[Path]) -> str:
    """Return what names the contents of files."""
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]


def read(file: Path, packages: list[str]) -> Reach:
    """Return the map kept in a file if it is of this code, or an empty one."""
    code = version(packages)
    if file.exists():
        kept = json.loads(file.read_text("utf-8"))
        if kept["code"] == code:
            names = list(kept["seconds"])
            lines = {
                path: {int(line): [names[i] for i in tests] for line, tests in found.items()}
                for path, found in kept["lines"].items()
            }
            return Reach(code, kept["seconds"], lines, kept["failing"])
    return Reach(code, {}, {}, [])


def write(file: Path, reach: Reach) -> None:
    """Keep the map."""
    index = {name: i for i, name in enumerate(reach.seconds)}
    lines = {
        path: {line: [index[t] for t in tests] for line, tests in found.items()}
        for path, found in reach.lines.items()
    }
    kept = {"code": reach.code, "seconds": reach.seconds, "failing": reach.failing, "lines": lines}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept), "utf-8")


def thinned(names: list[str], most: int) -> list[str]:
    """Return at most so many cases of every test, evenly spaced among its parameters."""
    of_test: dict[str, list[str]] = {}
    for name in names:
        of_test.setdefault(name.split("[")[0], []).append(name)
    return [cases[k * len(cases) // min(most, len(cases))] for cases in of_test.values()
            for k in range(min(most, len(cases)))]  # fmt: skip


def extend(
    suite: Suite, reach: Reach, packages: list[str], names: list[str], seconds: float,
    processes: int,
) -> Iterator[None]:  # fmt: skip
    """Add the tests that the map does not know yet, each run in a fork that notes statements.

    A test that takes more processor time than ``seconds`` is left out and named.
    """

    def run(name: str, say: Callable[[Any], None]) -> None:
        allow(seconds)
        start = time.process_time()
        passed = suite.passes(name)
        say((passed, time.process_time() - start, sorted(noted)))

    noted: set[tuple[str, int]] = set()
    builtins.__dict__["__reached__"] = noted.add
    new = [n for n in names if n not in reach.seconds and n not in reach.failing]
    before = _note_statements(suite, packages)
    for k, ended in enumerate(in_forks(new, run, processes)):
        if k % 100 == 0:
            print(f"{k} of {len(new)} tests mapped", flush=True)
            yield
        _add(reach, ended)
    for function, code in before:
        function.__code__ = code
    yield


def _add(reach: Reach, ended: Ended) -> None:
    if not ended.answers or not ended.answers[0][0]:
        print(f"left out, since it fails or takes long: {ended.job}", flush=True)
        reach.failing.append(ended.job)
        return
    _, seconds, noted = ended.answers[0]
    reach.seconds[ended.job] = round(seconds, 4)
    for path, line in noted:
        reach.lines.setdefault(path, {}).setdefault(line, []).append(ended.job)


# -- statements that say that they run -------------------------------------------------------------


class _Noting(ast.NodeTransformer):
    """Put a note before every statement of a function."""

    def __init__(self, path: str) -> None:
        self.path = path

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Note what the body does, not what is around it."""
        for inner in ast.walk(node):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(inner, field, None)
                if isinstance(block, list):
                    setattr(inner, field, [s for b in block for s in self._noted(b)])
        return node

    def _noted(self, statement: ast.stmt) -> list[ast.stmt]:
        text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if text or isinstance(statement, (ast.Nonlocal, ast.Global)):
            return [statement]
        what = ast.Tuple([ast.Constant(self.path), ast.Constant(statement.lineno)], ast.Load())
        call = ast.Call(ast.Name("__reached__", ast.Load()), [what], [])
        return [ast.copy_location(ast.Expr(call), statement), statement]


def _note_statements(
    suite: Suite, packages: list[str]
) -> list[tuple[types.FunctionType, types.CodeType]]:
    """Give every function of the packages code that notes its statements; return what it had."""
    before = []
    for file in sorted({file for file, *_ in suite.functions}):
        path = Path(file).relative_to(SOURCE).as_posix()
        if path.split("/")[0] not in packages:
            continue
        tree = _Noting(path).visit(ast.parse(Path(file).read_text("utf-8")))
        code = compile(ast.fix_missing_locations(tree), file, "exec")
        for (of, name, first), functions in suite.functions.items():
            noting = code_of(code, name, first) if of == file else None
            for function in functions if noting else []:
                before.append((function, function.__code__))
                function.__code__ = noting
    return before


def code_of(code: types.CodeType, name: str, first: int) -> types.CodeType | None:
    """Return the code of a function inside that of a module."""
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            if (inner.co_qualname, inner.co_firstlineno) == (name, first):
                return inner
            found = code_of(inner, name, first)
            if found:
                return found
    return None
