"""Which mechanism, which split of the budget, which error to expect: computed, not assumed."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Collection, Sequence
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

    _Group = GroupMean | GroupShare

_SPLIT = (0.05, 0.95)
_MOST = 10**7
_LEAP = 8  # times as many records are tried while the sd is more than e times the target
_BINARY = "0/1 records"
_SAME = 1e-9  # a total of 0/1 records that is nearer than this to a whole number is that number
_NOTHING = 1e-300  # an sd of 0 has no logarithm
_WIDE = 8  # a scale of noise beside which the ¼ of rounding is below 0.2 % of the variance
_PROMISED = 99
"""A larger promise than this changes nothing in a group mean."""


@dataclasses.dataclass(frozen=True)
class Option:
    """One mechanism at its best split, and what to expect of it.

    ``sd`` is the worst over the mean range at the expected count, ``useful_from`` the smallest
    count with an sd below the target, ``wrong_bound`` the bias of the mean if there are only half
    as many records as ``count_at_least`` promises. What is not ``private`` can only be simulated;
    ``only`` says which records a mechanism takes, if not all within the bounds.
    """

    name: str
    mechanism: Any
    split: str
    sd: float
    sd_count: float
    useful_from: int | None
    wrong_bound: float | None
    private: bool = True
    only: str = ""

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
        rows: list[tuple[str, ...]] = [(*head, "bias, bound wrong")]
        for o in self.options:
            useful = "never" if o.useful_from is None else f"n = {o.useful_from}"
            count = "–" if math.isnan(o.sd_count) else f"{o.sd_count:.3g}"
            wrong = "–" if o.wrong_bound is None else f"{o.wrong_bound:.3g}"
            rows.append((o.name, o.split, f"{o.sd:.4g}", count, useful, wrong))
        return rows

    def __str__(self) -> str:
        lines = (
            f"{name:<27}{split:<28}{sd:>11}{count:>9}{useful:>14}{wrong:>19}"
            for name, split, sd, count, useful, wrong in self._rows
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
    choices = _choices(float(budget), budget, bounds, count_at_least, n, exact)
    for name, make, split in choices:
        with contextlib.suppress(TrueupError):  # a standard deviation that is refused
            options.append(_option(name, make, split, n, exact, aim))
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
    epsilon: float, exact: Exact, bounds: Any, at_least: Exact, n: int, means: tuple[Exact, ...]
) -> Any:
    """Yield every mechanism at its best split as (name, mechanism, split)."""
    promises = ["midpoint", *([f"n >= {math.ceil(at_least)}"] if 1 < at_least <= _PROMISED else [])]
    makers: dict[str, Callable[[str], _Group]] = {"group mean": partial(GroupMean, exact, bounds)}
    if tuple(bounds) == (0, 1):
        makers[f"group share, {_BINARY}"] = partial(GroupShare, exact)
    for name, maker in makers.items():
        groups = [m for p in promises for m in _possible(partial(maker, p), n, means)]
        if groups:
            yield name, min(groups, key=lambda m: worst_sd(m, n, means)), "all for both counts"
    yield "two totals", TwoTotalsMean(exact, bounds, at_least), "all for both totals"
    families: dict[str, Callable[[float], Any]] = {
        "centred mean": lambda e: Mean(e, epsilon - e, bounds, at_least),
        "centred mean, discrete": lambda e: Mean(
            e, epsilon - e, bounds, at_least, count_noise="discrete"
        ),
        "plain mean (M_U)": lambda e: Mean(e, epsilon - e, bounds, at_least, centred=False),
    }
    for name, make in families.items():
        share = _best_split(make, epsilon, n, means)
        words = f"count {share:.2f}, sum {1 - share:.2f} of ε"
        yield name, make(share * epsilon), words
    yield (
        "smooth sensitivity (M_SS)",
        SmoothSensitivityMean(epsilon / 2, epsilon / 2, bounds),
        "halves; simulation only",
    )


def _possible(make: Callable[[], _Group], n: int, means: tuple[Exact, ...]) -> tuple[_Group, ...]:
    """Return the mechanism, or nothing where it, its table or its sd is refused."""
    try:
        group = make()
        worst_sd(group, n, means)
    except TrueupError:
        return ()
    return (group,)


def _best_split(
    make: Callable[[float], Any], epsilon: float, n: int, means: tuple[Exact, ...]
) -> float:
    """Return the share of the budget for the count with the smallest worst-case sd."""
    found = optimize.minimize_scalar(
        lambda share: math.log(worst_sd(make(share * epsilon), n, means)),
        bounds=_SPLIT,
        method="bounded",
        options={"xatol": 5e-3},
    )
    return float(found.x)


def worst_sd(mechanism: Any, n: int, means: Sequence[Exact]) -> float:
    """Return the largest sd over some means, or over those beside them.

    Examples
    --------
    >>> round(worst_sd(GroupShare(1), 5, [0.5]), 4)  # two or three of five
    0.2595
    """
    return float(max(mechanism.sd(n, mean) for mean in _places(mechanism, n, means)))


def _places(mechanism: Any, n: int, means: Sequence[Exact]) -> Collection[Exact]:
    """Return the means to look at: of 0/1 records those beside the given ones.

    A total that is not whole is rounded at random: so of group means also one that is half way.
    """
    if isinstance(mechanism, GroupShare):
        return _shares(n, means)
    if (
        isinstance(mechanism, GroupMean)
        and not mechanism.is_dithered
        and mechanism.noise.scale < _WIDE
    ):
        low, high = (Fraction(b) for b in mechanism.bounds)
        half = (high - low) / (2 * n)
        inner = (Fraction(m) for m in means if low < m < high)
        return {*means, *(m + half if m + half < high else m - half for m in inner)}
    return means


def _shares(n: int, means: Sequence[Exact]) -> set[Fraction]:
    """Return the means that n records of 0 and 1 can have, on both sides of those given."""
    found = set()
    for mean in means:
        total, near = Fraction(mean) * n, round(Fraction(mean) * n)
        whole = abs(total - near) < _SAME  # 0.1 is not 1/10
        found |= {near} if whole else {math.floor(total), math.ceil(total)}
    return {Fraction(ones, n) for ones in found}


def _option(
    name: str, mechanism: Any, split: str, n: int, means: tuple[Exact, ...], target: float
) -> Option:
    at_least = getattr(mechanism, "count_at_least", 1)
    return Option(
        name,
        mechanism,
        split,
        worst_sd(mechanism, n, means),
        _sd_count(mechanism, n, means),
        _useful_from(mechanism, at_least, means, target),
        _wrong_bound(mechanism, at_least, means),
        not isinstance(mechanism, SmoothSensitivityMean),
        _BINARY if isinstance(mechanism, GroupShare) else "",
    )


def _sd_count(mechanism: Any, n: int, means: Sequence[Exact]) -> float:
    if isinstance(mechanism, (GroupMean, GroupShare)):
        return max(mechanism.sd_count(n, mean) for mean in _places(mechanism, n, means))
    if isinstance(mechanism, TwoTotalsMean):
        return math.sqrt(2 * float(mechanism.noise.variance))
    noise = mechanism.noise["n"] if isinstance(mechanism, Mean) else mechanism.count_noise
    return math.sqrt(float(noise.variance))


def _useful_from(
    mechanism: Any, at_least: Exact, means: tuple[Exact, ...], target: float
) -> int | None:
    """Return the smallest count from which the worst sd stays below the target."""

    def excess(n: int) -> float:
        return math.log(max(worst_sd(mechanism, n, means), _NOTHING) / target)

    low = math.ceil(at_least)
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


def _wrong_bound(mechanism: Any, at_least: Exact, means: tuple[Exact, ...]) -> float | None:
    """Return the largest bias with half the promised records, None if no promise was used."""
    n = int(at_least) // 2
    if not hasattr(mechanism, "bias") or n < 1:
        return None
    return float(max((mechanism.bias(n, m) for m in _places(mechanism, n, means)), key=abs))
