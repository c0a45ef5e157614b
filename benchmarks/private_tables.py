"""Private tables at scale: adding up against a plain GROUP BY, noise, and memory.

    python benchmarks/private_tables.py            # 10^8 rows in 10^5 groups: 2 GB in a folder

Every step runs in a process of its own, so that its memory is its own. Times are processor seconds,
and the ratio is of two steps in one run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GROUPS = 100_000
MEASURES = {"n": "count", "wage": "mean(wage, 0, 120000)", "hours": "sum(hours, 0, 60)"}
PLAIN = "SELECT state, COUNT(*), SUM(wage), SUM(hours) FROM '{}' GROUP BY state"


def make(path: str, rows: int) -> int:
    """Write made-up microdata."""
    import duckdb

    duckdb.execute(
        f"""COPY (
          SELECT CAST(hash(i) % {GROUPS} AS INTEGER) AS state,
            hash(i + 1) % 15000000 / 100.0 AS wage, CAST(hash(i + 2) % 70 AS DOUBLE) AS hours
          FROM range({rows}) AS r(i)
        ) TO '{path}' (FORMAT parquet)"""  # noqa: S608
    )
    return rows


def plain(path: str, rows: int) -> int:
    """Group by, with sums of doubles, in the engine as a release sets it up."""
    from trueup.microdata.engines import _duck

    with tempfile.TemporaryDirectory() as spill:
        found = _duck(3, Path(spill)).ask(PLAIN.format(path))
    return len(found)


def totals(path: str, rows: int) -> int:
    """Add up what a private table needs."""
    from trueup.microdata import engines
    from trueup.microdata.design import Design
    from trueup.microdata.public_keys import read_keys

    design = Design.read(MEASURES, 1, ("state",))
    keys = read_keys(list(range(GROUPS)), ("state",))
    found = engines.totals(path, design, keys, {}, "")
    assert sum(found[0]) == rows, "rows were lost"
    return len(found[0])


def noise(path: str, rows: int) -> int:
    """Draw a million noisy numbers: half of them whole counts, half sums on a fine grid."""
    from fractions import Fraction

    from trueup import DiscreteLaplace, Laplace
    from trueup.mechanisms.sampling import publish
    from trueup.mechanisms.whole_numbers import Whole, step_under

    half = 500_000
    counts = publish(tuple(range(half)), DiscreteLaplace(3))
    sums = publish(Whole(tuple(range(half)), Fraction(step_under(100))), Laplace(100))
    return len(counts) + len(sums)


def table(path: str, rows: int) -> int:
    """Release the whole table: add up, draw, estimate, report."""
    import trueup as tu

    made = tu.release(path, "state", list(range(GROUPS)), 1, **MEASURES)
    return len(made.columns["wage"])


STEPS = {f.__name__: f for f in (make, plain, totals, noise, table)}


def run(step: str, path: Path, rows: int) -> dict[str, float]:
    """Run a step in a process of its own; its processor seconds and memory without imports."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, __file__, "--step", step, "--path", str(path), "--rows", str(rows)],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    print(
        f"{step:<8}{rows:>13,} rows {found['cpu']:>8.1f} s {found['memory']:>8.0f} MB", flush=True
    )
    return found


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**8)
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--path", type=Path)
    args = parser.parse_args()
    if args.step:
        import pandas  # noqa: F401  (imports are no part of a step; pyarrow does this one)

        import trueup.microdata.engines  # noqa: F401

        start = time.process_time()
        STEPS[args.step](str(args.path), args.rows)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"cpu": time.process_time() - start, "memory": memory}))
        return
    with tempfile.TemporaryDirectory() as folder:
        run("noise", Path(folder), 10**6)
        for rows in (args.rows // 10, args.rows):
            path = Path(folder) / f"{rows}.parquet"
            run("make", path, rows)
            base, ours = run("plain", path, rows), run("totals", path, rows)
            print(f"  adding up takes {ours['cpu'] / base['cpu']:.2f} of a plain GROUP BY")
            run("table", path, rows)


if __name__ == "__main__":
    main()
