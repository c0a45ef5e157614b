"""What every adapter does: read an attribute, name a law, refuse with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import Exact, number
from trueup.noise import Noiseless

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from trueup.noise import Noise


def parameter(value: object, name: str) -> Exact:
    """Return a parameter of a noise: a finite number, not negative.

    Examples
    --------
    >>> parameter(2.0, "scale")
    2
    """
    exact = number(value, name)
    if exact < 0:
        hint = "pass the object as the library made it"
        raise TrueupError(f"{name} must not be negative, got {value!r}", hint)
    return exact


def attribute(source: object, name: str) -> Exact:
    """Return a numerical attribute of another library's object, or say that it is missing."""
    try:
        value = getattr(source, name)
    except AttributeError:
        raise TrueupError(
            f"{kind(source)} has no attribute {name}, got {source!r}",
            "pass the mechanism itself, or describe the noise, e.g. tu.Laplace(scale)",
        ) from None
    return parameter(value, f"{kind(source)}.{name}")


def quotient(sensitivity: Exact, budget: Exact, source: object) -> Exact:
    """Return the scale sensitivity / budget.

    Examples
    --------
    >>> quotient(1, 0.5, "a mechanism")
    2.0
    """
    if budget:
        return sensitivity / budget
    raise refusal(kind(source), "its budget is 0", "pass the mechanism as the library made it")


def law(family: Callable[[Any], Noise], scale: Exact) -> Noise:
    """Return the noise of a scale; a scale of 0 adds nothing.

    Examples
    --------
    >>> from trueup.noise import Laplace
    >>> law(Laplace, 2), law(Laplace, 0)
    (Laplace(2), Noiseless())
    """
    return family(scale) if scale else Noiseless()


def by_row(values: ArrayLike, read: Callable[[Any], Noise], what: str, column: str) -> Any:
    """Return the noise that is read from a number, or the noises of a column of numbers."""
    array = np.asarray(values)
    if array.ndim > 1:
        hint = f"pass one column, e.g. frame[{column!r}]"
        raise TrueupError(f"{what} come as one column, got the shape {array.shape}", hint)
    noises = [read(value) for value in array.ravel().tolist()]
    return noises if array.ndim else noises[0]


def kind(source: object) -> str:
    """Return the name of an object's class."""
    return type(source).__name__


def refusal(what: str, why: str, hint: str) -> TrueupError:
    """Return the error of an adapter: what was passed, why it is not a noise, what to do.

    Examples
    --------
    >>> print(refusal("Median", "it selects a candidate", "ask for a count"))
    no noise to read from Median: it selects a candidate
    Hint: ask for a count
    """
    return TrueupError(f"no noise to read from {what}: {why}", hint)
