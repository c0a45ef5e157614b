"""Who answers a question: the programme, products of factors, or a polynomial."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueup.errors import BoundWarning, TrueupError
from trueup.formula.text import text
from trueup.inverse.grids import grid
from trueup.inverse.solve import Inverse
from trueup.near.component import Factor, Term
from trueup.near.construct import construct, never_zero
from trueup.near.law import NearLaw
from trueup.near.plan import for_cells
from trueup.near.polynomial import Polynomial, approximate
from trueup.near.products import compose, question_of
from trueup.near.profile import Profile
from trueup.noise.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    import sympy

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic
    from trueup.kernels.grid import Grid
    from trueup.near.question import Wish


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
