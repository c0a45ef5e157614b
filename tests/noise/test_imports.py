"""Importing the families stays cheap."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("heavy", ["scipy.stats", "scipy.integrate", "pandas"])
def test_heavy_modules_wait_until_they_are_needed(heavy):
    code = f"import sys, trueup.noise; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603
