"""Plan a private mean: which mechanism, which split of the budget, which error to expect."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trueup.explorer.refused import Refusal
from trueup.explorer.views.code import literal
from trueup.explorer.views.form import filled, number, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.mechanisms.planning import Option, Plan

_USUAL = {"epsilon": "1", "count": "200", "low": "0", "high": "1", "least": "1"}
_COUNTS = 17
_MOST = 10**7


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options, best first, and the sd of each against the count.

    Those ``offered`` are private whatever the records are; the first of them is the best.

    Examples
    --------
    >>> shown = answer({"epsilon": "1", "count": "200", "low": "0", "high": "1"})
    >>> [o["name"] for o in shown["options"] if o["offered"]][:2]
    ['group mean', 'two totals']
    """
    from trueup.mechanisms.planning import plan

    given = {
        name: number(request.get(name, usual), f"plan.{name}") for name, usual in _USUAL.items()
    }
    target = request.get("target")
    aim = filled(request, "target", "plan.") if isinstance(target, str) else None
    _check(given, aim)
    made = plan(
        given["epsilon"],
        int(given["count"]),
        (given["low"], given["high"]),
        count_at_least=given["least"],
        target=None if aim is None else float(aim),
    )
    counts = _counts(float(given["least"]), made.expected_count)
    return {
        "options": [_option(o) for o in made.options],
        "means": list(made.means),
        "target": made.target,
        "counts": counts,
        "curves": _curves(made, counts),
        "python": _python(given),
    }


def _check(given: Mapping[str, Any], aim: Any) -> None:
    """Refuse values beside the field they stand in."""
    for name in ("epsilon", "count", "least"):
        if given[name] <= 0:
            raise _beside(name, f"must be positive, got {given[name]}", "write a positive number")
    if aim is not None and aim <= 0:
        raise _beside("target", f"must be positive, got {aim}", "leave it empty, or e.g. 0.1")
    if given["count"] != int(given["count"]) or given["count"] > _MOST:
        problem = f"must be a whole number up to {_MOST:,}, got {given['count']}"
        raise _beside("count", problem, "e.g. 200")
    if given["count"] < given["least"]:
        problem = f"must be at least the lower bound {given['least']}, got {given['count']}"
        raise _beside("count", problem, "expect more records, or lower the bound")
    if not given["low"] < given["high"]:
        problem = f"must exceed the lower bound {given['low']}, got {given['high']}"
        raise _beside("high", problem, "give the largest value of a record")


def _beside(name: str, problem: str, hint: str) -> Refusal:
    return Refusal(problem, hint, field=f"plan.{name}")


def _option(o: Option) -> dict[str, Any]:
    return {
        "name": o.name,
        "split": o.split,
        "sd": plain(o.sd),
        "sd_count": plain(o.sd_count),
        "useful_from": o.useful_from,
        "wrong_bound": plain(o.wrong_bound),
        "offered": o.is_for_all,
    }


def _counts(least: float, expected: int) -> list[int]:
    """Return counts evenly spread in their logarithm, around the expected one."""
    first = max(math.ceil(least), 1)
    last = max(4 * expected, 10 * first)
    ratio = (last / first) ** (1 / (_COUNTS - 1))
    return sorted({round(first * ratio**i) for i in range(_COUNTS)} | {expected})


def _curves(made: Plan, counts: list[int]) -> dict[str, list[Any]]:
    """Return the worst sd over the means at each count."""
    from trueup.mechanisms.planning import worst_sd

    return {
        o.name: [plain(worst_sd(o.mechanism, n, made.means)) for n in counts] for o in made.options
    }


def _python(given: Mapping[str, Any]) -> str:
    epsilon, low, high, least = (literal(given[n]) for n in ("epsilon", "low", "high", "least"))
    return (
        "import trueup as tu\n\n"
        f"plan = tu.mechanisms.plan(\n    {epsilon}, expected_count={int(given['count'])}, "
        f"bounds=({low}, {high}), count_at_least={least}\n)\n"
        "print(plan)\n"
        "mechanism = plan.best.mechanism  # mechanism.release(values) is private and unbiased"
    )
