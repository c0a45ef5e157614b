"""Public data sets: what they state, what is refused, and that the field guide says the same."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

import trueup as tu
from trueup.adapters.published import NEVER, RELEASES, ByRow

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "field_guide.md").read_text("utf-8")
THRESHOLDS = {name: r for name, r in RELEASES.items() if r.above is not None}
LAWS = {tu.Gaussian(10): stats.norm(0, 10), tu.Laplace(30): stats.laplace(0, 30)} | {
    tu.Laplace(300): stats.laplace(0, 300)
}


def selected(law, q, above):
    """Return E[x | x > above] for x = q + Z, by quadrature."""
    top = q + 60 * law.std()
    break_at = [p for p in (q,) if above < p < top] or None
    total, _ = integrate.quad(lambda x: x * law.pdf(x - q), above, top, points=break_at, limit=200)
    return total / law.sf(above - q)


def test_noise_that_is_stated_row_by_row():
    noise = tu.published("census-2020-nmf")
    assert isinstance(noise, ByRow)
    assert noise(9) == tu.DiscreteGaussian(3)
    assert noise([9.0, 0.0]) == [tu.DiscreteGaussian(3), tu.Noiseless()]
    deviations = tu.published("census-2020-gls")
    assert deviations(1.5) == tu.Gaussian(1.5)
    assert deviations(np.array([1.5, 0.0])) == [tu.Gaussian(1.5), tu.Noiseless()]
    with pytest.raises(tu.TrueupError, match="one column"):
        deviations([[1.0, 2.0]])
    with pytest.raises(tu.TrueupError, match=r"row by row from the column 'variance'"):
        tu.unbiased("n**2", noise)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_threshold_is_refused_until_it_is_out_of_reach(name):
    release = THRESHOLDS[name]
    start, law = release.clear_from, LAWS[release.noise]
    assert law.cdf(release.above - start) <= NEVER < law.cdf(release.above - (start - 1))
    for domain in (None, (0, None), (start - 1, None)):
        with pytest.raises(tu.TrueupError, match=rf"above {release.above}.*\n.*\({start}, None\)"):
            tu.published(name, domain)
    assert tu.published(name, (start, None)) == release.noise


@pytest.mark.parametrize("name", THRESHOLDS)
def test_the_bias_that_a_threshold_leaves_is_as_stated(name):
    release = THRESHOLDS[name]
    law, at = LAWS[release.noise], release.above
    mean = selected(law, at, at)
    assert f"one of {at} that appears is {round(mean, 2):g} on average" in release.why
    assert math.isclose(selected(law, release.clear_from, at), release.clear_from, rel_tol=1e-12)


def test_the_guides_figures_of_a_threshold():
    law = LAWS[tu.Gaussian(10)]
    for q in (60, 90, 95, 120):
        assert f"| {q} | {selected(law, q, 90) - q:.2f} |" in GUIDE


def test_discrete_and_continuous_noise_hardly_differ_at_these_scales():
    for b in (30, 300):
        alpha = math.exp(-1 / b)
        assert abs(2 * alpha / (1 - alpha) ** 2 / (2 * b**2) - 1) < 1e-4
    assert "less than one part in 10,000" in GUIDE


@pytest.mark.parametrize("name", [name for name, r in RELEASES.items() if r.noise is None])
def test_what_cannot_be_used_is_refused_with_reason_and_remedy(name):
    release = RELEASES[name]
    with pytest.raises(tu.TrueupError) as caught:
        tu.published(name)
    assert release.why in caught.value.message
    assert caught.value.hint == release.hint != ""


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("census-nmf-2020", "census-2020-nmf"),
        ("wikimedia", "wikimedia-pageviews"),
        ("Facebook_URLs", "facebook-urls"),
        ("census", "'census-2020-nmf' or 'census-2020-gls' or"),
        ("2020 census", "'census-2020-nmf' or 'census-2020-gls' or"),
        ("google", "did you mean 'google-mobility' or 'google-search-symptoms'?"),
        ("LinkedIn", "did you mean 'linkedin-labour-market'?"),
        ("pseo", "did you mean 'pseo-earnings'?"),
        ("nothing like it", ", ".join(RELEASES)),
        (3, ", ".join(RELEASES)),
    ],
)
def test_unknown_names_are_refused_with_near_ones(name, near):
    with pytest.raises(tu.TrueupError, match="no public data set is known as") as caught:
        tu.published(name)
    assert near in caught.value.hint


def test_a_long_name_is_not_said_again_whole():
    with pytest.raises(tu.TrueupError, match="no public data set is known as 'xxx") as caught:
        tu.published("x" * 5000)
    assert len(str(caught.value).splitlines()[0]) < 200


def row(name):
    """Return the line of the guide's table."""
    release = RELEASES[name]
    answer = "refused" if release.noise is None else f"`{type(release.noise).__name__}`"
    if isinstance(release.noise, ByRow):
        answer = f"`{release.noise.family.__name__}` by row"
    elif release.clear_from is not None:
        answer = f"`{release.noise!r}` from {release.clear_from} on"
    return f"| `{name}` | {release.title} | {release.added} | {release.afterwards} | {answer} |"


@pytest.mark.parametrize("name", RELEASES)
def test_the_field_guide_says_what_the_table_says(name):
    assert row(name) in GUIDE
    for source in RELEASES[name].sources:
        assert source.address.startswith(("https://", "http://"))
        assert f"[{source.title}]({source.address})" in GUIDE


def test_the_field_guide_has_no_other_rows():
    lines = [line for line in GUIDE.splitlines() if line.startswith("| `")]
    assert lines == [row(name) for name in RELEASES]
    assert len(lines) >= 8
