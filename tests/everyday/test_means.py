"""Everyday estimators are unbiased, so are their variances, and ``sd`` is their spread.

Means are those of sums.py. Four statistics would need 10⁸ published values: there the mean over two
of them, with the others published and away from their bounds, must be the function whose mean over
the others is f; it is known for discrete Laplace noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

import trueup as tu
from everyday.cases import CASES, Case
from everyday.known import MISSING, WITHOUT_SD, built, oracle
from everyday.sums import Rule, by_moments, is_polynomial, means, rule, undone

EXACT = 1e-9
"""Largest difference of means, relative to the standard deviation (or its square)."""
ROUNDING = 1e-13
"""What doubles lose, relative to the sizes that are added."""
LARGEST = 4_000_000
"""Published values in one grid."""

IDS = [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_unbiased_with_its_variance_and_sd(case: Case) -> None:
    if case.name in MISSING:
        with pytest.raises(tu.TrueupError):
            case.build()
        return
    est = built(case)
    for q in oracle(case).sums:
        rules = whole_rules(case, q)
        if math.prod(len(r.x) for r in rules.values()) <= LARGEST:
            assert_moments(case, est, q, rules)
        else:
            assert_moments_of_pairs(case, est, q, rules)
    if case.formula in WITHOUT_SD:
        with pytest.raises(tu.TrueupError):
            est.sd(**dict.fromkeys(case.noises, 2.0))
    elif len(case.noises) == 4 and oracle(case).unbounded == ():
        assert_sd_of_four(case, est)


def whole_rules(case: Case, q: Mapping[str, float]) -> dict[str, Rule]:
    """Return rules for all statistics; those without bounds enter as polynomials."""
    known = oracle(case)
    rules = {}
    for name, noise in known.laws.items():
        if name in known.unbounded and len(q) > 1:
            rules[name] = by_moments(case.noises[name], q[name])
        else:
            rules[name] = rule(noise, q[name], known.lows[name], case.integers, known.cut)
    return rules


def assert_moments(
    case: Case, est: tu.Estimator, q: Mapping[str, float], rules: Mapping[str, Rule]
) -> None:
    known = oracle(case)
    f = known.f(q)
    polynomials(case, est, q)

    def rows(**x):
        g, v = est(**x), est.variance(**x)
        return g, (g - f) ** 2, v

    g, square, v = means(rows, rules)
    sd = math.sqrt(square.value)
    slack = EXACT * sd + ROUNDING * g.size
    assert abs(g.value - f) <= slack, ("mean", q, g.value, f, sd)
    assert abs(est.expectation(**q) - f) <= slack
    assert abs(est.bias(**q)) <= slack
    slack = EXACT * square.value + ROUNDING * (g.size * sd + v.size)
    assert abs(v.value - square.value) <= slack, ("variance", q, v.value, square.value)
    assert abs(est.sd(**q) ** 2 - square.value) <= slack, ("sd", q, est.sd(**q), sd)


def polynomials(case: Case, est: tu.Estimator, q: Mapping[str, float]) -> None:
    """Assert what rules by moments rest on."""
    if len(q) == 1:
        return
    for name in oracle(case).unbounded:
        for asked in (est, est.variance):

            def along(values, asked=asked, name=name):
                return asked(**{n: np.full(9, v) for n, v in q.items()} | {name: values})

            assert is_polynomial(along, q[name], 3.0), f"no polynomial in {name}"


def assert_moments_of_pairs(
    case: Case, est: tu.Estimator, q: Mapping[str, float], rules: Mapping[str, Rule]
) -> None:
    """Assert the means over all but two statistics (one of three), whatever the others show."""
    known = oracle(case)
    polynomials(case, est, q)
    bounded = [n for n in case.noises if n not in known.unbounded]
    for kept in itertools.combinations(bounded, 2):
        others = {n: known.scale(n) for n in bounded if n not in kept}
        here = {n: r for n, r in rules.items() if n not in others}
        for x in inner_points(known.lows, others):
            at = {**q, **x}

            def rows(x=x, **columns):
                full = {n: np.full(len(next(iter(columns.values()))), v) for n, v in x.items()}
                g, v = est(**columns, **full), est.variance(**columns, **full)
                return g, g**2 - v, g**2 + np.abs(v)

            mean, square, both = means(rows, here)
            f = undone(known.f_of_arrays, at, others)
            f2 = undone(lambda **c: known.f_of_arrays(**c) ** 2, at, others)
            slack = EXACT * math.sqrt(both.size)
            assert abs(mean.value - f) <= slack, ("mean", kept, at, mean, f)
            assert abs(square.value - f2) <= EXACT * both.size, ("square", kept, at, square, f2)


def inner_points(
    lows: Mapping[str, float | None], names: Mapping[str, float]
) -> Iterator[dict[str, float]]:
    """Yield published values of which the neighbours are in the domain too."""
    for away in (1.0, 4.0):
        yield {n: (lows[n] or 0.0) + away + i for i, n in enumerate(names)}


SEEN = 38
"""Published values above the true one in sums over four counts: beyond it is a mass of 1e-8."""


def assert_sd_of_four(case: Case, est: tu.Estimator) -> None:
    """Assert sd at one true value; values at and below a bound are one where g is the same."""
    known = oracle(case)
    q = dict.fromkeys(case.noises, 2.0)
    rng = np.random.default_rng(1)
    below = {n: rng.integers(-30, 2, 200).astype(float) for n in q}
    at_least = {n: np.maximum(x, 1.0) for n, x in below.items()}
    assert est(**below) == pytest.approx(est(**at_least), rel=1e-12, abs=1e-12)
    rules = {}
    for name in q:
        whole = rule(known.laws[name], 2.0, None)
        low = whole.x <= 1
        keep = ~low & (whole.x <= SEEN)
        weight = np.append(whole.weight[low].sum(), whole.weight[keep])
        rules[name] = Rule(np.append(1.0, whole.x[keep]), weight)
    f = known.f(q)
    mean, square = means(lambda **x: (g := est(**x), (g - f) ** 2), rules)
    assert mean.value == pytest.approx(f, abs=1e-5 * math.sqrt(square.value))
    assert est.sd(**q) == pytest.approx(math.sqrt(square.value), rel=1e-4)
