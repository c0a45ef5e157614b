"""`unbiased()`: formula, noise and bounds in, the best unbiased estimator out."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.confidence import NORMAL, Intervals
from trueup.domain import Interval
from trueup.errors import BoundWarning, TrueupError
from trueup.formula.text import text
from trueup.inputs import (
    NUMBER,
    at_truth,
    broadcast,
    check_extension,
    read_arguments,
    read_level,
    unhelpful,
    values_of,
    with_convention,
)
from trueup.inverse import display
from trueup.inverse.exact_law import ExactLaw
from trueup.inverse.existence import check_as_written
from trueup.inverse.grids import grid
from trueup.inverse.scaled import Scaled
from trueup.inverse.solve import Inverse, invert_within
from trueup.kernels.grid import Grid, columns, common_dtype
from trueup.noise.base import Noise
from trueup.noise.record import from_record, to_record

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


_UNREADABLE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)


def unbiased(
    f: object,
    noise: Noise | Mapping[str, Noise],
    domain: object = None,
    extension: str | int = "optimal",
    derivatives: Sequence[Callable[..., Any]] | None = None,
    *,
    empty: object = None,
) -> Estimator:
    """Return the unbiased estimator of f(q) from x = q + noise.

    "Unbiased" means over the noise, for every true value in the domain: E g(q + Z) = f(q).

    Parameters
    ----------
    f
        ``"1/q"``, a sympy expression, a numpy polynomial, a table ``{k: value}``, or a Python
        function (under integer noise its values are enough; under Laplace noise give
        ``derivatives=(f1, f2)`` too).
    noise
        The noise, or ``{"s": noise, "n": noise}`` for several independent statistics.
    domain
        What is known of the true value: ``(low, high)`` with None on an unbounded side, an
        ``Integers(low, high)``, or ``{"n": (1, None)}`` for several statistics. Conditions may
        tie them: ``{"a": (0, None), "b": (0, None), "a + b": (1, None)}``, or as text
        ``"0 <= s <= n, n >= 1"``.
    extension
        What to do beyond a bound under Laplace noise: ``"optimal"``, or an integer k ≥ 2 for the
        paper's polynomial extension of degree k.
    derivatives
        First and second derivative of a Python function.
    empty
        What f is, by convention, where its denominator is 0: the estimate is then unbiased for
        empty cells too. For integer noise. It is no bound: without ``n >= 0`` in the domain true
        counts below 0 are taken to be possible, and errors are larger.

    Examples
    --------
    >>> from trueup import Laplace
    >>> est = unbiased("1/q", Laplace(2), domain=(1, None))
    >>> est(4.0), est(0.3)
    (0.125, 3.0)
    >>> round(est.expectation(5.0), 12), abs(est.bias(5.0)) < 1e-15
    (0.2, True)
    """
    return Estimator(f, noise, domain, extension, derivatives, empty)


class Estimator:
    """An unbiased estimator: a number one can compute, with everything known about it.

    Call it with published values: floats give floats, arrays give arrays, NaN gives NaN. Use
    :func:`unbiased` to make one.
    """

    def __init__(
        self,
        f: object,
        noise: Noise | Mapping[str, Noise],
        domain: object = None,
        extension: str | int = "optimal",
        derivatives: Sequence[Callable[..., Any]] | None = None,
        empty: object = None,
    ) -> None:
        self._recipe = (f, noise, domain, extension, derivatives, empty)
        read = read_arguments(f, noise, domain, derivatives)
        self._source, self._statistics, self._tied = read
        if empty is not None:
            self._source = with_convention(*read, empty)
        self._inverse: Inverse = self._invert(extension)
        check_as_written(self._source, {s.symbol: s.domain for s in self._statistics}, self._tied)
        self.extension = extension
        self._value = self._grid("value")
        self._by_scale: dict[tuple[str, ...], Scaled] = {}

    def _invert(self, extension: object) -> Inverse:
        """Return the estimator as a sum of components."""
        checked = check_extension(extension, self._statistics)
        f, empty = self._source.expr, self._recipe[-1] is not None
        reasons = {c: unhelpful(f, c, self._statistics, empty=empty) for c in self._tied}
        helpful = [c for c, reason in reasons.items() if not reason]
        found, left = invert_within(f, self._statistics, checked, helpful)
        unused = {str(c): reason for c, reason in reasons.items() if reason}
        unused |= {", ".join(map(str, error.tied)): error.reason for error in left}
        for condition, reason in unused.items():
            warnings.warn(
                f"the condition {condition} is not used by the estimate: {reason}",
                BoundWarning,
                stacklevel=4,  # unbiased() is called by the user
            )
        return found

    # -- what was asked ----------------------------------------------------------------------------

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of the published statistics."""
        return tuple(s.symbol.name for s in self._statistics)

    @property
    def estimand(self) -> sympy.Expr:
        """The formula f that is estimated."""
        return self._source.expr

    @property
    def noise(self) -> dict[str, Noise]:
        """The noise of each statistic."""
        return {s.symbol.name: s.noise for s in self._statistics}

    @property
    def domain(self) -> dict[str, Interval]:
        """Where the true value of each statistic is known to lie."""
        return {s.symbol.name: s.domain for s in self._statistics}

    @property
    def conditions(self) -> tuple[str, ...]:
        """What else is known of several statistics together.

        Examples
        --------
        >>> from trueup import DiscreteLaplace, unbiased
        >>> noise = {"s": DiscreteLaplace(2), "n": DiscreteLaplace(2)}
        >>> unbiased("s/n", noise, "0 <= s <= n, n >= 1").conditions
        ('s <= n',)
        """
        return tuple(map(str, self._tied))

    # -- from published values ---------------------------------------------------------------------

    def __call__(self, /, *x: ArrayLike, **statistics: ArrayLike) -> Any:
        """Return the estimate at published values.

        Examples
        --------
        >>> from trueup import DiscreteLaplace, Laplace, unbiased
        >>> mean = unbiased("s/n", {"s": Laplace(2), "n": DiscreteLaplace(2)}, {"n": (1, None)})
        >>> round(mean(s=51.7, n=103), 6)
        0.501571
        """
        return self._evaluate(self._value, x, statistics)

    def variance(self, /, *x: ArrayLike, **statistics: ArrayLike) -> Any:
        """Return an unbiased estimate of the estimator's variance.

        It is V̂ = g² − T[f²], where T is the operator that makes g from f. With one statistic
        and the optimal extension it is never negative under Laplace noise; otherwise it can be.

        Examples
        --------
        >>> from trueup import Laplace, unbiased
        >>> unbiased("q**2", Laplace(1)).variance(3.0)
        76.0
        """
        return self._evaluate(self._variance, x, statistics)

    def stderr(self, /, *x: ArrayLike, **statistics: ArrayLike) -> Any:
        """Return the root of the variance, NaN where that is negative."""
        return self._evaluate(self._variance, x, statistics, "stderr")

    def interval(self, /, *x: ArrayLike, level: float = 0.95, **statistics: ArrayLike) -> Any:
        """Return a confidence interval (low, high) for f(q).

        It covers with probability ``level`` or more, for every true value of the domain, except
        where it is a normal approximation; ``interval_method`` says which it is:

        - "exact": one statistic and a monotone f. The noise is inverted, the interval for q is
          intersected with the domain and mapped through f.
        - "ratio": a ratio r of sums of statistics, s/n. s − r·n has the law of its noise whatever n
          is; the ratios that it does not exclude are taken, within what the domain allows. Where
          they are all ratios but some in between (n is hardly known), their hull is given, which
          may reach to the ends of the domain or to ±inf.
        - "projection": other functions. A box around the noise, cut by the domain, is mapped by
          f; conservative for several statistics.
        - "normal approximation", estimate ± z·stderr, where only moments of a noise are known. It
          is too short for small counts.

        Examples
        --------
        >>> from trueup import Laplace, unbiased
        >>> low, high = unbiased("1/q", Laplace(2), domain=(1, None)).interval(8.0)
        >>> round(low, 4), round(high, 4)
        (0.0715, 0.4979)
        >>> mean = unbiased("s/n", {"s": Laplace(2), "n": Laplace(2)}, {"n": (1, None)})
        >>> [round(end, 2) for end in mean.interval(s=51.7, n=20.0)]
        [1.93, 3.77]
        """
        level = read_level(level)
        if self.interval_method != NORMAL:
            values = self._values(x, statistics)
            with np.errstate(invalid="ignore"):  # ∞ is no fraction
                self._value.check_whole([*map(np.asarray, values)], self._value.whole)
            return self._intervals.at(values, level)
        return self._around(self(*x, **statistics), self.stderr(*x, **statistics), level)

    def _around(self, center: Any, error: Any, level: float) -> tuple[Any, Any]:
        """Return the ends of a normal approximation."""
        spread = NormalDist().inv_cdf((1 + level) / 2) * error
        return center - spread, center + spread

    @property
    def interval_method(self) -> str:
        """How ``interval`` works: "exact", "ratio", "projection" or "normal approximation"."""
        return self._intervals.method

    @cached_property
    def _intervals(self) -> Intervals:
        return Intervals(self.estimand, self._statistics, self._tied)

    # -- at a true value ---------------------------------------------------------------------------

    def expectation(self, /, *q: ArrayLike, **statistics: ArrayLike) -> Any:
        """Return E g(q + Z), summed or integrated from the estimator itself.

        It is f(q) inside the domain, up to the last digits, and what a wrong bound gives outside.

        Examples
        --------
        >>> from trueup import Laplace, unbiased
        >>> unbiased("1/q", Laplace(2), domain=(1, None)).expectation([0.5, 1.0, 7.0])
        array([1.44239843, 1.        , 0.14285714])
        """
        return self._at(self._law.expectation, q, statistics)

    def bias(self, /, *q: ArrayLike, **statistics: ArrayLike) -> Any:
        """Return E g(q + Z) − f(q), computed: zero inside the domain, up to the last digits."""
        return self._at(self._law.bias, q, statistics)

    def sd(self, /, *q: ArrayLike, **statistics: ArrayLike) -> Any:
        """Return the root of E (g(q + Z) − E g)², computed; inf where it does not exist.

        It is NaN where it may exist, but moments that it needs are not known (``Moments``, scipy).

        Examples
        --------
        >>> from trueup import Laplace, unbiased
        >>> round(unbiased("q", Laplace(2), domain=(0, None)).sd(0.0) ** 2, 9)  # 1.5·b²
        6.0
        """
        return self._at(self._law.sd, q, statistics)

    def efficiency(self, epsilon: Any, prior: Any = None) -> float:
        """Return this estimator's variance over that of the best unbiased ε-DP release of f.

        The best one is found by linear programming over all ε-DP mechanisms on the integers of a
        bounded domain; both variances are averaged over the prior (None weighs all values alike).
        1 means that nothing better exists.

        Examples
        --------
        >>> from trueup import DiscreteLaplace, unbiased
        >>> est = unbiased("abs(n - 2)", DiscreteLaplace(2), domain=(0, 4))
        >>> round(est.efficiency(epsilon=0.5), 3)
        3.102
        """
        from trueup.limit.optimal import OptimalRelease

        if len(self._statistics) != 1:
            raise TrueupError(
                f"efficiency is for one statistic, this estimator has {len(self._statistics)}",
                "compare the statistics one by one",
            )
        (statistic,) = self._statistics
        best = OptimalRelease(self._recipe[0], statistic.domain, epsilon, prior)
        return best.ratio(lambda q: float(self.sd(float(q))) ** 2)

    @cached_property
    def _law(self) -> ExactLaw:
        return ExactLaw(self._inverse, self._statistics)

    def _at(self, function: Callable[..., float], q: Any, named: Mapping[str, Any]) -> Any:
        return at_truth(function, self._statistics, q, self._used(named))

    # -- the formula -------------------------------------------------------------------------------

    @cached_property
    def formula(self) -> sympy.Expr:
        """The estimator as a sympy expression in the published values.

        Examples
        --------
        >>> from trueup import Laplace, unbiased
        >>> unbiased("1/q", Laplace(2), domain=(1, None)).formula
        Piecewise((3, q <= 1), (1/q - 8/q**3, True))
        """
        return display.piecewise(self._inverse, "value")

    @cached_property
    def variance_formula(self) -> sympy.Expr:
        """The unbiased variance as a sympy expression in the published values."""
        self._inverse.check_variance()
        return display.piecewise(self._inverse, "variance")

    def explain(self) -> str:
        """Return what is estimated, the theorem used, and the formulas, in words.

        Examples
        --------
        >>> from trueup import Laplace, unbiased
        >>> print(unbiased("q**2", Laplace(3)).explain())
        Unbiased estimator of q**2
          published:  q + Laplace(3), true value in (-∞, ∞)
          theorem:    Laplace noise (paper, Section 3): g = f − b²·f″, the only unbiased one
          estimate:   q**2 - 18
          variance:   72*q**2 + 324, unbiased
          interval:   a box around the noise is mapped through f; conservative
        """
        return display.explain(self)

    def plot(self, /, x: ArrayLike | None = None, **options: Any) -> Any:
        """Draw the estimator with its standard error beside the plug-in; return the axes.

        The options are those of :func:`trueup.plots.estimate`; :mod:`trueup.plots` has more
        pictures.

        Examples
        --------
        >>> from trueup import Laplace, unbiased
        >>> axes = unbiased("1/q", Laplace(2), domain=(1, None)).plot()
        >>> axes.get_title(loc="left")
        'Unbiased estimator of 1/q'
        """
        from trueup.plots.estimate import estimate

        return estimate(self, x, **options)

    def sql(
        self,
        dialect: str = "duckdb",
        output: str = "value",
        columns: Mapping[str, Any] | None = None,
        scales: Mapping[str, Any] | None = None,
        *,
        level: float = 0.95,
        pretty: bool = False,
        comment: bool = True,
    ) -> str:
        """Return the estimator as an SQL expression, to stand in a SELECT.

        The result is a finite double or NULL: NULL where an input is NULL, NaN or beyond the limits
        in the first condition (±1e100 for most estimators), where an integer statistic is not
        whole, and for ``stderr`` where the variance is negative. No input stops a query; see
        :mod:`trueup.sql` for the rules.

        Parameters
        ----------
        dialect
            ``duckdb``, ``sqlite``, ``postgres``, ``spark``, ``bigquery``, ``snowflake``, ``trino``,
            ``clickhouse``, ``mysql``, ``redshift`` or ``tsql``.
        output
            ``value``, ``variance``, ``stderr``, or ``low`` and ``high``, the ends of
            :meth:`interval`; they are refused where they have no formula.
        columns
            For each statistic its column, by default its own name: a name, which will be quoted, or
            a tuple of names such as ``("t", "n")``.
        scales
            For statistics whose noise differs from row to row the column that holds its scale.
        level
            How often the interval covers.
        pretty
            Whether to write it on several lines.
        comment
            Whether the first line says what is computed: formula, noise, bounds and version.

        Examples
        --------
        >>> from trueup import Laplace, unbiased
        >>> print(unbiased("1/q", Laplace(2), domain=(1, None)).sql(pretty=True))
        /* estimate: unbiased estimator of 1/q (q: Laplace(2) on [1, ∞)) (trueup ...) */
        CASE
          WHEN ISFINITE("q") AND ABS(CAST("q" AS DOUBLE)) <= 1e100
          THEN CASE WHEN "q" <= 1e0 THEN 3e0 ELSE (
            1e0 - 8e0 / "q" / "q"
          ) / "q" END
        END
        """
        from trueup.sql import statement

        tree = statement.statement(self, dialect, output, columns, scales, level)
        written = statement.text(tree, dialect, pretty=pretty)
        first = statement.comment(self, output, scales, level)
        return f"{first}\n{written}" if comment else written

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {sympy.latex(self.formula)}$"

    def __repr__(self) -> str:
        given = ", ".join(f"{s.symbol.name}: {s.noise!r} on {s.domain}" for s in self._statistics)
        kind = "" if self.extension == "optimal" else f", extension={self.extension}"
        known = "".join(f", {condition}" for condition in self.conditions)
        return f"<unbiased estimator of {text(self.estimand)} ({given}{known}{kind})>"

    # -- writing down and reading back -------------------------------------------------------------

    def to_json(self) -> str:
        """Return the estimator as JSON that :meth:`from_json` reads back.

        Examples
        --------
        >>> from trueup import Laplace, unbiased
        >>> Estimator.from_json(unbiased("1/q", Laplace(2), (1, None)).to_json())(4.0)
        0.125
        """
        if self._source.record is None:
            raise TrueupError(
                "an estimator made from a Python function or from noisy values has no JSON form",
                "write it as a formula, or as a table {k: value}",
            )
        record = {
            "trueup": 1,
            "formula": self._source.record,
            "noise": {s.symbol.name: to_record(s.noise) for s in self._statistics},
            "domain": {s.symbol.name: s.domain.to_record() for s in self._statistics},
            "extension": self.extension,
        }
        if self._tied:
            record["domain"] |= {c.key: [str(c.low), None] for c in self._tied}
        return json.dumps(record)

    @classmethod
    def from_json(cls, data: str) -> Estimator:
        """Return the estimator written by :meth:`to_json`; nothing in it is executed."""
        try:
            record = json.loads(data)
            formula = record["formula"]
            if isinstance(formula, dict):
                low, values = formula["table"]
                formula = {low + i: v for i, v in enumerate(values)}
            noise = {name: from_record(n) for name, n in record["noise"].items()}
            domain = {name: Interval.from_record(b) for name, b in record["domain"].items()}
            return cls(formula, noise, domain, record["extension"])
        except TrueupError:
            raise
        except _UNREADABLE as error:
            raise TrueupError(
                f"not an estimator in JSON: {error!r}", "give what to_json() wrote"
            ) from None

    def __reduce__(self) -> tuple[type[Estimator], tuple[Any, ...]]:
        return (Estimator, self._recipe)

    # -- evaluation --------------------------------------------------------------------------------

    @cached_property
    def _variance(self) -> Grid:
        self._inverse.check_variance()
        return self._grid("variance")

    def _grid(self, what: str) -> Grid:
        return grid(self._inverse.components, self._statistics, what)

    def _scaled(self, names: tuple[str, ...]) -> Scaled:
        """Return the estimator with the noise scales of these statistics as further inputs."""
        if names not in self._by_scale:
            self._by_scale[names] = Scaled(self._inverse, self._statistics, names, self.extension)
        return self._by_scale[names]

    def _values(self, x: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        return values_of(self.statistics, x, self._used(named))

    def _used(self, named: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values that the formula needs: a statistic that cancels may be passed too."""
        noise = self._recipe[1]
        spare = set(noise) - set(self.statistics) if isinstance(noise, Mapping) else set()
        return {name: value for name, value in named.items() if name not in spare}

    def _evaluate(
        self, grid: Grid, x: Sequence[Any], named: Mapping[str, Any], output: str = ""
    ) -> Any:
        if len(x) == 1 and type(x[0]) is float and len(grid.inputs) == 1 and not named:
            return _root(grid.number(x[0])) if output else grid.number(x[0])
        values = self._values(x, named)
        if all(isinstance(v, (int, float)) for v in values):
            number = float(grid.number(*map(float, values)))
            return _root(number) if output else number
        arrays = [np.asarray(v) for v in values]
        broadcast(grid.inputs, arrays)
        dtype = common_dtype([v for v in values if not isinstance(v, NUMBER)])  # double if none
        result = columns(grid, grid, arrays, (output or "value",), dtype)[0]
        if all(isinstance(v, NUMBER) for v in values):
            return float(result)
        return result

    def _columns(self, values: Sequence[Any], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Return "value", "variance" and "stderr" as asked, in one pass over arrays."""
        variance = self._variance if {*outputs} - {"value"} else None
        return columns(self._value, variance, [np.asarray(v) for v in values], outputs)


def _root(variance: float) -> float:
    return math.sqrt(variance) if variance >= 0 else math.nan
