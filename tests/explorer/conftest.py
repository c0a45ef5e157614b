"""The page as an application, as a server of its own, and in a browser."""

import shutil

import pytest

from explorer.cases import Server
from extras import missing, needs


@pytest.fixture(scope="module")
def server():
    """One server for the tests of a file."""
    for module in ("starlette", "uvicorn", "plotly", "psutil"):
        needs(module)
    server = Server()
    assert server.address, server.process.stderr.read()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def browser():
    """Debian's chromium, or the user's, without a window."""
    playwright = needs("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        missing("no chromium on this machine: the page is not tested in a browser")
    options = (
        "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync"
    )
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=options.split())
        yield browser
        browser.close()
