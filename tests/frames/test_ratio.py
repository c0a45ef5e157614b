"""Ratios of sums of noisy cells: without bias for any number of cells, with intervals."""

import contextlib
import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

import trueup as tu
from extras import needs
from frames.backends import BACKENDS, same
from trueup.tables.many import Summand, height
from trueup.tables.ratios import RatioOfSums

pl = needs("polars")

LAPLACE = {"s": tu.Laplace(2), "n": tu.Laplace(3)}
DATA = {
    "state": ["B", "A", "B", None, "A", None, "B"],
    "s": [51.5, 13.0, -22.5, 12.0, 7.0, 31.0, 9.25],
    "n": [1030, 250, 700, 800, 600, 330, 110],
    "b": [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0],
}


@pytest.fixture(params=BACKENDS, ids=repr)
def constructor(request):
    return request.param


def under_laplace(s, n, cells, scales):
    """Return Σs/Σn by the inverse of a sum of Laplace noises, (1 − b²D²)ᵐ, in fractions."""
    s, n = Fraction(s), Fraction(n)
    b2 = Fraction(scales[1]) ** 2

    def inverse(order):  # of 1/n, or of 1/n²
        terms = (
            math.comb(cells, j)
            * (-b2) ** j
            * math.factorial(2 * j + order)
            / n ** (2 * j + 1 + order)
            for j in range(cells + 1)
        )
        return sum(terms)

    value = s * inverse(0)
    spread = 2 * cells * Fraction(scales[0]) ** 2
    return float(value), math.sqrt(value**2 - (s**2 - spread) * inverse(1))


def on_integers(s, n, cells, scales):
    """Return Σs/Σn by the inverse of a sum of discrete Laplace noises, (1 − λδ²)ᵐ, in fractions."""
    alpha = Fraction(math.exp(-1 / scales[1]))
    lam = alpha / (1 - alpha) ** 2
    stencil = {0: Fraction(1)}
    for _ in range(cells):
        new = {}
        for k, w in stencil.items():
            for step, factor in ((-1, -lam), (0, 1 + 2 * lam), (1, -lam)):
                new[k + step] = new.get(k + step, 0) + w * factor
        stencil = new
    return float(Fraction(s) * sum(w / Fraction(n + k) for k, w in stencil.items()))


@pytest.mark.parametrize("keys", [[], ["state"]], ids=["all", "groups"])
def test_sums_of_every_kind_of_table(constructor, keys):
    frame = constructor(DATA)
    found = constructor.read(tu.ratio(frame, by=keys, noise=LAPLACE, pay="s/n"))
    assert list(found) == [*keys, "rows", "pay", "pay_stderr"]
    groups = sorted({*DATA["state"]}, key=str) if keys else [...]
    assert len(found["rows"]) == len(groups)
    for i, rows in enumerate(found["rows"]):
        state = found["state"][i] if keys else ...
        chosen = [k for k, v in enumerate(DATA["state"]) if state in (..., v)]
        assert rows == len(chosen)
        sums = [sum(Fraction(DATA[c][k]) for k in chosen) for c in "sn"]
        value, stderr = under_laplace(*sums, rows, (2, 3))
        assert found["pay"][i] == pytest.approx(value, rel=1e-9)
        assert found["pay_stderr"][i] == pytest.approx(stderr, rel=1e-7)


def test_intervals_and_scales_of_every_kind_of_table(constructor):
    frame = constructor(DATA)
    plain = constructor.read(tu.ratio(frame, by="state", noise=LAPLACE, interval=0.9, pay="s/n"))
    scaled = constructor.read(
        tu.ratio(frame, "state", None, {"n": "b"}, noise=LAPLACE, interval=0.9, pay="s/n")
    )
    assert list(plain) == ["state", "rows", "pay", "pay_stderr", "pay_low", "pay_high"]
    order = [scaled["state"].index(state) for state in plain["state"]]
    for name in ("rows", "pay", "pay_stderr", "pay_low", "pay_high"):
        assert all(map(same, [scaled[name][i] for i in order], plain[name]))
    for low, value, high in zip(plain["pay_low"], plain["pay"], plain["pay_high"], strict=True):
        assert low < value < high


@pytest.mark.parametrize("cells", [1, 2, 7])
def test_integer_noise(cells):
    noise = {name: tu.DiscreteLaplace(2) for name in "sn"}
    frame = pl.DataFrame({"s": [40] * cells, "n": [300 + i for i in range(cells)]})
    found = tu.ratio(frame, noise=noise, pay="s/n")
    n = sum(300 + i for i in range(cells))
    assert found["pay"][0] == pytest.approx(on_integers(40 * cells, n, cells, (2, 2)), rel=1e-11)


