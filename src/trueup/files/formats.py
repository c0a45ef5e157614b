"""File formats by name, suffix and first bytes."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from trueup.errors import TrueupError

FORMATS = ("csv", "tsv", "parquet", "arrow", "arrows")
"""``arrow`` is the file format (Feather), ``arrows`` the stream format for pipes."""

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrows",
}
_PACKED = {".gz": "gzip", ".zst": "zstd"}
_MAGIC = (
    (b"PAR1", "parquet", None),
    (b"ARROW1", "arrow", None),
    (b"\xff\xff\xff\xff", "arrows", None),
    (b"\x1f\x8b", "csv", "gzip"),
    (b"\x28\xb5\x2f\xfd", "csv", "zstd"),
)
DELIMITERS = {"csv": ",", "tsv": "\t"}


_COMPRESSIONS = {
    "parquet": ("snappy", "zstd", "lz4", "gzip", "none"),
    "arrow": ("zstd", "lz4", "none"),
    "arrows": ("zstd", "lz4", "none"),
}


class Format(NamedTuple):
    """A format, and how a text file is packed."""

    name: str
    packed: str | None = None

    @property
    def is_text(self) -> bool:
        """Whether the columns have no types of their own."""
        return self.name in DELIMITERS

    @property
    def is_arrow(self) -> bool:
        """Whether Arrow reads and writes it, and not the engine itself."""
        return self.name in ("arrow", "arrows")


def check_compression(form: Format, compression: str | None) -> None:
    """Refuse a compression that a format does not have."""
    known = _COMPRESSIONS.get(form.name, ())
    if compression is not None and compression not in known:
        raise TrueupError(
            f"{form.name} files have no --compression {compression}",
            f"one of {', '.join(known)}" if known else "name the file .gz or .zst",
        )


def by_suffix(path: PurePath) -> Format | None:
    """Return the format that a file name stands for.

    Examples
    --------
    >>> by_suffix(PurePath("release.csv.gz")), by_suffix(PurePath("release.xlsx"))
    (Format(name='csv', packed='gzip'), None)
    """
    packed = _PACKED.get(path.suffix.lower())
    inner = path.with_suffix("") if packed else path
    name = _SUFFIXES.get(inner.suffix.lower())
    return None if name is None else Format(name, packed)


def by_content(head: bytes) -> Format:
    r"""Return the format that the first bytes stand for, CSV if they are text.

    Examples
    --------
    >>> by_content(b"PAR1..."), by_content(b"s,n\n")
    (Format(name='parquet', packed=None), Format(name='csv', packed=None))
    """
    for magic, name, packed in _MAGIC:
        if head.startswith(magic):
            return Format(name, packed)
    first = head.split(b"\n", 1)[0]
    return Format("tsv" if b"\t" in first and b"," not in first else "csv")


def named(name: str | None, path: PurePath, option: str) -> Format:
    """Return the format given by an option, else by the suffix; refuse what cannot be told."""
    found = by_suffix(path)
    packed = found.packed if found else _PACKED.get(path.suffix.lower())
    if name is not None:
        found = Format(name, packed)
    if found is None:
        raise TrueupError(
            f"the format of {path} cannot be told from its name",
            f"name it .csv, .tsv, .parquet or .arrow, or add {option} csv",
        )
    if found.packed and not found.is_text:
        raise TrueupError(
            f"{path}: {found.name} files are compressed inside, not with {path.suffix}",
            "remove the suffix; --compression zstd packs the columns",
        )
    return found
