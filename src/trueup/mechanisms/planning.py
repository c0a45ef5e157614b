"""Which mechanism, which split of the budget, which error to expect: computed, not assumed."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.mechanisms.groups import GroupMean, GroupShare
from trueup.mechanisms.means import Mean, SmoothSensitivityMean, TwoTotalsMean
from trueup.mechanisms.records import read_bounds
from trueup.notebook import table

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.mechanisms.released import Mechanism

    Choice = tuple[Mechanism, str]

_SPLIT = (0.05, 0.95)
_MOST = 10**7
_LEAP = 8  # times as many records are tried while the sd is more than e times the target
_NOTHING = 1e-300  # an sd of 0 has no logarithm
_PROMISED = 99
"""A larger promise than this changes nothing in a group mean."""


@dataclasses.dataclass(frozen=True)
class Option:
    """One mechanism at its best split, and what to expect of it.

    ``sd`` is the worst over the mean range at the expected count, ``useful_from`` the smallest
    count with an sd below the target. What is not ``private`` can only be simulated; ``only`` says
    which records a mechanism takes, if not all within the bounds.
    """

    name: str
    mechanism: Mechanism
    split: str
    sd: float
    sd_count: float
    useful_from: int | None

    @property
    def private(self) -> bool:
        """Whether it can be released privately."""
        return self.mechanism.is_private

    @property
    def only(self) -> str:
        """Which records it takes, "" for all within the bounds."""
        return self.mechanism.only

    @property
    def is_for_all(self) -> bool:
        """Whether it can be released privately whatever the records are."""
        return self.private and not self.only


@dataclasses.dataclass(frozen=True, repr=False)
class Plan:
    """The options, best first; printing it shows a table."""

    epsilon: Exact
    expected_count: int
    means: tuple[float, ...]
    target: float
    options: tuple[Option, ...]

    @property
    def best(self) -> Option:
        """The option with the smallest worst-case sd of those private for records of any kind."""
        return next(o for o in self.options if o.is_for_all)

    @property
    def _title(self) -> str:
        worst = "worst over means " + ", ".join(f"{m:g}" for m in self.means)
        return f"epsilon = {self.epsilon}, n = {self.expected_count}, {worst}"

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        """The head and a row for each option, as text."""
        head = ("mechanism", "budget", "sd of mean", "sd of n", f"sd<{self.target:g} from")
        rows: list[tuple[str, ...]] = [head]
        for o in self.options:
            useful = "never" if o.useful_from is None else f"n = {o.useful_from}"
            count = "–" if math.isnan(o.sd_count) else f"{o.sd_count:.3g}"
            rows.append((o.name, o.split, f"{o.sd:.4g}", count, useful))
        return rows

    def __str__(self) -> str:
        lines = (
            f"{name:<27}{split:<28}{sd:>11}{count:>9}{useful:>14}"
            for name, split, sd, count, useful in self._rows
        )
        return "\n".join([self._title, *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *rows = self._rows
        return table(head, rows, self._title)


def plan(
    epsilon: Exact,
    expected_count: int,
    bounds: tuple[Exact, Exact] = (0, 1),
    means: Sequence[float] | None = None,
    count_at_least: Exact = 1,
    target: float | None = None,
) -> Plan:
    """Return the mechanisms for a mean, each at its best split, best first.

    What has no table, or no computable standard deviation, at this budget is left out. Within
    (0, 1) what is for records of 0 and 1 only is listed, too; ``best`` is for all records.

    Parameters
    ----------
    epsilon
        The total budget.
    expected_count
        How many records there will be, roughly.
    bounds
        Where the values lie.
    means
        Plausible means; the worst of them counts. By default the bounds, their middle,
        and a tenth of the way, where group means are worst.
    count_at_least
        The public lower bound of the count.
    target
        The sd from which the mean is useful; by default a tenth of the range.

    Examples
    --------
    >>> best = plan(1, expected_count=200).best
    >>> best.name, round(best.sd, 4)
    ('group mean', 0.0063)
    """
    low, high = (Fraction(b) for b in read_bounds(bounds))
    n = _count(expected_count, count_at_least)
    budget = number(epsilon, "epsilon", positive=True)
    usual = (low, (9 * low + high) / 10, (low + high) / 2, high)
    given = usual if means is None else np.atleast_1d(means).tolist()
    exact = tuple(number(m, "a mean") for m in given)
    if not exact or any(not low <= m <= high for m in exact):
        raise TrueupError(
            f"a mean lies outside the bounds {bounds}: {given}", "give plausible means"
        )
    aim = float(
        number(target, "target", positive=True) if target is not None else (high - low) / 10
    )
    options = []
    for name, choose in _choices(budget, bounds, count_at_least, n, exact):
        with contextlib.suppress(TrueupError):  # a table or a standard deviation that is refused
            mechanism, split = choose()
            sds = worst_sd(mechanism, n, exact), _worst_count(mechanism, n, exact)
            useful = _useful_from(mechanism, exact, aim)
            options.append(Option(name, mechanism, split, *sds, useful))
    shown = tuple(float(m) for m in exact)
    return Plan(budget, n, shown, aim, tuple(sorted(options, key=lambda o: o.sd)))


def _count(expected: object, at_least: object) -> int:
    n = number(expected, "expected_count", positive=True)
    if n != int(n) or n < number(at_least, "count_at_least", positive=True):
        raise TrueupError(
            f"expected_count must be a whole number, at least count_at_least, got {expected!r}",
            "e.g. plan(1, expected_count=200)",
        )
    return int(n)


def _choices(
    epsilon: Exact, bounds: Any, at_least: Exact, n: int, means: tuple[Exact, ...]
) -> Iterator[tuple[str, Callable[[], Choice]]]:
    """Yield every mechanism's name, and how to choose its options and its split of the budget."""
    promises = ["midpoint", *([f"n >= {math.ceil(at_least)}"] if 1 < at_least <= _PROMISED else [])]
    makers: dict[str, Callable[[str], Mechanism]] = {
        "group mean": partial(GroupMean, epsilon, bounds)
    }
    if tuple(bounds) == (0, 1):
        makers["group share, 0/1 records"] = partial(GroupShare, epsilon)
    for name, maker in makers.items():
        yield name, partial(_best_promise, maker, promises, n, means)
    two = TwoTotalsMean(epsilon, bounds, at_least)
    yield "two totals", lambda: (two, "all for both totals")
    families: dict[str, dict[str, Any]] = {
        "centred mean": {},
        "centred mean, discrete": {"count_noise": "discrete"},
        "plain mean (M_U)": {"centred": False},
    }
    whole = float(epsilon)

    def divided(options: dict[str, Any], share: float) -> Mean:
        count = share * whole
        return Mean(count, whole - count, bounds, at_least, **options)

    for name, options in families.items():
        yield name, partial(_best_split, partial(divided, options), n, means)
    smooth = SmoothSensitivityMean(whole / 2, whole / 2, bounds)
    yield "smooth sensitivity (M_SS)", lambda: (smooth, "halves; simulation only")


