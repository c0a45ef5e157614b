"""Public data sets that state their noise, and those of which nothing unbiased is left.

One table, ``RELEASES``: what was added, what was done afterwards, and where that was read. Only
what a publisher states is returned; what is known second hand is told in the refusal, to be
compared.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trueup.adapters.attributes import by_row, law, parameter, refusal
from trueup.adapters.census import from_census
from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.noise import DiscreteGaussian, Gaussian, Laplace, Noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

NEVER = 1e-22
"""What has smaller odds is in no release: the largest has 71 trillion numbers."""


@dataclass(frozen=True, repr=False)
class ByRow:
    """A noise stated row by row: call it with the column, or with one value of it.

    Examples
    --------
    >>> noise = published("census-2020-nmf")
    >>> noise
    DiscreteGaussian, row by row from the column 'variance'
    >>> noise(9), noise([9, 16])
    (DiscreteGaussian(3), [DiscreteGaussian(3), DiscreteGaussian(4)])
    """

    family: type[Noise]
    column: str
    read: Callable[[ArrayLike], Any]

    def __call__(self, values: ArrayLike) -> Any:
        """Return the noise of a number, the noises of a column."""
        return self.read(values)

    def __repr__(self) -> str:
        return f"{self.family.__name__}, row by row from the column {self.column!r}"


@dataclass(frozen=True)
class Source:
    """Where a fact was read."""

    title: str
    address: str


@dataclass(frozen=True)
class Release:
    """What is known of a public data set.

    Parameters
    ----------
    title
        What the data set is called.
    added, afterwards
        The noise in words, and what was done to the noisy numbers.
    sources
        Where that was read.
    noise
        What the publisher states, None if it cannot be used or was not found.
    above
        Only values above it were published.
    why, hint
        Why no noise is returned, and what to do.
    """

    title: str
    added: str
    afterwards: str
    sources: tuple[Source, ...]
    noise: Noise | ByRow | None = None
    above: int | None = None
    why: str = ""
    hint: str = ""

    @property
    def clear_from(self) -> int | None:
        """The least true value from which on the threshold is out of the noise's reach."""
        if self.above is None or not isinstance(self.noise, Noise):
            return None
        return math.ceil(self.above - float(self.noise.quantile(NEVER)))


def _gaussians(deviations: ArrayLike) -> Any:
    """Return the Gaussian noise of a standard deviation, or those of a column."""
    return by_row(
        deviations, lambda d: law(Gaussian, parameter(d, "std_dev")), "deviations", "std_dev"
    )


_NMF = "use the noisy measurements: tu.published('census-2020-nmf')"
_COUNTS = "ask the publisher for the noisy counts and the law of their noise"
_README = Source(
    "2020 Redistricting Data File Least Squares Estimates README File",
    "https://github.com/uscensusbureau/DAS_2020_GLS_Uncertainty_Evaluation",
)
_TOP_DOWN = Source(
    "The 2020 Census Disclosure Avoidance System TopDown Algorithm",
    "https://hdsr.mitpress.mit.edu/pub/7evz361i/release/1",
)
_WIKIMEDIA = "https://analytics.wikimedia.org/published/datasets/"

