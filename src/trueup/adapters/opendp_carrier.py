"""Which numbers an OpenDP measurement adds its noise to: integers or floats, signed or not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trueup.adapters.attributes import refusal
from trueup.domain import Interval

SAME = (
    "make_b_ary_tree",
    "make_clamp",
    "make_identity",
    "make_impute_constant",
    "make_mean",
    "make_ordered_random",
    "make_resize",
    "make_sum",
    "make_unordered",
    "make_variance",
)
"""Transformations whose output has the type of their input."""

ATOM = re.compile(r"(?:Vec<)?([fiu](?:8|16|32|64|128|size))>?")


def carrier(domain: Any, what: str) -> str:
    """Return the type of the numbers of a domain, e.g. ``i32``; vectors count as their elements.

    Examples
    --------
    >>> carrier({"__function__": "atom_domain", "__kwargs__": {"T": "f64"}}, "make_laplace")
    'f64'
    """
    name = _type(domain)
    found = ATOM.fullmatch(name) if name else None
    if found:
        return found[1]
    why = "the type of its numbers is not stated"
    why = f"it acts on {name[:40]}, not on numbers" if name else why
    raise refusal(what, why, "pass the measurement itself, or describe the noise, e.g. tu.Laplace")


def span(atom: str) -> Interval:
    """Return what an integer type can hold: unsigned integers stop at 0, signed ones far away.

    Examples
    --------
    >>> print(span("u32"), span("i64"))
    [0, ∞) (-∞, ∞)
    """
    return Interval(0, None) if atom.startswith("u") else Interval()


def recorded(source: Any) -> tuple[str | None, Mapping[str, Any] | None]:
    """Return the constructor and the arguments of a serialized object, None for what is neither.

    Examples
    --------
    >>> recorded({"__function__": "make_sum", "__kwargs__": {}}), recorded([1])
    (('make_sum', {}), (None, None))
    """
    if not isinstance(source, dict):
        return None, None
    name, arguments = source.get("__function__"), source.get("__kwargs__")
    return (
        name if isinstance(name, str) else None,
        arguments if isinstance(arguments, dict) else None,
    )


def _type(source: Any) -> str | None:
    """Return the carrier type of a domain object, or of a serialized domain."""
    if hasattr(source, "carrier_type"):
        return str(source.carrier_type)
    name, arguments = recorded(source)
    arguments = arguments or {}
    match name:
        case "atom_domain":
            return str(arguments.get("T"))
        case "vector_domain":
            return _type(arguments.get("atom_domain"))
        case "transformation_output_domain":
            return _output(arguments.get("this"))
        case "measurement_input_domain" | "transformation_input_domain":
            return _input(arguments.get("this"))
    return None


def _output(source: Any) -> str | None:
    """Return the type of what a serialized transformation gives."""
    name, arguments = recorded(source)
    arguments = arguments or {}
    for key in ("TO", "TOA"):
        if isinstance(arguments.get(key), str):
            return str(arguments[key])
    if name == "make_chain_tt":
        return _output(arguments.get("transformation1"))
    return _type(arguments.get("input_domain")) if name in SAME else None


def _input(source: Any) -> str | None:
    """Return the type of what a serialized transformation or measurement takes."""
    arguments = recorded(source)[1] or {}
    for key in ("transformation0", "measurement", "measurement0"):
        if isinstance(arguments.get(key), dict):
            return _input(arguments[key])
    return _type(arguments.get("input_domain"))