def _best_promise(
    make: Callable[[str], Mechanism], promises: list[str], n: int, means: tuple[Exact, ...]
) -> Choice:
    """Return a group mean with the promise that is best, of those that are not refused."""
    found = []
    for promise in promises:
        with contextlib.suppress(TrueupError):
            mechanism = make(promise)
            found.append((worst_sd(mechanism, n, means), mechanism))
    if not found:
        raise TrueupError("no group mean is possible at this budget", "raise epsilon")
    return min(found, key=lambda f: f[0])[1], "all for both counts"


def _best_split(make: Callable[[float], Mean], n: int, means: tuple[Exact, ...]) -> Choice:
    """Return a mean at the split of the budget with the smallest worst-case sd."""
    found = optimize.minimize_scalar(
        lambda share: math.log(worst_sd(make(share), n, means)),
        bounds=_SPLIT,
        method="bounded",
        options={"xatol": 5e-3},
    )
    share = float(found.x)
    return make(share), f"count {share:.2f}, sum {1 - share:.2f} of ε"


def worst_sd(mechanism: Mechanism, n: int, means: Sequence[Exact]) -> float:
    """Return the largest sd over some means, or over those beside them.

    Examples
    --------
    >>> round(worst_sd(GroupShare(1), 5, [0.5]), 4)  # two or three of five
    0.2595
    """
    return float(max(mechanism.sd(n, mean) for mean in mechanism.places(n, means)))


def _worst_count(mechanism: Mechanism, n: int, means: Sequence[Exact]) -> float:
    return float(max(mechanism.sd_count(n, mean) for mean in mechanism.places(n, means)))


def _useful_from(mechanism: Mechanism, means: tuple[Exact, ...], target: float) -> int | None:
    """Return the smallest count from which the worst sd stays below the target."""

    def excess(n: int) -> float:
        return math.log(max(worst_sd(mechanism, n, means), _NOTHING) / target)

    low = math.ceil(mechanism.count_at_least)
    over = excess(low)
    if over < 0:
        return low
    while True:
        high = low * 2 if over < 1 else low * _LEAP
        under = excess(high)
        if under < 0:
            return _crossing(excess, (low, over), (high, under))
        low, over = high, under
        if high * 2 > _MOST:
            return None


def _crossing(
    excess: Callable[[int], float], above: tuple[int, float], below: tuple[int, float]
) -> int:
    """Return the first whole number with a negative excess, a straight line in log n at best.

    The end that stays twice counts half, so that the other one moves, too; what a line cannot
    halve is halved.
    """
    (low, over), (high, under), kept = above, below, 0
    while high - low > 1:
        width = math.log(high / low)
        guess = round(low * math.exp(width * over / (over - under)))
        if abs(kept) > 2:
            guess = (low + high) // 2
        n = min(max(guess, low + 1), high - 1)
        found = excess(n)
        if found < 0:
            high, under, kept = n, found, max(kept, 0) + 1
            over /= 2 if kept > 1 else 1
        else:
            low, over, kept = n, found, min(kept, 0) - 1
            under /= 2 if kept < -1 else 1
    return high
