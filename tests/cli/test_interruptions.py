"""Killed, interrupted, cut off: under the output's name is the whole file, or none."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from extras import needs
from trueup.files import progress
from trueup.files.targets import Target, remove_leftovers

pa, pq = needs("pyarrow"), needs("pyarrow.parquet")
np = needs("numpy")

ROWS = 300_000
NOISE = ("--noise", "laplace(2)", "--domain", "n>=1")

# A driver that has everything in memory forks one run after the other and ends each at another
# moment of its life, by what it has written and not by the clock: the system kills a run at the
# byte that exceeds its limit, and it kills itself before and after the renaming.
DRIVER = """
import hashlib, json, os, resource, signal, sys
from pathlib import Path
import duckdb, pyarrow.parquet, trueup as tu, trueup.files.job
from trueup.cli import main

source, out, force = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
argv = ["debias", source, str(out), "mean = s/n", "--noise", "laplace(2)", "--domain", "n>=1"]
renamed = (Path, "replace") if force else (os, "link")
tu.unbiased("s/n", dict.fromkeys("sn", tu.Laplace(2)), {"n": (1, None)}).sql()  # fills the caches

def killing(before, original):
    def step(*args):
        if not before:
            original(*args)
        os.kill(os.getpid(), signal.SIGKILL)
    return step

def run(moment=None):
    pid = os.fork()
    if pid == 0:
        if isinstance(moment, int):
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (moment, moment))
        elif moment:
            setattr(*renamed, killing(moment == "before", getattr(*renamed)))
        os._exit(main([*argv, *force, "--quiet"]))
    return os.waitpid(pid, 0)[1]

def digest():
    return hashlib.sha256(out.read_bytes()).hexdigest() if out.exists() else None

def restore():
    if force:
        out.write_bytes(b"the old file")
    else:
        out.unlink(missing_ok=True)

