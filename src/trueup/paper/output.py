"""Writing the figures and tables: whole files or none, and never over others' by accident."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

from trueup.errors import TrueupError
from trueup.paper import curves, excess
from trueup.paper.comparison import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from trueup.paper import Results

FIGURES = ("figure1", "figure2", "figure3")
REPORT = "report.txt"


def names(plots: bool) -> list[str]:
    """Return the names of the files of a run."""
    tables = [f"{name}.csv" for name in FIGURES] + ["numbers.csv", "per_record.csv", REPORT]
    return sorted(tables + ([f"{name}.png" for name in FIGURES] if plots else []))


def prepare(folder: Path, wanted: Iterable[str], force: bool) -> None:
    """Make the folder, and refuse to overwrite before anything is computed."""
    if folder.exists() and not folder.is_dir():
        raise TrueupError(f"{folder} is a file, not a folder", "choose another folder with --out")
    present = [name for name in wanted if (folder / name).exists()]
    if present and not force:
        raise TrueupError(
            f"{folder} already has {', '.join(present)}",
            "add --force to overwrite, or choose another folder with --out",
        )
    folder.mkdir(parents=True, exist_ok=True)


def write(folder: Path, results: Results, report: str, pictures: Mapping[str, bytes]) -> list[str]:
    """Write every file of a run, the report and pictures included, and return the names."""
    contents = {**_tables(results), REPORT: f"{report}\n".encode(), **pictures}
    for name, content in contents.items():
        replace(folder / name, content)
    return sorted(contents)


def replace(path: Path, content: bytes) -> None:
    """Write a file under a temporary name and rename it: readers see the old or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _tables(results: Results) -> dict[str, bytes]:
    found = results.curves
    low, high = excess.interval(results.bounds)
    implied = [excess.sd_with(found, x) for x in (low, high)]
    keys = [c.key for c in found.contenders]
    head = ["n", *keys, "m_u_paper_low", "m_u_paper_high"]
    sds = list(zip(found.counts, *(found.sds[k] for k in keys), *implied, strict=True))
    ratio = [[row[0], *(row[1] / sd for sd in row[2:])] for row in sds]
    rows = [[cell.strip() for cell in row] for row in numbers(results)]
    return {
        "figure1.csv": _csv(head, sds),
        "figure2.csv": _csv(head, [row for row in sds if row[0] >= curves.ZOOM_FROM]),
        "figure3.csv": _csv(["n", *(f"m_ss_over_{key}" for key in head[2:])], ratio),
        "numbers.csv": _csv(["quantity", "paper", "exact_k10", "umvue"], rows),
        "per_record.csv": _csv(
            list(asdict(results.per_record[0])),
            [list(asdict(row).values()) for row in results.per_record],
        ),
    }


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return a CSV with full precision; empty where a number is not defined."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(x) for x in row] for row in rows)
    return text.getvalue().encode()


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    return "" if number != number else repr(int(number) if number.is_integer() else number)
