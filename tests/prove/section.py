"""What one part of the deep run did and what came of it."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Section:
    """A line of RELIABILITY.md; any fault fails the run."""

    drawn: str
    faults: list[str]
