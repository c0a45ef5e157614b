"""The printed report: every published number beside the exact one, and why they differ.

It is plain text, at most 100 columns wide.
"""

from __future__ import annotations

import math
from importlib import resources
from textwrap import wrap
from typing import TYPE_CHECKING

from trueup._version import __version__
from trueup.paper import curves, excess, printed
from trueup.paper.skewed_sums import EPSILON, LOG_MEAN, LOG_SD, LOW_LOSS, RECORDS, SEED, matched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.paper import Results
    from trueup.paper.skewed_sums import Row

K = f"m_u_k{printed.DEGREE}"
BEST = "m_u_umvue"
WIDTH = 100


def report(results: Results) -> str:
    """Return the whole report."""
    sections = [_opening, _numbers, _sds, _why, _remark, _powers, _per_record]
    return "\n\n".join([*(section(results) for section in sections), documented("misprints")])


def documented(name: str) -> str:
    """Return what was found out about the paper's misprints; the tests compute it again."""
    return resources.files("trueup.paper").joinpath(f"{name}.txt").read_text("utf-8").rstrip()


def _opening(results: Results) -> str:
    last = int(results.curves.counts[-1])
    setting = paragraph(
        f"""Every number below was computed in this run, but for those on its misprints (the end of
        3, and 7); only what the paper prints and the setting were typed in. The sds are exact
        integrals, not simulations. Setting of Section 5: values in [0, 1] with mean
        {printed.MEAN:g}, ε₁ = ε₂ = {float(printed.EPSILON_COUNT):g}, n at least
        L = {printed.LEAST_COUNT}, extension of degree k = {printed.DEGREE}; figures for
        n = 1 to {last}."""
    )
    return f"The paper, recomputed (trueup {__version__})\n\n{setting}"


# -- Section 5 ----------------------------------------------------------------------------------


def numbers(results: Results) -> list[tuple[str, str, str, str]]:
    """Return (quantity, paper, exact k = 10, UMVUE) for every number of Section 5's text."""
    found = results.curves
    k, best = found.facts(K), found.facts(BEST)
    at, far = printed.SETTLED_FROM, results.far[printed.MEAN]
    by_key = dict(zip((c.key for c in found.contenders), far, strict=True))
    limit = (digits(by_key["m_ss"] / by_key[K]), digits(by_key["m_ss"] / by_key[BEST]))
    ratios = (digits(found.ratio_at(K, at)), digits(found.ratio_at(BEST, at)))
    settled = str(curves.settled_from(found))
    return [
        ("M_U has the smaller sd from n =", str(printed.AHEAD_FROM), *_two(k, best, 0)),
        ("both sds above 1 up to n =", str(printed.BOTH_ABOVE_ONE_UP_TO), *_two(k, best, 1)),
        ("largest sd(M_SS)/sd(M_U)", f"near {printed.PEAK_RATIO}", *_two(k, best, 2)),
        ("  reached at n =", "–", *_two(k, best, 3)),
        (f"sd(M_SS)/sd(M_U) at n = {at}", f"about {printed.SETTLED_RATIO:g}", *ratios),
        ("  and settles there from n =", str(at), settled, settled),
        (f"  at n = {curves.FAR:,}", "–", *limit),
    ]


def _two(k: curves.Facts, best: curves.Facts, i: int) -> tuple[str, str]:
    first, second = (str(f[i]) if isinstance(f[i], int) else digits(f[i]) for f in (k, best))
    return first, second


def _numbers(results: Results) -> str:
    head = ["", "paper", f"exact optimum, k = {printed.DEGREE}", "UMVUE (k → ∞)"]
    note = paragraph(
        """The numbers for large n agree. Those for small n do not: M_U is better than the paper
        says, already at its own degree, and the constant extension (the UMVUE) is better still.
        Part 3 says why. The ratio settles where the smooth bound of M_SS becomes 1/n."""
    )
    heading = title("1. The numbers of Section 5")
    return f"{heading}\n{table(head, [list(r) for r in numbers(results)])}\n\n{note}"


