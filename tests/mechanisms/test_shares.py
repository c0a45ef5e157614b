"""Shares of a histogram: E, Var and E V̂ by quadrature over a cell's noise and the total's.

The noise of the total is W, that of one cell Z. Given W the density of Z is, on each of the three
pieces cut at 0 and W, a polynomial times an exponential, so Gauss rules are exact there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oracle
import trueup as tu
from trueup.errors import TrueupError
from trueup.mechanisms import Shares, shares
from work import at_most

LAGUERRE = np.polynomial.laguerre.laggauss(8)
LEGENDRE = np.polynomial.legendre.leggauss(8)

# densities of sums of m Laplace(1) noises: p(|x|)·e^{−|x|}, coefficients of p from low to high
SUMS = {
    1: np.array([1 / 2]),
    2: np.array([1, 1]) / 4,
    3: np.array([3, 3, 1]) / 16,
    4: np.array([15, 15, 6, 1]) / 96,
}


def polynomial(m: int, x: Any) -> Any:
    return np.polynomial.polynomial.polyval(x, SUMS[m])


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_densities_are_convolutions(m):
    """Each density is the previous one convolved with Laplace(1), on the three pieces by hand."""
    for x in (0.0, 0.3, 2.0, 11.0):
        axis = oracle.Axis(oracle.laplace(1), 0.0, (x,), feature=2.0)
        one_less = lambda z, x=x: polynomial(m - 1, abs(x - z)) * np.exp(-abs(x - z))  # noqa: E731
        density = polynomial(m, x) * math.exp(-x)
        assert oracle.expect(one_less, axis) == pytest.approx(density, rel=1e-12)


class CellLaw:
    """Expectations of functions of one noisy count and the noisy total, k cells."""

    def __init__(self, mechanism: Shares, n: float, share: float) -> None:
        self.mechanism, self.k = mechanism, len(mechanism.categories)
        self.b, self.n, self.cell = 1 / float(mechanism.epsilon), n, n * share
        bound = float(mechanism.count_at_least)
        law = oracle.Law(
            lambda w: np.exp(-np.abs(w) / self.b),
            3 * self.b,
            tuple(self.b * r for r in (50, 90, 180, 360)),
        )
        self.axis = oracle.Axis(law, n, (bound,), feature=2 * bound)

    def expect(self, h: Callable[[Any, Any], Any]) -> float:
        """Return E h(cell + Z, n + W)."""
        (s, p), (t, e), b, rest = LEGENDRE, LAGUERRE, self.b, self.k - 1

        def inner(u: Any) -> Any:
            w = (u - self.n)[:, None]
            size, side = np.abs(w), np.where(w < 0, -1.0, 1.0)
            between = w * (1 + s) / 2
            beyond, before = w + side * b * t / 2, -side * b * t / 2
            z = np.concatenate([between, beyond, before], axis=1)
            weights = np.concatenate(
                [
                    size * p / 2 * polynomial(rest, np.abs(w - between) / b),
                    b * e / 2 * polynomial(rest, np.abs(w - beyond) / b),
                    b * e / 2 * polynomial(rest, np.abs(w - before) / b),
                ],
                axis=1,
            ) / (2 * b**2)
            return (h(self.cell + z, u[:, None]) * weights).sum(axis=1)

        return oracle.expect(inner, self.axis)

    def share(self, x: Any, u: Any) -> Any:
        """Return what a release would report."""
        return 1 / self.k + self.mechanism.contrast.value(x - u / self.k, u)

    def reported(self, x: Any, u: Any) -> Any:
        """Return the square of the reported standard error."""
        return self.mechanism.contrast.variance(x - u / self.k, u, 1 - 1 / self.k)


def names(k: int) -> list[str]:
    return [f"c{i}" for i in range(k)]


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_law_of_a_cell_and_the_total(k):
    law = CellLaw(Shares(0.5, names(k)), 9.0, 0.25)
    assert law.expect(lambda x, u: np.ones_like(x)) == pytest.approx(1, abs=1e-12)
    assert law.expect(lambda x, u: x * np.ones_like(u)) == pytest.approx(2.25, abs=1e-11)
    assert law.expect(lambda x, u: (x - 2.25) ** 2) == pytest.approx(8, rel=1e-12)
    assert law.expect(lambda x, u: (u - 9) ** 2 + 0 * x) == pytest.approx(8 * k, rel=1e-12)
    assert law.expect(lambda x, u: (x - 2.25) * (u - 9)) == pytest.approx(8, rel=1e-12)


CASES = [
    pytest.param({"epsilon": 1, "categories": names(3)}, id="k=3"),
    pytest.param({"epsilon": 0.5, "categories": names(3), "count_at_least": 6}, id="k=3, L=6"),
    pytest.param({"epsilon": 2, "categories": names(2)}, id="k=2"),
    pytest.param({"epsilon": 1, "categories": names(4), "count_at_least": 3}, id="k=4, L=3"),
]


@pytest.mark.parametrize("options", CASES)
def test_shares_are_unbiased_and_know_their_error(options):
    mechanism = Shares(**options)
    first = mechanism.count_at_least
    for n, share in itertools.product((first, first + 2, 12, 50), (0.0, 0.2, 1.0)):
        law = CellLaw(mechanism, n, share)
        assert law.expect(law.share) == pytest.approx(share, abs=1e-9 * size(law, share))
        variance = law.expect(lambda x, u, law=law, p=share: (law.share(x, u) - p) ** 2)
        assert mechanism.sd(n, share) ** 2 == pytest.approx(variance, rel=1e-8)
        assert law.expect(law.reported) == pytest.approx(variance, rel=1e-8)


def size(law: CellLaw, share: float) -> float:
    """Return the sd of the estimate where that is large: the reference has 12 digits of it."""
    return max(1.0, 1e-3 * law.mechanism.sd(law.n, share))


def test_the_inverse_is_unbiased_under_the_sum_of_three():
    mechanism = Shares(1, names(3))
    law = oracle.Law(lambda w: polynomial(3, abs(w)) * np.exp(-abs(w)), 3.0, (50.0, 90.0, 180.0))
    for n in (1, 1.5, 4, 30):
        axis = oracle.Axis(law, n, (1.0,), feature=2.0)
        assert oracle.expect(mechanism.contrast.inverse, axis) == pytest.approx(1 / n, abs=1e-9)


@pytest.mark.parametrize("counts", [(5, 3, 2), (12, 0, 0)], ids=str)
def test_three_cells_in_three_dimensions(counts):
    """The plain triple sum over the three noises: few digits, no theory at all."""
    mechanism = Shares(2, names(3), count_at_least=4)
    t, w = np.polynomial.laguerre.laggauss(24)
    z, w = np.concatenate([-t, t]) / 2, np.concatenate([w, w]) / 2
    x = [c + z.reshape([-1 if i == j else 1 for j in range(3)]) for i, c in enumerate(counts)]
    weights = w[:, None, None] * w[:, None] * w
    u = x[0] + x[1] + x[2]
    n = sum(counts)
    for i, count in enumerate(counts):
        estimate = 1 / 3 + mechanism.contrast.value(x[i] - u / 3, u)
        reported = mechanism.contrast.variance(x[i] - u / 3, u, 2 / 3)
        variance = (weights * (estimate - count / n) ** 2).sum()
        assert (weights * estimate).sum() == pytest.approx(count / n, abs=1e-4)
        assert math.sqrt(variance) == pytest.approx(mechanism.sd(n, count / n), rel=5e-3)
        assert (weights * reported).sum() == pytest.approx(variance, rel=1e-2)


def test_a_wrong_bound():
    mechanism = Shares(1, names(3), count_at_least=8)
    law = CellLaw(mechanism, 4.0, 0.75)
    centre = law.expect(law.share)
    assert abs(centre - 0.75) > 0.01
    variance = law.expect(lambda x, u: (law.share(x, u) - centre) ** 2)
    assert mechanism.sd(4, 0.75) ** 2 == pytest.approx(variance, rel=1e-8)


@pytest.mark.parametrize("n", [3_000, 10**6, 10**8])
def test_large_data_sets(n):
    """n·sd tends to the sd of (xᵢ − u·p), which is √(2b²((1 − p)² + (k − 1)p²))."""
    for share in (0.0, 0.3, 1.0):
        limit = math.sqrt(2 * ((1 - share) ** 2 + 2 * share**2))
        assert n * Shares(1, names(3)).sd(n, share) == pytest.approx(limit, rel=1e-5)


def test_many_cells():
    """By 40-digit quadrature of G² under the sums of 11 and 12 noises: the far tail decides."""
    mechanism = Shares(1, names(10))
    assert mechanism.sd(100, 0.1) == pytest.approx(141.60026751000944, rel=1e-11)
    with at_most(6_000_000):  # 1,900,000; symbolic integrals took minutes
        sd = Shares(1, range(20)).sd(10**8, 0.1)
    assert sd * 10**8 == pytest.approx(math.sqrt(2), rel=1e-8)


def test_many_records_in_many_cells():
    """Powers of the total beyond a double must not overflow."""
    release = Shares(1, range(20)).release_counts([10**8] * 20, rng=1)
    assert list(release.shares.values()) == pytest.approx([0.05] * 20, rel=1e-6)
    assert all(0 < e < 1e-7 for e in release.stderr.values())


def test_shares_too_large_for_an_exact_sum_say_so(monkeypatch):
    """Beyond 2⁵² the last bit of a share exceeds 1: no doubles near them sum to 1."""
    mechanism = Shares(1, names(13))
    add_noise(monkeypatch, *np.linspace(-2, 0.2, 13))
    release = mechanism.release_counts([1] * 13, rng=1)
    largest = max(map(abs, release.shares.values()))
    assert largest > 2**53
    assert sum(release.shares.values()) == pytest.approx(1, abs=1e-14 * largest)
    assert "cannot sum to 1" in repr(release)
    assert release.note is not None
    add_noise(monkeypatch, *[0.0] * 13)
    usual = mechanism.release_counts([100] * 13, rng=1)
    assert usual.note is None
    assert sum(usual.shares.values()) == 1.0


@pytest.mark.parametrize("bad", [[1.5, 2], [1, 2.0000001]], ids=str)
def test_counts_are_whole(bad):
    with pytest.raises(TrueupError, match="whole numbers"):
        Shares(1, names(2)).release_counts(bad, rng=1)


# -- the release -----------------------------------------------------------------------------------


def add_noise(monkeypatch: pytest.MonkeyPatch, *noises: float) -> None:
    """Let publish add these numbers instead of drawing."""

    def publish(values: Any, noise: Any, rng: Any = None) -> Any:
        return np.array(values, float) + noises

    monkeypatch.setattr(shares, "publish", publish)


@pytest.mark.parametrize("z", [(0, 0, 0), (1.5, -2.0, 0.25), (-9.0, 1.0, 2.0)], ids=str)
def test_a_release(monkeypatch, z):
    mechanism = Shares(1, ["a", "b", "c"])
    add_noise(monkeypatch, *z)
    release = mechanism.release(["b", "a", "b", "b"], rng=1)
    x = np.array([1, 3, 0]) + z
    u = x.sum()
    if u > 1:  # (1 − D²)³ 1/u
        inverse = 1 / u - 6 / u**3 + 72 / u**5 - 720 / u**7
    else:
        inverse = float(mechanism.contrast.inverse(u))
    assert list(release.shares) == ["a", "b", "c"]
    np.testing.assert_allclose(release.counts, x)
    assert release.count == pytest.approx(u)
    expected = 1 / 3 + (x - u / 3) * inverse
    np.testing.assert_allclose(list(release.shares.values()), expected, rtol=1e-11, atol=1e-13)
    for i, name in enumerate("abc"):
        variance = float(mechanism.contrast.variance(x[i] - u / 3, u, 2 / 3))
        error = math.sqrt(variance) if variance >= 0 else math.nan
        assert release.stderr[name] == pytest.approx(error, nan_ok=True)
    assert release.noise == tu.Laplace(1)


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 4])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_shares_sum_to_exactly_1(k, epsilon):
    """Always, unless they are so large that 1 is below their last bit."""
    mechanism = Shares(epsilon, names(k))
    rng = np.random.default_rng(5)
    checked = 0
    for counts in ([0] * k, range(k), [1000] + [1] * (k - 1), [10**6] * k):
        for _ in range(60):
            found = list(mechanism.release_counts(list(counts), rng).shares.values())
            assert all(type(s) is float for s in found)
            if max(map(abs, found)) < 1e14:
                checked += 1
                assert sum(found) == sum(reversed(found)) == math.fsum(found) == 1.0
    assert checked > 140


def test_rounding_is_the_only_correction(monkeypatch):
    """The exact sum takes no more than rounding from any share."""
    mechanism = Shares(0.3, names(6))
    rng = np.random.default_rng(2)
    for _ in range(50):
        z = rng.laplace(scale=1 / 0.3, size=6)
        add_noise(monkeypatch, *z)
        release = mechanism.release_counts([3, 1, 4, 1, 5, 9], rng=1)
        x = np.array([3, 1, 4, 1, 5, 9]) + z
        plain = 1 / 6 + (x - x.sum() / 6) * float(mechanism.contrast.inverse(x.sum()))
        gap = np.abs(np.array(list(release.shares.values())) - plain).max()
        assert gap <= 1e-14 * max(1.0, np.abs(plain).max())


def test_values_of_any_kind():
    mechanism = Shares(50, [1, 2, ("x", 3)])
    release = mechanism.release(iter([1] * 30 + [("x", 3)] * 10), rng=1)
    assert release.shares[1] == pytest.approx(0.75, abs=0.1)
    assert release.shares[2] == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("cells", [2, 3, 4, 13])
def test_shares_are_rounded_no_more_than_their_sum_needs(cells):
    """Sums of k shares of size 1 hold multiples of 2^(⌈log₂ k⌉ − 52): those stay as they are."""
    step = 2.0 ** (math.ceil(math.log2(cells)) - 52)
    first = [1 / 4 + step, *[step] * (cells - 2)]
    found, note = shares._exactly_one([*first, 0.7])
    assert found[:-1] == first
    assert sum(found) == 1
    assert note is None