restore()
old = digest()
assert run() == 0
size, whole = out.stat().st_size, digest()
seen = []
for moment in [size * k // 7 for k in range(7)] + [size - 1, "before", "after"]:
    restore()
    killed = os.WIFSIGNALED(run(moment))
    parts = [p.stat().st_size for p in out.parent.glob(".*.part")]
    seen.append({"at": moment, "killed": killed, "state": digest(), "parts": parts})
restore()
last = run()
print(json.dumps({"old": old, "whole": whole, "seen": seen, "last": last, "end": digest()}))
"""


@pytest.fixture
def large(tmp_path):
    """Return a file that takes a while."""
    rng = np.random.default_rng(1)
    path = tmp_path / "in.parquet"
    n = rng.integers(-2, 100, ROWS)
    pq.write_table(pa.table({"n": n, "s": rng.normal(50.0, 9.0, n.size)}), path)
    return path


def drive(source, out, *force):
    done = subprocess.run(  # noqa: S603  (our own code)
        [sys.executable, "-c", DRIVER, str(source), str(out), *force],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["new", "replaced"])
def test_killed_at_ten_moments(force, large, tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    out = folder / "out.parquet"
    found = drive(large, out, *force)
    assert (found["old"] is None) == (not force)
    assert all(s["killed"] for s in found["seen"])
    assert {s["state"] for s in found["seen"][:-1]} == {found["old"]}
    assert found["seen"][-1]["state"] == found["whole"]  # killed just after the renaming
    written = found["seen"][1:8]  # the first had not begun its part
    # columns are written side by side: the kill may leave less than the limit, never more
    assert all(len(s["parts"]) == 1 and s["parts"][0] <= s["at"] for s in written), written
    assert (found["last"], found["end"]) == (0, found["whole"])
    assert [p.name for p in folder.iterdir()] == ["out.parquet"]  # the next run tidied up
    assert len(pq.read_table(out)) == ROWS


def start(*argv, **options):
    return subprocess.Popen(  # noqa: S603  (our own code)
        [sys.executable, "-m", "trueup", "debias", *map(str, argv), *NOISE],
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **options,
    )


def test_ctrl_c_is_130_and_leaves_nothing(large, tmp_path):
    out = tmp_path / "out.csv"
    process = start(large, out, "mean = s/n", "inverse = 1/n")
    while not any(p.stat().st_size > 0 for p in tmp_path.glob(".out*.part")):  # it is writing
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (130, "trueup: interrupted\n")
    assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize("form", ["csv", "arrows"])
def test_a_closed_pipe_is_141_and_quiet(form, large):
    process = start(large, "-", "mean = s/n", "--to", form, stdout=subprocess.PIPE)
    os.read(process.stdout.fileno(), 1000)
    process.stdout.close()
    assert (process.wait(), process.stderr.read()) == (141, "")
    process.stderr.close()


# -- leftovers -------------------------------------------------------------------------------------


HOLD = """
import sys
from trueup.files.targets import Target
target = Target(sys.argv[1], None, force=False).__enter__()
target.spill.mkdir()
print(target.part.name, flush=True)
sys.stdin.read()
"""


def hold(out):
    """Start a run that writes to a file and never ends; return it, and the name of its part."""
    run = subprocess.Popen(  # noqa: S603  (our own code)
        [sys.executable, "-c", HOLD, str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    return run, run.stdout.readline().strip()


def kill(*runs):
    for run in runs:
        run.kill()
        run.communicate()


def test_only_leftovers_of_dead_runs_are_removed(tmp_path):
    dead = [hold(tmp_path / "out.csv"), hold(tmp_path / "other.csv")]
    kill(*(run for run, _ in dead))
    (alive, part) = hold(tmp_path / "out.csv")
    assert not any((tmp_path / name).exists() for _, name in dead)  # it tidied up
    name = part.removesuffix(".part")
    host = name.removeprefix(".out.csv.trueup-").rpartition("-")[0]
    kept = [f"{name}.{end}" for end in ("lock", "part", "spill")]
    mine = [
        f".e.csv.trueup-elsewhere{host}-0123456789abcdef.lock",  # on another machine
        f"f.csv.trueup-{host}-0123456789abcdef.lock",
        f".g.csv.trueup-{host}-0123456789abcdef.lock.mine",
        ".hidden",
    ]
    for name in mine:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*kept, *mine])
    kill(alive)
    remove_leftovers(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(mine)


def test_the_numbers_of_processes_do_not_matter(tmp_path, monkeypatch):
    # In two containers with one host name both runs may have the number 1.
    monkeypatch.setattr(os, "getpid", lambda: 1)
    out = str(tmp_path / "out.csv")
    with Target(out, None, force=True) as one:
        one.part.write_text("one")
        monkeypatch.setattr(os, "kill", lambda *_: (_ for _ in ()).throw(ProcessLookupError))
        with Target(out, None, force=True) as two:
            two.part.write_text("two")
            assert one.part.read_text() == "one"
            two.commit()
        one.commit()
    assert (tmp_path / "out.csv").read_text() == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]


def test_names_as_long_as_the_disk_takes(tmp_path, cells, debias):
    out = tmp_path / f"{'é' * 120}.csv"
    assert debias(cells, out).code == 0
    assert out.exists()


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path, cells, debias, monkeypatch):
    out = tmp_path / "out.csv"
    commit = Target.commit

    def late(self):
        out.write_text("someone else's")
        commit(self)

    monkeypatch.setattr(Target, "commit", late)
    done = debias(cells, out)
    assert done.code == 1
    assert "exists already" in done.err
    assert out.read_text() == "someone else's"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cells.csv", "out.csv"]


# -- progress --------------------------------------------------------------------------------------


def test_the_bar_is_for_terminals(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_EVERY", 0.01)

    def work():
        time.sleep(0.1)
        return 7

    assert progress.run(work, lambda: 50.0, lambda: None) == 7
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert progress.run(work, lambda: 50.0, lambda: None) == 7
    err = capsys.readouterr().err
    assert "[###############               ]  50 %" in err
    assert err.endswith("\r\033[K")


def test_errors_of_the_work_are_raised():
    def work():
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        progress.run(work, lambda: 0.0, lambda: None)
