"""OpenDP: measurements, their serialized form, and the summary of a Polars query."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from reprlib import repr as shortly
from typing import Any

from trueup.adapters.attributes import kind, law, parameter, refusal
from trueup.adapters.clamping import unclamped
from trueup.adapters.opendp_summary import is_summary, read_summary
from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.exact import Exact
from trueup.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Noise

FINE = 2.0**-20
"""Grids finer than this fraction of the scale are as good as the real line."""

GRIDS = range(-1100, 1024)
"""Powers of two that a double holds, and those that are 0 to it."""

INNER = {
    "make_chain_mt": "measurement1",
    "make_approximate": "measurement",
    "make_fix_delta": "measurement",
    "make_fixed_approxDP_to_approxDP": "measurement",
    "make_population_amplification": "measurement",
    "make_pureDP_to_fixed_approxDP": "measurement",
    "make_pureDP_to_zCDP": "measurement",
    "make_zCDP_to_approxDP": "measurement",
}
"""Wrappers that change the privacy statement or prepare the data, not the noise."""

COMPOSITIONS = ("make_composition", "make_basic_composition")

SELECTS = "it selects or randomises a value, it does not add noise to a number"
ASKED = "the measurements are not known until they are asked"
REASONS = {
    "make_chain_pm": "an unknown function is applied after the noise",
    "make_canonical_noise": "canonical noise is not among trueup's families",
    "make_user_measurement": "a user's measurement does not say what noise it adds",
    "make_private_expr": "an expression alone does not say what it publishes",
    "make_adaptive_composition": ASKED,
    "make_sequential_composition": ASKED,
    "make_fully_adaptive_composition": ASKED,
    "make_privacy_filter": ASKED,
    "measurement_invoke": ASKED,
    "make_noisy_max": SELECTS,
    "make_noisy_top_k": SELECTS,
    "make_report_noisy_max_gumbel": SELECTS,
    "make_private_quantile": SELECTS,
    "make_randomized_response": SELECTS,
    "make_randomized_response_bool": SELECTS,
    "make_randomized_response_bitvec": SELECTS,
    "make_select_private_candidate": "it publishes only a candidate that was good enough",
    "make_alp_queryable": "its answers are estimates from hashed bits",
}
HINTS = {
    "make_chain_pm": "pass the measurement before post-processing, and use what it published",
    ASKED: "pass each measurement that you ask, one by one",
    "make_private_expr": "pass query.summarize()",
}

_HINT = "pass a measurement, dp.serialize(measurement), or query.summarize()"


def from_opendp(source: Any, domain: Any = None, signed: bool = False) -> Any:
    """Return the noise of an OpenDP measurement, or the noises of a composition or a query.

    Integers get discrete Laplace or discrete Gaussian noise, floats the same on a grid which by
    default is so fine that the noise is continuous. A coarse grid, a threshold, post-processing and
    clamped values are refused.

    Parameters
    ----------
    source
        A measurement (also of vectors: the noise of each coordinate); what ``dp.serialize`` makes
        of it; a query of ``dp.Context``; or the frame that ``query.summarize()`` returns.
    domain
        Where the true value lies, as for ``tu.unbiased`` (in a composition: all of them; for the
        columns of a query on Polars frames also a dict, ``{"len": (30, None)}``). Needed
        for values that stop at a bound: unsigned integers and ``make_geometric(bounds=...)``.
    signed
        That the integers of a query on Polars frames are signed, as ``dp.len(signed=True)`` makes
        them: a summary does not tell.

    Returns
    -------
    Noise, list or dict
        A noise; a list, in order, for a composition; {column: noise} for a query on Polars frames.
        A summary does not say whether a count is unsigned and so stops at 0 (``dp.len()`` does by
        default). Under Laplace noise state a domain that starts at 0 or above when you estimate, as
        counts allow, and the estimates are the same. Under Gaussian noise they are not: such a
        column is refused unless it is ``signed``, or the domain is out of reach of the noise.

    Examples
    --------
    >>> count = {"__function__": "make_laplace", "__kwargs__": {"scale": 2.0, "k": None,
    ...     "input_domain": {"__function__": "atom_domain", "__kwargs__": {"T": "i32"}}}}
    >>> from_opendp(count)
    DiscreteLaplace(2)
    >>> from_opendp({"column": ["len"], "aggregate": ["Frame Length"],
    ...              "distribution": ["Integer Laplace"], "scale": [4.0]})
    {'len': DiscreteLaplace(4)}
    """
    if isinstance(source, str):
        source = _parse(source)
    by_column = isinstance(domain, Mapping)
    stated: Any = {n: Interval.read(d) for n, d in domain.items()} if by_column else None
    if domain is not None and not by_column:
        stated = Interval.read(domain)
    if hasattr(type(source), "summarize"):
        source = source.summarize()
    if is_summary(source):
        return read_summary(source, stated, signed)
    if by_column:
        raise TrueupError(
            f"a domain for each column is for a query on Polars frames, got {stated!r} for "
            f"{kind(source)}",
            "pass query.summarize(), or one domain such as (1, None)",
        )
    if hasattr(type(source), "resolve"):
        source = source.resolve()
    try:
        return _walk(source, stated, signed)
    except RecursionError:
        raise TrueupError("the measurement is nested too deeply", _HINT) from None


def _parse(text: str) -> Any:
    """Return what a serialized measurement holds."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # no JSON, numbers or nests without end
        hint = "pass what dp.serialize(measurement) returns"
        raise TrueupError(f"the text is not a serialized measurement: {error}", hint) from None


