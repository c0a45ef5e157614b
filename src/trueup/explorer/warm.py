"""Import everything a worker needs, and fill the caches, before the first worker is forked."""

from __future__ import annotations

import contextlib
import gc
import sys
from functools import cache

from trueup.explorer.views import VIEWS

_ASKED = {
    "formula": "s/n",
    "statistics": {
        "s": {"family": "laplace", "way": "scale", "scale": "2"},
        "n": {"family": "discrete_laplace", "way": "scale", "scale": "2", "low": "1"},
    },
}


@cache
def warm() -> None:
    """Compute once what the page asks for first."""
    for kind in ("curve", "code"):
        with contextlib.suppress(Exception):
            VIEWS[kind](_ASKED)
    gc.freeze()  # pages of what is there now stay shared between the workers


if any("multiprocessing.forkserver" in word for word in sys.orig_argv):
    warm()
