"""Unbiased totals of unbounded records, with privacy that depends on the record (Algorithm 3).

Release v = φ(q + a) + noise for a concave increasing φ and the sum q of non-negative records. One
record r moves φ by at most φ(r + a) − φ(a), so its privacy loss, the policy, is

    P(r) = (φ(r + a) − φ(a)) / b          Laplace noise of scale b: per-record ε
    P(r) = (φ(r + a) − φ(a))² / (2σ²)     Gaussian noise: per-record ρ (zCDP)

What is published is a whole number of steps of 2⁻⁵⁰ to 2⁻⁴⁹ of the scale: the records are added
exactly, φ of the total is rounded once, noise is added in whole steps. The policy counts whole
steps too, rounded up, so it bounds what a record does to the published number, not only to φ.

The unbiased estimator of φ⁻¹(v) − a gives the total back. Under Laplace noise it uses that v is
known to be at least φ(a), which lowers the variance; under Gaussian noise a bound cannot help.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.errors import TrueupError
from trueup.estimator import unbiased
from trueup.exact import number, symbolic
from trueup.kernels.tape import as_float
from trueup.mechanisms.concavity import LARGEST
from trueup.mechanisms.records import float_above, is_number, listed, read_numbers
from trueup.mechanisms.released import TotalRelease, rounding
from trueup.mechanisms.sampling import generator, publish
from trueup.mechanisms.transforms import Transform, read_transform
from trueup.mechanisms.whole_numbers import Whole, exact_total, step_under
from trueup.noise import Gaussian, Laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from trueup.estimator import Estimator
    from trueup.exact import Exact

_GUARD = 20
"""φ is enclosed to 2⁻²⁰ of a step before it is rounded to a step."""
_BLUR = 3
"""The lower end of an enclosure that is not sharp is up to 3 below what it encloses."""


class PerRecordSum:
    """Release the sum of non-negative records through a concave transform.

    Parameters
    ----------
    transform
        ``"root:k"`` for the k-th root, ``"log"`` (needs offset > 0), or a pair of formulas
        ``(phi, inverse)`` that is proven to be smooth, increasing and concave.
    scale
        The scale b of Laplace noise, or σ of Gaussian noise, on the transformed sum.
    offset
        a ≥ 0, added to the sum before it is transformed.
    noise
        "laplace" (per-record ε) or "gaussian" (per-record ρ-zCDP).

    Examples
    --------
    >>> mechanism = PerRecordSum("root:2", scale=2)
    >>> mechanism.policy(100.0)  # √100 / 2, in whole steps, rounded up
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
        if not isinstance(noise, str) or noise not in ("laplace", "gaussian"):
            raise TrueupError(
                f"noise must be 'laplace' or 'gaussian', got {noise!r}", "see the help"
            )
        self.noise: Laplace | Gaussian = Laplace(scale) if noise == "laplace" else Gaussian(scale)
        self.transform = read_transform(transform, self.offset)
        _check_log(self.transform, self.noise, self.offset)
        self.low = self._phi(0.0)
        bound = (_exact_low(self.transform, self.offset, self.low), None)
        domain = bound if self.noise.by_curvature else None
        self.estimator: Estimator = unbiased(self.transform.inverse, self.noise, domain)

    def _phi(self, value: float) -> float:
        """Return φ(value + a)."""
        return float(self.transform.phi(np.array([value + float(self.offset)]))[0])

    # -- privacy --------------------------------------------------------------------------------

    def sensitivity(self, record: ArrayLike) -> Any:
        """Return by how much one record can move the number that gets noise.

        This is φ(r + a) − φ(a), rounded up to whole steps.
        """
        return _each(record, self._moved())

    def policy(self, record: ArrayLike) -> Any:
        """Return the privacy loss of a record: ε under Laplace noise, ρ under Gaussian noise."""
        moved, scale = self._moved(), Fraction(self.noise.scale)
        if self.noise.by_curvature:
            return _each(record, lambda r: moved(r) / scale)
        return _each(record, lambda r: (moved(r) / scale) ** 2 / 2)

    @property
    def step(self) -> Fraction:
        """The step of the grid on which φ is published."""
        return step_under(self.noise.scale)

    def _moved(self) -> Callable[[Fraction], Fraction]:
        """Return the largest change of the published multiple of the step, by record.

        |round(x) − round(y)| ≤ ⌈|x − y|⌉, and x − y is at most φ(r + a) − φ(a) as φ is concave.
        """
        enclosure = self.transform.enclosure
        step, power, offset = self.step, self._power, Fraction(self.offset)
        start = enclosure(offset, power)[0] - (0 if self.transform.sharp else _BLUR)

        def moved(record: Fraction) -> Fraction:
            reach = enclosure(record + offset, power)[1] - start
            return (-(-reach >> _GUARD) if record else 0) * step

        return moved

    @property
    def _power(self) -> int:
        """The binary digits of φ after the point: those of the step, and guards."""
        return _GUARD + self.step.denominator.bit_length() - self.step.numerator.bit_length()

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
        published = float(publish(self.transformed(exact_total(records)), self.noise, rng)[0])
        total = self.estimator(published) - float(self.offset)
        try:
            error = self.estimator.stderr(published)
        except TrueupError:
            error = math.nan
        note = rounding(total, error)
        return TotalRelease(total, error, published, self.noise, rng is not None, note)

    def transformed(self, total: Fraction) -> Whole:
        """Return φ(total + a) as it gets noise."""
        if total > LARGEST:
            raise TrueupError(
                f"the sum of the records exceeds {LARGEST:g}",
                "measure the records in another unit; nothing was released",
            )
        low, _ = self.transform.enclosure(total + Fraction(self.offset), self._power)
        return Whole(((low + (1 << (_GUARD - 1))) >> _GUARD,), self.step)

    def sd(self, total: float) -> float:
        """Return the exact standard deviation of the estimate at a true total."""
        true = number(total, "total")
        if true < 0:
            raise TrueupError(
                f"the total of non-negative records is not negative, got {total!r}",
                "e.g. sd(1000)",
            )
        return float(self.estimator.sd(self._phi(float(true))))

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
        values = np.atleast_1d(self(listed(records)))
        return float(np.mean(values <= loss)) if values.size else math.nan


