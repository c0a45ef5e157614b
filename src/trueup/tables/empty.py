"""How many cells of a table are empty, estimated without bias, and bounds that say none is.

"The denominator is 0" is a function on the integers, so its sum over the rows has an unbiased
estimator Σg, and an unbiased variance Σ(g² − g): the square of an indicator is itself. What a
logarithm is taken of counts as a denominator here.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.domain import Integers
from trueup.errors import TrueupError
from trueup.estimator import unbiased
from trueup.formula.substitution import denominators
from trueup.formula.text import text
from trueup.inputs import excludes
from trueup.noise.laplace import DiscreteLaplace
from trueup.tables.bounds import drawn_anew
from trueup.tables.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from trueup.estimator import Estimator

    Floats = NDArray[np.float64]

_SURE = 3.09
"""Standard errors from which empty cells are told: chance takes one table of a thousand there.

Under noise of scale 5 two thousand empty cells of twenty thousand are about three of them: to be
surer would leave such a table without a word.
"""


@dataclasses.dataclass(frozen=True)
class Empty:
    """Cells in which a denominator is 0: its indicator, as asked of the table.

    ``denied`` says that the stated bounds exclude it; ``estimators`` are those that divide by it.
    """

    denominator: str
    indicator: Request
    denied: bool
    estimators: tuple[Estimator, ...] = ()

    def words(self, total: float, squares: float, rows: int) -> str:
        """Return the estimate, given Σg and Σg²."""
        error = math.sqrt(max(squares - total, 0.0))
        about = f"about {total:,.0f} ± {error:,.0f}"
        if total < 0.5:  # fewer than none are none
            about = "none seen" + (f" (± {error:,.0f})" if error >= 0.5 else "")
        return f"{self.denominator} = 0: {about} of {rows:,} cells"

    def doubt(
        self,
        total: float,
        squares: float,
        rows: int,
        some: Floats,
        inputs: Sequence[Floats],
        part: str = "",
    ) -> str | None:
        """Return what to warn of, None if there may well be no empty cell.

        ``some`` are the g of some rows in their order, ``inputs`` the columns that the indicator
        reads there: rows that repeat a draw are added up before they are squared. ``part`` says
        that the sums are of some rows, too.

        Examples
        --------
        >>> from trueup import DiscreteLaplace, Laplace, unbiased
        >>> mean = unbiased("s/n", {"s": Laplace(2), "n": DiscreteLaplace(2)}, "n >= 1")
        >>> request = Request("mean", mean, {"s": "s", "n": "emp"}, {}, ("value",))
        >>> (empty,) = empties_of([request])
        >>> g = np.resize([2.5, 0, 0, -1.5], 1000)
        >>> print(empty.doubt(200.0, 900.0, 1000, g, [np.arange(1000.0)]))
        about 200 ± 26 of 1,000 cells are empty, but the stated bounds say that n is never 0
        Hint: where s, n are all 0 the estimate averages 0, and may stay so; otherwise say what ...
        >>> empty.doubt(2.0, 9.0, 10, g[:10], [np.arange(10.0)])
        """
        sums = np.add.reduceat(some, self._draws(inputs)) if len(some) else some
        if not self.denied or sums.sum() <= _SURE * math.sqrt(float(sums @ sums)):
            return None
        error = math.sqrt(max(squares - total, 0.0))
        return (
            f"about {total:,.0f} ± {error:,.0f} of {rows:,} cells{part} are empty, but the stated "
            f"bounds say that {self.denominator} is never 0\n"
            f"Hint: {self._hint}"
        )

    @property
    def _hint(self) -> str:
        """What to do: nothing, if all that is published is 0 there, and so is what is estimated."""
        how = "empty=value"
        if all(
            self.denominator not in map(text, denominators(e.estimand)) for e in self.estimators
        ):
            how = f"where({self.denominator} == 0, value, ...)"
        say = f"say what the estimate is in empty cells, {how}, with bounds that reach 0"
        for estimator in self.estimators:
            zero = estimator.expectation(**dict.fromkeys(estimator.statistics, 0))
            if len(estimator.statistics) == 1 or not abs(zero) < NOTHING:
                return f"{say}: beyond a wrong bound estimates are biased"
        names = ", ".join(self.estimators[0].statistics)
        return f"where {names} are all 0 the estimate averages 0, and may stay so; otherwise {say}"

    def _draws(self, inputs: Sequence[Floats]) -> NDArray[np.intp]:
        """Return the rows at which any of the counts is drawn anew."""
        asked, read = self.indicator, dict(zip(self.indicator.inputs, inputs, strict=True))
        new = []
        for name, column in asked.columns.items():
            x, scale = read[column], read.get(asked.scales.get(name))
            new.append(drawn_anew(x, np.arange(len(x)), asked.estimator.noise[name], scale))
        return np.unique(np.concatenate(new))


NOTHING = 1e-9  # a mean of 0, up to rounding


def empties_of(requests: Iterable[Request]) -> list[Empty]:
    """Return the denominators of all estimates that integer noise lets us look at, each once."""
    found: dict[object, Empty] = {}
    for request in requests:
        for d in _never_zero(request.estimator.estimand):
            names = sorted(s.name for s in d.free_symbols)
            key = (d, *((request.columns[n], request.scales.get(n)) for n in names))
            if key in found:
                every = (*found[key].estimators, request.estimator)
                found[key] = dataclasses.replace(found[key], estimators=every)
            indicator = None if key in found else _indicator(request.estimator, d)
            if indicator is not None:
                own = dataclasses.replace(
                    request,
                    name=f"empty {len(found)}",
                    estimator=indicator,
                    columns={n: request.columns[n] for n in indicator.statistics},
                    scales={n: c for n, c in request.scales.items() if n in indicator.statistics},
                    outputs=("value",),
                )
                box, tied = request.estimator.domain, request.estimator._tied
                found[key] = Empty(text(d), own, excludes(d, box, tied), (request.estimator,))
    return list(found.values())


def _never_zero(f: sympy.Expr) -> list[sympy.Expr]:
    """Return what f divides by, and what it takes logarithms of."""
    logarithms = (sympy.fraction(e.args[0])[0] for e in f.atoms(sympy.log))
    return list(dict.fromkeys([*denominators(f), *logarithms]))


def _indicator(estimator: Estimator, d: sympy.Expr) -> Estimator | None:
    """Return the estimator of "d is 0", for counts that may be 0; None where there is none."""
    noise = {s.name: estimator.noise[s.name] for s in d.free_symbols}
    if not all(isinstance(law, DiscreteLaplace) for law in noise.values()):
        return None
    box = {}
    for name in noise:
        low, high = estimator.domain[name].bounds
        box[name] = Integers(low if low is None else min(low, 0), high)
    try:
        return unbiased(sympy.Piecewise((1, sympy.Eq(d, 0)), (0, True)), noise, box)
    except TrueupError:  # too many statistics, say
        return None
