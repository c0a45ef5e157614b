"""Why there is no unbiased estimator, in words, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from trueup.domain import Interval
from trueup.errors import NoUnbiasedEstimator
from trueup.formula.substitution import denominators
from trueup.formula.text import text
from trueup.inverse.smooth import Kind, Trouble, ends_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_REASONS = {
    Kind.POLE: "pole at {at}: {f} is unbounded near {s} = {a}",
    Kind.JUMP: "jump at {at}: the value of {f} jumps by {g:g} at {s} = {a}",
    Kind.STEEP: "infinite slope at {at}: the slope of {f} is unbounded near {s} = {a}",
    Kind.KINK: "kink at {at}: the slope of {f} jumps by {g:g} at {s} = {a}",
    Kind.UNDEFINED: "{f} is not a real number at {s} = {a}",
    Kind.UNDECIDED: "{f} could not be shown to be smooth near {s} = {a}",
}
_ONE_SIDE = (
    "keep the domain on one side of {a}{e}; integer noise (DiscreteLaplace) has no such limit"
)
_AWAY = "bound the domain away from {a}{e}"
_HINTS = {
    Kind.POLE: _AWAY,
    Kind.STEEP: _AWAY,
    Kind.JUMP: _ONE_SIDE,
    Kind.KINK: _ONE_SIDE,
    Kind.UNDEFINED: "bound the domain to where the formula is real",
    Kind.UNDECIDED: "bound the domain further, or write the formula more simply",
}


def refusal(what: str, reason: str, hint: str, *, proved: bool) -> NoUnbiasedEstimator:
    """Return the refusal of an estimator: there is none, or none was found."""
    verdict = "" if proved else " was found"
    return NoUnbiasedEstimator(
        f"no unbiased estimator of {what}{verdict}: {reason}", hint, proved=proved
    )


def unproved(error: NoUnbiasedEstimator) -> NoUnbiasedEstimator:
    """Return a refusal that claims less: none was found.

    Examples
    --------
    >>> unproved(NoUnbiasedEstimator("no unbiased estimator of |q|: kink at 0", "none")).message
    'no unbiased estimator of |q| was found: kink at 0'
    """
    what, _, reason = error.message.partition(": ")
    return NoUnbiasedEstimator(f"{what} was found: {reason}", error.hint, proved=False)


def no_number_at(
    f: sympy.Expr, point: Mapping[sympy.Symbol, Any], *, too_large: bool = False
) -> NoUnbiasedEstimator:
    """Return the refusal of a formula that has no value at a point, or none that is a double."""
    shown = ((text(s), float(v)) for s, v in point.items())
    place = ", ".join(f"{s} = {v:.17g}" if v.is_integer() else f"{s} = {v:g}" for s, v in shown)
    if too_large:
        reason = f"its value at {place} is beyond 1.8e308, the largest double"
    else:
        reason = f"it is not a finite number at {place} (a pole inside the domain, or undefined)"
    empty = ", or say what it is in empty cells: empty=value" if denominators(f) else ""
    hint = f"bound the domain to where the formula is finite{empty}"
    return refusal(text(f), reason, hint, proved=not too_large)


def refusal_at(
    f: sympy.Expr, found: Trouble, box: Mapping[sympy.Symbol, Interval]
) -> NoUnbiasedEstimator:
    """Return the refusal for what f does at a point."""
    domain = box.get(found.symbol, Interval())
    others = {s: x for s, x in found.where.items() if s in f.free_symbols}
    if found.kind is Kind.UNDEFINED and domain.lattice:
        return no_number_at(f, {found.symbol: found.point, **others})
    a, at_bound = f"{found.point:.6g}", found.exact in ends_of(domain)
    words = {"a": a, "at": f"the bound {a}" if at_bound else a, "g": found.gap}
    words |= {"f": text(f), "s": text(found.symbol), "e": _example(found, domain)}
    reason = _REASONS[found.kind].format(**words)
    if found.proved and not at_bound:
        reason += ", inside the domain"
    if others:
        shown = ", ".join(f"{text(s)} = {float(x):.6g}" for s, x in others.items())
        reason += f" (e.g. with {shown})"
    hint = _HINTS[found.kind].format(**words)
    return refusal(f"{text(f)} on {domain}", reason, hint, proved=found.proved)


def _example(found: Trouble, domain: Interval) -> str:
    """Return a domain beside a point, at a distance from all but kinks, as the end of a hint."""
    a, (low, high) = float(f"{found.point:.6g}"), domain.bounds
    above = a if found.kind is Kind.KINK else a + 1 if high is None else (a + float(high)) / 2
    below = a if found.kind is Kind.KINK else a - 1 if low is None else (a + float(low)) / 2
    low, high = (above, high) if high is None or above < high else (low, below)
    ends = ("None" if end is None else f"{float(end):.12g}" for end in (low, high))
    return f", e.g. domain={{{found.symbol.name!r}: ({', '.join(ends)})}}"
