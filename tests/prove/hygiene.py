"""The section of RELIABILITY.md on packages and Pythons: what ``make matrix`` wrote."""

from __future__ import annotations

import json
from typing import Any

from matrix import FILE, TESTS
from prove.faults import number


def figures() -> list[str]:
    """Return the section."""
    known = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return [
        "## Packages and Pythons",
        "",
        "`make matrix` builds the source distribution, from it the wheel, and installs that with",
        "all extras but Spark in an empty environment, with the oldest packages that",
        "`pyproject.toml` allows and with the newest there are. There it runs",
        f"{', '.join(f'`{t}`' for t in TESTS)}.",
        "",
        "| Python and packages | commit | passed | skipped | failed | versions |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_row(name, result) for name, result in known.items()),
        "",
    ]


def _row(name: str, result: dict[str, Any]) -> str:
    if result.get("missing"):
        return f"| {name} | | not run | | | this Python was not there |"
    versions = ", ".join(f"{k} {v}" for k, v in result["versions"].items())
    failed = result["failed"] + result["error"]
    counts = f"{result['passed']:,} | {result['skipped']} | {number(failed)}"
    return f"| {name} | {result.get('commit', '')} | {counts} | {versions} |"