def test_gaussian_noise_and_shares():
    noise = {name: tu.Gaussian(4) for name in "ab"}
    frame = pl.DataFrame({"a": [50.0] * 30, "b": [90.0] * 30})
    found = tu.ratio(frame, noise=noise, share="a/(a + b)")
    # E[a·e^{−t(a+b)}] undone: ∫ e^{−tx − v·t²}(x_a + v·t) dt with v = 30·16, by a fine sum
    x, v = 30 * 140.0, 30 * 16.0
    t = (np.arange(400_000) + 0.5) * (60 / x / 400_000)
    expected = np.sum(np.exp(-t * x - v * t * t) * (1500 + v * t)) * (60 / x / 400_000)
    assert found["share"][0] == pytest.approx(expected, rel=1e-9)


def test_one_cell_is_debiased_like_a_cell():
    mean = tu.unbiased("s/n", LAPLACE, {"n": (1, None)})
    frame = pl.DataFrame({"s": [51.5], "n": [900.0]})
    assert tu.ratio(frame, pay=mean)["pay"][0] == pytest.approx(mean(s=51.5, n=900.0), rel=1e-10)


@pytest.mark.parametrize("cells", [1, 2, 3, 4])
@pytest.mark.parametrize("law", [tu.DiscreteLaplace, tu.Laplace])
def test_groups_of_few_cells_have_a_ratio(law, cells):
    frame = pl.DataFrame({"s": [2001] * cells, "n": [50] * cells})
    mean = tu.unbiased("s/n", {"s": law(5), "n": law(5)}, {"n": (1, None)})
    found = tu.ratio(frame, pay=mean)
    by_hand = on_integers if law is tu.DiscreteLaplace else lambda *at: under_laplace(*at)[0]
    expected = by_hand(2001 * cells, 50 * cells, cells, (5, 5))
    lost = 100.0**cells * 1e-16  # each cell takes differences once more, times λ = 25
    assert found["pay"][0] == pytest.approx(expected, rel=1e-12 + lost)
    if cells == 1:
        assert found["pay_stderr"][0] == pytest.approx(mean.stderr(s=2001, n=50), rel=1e-12)


@pytest.mark.parametrize("domain", ["n >= 1", "0 <= s <= n, n >= 1"])
def test_few_cells_are_unbiased_next_to_the_bound(domain):
    """Over every sum of two noises, with their exact masses: the estimate, and its variance."""
    scales, reach = (1, 2), 120
    mass = np.ones(1)
    for b in scales:
        k = np.arange(-reach, reach + 1)
        mass = np.convolve(mass, math.tanh(0.5 / b) * np.exp(-np.abs(k) / b))
    noise = np.flatnonzero(mass > 1e-18) - 2 * reach
    mass = mass[noise + 2 * reach]
    law = {"s": tu.Noiseless(), "n": tu.DiscreteLaplace(1)}
    two = {"s": [tu.Noiseless()] * 2, "n": [tu.DiscreteLaplace(b) for b in scales]}
    told = pytest.warns(tu.BoundWarning) if "s <=" in domain else contextlib.nullcontext()
    with told:  # of known numbers the condition is not used
        exact = RatioOfSums.read("s/n", law, domain).of_few(two, 2)
    for n in (2, 3, 7):
        found = np.array([exact.at({"s": 2.0, "n": float(n + k)}) for k in noise])
        assert mass @ found[:, 0] == pytest.approx(2 / n, rel=1e-9)
        square = found[:, 0] ** 2 - found[:, 1]  # unbiased for the square of the ratio
        assert mass @ square == pytest.approx((2 / n) ** 2, rel=1e-7)


