"""One pass over arrays of every dtype and layout, on several threads, without copies."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import trueup as tu
from trueup.kernels.blocks import cores, sweep

EST = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.Laplace(3)}, {"n": (1, None)})


def by_hand(s: Any, n: Any) -> Any:
    """s/n on n ≥ 1 under Laplace(3) on n: s·(1/n − 18/n³), and 4s below."""
    s, n = np.asarray(s, float), np.asarray(n, float)
    with np.errstate(all="ignore"):
        inside = s / n - 18 * s / n**3
    return np.where(np.isnan(n), np.nan, np.where(n <= 1, 4 * s, inside))


def close(actual: np.ndarray, expected: np.ndarray, rtol: float = 1e-11) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-11)


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "plain": lambda a: a,
    "read only": lambda a: np.frombuffer(a.tobytes(), a.dtype),
    "strided": lambda a: np.repeat(a, 3)[::3],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "unaligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(a.dtype),
    "big endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "a field": lambda a: np.rec.fromarrays([a, a], names="p,q").q,
    "two dimensions": lambda a: a.reshape(-1, 5),
    "Fortran's order": lambda a: np.asfortranarray(a.reshape(-1, 5)),
    "every other column": lambda a: np.repeat(a.reshape(-1, 5), 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "u2", "i1"])
def test_every_layout_and_dtype(layout, kind, compiled, plain) -> None:
    rng = np.random.default_rng(3)
    s, n = (rng.integers(0, 100, 1000).astype(kind) for _ in range(2))
    given = {"s": LAYOUTS[layout](s), "n": LAYOUTS[layout](n)}
    expected = by_hand(given["s"], given["n"])
    for run in (compiled, plain):
        out = run(lambda: EST(**given))
        dtype = np.dtype(kind if kind[0] == "f" else float)
        assert out.dtype == dtype
        close(out, expected.astype(dtype), rtol=1e-6 if kind == "f4" else 1e-11)
        assert out.flags.f_contiguous == (layout == "Fortran's order" or out.ndim == 1)


@settings(max_examples=60)
@given(nps.mutually_broadcastable_shapes(num_shapes=2, max_dims=3), st.booleans())
def test_every_pair_of_shapes(compiled, plain, shapes, transposed) -> None:
    rng = np.random.default_rng(4)
    s, n = (rng.uniform(-9, 90, shape) for shape in shapes.input_shapes)
    if transposed:
        s, n = np.asfortranarray(s), np.asfortranarray(n)
    for run in (compiled, plain):
        close(run(lambda: EST(s=s, n=n)), by_hand(*np.broadcast_arrays(s, n)))


@pytest.mark.parametrize("size", [0, 1, 2, 99_999, 250_001, 1_100_003])
@pytest.mark.parametrize("number", ["s", "n", ""])
def test_every_size_and_single_numbers(size, number, compiled, plain) -> None:
    rng = np.random.default_rng(size)
    given: dict[str, Any] = {"s": rng.uniform(0, 500, size), "n": rng.uniform(-5, 99, size)}
    if number:
        given[number] = 7.5
    for run in (compiled, plain):
        close(run(lambda: EST(**given)), by_hand(*np.broadcast_arrays(*given.values())))


@pytest.mark.parametrize("outputs", [("value",), ("value", "stderr")])
def test_memory_is_the_output_and_some_blocks(outputs, compiled, plain) -> None:
    """On awkward input, too: strided singles beside broadcast whole numbers."""
    s = np.zeros((4_000_000, 2), "f4")[:, 0]
    n = np.full(4_000_000, 50, "i2")
    for run in (compiled, plain):
        run(lambda: EST._columns([s[:10], n[:10]], outputs))
        tracemalloc.start()
        made = run(lambda: EST._columns([s, n], outputs))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= sum(a.nbytes for a in made) + 16 * 2**20


# -- the pass itself ---------------------------------------------------------------------


def test_the_first_failure_is_the_one_that_is_raised(monkeypatch) -> None:
    def fails(inputs: list[np.ndarray], _: list[np.ndarray]) -> None:
        if inputs[0][0] >= 300:
            raise ValueError(f"at {inputs[0][0]:.0f}")

    values = np.arange(200_000.0)
    for threads in "14":
        monkeypatch.setenv("TRUEUP_THREADS", threads)
        with pytest.raises(ValueError, match=r"^at 300$"):
            sweep(fails, [values], 1, np.dtype(float), 100)


def test_every_block_is_filled_once_by_several_threads(monkeypatch) -> None:
    monkeypatch.setenv("TRUEUP_THREADS", "3")
    seen: list[tuple[int, float]] = []
    begun: set[int] = set()
    gate = threading.Barrier(3, timeout=600)

    def fill(inputs: list[np.ndarray], outs: list[np.ndarray]) -> None:
        if threading.get_ident() not in begun:
            begun.add(threading.get_ident())
            gate.wait()
        assert len(inputs[0]) <= 100
        seen.append((threading.get_ident(), inputs[0][0]))
        np.negative(inputs[0], out=outs[0])

    values = np.arange(100_001.0)
    (out,) = sweep(fill, [values], 1, np.dtype(float), 100)
    np.testing.assert_array_equal(out, -values)
    assert sorted(first for _, first in seen) == list(range(0, 100_001, 100))


def test_the_number_of_threads_can_be_set(monkeypatch) -> None:
    monkeypatch.setenv("TRUEUP_THREADS", "3")
    assert cores() == 3
    monkeypatch.setenv("TRUEUP_THREADS", "many")
    assert 1 <= cores() <= 16
