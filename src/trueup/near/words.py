"""What a nearly unbiased estimator is, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trueup.errors import TrueupError
from trueup.formula.text import text
from trueup.inverse.display import INTERVALS, table

if TYPE_CHECKING:
    from trueup.near.answer import Near
    from trueup.near.estimator import NearlyUnbiased
    from trueup.near.products import Answer


def explain(estimator: NearlyUnbiased, answer: Answer) -> str:
    """Return the report behind :meth:`NearlyUnbiased.explain`."""
    rows = [
        ("published", f"{s.symbol.name} + {s.noise!r}, true value in {s.domain}")
        for s in answer.statistics
    ]
    rows.append(("bias", _bias(estimator)))
    if answer.untraded:
        rows.append(("theorem", "unbiased: no function of one statistic in it can be traded"))
    elif answer.exact is not None:
        rows.append(("theorem", f"unbiased for {text(answer.f)}: no bias that is allowed helps"))
    for factor in answer.factors:
        rows += _factor(factor)
    rows.append(("variance", _variance(estimator, answer)))
    if answer.profile is not None:
        (largest, worst), average = answer.profile.largest, answer.profile.average
        unit, name = "·|f|" if estimator.relative else "", estimator.statistics[0]
        at = f"{largest:.4g}{unit} at most (at {name} = {worst:.6g})"
        rows.append(("sd", f"{at}, {average:.4g}{unit} on average"))
    otherwise = "normal approximation, estimate ± (z·stderr + largest bias)"
    rows.append(("interval", INTERVALS.get(estimator.interval_method, otherwise)))
    return "\n".join([f"Nearly unbiased estimator of {text(answer.f)}", *table(rows)])


def _bias(estimator: NearlyUnbiased) -> str:
    bound, asked, cells = estimator.bias_bound, estimator.max_bias, estimator.cells
    percent, unit = (100, f" % of |{estimator.measure}|") if estimator.relative else (1, "")
    if cells is not None:
        why = f" (chosen for averages of {cells:g} cells)"
    else:
        why = f" (asked: {percent * (asked or 0):.4g}{' %' if unit else ''})"
    return f"at most {percent * bound:.4g}{unit}{why}, certified on the whole domain"


def _factor(factor: Near) -> list[tuple[str, str]]:
    question, (low, high) = factor.solution.question, factor.solution.plan.mesh.joins
    name, f = question.symbol.name, text(question.f)
    error = "variance" if question.cells is None else f"bias² + variance/{question.cells:g}"
    how = " under bounded bias: a quadratic programme" if question.cells is None else ""
    kind = f"relative to ({f})²" if question.relative else "absolute"
    theorem = f"least {error}{how} for {f}, {kind}, averaged over a {question.prior.name} prior"
    ends = [f"{name} ≤ {high:.6g}"] if math.isfinite(high) else []
    ends += [f"{name} ≥ {low:.6g}"] if math.isfinite(low) else []
    where = f"for {' and '.join(ends)}, {f} itself beyond" if ends else "everywhere"
    sums = "sums at integers" if question.whole else "integrals on a grid, checked by a finer rule"
    return [
        ("theorem", theorem),
        ("estimate", f"a cubic spline {where}"),
        ("certified", f"{sums}, between and beyond by bounds on derivatives"),
    ]


def _variance(estimator: NearlyUnbiased, answer: Answer) -> str:
    if answer.exact is not None:
        return "estimated without bias"
    try:
        off = estimator.variance_bias
    except TrueupError:
        return "not estimated: use sd(q) at plausible true values"
    return f"estimated, by {100 * off:.2g} % too large or too small at most on average"
