"""Every code block of the README and the documentation is run, or at least read.

Python blocks are doctests (pytest collects them from the same files); here it is checked that none
escapes. A ``console`` block is run line by line in a folder of its own, one for each page, and what
it shows must be what comes out. TOML and SQL are parsed.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import trueup
from extras import needs
from trueup import noise
from trueup.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "cases" not in page.parts]
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHOWN = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page, *languages):
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [content for language, content in found if language in languages]


def names(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_every_block_is_of_a_kind_that_is_run(page):
    kinds = {language for language, _ in FENCE.findall(page.read_text(encoding="utf-8"))}
    plain = {kind for kind in kinds if not kind.startswith("{")}
    assert plain <= {"python", "console", "toml", "sql", "make"}
    assert all(">>>" in block for block in blocks(page, "python"))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_every_page_has_a_picture_or_an_example(page):
    assert blocks(page, "python", "console", "{image}")


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "toml", "sql")], ids=names)
def test_data_blocks_parse(page):
    for block in blocks(page, "toml"):
        assert tomllib.loads(block)
    sqlglot = needs("sqlglot")
    for block in blocks(page, "sql"):
        assert sqlglot.parse_one(block)


def test_make_blocks_name_targets_that_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wanted = [line.split()[1] for p in PAGES for b in blocks(p, "make") for line in b.splitlines()]
    assert wanted
    assert {*wanted} <= targets


def commands(block):
    """Yield each command of a console block with the output shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        end = next((i for i, x in enumerate(lines) if not x.endswith("\\")), 0) + 1
        if "<<" in lines[0]:  # a here-document belongs to the command
            end = lines.index(lines[0].split("<<")[1].split()[0].strip("'\"")) + 1
        yield "\n".join(lines[:end]), "\n".join(lines[end:])


SHELL = re.compile(r"[|<>&;$`*?\n]")
"""What makes a line a task for the shell."""


def ran(command, environment):
    """Run a command; return its code and what it shows. Ours alone needs no new process."""
    line = command.replace("\\\n", " ")
    if not line.startswith("trueup ") or SHELL.search(re.sub(r"\"[^\"$`]*\"|'[^']*'", "", line)):
        done = subprocess.run(  # noqa: S602  (the page's own commands)
            command,
            shell=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout
    shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            code = main(shlex.split(line)[1:])
        except SystemExit as left:
            code = left.code
    return code, shown.buffer.getvalue().decode()


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=names)
def test_console_blocks(page, tmp_path, monkeypatch):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for name, value in {"PATH": path, "COLUMNS": "100", "MPLBACKEND": "Agg"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "console"):
        for command, shown in commands(block):
            code, output = ran(command, {**os.environ})
            refused = shown.lstrip().startswith("trueup:")
            assert not code or refused, f"{command}\n{output}"
            if shown.strip():
                right = doctest.OutputChecker().check_output(shown + "\n", output, SHOWN)
                assert right, f"$ {command}\nshown:\n{shown}\ngot:\n{output}"


def test_what_is_said_of_small_cells_is_in_the_benchmark():
    """The guide quotes the first table, rounded."""
    report = (ROOT / "benchmarks" / "small_cells.md").read_text(encoding="utf-8")
    first = report.split("## ")[1]
    rows = re.findall(r"^\| (\w+)\S* .*?\| ([\d.]+)% \| ([\d.]+)% \|$", first, re.MULTILINE)
    found = {name: tuple(map(float, row)) for name, *row in rows if name != "estimator"}
    guide = (ROOT / "docs" / "guides" / "when_not.md").read_text(encoding="utf-8")
    assert {"naive", "clipped", "unbiased"} <= set(found)
    for name in ("naive", "clipped", "unbiased"):
        group, nation = found[name]
        assert f"| {group:.1f} % | {nation:.1f} % |" in guide


def test_the_reference_has_every_public_name():
    """But for the version, the two subpackages that have sections of their own, and Fraction."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    listed: dict[str, set[str]] = {}
    module = ""
    for directive, name in re.findall(r"^\.\. (\w+):: (\S+)", text, re.MULTILINE):
        if directive == "currentmodule":
            module = name
        else:
            listed.setdefault(module, set()).add(name)
    elsewhere = {"Fraction", "__version__", "mechanisms", "plots"}
    assert "trueup.noise" in listed["trueup"]  # with all families
    assert listed["trueup"] - {"trueup.noise"} == {*trueup.__all__} - {*noise.__all__} - elsewhere
    assert listed["trueup.mechanisms"] == {*trueup.mechanisms.__all__}
    assert listed["trueup.plots"] == {*trueup.plots.__all__}
