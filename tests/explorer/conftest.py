"""The page as an application and as a server of its own."""

import pytest

from explorer.cases import PATIENT, Server
from extras import needs
from trueup.explorer import allowances


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Let no computation of this process be stopped because the machine is busy."""
    seconds = {kind: PATIENT * limit for kind, limit in allowances.SECONDS.items()}
    monkeypatch.setattr(allowances, "SECONDS", seconds)


@pytest.fixture(scope="module")
def server(request):
    """One server for the tests of a file."""
    for module in ("starlette", "uvicorn", "plotly", "psutil"):
        needs(module)
    server = Server(patience=getattr(request.module, "PATIENCE", PATIENT))
    assert server.address, server.process.stderr.read()
    yield server
    server.stop()