RELEASES = {
    "census-2020-nmf": Release(
        "2020 Census, noisy measurement files (P.L. 94-171 and DHC)",
        "discrete Gaussian, zCDP with bounded neighbours; its variance is a column",
        "nothing: whole numbers, often negative, not adding up",
        (
            Source(
                "2020 Census Redistricting Data (P.L. 94-171) Noisy Measurement File",
                "https://registry.opendata.aws/census-2020-pl94-nmf",
            ),
            Source(
                "2020 Census Demographic and Housing Characteristics Noisy Measurement File",
                "https://registry.opendata.aws/census-2020-dhc-nmf",
            ),
            Source(
                "DAS_2020_GLS_Uncertainty_Evaluation, main_two_pass_alg.py (the columns)",
                "https://github.com/uscensusbureau/DAS_2020_GLS_Uncertainty_Evaluation",
            ),
        ),
        ByRow(DiscreteGaussian, "variance", from_census),
    ),
    "census-2020-gls": Release(
        "2020 Redistricting Data File Least Squares Estimates",
        "Gaussian, to a good approximation; its deviation is the column `std_dev`",
        "weighted sums of noisy measurements, unbiased; estimates are correlated",
        (_README,),
        ByRow(Gaussian, "std_dev", _gaussians),
    ),
    "census-2020-tables": Release(
        "2020 Census, published tables (P.L. 94-171 and DHC)",
        "the noise of the noisy measurements",
        "made into microdata: whole, not negative, adding up, some counts held fixed",
        (_TOP_DOWN, _README),
        why="the noisy counts were made into microdata that are whole, not negative and add up: "
        "what is left of the noise depends on the truth",
        hint=_NMF,
    ),
    "census-2020-sdhc": Release(
        "2020 Census, Supplemental DHC (averages and ratios)",
        "on the detailed cells, large households cut off before",
        "statistical models remove negative counts and infinite ratios",
        (
            Source(
                "DAS_2020_SDHC_Production_Code, README",
                "https://github.com/uscensusbureau/DAS_2020_SDHC_Production_Code",
            ),
        ),
        why="large households were cut off before the noise, and models smoothed what came after",
        hint="use the noisy measurements where they have the counts: "
        "tu.published('census-2020-nmf')",
    ),
    "wikimedia-pageviews": Release(
        "Wikimedia page views by country, since 15 February 2024",
        "Gaussian of scale 10 (ρ = 0.015), of other scales in some countries",
        "pages with over 150 views that day only; only counts above 90",
        (
            Source(
                "Pageviews Differential Privacy — Current",
                _WIKIMEDIA + "country_project_page/00_README.html",
            ),
        ),
        why="since 15 February 2024 scales differ by country, and where was not found",
        hint="for the days before: tu.published('wikimedia-pageviews-2023', domain=(188, None)); "
        "or write the noise of your countries yourself, e.g. tu.Gaussian(10)",
    ),
    "wikimedia-pageviews-2023": Release(
        "Wikimedia page views by country, 6 February 2023 to 14 February 2024",
        "Gaussian of scale 10 (ρ = 0.015)",
        "pages with over 150 views that day only; only counts above 90",
        (
            Source(
                "Pageviews Differential Privacy — Current",
                _WIKIMEDIA + "country_project_page/00_README.html",
            ),
            Source(
                "Publishing Wikipedia usage data with strong privacy guarantees",
                "https://arxiv.org/html/2308.16298v3",
            ),
        ),
        Gaussian(10),
        90,
        "only counts above 90 were published: one of 90 that appears is 97.98 on average",
    ),
    "wikimedia-pageviews-historical": Release(
        "Wikimedia page views by country, 9 February 2017 to 5 February 2023",
        "Laplace of scale 30 (ε = 1)",
        "pages with over 150 views that day only; only counts above 450",
        (
            Source(
                "Pageviews Differential Privacy — Historical",
                _WIKIMEDIA + "country_project_page_historical/00_README.html",
            ),
        ),
        Laplace(30),
        450,
        "only counts above 450 were published: one of 450 that appears is 480 on average",
    ),
    "wikimedia-pageviews-pre-2017": Release(
        "Wikimedia page views by country, 1 July 2015 to 8 February 2017",
        "Laplace of scale 300 (ε = 1)",
        "pages with over 150 views that day only; only counts above 3500",
        (
            Source(
                "Pageviews Differential Privacy — Historical (pre-2017)",
                _WIKIMEDIA + "country_project_page_historical_pre_2017/00_README.html",
            ),
        ),
        Laplace(300),
        3500,
        "only counts above 3500 were published: one of 3500 that appears is 3800 on average",
    ),
    "wikimedia-geoeditors": Release(
        "Wikimedia editors by country, monthly",
        "ε = 1.1, 0.2 or 0.1 by country, in a column; law and sensitivity not found",
        "not found",
        (
            Source(
                "Geoeditors Differential Privacy — Monthly",
                _WIKIMEDIA + "geoeditors_monthly/00_README.html",
            ),
        ),
        why="its ε is stated row by row, but the law of the noise and what was left out were not "
        "found",
        hint="read both in its README and write the noise yourself, e.g. tu.Laplace(1 / 1.1)",
    ),
    "facebook-urls": Release(
        "Facebook Privacy-Protected Full URLs Data Set",
        "Gaussian by action (second hand: clicks 40, shares 14, shares without clicks 10)",
        "addresses with over 100 public shares only, that number with Laplace(5) noise",
        (
            Source(
                "Facebook Privacy-Protected Full URLs Data Set",
                "https://portal.meaningfultransparency.tech/output/facebook-privacy-protected-full-urls-data-set/",
            ),
            Source(
                "URL Shares dataset, Overview",
                "https://developers.secure.facebook.com/docs/url-shares-dataset/overview",
            ),
            Source(
                "Sharing without clicking on news in social media (the deviations are read in "
                "analysis code that fits this study)",
                "https://doi.org/10.1038/s41562-024-02067-4",
            ),
        ),
        why="its deviations were found second hand only: clicks 40, shares 14, "
        "share_without_clicks 10",
        hint="compare with the codebook of your version, then write "
        "{'clicks': tu.Gaussian(40), 'shares': tu.Gaussian(14)}",
    ),
    "google-mobility": Release(
        "Google COVID-19 Community Mobility Reports",
        "on the figures before they are compared; law and scales not found",
        "change in per cent against a noisy baseline; what is unreliable is discarded",
        (
            Source(
                "Google COVID-19 Community Mobility Reports: Anonymization Process Description",
                "https://arxiv.org/abs/2004.04145",
            ),
        ),
        why="only quotients of noisy figures were published, and those that looked unreliable were "
        "discarded",
        hint=_COUNTS,
    ),
    "google-search-symptoms": Release(
        "Google COVID-19 Search Trends symptoms dataset",
        "on counts of searches, ε = 1.68 a user and day; law and scales not found",
        "divided by the number of users and by a factor of each region; rare ones dropped",
        (
            Source(
                "Google COVID-19 Search Trends Symptoms Dataset: Anonymization Process Description",
                "https://research.google/pubs/google-covid-19-search-trends-symptoms-dataset-anonymization-process-description/",
            ),
            Source(
                "COVID-19 Search Trends symptoms dataset, README",
                "https://github.com/google-research/open-covid-19-data/tree/master/data/exports/search_trends_symptoms_dataset",
            ),
        ),
        why="every region was scaled by a factor that is not published, and rare symptoms were "
        "dropped",
        hint=_COUNTS,
    ),
    "linkedin-labour-market": Release(
        "LinkedIn labour market insights",
        "not found",
        "only the top employers, jobs and skills",
        (
            Source(
                "A Members First Approach to Enabling LinkedIn's Labor Market Insights at Scale",
                "https://ar5iv.labs.arxiv.org/html/2010.13981",
            ),
        ),
        why="only the top of each list was published: what leads there was lifted by its noise",
        hint=_COUNTS,
    ),
    "microsoft-broadband": Release(
        "Microsoft US broadband usage by zip code",
        "on the counts behind each share; law and scales not found",
        "noisy counts divided; places with fewer than 20 devices left out",
        (
            Source(
                "United States Broadband Usage Percentages Dataset, README",
                "https://github.com/microsoft/USBroadbandUsagePercentages",
            ),
        ),
        why="only quotients of noisy counts were published",
        hint="its column MSD is the publisher's own estimate of the bias; "
        "for exact work ask for the noisy counts",
    ),
    "israel-births-2014": Release(
        "Israel's National Registry of Live Births, 2014",
        "inside a generative model (PrivBayes), ε = 9.98 in all",
        "synthetic records, of a model chosen among many by private selection",
        (
            Source(
                "Differentially Private Release of Israel's National Registry of Live Births",
                "https://arxiv.org/html/2405.00267v1",
            ),
        ),
        why="its records were drawn from a fitted model: nothing was published with noise added",
        hint="use the errors that were published with it, or ask for noisy tables",
    ),
    "opportunity-atlas": Release(
        "Opportunity Atlas, outcomes by tract",
        "proportional to the largest sensitivity observed; scales not found",
        "not found",
        (
            Source(
                "A Practical Method to Reduce Privacy Loss when Disclosing Statistics Based on "
                "Small Samples",
                "http://www.nber.org/papers/w25626",
            ),
        ),
        why="its noise is proportional to a sensitivity computed from the data, and its scales "
        "were not found",
        hint="find the law and the scale of your cells, then e.g. tu.Laplace(scale)",
    ),
    "pseo-earnings": Release(
        "Post-Secondary Employment Outcomes, earnings percentiles",
        "Laplace, on a histogram of earnings; scales not found",
        "percentiles read off the noisy distribution",
        (
            Source(
                "Releasing Earnings Distributions using Differential Privacy: Disclosure Avoidance "
                "System For Post Secondary Employment Outcomes (PSEO)",
                "https://www.census.gov/library/working-papers/2019/adrm/ces-wp-19-13.html",
            ),
        ),
        why="percentiles were read off a noisy distribution, which cannot be undone",
        hint="ask for the noisy histogram: shares and sums of its cells can be debiased",
    ),
    "onthemap": Release(
        "OnTheMap, where workers live (LODES)",
        "inside a model of where workers live",
        "synthetic records",
        (
            _TOP_DOWN,
            Source(
                "Privacy: Theory meets Practice on the Map",
                "https://studylib.net/doc/14170319/privacy--theory-meets-practice-on-the-map-ashwin-machanav...",
            ),
        ),
        why="residences were drawn from a model: nothing was published with noise added",
        hint="ask for noisy counts",
    ),
    "safegraph-patterns": Release(
        "SafeGraph Patterns, visitors by home area",
        "Laplace (as its support says); scale not found",
        "then one visitor is left out, and two are shown as 4",
        (
            Source(
                "Dewey community: questions about patterns data",
                "https://community.deweydata.io/t/i-have-a-few-questions-about-patterns-data-visitor-home-cbgs-is-for-each-cbg-and-visitor-home-aggregation-is-for-each-census-tract-but-if-i-add-all-cbgs-visitors-number-in-one-census-tract-its-not-the-same-i-dont-know-why/24284",
            ),
        ),
        why="small noisy counts were left out or shown as 4, inside the range of possible truths",
        hint=_COUNTS,
    ),
}


