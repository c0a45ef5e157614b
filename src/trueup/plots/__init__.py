"""Pictures: colour-blind safe, readable in grey, axes labelled.

Every function returns the matplotlib axes that it drew on; pass ``ax=`` to draw on your own.

::

    estimate, axis    an estimator over published values · which values these are
    decision, trade   which estimator for how many cells · what a small bias costs
    paper_figures     the paper's, redrawn
    style             how pictures look
"""

from trueup.plots.decision import decision
from trueup.plots.estimate import estimate
from trueup.plots.paper_figures import figures as paper
from trueup.plots.trade import frontier

__all__ = ["decision", "estimate", "frontier", "paper"]