def test_a_simulated_table():
    rng = np.random.default_rng(14)
    releases, groups, cells = 12, 50, 400
    n = np.exp(rng.uniform(0, math.log(5000), groups * cells)).round()
    s = rng.uniform(20, 60, groups * cells) * n
    group = np.repeat(np.arange(groups), cells)
    noise = {"s": tu.Laplace(200), "n": tu.DiscreteLaplace(5)}
    size = releases * len(n)
    frame = pl.DataFrame(
        {
            "release": np.repeat(np.arange(releases), len(n)),
            "group": np.tile(group, releases),
            "s": np.tile(s, releases) + noise["s"].sample(size, rng),
            "n": np.tile(n, releases) + noise["n"].sample(size, rng),
        }
    )
    found = tu.ratio(frame, ["release", "group"], noise=noise, interval=0.95, pay="s/n")
    truth = (np.bincount(group, s) / np.bincount(group, n))[found["group"].to_numpy()]
    errors = (found["pay"].to_numpy() - truth) / found["pay_stderr"].to_numpy()
    assert np.abs(errors).max() < 4.5
    assert np.abs(errors.mean()) < 4 / math.sqrt(len(errors))
    low, high = (found[name].to_numpy() for name in ("pay_low", "pay_high"))
    covered = ((low <= truth) & (truth <= high)).mean()
    assert 0.93 < covered < 0.99


@pytest.mark.parametrize("tail", [0.025, 1.25e-5, 1e-8])
def test_how_far_sums_of_noises_reach(tail):
    def reached(noise, cells):
        return height((Summand(noise, 0.0, 1.0, cells),), (0.0, 1.0), tail)

    z = -NormalDist().inv_cdf(tail)
    assert reached(tu.Gaussian(3), 4) == pytest.approx(6 * z, rel=1e-7)
    assert reached(tu.Laplace(3), 1) == pytest.approx(-3 * math.log(2 * tail), rel=1e-5)
    k, beyond = np.arange(-300, 301), np.ones(1)
    for _ in range(3):
        beyond = np.convolve(beyond, math.tanh(0.1) * np.exp(-np.abs(k) / 5))
    exact = np.flatnonzero(beyond[::-1].cumsum()[::-1] > tail)[-1] - 900  # P(Z > exact) ≤ tail
    assert exact <= reached(tu.DiscreteLaplace(5), 3) <= exact + 2


def test_intervals_at_high_levels():
    frame = pl.DataFrame({"s": [100.0] * 50, "n": [200.0] * 50})
    law = {"s": tu.Gaussian(3), "n": tu.Gaussian(3)}
    for level in (0.99, 0.9999, 0.99999, 0.9999999):
        found = tu.ratio(frame, noise=law, domain="n >= 1", interval=level, pay="s/n")
        # Fieller: (5000 − 10000r)² = z²·450·(1 + r²)
        z2 = 450 * NormalDist().inv_cdf((1 - level) / 2) ** 2
        ends = sorted(np.roots([1e8 - z2, -1e8, 2.5e7 - z2]).real)
        low, high = found["pay_low"][0], found["pay_high"][0]
        assert low <= ends[0]  # the share of the box, the edges of the polygon
        assert ends[1] <= high
        assert high - low == pytest.approx(ends[1] - ends[0], rel=0.015)


def test_a_growth_rate_of_sums_is_that_of_its_ratio():
    frame = pl.DataFrame({"g": list("aab"), "s": [900.0, 30, 20], "n": [800, 100, 3]})
    noise = {"s": tu.Laplace(5), "n": tu.DiscreteLaplace(2)}
    formulas = {"r": "s/n", "growth": "100*(s/n - 1)"}
    both = {k: tu.unbiased(f, noise, {"s": (0, None), "n": (1, None)}) for k, f in formulas.items()}
    found = tu.ratio(frame, by="g", interval=0.95, **both)
    for end in ("", "_low", "_high"):
        known = (100 * (found[f"r{end}"] - 1)).to_list()
        assert np.isfinite(known).all()
        assert found[f"growth{end}"].to_list() == pytest.approx(known, rel=1e-9)


def test_a_denominator_that_is_small_has_a_certified_bias():
    frame = pl.DataFrame({"g": ["a"] * 20 + ["b"] * 20, "s": [5.0] * 40, "n": [1] * 20 + [90] * 20})
    noise = {"s": tu.Laplace(5), "n": tu.DiscreteLaplace(5)}
    given = {"by": "g", "noise": noise, "domain": {"n": (1, None)}, "interval": 0.9, "r": "s/n"}
    with pytest.warns(tu.BoundWarning, match=r"1 of 2 groups \(a\) is small .* up to 0\.17"):
        found = tu.ratio(frame, bias=True, **given)
    assert found.columns == ["g", "rows", "r", "r_stderr", "r_low", "r_high", "r_bias"]
    assert found["r"].is_finite().all()
    assert found["r_bias"].to_list() == pytest.approx([math.exp(-0.45 / 5 * 20), 0])
    assert found["r_low"].is_finite().all()
    assert found["r_high"].is_finite().all()
    with pytest.raises(tu.TrueupError, match="bias must be True or False"):
        tu.ratio(frame, **given | {"bias": 0.1})