_LONGEST = 80  # letters of a name that are read and said again: more than the longest has


def published(name: str, domain: Any = None) -> Any:
    """Return the noise of a public data set, as its publisher states it.

    The field guide of the documentation tells what was done to each after the noise, and where
    that was read. Data sets of which nothing unbiased is left are refused with the reason.

    Parameters
    ----------
    name
        The name in the field guide, e.g. ``"census-2020-nmf"``.
    domain
        Where the true values lie, known by other means than the published values. Needed where only
        values above a threshold were published: far above it nothing was left out.

    Returns
    -------
    Noise or ByRow
        A noise; where it is stated row by row, what makes a noise of a value of that column, and a
        list of noises of the column.

    Examples
    --------
    >>> published("census-2020-nmf")([9, 16])
    [DiscreteGaussian(3), DiscreteGaussian(4)]
    >>> published("wikimedia-pageviews-2023", domain=(500, None))
    Gaussian(10)
    """
    release = _found(name)
    if release.noise is None:
        raise refusal(release.title, release.why, release.hint)
    start = release.clear_from
    if start is not None and Interval.read(domain).low < start:
        hint = (
            f"pass domain=({start}, None) for cells that are known to be so large by other means "
            "than the published value; there none was left out"
        )
        raise refusal(release.title, release.why, hint)
    return release.noise


def _found(name: object) -> Release:
    if isinstance(name, str) and name in RELEASES:
        return RELEASES[name]
    asked = str(name)[:_LONGEST].casefold().replace("_", "-").replace(" ", "-")
    words = {*asked.split("-")}
    held = {key: len(words.intersection(key.split("-"))) for key in RELEASES}
    most = max(held.values())
    near = [key for key, count in held.items() if most and count == most]
    near = near or difflib.get_close_matches(asked, RELEASES, 3)
    hint = (
        f"did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"known are {', '.join(RELEASES)}"
    )
    shown = repr(name) if len(repr(name)) <= _LONGEST else repr(name)[:_LONGEST] + "…"
    raise TrueupError(f"no public data set is known as {shown}", hint)
