"""Unbiased numbers from differentially private releases, and how sure they are."""

import importlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from trueup._version import __version__

if TYPE_CHECKING:
    from trueup import mechanisms, plots
    from trueup.adapters import (
        from_census,
        from_diffprivlib,
        from_opendp,
        from_pipelinedp,
        from_pydp,
        from_tumult,
        published,
    )
    from trueup.domain import Integers, Interval
    from trueup.errors import (
        BoundWarning,
        FormulaError,
        InfiniteVariance,
        MissingExtra,
        NoUnbiasedEstimator,
        TrueupError,
    )
    from trueup.estimator import Estimator, unbiased
    from trueup.frames.debias import debias
    from trueup.frames.ratio import ratio
    from trueup.frames.report import Report, report
    from trueup.frames.total import total
    from trueup.microdata.release import release
    from trueup.near.estimator import NearlyUnbiased, nearly_unbiased
    from trueup.near.frontier import Frontier, frontier
    from trueup.noise import *  # noqa: F403
    from trueup.plugin import PluginBias, plugin_bias
    from trueup.values import Noisy, noisy, where

__all__ = [
    "BoundWarning",
    "Estimator",
    "FormulaError",
    "Fraction",
    "Frontier",
    "InfiniteVariance",
    "Integers",
    "Interval",
    "MissingExtra",
    "NearlyUnbiased",
    "NoUnbiasedEstimator",
    "Noisy",
    "PluginBias",
    "Report",
    "TrueupError",
    "__version__",
    "debias",
    "from_census",
    "from_diffprivlib",
    "from_opendp",
    "from_pipelinedp",
    "from_pydp",
    "from_tumult",
    "frontier",
    "mechanisms",
    "nearly_unbiased",
    "noisy",
    "plots",
    "plugin_bias",
    "published",
    "ratio",
    "release",
    "report",
    "total",
    "unbiased",
    "where",
]

# Each name is loaded when it is first used: the command line answers at once.
_HOMES = {
    "trueup.adapters": "from_census from_diffprivlib from_opendp from_pipelinedp from_pydp "
    "from_tumult published",
    "trueup.domain": "Integers Interval",
    "trueup.errors": "BoundWarning FormulaError InfiniteVariance MissingExtra NoUnbiasedEstimator "
    "TrueupError",
    "trueup.estimator": "Estimator unbiased",
    "trueup.near.estimator": "NearlyUnbiased nearly_unbiased",
    "trueup.near.frontier": "Frontier frontier",
    "trueup.frames.debias": "debias",
    "trueup.frames.ratio": "ratio",
    "trueup.frames.report": "Report report",
    "trueup.frames.total": "total",
    "trueup.microdata.release": "release",
    "trueup.values": "Noisy noisy where",
    "trueup.plugin": "PluginBias plugin_bias",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


_OWN = __all__
if not TYPE_CHECKING:  # the noise families are added when it is asked for
    del __all__


def __getattr__(name: str) -> Any:
    """Load a public name from its module; classes not listed here are noise families."""
    if name in ("mechanisms", "plots"):
        return importlib.import_module(f"trueup.{name}")
    home = _HOME.get(name, "trueup.noise" if name[0].isupper() or name == "__all__" else None)
    module = importlib.import_module(home) if home else None
    if module is None or (name not in _HOME and name not in {*module.__all__, "__all__"}):
        raise AttributeError(f"module 'trueup' has no attribute {name!r}")
    value = sorted({*_OWN, *module.__all__}) if name == "__all__" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __getattr__("__all__")  # type: ignore[no-any-return]
