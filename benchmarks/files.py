"""Parquet to Parquet: ``trueup debias`` against DuckDB's own COPY of plain SQL.

    python benchmarks/files.py [--rows 10000000] [--large] [--repeat 5]

Both run as processes of their own, imports included, on the same file, and write the same columns:
s, n, s/n and its standard error. ``--large`` adds 10⁸ rows. The table goes to benchmarks/files.md,
the data to a temporary folder that is removed.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

NOISE = ["--noise", "s=laplace(2)", "--noise", "n=discrete_laplace(2)", "--domain", "n>=1"]
BASELINE = """\
COPY (
  SELECT *, s / n AS mean, sqrt(8 / (n * n) + 8 * s * s / (n * n * n * n)) AS mean_stderr
  FROM read_parquet('{source}')
) TO '{target}' (FORMAT parquet)"""
"""The plug-in, and the error that the delta method gives for noise of variance 8."""


def make(folder: Path, rows: int) -> Path:
    """Write s and n of noisy cells: n from a few to a few hundred, s about 40 for each."""
    path = folder / f"{rows}.parquet"
    connection = duckdb.connect(config={"temp_directory": str(folder / "spill")})
    connection.execute("SELECT setseed(0.5)")
    connection.execute(
        f"""COPY (
          SELECT cell, n, 40 * n * (0.8 + 0.4 * random()) + 2 * ln(random() / random()) AS s
          FROM (
            SELECT i AS cell,
              CAST(round(1 + exp(6 * random()) + 2 * ln(random() / random())) AS BIGINT) AS n
            FROM range({rows}) t(i)
          )
        ) TO '{path}' (FORMAT parquet)"""  # noqa: S608
    )
    return path


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the seconds that a process takes, and the most memory it has, in MiB."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)  # noqa: S603
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if status:
        raise SystemExit(f"failed: {command}")
    return seconds, used.ru_maxrss / 1024


def contest(folder: Path, rows: int, repeat: int) -> list[tuple[str, float, float]]:
    """Return the best time and the peak memory of each, taking turns."""
    source, target = make(folder, rows), folder / "out.parquet"
    sql = BASELINE.format(source=source, target=target)
    commands = {
        "DuckDB `COPY`": [
            sys.executable,
            "-c",
            f"import duckdb; duckdb.connect().execute({sql!r})",
        ],
        "`trueup debias`": [
            *(sys.executable, "-m", "trueup", "debias", str(source), str(target)),
            *("mean = s/n", *NOISE, "--force"),
        ],
    }
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(repeat):
        for name, command in commands.items():
            results[name].append(timed(command, folder))
            os.sync()
    source.unlink()
    return [(name, min(t for t, _ in r), max(m for _, m in r)) for name, r in results.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--large", action="store_true", help="10⁸ rows too")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to put the data")
    args = parser.parse_args()
    sizes = [args.rows, *[100_000_000] * args.large]
    lines = [
        "# Files",
        "",
        f"`python benchmarks/files.py{' --large' * args.large}`: Parquet to Parquet, best of "
        f"{args.repeat}, taking turns, whole processes with their imports, {os.cpu_count()} cores, "
        f"{platform.machine()}, Python {platform.python_version()}, DuckDB {duckdb.__version__}. "
        "Memory is the peak resident set.",
        "",
        "| rows | | seconds | ratio | memory, MiB |",
        "| --- | --- | --- | --- | --- |",
    ]
    with tempfile.TemporaryDirectory(prefix="trueup-bench-", dir=args.folder) as folder:
        for rows in sizes:
            results = contest(Path(folder), rows, args.repeat)
            base = results[0][1]
            lines += [
                f"| {rows:,} | {name} | {seconds:.2f} | {seconds / base:.2f} | {memory:.0f} |"
                for name, seconds, memory in results
            ]
    sql = BASELINE.format(source="in.parquet", target="out.parquet")
    lines += ["", "The baseline:", "", "```sql", sql, "```", "", "Ours:", "", "```console"]
    options = " ".join(f'"{a}"' if "=" in a else a for a in NOISE)
    lines += [f'$ trueup debias in.parquet out.parquet "mean = s/n" {options}', "```"]
    table = "\n".join(lines) + "\n"
    Path(__file__).with_suffix(".md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
