"""The same estimator elsewhere: Python, the command line, SQL."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from trueup.adapters.notation import read_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.estimator import Estimator


def python(formula: str, est: Estimator, domain: str, empty: str = "", **allowed: Any) -> str:
    """Return the estimator as Python that runs.

    Examples
    --------
    >>> import trueup as tu
    >>> print(python("1/n", tu.unbiased("1/n", tu.Laplace(2), "n >= 1"), "n >= 1"))
    import trueup as tu
    <BLANKLINE>
    est = tu.unbiased("1/n", {"n": tu.Laplace(2)}, "n >= 1")
    est(n=21.5), est.stderr(n=21.5)  # at a published value
    """
    noise = ", ".join(f'"{name}": {_in_tu(law)}' for name, law in est.noise.items())
    given = [f'"{formula}"', f"{{{noise}}}", *([f'"{domain}"'] if domain else [])]
    if empty:
        given.append(f"empty={_in_tu(read_number(empty))}")
    given += [f"{name}={value}" for name, value in allowed.items()]
    function = "nearly_unbiased" if allowed else "unbiased"
    call = f"est = tu.{function}({', '.join(given)})"
    if len(call) > 88:
        call = f"est = tu.{function}(\n    " + ",\n    ".join(given) + ",\n)"
    values = ", ".join(f"{name}={21 if law.lattice else 21.5}" for name, law in est.noise.items())
    use = f"est({values}), est.stderr({values})  # at a published value"
    return f"import trueup as tu\n\n{call}\n{use}"


def shell(
    formula: str, noise: Mapping[str, str], domain: str, empty: str = "", **allowed: Any
) -> str:
    r"""Return the estimator as a command over a file.

    Examples
    --------
    >>> print(shell("1/n", {"n": "laplace(2)"}, "n >= 1"))
    trueup debias IN.csv OUT.csv 'estimate = 1/n' \
      --noise 'n=laplace(2)' \
      --domain 'n >= 1'
    """
    parts = ["trueup debias IN.csv OUT.csv " + shlex.quote(f"estimate = {formula}")]
    parts += [f"--noise {shlex.quote(f'{name}={law}')}" for name, law in noise.items()]
    parts += [f"--domain {shlex.quote(part.strip())}" for part in domain.split(",") if part.strip()]
    if empty:
        parts.append(f"--empty {shlex.quote(empty)}")
    options = {name.replace("_", "-"): v for name, v in allowed.items() if name != "relative"}
    parts += [f"--{name} {value}" for name, value in options.items()]
    return " \\\n  ".join(parts)


def _in_tu(value: Any) -> str:
    """Return a value as Python writes it with ``import trueup as tu``.

    Examples
    --------
    >>> import trueup as tu
    >>> _in_tu(tu.Laplace(tu.Fraction(1, 3)) + tu.Gaussian(2))
    'tu.Gaussian(2) + tu.Laplace(tu.Fraction(1, 3))'
    """
    return re.sub(r"\b([A-Z]\w*)\(", r"tu.\1(", repr(value))
