"""Unbiased totals of unbounded records, with privacy that depends on the record (Algorithm 3).

Release v = φ(q + a) + noise for a concave increasing φ and the sum q of non-negative records. One
record r moves φ by at most φ(r + a) − φ(a), so its privacy loss, the policy, is

    P(r) = (φ(r + a) − φ(a)) / b          Laplace noise of scale b: per-record ε
    P(r) = (φ(r + a) − φ(a))² / (2σ²)     Gaussian noise: per-record ρ (zCDP)

and the unbiased estimator of φ⁻¹(v) − a gives the total back. Under Laplace noise it uses that v is
known to be at least φ(a), which lowers the variance; under Gaussian noise a bound cannot help.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.estimator import unbiased
from trueup.exact import number, symbolic
from trueup.formula import source
from trueup.kernels.evaluate import evaluate
from trueup.kernels.tape import as_float
from trueup.mechanisms.records import read_numbers, total_of
from trueup.mechanisms.release import TotalRelease
from trueup.mechanisms.sampling import generator, publish
from trueup.noise import Gaussian, Laplace

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from trueup.estimator import Estimator
    from trueup.exact import Exact
    from trueup.noise import Noise

_V = sympy.Symbol("v", real=True)
_HINT = "give 'root:2', 'log', or a pair ('log(1 + q)', 'exp(v) - 1') of φ and its inverse"


class Transform(NamedTuple):
    """A concave increasing φ, and its inverse as the estimator takes it."""

    name: str
    phi: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    inverse: Any
    derivatives: tuple[Callable[..., Any], ...] | None


class PerRecordSum:
    """Release the sum of non-negative records through a concave transform.

    Parameters
    ----------
    transform
        ``"root:k"`` for the k-th root, ``"log"`` (needs offset > 0), or a pair of formulas
        ``(phi, inverse)``; with Python functions ``(phi, inverse, inverse′, inverse″)``.
    scale
        The scale b of Laplace noise, or σ of Gaussian noise, on the transformed sum.
    offset
        a ≥ 0, added to the sum before it is transformed.
    noise
        "laplace" (per-record ε) or "gaussian" (per-record ρ-zCDP).

    Examples
    --------
    >>> mechanism = PerRecordSum("root:2", scale=2)
    >>> mechanism.policy(100.0)  # √100 / 2
    5.0
    >>> round(mechanism.sd(0.0) ** 2, 6)  # half of what it is without the bound
    160.0
    """

    def __init__(
        self, transform: Any, scale: Exact, offset: Exact = 0, noise: str = "laplace"
    ) -> None:
        self.offset = number(offset, "offset")
        if self.offset < 0:
            raise TrueupError(f"offset must not be negative, got {offset!r}", "0 is the default")
        if noise not in ("laplace", "gaussian"):
            raise TrueupError(
                f"noise must be 'laplace' or 'gaussian', got {noise!r}", "see the help"
            )
        self.noise: Noise = Laplace(scale) if noise == "laplace" else Gaussian(scale)
        self.transform = _read(transform, self.offset)
        self.low = float(self._phi(0.0))
        _check_log(self.transform, self.noise, self.offset)
        _check_shape(self)
        self.estimator = self._estimator()

    def _estimator(self) -> Estimator:
        bound = (_exact_low(self.transform, self.offset, self.low), None)
        domain = bound if isinstance(self.noise, Laplace) else None
        inverse = self.transform.inverse
        return unbiased(inverse, self.noise, domain, derivatives=self.transform.derivatives)

    def _phi(self, values: ArrayLike) -> Any:
        """Return φ(values + a)."""
        x = np.asarray(values, float) + float(self.offset)
        with np.errstate(all="ignore"):
            return np.asarray(self.transform.phi(np.atleast_1d(x)), float).reshape(x.shape)

    # -- privacy --------------------------------------------------------------------------------

    def sensitivity(self, record: ArrayLike) -> Any:
        """Return by how much one record can move the transformed sum: φ(r + a) − φ(a)."""
        moved = self._phi(record) - self.low
        return float(moved) if not np.ndim(record) else moved

    def policy(self, record: ArrayLike) -> Any:
        """Return the privacy loss of a record: ε under Laplace noise, ρ under Gaussian noise."""
        moved, scale = self.sensitivity(record), float(self.noise.scale)  # type: ignore[attr-defined]
        return moved / scale if isinstance(self.noise, Laplace) else moved**2 / (2 * scale**2)

    # -- the release ----------------------------------------------------------------------------

    def release(self, values: Any, rng: Any = None) -> TotalRelease:
        """Return an unbiased total; with an ``rng`` it is only a simulation."""
        records = read_numbers(values)
        if (records < 0).any():
            raise TrueupError(
                f"{int((records < 0).sum())} of {len(records)} records are negative",
                "per-record privacy needs non-negative records; nothing was released",
            )
        rng = generator(rng)
        v = float(self._phi(total_of(records)))
        published = float(publish([v], self.noise, rng)[0])
        total = self.estimator(published) - float(self.offset)
        try:
            error = self.estimator.stderr(published)
        except TrueupError:
            error = math.nan
        return TotalRelease(total, error, published, self.noise, rng is not None)

    def sd(self, total: float) -> float:
        """Return the exact standard deviation of the estimate at a true total."""
        return float(self.estimator.sd(float(self._phi(total))))

    def __repr__(self) -> str:
        return (
            f"<per-record sum through {self.transform.name}, {self.noise!r}, offset {self.offset}>"
        )


class Policy:
    """The joint policy of several releases of the same records: losses add up.

    Examples
    --------
    >>> joint = Policy(PerRecordSum("root:2", 2), PerRecordSum("root:3", 4))
    >>> joint(64.0)  # 8/2 + 4/4
    5.0
    >>> joint.share_below([1.0, 64.0, 10_000.0], loss=5.0)
    0.6666666666666666
    """

    def __init__(self, *mechanisms: PerRecordSum) -> None:
        kinds = {type(m.noise) for m in mechanisms}
        if len(kinds) != 1:
            raise TrueupError(
                "the losses of Laplace (ε) and Gaussian (ρ) releases do not add up",
                "compose releases under one kind of noise, at least one",
            )
        self.mechanisms = mechanisms

    def __call__(self, record: ArrayLike) -> Any:
        """Return the privacy loss of a record over all releases."""
        return sum(m.policy(record) for m in self.mechanisms)

    def share_below(self, records: ArrayLike, loss: float) -> float:
        """Return the share of records whose loss is at most the given one."""
        values = np.asarray(self(np.asarray(records, float)))
        return float(np.mean(values <= loss)) if values.size else math.nan


# -- transforms ---------------------------------------------------------------------------------


def _read(transform: Any, offset: Exact) -> Transform:
    if transform == "log":
        return Transform("log", np.log, sympy.exp(_V), None)
    if isinstance(transform, str) and transform.startswith("root:"):
        k = transform.removeprefix("root:")
        if not k.isdigit() or not 1 <= int(k) <= 20:
            raise TrueupError(f"the root must be 1 to 20, got {transform!r}", _HINT)
        return Transform(transform, lambda x: x ** (1 / int(k)), _V ** int(k), None)
    if isinstance(transform, Sequence) and not isinstance(transform, str) and len(transform) >= 2:
        return _user(transform)
    raise TrueupError(f"unknown transform {transform!r}", _HINT)


def _user(transform: Sequence[Any]) -> Transform:
    phi, inverse, *derivatives = transform
    if callable(phi):
        return Transform(
            getattr(phi, "__name__", "φ"), np.vectorize(phi, otypes=[float]), inverse,
            tuple(derivatives) or None,
        )  # fmt: skip
    expr = source.read(phi, None).expr
    if len(expr.free_symbols) != 1:
        raise TrueupError(f"φ must have one variable, got {phi!r}", _HINT)
    (symbol,) = expr.free_symbols
    return Transform(str(phi), lambda x: evaluate(expr, {symbol: x}), inverse, None)


def _exact_low(transform: Transform, offset: Exact, low: float) -> Any:
    """Return φ(a) as exactly as it is known."""
    if transform.name.startswith("root:"):
        k = int(transform.name.removeprefix("root:"))
        root = symbolic(offset) ** sympy.Rational(1, k)
        return root if root.is_Rational else as_float(root)
    return low


def _check_log(transform: Transform, noise: Noise, offset: Exact) -> None:
    if transform.name != "log" or not isinstance(noise, Laplace):
        if transform.name == "log" and offset <= 0:
            raise TrueupError("the logarithm needs an offset above 0, got 0", "e.g. offset=1")
        return
    if offset <= 0:
        raise TrueupError(f"the logarithm needs an offset above 0, got {offset}", "e.g. offset=1")
    if noise.scale >= 1:
        raise TrueupError(
            f"under the logarithm the scale must be below 1, got {noise.scale}",
            "at scale 1 and above no unbiased estimator exists; below 1/2 it has a variance",
        )
    if noise.scale >= 0.5:
        warnings.warn(
            f"scale {noise.scale} under the logarithm: the estimate is unbiased but its variance "
            "is infinite; it is finite below 1/2",
            stacklevel=3,
        )


def _check_shape(mechanism: PerRecordSum) -> None:
    """Refuse a transform that is not increasing and concave, or whose inverse does not fit."""
    grid = np.concatenate([[0.0], np.geomspace(1e-3, 1e9, 400)])
    values = mechanism._phi(grid)
    name = mechanism.transform.name
    if not np.isfinite(values).all():
        raise TrueupError(f"{name} is not finite on [{mechanism.offset}, ∞)", "raise the offset")
    slopes = np.diff(values) / np.diff(grid)
    if (np.diff(values) <= 0).any():
        where = grid[:-1][np.diff(values) <= 0][0]
        raise TrueupError(f"{name} does not increase at {where:g}", "use an increasing transform")
    if (np.diff(slopes) > 1e-9 * np.abs(slopes[:-1])).any():
        raise TrueupError(
            f"{name} is not concave: its slope grows",
            "a convex transform would give large records an unbounded privacy loss",
        )
    back = _inverse_values(mechanism.transform, values)
    if not np.allclose(back, grid + float(mechanism.offset), rtol=1e-6, atol=1e-6):
        raise TrueupError(f"the inverse given for {name} does not undo it", _HINT)


def _inverse_values(transform: Transform, values: NDArray[np.float64]) -> Any:
    if callable(transform.inverse) and not isinstance(transform.inverse, sympy.Basic):
        return np.vectorize(transform.inverse, otypes=[float])(values)
    expr = source.read(transform.inverse, None).expr
    (symbol,) = expr.free_symbols or {_V}
    return evaluate(expr, {symbol: values})
