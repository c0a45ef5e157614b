"""Hypothesis draws the same cases on every machine, tests/prove those of a seed that is shown.

Processes that share the tests inherit the seed from the one that starts them.
"""

import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from extras import missing, needs

# Read when NumPy is imported, which comes after. Processes share the cores already, and OpenBLAS
# waits for its second thread by spinning: on busy cores small pseudo-inverses took 5.3 s, not 0.02.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Spark's virtual machine compiles what runs once as if it ran for hours, unless it is told.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Spark's workers add the rows of private tables up, with the library under test.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

settings.register_profile(
    "trueup",
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("trueup")

KEPT = Path(__file__).parents[1] / "build" / "disagreements.jsonl"
SEED = os.environ.setdefault("TRUEUP_SEED", str(random.SystemRandom().randrange(10**6)))


def pytest_report_header() -> str:
    """Return the line that makes a run repeatable."""
    return f"drawn cases: TRUEUP_SEED={SEED}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell of disagreements that are too few to fail a run, and keep them."""
    reports = [r for rs in terminalreporter.stats.values() for r in rs]
    told = [p for r in reports for p in getattr(r, "user_properties", ())]
    lines = list(dict.fromkeys(text for name, text in told if name == "disagreement"))
    if lines and not hasattr(terminalreporter.config, "workerinput"):  # one tells for all
        terminalreporter.section(f"disagreements to look into, TRUEUP_SEED={SEED}", yellow=True)
        terminalreporter.write_line("\n".join(lines))
        KEPT.parent.mkdir(exist_ok=True)
        with KEPT.open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of Spark first: one process starts it and has them all."""
    items.sort(key=lambda item: "spark" not in item.nodeid)


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
