"""A noise as plain data, for JSON: nothing is executed when it is read back."""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction
from typing import Any

from trueup.errors import TrueupError
from trueup.noise import families
from trueup.noise.base import Noise
from trueup.noise.sum import SumNoise


def to_record(noise: Noise) -> dict[str, Any]:
    """Return family and parameters.

    Examples
    --------
    >>> from trueup.noise import Laplace
    >>> to_record(Laplace(Fraction(1, 3)))
    {'family': 'Laplace', 'scale': '1/3'}
    """
    if isinstance(noise, SumNoise):
        return {"family": "SumNoise", "parts": [to_record(part) for part in noise.parts]}
    fields = {f.name: _write(getattr(noise, f.name)) for f in dataclasses.fields(noise)}
    return {"family": type(noise).__name__, **fields}


def from_record(record: dict[str, Any]) -> Noise:
    """Return the noise that :func:`to_record` wrote.

    Examples
    --------
    >>> from_record({"family": "Laplace", "scale": "1/3"})
    Laplace(Fraction(1, 3))
    """
    fields = {name: _read(value) for name, value in record.items()}
    name, shapes = fields.pop("family"), fields.pop("shapes", ())
    if name == "SumNoise":
        return SumNoise(tuple(from_record(part) for part in record["parts"]))
    if name not in families():
        raise TrueupError(f"there is no noise family {name!r}", f"one of {[*families()]}")
    family: Any = families()[name]
    law = [fields.pop("name")] if "name" in fields else []  # of scipy
    made: Noise = family(*law, *shapes, **fields)
    return made


def snake(name: str) -> str:
    """Return the name of a family as sidecars and the command line write it.

    Examples
    --------
    >>> snake("DiscreteLaplace"), snake("StudentT")
    ('discrete_laplace', 'student_t')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _write(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_write(v) for v in value]
    return str(value) if isinstance(value, Fraction) else value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(v) for v in value]
    if isinstance(value, str) and value.count("/") == 1:
        return Fraction(value)
    return value
