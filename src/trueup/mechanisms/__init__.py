"""Mechanisms: data in, private and unbiased numbers out."""

from trueup.mechanisms.optimal import OptimalRelease, OptimalValue, efficiency

__all__ = ["OptimalRelease", "OptimalValue", "efficiency"]
