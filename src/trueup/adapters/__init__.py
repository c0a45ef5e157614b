"""Noise read out of other libraries' objects, or the reason why it cannot be.

One file per library. None of them is imported: an adapter reads names and attributes, so an object,
or a record of one, is enough.

::

    opendp, opendp_summary          measurements and their JSON · summaries of Polars queries
    pydp, pipelinedp, diffprivlib   Google's library · what is built on it · IBM's
    tumult                          what a session says of a query's noise
    census, published               noisy measurement files · public data sets by name
    attributes, clamping            what every adapter does · releases that stop at a bound
    notation                        noise, bounds and names as text
"""

from trueup.adapters.census import from_census
from trueup.adapters.diffprivlib import from_diffprivlib
from trueup.adapters.opendp import from_opendp
from trueup.adapters.pipelinedp import from_pipelinedp
from trueup.adapters.published import published
from trueup.adapters.pydp import from_pydp
from trueup.adapters.tumult import from_tumult

__all__ = [
    "from_census",
    "from_diffprivlib",
    "from_opendp",
    "from_pipelinedp",
    "from_pydp",
    "from_tumult",
    "published",
]
