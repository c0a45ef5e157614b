"""Kernels on disk: compiled once per shape, shared by processes, never a reason to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueup as tu
from extras import needs
from trueup.kernels import cache

needs("numba", "compiled kernels come with trueup[fast]")

REPORT = """
    import json, sys, numpy as np, trueup as tu
    est = tu.unbiased("1/q", tu.Laplace({scale}), (1, None))
    values = est(np.array([4.0, 0.3])).tolist()
    from trueup.kernels import cache, compiled
    stats = [k.stats for kernels in compiled._LOADED.values() for k in kernels.values()]
    hits = sum(sum(s.cache_hits.values()) for s in stats)
    misses = sum(sum(s.cache_misses.values()) for s in stats)
    print(json.dumps([values, hits, misses, str(cache.directory())]))
"""


def begin(code: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  (our own interpreter and text)
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**os.environ, "TRUEUP_NUMBA": "1", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


def report(scale: int = 2, **env: str) -> tuple[list[float], int, int, Path]:
    values, hits, misses, home = json.loads(finish(begin(REPORT.format(scale=scale), **env)))
    return values, hits, misses, Path(home)


def test_a_second_process_does_not_compile_again(tmp_path: Path) -> None:
    home = {"TRUEUP_CACHE": str(tmp_path / "new")}
    assert report(2, **home)[:3] == ([0.125, 3.0], 0, 1)
    assert report(2, **home)[:3] == ([0.125, 3.0], 1, 0)
    other, hits, misses, place = report(3, **home)
    assert (hits, misses) == (1, 0), "another scale is the same kernel"
    assert other == pytest.approx([1 / 4 - 18 / 64, 1 + 3], rel=1e-15)
    assert len(list(place.glob("*.py"))) == 1
    assert place.stat().st_mode & 0o777 == 0o700


def test_processes_that_start_together_do_not_disturb_each_other(tmp_path: Path) -> None:
    home = {"TRUEUP_CACHE": str(tmp_path)}
    running = [begin(REPORT.format(scale=2), **home) for _ in range(2)]
    assert [json.loads(finish(p))[0] for p in running] == [[0.125, 3.0]] * 2
    assert [f.suffix for f in (tmp_path / "kernels").iterdir() if f.is_file()] == [".py"]
    assert report(2, **home)[1:3] == (1, 0)


@pytest.mark.parametrize("ruin", ["index", "code", "source", "no code"])
def test_ruined_files_are_replaced(
    ruin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path))
    monkeypatch.setenv("TRUEUP_NUMBA", "1")

    def compiled_anew() -> bool:
        """Return whether it was compiled, in a process that seems to begin here."""
        loaded: dict[str, Any] = {}
        monkeypatch.setattr("trueup.kernels.compiled._LOADED", loaded)
        est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
        assert est(np.array([4.0, 0.3])).tolist() == [0.125, 3.0]
        (kernel,) = (k for kernels in loaded.values() for k in kernels.values())
        return bool(kernel.stats.cache_misses)

    assert compiled_anew()
    assert not compiled_anew()
    pattern = {"index": "*.nbi", "source": "../*.py"}.get(ruin, "*.nbc")
    (file,) = (cache.directory() / "__pycache__").glob(pattern)
    if ruin == "no code":
        file.unlink()
    elif ruin == "source":
        file.write_text("raise SystemExit('this is not what was generated')")
    else:
        file.write_bytes(file.read_bytes()[:60] + b"\0 garbage")
    assert compiled_anew() == (ruin != "source")
    assert not compiled_anew()


def test_without_a_writable_place_the_cache_is_private_and_goes_away(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    values, hits, misses, place = report(2, TRUEUP_CACHE=str(blocked))
    assert (values, hits, misses) == ([0.125, 3.0], 0, 1)
    assert blocked not in place.parents
    assert not place.exists(), "removed at the end"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="rights of POSIX systems")
def test_a_place_where_others_write_is_not_trusted(tmp_path: Path) -> None:
    open_to_all = tmp_path / "kernels"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    *_, place = report(2, TRUEUP_CACHE=str(tmp_path))
    assert place != open_to_all
    assert list(open_to_all.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="rights of POSIX systems")
def test_a_place_of_someone_else_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernels").mkdir(mode=0o700)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    cache._directory.cache_clear()
    assert tmp_path not in cache._directory(str(tmp_path)).parents


def test_the_place_follows_the_environment(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("TRUEUP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == tmp_path / "trueup" / "kernels"
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path / "own"))
    assert cache.directory() == tmp_path / "own" / "kernels"


def test_old_kernels_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "_MOST", 2)
    for age, name in enumerate(["new", "middle", "old"]):
        cache.store(name, "")
        index = cache.directory() / "__pycache__" / f"{name}.stage0-1.py.nbi"
        index.touch()
        os.utime(index, (10 - age, 10 - age))
    cache.store("fresh", "")
    assert sorted(f.stem for f in cache.directory().glob("*.py")) == ["fresh", "middle", "new"]
    assert not cache.is_compiled("old")
    assert cache.is_compiled("new")


def test_importing_and_small_arrays_do_not_load_numba() -> None:
    code = """
        import sys, numpy as np, trueup as tu
        est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
        est(4.0), est(np.full(100_000, 4.0)), est.stderr(np.full(9, 4.0))
        assert "numba" not in sys.modules
    """
    finish(begin(code, TRUEUP_NUMBA=""))


def test_without_numba_numpy_does_it_and_a_demand_gets_a_hint() -> None:
    code = """
        import os, sys, numpy as np
        sys.modules["numba"] = None
        import trueup as tu
        from trueup.kernels import compiled
        compiled.ON_DISK = compiled.NEW = 0
        est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
        assert est(np.array([4.0]))[0] == 0.125
        os.environ["TRUEUP_NUMBA"] = "1"
        try:
            tu.unbiased("2/q", tu.Laplace(2), (1, None))(np.array([4.0]))
        except tu.MissingExtra as error:
            assert "trueup[fast]" in str(error), error
        else:
            raise AssertionError("no hint")
    """
    finish(begin(code, TRUEUP_NUMBA=""))


def test_threads_that_start_together_get_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path))
    monkeypatch.setenv("TRUEUP_NUMBA", "1")
    n = np.random.default_rng(1).uniform(-5, 200, 150_000)
    estimators = [tu.unbiased(f"1/(q + {k % 2})", tu.Laplace(2), (1, None)) for k in range(6)]
    found: dict[int, np.ndarray] = {}
    gate = threading.Barrier(len(estimators))

    def work(k: int) -> None:
        gate.wait()
        found[k] = estimators[k](n)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(estimators))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(6):
        m = n + k % 2
        low = 1 + k % 2
        exact = np.where(n <= 1, 1 / low + 2 / low**2, 1 / m - 8 / m**3)
        np.testing.assert_allclose(found[k], exact, rtol=1e-12, atol=1e-13)


def test_a_forked_process_can_go_on(tmp_path: Path) -> None:
    """Kernels leave no threads behind, so multiprocessing by fork works after them."""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    code = """
        import multiprocessing, numpy as np, trueup as tu
        est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
        n = np.full(300_000, 4.0)
        est(n)

        def total(k):
            return float(est(n + k).sum())

        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(total, [0, 0]) == [37500.0, 37500.0]
    """
    finish(begin(code, TRUEUP_CACHE=str(tmp_path)))
