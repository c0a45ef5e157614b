"""Hypothesis draws the same cases on every machine, tests/prove those of a seed that is shown.

Processes that share the tests inherit the seed from the one that starts them.
"""

import os
import random
import shutil

import pytest
from hypothesis import HealthCheck, Phase, settings

from extras import missing, needs

# Read when NumPy is imported, which comes after. Processes share the cores already, and OpenBLAS
# waits for its second thread by spinning: on busy cores small pseudo-inverses took 5.3 s, not 0.02.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile(
    "trueup",
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("trueup")

SEED = os.environ.setdefault("TRUEUP_SEED", str(random.SystemRandom().randrange(10**6)))


def pytest_report_header() -> str:
    """Return the line that makes a run repeatable."""
    return f"drawn cases: TRUEUP_SEED={SEED}"


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
        browser = running.chromium.launch(
            executable_path=path, args=options.split(), timeout=600_000
        )
        yield browser
        browser.close()