def _sds(results: Results) -> str:
    found = results.curves
    head = ["n", *(c.name for c in found.contenders)]
    rows = [[str(n), *map(digits, sds)] for n, sds in results.shown.items()]
    rows += [[f"n·sd, m = {m:g}", *map(digits, sds)] for m, sds in results.far.items()]
    total = float(printed.EPSILON_COUNT + printed.EPSILON_MEAN)
    note = paragraph(
        f"""All spend ε = {total:g}. Two mechanisms are not in the paper: "centred" sums deviations
        from ½, which halves the sensitivity; "two totals" publishes Σc and Σ(1 − c) with one
        budget for both, and with L = {printed.LEAST_COUNT} is ahead of "centred" from
        n = {curves.overtakes(found, "two_totals", "centred")} on. The last two rows are at
        n = {curves.FAR:,}; a dash: below its L."""
    )
    heading = title(f"2. Standard deviation of the mean, m = {printed.MEAN:g}")
    return f"{heading}\n{table(head, rows)}\n\n{note}"


# -- why they differ ----------------------------------------------------------------------------


def _why(results: Results) -> str:
    low, high = excess.interval(results.bounds)
    exact = results.by_degree[printed.DEGREE]
    beaten = [k for k, x in results.by_degree.items() if x < low]
    opening = paragraph(
        f"""On x > L unbiasedness leaves no choice of g; below L only the mean of g is fixed
        (here {excess.left_mean():g}). The variance of g around it under the density
        e^((x−L)/b)/b, its excess, adds ½·e^((L−n)/b)·excess to Var g(n). The best g is constant
        there and has none. Each published fact bounds the excess of the paper's g:"""
    )
    facts = table(
        ["fact", "excess"],
        [[b.fact, f"{'≥' if b.at_least else '≤'} {digits(b.excess)}"] for b in results.bounds],
    )
    degrees = table(
        ["degree k", *map(str, results.by_degree)],
        [["excess of the exact optimum", *map(digits, results.by_degree.values())]],
    )
    closing = paragraph(
        f"""Together: {low:.0f} to {high:.0f}, where the exact optimum of degree {printed.DEGREE}
        has {digits(exact)}. That is more than even the exact optimum of degree {min(beaten)}
        leaves: what the paper's optimisation returned was not an optimum."""
    )
    heading = title("3. Why the small-n numbers differ")
    return "\n".join(
        [heading, opening, "", facts, "", closing, "", degrees, "", documented("newton_step")]
    )


# -- the Remark and the Example -----------------------------------------------------------------


def _remark(results: Results) -> str:
    bias = results.bias
    rows = [[f"{q:g}", *(f"{x:.10f}" for x in values)] for q, *values in bias.rows]
    head = ["q", "paper: b·e^(−|q|/b)", "plugin_bias", "quadrature"]
    note = f"Largest difference of the first two at {bias.points} points: {bias.gap:.1g}."
    heading = title(f"4. Remark: the bias of |x| for |q|, b = {bias.scale}")
    return f"{heading}\n{table(head, rows)}\n\n{note}"


def _powers(results: Results) -> str:
    agree = all(p.agrees for p in results.powers)
    rows = [[f"q^{p.k}", p.formula, "identical" if p.agrees else "DIFFERS"] for p in results.powers]
    powers = table(["f", "estimator at b = 2", "paper's x^k − b²k(k−1)x^(k−2)"], rows, left=3)
    others = table(
        ["f", "estimator at b = 2", "paper: α = 1 − b²c²", "ours: g/f"],
        [[m.f.replace("*", "·"), m.formula, m.paper, m.ours] for m in results.multiples],
        left=2,
    )
    verdict = "all identical, symbol by symbol" if agree else "NOT all identical"
    note = paragraph(
        f"""Powers 0 to {len(results.powers) - 1}, each at b = 1/3, 1 and 2 (the formula is linear
        in b²): {verdict}. Functions with f″ = c²f are reproduced up to a factor α, and lines
        exactly; nothing else is its own unbiased estimator (x² for one is off: its estimator adds
        {results.curved})."""
    )
    return f"{title('5. Example: power functions and f ∝ g')}\n{powers}\n\n{others}\n\n{note}"


