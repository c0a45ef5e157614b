"""Compiled kernels in a cache of their own, and the same numbers without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extras import needs


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache shared by the tests of one process; every kernel is compiled once."""
    needs("numba", "compiled kernels come with trueup[fast]")
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def compiled(kernels: Path) -> Callable[..., Any]:
    """Run a function with compiled kernels."""
    return lambda function: _with("1", kernels, function)


@pytest.fixture(scope="module")
def plain() -> Callable[..., Any]:
    """Run a function with NumPy."""
    return lambda function: _with("0", Path(), function)


def _with(numba: str, cache: Path, function: Callable[[], Any]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUEUP_NUMBA", numba)
        patch.setenv("TRUEUP_CACHE", str(cache))
        return function()
