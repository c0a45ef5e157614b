"""Mechanisms: data in, private and unbiased numbers out.

::

    means                       Mean, TwoTotalsMean, SmoothSensitivityMean: n is not public
    quadrant, inverse_count     two totals, none negative · the unbiased 1/n
    groups                      GroupMean, GroupShare: the empty group too
    two_counts, corner          their inverse in fractions · what few records publish
    shares                      Shares: k counts
    many_counts                 their inverse
    share_law, pair_law         the exact law of shares · of means of two counts with a dither
    per_record                  PerRecordSum, Policy: privacy that depends on the record
    transforms, concavity       its transforms, in whole numbers · proofs of their shape
    planning                    plan: which of them, which split, which error
    released                    what they publish

    records, whole_numbers      records read exactly · added as whole numbers
    sampling                    noise in whole steps, from OpenDP
    quadrature                  integrals over Laplace noise
"""

from trueup.limit.few_records import OptimalMean
from trueup.limit.optimal import OptimalRelease
from trueup.mechanisms.groups import GroupMean, GroupShare
from trueup.mechanisms.means import Mean, SmoothSensitivityMean, TwoTotalsMean
from trueup.mechanisms.per_record import PerRecordSum, Policy
from trueup.mechanisms.planning import Plan, plan
from trueup.mechanisms.released import MeanRelease, SharesRelease, TotalRelease
from trueup.mechanisms.shares import Shares

__all__ = [
    "GroupMean",
    "GroupShare",
    "Mean",
    "MeanRelease",
    "OptimalMean",
    "OptimalRelease",
    "PerRecordSum",
    "Plan",
    "Policy",
    "Shares",
    "SharesRelease",
    "SmoothSensitivityMean",
    "TotalRelease",
    "TwoTotalsMean",
    "plan",
]
