"""A released table and its sidecar in files: those of one run, whatever others do at once."""

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from trueup.files import targets
from trueup.files.targets import Target
from trueup.microdata import writing
from trueup.microdata.design import Design
from trueup.microdata.engines import Files
from trueup.microdata.public_keys import read_keys
from trueup.microdata.totals import Reading

NAMES = ("t.csv", "t.toml")


def run_of(folder, epsilon):
    design = Design.read({"n": "count"}, epsilon)
    data, table = Files(str(folder / "people.csv")), str(folder / "t.csv")
    reading = Reading(design, {})
    return writing.Release(data, table, reading, read_keys(None, ()), rng=1, force=True)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no locks of folders")
def test_two_runs_at_once_do_not_mix_a_table_with_the_sidecar_of_the_other(tmp_path, monkeypatch):
    """The other run starts when the first has put its sidecar, and not its table, in its place."""
    (tmp_path / "people.csv").write_text("x\n" + "1\n" * 50)
    run_of(tmp_path, 2).write()
    alone = [(tmp_path / name).read_text() for name in NAMES]
    first, waits = threading.current_thread(), threading.Event()
    other = threading.Thread(target=lambda: (run_of(tmp_path, 2).write(), waits.set()))
    commit, flock = Target.commit, writing.fcntl.flock

    def halfway(target):
        commit(target)
        if threading.current_thread() is first and target.path.suffix == ".toml":
            other.start()
            assert waits.wait(60)

    def asked(*given):
        if threading.current_thread() is other:
            waits.set()
        flock(*given)

    monkeypatch.setattr(Target, "commit", halfway)
    locks = SimpleNamespace(flock=asked, LOCK_EX=writing.fcntl.LOCK_EX)
    monkeypatch.setattr(writing, "fcntl", locks)
    run_of(tmp_path, 1).write()
    other.join(60)
    assert [(tmp_path / name).read_text() for name in NAMES] == alone


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("broken", NAMES)
@pytest.mark.parametrize("renamed", [True, False])
def test_a_run_that_fails_halfway_leaves_what_was_there(
    tmp_path, monkeypatch, links, before, broken, renamed
):
    """Both old files or neither: a rename fails, or what comes after it, of either file."""
    (tmp_path / "people.csv").write_text("x\n" + "1\n" * 50)
    if before:
        run_of(tmp_path, 2).write()
    there = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    replace, link = Path.replace, os.link

    def failing(part, path):
        fails = part.suffix == ".part" and path.name == broken
        if renamed or not fails:
            replace(part, path)
        if fails and renamed:
            monkeypatch.setattr(targets, "_flush", refused)
        elif fails:
            raise OSError(13, "no")

    def refused(*_):
        raise OSError(13, "no")

    monkeypatch.setattr(Path, "replace", failing)
    monkeypatch.setattr(os, "link", link if links else refused)
    with pytest.raises(OSError, match="no"):
        run_of(tmp_path, 1).write()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == there


def test_what_is_replaced_leaves_nothing_behind(tmp_path):
    (tmp_path / "people.csv").write_text("x\n" + "1\n" * 50)
    run_of(tmp_path, 2).write()
    run_of(tmp_path, 1).write()
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv", *NAMES}
