"""Private tables at scale: adding up against a plain GROUP BY, noise, and memory.

    python benchmarks/private_tables.py            # 10^8 rows in 10^5 groups: 2 GB in a folder

Every step runs in a process of its own, so that its memory is its own. Times are processor seconds,
and the ratios are of steps in one run. The table goes to benchmarks/private_tables.md; with another
number of rows it is only printed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from trueup.microdata.design import Design
    from trueup.microdata.public_keys import Keys

GROUPS = 100_000
MEASURES = {"n": "count", "wage": "mean(wage, 0, 120000)", "hours": "sum(hours, 0, 60)"}
PLAIN = "SELECT state, COUNT(*), SUM(wage), SUM(hours) FROM '{}' GROUP BY state"
CLIPPED = (
    "SELECT state, COUNT(*), SUM(LEAST(GREATEST(wage, 0), 120000)), "
    "SUM(LEAST(GREATEST(hours, 0), 60)) FROM '{}' GROUP BY state"
)
ROWS = 10**8


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


def plain(path: str, rows: int, query: str = PLAIN) -> int:
    """Group by, with sums of doubles, in the engine as a release sets it up."""
    from trueup.microdata.engines import _duck

    with _duck(3) as duck:
        return len(duck.ask(query.format(path)))


def clipped(path: str, rows: int) -> int:
    """Group by, with sums of doubles clipped to their bounds: what one row adds is bounded."""
    return plain(path, rows, CLIPPED)


def totals(path: str, rows: int) -> int:
    """Add up what a private table needs, for keys that are a list of Python already."""
    from trueup.microdata import engines
    from trueup.microdata.totals import Reading

    design, keys = asked()
    found = engines.totals(path, Reading(design, {}), keys, "")
    assert sum(found[0]) == rows, "rows were lost"
    return len(found[0])


@cache
def asked() -> tuple[Design, Keys]:
    """Return the design of the table and its public keys."""
    from trueup.microdata.design import Design
    from trueup.microdata.public_keys import read_keys

    return Design.read(MEASURES, 1, ("state",)), read_keys(list(range(GROUPS)), ("state",))


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


def release(path: str, rows: int) -> int:
    """Publish the whole table with secure noise: add up, draw, estimate, report, write."""
    from trueup.cli import main as command

    keys = Path(path).with_name("keys.csv")
    keys.write_text("state\n" + "".join(f"{k}\n" for k in range(GROUPS)), encoding="utf-8")
    measures = [f"{name} = {what}" for name, what in MEASURES.items()]
    options = ["--epsilon", "1", "--by", "state", "--keys", str(keys), "--force", "--quiet"]
    return command(["release", path, _published(path), *measures, *options])


def reader(path: str, rows: int) -> int:
    """Compute the means again from the published totals; how far off is told in the table."""
    from trueup.cli import main as command

    table = _published(path)
    out = ["--force", "--quiet"]
    return command(["debias", table, _again(path), "--spec", table.replace(".csv", ".toml"), *out])


def _published(path: str) -> str:
    return str(Path(path).with_suffix(".csv"))


def _again(path: str) -> str:
    return str(Path(path).with_suffix(".again.csv"))


STEPS = {f.__name__: f for f in (make, plain, clipped, totals, noise, release, reader)}


class Cost(NamedTuple):
    """Processor seconds and MiB of a step, without imports."""

    cpu: float
    memory: float


def run(step: str, path: Path, rows: int) -> Cost:
    """Run a step in a process of its own."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, __file__, "--step", step, "--path", str(path), "--rows", str(rows)],
        check=True,
        capture_output=True,
        text=True,
    )
    found = Cost(*json.loads(done.stdout.splitlines()[-1]))
    print(f"{step:<8}{rows:>13,} rows {found.cpu:>8.1f} s {found.memory:>8.0f} MiB", flush=True)
    return found


def step(name: str, path: Path, rows: int) -> None:
    """Do one step and print its cost."""
    import pandas  # noqa: F401  (imports are no part of a step; pyarrow does this one)

    import trueup.microdata.engines  # noqa: F401

    asked()
    start = time.process_time()
    STEPS[name](str(path), rows)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([time.process_time() - start, memory]))


def farthest(path: Path) -> float:
    """Return how far a reader's means are from the published ones, of their size."""
    import pandas as pd

    ours, theirs = (pd.read_csv(f(str(path)))["wage"] for f in (_published, _again))
    return float(((ours - theirs) / ours).abs().max())


def table(rows: int) -> str:
    """Measure everything, and return the page."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        drawn = run("noise", Path(folder), 10**6)
        for some in (rows // 10, rows):
            path = Path(folder) / f"{some}.parquet"
            run("make", path, some)
            base, bounded, ours, whole, again = (
                run(name, path, some)
                for name in ("plain", "clipped", "totals", "release", "reader")
            )
            lines.append(
                f"| {some:,} | {base.cpu:.1f} | {bounded.cpu:.1f} | {ours.cpu:.1f} | "
                f"{ours.cpu / base.cpu:.2f} | {ours.cpu / bounded.cpu:.2f} | {ours.memory:.0f} | "
                f"{whole.cpu:.1f} s, {whole.memory:.0f} MiB | "
                f"{again.cpu:.1f} s, {again.memory:.0f} MiB |"
            )
            off = farthest(path)
    return "\n".join(
        [
            "# Private tables",
            "",
            "`python benchmarks/private_tables.py` makes up microdata and adds them up in "
            f"{GROUPS:,} groups: a count, a mean and a sum. Processor seconds of each step in a "
            "process of its own, without imports, one run.",
            "",
            "| rows | plain `GROUP BY`, sums of doubles | the same, values clipped to their bounds "
            "| totals of a private table | ratio to plain | to clipped | memory, MiB "
            "| `trueup release` | `trueup debias --spec` by a reader |",
            "| --: | --: | --: | --: | --: | --: | --: | --: | --: |",
            *lines,
            "",
            "- The totals are whole numbers of 128 bits, of values clipped to bounds; missing "
            "and infinite ones are counted, and refused. Public keys are handed over, found and "
            "answered, in the same time for any number of rows. The plain query with values "
            "clipped to their bounds is the same question, in doubles: without bounds no noise "
            "hides a row.",
            f"- A million noisy numbers, half of them counts and half sums, take {drawn.cpu:.0f} s "
            "from OpenDP's samplers.",
            f"- The reader's means differ from the published ones by at most {off:.1g} of their "
            "size.",
            "",
        ]
    )


def main() -> None:
    """Measure everything, or one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--path", type=Path)
    args = parser.parse_args()
    if args.step:
        step(args.step, args.path, args.rows)
        return
    page = table(args.rows)
    if args.rows == ROWS:
        Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
