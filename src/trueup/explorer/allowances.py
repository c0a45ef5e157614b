"""How much the page may ask for: every limit in one place."""

from __future__ import annotations

from typing import Final

MEBIBYTE: Final = 2**20

BODY: Final = 32_768
"""Bytes of a JSON body; the grammar allows a formula 2,000 characters."""

BODY_SECONDS: Final = 10.0
"""Seconds for a JSON body to arrive, and for each piece of an upload."""

STATISTICS: Final = 6
"""Statistics in one formula: each one has its own noise and bounds."""

FORMULA: Final = 2_000
"""Characters of a formula, of conditions, and of lines of formulas or measures."""

TEXT: Final = 60
"""Characters of a number, a name of a family or of a dialect."""

WORKERS: Final = 2
"""Computations at once, each in its own process."""

WAITING: Final = 24
"""Computations that may wait for a worker; further ones are told to come back."""

MEMORY: Final = 224 * MEBIBYTE
"""What a computation may add to the memory of its worker."""

JOBS: Final = 400
"""Computations after which a worker is replaced."""

SECONDS: Final = {
    "curve": 6.0,
    "risk": 20.0,
    "near": 30.0,
    "frontier": 40.0,
    "code": 6.0,
    "columns": 10.0,
    "plan": 30.0,
    "table": 20.0,
    "job": 6.0,
    "look": 20.0,
    "debias": 900.0,
}
"""Seconds for each kind of computation; after them its worker is killed."""

CACHE: Final = 8 * MEBIBYTE
"""Bytes of answers kept to be given again."""

CONNECTIONS: Final = 96
"""Connections at once; further ones get 503."""

SILENT: Final = 64
"""Connections at once that have not sent the head of a request; the oldest one makes room."""

QUIET_SECONDS: Final = 10.0
"""Seconds between two looks at a connection; nothing from one to the next, and it is closed."""

UPLOAD: Final = 256 * MEBIBYTE
"""Bytes of an uploaded file, unless the command line says otherwise."""

ARRIVING: Final = 2
"""Uploads that may arrive at once; one that is slow makes room."""

PACE: Final = 65_536
"""Bytes a second below which an upload is slow: a tenth of a slow network's pace."""

PACE_SECONDS: Final = 2.0
"""Seconds before an upload is called slow."""

FILES: Final = 4
"""Uploads kept at once; the oldest idle one makes room."""

KEEP_SECONDS: Final = 1_800.0
"""Seconds after its last use until an upload is removed."""

DUCKDB: Final = "256MB"
"""What the engine may keep in memory; the rest goes to the temporary folder."""

FILE_SIZE: Final = 2_048 * MEBIBYTE
"""Bytes of a debiased file, and of anything else that a process writes."""

FILE_MEMORY: Final = 3_072 * MEBIBYTE
"""What the process that debiases a file may add to its address space; most is never touched."""

PREVIEW: Final = 8
"""Rows shown of an uploaded file."""
