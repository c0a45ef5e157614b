"""The same numbers from compiled loops and from NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extras import needs


@pytest.fixture(scope="module")
def compiled() -> Callable[..., Any]:
    """Run a function with compiled kernels."""
    needs("numba", "compiled kernels come with trueup[fast]")
    return lambda function: _with("1", function)


@pytest.fixture(scope="module")
def plain() -> Callable[..., Any]:
    """Run a function with NumPy."""
    return lambda function: _with("0", function)


def _with(numba: str, function: Callable[[], Any]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUEUP_NUMBA", numba)
        return function()
