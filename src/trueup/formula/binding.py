"""Which parameter of a Python function receives which statistic: by name, never by chance order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from trueup.errors import TrueupError

_Parameter = inspect.Parameter
_COLLECTING = (_Parameter.VAR_POSITIONAL, _Parameter.VAR_KEYWORD)


def by_name(f: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return f as a function of the statistics in the order given, each passed by its name.

    A single statistic is the function's one argument, whatever that is called. A parameter with a
    default that is no statistic keeps its default.

    Examples
    --------
    >>> by_name(lambda s, n, k=2: s / n**k, ["n", "s"])(10, 3)
    0.03
    """
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # a builtin that does not say
        if len(names) > 1:
            raise _nameless(f, names) from None
        return f
    if len(names) == 1 and _takes_one(signature):
        return f
    parameters = list(signature.parameters.values())
    _check(f, parameters, names)
    ahead = [p.name for p in parameters if p.kind is _Parameter.POSITIONAL_ONLY]
    return _passing(f, names, [name for name in ahead if name in names])


def parameter_name(f: Callable[..., Any]) -> str | None:
    """Return what a function calls its one argument, None where it does not say.

    Builtins and ufuncs call theirs x whatever it is: it cannot be passed by that name.

    Examples
    --------
    >>> import math
    >>> parameter_name(lambda n: 1 / n), parameter_name(math.sqrt)
    ('n', None)
    """
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return None
    first = parameters[0] if parameters else None
    named = first is not None and first.kind is _Parameter.POSITIONAL_OR_KEYWORD
    return first.name if first and named and not first.name.startswith("_") else None


def _takes_one(signature: inspect.Signature) -> bool:
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def _check(f: Callable[..., Any], parameters: Sequence[_Parameter], names: Sequence[str]) -> None:
    """Refuse a function whose parameters are not the statistics."""
    own = {p.name: p for p in parameters if p.kind not in _COLLECTING}
    needed = [n for n, p in own.items() if p.default is p.empty and n not in names]
    collects = any(p.kind is _Parameter.VAR_KEYWORD for p in parameters)
    missing = [] if collects else [n for n in names if n not in own]
    if missing and not own:
        raise _nameless(f, names)
    ahead = [n for n, p in own.items() if p.kind is _Parameter.POSITIONAL_ONLY]
    while ahead and ahead[-1] not in names:  # defaults at the end can be left out
        ahead.pop()
    needed += [n for n in ahead if n not in names and n not in needed]
    if needed or missing:
        raise _mismatch(f, names, needed, missing)


def _nameless(f: Callable[..., Any], names: Sequence[str]) -> TrueupError:
    return TrueupError(
        f"the parameters of {f!r} have no names, so which of {', '.join(names)} comes first is "
        "not known",
        f"name them: lambda {', '.join(names)}: ...",
    )


def _mismatch(
    f: Callable[..., Any], names: Sequence[str], needed: Sequence[str], missing: Sequence[str]
) -> TrueupError:
    shown = getattr(f, "__name__", type(f).__name__)
    reasons = []
    if needed:
        reasons.append(f"needs {', '.join(needed)}, which is no statistic")
    if missing:
        reasons.append(f"has no parameter {', '.join(missing)}")
    call = ", ".join(names)
    return TrueupError(
        f"the function {shown} {' and '.join(reasons)}: the statistics are {call}",
        f"its parameters must be called like the statistics: lambda {call}: ..."
        if len(names) > 1
        else "give a function of one argument",
    )


def _passing(
    f: Callable[..., Any], names: Sequence[str], ahead: Sequence[str]
) -> Callable[..., Any]:
    """Return a function of the statistics in order that passes each to its parameter."""
    rest = [name for name in names if name not in ahead]

    def call(*values: Any) -> Any:
        given = dict(zip(names, values, strict=True))
        return f(*(given[name] for name in ahead), **{name: given[name] for name in rest})

    return call
