"""Who answers a question: the programme, products of factors, or a polynomial.

The answer's formula is here too, and its explanation in words.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy

from trueup.errors import BoundWarning, TrueupError
from trueup.formula.text import text
from trueup.inverse.display import INTERVALS, piecewise, table
from trueup.inverse.grids import grid
from trueup.inverse.solve import Inverse
from trueup.near.component import Factor, NearLaw, Term
from trueup.near.construct import construct, never_zero
from trueup.near.plan import for_cells
from trueup.near.polynomial import Polynomial, approximate
from trueup.near.products import compose, question_of
from trueup.near.series import Series
from trueup.near.spread import Profile
from trueup.noise.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic
    from trueup.kernels.grid import Grid
    from trueup.near.estimator import NearlyUnbiased
    from trueup.near.question import Question, Wish


@dataclasses.dataclass(frozen=True)
class Answer:
    """An estimator as a sum of terms, with its certificate."""

    f: sympy.Expr
    statistics: tuple[Statistic, ...]
    terms: tuple[Term, ...]
    bound: float
    relative: bool
    relative_to: sympy.Expr
    untraded: str = ""
    """Why nothing is traded, where it should be."""

    @property
    def inverse(self) -> Inverse:
        """The terms, in the shape of an exact inverse."""
        return Inverse(self.f, self.terms, (), None)  # type: ignore[arg-type]

    @cached_property
    def law(self) -> Any:
        """What the noise makes of the estimator at a given truth."""
        return NearLaw(self.f, self.terms, self.statistics)

    @property
    def profile(self) -> Profile:
        """Standard deviations over the domain of one statistic."""
        if len(self.statistics) == 1 and len(self.terms) == 1:
            return Profile(self.terms[0].factors[0].solution)
        names = ", ".join(s.symbol.name for s in self.statistics)
        raise TrueupError(
            f"the largest standard deviation is for one statistic, here are several ({names})",
            "ask sd(...) at true values",
        )

    @property
    def factors(self) -> list[Factor]:
        """All nearly unbiased factors."""
        return [factor for term in self.terms for factor in term.factors]

    @property
    def variance_bias(self) -> float:
        """The largest relative bias of the variance estimates of the factors."""
        return max((factor.spread.bias for factor in self.factors), default=0.0)

    def variance_grid(self, statistics: Sequence[Statistic]) -> Grid:
        """Return the estimate of the variance, ready for numbers and arrays."""
        seen: set[sympy.Symbol] = set()
        for term in self.terms:
            if seen & {*term.statistics}:
                raise TrueupError(
                    f"the variance of {text(self.f)} cannot be estimated: its terms share "
                    "statistics",
                    "use sd(...) at plausible true values",
                )
            seen |= {*term.statistics}
        wide = [dataclasses.replace(term, wide=True) for term in self.terms]
        return grid(wide, statistics, "variance")  # type: ignore[arg-type]


def answer(
    f: sympy.Expr,
    statistics: tuple[Statistic, ...],
    wish: Wish,
    tied: Sequence[Condition] = (),
) -> Answer | Polynomial:
    """Return the estimator of least variance under bounded bias, or the best for many cells."""
    if len(statistics) > 1:
        return _of_several(f, statistics, wish, tied)
    (statistic,) = statistics
    question = dataclasses.replace(
        question_of(statistic, f, wish.prior),
        max_bias=wish.max_bias or 1.0,
        relative=bool(wish.relative),
    )
    moments = isinstance(statistic.noise, Moments)
    if wish.cells is not None:
        relative = never_zero(question) if wish.relative is None else wish.relative
        question = dataclasses.replace(question, relative=relative, cells=wish.cells)
        question = question if moments else for_cells(question, wish.cells)
    if moments or (wish.max_bias is None and wish.cells is None):
        return approximate(question, bounded=wish.max_bias is not None)
    solution = construct(question)
    term = Term(f, None, (Factor(solution),))
    return Answer(f, statistics, (term,), solution.certificate.bound, question.relative, f)


def _of_several(
    f: sympy.Expr, statistics: tuple[Statistic, ...], wish: Wish, tied: Sequence[Condition]
) -> Answer:
    """Return the answer for several statistics: sums of products."""
    if wish.max_bias is None and wish.cells is None:
        raise _no_bias()
    usual = wish.cells is not None and wish.relative is None
    composed = None
    if usual:
        with contextlib.suppress(TrueupError):
            composed = compose(f, statistics, dataclasses.replace(wish, relative=True), tied)
    relative = composed is not None or bool(wish.relative)
    if composed is None:
        composed = compose(f, statistics, dataclasses.replace(wish, relative=relative), tied)
    if wish.max_bias is not None:
        _check(composed.bound, wish.max_bias)
    if composed.untraded:
        warnings.warn(
            f"no bias of {text(f)} can be traded, this is its unbiased estimator: "
            f"{composed.untraded}",
            BoundWarning,
            stacklevel=7,  # nearly_unbiased() is called by the user
        )
    elif unused := [c for c in tied if not any(_uses(t, c) for t in composed.terms)]:
        warnings.warn(
            f"{unused[0]} is not used where a bias is allowed\nHint: compare the unbiased "
            "estimator, which uses it and may have the smaller error",
            BoundWarning,
            stacklevel=7,
        )
    given = composed.terms, composed.bound, relative, composed.relative_to, composed.untraded
    return Answer(f, statistics, *given)


def _uses(term: Term, condition: Condition) -> bool:
    """Whether the unbiased part of a term was made with a condition."""
    rest = term.rest
    return rest is not None and bool(rest.conditions) and condition.names <= {*rest.statistics}


def _check(bound: float, max_bias: float) -> None:
    if not bound <= max_bias:
        raise TrueupError(
            f"the bias of the product is bounded by {bound:.3g} only, {max_bias:g} was asked",
            "allow a little more bias",
        )


def _no_bias() -> TrueupError:
    return TrueupError(
        "max_bias is missing",
        "say how much bias is allowed, e.g. max_bias=0.01, relative=True, or of how many cells the "
        "average should be most accurate, e.g. cells=400",
    )


# -- as mathematics and in words -------------------------------------------------------------------


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
