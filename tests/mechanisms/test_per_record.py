"""Per-record sums: policies against the definition by brute force, totals by quadrature."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import oracle
import trueup as tu
from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.mechanisms import PerRecordSum, Policy, per_record

LOG = ("log(1 + q)", "exp(v) - 1")


# name: arguments, φ(q + a) by hand
TRANSFORMS: dict[str, tuple[dict[str, Any], Any]] = {
    "root:2": ({"transform": "root:2", "scale": 0.8}, lambda q: math.sqrt(q)),
    "root:2, offset": (
        {"transform": "root:2", "scale": 2, "offset": 9},
        lambda q: math.sqrt(q + 9),
    ),
    "root:3": ({"transform": "root:3", "scale": 0.5, "offset": 2}, lambda q: (q + 2) ** (1 / 3)),
    "root:4": ({"transform": "root:4", "scale": 0.3}, lambda q: q**0.25),
    "log": ({"transform": "log", "scale": 0.25, "offset": 3}, lambda q: math.log(q + 3)),
    "user formulas": ({"transform": LOG, "scale": 0.4}, lambda q: math.log(1 + q)),
    "arc": (
        {"transform": ("sqrt(q + 4) - 2", "(v + 2)**2 - 4"), "scale": 1},
        lambda q: math.sqrt(q + 4) - 2,
    ),
    "identity": ({"transform": "root:1", "scale": 5}, lambda q: q),
}
RECORDS = [0.0, 0.5, 0.5, 2.0, 7.0, 30.0]


@pytest.fixture(params=TRANSFORMS)
def case(request: pytest.FixtureRequest) -> tuple[PerRecordSum, Any]:
    """One mechanism after the other, and its φ(q + a)."""
    options, phi = TRANSFORMS[request.param]
    return PerRecordSum(**options), phi


# -- privacy by brute force ------------------------------------------------------------------------


def neighbours(record: float) -> list[tuple[float, float]]:
    """Return the sums of D and D ∪ {record} for all databases D of the records."""
    databases = itertools.chain.from_iterable(
        itertools.combinations(RECORDS, size) for size in range(len(RECORDS) + 1)
    )
    return [(sum(d), sum(d) + record) for d in set(databases)]


def test_sensitivity_is_the_supremum_over_neighbours(case):
    mechanism, phi = case
    for record in set(RECORDS):
        moved = [abs(phi(with_it) - phi(without)) for without, with_it in neighbours(record)]
        assert mechanism.sensitivity(record) == pytest.approx(max(moved), rel=1e-12, abs=1e-14)


def test_policy_is_the_largest_log_ratio_of_densities(case):
    """sup over neighbours and outputs of |log p(x | D)/p(x | D′)|, on a grid of outputs."""
    mechanism, phi = case
    scale = float(mechanism.noise.scale)
    x = np.linspace(phi(0) - 3 * scale, phi(sum(RECORDS)) + 3 * scale, 401)
    for record in (0.0, 0.5, 7.0):
        worst = 0.0
        for without, with_it in neighbours(record):
            ratio = np.abs(x - phi(without)) - np.abs(x - phi(with_it))
            worst = max(worst, float(np.abs(ratio).max()) / scale)
        assert worst == pytest.approx(mechanism.policy(record), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ["root:2", "root:3", "log", "user formulas"])
def test_gaussian_policy_is_the_largest_divergence(name):
    """Rényi divergence of order α between neighbours is at most α·ρ, by quadrature."""
    options, phi = TRANSFORMS[name]
    mechanism = PerRecordSum(**options, noise="gaussian")
    sigma = float(mechanism.noise.scale)
    law = oracle.gaussian(sigma)
    for record, alpha in itertools.product((0.5, 2.0), (1.5, 2.0)):
        found = []
        for without, with_it in [*neighbours(record)[::7], (0.0, record)]:
            one, other = phi(without), phi(with_it)
            tilt = lambda x, m=one, o=other, a=alpha: np.exp(  # noqa: E731
                (a - 1) * ((x - o) ** 2 - (x - m) ** 2) / (2 * sigma**2)
            )
            divergence = math.log(oracle.expect(tilt, oracle.Axis(law, one))) / (alpha - 1)
            found.append(divergence / alpha)
        assert max(found) == pytest.approx(mechanism.policy(record), rel=1e-9)


def test_steps_of_much_noise():
    """Scales end at 10¹⁵; below, the root is counted in steps of 2⁻⁴⁹ of the scale."""
    with pytest.raises(tu.TrueupError, match="scale is too large"):
        PerRecordSum("root:2", 2.0**50)
    mechanism = PerRecordSum("root:2", 2.0**49)
    assert mechanism.step == 1
    assert mechanism.policy(2.0**102) == 4
    assert mechanism.policy(1.0) == 2.0**-49  # a whole step
    assert mechanism.release([2.0**102], rng=1).published == pytest.approx(2.0**51, rel=5)


def test_policies_in_closed_form():
    assert PerRecordSum("root:2", 2).policy(100.0) == pytest.approx(5)
    assert PerRecordSum("root:3", 4).policy(64.0) == pytest.approx(1)
    assert PerRecordSum("root:2", 2, offset=36).policy(64.0) == pytest.approx(2)
    assert PerRecordSum("log", 0.25, offset=1).policy(math.e - 1) == pytest.approx(4)
    assert PerRecordSum("root:2", 2, noise="gaussian").policy(64.0) == pytest.approx(8)
    assert PerRecordSum("root:2", 2).policy(0.0) == 0
    np.testing.assert_allclose(PerRecordSum("root:2", 2).policy([0, 4, 16]), [0, 1, 2])
    assert type(PerRecordSum("root:2", 2).policy(4)) is float


# -- composition -----------------------------------------------------------------------------------


def test_losses_add_up():
    first, second = PerRecordSum("root:2", 2), PerRecordSum("log", 0.25, offset=2)
    joint = Policy(first, second)
    values = np.array([0.0, 1.0, 8.0, 1e6])
    np.testing.assert_allclose(joint(values), first.policy(values) + second.policy(values))
    assert joint(9.0) == pytest.approx(1.5 + 4 * math.log(5.5))
    assert Policy(first)(9.0) == first.policy(9.0)


def test_composition_is_the_loss_of_the_pair_of_outputs():
    """The worst log ratio of the joint density of two releases, over neighbours and outputs."""
    joint = Policy(PerRecordSum("root:2", 2), PerRecordSum("root:3", 0.5, offset=2))
    options = [(math.sqrt, 2.0), (lambda q: (q + 2) ** (1 / 3), 0.5)]
    for record in (0.5, 7.0):
        worst = 0.0
        for without, with_it in neighbours(record):
            loss = 0.0
            for phi, scale in options:
                x = np.linspace(phi(0) - 3, phi(sum(RECORDS)) + 3, 301)
                ratio = np.abs(x - phi(with_it)) - np.abs(x - phi(without))
                loss += float(ratio.max()) / scale
            worst = max(worst, loss)
        assert worst == pytest.approx(joint(record), rel=1e-12)


def test_gaussian_losses_add_up():
    first = PerRecordSum("root:2", 2, noise="gaussian")
    second = PerRecordSum("root:4", 1, noise="gaussian")
    assert Policy(first, second, second)(16.0) == pytest.approx(16 / 8 + 2 * 4 / 2)


def test_epsilon_and_rho_do_not_mix():
    with pytest.raises(TrueupError, match="do not add up") as caught:
        Policy(PerRecordSum("root:2", 2), PerRecordSum("root:2", 2, noise="gaussian"))
    assert "\nHint: " in str(caught.value)
    with pytest.raises(TrueupError):
        Policy()


def test_share_below():
    joint = Policy(PerRecordSum("root:2", 2), PerRecordSum("root:3", 4))
    records = [1.0, 64.0, 64.0, 10_000.0, 0.0]
    assert joint.share_below(records, loss=5.0) == pytest.approx(4 / 5)
    assert joint.share_below(records, loss=4.99) == pytest.approx(2 / 5)
    assert joint.share_below(records, loss=1e9) == 1
    assert joint.share_below(records, loss=0) == pytest.approx(1 / 5)
    assert math.isnan(joint.share_below([], loss=1))


# -- the total -------------------------------------------------------------------------------------

TOTALS = [0.0, 0.5, 6.0, 300.0]


def test_totals_are_unbiased_and_know_their_error(case):
    mechanism, phi = case
    b, a = float(mechanism.noise.scale), float(mechanism.offset)
    for q in TOTALS:
        axis = oracle.Axis(oracle.laplace(b), phi(q), (phi(0),), feature=3.0)
        mean, variance = oracle.moments(mechanism.estimator, axis)
        scale = max(1.0, q, 1e-3 * math.sqrt(variance))
        assert mean - a == pytest.approx(q, abs=1e-9 * scale)
        assert mechanism.sd(q) ** 2 == pytest.approx(variance, rel=1e-8)
        assert oracle.expect(mechanism.estimator.variance, axis) == pytest.approx(
            variance, rel=1e-8
        )


@pytest.mark.parametrize("name", ["root:2", "root:2, offset", "root:3", "root:4", "log"])
def test_gaussian_totals_are_unbiased(name):
    options, phi = TRANSFORMS[name]
    mechanism = PerRecordSum(**options, noise="gaussian")
    for q in TOTALS:
        axis = oracle.Axis(oracle.gaussian(float(mechanism.noise.scale)), phi(q))
        mean, variance = oracle.moments(mechanism.estimator, axis)
        assert mean - float(mechanism.offset) == pytest.approx(q, abs=1e-9 * max(1.0, q))
        assert mechanism.sd(q) ** 2 == pytest.approx(variance, rel=1e-8)
        assert oracle.expect(mechanism.estimator.variance, axis) == pytest.approx(
            variance, rel=1e-8
        )


@pytest.mark.parametrize("scale", [1, 2.5])
def test_the_bound_halves_the_variance_of_roots_at_zero(scale):
    """√ at q = 0: half of the paper's whole-line estimator v² − 2b²."""
    whole = tu.unbiased("v**2", tu.Laplace(scale))
    bounded = PerRecordSum("root:2", scale)
    assert bounded.sd(0.0) ** 2 == pytest.approx(whole.sd(0.0) ** 2 / 2, rel=1e-12)
    assert bounded.sd(0.0) ** 2 == pytest.approx(10 * scale**4, rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_bound_never_hurts(k):
    whole, bounded = tu.unbiased(f"v**{k}", tu.Laplace(1)), PerRecordSum(f"root:{k}", 1)
    for q in (0.0, 0.3, 5.0, 200.0):
        assert bounded.sd(q) <= whole.sd(q ** (1 / k)) * (1 + 1e-12)


@pytest.mark.parametrize("total", [1e4, 1e8, 1e10])
@pytest.mark.parametrize(("k", "scale"), [(1, Fraction(1, 1000)), (2, Fraction(1, 10**8))])
def test_the_sd_of_noise_that_is_small_beside_the_total(k, scale, total):
    """Far from the bound the total is v^k, of which noise moves the last digits only."""
    b, v = float(scale), total ** (1 / k)
    variance = {1: 2 * b**2, 2: 8 * (b * v) ** 2 + 20 * b**4}[k]
    mechanism = PerRecordSum(f"root:{k}", scale)
    if (k, total) == (2, 1e8):  # noise of 1e-8 at 10,000: too few digits are left
        with pytest.raises(tu.TrueupError, match="did not settle"):
            mechanism.sd(total)
    else:
        assert mechanism.sd(total) == pytest.approx(variance**0.5, rel=1e-5)


def test_infinite_variance_above_one_half():
    """From scale ½ on the logarithm is still unbiased, without a variance, and says so."""
    with pytest.warns(UserWarning, match="variance is infinite"):
        mechanism = PerRecordSum("log", 0.6, offset=1)
    for q in (0.0, 3.0, 50.0):
        axis = oracle.Axis(oracle.laplace(0.6), math.log(q + 1), (0.0,), feature=2.0)
        assert oracle.expect(mechanism.estimator, axis) - 1 == pytest.approx(q, abs=1e-9 * (1 + q))
    assert mechanism.sd(3.0) == math.inf
    release = mechanism.release([1.0, 2.0], rng=1)
    assert math.isfinite(release.total)
    assert math.isnan(release.stderr)


@pytest.mark.parametrize("scale", [0.5, 0.75, 0.99])
def test_the_logarithm_warns_from_one_half_on(scale):
    with pytest.warns(UserWarning, match="it is finite below 1/2") as caught:
        PerRecordSum("log", scale, offset=1)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("scale", [0.01, 0.3, 0.45])
def test_the_logarithm_has_a_variance_below_one_half(scale):
    """E g² in closed form: (1 − b²)e^x above log a, a(1 − b) below; large only next to ½."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism = PerRecordSum("log", scale, offset=2)
    q, a, rate = 10.0, 2.0, 1 / scale
    gap = math.log((q + a) / a)
    above = 1 / (rate - 2) - math.expm1(-(2 + rate) * gap) / (2 + rate)
    second = (1 - scale**2) ** 2 * (q + a) ** 2 * above * rate / 2
    second += (a * (1 - scale)) ** 2 * math.exp(-gap * rate) / 2
    assert mechanism.sd(q) ** 2 == pytest.approx(second - (q + a) ** 2, rel=1e-8)


@pytest.mark.parametrize("scale", [0.48, 0.499])
def test_a_variance_close_to_one_half_needs_what_is_no_double(scale):
    """e^{2v} grows by 96 % and more of what the tail carries."""
    with pytest.raises(tu.TrueupError, match="grows almost as fast as the tail"):
        PerRecordSum("log", scale, offset=2).sd(10.0)


def test_gaussian_logarithm_has_a_variance_at_any_scale():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism = PerRecordSum("log", 2, offset=1, noise="gaussian")
    # g = e^{v − σ²/2}: variance (q + a)²(e^{σ²} − 1)
    assert mechanism.sd(9.0) == pytest.approx(10 * math.sqrt(math.exp(4) - 1), rel=1e-10)


# -- the release -----------------------------------------------------------------------------------


def add_noise(monkeypatch: pytest.MonkeyPatch, z: float) -> None:
    """Let publish add this number instead of drawing."""

    def publish(values: Any, noise: Any, rng: Any = None) -> Any:
        return np.array(values, float) + z

    monkeypatch.setattr(per_record, "publish", publish)


@pytest.mark.parametrize("z", [0.0, 1.5, -30.0])
def test_a_release(monkeypatch, z):
    add_noise(monkeypatch, z)
    release = PerRecordSum("root:2", 2, offset=7).release([1, 0, 1.0], rng=1)
    v = 3 + z
    low, b = math.sqrt(7), 2
    total = v**2 - 2 * b**2 - 7 if v > low else 7 - 2 * b * low - 7
    variance = 8 * b**2 * v**2 + 4 * b**4 if v > low else 4 * b**2 * 7
    assert release.published == pytest.approx(v)
    assert release.total == pytest.approx(total, rel=1e-12)
    assert release.stderr == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert release.variance == pytest.approx(variance, rel=1e-12)
    assert release.noise == tu.Laplace(2)


def test_a_gaussian_release(monkeypatch):
    add_noise(monkeypatch, -8.0)
    release = PerRecordSum("root:2", 2, noise="gaussian").release([4.0, 5.0], rng=1)
    assert release.published == -5
    assert release.total == pytest.approx(25 - 4)  # a bound cannot help
    assert release.noise == tu.Gaussian(2)


def test_the_mean_of_many_releases():
    mechanism = PerRecordSum("root:3", 0.2, offset=1)
    rng = np.random.default_rng(4)
    totals = [mechanism.release([1.0, 6.5, 0.5], rng).total for _ in range(4_000)]
    assert np.mean(totals) == pytest.approx(8, abs=4.5 * mechanism.sd(8.0) / math.sqrt(4_000))
    assert np.std(totals) == pytest.approx(mechanism.sd(8.0), rel=0.1)


# -- transforms that are refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (("q**2", "sqrt(v)"), "not proven to be concave"),
        (("q**1.001", "v**(1/1.001)"), "not proven to be concave"),
        (("exp(q/10**9)", "10**9*log(v)"), "not proven to be concave"),
        (("-q", "-v"), "not proven to increase"),
        (("1/(1 + q)", "1/v - 1"), "not proven to increase"),
        (("3 + 0*q", "v"), "one variable|not proven to increase"),
        (("log(1 + q)", "exp(v)"), "not proven to undo"),
        (("sqrt(q)", "v**3"), "not proven to undo"),
        (("log(q)", "exp(v)"), "not proven to be smooth"),
        (("q + r", "v"), "one variable"),
        ("root:0", "the root must be"),
        ("root:21", "the root must be"),
        ("root:2.5", "the root must be"),
        ("root:-2", "the root must be"),
        ("sqrt", "unknown transform"),
        (("q",), "unknown transform"),
        (None, "unknown transform"),
        (2, "unknown transform"),
    ],
    ids=str,
)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_refused_transforms(transform, message, noise):
    with pytest.raises(TrueupError, match=message) as caught:
        PerRecordSum(transform, 0.1, noise=noise)
    assert "\nHint: " in str(caught.value)


def test_python_functions_are_refused():
    functions = (lambda q: math.sqrt(q + 4) - 2, lambda v: (v + 2) ** 2 - 4)
    for transform in (functions, ("sqrt(q)", functions[1])):
        with pytest.raises(TrueupError, match="must be a formula, got the Python function"):
            PerRecordSum(transform, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0.3}, "offset above 0"),
        ({"scale": 0.3, "noise": "gaussian"}, "offset above 0"),
        ({"scale": 1, "offset": 1}, "scale must be below 1"),
        ({"scale": 1.5, "offset": 1}, "scale must be below 1"),
    ],
    ids=str,
)
def test_refused_logarithms(options, message):
    with pytest.raises(TrueupError, match=message) as caught:
        PerRecordSum("log", **options)
    assert "\nHint: " in str(caught.value)


def test_a_saturating_transform_has_no_unbiased_total():
    """q/(1 + q) stays below 1, its inverse has a pole there."""
    with pytest.raises(NoUnbiasedEstimator, match="pole"):
        PerRecordSum(("q/(1 + q)", "v/(1 - v)"), 0.1)


def test_masked_records_are_refused() -> None:
    records = np.ma.array([1.0, -4.0, 9.0], mask=[0, 1, 0])
    mechanism = PerRecordSum("root:2", 2)
    joint = Policy(mechanism, mechanism)
    for loss in (mechanism.policy, mechanism.sensitivity, joint):
        with pytest.raises(TrueupError, match="masked array"):
            loss(records)
    with pytest.raises(TrueupError, match="1 of 3 records are masked"):
        joint.share_below(records, 5.0)
