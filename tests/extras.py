"""Optional parts: a visible skip on a user's machine, a failure where everything is required."""

import importlib
import os
from typing import Any

import pytest


def needs(module: str, reason: str = "") -> Any:
    """Return a module, or skip the test with a reason; with TRUEUP_REQUIRE_ALL=1 fail instead."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing(f"{reason or module + ' is not installed'}: {error}")


def missing(reason: str) -> None:
    """Skip the test with a visible reason; with TRUEUP_REQUIRE_ALL=1 fail instead."""
    if os.environ.get("TRUEUP_REQUIRE_ALL") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)
