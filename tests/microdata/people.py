"""Made-up microdata, and what is asked of it, for the tests of private tables."""

from __future__ import annotations

from typing import Any

import numpy as np

KEYS = ["A", "B", "empty"]
MEASURES = {
    "n": "count",
    "wage": "mean(wage, 0, 120000)",
    "sex": "share(sex, ['f', 'm', 'x'])",
    "hours": "sum(hours, -5, 60)",
    "pay": "per_record(pay, root:3, 2)",
}


def people(size: int = 300, seed: int = 5) -> dict[str, list[Any]]:
    """Return columns: values beyond the bounds, halves of steps, groups that are not public."""
    rng = np.random.default_rng(seed)
    return {
        "state": rng.choice(["A", "B", "secret"], size).tolist(),
        "wage": np.round(rng.normal(50_000, 40_000, size), 2).tolist(),
        "sex": rng.choice(["f", "m", "x"], size).tolist(),
        "hours": rng.integers(-10, 80, size).tolist(),
        "pay": np.round(rng.lognormal(5, 3, size), 3).tolist(),
        "person": rng.integers(0, size // 3, size).tolist(),
        "job": rng.choice(["yes", "no"], size, p=[0.9, 0.1]).tolist(),
    }
