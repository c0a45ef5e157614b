r"""The ledger: how much of the privacy budget of a data set is spent, in a TOML file.

::

    [survey-2026]                   # the data set, by the name that the user gives it
    cap = 3                         # what all releases together may spend
    unit = "person_id"              # the column that tells whose privacy is counted; "" for rows
    releases = [
      { epsilon = 1, date = "2026-11-18T12:00:00+00:00", plan = "9f2c…", version = "0.1.0", \
table = "wages.csv" },
    ]

A budget is written here, on the disk, before any noise is drawn: a run that is killed in between
has spent what it may not have published, never the other way round. Numbers are added as they are
written, in decimals: three times 0.1 is 0.3.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import os
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup._version import __version__
from trueup.errors import TrueupError
from trueup.exact import number
from trueup.extras import optional
from trueup.files.formats import Format
from trueup.files.targets import Target
from trueup.mechanisms.records import float_above
from trueup.microdata.measures import PerRecord
from trueup.microdata.privacy_notice import UNRELEASED, key, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.microdata.design import Design

_KEPT = ("date", "plan", "version", "table")  # of every release, beside its epsilon
_HEAD = "# Privacy budgets that are spent, kept by trueup: each is written before noise is drawn\n"
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_MOST_BYTES = 2**20  # ten thousand releases
_MOST_DIGITS = 400  # of a number: those of a double, written out, are fewer


@dataclasses.dataclass(frozen=True)
class Ledger:
    """One data set in a ledger file.

    Parameters
    ----------
    path
        The file itself, not a link to it; it comes into being with the first release.
    dataset
        The name of the data set.
    cap
        What all releases of it may spend; None for the cap that the file has.
    """

    path: Path
    dataset: str
    cap: Fraction | None = None

    @classmethod
    def read(cls, given: Any) -> Ledger:
        """Return the ledger from ``{"file": …, "dataset": …, "cap": …}``."""
        hint = "e.g. ledger={'file': 'ledger.toml', 'dataset': 'survey-2026', 'cap': 3}"
        if not isinstance(given, Mapping) or not {*given} <= {"file", "dataset", "cap"}:
            raise TrueupError(f"a ledger is a file and the name of a data set, got {given!r}", hint)
        path, dataset = given.get("file"), given.get("dataset")
        if not isinstance(path, (str, Path)) or not str(path):
            raise TrueupError(f"a ledger needs a file, got {path!r}", hint)
        if not isinstance(dataset, str) or not _NAME.fullmatch(dataset):
            raise TrueupError(f"a ledger needs the name of the data set, got {dataset!r}", hint)
        cap = given.get("cap")
        return cls(
            Path(os.path.realpath(path)), dataset, None if cap is None else _decimal(cap, "cap")
        )

    def check(self, design: Design) -> None:
        """Refuse a release that may not be made; nothing is written."""
        self._entry(self._read(), design, "")

    def spend(self, design: Design, table: str) -> None:
        """Write the budget of a release down, before its noise is drawn."""
        with _locked(self.path):
            whole = self._read()
            whole[self.dataset] = self._entry(whole, design, table)
            with Target(str(self.path), Format("toml"), force=True) as target:
                target.part.write_text(_written(whole), encoding="utf-8")
                with contextlib.suppress(FileNotFoundError):  # who may read it stays the same
                    target.part.chmod(self.path.stat().st_mode)
                target.commit()

    def _read(self) -> dict[str, Any]:
        """Return what the file says; a file that is damaged is refused, never written over."""
        try:
            self._check_file()
            raw = self.path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            if not self.path.absolute().parent.is_dir():
                raise TrueupError(
                    f"there is no folder {self.path.parent} for the ledger",
                    f"make it; {UNRELEASED}",
                ) from None
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise TrueupError(
                f"the ledger {self.path} cannot be read: {error}", UNRELEASED
            ) from None
        try:
            whole = tomllib.loads(raw, parse_float=_exact)
        except (ValueError, ZeroDivisionError, RecursionError) as error:
            raise TrueupError(f"the ledger {self.path} is not TOML: {error}", UNRELEASED) from None
        for dataset, entry in whole.items():
            _check_entry(self.path, dataset, entry)
        return whole

    def _check_file(self) -> None:
        """Refuse a file with several names, of which a new version would have one only."""
        told = self.path.stat()
        if told.st_nlink > 1:
            raise TrueupError(
                f"the ledger {self.path} has {told.st_nlink} names (hard links): only one of them "
                "would have the new entry",
                f"keep one name, and make the others symbolic links; {UNRELEASED}",
            )
        if told.st_size > _MOST_BYTES:
            raise TrueupError(
                f"the ledger {self.path} has {told.st_size:,} bytes, more than {_MOST_BYTES:,}",
                f"begin another one for other data sets; {UNRELEASED}",
            )

    def _check_name(self, whole: Mapping[str, Any]) -> None:
        """Refuse the name of a new data set that is another one's but for case and signs."""
        for name in whole:
            if name != self.dataset and _plain(name) == _plain(self.dataset):
                raise TrueupError(
                    f"the ledger has no data set {self.dataset!r}, but one called {name!r}",
                    f"write {name!r} if they are the same, else a name that differs in letters or "
                    f"digits; {UNRELEASED}",
                )

    def _entry(self, whole: Mapping[str, Any], design: Design, table: str) -> dict[str, Any]:
        """Return the entry of the data set with one more release, or refuse it."""
        if any(isinstance(m, PerRecord) for m in design.measures.values()):
            raise TrueupError(
                "a ledger counts ε, and the loss through a per-record sum depends on the record",
                f"release it without a ledger, and add its policy up by yourself; {UNRELEASED}",
            )
        self._check_name(whole)
        unit = design.unit or ""
        entry = dict(whole.get(self.dataset, {"unit": unit, "releases": []}))
        if entry["unit"] != unit:
            raise TrueupError(
                f"the ledger counts the privacy of one {_who(entry['unit'])} of {self.dataset}, "
                f"and this release would protect one {_who(unit)}: such budgets do not add up",
                f"use the same unit, or another name for the data set; {UNRELEASED}",
            )
        cap = self._cap(entry)
        amount = _decimal(design.epsilon, "epsilon")
        spent = sum((Fraction(r["epsilon"]) for r in entry["releases"]), Fraction(0))
        if spent + amount > cap:
            rest = cap - spent
            left = f"ask for at most {float(rest):g}" if rest > 0 else "nothing is left"
            raise TrueupError(
                f"{self.dataset} has {float(cap):g} to spend, {float(spent):g} is spent, and "
                f"{float(amount):g} more would exceed it",
                f"{left}; {UNRELEASED}",
            )
        release = {"epsilon": amount, **_circumstances(design), "table": table}
        return {"cap": cap, "unit": unit, "releases": [*entry["releases"], release]}

    def _cap(self, entry: Mapping[str, Any]) -> Fraction:
        known = entry.get("cap", self.cap)
        if known is None:
            raise TrueupError(
                f"the ledger has no cap for {self.dataset} yet",
                f"say what all its releases together may spend, e.g. cap 3; {UNRELEASED}",
            )
        if self.cap is not None and Fraction(known) != self.cap:
            raise TrueupError(
                f"the ledger has the cap {float(known):g} for {self.dataset}, not "
                f"{float(self.cap):g}",
                f"leave the cap out; to change it, change the ledger {self.path}; {UNRELEASED}",
            )
        return Fraction(known)


