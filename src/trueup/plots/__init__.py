"""Pictures: colour-blind safe, readable in grey, axes labelled.

Every function returns the matplotlib axes that it drew on; pass ``ax=`` to draw on your own.

::

    estimate, risk, calibration   over published values · over true ones · by simulation
    decision, trade, policy       which estimator for how many cells · bias bought · per record
    paper_figures                 the paper's, redrawn
    axis, style                   what runs along it · how pictures look
"""

from trueup.plots.calibration import calibration
from trueup.plots.decision import decision
from trueup.plots.estimate import estimate
from trueup.plots.paper_figures import figures as paper
from trueup.plots.policy import policy
from trueup.plots.risk import risk
from trueup.plots.trade import frontier

__all__ = ["calibration", "decision", "estimate", "frontier", "paper", "policy", "risk"]
