"""A nearly unbiased estimator as mathematics and in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import sympy

from trueup.errors import TrueupError
from trueup.formula.text import text
from trueup.inverse.display import INTERVALS, piecewise, table
from trueup.near.answer import Answer
from trueup.near.polynomial import Polynomial
from trueup.near.series import Series

if TYPE_CHECKING:
    from trueup.near.component import Factor, Term
    from trueup.near.estimator import NearlyUnbiased
    from trueup.near.question import Question


def formula(answer: Answer | Polynomial) -> sympy.Expr:
    """Return the estimator as one expression, tables and splines by name."""
    if isinstance(answer, Polynomial):
        return piecewise(answer.inverse, "value")
    return sympy.Add(*(_cases(term) for term in answer.terms))


def _cases(term: Term) -> sympy.Expr:
    regions = sorted(term.regions(), key=lambda r: -sum(b != 0 for b in r))
    cases = []
    for region in regions:
        tests = []
        for cell, branch in zip(term.cells, region, strict=True):
            side = cell.operator.branches[branch].side
            low, high = cell.operator.starts
            tests += [cell.symbol <= low] if side == "below" else []
            tests += [cell.symbol >= high] if side == "above" else []
        cases.append((term.named(region), sympy.And(*tests)))
    return cases[0][0] if len(cases) == 1 else sympy.Piecewise(*cases)


def explain(estimator: NearlyUnbiased) -> str:
    """Return the report behind :meth:`NearlyUnbiased.explain`."""
    answer = estimator._answer
    rows = [
        ("published", f"{s.symbol.name} + {s.noise!r}, true value in {s.domain}")
        for s in estimator._statistics
    ]
    rows.append(("bias", _bias(estimator)))
    if isinstance(answer, Polynomial):
        rows += _polynomial(answer)
    else:
        for factor in answer.factors:
            rows += _factor(factor)
        if not answer.factors:
            rows.append(("theorem", "unbiased: no function of one statistic in it can be traded"))
    rows += _spread(estimator)
    otherwise = "normal approximation, estimate ± (z·stderr + largest bias)"
    rows.append(("interval", INTERVALS.get(estimator.interval_method, otherwise)))
    title = f"Nearly unbiased estimator of {text(estimator.estimand)}"
    return "\n".join([title, *table(rows)])


def _bias(estimator: NearlyUnbiased) -> str:
    bound, asked, whole = estimator.bias_bound, estimator.max_bias, f"|{estimator.measure}|"
    if estimator.cells is not None:
        size = f"{100 * bound:.4g} % of {whole}" if estimator.relative else f"{bound:.4g}"
        why = f"chosen for averages of {estimator.cells:g} cells"
        return f"at most {size} ({why}), certified on the whole domain"
    if estimator.relative:
        wanted = "" if asked is None else f" (asked: {100 * asked:.4g} %)"
        return f"at most {100 * bound:.4g} % of {whole}{wanted}, certified on the whole domain"
    wanted = "" if asked is None else f" (asked: {asked:.4g})"
    return f"at most {bound:.4g}{wanted}, certified on the whole domain"


def _polynomial(answer: Polynomial) -> list[tuple[str, str]]:
    theorem = f"T[p] is unbiased for a polynomial p (degree {answer.degree}): its bias is p − f"
    return [
        ("theorem", theorem),
        ("weighing", f"averaged over a {answer.question.prior.name} prior"),
    ]


def _factor(factor: Factor) -> list[tuple[str, str]]:
    question, curve = factor.solution.question, factor.solution.curve
    name = question.symbol.name
    if factor.solution.spread is not None and factor.solution.certificate.bound == 0:
        return [("theorem", f"unbiased for {text(question.f)}: no bias that is allowed helps")]
    rows = [("theorem", _theorem(question))]
    kind = "values" if question.noise.lattice and curve.knots.size else "a cubic spline"
    if isinstance(curve.series, Series):
        where = []
        if math.isfinite(curve.low):
            where.append(f"{kind} of its own for {name} ≤ {curve.low:.6g}")
        if math.isfinite(curve.high):
            where.append(f"{kind} of its own for {name} ≥ {curve.high:.6g}")
        where.append(f"the series (1/M)(D) f to order {curve.series.order} elsewhere")
        rows.append(("estimate", ", ".join(where)))
    elif curve.series is None:
        rows.append(("estimate", f"{kind} on the whole line, no series"))
    else:
        rows.append(("estimate", "the unbiased estimator, in closed form"))
    rows.append(("certified", _how(factor)))
    return rows


def _theorem(question: Question) -> str:
    """Return what is minimised, and over which prior."""
    over = f"averaged over a {question.prior.name} prior"
    if question.cells is not None:
        return f"least bias² + variance/{question.cells:g} for {text(question.f)}, {over}"
    least = "least variance under bounded bias: a quadratic programme"
    return f"{least} for {text(question.f)}, {over}"


def _how(factor: Factor) -> str:
    question = factor.solution.question
    if question.whole:
        how = "sums at every integer where the bias matters"
    else:
        how = "integrals on a grid, between its points by bounds on the third derivative"
    series = isinstance(factor.solution.curve.series, Series)
    return how + (", beyond by the series' remainder" if series else "")


def _spread(estimator: NearlyUnbiased) -> list[tuple[str, str]]:
    try:
        largest, worst = estimator.max_sd, estimator.worst
    except TrueupError:
        return [("variance", "estimated, nearly unbiased")]
    unit = "·|f|" if estimator.relative else ""
    name = estimator.statistics[0]
    average = f"{estimator.average_sd:.4g}{unit} on average"
    return [("sd", f"{largest:.4g}{unit} at most (at {name} = {worst:.6g}), {average}")]
