"""One estimator of every kind, with rows: ordinary values, bounds and their neighbours, nulls."""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import Any

import numpy as np

import trueup as tu

Column = list[float | None]


@dataclasses.dataclass(frozen=True)
class Kind:
    """An estimator, and the table it is computed on: columns of floats, None for null."""

    name: str
    est: tu.Estimator
    table: dict[str, Column]
    scales: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(next(iter(self.table.values())))

    def grid(self, what: str) -> Any:
        """The formulas of "value" or "variance", in the columns of ``inputs``."""
        if self.scales:
            return self.est._scaled(tuple(self.scales)).grid(what)
        return self.est._value if what == "value" else self.est._variance

    @property
    def inputs(self) -> list[Column]:
        return [self.table[n] for n in (*self.est.statistics, *self.scales.values())]


def around(*points: float) -> Column:
    """Every point with its neighbours."""
    return [f(p) for p in points for f in (below, float, above)]


def below(x: float) -> float:
    return math.nextafter(x, -math.inf)


def above(x: float) -> float:
    return math.nextafter(x, math.inf)


REAL = [
    -1e-9,
    0.0,
    1e-9,
    *around(1.0, 50.0),
    -7.25,
    -0.5,
    0.3,
    1.5,
    2.0,
    3.7,
    12.25,
    49.0,
    51.5,
    180.0,
    2000.5,
]
WHOLE: Column = [-40.0, -3.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 7.0, 12.0, 50.0, 199.0, 1000.0, 1e6]


def one(
    name: str, f: Any, noise: Any, domain: Any = None, values: Column = REAL, **more: Any
) -> Kind:
    est = tu.unbiased(f, noise, domain, **more)
    return Kind(name, est, {est.statistics[0]: [*values, None]})


def several(name: str, f: str, noise: Any, domain: Any = None, columns: Any = None) -> Kind:
    """All pairs of the first values, then random ones; every column has a null."""
    est = tu.unbiased(f, noise, domain)
    return Kind(name, est, crossed(est, columns or {}))


def crossed(est: tu.Estimator, columns: dict[str, Column], n: int = 40) -> dict[str, Column]:
    rng = np.random.default_rng(1)
    table: dict[str, Column] = {}
    for i, name in enumerate(columns):
        values = columns[name]
        drawn: Column = [values[k] for k in rng.integers(0, len(values), n)]
        drawn[i] = None
        table[name] = drawn
    return table


def with_scales(name: str, f: str, noise: Any, domain: Any, columns: dict[str, Column]) -> Kind:
    """Scales per row: the column ``n_scale`` belongs to n."""
    est = tu.unbiased(f, noise, domain)
    scales = {n: f"{n}_scale" for n in est.statistics if f"{n}_scale" in columns}
    return Kind(name, est, crossed(est, columns), scales)


@lru_cache(maxsize=1)
def kinds() -> tuple[Kind, ...]:
    """Every kind of estimator there is."""
    laplace, discrete = tu.Laplace(2), tu.DiscreteLaplace(2)
    table = {k: abs(k - 60) ** 0.5 + (3 if k > 150 else 0) for k in range(201)}
    both = {"s": laplace, "n": discrete}
    scales: Column = [0.05, 0.5, 1.0, 2.0, 7.5, 300.0]
    return (
        one("Laplace on the line", "q**3 - 2*q", tu.Laplace(1.5)),
        one("Laplace above a bound", "1/q", laplace, (1, None)),
        one("Laplace below a bound", "1/(60 - q)", laplace, (None, 50)),
        one("Laplace between bounds", "log(q)", tu.Laplace(0.7), (1, 50)),
        one("logistic", "1/(1 + exp(-q))", tu.Laplace(0.3)),
        one("roots and powers", "sqrt(q) + q**(1/3) + atan(q) + tanh(q)", laplace, (1, 50)),
        one("degree 4", "1/q", laplace, (1, None), extension=4),
        one("degree 10", "log(q)", laplace, (1, 50), extension=10),
        one("discrete Laplace by formula", "1/n", discrete, (1, None), WHOLE),
        one("discrete Laplace with kinks", "max(n, 3) + where(n > 7, n**2, sqrt(n))", discrete,
            (1, 199), WHOLE),
        one("discrete Laplace by table", table, discrete, None, WHOLE),
        one("exponential polynomial", "q**2*exp(-q/50)", tu.Gaussian(2)),
        one("wave under integer noise", "n*cos(n/2)", tu.DiscreteGaussian(1.5), None, WHOLE),
        one("polynomial under moments", "q**4 - q", tu.StudentT(13, 2)),
        one("rounded noise", "q**2", tu.RoundedLaplace(1.5), None, WHOLE),
        one("sum of noises", "1/q", laplace + tu.Laplace(1), (1, None)),
        several("quotient", "s/n", both, {"n": (1, None)}, {"s": REAL, "n": WHOLE}),
        several("share", "(a - b)/(a + b)", {"a": laplace, "b": tu.Laplace(1)},
                {"a": (1, None), "b": (1, None)}, {"a": REAL, "b": REAL}),
        several("sum of cells", "1/(a + b)", {"a": discrete, "b": tu.DiscreteLaplace(1)},
                {"a": (1, None), "b": (0, None)}, {"a": WHOLE, "b": WHOLE}),
        several("two terms", "exp(-x/9) + y**2/z",
                {"x": tu.Gaussian(1), "y": laplace, "z": discrete}, {"z": (1, 199)},
                {"x": REAL, "y": REAL, "z": WHOLE}),
        with_scales("Laplace, scales per row", "log(q)", laplace, (1, 50),
                    {"q": REAL, "q_scale": scales}),
        with_scales("Gaussian, scales per row", "q**3", tu.Gaussian(1), None,
                    {"q": REAL, "q_scale": scales}),
        with_scales("quotient, scales per row", "s/n", both, {"n": (1, None)},
                    {"s": REAL, "n": WHOLE, "s_scale": scales, "n_scale": scales}),
    )  # fmt: skip
