"""Hypothesis draws the same cases on every machine, tests/prove those of a seed that is shown.

Processes that share the tests inherit the seed from the one that starts them.
"""

import os

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "trueup",
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("trueup")

SEED = os.environ.setdefault("TRUEUP_SEED", "2")


def pytest_report_header() -> str:
    """Return the line that makes a run repeatable."""
    return f"drawn cases: TRUEUP_SEED={SEED}"
