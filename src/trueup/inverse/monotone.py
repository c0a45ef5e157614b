"""Whether f is monotone on the domain: proven by interval arithmetic, or by all its values."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.formula.opaque import Opaque
from trueup.formula.unkinked import without_kinks
from trueup.inverse.definite import definite
from trueup.inverse.jets import derivative
from trueup.inverse.regularity import singularities
from trueup.kernels.evaluate import evaluate

if TYPE_CHECKING:
    from trueup.inverse.solve import Statistic

_MOST = 1_000_000


@lru_cache(maxsize=256)
def direction(f: sympy.Expr, statistic: Statistic) -> int:
    """Return 1 if f is proven to increase on the domain, −1 to decrease, 0 if neither.

    Examples
    --------
    >>> import sympy
    >>> from trueup.domain import Interval
    >>> from trueup.inverse.solve import Statistic
    >>> from trueup.noise.laplace import Laplace
    >>> q = sympy.Symbol("q", real=True)
    >>> direction(1 / q, Statistic(q, Laplace(2), Interval(1, None)))
    -1
    """
    symbol, domain = statistic.symbol, statistic.domain
    low, high = domain.bounds
    whole = statistic.noise.lattice or domain.lattice
    if whole and low is not None and high is not None and high - low <= _MOST:
        values = evaluate(f, {symbol: np.arange(float(low), float(high) + 1)})
        if not np.isfinite(values).all():
            return 0
        steps = np.diff(values)
        return 1 if (steps >= 0).all() else -1 if (steps <= 0).all() else 0
    if f.has(Opaque) or symbol not in f.free_symbols:
        return 0
    if any(found.kind not in ("mild", "kink") for found in singularities(f, symbol, domain)):
        return 0  # a jump may go either way
    slope = derivative(without_kinks(f), symbol, 1)
    found = definite(slope, {symbol: domain}, strict=False)
    if not found and slope.is_rational_function(symbol):
        found = definite(sympy.factor(sympy.together(slope)), {symbol: domain}, strict=False)
    return found
