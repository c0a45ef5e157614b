"""Optional packages: imported when first needed, with an install hint when missing."""

from __future__ import annotations

import importlib
from typing import Any

from trueup.errors import MissingExtra


def optional(module: str, extra: str, purpose: str) -> Any:
    """Return an optional module, or say how to install it.

    Examples
    --------
    >>> optional("no_such_module", "tables", "reading Parquet")
    Traceback (most recent call last):
    trueup.errors.MissingExtra: reading Parquet needs the package no_such_module, ...
    Hint: pip install 'trueup[tables]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(
            f"{purpose} needs the package {package}, which cannot be imported: {error}",
            f"pip install 'trueup[{extra}]'",
        ) from None