# -- per-record sums ----------------------------------------------------------------------------


def _per_record(results: Results) -> str:
    people = results.population
    opening = paragraph(
        f"""{RECORDS:,} lognormal records (log-mean {LOG_MEAN:g}, log-sd {LOG_SD:g}, seed {SEED}):
        total {people.total:,.0f}, median {people.median:.1f}, 95th percentile {people.high:.1f},
        largest {people.largest:,.0f}. Matched guarantees: the record at the 95th percentile loses
        ε = {EPSILON:g} under Laplace noise and ρ = ε²/2 = {matched(EPSILON, "gaussian"):g} (zCDP)
        under Gaussian noise, which pure ε-DP implies; then σ = b and every record is matched."""
    )
    head = ["transform", "noise", "scale", "sd", "sd/total", "median", "95 %", "largest", "low"]
    rows = [_record_row(r) for r in results.per_record]
    body = table(head, rows, left=2)
    laplace = [r for r in results.per_record if r.noise == "laplace"]
    gauss = [r for r in results.per_record if r.noise == "gaussian"]
    factor = [a.sd / b.sd for a, b in zip(laplace, gauss, strict=True)]
    note = paragraph(
        f"""Losses: ε (Laplace) or ρ (Gaussian) of the median, 95th-percentile and largest record;
        "low" is the share of records losing at most ε = {LOW_LOSS:g} (ρ =
        {matched(LOW_LOSS, "gaussian"):g}). Higher roots protect the largest records and cost
        accuracy; pure ε-DP costs {min(factor):.2f} to {max(factor):.2f} times the sd of the weaker
        zCDP. {_dominated(laplace)} The logarithm needs b < ½ for a finite variance, hence a large
        offset (4 times the 95th percentile here), which makes it nearly linear."""
    )
    heading = title("6. Per-record sums of a skewed population (Section 6, Algorithm 3)")
    return f"{heading}\n{opening}\n\n{body}\n\n{note}"


def _record_row(r: Row) -> list[str]:
    losses = (r.median_loss, r.high_loss, r.largest_loss)
    return [
        "plain sum" if r.transform == "root:1" else r.transform.replace(":", " "),
        "Laplace" if r.noise == "laplace" else "Gaussian",
        digits(r.scale),
        digits(r.sd),
        f"{r.relative_sd:.2%}",
        *(digits(x, 3) for x in losses),
        f"{r.share_low:.1%}",
    ]


def _dominated(rows: list[Row]) -> str:
    """Say which transform is beaten in both the sd and the largest loss."""
    beaten = [
        f"{r.transform.replace(':', ' ')} by {o.transform.replace(':', ' ')}"
        for r in rows
        for o in rows
        if o.sd < r.sd and o.largest_loss < r.largest_loss
    ]
    return f"Beaten in sd and in the largest loss: {', '.join(beaten)}." if beaten else ""


# -- plain text ---------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Lay out rows under a head; the first ``left`` columns are flush left, the others right.

    Examples
    --------
    >>> print(table(["n", "sd"], [["1", "6.00"], ["20", "0.28"]]))
      n     sd
      1   6.00
      20  0.28
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return ("  " + "  ".join(padded)).rstrip()

    return "\n".join(map(line, [head, *rows]))


def paragraph(text: str) -> str:
    """Wrap a paragraph to the width of the page, not at an equals sign."""
    tied = " ".join(text.split()).replace(" = ", "\u00a0=\u00a0")
    return "\n".join(wrap(tied, WIDTH, break_long_words=False)).replace("\u00a0", " ")


def title(text: str) -> str:
    """Underline a title."""
    return f"{text}\n{'-' * len(text)}"


def digits(value: float, figures: int = 4) -> str:
    """Write a number with so many significant figures, a dash if there is none.

    Examples
    --------
    >>> digits(10.5525), digits(0.0520), digits(633739.99), digits(math.nan)
    ('10.55', '0.05200', '633,740', '–')
    """
    if math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    decimals = max(0, figures - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"
