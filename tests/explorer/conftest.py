"""The page as an application and as a server of its own."""

import pytest

from explorer.cases import Server
from extras import needs


@pytest.fixture(scope="module")
def server():
    """One server for the tests of a file."""
    for module in ("starlette", "uvicorn", "plotly", "psutil"):
        needs(module)
    server = Server()
    assert server.address, server.process.stderr.read()
    yield server
    server.stop()