def _constructor(source: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the name of the function that made an OpenDP object, and its arguments."""
    name, arguments = _recorded(getattr(source, "__opendp_dict__", source))
    if name is not None and arguments is not None:
        return name, arguments
    raise TrueupError(f"{kind(source)} is no OpenDP measurement, got {shortly(source)}", _HINT)


def _recorded(source: Any) -> tuple[str | None, Mapping[str, Any] | None]:
    """Return the constructor and the arguments of a serialized object, None for what is neither."""
    if not isinstance(source, dict):
        return None, None
    name, arguments = source.get("__function__"), source.get("__kwargs__")
    return (
        name if isinstance(name, str) else None,
        arguments if isinstance(arguments, dict) else None,
    )


def _argument(name: str, arguments: Mapping[str, Any], key: str) -> Any:
    """Return an argument of a constructor, or say that it is missing."""
    if key in arguments:
        return arguments[key]
    raise TrueupError(f"{name} has no argument {key}, got {shortly(dict(arguments))}", _HINT)


def _walk(source: Any, domain: Interval | None, signed: bool) -> Any:
    """Return the noise below all wrappers; a list for a composition."""
    name, arguments = _constructor(source)
    if name in INNER:
        return _walk(_argument(name, arguments, INNER[name]), domain, signed)
    if name in COMPOSITIONS:
        parts = _argument(name, arguments, "measurements")
        if not isinstance(parts, (list, tuple)):
            raise TrueupError(f"the measurements of {name} are a list, got {shortly(parts)}", _HINT)
        return [_walk(measurement, domain, signed) for measurement in parts]
    if name == "make_private_lazyframe":
        return _lazyframe(source, domain, signed)
    family = _families(name, arguments)
    if family is None:
        raise _refusal(name)
    return _additive(name, arguments, family, domain)


Families = tuple[Callable[[Any], Noise], Callable[[Any], Noise]]
LAPLACE: Families = (DiscreteLaplace, Laplace)
GAUSSIAN: Families = (DiscreteGaussian, Gaussian)


def _families(name: str, arguments: Mapping[str, Any]) -> Families | None:
    """Return the family on the integers and the one on the line that a constructor adds."""
    if name == "make_noise":
        measure = _argument(name, arguments, "output_measure")
        measure = _constructor(measure)[0] if isinstance(measure, dict) else str(measure)
        return {
            "max_divergence": LAPLACE,
            "MaxDivergence": LAPLACE,
            "zero_concentrated_divergence": GAUSSIAN,
            "ZeroConcentratedDivergence": GAUSSIAN,
        }.get(measure)
    families = {"make_laplace": LAPLACE, "make_geometric": LAPLACE, "make_gaussian": GAUSSIAN}
    return families.get(name)


def _additive(
    name: str, arguments: Mapping[str, Any], families: Families, domain: Interval | None
) -> Noise:
    """Return the noise of a constructor that adds it to integers or floats."""
    scale = parameter(_argument(name, arguments, "scale"), "scale")
    atom = _carrier(_argument(name, arguments, "input_domain"), name)
    if atom.startswith("f"):
        _check_grid(name, arguments.get("k"), scale)
        return law(families[1], scale)
    noise = law(families[0], scale)
    bounds = arguments.get("bounds")
    if isinstance(bounds, dict):
        bounds = bounds.get("__tuple__")
    if bounds is not None:
        clamp = Interval.read(bounds)
        return unclamped(noise, clamp, domain, f"{name}(bounds={tuple(bounds)})")
    clamp = Interval(0, None) if atom.startswith("u") else Interval()  # signed ones stop far away
    return unclamped(noise, clamp, domain, f"{name} on unsigned integers ({atom})")


def _check_grid(name: str, k: int | None, scale: Exact) -> None:
    """Raise if floats are rounded to a grid that is coarse beside the noise."""
    if k is not None and not (isinstance(k, int) and k in GRIDS):
        raise TrueupError(f"k of {name} is the exponent of a grid 2^k, got {shortly(k)}", _HINT)
    if k is None or not scale or 2.0**k <= FINE * scale:
        return
    raise refusal(
        f"{name}(k={k})",
        f"values are rounded to multiples of 2^{k} = {2.0**k:g}, coarse for noise of scale {scale}",
        f"leave k out; or, if the statistic itself is a multiple of {2.0**k:g}, divide what was "
        f"published by it and use integer noise of scale {float(scale) / 2.0**k:g}",
    )


def _lazyframe(source: Any, domain: Interval | None, signed: bool) -> dict[str, Noise]:
    """Return the noises of a measurement on Polars frames, as OpenDP itself summarises it."""
    if isinstance(source, dict):
        why = "a serialized query does not say what its noises are"
        raise refusal("make_private_lazyframe", why, "pass query.summarize()")
    from trueup.extras import optional

    accuracy = optional("opendp.accuracy", "private", "reading a query on Polars frames")
    return read_summary(accuracy.summarize_polars_measurement(source), domain, signed)


def _refusal(name: str) -> TrueupError:
    """Return why what this constructor makes has no noise to read."""
    if name.startswith("then_"):
        why = "it has not met its data, so integers and floats cannot be told apart"
        return refusal(name, why, "apply it first: space >> dp.m." + name + "(...)")
    if "threshold" in name:
        why = "values below a threshold are dropped, which biases those that are kept"
        return refusal(name, why, "publish a fixed set of categories, or read the noise of sums")
    why = REASONS.get(name, "the constructor is not known")
    fallback = "pass a measurement made with make_laplace, make_gaussian or make_noise"
    return refusal(name, why, HINTS.get(name, HINTS.get(why, fallback)))


# -- which numbers the noise is added to -----------------------------------------------------------

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


def _carrier(domain: Any, what: str) -> str:
    """Return the type of the numbers of a domain, e.g. ``i32``; vectors count as their elements."""
    name = _type(domain)
    found = ATOM.fullmatch(name) if name else None
    if found:
        return found[1]
    why = "the type of its numbers is not stated"
    why = f"it acts on {name[:40]}, not on numbers" if name else why
    raise refusal(what, why, "pass the measurement itself, or describe the noise, e.g. tu.Laplace")


def _type(source: Any) -> str | None:
    """Return the carrier type of a domain object, or of a serialized domain."""
    if hasattr(source, "carrier_type"):
        return str(source.carrier_type)
    name, arguments = _recorded(source)
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
    name, arguments = _recorded(source)
    arguments = arguments or {}
    for key in ("TO", "TOA"):
        if isinstance(arguments.get(key), str):
            return str(arguments[key])
    if name == "make_chain_tt":
        return _output(arguments.get("transformation1"))
    return _type(arguments.get("input_domain")) if name in SAME else None


def _input(source: Any) -> str | None:
    """Return the type of what a serialized transformation or measurement takes."""
    arguments = _recorded(source)[1] or {}
    for key in ("transformation0", "measurement", "measurement0"):
        if isinstance(arguments.get(key), dict):
            return _input(arguments[key])
    return _type(arguments.get("input_domain"))
