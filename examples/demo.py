"""A noisy table of regions and industries: national figures before and after debiasing.

A simulated statistical agency publishes establishments, employment and payroll of every region and
industry, with privacy noise. Anyone can then compute pay per employee, cell by cell. This shows
what that does to the national figures, and what ``trueup debias`` does about it. At the end
``trueup release`` makes a private table from records of people, one by one.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from textwrap import fill

import numpy as np
import pyarrow.parquet as pq
from pyarrow import Table, csv, table

import trueup as tu
from trueup.cli import main as trueup

REGIONS, INDUSTRIES, SEED = 60, 400, 2026
SPEC = """\
[noise.establishments]
family = "discrete_laplace"      # integer noise, privacy loss 1/2
epsilon = 0.5
bounds = [1, inf]                # only cells with an establishment are published

[noise.employment]
family = "discrete_laplace"
epsilon = 0.5
bounds = [1, inf]

[noise.payroll]
family = "laplace"               # real noise; one person adds at most 60 thousand
epsilon = 1
sensitivity = 60

[estimate]
pay_per_employee = "payroll/employment"
employees_per_establishment = "employment/establishments"
"""
PEOPLE = 20_000
PLAN = """\
epsilon = 1
by = ["region"]

[keys]
region = [1, 2, 3, 4]

[measures]
n = "count"
wage = "mean(wage, 0, 150000)"      # clipped to these bounds
sex = "share(sex, ['f', 'm'])"
"""
NOISE = {
    "establishments": tu.DiscreteLaplace.from_budget(epsilon=0.5),
    "employment": tu.DiscreteLaplace.from_budget(epsilon=0.5),
    "payroll": tu.Laplace.from_budget(epsilon=1, sensitivity=60),
}
FIGURES = {
    "pay_per_employee": ("payroll", "employment"),
    "employees_per_establishment": ("employment", "establishments"),
}


def main() -> None:
    """Make the release, debias it, and compare the national figures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="trueup-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    truth = simulate(np.random.default_rng(SEED))
    release = publish(truth, np.random.default_rng(SEED + 1))
    say(
        f"1. An agency publishes {REGIONS} regions × {INDUSTRIES} industries = {len(release):,} "
        f"cells, half of them with at most {int(np.median(truth['employment']))} employees, with "
        f"privacy noise on every number. (Simulated, seed {SEED}: nothing here is private.) The "
        f"files are in {folder}."
    )
    show(release)
    with contextlib.chdir(folder):
        pq.write_table(release, "release.parquet")
        Path("release.toml").write_text(SPEC)
        say(
            "2. Pay per employee and employees per establishment of every cell, unbiased, with "
            "standard errors. What noise was added is in release.toml."
        )
        trueup_("debias release.parquet debiased.parquet --spec release.toml --force")
        columns = ["region", "industry", "pay_per_employee", "pay_per_employee_stderr"]
        show(pq.read_table("debiased.parquet", columns=columns))
        say("3. The national figures: averages over all cells.")
        options = "--spec release.toml --total --average --quiet --force"
        trueup_(f"debias release.parquet nation.csv {options}")
        compare(truth, release, csv.read_csv("nation.csv"))
        from_people(np.random.default_rng(SEED + 2))


def from_people(rng: np.random.Generator) -> None:
    """Release a private table from microdata, and read it as anybody can."""
    people = table(
        {
            "region": rng.integers(1, 4, PEOPLE),
            "wage": np.round(rng.lognormal(10.6, 0.5, PEOPLE), 2),
            "sex": rng.choice(["f", "m"], PEOPLE),
        }
    )
    pq.write_table(people, "people.parquet")
    Path("plan.toml").write_text(PLAN)
    say(
        f"4. A private table from {PEOPLE:,} records of people: the plan is public, and so are the "
        "regions; region 4 has nobody. (--seed: simulated, not private.)"
    )
    trueup_(f"release people.parquet wages.csv --spec plan.toml --seed {SEED} --quiet --force")
    say("Whoever has the table and its sidecar gets the same means from the noisy totals.")
    trueup_("debias wages.csv read.csv --spec wages.toml --quiet --force")
    columns = ["region", "n", "n_stderr", "wage", "wage_stderr", "wage_debiased"]
    show(csv.read_csv("read.csv").select(columns))


def simulate(rng: np.random.Generator) -> Table:
    """Return the true table: many small cells, few large ones, pay that depends on the industry."""
    cells = REGIONS * INDUSTRIES
    establishments = 1 + rng.negative_binomial(0.8, 0.12, cells)
    employment = establishments + rng.negative_binomial(establishments, 0.3)
    pay = np.tile(rng.lognormal(3.7, 0.35, INDUSTRIES), REGIONS) * rng.lognormal(0, 0.1, cells)
    return table(
        {
            "region": np.repeat(np.arange(1, REGIONS + 1), INDUSTRIES),
            "industry": np.tile(np.arange(1, INDUSTRIES + 1), REGIONS),
            "establishments": establishments,
            "employment": employment,
            "payroll": employment * pay,  # thousand a year
        }
    )


def publish(truth: Table, rng: np.random.Generator) -> Table:
    """Return the table with noise on its three numbers."""
    columns = {name: truth[name].to_numpy() for name in truth.column_names}
    for name, noise in NOISE.items():
        columns[name] = columns[name] + noise.sample(len(truth), rng)
    return table(columns)


def compare(truth: Table, release: Table, nation: Table) -> None:
    """Print the figures from plug-in cells and from debiased cells beside the truth."""
    heads = f"{'truth':>9}{'x/y':>9}{'x/max(y,1)':>13}{'debiased':>18}"
    print(f"\n{'average over the cells of':<29}{heads}")
    for name, (over, under) in FIGURES.items():
        right = (truth[over].to_numpy() / truth[under].to_numpy()).mean()
        x, y = release[over].to_numpy(), release[under].to_numpy()
        dropped, clipped = (x[y > 0] / y[y > 0]).mean(), (x / np.maximum(y, 1)).mean()
        value, error = (nation[name + end][0].as_py() for end in ("", "_stderr"))
        shown, label = f"{value:.3f} ± {error:.3f}", name.replace("_", " ")
        print(f"{label:<29}{right:>9.3f}{dropped:>9.3f}{clipped:>13.3f}{shown:>18}")
    say(
        "Dividing noisy numbers is biased, and averaging over cells does not help: x/y leaves out "
        "the cells whose count is 0 or less, x/max(y,1) sets those counts to 1. Debiased cells can "
        "be added up, and the error of the sum is known (± one standard error)."
    )


def trueup_(line: str) -> None:
    """Show a command line and run it."""
    print(f"\n  $ trueup {line}", flush=True)
    if trueup(line.split()):
        raise SystemExit(1)


def say(text: str) -> None:
    """Print a paragraph."""
    print("\n" + fill(text, 96), flush=True)


def show(rows: Table) -> None:
    """Print the first rows of a table; – is a standard error that an empty group may not have."""
    print("\n  " + "  ".join(f"{name:>14}" for name in rows.column_names))
    for row in rows.slice(0, 4).to_pylist():
        texts = {name: "–" if x is None else f"{x:.6g}" for name, x in row.items()}
        print("  " + "  ".join(f"{text:>{max(14, len(name))}}" for name, text in texts.items()))


if __name__ == "__main__":
    main()
