"""Every figure of the README outside its code blocks is computed here, or read from a benchmark.

What is said is written out again from the figures; once all of that is taken away, no digit may be
left. Code blocks are run by ``test_docs`` and as doctests.
"""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import trueup as tu
from trueup.sql.dialects import DIALECTS

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"^```.*?^```|`[^`]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
MATHEMATICS = [
    *("compute 1/x", "x/max(y, 1)", "count is 0 or less", "sets those counts to 1"),
    "in [0, 1]",  # where records lie
]
"""Digits that say nothing which could be wrong."""


def plain(text):
    return re.sub(r"\s+", " ", CODE.sub(" ", text))


@pytest.fixture(scope="module")
def page():
    """What a reader sees, code left out."""
    return plain((ROOT / "README.md").read_text(encoding="utf-8"))


def benchmark(name):
    return (ROOT / "benchmarks" / f"{name}.md").read_text(encoding="utf-8")


def rows(table):
    """Return the rows of the first table in a text by the name in their first column."""
    lines = [line.strip().strip("|").split("|") for line in table.splitlines() if "|" in line]
    return [[cell.strip(" *") for cell in line] for line in lines]


def hero():
    """The averages over the cells of the demo, which is ``make demo`` without the command line."""
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    np = demo.np
    truth = demo.simulate(np.random.default_rng(demo.SEED))
    release = demo.publish(truth, np.random.default_rng(demo.SEED + 1))
    middle = int(np.median(truth["employment"]))
    yield f"{len(release):,} cells, half of them with at most {middle} employees"
    for name, (over, under) in demo.FIGURES.items():
        bounds = {s: (None, None) if s == "payroll" else (1, None) for s in (over, under)}
        est = tu.unbiased(f"{over}/{under}", {s: demo.NOISE[s] for s in (over, under)}, bounds)
        found = tu.total(release, average=True, e=est)
        q, x = ({s: t[s].to_numpy() for s in (over, under)} for t in (truth, release))
        kept = x[under] > 0
        figures = (
            np.mean(q[over] / q[under]),
            np.mean(x[over][kept] / x[under][kept]),
            np.mean(x[over] / np.maximum(x[under], 1)),
        )
        shown = " | ".join(f"{figure:.3f}" for figure in figures)
        estimate, error = (found[column][0].as_py() for column in ("e", "e_stderr"))
        yield f"| {name.replace('_', ' ')} | {shown} | {estimate:.3f} ± {error:.3f} |"


def requirements():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield f"Python ≥ {project['requires-python'].removeprefix('>=')}"
    assert len(DIALECTS) == 11
    yield "SQL for eleven dialects"


def small_cells():
    report = benchmark("small_cells")
    (scale,) = re.findall(r"noise of scale (\d+) on s and n", report)
    (group,) = re.findall(r"of the (\d+) cells of a group", report)
    (cells,) = re.findall(r"; ([\d,]+) cells in", report)
    (sizes,) = re.findall(r"sizes log-uniform from ([\d,]+ to [\d,]+),", report)
    yield f"over cells of {sizes} with noise of scale {scale}, error"
    yield f"| | pay: {group} cells | {cells} cells | a share: {group} cells | {cells} cells |"
    found, bounds = {}, set()
    for kind in report.split("\n## ")[1:]:
        for name, *errors in rows(kind)[2:]:
            found.setdefault(name.split(" ")[0], []).extend(float(x.rstrip("%")) for x in errors)
            bounds.update(re.findall(rf"^cells={group} \(bias ≤ ([\d.]+)%\)", name))
    for name, words in {
        "naive": "naive, x/y",
        "clipped": "clipped, x/max(y, 1)",
        "unbiased": "unbiased",
        f"cells={group}": f"made for {group} cells:",
    }.items():
        shown = (f"{x:.0f}" if x >= 10 else f"{x:.1f}" for x in found[name])
        yield " | ".join((f"| {words}", *(f"{x} %" for x in shown)))
    (bound,) = bounds
    yield f"certified to be at most {bound} % in any cell"


def joint():
    noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
    domains = ("s >= 0, n >= 1", "0 <= s <= n, n >= 1")
    plain, tied = (tu.unbiased("s/n", noise, domain).sd(s=10, n=10) for domain in domains)
    yield f"the sd of s/n at (10, 10) with noise of scale 2 from {plain:.2f} to {tied:.2f}"


def shipped():
    report = benchmark("shipped_bias")
    versions = dict(re.findall(r"([a-z-]+) (\d+\.\d+)\.\d+", report.split("\n\n")[1]))
    mean = report.split("## The mean")[1].split("## The ratio")[0]
    bias, average = (rows(mean.split(part)[1].split("###")[0]) for part in
                     ("### Bias", "### RMSE of the average of 10,000 cells"))  # fmt: skip
    at = bias[0].index("10")
    assert "ε = 1 in total" in report
    assert "every record is 0.9 in [0, 1]" in report
    yield from ("mean at n = 10, ε = 1: bias", "average of 10,000 such cells: RMSE")
    yield from ("Records of 0.9", "Means and ratios at ε = 1 as four libraries")
    tools = {
        "OpenDP": f"OpenDP {versions['opendp']}, sum / length",
        "PyDP (Google)": f"Google's BoundedMean (PyDP {versions['python-dp']})",
        "PipelineDP": f"PipelineDP {versions['pipeline-dp']}",
        "diffprivlib": f"diffprivlib {versions['diffprivlib']}, sum / count",
    }
    for i, name in ((i, row[0]) for i, row in enumerate(bias) if row[0] in tools):
        off, error = (float(t[i][at].split("±")[0].strip(" *")) for t in (bias, average))
        sign = "+" if off > 0 else "−"
        yield f"| {tools[name]} | {sign}{abs(off):#.2g} | {error:#.2g} |"
    ours = [i for i, row in enumerate(bias) if row[1] == "trueup"]
    assert len(ours) == len(tools)
    assert {bias[i][at].split(" ±")[0] for i in ours} == {"0"}
    errors = [float(average[i][at]) for i in ours]
    yield f"a sum and a count of each library | 0 | {min(errors):#.2g} to {max(errors):#.2g} |"


def against_google():
    report = benchmark("means")
    assert "total ε = 1 for every mechanism" in report
    lines = re.findall(
        r"RMSE of GroupMean .* At n = ([\d, ]+): ([\d., ]+)\.$", report, re.MULTILINE
    )
    assert len(lines) == 3
    ratios = [dict(zip(n.split(", "), map(float, r.split(", ")), strict=True)) for n, r in lines]
    span = {
        n: (min(r[n] for r in ratios), max(r[n] for r in ratios)) for n in ("3", "5", "10", "50")
    }
    said = {n: " to ".join(dict.fromkeys(f"{x:.2f}" for x in ends)) for n, ends in span.items()}
    yield (
        f"At ε = 1 a mean released by has {said['10']} times the error of Google's BoundedMean at "
        f"n = 10 and {said['50']} times at n = 50, but {said['5']} times at n = 5 and {said['3']} "
        "times at n = 3"
    )


CLAIMS = [hero, requirements, small_cells, joint, shipped, against_google]


def test_every_figure_is_what_comes_out_and_none_is_without_a_source(page):
    left = page.replace("A count of 8 was published", "")  # what the example below it is given
    for said in [*(plain(c) for claims in CLAIMS for c in claims()), *MATHEMATICS]:
        assert said in left
        left = left.replace(said, " ")
    assert re.findall(r".{0,30}\d.{0,30}", left) == []