def test_the_bias_is_below_its_bound():
    """Over every sum of ten noises, with their exact masses: one group for each of them."""
    cells, total, k = 10, 12, np.arange(-60, 61)
    each, mass = math.tanh(0.5) * np.exp(-np.abs(k)), np.ones(1)
    for _ in range(cells):
        mass = np.convolve(mass, each)
    noise = np.flatnonzero(mass > 1e-15) - 60 * cells
    n = np.zeros((len(noise), cells))
    n[:, 0] = total + noise
    frame = pl.DataFrame({"g": np.repeat(noise, cells), "s": 1.0, "n": n.ravel()})
    law = {"s": tu.Noiseless(), "n": tu.DiscreteLaplace(1)}
    with pytest.warns(tu.BoundWarning, match="is small for its noise"):
        found = tu.ratio(frame, "g", noise=law, domain="n >= 1", bias=True, r="s/n")
    mean = mass[noise + 60 * cells] @ found["r"].to_numpy()
    bias = 1 - mean / (cells / total)
    assert bias == pytest.approx(math.exp(-0.45 * total), rel=1e-3)  # e^{-cB}, c = 0.45 here
    assert bias <= found["r_bias"].max() <= math.exp(-0.45 * cells)


def test_groups_are_shown_whatever_was_published():
    """2,000 groups of ten cells: 64 % were shown, with a mean 31 standard errors below 1."""
    rng, law = np.random.default_rng(0), tu.DiscreteLaplace(1)
    n = np.maximum(rng.poisson(12, 20_000), 1)
    drawn = {name: n + law.sample(len(n), rng=rng) for name in "sn"}
    frame = pl.DataFrame({"g": np.repeat(np.arange(2000), 10)} | drawn)
    found = tu.ratio(frame, "g", noise=dict.fromkeys("sn", law), domain="n >= 1", r="s/n")
    assert found["r"].is_finite().all()
    assert found["r"].mean() == pytest.approx(1, abs=4 * found["r"].std() / math.sqrt(2000))


def test_a_sum_of_47_with_noise_of_standard_deviation_4_has_a_ratio():
    frame = pl.DataFrame({"s": [3.0] * 16, "n": [47 / 16] * 16})
    noise = dict.fromkeys("sn", tu.Laplace(math.sqrt(0.5)))
    found = tu.ratio(frame, noise=noise, domain="n >= 1", bias=True, r="s/n")
    assert found["r"][0] == pytest.approx(48 / 47, rel=0.02)
    assert found["r_stderr"][0] == pytest.approx(4 * math.sqrt(2) / 47, rel=0.1)
    assert found["r_bias"][0] < 0.01


def test_missing_numbers(constructor):
    frame = constructor(DATA | {"s": [None, *DATA["s"][1:]]})
    skipped = constructor.read(tu.ratio(frame, noise=LAPLACE, missing="skip", pay="s/n"))
    assert skipped["rows"] == [6]
    if constructor.eager:
        with pytest.raises(tu.TrueupError, match="1 of 7 rows miss a number"):
            tu.ratio(frame, noise=LAPLACE, pay="s/n")
    else:
        assert constructor.read(tu.ratio(frame, noise=LAPLACE, pay="s/n"))["pay"] == [None]


@pytest.mark.parametrize("huge", [1e200, math.inf, None])
def test_numbers_beyond_the_limit_are_missing_and_every_group_stays(constructor, huge):
    frame = constructor({"g": ["a", "a", "b"], "s": [huge, 51.0, huge], "n": [900, 800, 900]})
    found = constructor.read(tu.ratio(frame, "g", noise=LAPLACE, missing="skip", pay="s/n"))
    got = sorted(zip(*found.values(), strict=True))
    value, error = under_laplace(51, 800, 1, (2, 3))
    assert got[0] == ("a", 1, pytest.approx(value, rel=1e-9), pytest.approx(error, rel=1e-6))
    assert got[1] == ("b", 0, None, None)
    if constructor.eager:
        with pytest.raises(tu.TrueupError, match="2 of 3 rows miss a number"):
            tu.ratio(frame, "g", noise=LAPLACE, pay="s/n")
    else:
        found = constructor.read(tu.ratio(frame, "g", noise=LAPLACE, pay="s/n"))
        assert found["pay"] == [None, None]


