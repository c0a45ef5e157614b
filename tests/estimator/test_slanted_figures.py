"""Printed figures of a part and a whole, s ≤ n under two noises, by plain matrices and integrals.

What the library does beyond the bound, and what it could do instead: all are unbiased, and each
column of the table is computed here from the values of f beyond the bound alone.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.sparse

import trueup as tu

TAIL = 36  # scales: beyond, e⁻³⁶ of the probability is left


def printed(text: str) -> object:
    """Return a printed number, right to one unit of its last digit."""
    return pytest.approx(float(text), abs=1.01 * 10.0 ** -len(text.partition(".")[2]))


def inverse(alpha: float, size: int) -> Any:
    """Return T for a statistic with a lower bound, as a matrix on the values from there on."""
    lam, kappa = alpha / (1 - alpha) ** 2, alpha / (1 - alpha)
    t = (1 + 2 * lam) * np.eye(size, size + 1) - lam * np.eye(size, size + 1, 1)
    t -= lam * np.eye(size, size + 1, -1)
    t[0, :2] = 1 + kappa, -kappa
    return t


def masses(alpha: float, size: int, truth: int) -> Any:
    """Return the law of a noisy value, clamped at the lower bound, which is at 0 here."""
    y = np.arange(size)
    p = (1 - alpha) / (1 + alpha) * alpha ** np.abs(y - truth)
    p[0] = alpha**truth / (1 + alpha)
    return p


def sds(f: Any, alphas: tuple[float, float], n: int, parts: Any, whole: int) -> list[float]:
    """Return the sd of T[f] at each part of n; f is a table of s from 0 and n from 1 on."""
    g = f
    for alpha in alphas:  # each along the first axis, which then is the last
        g = (inverse(alpha, len(g) - 1) @ g).T
    p = masses(alphas[1], g.shape[1], n - 1)
    found = []
    for s in parts:
        q, true = masses(alphas[0], g.shape[0], s), s / whole
        assert q @ g @ p == pytest.approx(true, abs=1e-10)
        found.append(math.sqrt(q @ (g - true) ** 2 @ p))
    return found


# -- values beyond the bound -----------------------------------------------------------------------


def points(reach: int, other: int) -> tuple[Any, Any]:
    return np.arange(reach + 1.0)[:, None], np.arange(1.0, other + 2)[None, :]


def bent(s: Any, n: Any, theta: float, e: Any = None, most: int = 1) -> Any:
    """Return 1 + e_k/(U·n + θ·e_k) at k = s − U·n > 0; e_k = k without a list."""
    k = np.maximum(s - most * n, 0)
    if e is not None:
        k = np.concatenate([[0.0], e, np.full(k.size, e[-1])])[k.astype(int)]
    return np.where(s > most * n, 1 + k / (most * n + theta * k), s / (most * n))


@functools.cache
def steps(epsilon: float, fading: float = 0.9) -> Any:
    """Return e_k: least squares over d ≥ 0, with weights 0.9ᵈ, of d under the noise of n − s."""
    alpha = math.exp(-epsilon)
    count, far = math.ceil(40 / epsilon), math.ceil(40 / -math.log(fading))
    t = np.arange(-count - 2, 3)
    z = np.arange(-count - far - 9, count + far + 10)
    noise = (1 - alpha) / (1 + alpha) * alpha ** np.abs(z)
    law, d = np.convolve(noise, noise, "same"), np.arange(far)
    weight = np.sqrt([fading**d @ law[len(z) // 2 + k - d] for k in t])
    lam = alpha / (1 - alpha) ** 2
    stencil = np.convolve([-lam, 1 + 2 * lam, -lam], [-lam, 1 + 2 * lam, -lam])
    matrix, given = np.zeros((len(t), count)), np.zeros(len(t))
    for i, y in enumerate(t):
        for there, w in zip(range(y - 2, y + 3), stencil, strict=True):
            if there < 0:
                matrix[i, min(-there, count) - 1] -= w
            else:
                given[i] += w * there
    # the value of d at −k is −e_k, and 1 + e_k/n is s/n with n − s = −e_k
    return -np.linalg.lstsq(matrix * weight[:, None], given * weight, rcond=None)[0]


def far_rule(s: Any, n: Any, alpha: float) -> Any:
    """Return the values for which W is additive beyond the diagonal, from below and above."""
    reach, size = s.size, s.size + n.size
    c, f = (1 - alpha) ** 2, lambda s, n: s / n

    def w(s: Any, n: Any) -> Any:
        rise = f(s, n + 1) - alpha * f(s - 1, n + 1)
        return (f(s, n) - alpha * f(s - 1, n) - alpha * rise) / c

    x = np.arange(1.0, size + 1)
    climbed = np.concatenate([[0.0], np.cumsum(w(x, x) - w(x - 1, x))])
    table = np.zeros((reach, size + 1))
    for a in range(reach):
        for b in range(size - 1, 0, -1):
            if a <= b:
                table[a, b] = a / b
            else:
                known = alpha * (table[a - 1, b] + table[a, b + 1] - alpha * table[a - 1, b + 1])
                table[a, b] = c * (w(b, b) + climbed[a] - climbed[b]) + known
    return table[:, 1 : n.size + 1]


def least_squares(s: Any, n: Any, alpha: float, free: int) -> Any:
    """Return the values that are best on average, each n with weight 1/n and all s alike."""
    f = bent(s, n, min(1.0, -math.log(alpha)))
    size = s.size
    prior = np.where(s <= n, 1 / (n * (n + 1)), 0.0)
    p = np.array([masses(alpha, size - 1, q) for q in range(size)])
    t, weight = inverse(alpha, size - 1), (p.T @ prior @ p).ravel()
    cells = [(a, b) for a in range(free + 1) for b in range(free) if a > b + 1]
    rows, columns = np.array(cells).T
    f[rows, columns] = 0.0
    both = scipy.sparse.kron(*[scipy.sparse.csc_matrix(t)] * 2, format="csc")
    basis = both[:, rows * size + columns]
    weighted = scipy.sparse.diags_array(weight) @ basis
    normal = (basis.T @ weighted).tocsc()
    right = -(weighted.T @ (t @ f @ t.T).ravel())
    f[rows, columns] = scipy.sparse.linalg.spsolve(normal, right)
    return f


# -- the table -------------------------------------------------------------------------------------

COLUMNS = ("box", "k", "e_k", "least squares", "far")
TABLE = {  # epsilon of both, n: sd at s = 0, ½n, n by each column
    (0.5, 2): "2.70/3.11/3.71 2.57/2.93/2.75 2.61/2.98/2.75 2.38/2.65/2.65 2.36/2.62/2.79",
    (0.5, 10): ".424/.916/1.612 .415/.425/.413 .421/.427/.393 .393/.476/.464 .388/.540/.603",
    (0.5, 40): ".058/.079/.101 .058/.079/.097 .058/.079/.091 .058/.079/.091 .058/.079/.099",
    (1, 2): ".749/.998/1.328 .717/.932/.838 .727/.951/.807 .712/.922/.827 .704/.904/.971",
    (1, 10): ".110/.166/.232 .110/.158/.179 .110/.158/.161 .110/.158/.162 .110/.159/.193",
    (2, 5): ".091/.136/.195 .091/.134/.155 .091/.134/.123 .091/.134/.123",
    (0.25, 10): "4.45/6.84/10.6 4.39/3.49/2.26 4.43/3.50/2.25 3.78/3.93/3.73 3.76/4.23/4.40",
}


@functools.cache
def column(name: str, epsilon: float, n: int) -> list[float]:
    alpha, theta = math.exp(-epsilon), min(1.0, epsilon)
    reach = max(n, math.ceil(10 / epsilon)) + math.ceil(TAIL / epsilon)
    s, m = points(reach, reach)
    f = {
        "box": lambda: s / m,
        "k": lambda: bent(s, m, theta),
        "e_k": lambda: bent(s, m, theta, steps(epsilon)),
        "least squares": lambda: least_squares(s, m, alpha, max(n + 10, math.ceil(12 / epsilon))),
        "far": lambda: far_rule(s, m, alpha),
    }[name]()
    return sds(f, (alpha, alpha), n, (0, n // 2, n), n)


@pytest.mark.parametrize("name", COLUMNS)
def test_each_column_of_the_table(name):
    for (epsilon, n), row in TABLE.items():
        columns = dict(zip(COLUMNS, row.split(), strict=False))
        if name in columns:
            assert column(name, epsilon, n) == [printed(x) for x in columns[name].split("/")]


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_an_estimator_that_knows_no_slanted_bound(case):
    epsilon, n = case
    noise = {name: tu.DiscreteLaplace(1 / epsilon) for name in "sn"}
    est = tu.unbiased("s/n", noise, "s >= 0, n >= 1")
    found = [est.sd(s=s, n=n) for s in (0, n // 2, n)]
    assert found == pytest.approx(column("box", epsilon, n), rel=1e-9)


STEPS = {1: ".7355 1.2119 1.5067 1.6893 1.8058", 0.5: ".9422 1.7849 2.5106 3.1197"}


@pytest.mark.parametrize("epsilon", STEPS)
def test_the_best_values_of_a_difference_below_0(epsilon):
    listed = STEPS[epsilon].split()
    assert list(steps(epsilon)[: len(listed)]) == [printed(x) for x in listed]


DIAGONAL = {0.25: (".913", ".910"), 0.5: (".872", ".866"), 1: (".775", ".768")}


@pytest.mark.parametrize("epsilon", DIAGONAL)
def test_how_much_of_the_variance_is_left_on_the_diagonal(epsilon):
    """c = E g²/(4λ) at d = 0 with e_k, and with what is best there alone (hardly any fading)."""
    alpha = math.exp(-epsilon)
    lam = alpha / (1 - alpha) ** 2
    stencil = np.convolve([-lam, 1 + 2 * lam, -lam], [-lam, 1 + 2 * lam, -lam])
    for fading, c in zip((0.9, 1e-12), DIAGONAL[epsilon], strict=True):
        e = steps(epsilon, fading)
        size = len(e)
        values = np.concatenate([-e[::-1], np.arange(0.0, size + 1)])
        g = np.convolve(values, stencil, "valid")
        z = np.arange(-size, size + 1)
        noise = (1 - alpha) / (1 + alpha) * alpha ** np.abs(z)
        law = np.convolve(noise, noise, "same")[2:-2]
        assert law @ g == pytest.approx(0, abs=1e-6)
        assert law @ g**2 / (4 * lam) == printed(c)


def test_a_part_of_up_to_five_times_the_whole():
    """s ≤ 5n, noises of scale 10 and 2, n = 10, all in units of the largest mean."""
    alphas, parts = (math.exp(-0.1), math.exp(-0.5)), (0, 25, 50)
    s, n = points(50 + 10 * TAIL, 10 + 2 * TAIL)
    theta = min(1.0, math.sqrt(5 * 0.1 * 0.5))
    assert theta == pytest.approx(0.5, rel=1e-12)
    box = sds(s / (5 * n), alphas, 10, parts, 50)
    far = sds(bent(s, n, theta, most=5), alphas, 10, parts, 50)
    assert box == [printed(x) for x in (".444", ".920", "1.614")]
    assert far == [printed(x) for x in (".483", ".460", ".424")]
    noise = {"s": tu.DiscreteLaplace(10), "n": tu.DiscreteLaplace(2)}
    est = tu.unbiased("s/n", noise, "s >= 0, n >= 1")
    assert [est.sd(s=q, n=10) / 5 for q in parts] == pytest.approx(box, rel=1e-9)
    own = tu.unbiased("s/n", noise, "0 <= s <= 5*n, n >= 1")
    assert [own.sd(s=q, n=10) / 5 for q in parts] == pytest.approx(far, rel=1e-6)


@pytest.mark.parametrize(("of_s", "of_n"), [(60, 6), (6, 60), (3, 2)])
def test_beyond_the_bound_the_estimator_reads_the_distance_itself(of_s, of_n):
    noise = {"s": tu.DiscreteLaplace(of_s), "n": tu.DiscreteLaplace(of_n)}
    est = tu.unbiased("s/n", noise, "0 <= s <= n, n >= 1")
    for s, n in ((50, 20), (300, 2), (31, 29)):
        near = np.arange(-1.0, 2.0)
        f = bent(s + near[:, None], n + near[None, :], math.sqrt(1 / (of_s * of_n)))
        for b in (of_s, of_n):  # each along the first axis, which then is the last
            lam = 1 / (4 * math.sinh(0.5 / b) ** 2)
            f = np.array([-lam, 1 + 2 * lam, -lam]) @ f
        assert est(s=s, n=n) == pytest.approx(float(f), rel=1e-9)


# -- a difference under continuous noise -----------------------------------------------------------


def test_the_least_variance_of_a_difference_that_is_0():
    """n − s ≥ 0, scales 1: beyond the bound (β₀ + β₁t)/(1 + t), by two equations in I = e·E₁(1).

    p·g solves (1 − D²)²(p·g) = 0 there, p ∝ (1 + t)e⁻ᵗ the density at 0; E g = d for every d ≥ 0
    says that g + t is orthogonal to e⁻ᵗ and t·e⁻ᵗ.
    """
    integral = mpmath.quad(lambda t: mpmath.exp(-t) / (1 + t), [0, 1, 4, 16, mpmath.inf])
    assert float(integral) == pytest.approx(0.5963474, abs=6e-8)
    apart = 1 / (2 * integral - 1)  # β₀ − β₁
    slope = -1 - integral * apart
    assert float(slope + apart) == pytest.approx(1.094778, abs=6e-7)
    assert float(slope) == pytest.approx(-4.094778, abs=6e-7)

    def g(t: Any) -> Any:
        return slope + apart / (1 + t)

    for d in (0, 1, 3):
        excess = mpmath.quad(
            lambda t, d=d: (g(t) + t) * (1 + t + d) * mpmath.exp(-t), [0, 1, 4, 16, mpmath.inf]
        )
        assert float(excess) == pytest.approx(0, abs=1e-10)
    beyond = mpmath.quad(lambda t: g(t) ** 2 * (1 + t) * mpmath.exp(-t) / 4, [0, 4, 16, mpmath.inf])
    assert float(2 + beyond) == pytest.approx(3.773694, abs=6e-7)
    assert float(2 + beyond) / 4 == pytest.approx(0.9434, abs=6e-5)  # c of little privacy loss
    noise = {name: tu.Laplace(2) for name in "sn"}
    with pytest.warns(tu.BoundWarning, match="of a polynomial"):
        est = tu.unbiased("n - s", noise, "s <= n")
    assert est.sd(s=3, n=3) ** 2 == pytest.approx(4 * 2**2, rel=1e-12)  # the far rule: n − s itself
