"""A released table and its sidecar in files: those of one run, whatever others do at once."""

import contextlib
import dataclasses
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import trueup as tu
from extras import needs
from trueup.cli import main
from trueup.files import targets
from trueup.files.sources import opened
from trueup.files.targets import Target
from trueup.microdata import writing
from trueup.microdata.design import Design
from trueup.microdata.engines import Files
from trueup.microdata.ledger import Ledger
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
    with pytest.raises(tu.TrueupError, match=r"cannot be written: .*no"):
        run_of(tmp_path, 1).write()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == there


def test_a_sidecar_beside_the_table_of_another_run_is_refused(tmp_path, capsys):
    """A run that was killed after it had put its sidecar, and not its table, in place."""
    (tmp_path / "people.csv").write_text("x\n" + "1\n" * 50)
    run_of(tmp_path, 2).write()
    table = (tmp_path / "t.csv").read_bytes()
    run_of(tmp_path, 1).write()
    asked = ["debias", str(tmp_path / "t.csv"), "-", "--spec", str(tmp_path / "t.toml")]
    assert main(asked) == 0
    capsys.readouterr()
    (tmp_path / "t.csv").write_bytes(table)
    assert main(asked) == 1
    told = capsys.readouterr()
    assert "the sidecar was written for another table" in told.err
    assert not told.out


def test_a_link_to_nothing_is_refused_before_the_budget_is_spent(tmp_path):
    (tmp_path / "people.csv").write_text("x\n1\n")
    (tmp_path / "t.csv").symlink_to(tmp_path / "nowhere")
    with pytest.raises(tu.TrueupError, match="is a link to nothing"):
        run_of(tmp_path, 1).write()


def test_after_a_full_disk_it_is_told_what_was_spent(tmp_path, monkeypatch):
    needs("opendp")
    (tmp_path / "people.csv").write_text("x\n1\n")
    ledger = Ledger.read({"file": tmp_path / "book.toml", "dataset": "d", "cap": 3})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "_write", full)
    with pytest.raises(tu.TrueupError, match=r"No space left.*\n.*of this release, 1, was spent"):
        dataclasses.replace(run_of(tmp_path, 1), rng=None, ledger=ledger).write()
    assert not (tmp_path / "t.csv").exists()


def test_what_is_replaced_leaves_nothing_behind(tmp_path):
    (tmp_path / "people.csv").write_text("x\n" + "1\n" * 50)
    run_of(tmp_path, 2).write()
    run_of(tmp_path, 1).write()
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv", *NAMES}


def test_what_a_killed_run_has_kept_of_a_pipe_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "trueup-pipe-killed").write_text("x\n1\n")
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text("x\n1\n"))
    writer.start()
    with opened(str(tmp_path / "pipe"), "csv", None) as source:
        names = [path.name for path in tmp_path.glob("*trueup-pipe-*")]
        assert names == [source.files[0].name] != ["trueup-pipe-killed"]
        with opened_again(tmp_path):
            assert source.files[0].exists()  # that of a run that lives is kept
    writer.join()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def opened_again(folder):
    """Open another pipe, as another run would, while the first is open."""
    os.mkfifo(folder / "other")
    threading.Thread(target=lambda: (folder / "other").write_text("x\n1\n")).start()
    stack = contextlib.ExitStack()
    stack.callback((folder / "other").unlink)
    stack.enter_context(opened(str(folder / "other"), "csv", None))
    return stack
