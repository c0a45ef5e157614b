"""One estimator of every kind, with rows: ordinary values, bounds and their neighbours, nulls."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import trueup as tu

Column = list[float | None]


@dataclasses.dataclass(frozen=True)
class Kind:
    """An estimator, and the table it is computed on: columns of floats, None for null."""

    est: tu.Estimator
    table: dict[str, Column]
    scales: dict[str, str] = dataclasses.field(default_factory=dict)
    name: str = ""

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
NEAR = [x for x in REAL if abs(x) < 100]
"""Values within the limits of formulas of exponentials."""
WHOLE: Column = [-40.0, -3.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 7.0, 12.0, 50.0, 199.0, 1000.0, 1e6]


def one(f: Any, noise: Any, domain: Any = None, values: Column = REAL, **more: Any) -> Kind:
    est = tu.unbiased(f, noise, domain, **more)
    return Kind(est, {est.statistics[0]: [*values, None]})


def several(f: str, noise: Any, domain: Any = None, columns: Any = None) -> Kind:
    """All pairs of the first values, then random ones; every column has a null."""
    est = tu.unbiased(f, noise, domain)
    return Kind(est, crossed(est, columns or {}))


def crossed(est: tu.Estimator, columns: dict[str, Column], n: int = 40) -> dict[str, Column]:
    rng = np.random.default_rng(1)
    table: dict[str, Column] = {}
    for i, name in enumerate(columns):
        values = columns[name]
        drawn: Column = [values[k] for k in rng.integers(0, len(values), n)]
        drawn[i] = None
        table[name] = drawn
    return table


def with_scales(f: str, noise: Any, domain: Any, columns: dict[str, Column]) -> Kind:
    """Scales per row: the column ``n_scale`` belongs to n."""
    est = tu.unbiased(f, noise, domain)
    scales = {n: f"{n}_scale" for n in est.statistics if f"{n}_scale" in columns}
    return Kind(est, crossed(est, columns), scales)


LAPLACE, DISCRETE = tu.Laplace(2), tu.DiscreteLaplace(2)
TABLE = {k: abs(k - 60) ** 0.5 + (3 if k > 150 else 0) for k in range(201)}
BOTH = {"s": LAPLACE, "n": DISCRETE}
SCALES: Column = [0.05, 0.5, 1.0, 2.0, 7.5, 300.0]

KINDS: dict[str, Callable[[], Kind]] = {
    "Laplace on the line": lambda: one("q**3 - 2*q", tu.Laplace(1.5)),
    "Laplace above a bound": lambda: one("1/q", LAPLACE, (1, None)),
    "Laplace below a bound": lambda: one("1/(60 - q)", LAPLACE, (None, 50)),
    "Laplace between bounds": lambda: one("log(q)", tu.Laplace(0.7), (1, 50)),
    "logistic": lambda: one("1/(1 + exp(-q))", tu.Laplace(0.3), None, NEAR),
    "roots and powers": lambda: one("sqrt(q) + q**(1/3) + atan(q) + tanh(q)", LAPLACE, (1, 50)),
    "discrete Laplace by formula": lambda: one("1/n", DISCRETE, (1, None), WHOLE),
    "discrete Laplace with kinks": lambda: one("max(n, 3) + where(n > 7, n**2, sqrt(n))", DISCRETE,
        (1, 199), WHOLE),
    "discrete Laplace by table": lambda: one(TABLE, DISCRETE, None, WHOLE),
    "exponential polynomial": lambda: one("q**2*exp(-q/50)", tu.Gaussian(2)),
    "wave under integer noise": lambda: one("n*cos(n/2)", tu.DiscreteGaussian(1.5), None, WHOLE),
    "polynomial under moments": lambda: one("q**4 - q", tu.StudentT(13, 2)),
    "rounded noise": lambda: one("q**2", tu.RoundedLaplace(1.5), None, WHOLE),
    "sum of noises": lambda: one("1/q", LAPLACE + tu.Laplace(1), (1, None)),
    "quotient": lambda: several("s/n", BOTH, {"n": (1, None)}, {"s": REAL, "n": WHOLE}),
    "share": lambda: several("(a - b)/(a + b)", {"a": LAPLACE, "b": tu.Laplace(1)},
            {"a": (1, None), "b": (1, None)}, {"a": REAL, "b": REAL}),
    "sum of cells": lambda: several("1/(a + b)", {"a": DISCRETE, "b": tu.DiscreteLaplace(1)},
            {"a": (1, None), "b": (0, None)}, {"a": WHOLE, "b": WHOLE}),
    "two terms": lambda: several("exp(-x/9) + y**2/z",
            {"x": tu.Gaussian(1), "y": LAPLACE, "z": DISCRETE}, {"z": (1, 199)},
            {"x": REAL, "y": REAL, "z": WHOLE}),
    "Laplace, scales per row": lambda: with_scales("log(q)", LAPLACE, (1, 50),
                {"q": REAL, "q_scale": SCALES}),
    "Gaussian, scales per row": lambda: with_scales("q**3", tu.Gaussian(1), None,
                {"q": REAL, "q_scale": SCALES}),
    "quotient, scales per row": lambda: with_scales("s/n", BOTH, {"n": (1, None)},
                {"s": REAL, "n": WHOLE[:-1], "s_scale": SCALES, "n_scale": SCALES}),
}  # fmt: skip
"""Every kind of estimator there is, made when it is asked for."""


@cache
def kind(name: str) -> Kind:
    """Return the kind of that name, made once."""
    return dataclasses.replace(KINDS[name](), name=name)


def kinds() -> tuple[Kind, ...]:
    """Return them all."""
    return tuple(map(kind, KINDS))