def _circumstances(design: Design) -> dict[str, str]:
    """Return when a release is made, of which plan, and by which version."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    plan = hashlib.sha256(repr(design).encode()).hexdigest()[:16]
    return {"date": now, "plan": plan, "version": __version__}


def _plain(name: str) -> str:
    """Return the letters and digits of a name, upper and lower case alike."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in folded if c.isalnum())


def _exact(text: str) -> Fraction:
    """Return a number as it is written, if that is a number of plain size."""
    digits, _, power = text.lower().partition("e")
    if len(digits) > _MOST_DIGITS or len(power) > 4 or abs(int(power or 0)) > _MOST_DIGITS:
        raise ValueError(f"{text[:40]} is beyond double precision")
    return Fraction(text)


def _who(unit: str) -> str:
    return f"{unit} (a column)" if unit else "row"


def _decimal(value: Any, name: str) -> Fraction:
    """Return a number as it is written in decimals, never below what it is."""
    exact = number(value, name, positive=True)
    if isinstance(exact, float):
        return Fraction(repr(exact))
    return Fraction(exact) if isinstance(exact, int) else Fraction(repr(float_above(exact)))


def _check_entry(path: Path, dataset: str, entry: Any) -> None:
    good = (
        isinstance(entry, dict)
        and isinstance(entry.get("unit"), str)
        and _is_number(entry.get("cap"))
        and isinstance(entry.get("releases"), list)
        and all(isinstance(r, dict) and _is_number(r.get("epsilon")) for r in entry["releases"])
    )
    if not good:
        raise TrueupError(
            f"the ledger {path} has no cap, unit and releases for {dataset}",
            f"mend it; {UNRELEASED}",
        )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, Fraction)) and not isinstance(value, bool) and value >= 0


def _written(whole: Mapping[str, Any]) -> str:
    lines = [_HEAD]
    for dataset, entry in whole.items():
        lines += [f"[{key(dataset)}]", f"cap = {_amount(entry['cap'])}"]
        lines += [f"unit = {text(entry['unit'])}", "releases = ["]
        for r in entry["releases"]:
            parts = [f"epsilon = {_amount(r['epsilon'])}"]
            parts += [f"{name} = {text(str(r[name]))}" for name in _KEPT if name in r]
            lines.append(f"  {{ {', '.join(parts)} }},")
        lines += ["]", ""]
    return "\n".join(lines)


def _amount(value: int | Fraction) -> str:
    """Return a decimal that is read back as itself: they come from decimals."""
    exact = Fraction(value)
    return str(int(exact)) if exact.denominator == 1 else repr(float(exact))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one run at a time read and write a ledger."""
    filelock = optional("filelock", "private", "a ledger")
    with filelock.FileLock(path.with_name(f".{path.name}.lock")):
        yield
