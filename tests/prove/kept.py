"""Disagreements that were found, shrunk and kept: replayed by every run of the tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prove.grammar import Case

FILE = Path(__file__).with_name("kept.json")
DISAGREEMENT = "disagreement"
"""The property of a test that passed and has one to tell, see tests/conftest.py."""


def kept() -> list[dict[str, Any]]:
    """Return the records: a case, the check that found it, whether it is still open."""
    return json.loads(FILE.read_text("utf-8")) if FILE.exists() else []


def case_of(record: dict[str, Any]) -> Case:
    """Return the case of a record."""
    domain = {name: tuple(bounds) for name, bounds in record["domain"].items()}
    return Case(record["formula"], record["noises"], domain, record["seed"])


def record_of(check: str, case: Case, still: bool) -> dict[str, Any]:
    """Return the record of a case; ``still`` says that it is not mended yet."""
    return {
        "check": check,
        "formula": case.formula,
        "noises": case.noises,
        "domain": {name: list(bounds) for name, bounds in case.domain.items()},
        "seed": case.seed,
        "open": still,
    }


def write(records: Iterable[dict[str, Any]]) -> None:
    """Write the records, one line each, each case once."""
    once = {(r["check"], r["formula"], str(r["noises"]), str(r["domain"])): r for r in records}
    lines = ",\n".join(json.dumps(r, ensure_ascii=False) for r in once.values())
    FILE.write_text(f"[\n{lines}\n]\n", "utf-8")