def _each(record: ArrayLike, bound: Callable[[Fraction], Fraction]) -> Any:
    """Return a bound for each record, as the next double above it; NaN for what is no record."""
    if isinstance(record, np.ma.MaskedArray):
        raise TrueupError("records are a masked array", "fill it, or compress it")
    values = np.asarray(record, dtype=object)  # an array of numbers would bring them to one kind

    def at(r: Any) -> float:
        if not is_number(type(r)):
            raise TrueupError(f"a record must be a number, got {r!r}", "give floats or integers")
        if not r >= 0:  # also NaN
            return math.nan
        return math.inf if r > LARGEST else float_above(bound(Fraction(r)))

    found = [at(r.item() if isinstance(r, np.generic) else r) for r in values.ravel().tolist()]
    return np.array(found).reshape(values.shape) if values.ndim else found[0]


# -- checks -------------------------------------------------------------------------------------


def _exact_low(transform: Transform, offset: Exact, low: float) -> Any:
    """Return φ(a) as exactly as it is known."""
    if transform.root is not None:
        root = symbolic(offset) ** sympy.Rational(1, transform.root)
        return root if root.is_Rational else as_float(root)
    return low


def _check_log(transform: Transform, noise: Laplace | Gaussian, offset: Exact) -> None:
    if transform.name != "log":
        return
    if offset <= 0:
        raise TrueupError(f"the logarithm needs an offset above 0, got {offset}", "e.g. offset=1")
    if noise.by_curvature and noise.scale >= 1:
        raise TrueupError(
            f"under the logarithm the scale must be below 1, got {noise.scale}",
            "at scale 1 and above no unbiased estimator exists; below 1/2 it has a variance",
        )
    if noise.by_curvature and noise.scale >= 0.5:
        warnings.warn(
            f"scale {noise.scale} under the logarithm: the estimate is unbiased but its variance "
            "is infinite; it is finite below 1/2",
            stacklevel=3,
        )
