"""The page as a server of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import trueup
from extras import needs

SOURCE = Path(trueup.__file__).parents[1]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a server, started as a user starts it; uploads have 1 MB at most."""
    for module in ("streamlit", "plotly", "uvicorn"):
        needs(module)
    temporary = tmp_path_factory.mktemp("temporary")
    command = [sys.executable, "-m", "trueup", "explore", "--port", "0", "--no-browser"]
    server = subprocess.Popen(  # noqa: S603
        [*command, "--max-upload", "1"],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(SOURCE)},
        encoding="utf-8",
    )
    yield server.stdout.readline().split()[2]
    server.terminate()
    server.communicate()
    assert not [*temporary.glob("trueup-explore-*")]
