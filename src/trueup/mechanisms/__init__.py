"""Mechanisms: data in, private and unbiased numbers out."""

from trueup.limit.few_records import OptimalMean
from trueup.limit.optimal import OptimalRelease
from trueup.mechanisms.groups import GroupMean, GroupShare
from trueup.mechanisms.means import Mean, SmoothSensitivityMean, TwoTotalsMean
from trueup.mechanisms.per_record import PerRecordSum, Policy
from trueup.mechanisms.planning import Plan, plan
from trueup.mechanisms.released import MeanRelease, SharesRelease, SharesSum, Sum, TotalRelease
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
    "SharesSum",
    "SmoothSensitivityMean",
    "Sum",
    "TotalRelease",
    "TwoTotalsMean",
    "plan",
]
