"""``trueup explain``: the estimator of a formula, why it is right, and what the plug-in does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trueup.cli.options import NOISE_HELP, SPEC_HELP, add_columns, add_release, add_repeatable

if TYPE_CHECKING:
    import argparse

    from trueup.estimator import Estimator
    from trueup.tables.spec import Spec

HELP = "Show the unbiased estimator of a formula: theorem, error, plug-in bias, SQL."

EXAMPLES = f"""\
Where no unbiased estimator exists it says why, and what works instead (exit code 1).

{NOISE_HELP}
{SPEC_HELP}
examples:
  trueup explain "1/n" --noise "n=laplace(2)" --domain "n>=1"
  trueup explain "s/n" --noise "s=laplace(2)" --noise "n=discrete_laplace(2)" --domain "n>=1" \\
      --at "n=1,5,20" --at "s=100" --dialect bigquery --column n=emp
  trueup explain mean --spec release.toml
"""

_STEPS = (0, 1, 2, 5, 20, 100)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "formula", metavar="FORMULA", help='e.g. "1/n", or the name of an estimate in the sidecar'
    )
    add_release(parser)
    add_columns(parser)
    group = parser.add_argument_group("what to show")
    true = "true values at which to show errors, e.g. n=1,5,20"
    add_repeatable(group, "--at", "NAME=VALUES", true)
    group.add_argument("--dialect", default="duckdb", help="dialect of the SQL (default: duckdb)")
    group.add_argument("--no-sql", action="store_true", help="leave out the SQL")


def run(args: argparse.Namespace) -> int:
    """Print everything about one estimator."""
    from trueup.adapters.notation import assignment
    from trueup.cli.sidecar import read_release

    release = read_release(args, [])
    name, formula = assignment(args.formula)
    formula = release.formulas.get(formula, formula) if name is None else formula
    release.check_used([formula])
    estimator = release.estimator(formula)
    points = _points(estimator, args.at)
    sql = None if args.no_sql else _sql(release, estimator, args.dialect)
    print(estimator.explain())
    print(f"\nAt true values\n{_table(estimator, points)}")
    if sql is not None:
        print(f"\nSQL ({args.dialect})\n{sql}")
    return 0


def _points(estimator: Estimator, texts: list[str]) -> list[dict[str, float]]:
    """Return the true values to look at: those given, else steps away from the bounds."""
    from trueup.adapters.notation import assignment, read_numbers
    from trueup.errors import TrueupError

    given: dict[str, list[float]] = {}
    for text in texts:
        name, values = assignment(text)
        if name not in estimator.statistics:
            raise TrueupError(
                f"--at names no statistic of the formula, got {text!r}",
                f"e.g. --at {estimator.statistics[0]}=1,5,20",
            )
        given.setdefault(name, []).extend(float(value) for value in read_numbers(values))
    columns = {s: given.get(s) or _typical(estimator, s) for s in estimator.statistics}
    sizes = {len(values) for s, values in columns.items() if s in given and len(values) > 1}
    if len(sizes) > 1:
        raise TrueupError(
            f"--at gives lists of different lengths: {sorted(sizes)}",
            "give as many values for each statistic, or one",
        )
    free = any(s not in given for s in columns)
    rows = sizes.pop() if sizes else len(_STEPS) if free else 1
    return [
        {s: values[min(i, len(values) - 1)] for s, values in columns.items()} for i in range(rows)
    ]


def _typical(estimator: Estimator, name: str) -> list[float]:
    """Return values from the bound on, in steps of about the noise."""
    domain, noise = estimator.domain[name], estimator.noise[name]
    low, high = (None if b is None else float(b) for b in domain.bounds)
    spread = float(noise.variance) ** 0.5
    unit = float(f"{spread:.1g}") if 0 < spread < math.inf else 1.0
    unit = max(round(unit), 1) if noise.lattice else unit
    if low is not None and high is not None:
        ends = [low + (high - low) * i / (len(_STEPS) - 1) for i in range(len(_STEPS))]
        return [float(round(q)) if noise.lattice else q for q in ends]
    if low is None and high is not None:
        return [high - k * unit for k in _STEPS]
    return [(low or 0.0) + k * unit for k in _STEPS]


def _table(estimator: Estimator, points: list[dict[str, float]]) -> str:
    """Return f(q), what the plug-in gets wrong, and the sd of the estimate, with its bias."""
    from trueup.estimator import unbiased
    from trueup.near.estimator import NearlyUnbiased
    from trueup.noise import Noiseless
    from trueup.plugin import plugin_bias

    truth = unbiased(estimator.estimand, dict.fromkeys(estimator.statistics, Noiseless()))
    bias = plugin_bias(estimator.estimand, estimator.noise)
    columns: dict[str, list[Any]] = {s: [p[s] for p in points] for s in estimator.statistics}
    columns["f"] = [truth(**p) for p in points]
    columns["plug-in bias"] = [bias(**p) for p in points]
    clipped = _clipped(estimator)
    notes = []
    if any(math.isnan(b) for b in columns["plug-in bias"]):
        notes.append("none: the plug-in has no expectation, a pole is within reach of the noise")
        if clipped is not None:
            shown = plugin_bias(clipped, estimator.noise)
            columns["bias of clipped plug-in"] = [shown(**p) for p in points]
            notes.append("clipped: x moved into the domain first, as is often done")
    kind = "unbiased"
    if isinstance(estimator, NearlyUnbiased):
        kind = "nearly unbiased"
        columns["bias of the estimate"] = [estimator.bias(**p) for p in points]
    columns[f"sd of the {kind} estimate"] = [estimator.sd(**p) for p in points]
    cells = [[_number(value) for value in values] for values in columns.values()]
    widths = [max(map(len, [head, *body])) for head, body in zip(columns, cells, strict=True)]
    rows = [columns.keys(), *zip(*cells, strict=True)]
    lines = ["  ".join(f"{c:>{w}}" for c, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(f"  {line}" for line in [*lines, *notes])


def _clipped(estimator: Estimator) -> Any:
    """Return the formula at statistics moved into their domain, None without bounds."""
    import sympy

    moves = {}
    for symbol in estimator.estimand.free_symbols:
        low, high = estimator.domain[symbol.name].bounds
        inside = symbol if low is None else sympy.Max(symbol, low)
        inside = inside if high is None else sympy.Min(inside, high)
        if inside is not symbol:
            moves[symbol] = inside
    return estimator.estimand.xreplace(moves) if moves else None


def _number(value: float) -> str:
    if math.isnan(value):
        return "none"
    return "infinite" if math.isinf(value) else f"{value:.6g}"


def _sql(release: Spec, estimator: Estimator, dialect: str) -> str:
    """Return the SQL of the estimate and its error, or why there is none."""
    from trueup.errors import MissingExtra, TrueupError
    from trueup.sql.dialects import dialect_of

    dialect_of(dialect)
    columns, scales = (
        release.columns_of(estimator.statistics),
        release.scales_of(estimator.statistics),
    )
    lines = []
    for output in ("value", "stderr"):
        try:
            sql = estimator.sql(dialect, output, columns, scales or None, comment=False)
        except MissingExtra as error:
            return f"  none: {error.message}\n  {error.hint}"
        except TrueupError as error:
            sql = f"none: {error.message}"
        lines.append(f"  {output}:\n    {sql}")
    return "\n".join(lines)
