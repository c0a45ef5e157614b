"""Pictures: colour-blind safe, readable in grey, axes labelled.

Every function returns the matplotlib axes that it drew on; pass ``ax=`` to draw on your own.
"""

from trueup.plots.calibration import calibration
from trueup.plots.decision import decision
from trueup.plots.estimate import estimate
from trueup.plots.paper_figures import figures as paper
from trueup.plots.policy import policy
from trueup.plots.risk import risk
from trueup.plots.trade import frontier

__all__ = ["calibration", "decision", "estimate", "frontier", "paper", "policy", "risk"]
