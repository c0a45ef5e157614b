"""Unbiased numbers from differentially private releases, and how sure they are."""

import importlib
from fractions import Fraction as Fraction
from typing import TYPE_CHECKING, Any

from trueup._version import __version__ as __version__

if TYPE_CHECKING:
    from trueup import mechanisms as mechanisms
    from trueup import plots as plots
    from trueup.adapters import from_census as from_census
    from trueup.adapters import from_diffprivlib as from_diffprivlib
    from trueup.adapters import from_opendp as from_opendp
    from trueup.adapters import from_pipelinedp as from_pipelinedp
    from trueup.adapters import from_pydp as from_pydp
    from trueup.adapters import from_tumult as from_tumult
    from trueup.adapters import published as published
    from trueup.domain import Integers as Integers
    from trueup.domain import Interval as Interval
    from trueup.errors import BoundWarning as BoundWarning
    from trueup.errors import FormulaError as FormulaError
    from trueup.errors import InfiniteVariance as InfiniteVariance
    from trueup.errors import MissingExtra as MissingExtra
    from trueup.errors import NoUnbiasedEstimator as NoUnbiasedEstimator
    from trueup.errors import SelectionWarning as SelectionWarning
    from trueup.errors import TrueupError as TrueupError
    from trueup.estimator import Estimator as Estimator
    from trueup.estimator import unbiased as unbiased
    from trueup.frames.debias import debias as debias
    from trueup.frames.ratio import ratio as ratio
    from trueup.frames.report import Report as Report
    from trueup.frames.report import report as report
    from trueup.frames.total import total as total
    from trueup.microdata.release import release as release
    from trueup.near.estimator import NearlyUnbiased as NearlyUnbiased
    from trueup.near.estimator import nearly_unbiased as nearly_unbiased
    from trueup.near.frontier import Frontier as Frontier
    from trueup.near.frontier import frontier as frontier
    from trueup.noise import *  # noqa: F403
    from trueup.noise.reading import read_noise as noise  # noqa: F401
    from trueup.plugin import PluginBias as PluginBias
    from trueup.plugin import plugin_bias as plugin_bias
    from trueup.tables.spec import read_spec as read_spec
    from trueup.values import Noisy as Noisy
    from trueup.values import noisy as noisy
    from trueup.values import where as where

# Each name is loaded when it is first used: the command line answers at once.
_HOMES = {
    "trueup.adapters": "from_census from_diffprivlib from_opendp from_pipelinedp from_pydp "
    "from_tumult published",
    "trueup.domain": "Integers Interval",
    "trueup.errors": "BoundWarning FormulaError InfiniteVariance MissingExtra NoUnbiasedEstimator "
    "SelectionWarning TrueupError",
    "trueup.estimator": "Estimator unbiased",
    "trueup.near.estimator": "NearlyUnbiased nearly_unbiased",
    "trueup.near.frontier": "Frontier frontier",
    "trueup.frames.debias": "debias",
    "trueup.frames.ratio": "ratio",
    "trueup.frames.report": "Report report",
    "trueup.frames.total": "total",
    "trueup.tables.spec": "read_spec",
    "trueup.microdata.release": "release",
    "trueup.values": "Noisy noisy where",
    "trueup.plugin": "PluginBias plugin_bias",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
_HERE = ("Fraction", "__version__", "mechanisms", "noise", "plots")


def __getattr__(name: str) -> Any:
    """Load a public name from its module; classes not listed here are noise families."""
    if name in ("mechanisms", "noise", "plots"):
        return importlib.import_module(f"trueup.{name}")
    home = _HOME.get(name, "trueup.noise" if name[0].isupper() or name == "__all__" else None)
    module = importlib.import_module(home) if home else None
    if module is None or (name not in _HOME and name not in {*module.__all__, "__all__"}):
        raise AttributeError(f"module 'trueup' has no attribute {name!r}")
    listed = name == "__all__"
    value = sorted({*_HERE, *_HOME, *module.__all__}) if listed else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __getattr__("__all__")  # type: ignore[no-any-return]