def test_a_ratio_whose_square_is_beyond_the_range_of_floats():
    noise = {"s": tu.Laplace(1e15), "n": tu.Laplace(1e-143)}
    found = tu.ratio(pl.DataFrame({"s": [1e17], "n": [1e-140]}), noise=noise, pay="s/n")
    assert found["pay"].item() == pytest.approx(1e157, rel=1e-3)
    assert found["pay_stderr"].item() is None


@pytest.mark.parametrize("scale", [None, math.nan, 0.0])
def test_a_scale_that_is_missing_or_not_positive(constructor, scale):
    frame = constructor(DATA | {"b": [3.0, 3.0, scale, 3.0, 3.0, 3.0, 3.0]})
    options = {"noise": LAPLACE, "scales": {"n": "b"}, "pay": "s/n"}
    if scale is not None and scale <= 0:
        for missing in ("raise", "skip"):
            with pytest.raises(
                tu.TrueupError, match=f"scale of n is {scale:g} .*'b'.*positive\nHint"
            ):
                tu.ratio(frame, by="state", missing=missing, **options)
        return
    skipped = constructor.read(tu.ratio(frame, by="state", missing="skip", **options))
    assert sorted(skipped["rows"]) == [2, 2, 2]
    if constructor.eager:
        with pytest.raises(tu.TrueupError, match="1 of 7 rows miss a number"):
            tu.ratio(frame, by="state", **options)
        return
    found = constructor.read(tu.ratio(frame, by="state", **options))
    gone = dict(zip(found["state"], [v is None for v in found["pay"]], strict=True))
    assert gone == {"A": False, "B": True, None: False}


def test_groups_by_a_number_that_may_be_nan(constructor):
    frame = constructor(DATA | {"g": [1.0, math.nan, 1.0, math.nan, 1.0, 1.0, math.nan]})
    found = constructor.read(
        tu.ratio(frame, "g", scales={"n": "b"}, noise=LAPLACE, pay="s/n", stderr=False)
    )
    expected = [
        under_laplace(sum(map(Fraction, s)), sum(n), len(n), (2, 3))[0]
        for s, n in (
            ([51.5, -22.5, 7, 31], [1030, 700, 600, 330]),
            ([13, 12, 9.25], [250, 800, 110]),
        )
    ]
    assert sorted(found["rows"]) == [3, 4]
    assert sorted(found["pay"]) == pytest.approx(sorted(expected), rel=1e-9)


def test_groups_with_a_small_denominator_are_named(constructor):
    data = {"g": ["a", "a", "b", "b"], "h": [1, 2, 1, 1], "s": [5.0] * 4, "n": [1, 9000, 9000, 9]}
    frame = constructor(data)
    with pytest.warns(tu.BoundWarning, match=r"the denominator of 1 of 3 groups \(a 1\) is small"):
        constructor.read(tu.ratio(frame, by=["g", "h"], noise=LAPLACE, r="s/n"))


def test_broken_numbers_under_integer_noise_are_refused(constructor):
    frame = constructor({"g": ["a", "b"], "s": [5.0, 4.0], "n": [9000.0, 9000.5]})
    with pytest.raises(tu.TrueupError, match=r"column 'n' has .* but n has integer noise"):
        tu.ratio(frame, by="g", noise=LAPLACE | {"n": tu.DiscreteLaplace(3)}, r="s/n")
    assert tu.ratio(frame, by="g", noise=LAPLACE, r="s/n") is not None


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("n\\*s is no ratio of sums\nHint: .*tu.total", {"r": "s*n"}),
        ("s is no ratio of sums", {"r": "s"}),
        ("the noise of 's/n' is not given\nHint: ", {"r": "s/n", "noise": None}),
        ("no generating function", {"r": "s/n", "noise": LAPLACE | {"n": tu.StudentT(5)}}),
        ("has no column 'm'", {"r": "s/n", "columns": {"n": "m"}}),
        ("missing must be", {"r": "s/n", "missing": "no"}),
        ("interval must be a level", {"r": "s/n", "interval": 95}),
        ("no estimator is given", {}),
        ("weights is no option here\nHint: the options are by", {"r": "s/n", "weights": "w"}),
    ],
    ids=range(9),
)
def test_refusals(message, options):
    with pytest.raises(tu.TrueupError, match=message):
        tu.ratio(pl.DataFrame(DATA), **({"noise": LAPLACE} | options))
