"""What is asked of ``trueup release``: a plan in TOML, and options that override it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.adapters.notation import assignment, names, read_number, read_numbers
from trueup.cli.sidecar import named
from trueup.errors import TrueupError, quoted
from trueup.microdata.expected import SIZES
from trueup.microdata.ledger import Ledger
from trueup.microdata.release import read
from trueup.tables.spec import read_toml, table_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from trueup.microdata.public_keys import Keys
    from trueup.microdata.totals import Reading

_REQUEST = ("by", "keys", "epsilon", "unit", "at_most", "missing", "on_error", "size")
_KNOWN = (*_REQUEST, "measures", "weights", "ledger")
_HINT = "the schema is in `trueup release --help`"
_NAMED = 'e.g. "wage = mean(wage, 0, 120000)"'


class Asked(NamedTuple):
    """What is released, and the files that say so."""

    reading: Reading
    keys: Keys
    ledger: Ledger | None
    sizes: tuple[int, ...]
    size: int | None
    files: tuple[Path, ...]


def read_plan(args: argparse.Namespace) -> Asked:
    """Return what the plan and the options say together, the options first."""
    plan = {} if args.spec is None else _plan(args.spec)
    for option in ("epsilon", "size", "missing"):
        if (text := getattr(args, option)) is not None:
            drop = option == "missing" and text == "drop"
            plan[option] = text if drop else _number(text, f"--{option}")
    if args.by is not None:
        plan["by"] = [str(name) for name in names(args.by)]
    for option in ("unit", "at_most", "keys", "on_error"):
        if getattr(args, option) is not None:
            plan[option] = getattr(args, option)
    plan["measures"] = named(args.formulas, "measure", _NAMED) or plan.get("measures", {})
    weights = dict(plan.get("weights") or {})
    for text in args.weight:
        name, value = assignment(text)
        if not name:
            raise TrueupError(f"--weight needs a name, got {quoted(text)}", "e.g. wage=2")
        weights[name] = _number(value, "--weight")
    if args.sizes is not None and not args.plan:
        raise TrueupError("--sizes is for --plan", "add --plan, or leave it out")
    request = {key: plan.get(key) for key in _REQUEST} | {"weights": weights}
    made = read(request, plan["measures"])
    return Asked(
        *made, _ledger(plan, args), _sizes(args.sizes), plan.get("size"), _files(plan, args)
    )


def _plan(path: Path) -> dict[str, Any]:
    plan = read_toml(path, _KNOWN, _HINT)
    for key in ("measures", "weights", "ledger"):
        table_of(path, plan, key)
    if isinstance(plan.get("keys"), str):  # a file is looked for beside the plan
        plan["keys"] = path.parent / plan["keys"]
    if isinstance(plan.get("ledger", {}).get("file"), str):
        plan["ledger"]["file"] = path.parent / plan["ledger"]["file"]
    return plan


def _number(text: str, option: str) -> Any:
    also = "drop or " * (option == "--missing")
    try:
        return read_number(text)
    except TrueupError as error:
        needed = f"{option} needs {also}one number, got {quoted(text)}"
        raise TrueupError(needed, error.hint) from None


def _ledger(plan: Mapping[str, Any], args: argparse.Namespace) -> Ledger | None:
    given = dict(plan.get("ledger", {}))
    options = {"file": args.ledger, "dataset": args.dataset}
    given |= {key: value for key, value in options.items() if value is not None}
    if args.cap is not None:
        given["cap"] = _number(args.cap, "--cap")
    if not given:
        return None
    if args.seed is not None:
        raise TrueupError(
            "a simulation spends no budget: there is nothing for a ledger to count",
            "leave the ledger out, or --seed",
        )
    return Ledger.read(given)


def _sizes(text: str | None) -> tuple[int, ...]:
    if text is None:
        return SIZES
    sizes = read_numbers(text)
    if not all(isinstance(n, int) and n > 0 for n in sizes):
        raise TrueupError(f"group sizes are whole numbers, got {quoted(text)}", "e.g. 10,100,1000")
    return tuple(int(n) for n in sizes)


def _files(plan: Mapping[str, Any], args: argparse.Namespace) -> tuple[Path, ...]:
    keys = plan.get("keys")
    named = [args.spec, keys if isinstance(keys, (str, Path)) else None, args.ledger]
    named.append(plan.get("ledger", {}).get("file"))
    return tuple(Path(f) for f in named if f is not None)
