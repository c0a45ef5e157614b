"""A column on its way through the kernels: numbers, and which of them are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.tables.request import Request


class Column(NamedTuple):
    """Numbers; where one is missing (``null``) the number is NaN. None: nothing is missing."""

    values: NDArray[Any]
    null: NDArray[np.bool_] | None = None

    def at(self, rows: NDArray[np.intp]) -> Column:
        """Return some rows."""
        return Column(self.values[rows], None if self.null is None else self.null[rows])


class Piece(NamedTuple):
    """Consecutive rows of some columns, from row ``start`` on."""

    start: int
    columns: dict[Any, Column]


class Eager(Protocol):
    """What a dataframe library in memory must do."""

    def names(self, frame: Any) -> list[Any]:
        """Return the names of the columns."""

    def pieces(self, frame: Any, names: Sequence[Any]) -> Iterator[Piece]:
        """Yield the columns, in as many pieces as spare a copy."""

    def attach(self, frame: Any, new: dict[str, list[Column]], like: dict[str, Any]) -> Any:
        """Return the frame with columns added, given in pieces; ``like`` names what each read."""

    def codes(self, frame: Any, names: Sequence[Any]) -> NDArray[np.intp]:
        """Return which group of these columns, one or more, each row is in, numbered from 0."""

    def make(self, frame: Any, names: Sequence[Any], rows: Any, new: dict[str, Column]) -> Any:
        """Return a frame of some rows of some columns, with others added."""


class Engine(Protocol):
    """What a lazy frame or an engine must do."""

    def names(self, frame: Any) -> list[str]:
        """Return the names of the columns."""

    def fold(self, name: Any) -> Any:
        """Return what the engine compares names by: some do not tell Mean from mean."""

    def check(self, frame: Any, names: Sequence[str]) -> None:
        """Raise unless these columns hold numbers."""

    def extend(self, frame: Any, new: Mapping[str, tuple[Request, str]]) -> Any:
        """Return the frame with columns added: the value, variance or stderr of what is wanted."""

    def returned(self, frame: Any, made: Any, keys: Sequence[str]) -> Any:
        """Return an Arrow table, made in memory, as a frame of this kind; ``keys`` are its own."""


def not_numbers(
    name: Any, kind: object, there: Sequence[bool] = (), at: Callable[[int], Any] | None = None
) -> TrueupError:
    """Return the refusal of a column that holds no numbers, with the first value that is there."""
    rows, shown = np.flatnonzero(there), ""
    if at is not None and len(rows):
        value = at(int(rows[0]))
        value = value.item() if isinstance(value, np.generic) else value
        shown = f": {value!r}, at row {rows[0]}"
    return TrueupError(
        f"the column {name!r} holds {kind}, not numbers{shown}",
        "convert it to numbers first, or map the statistic to another column",
    )


def joined(pieces: Sequence[Column]) -> Column:
    """Return several pieces of a column as one."""
    if len(pieces) == 1:
        return pieces[0]
    values = np.concatenate([p.values for p in pieces]) if pieces else np.empty(0)
    if all(p.null is None for p in pieces):
        return Column(values)
    nulls = [np.zeros(len(p.values), bool) if p.null is None else p.null for p in pieces]
    return Column(values, np.concatenate(nulls))


def whole(pieces: Sequence[Piece], name: Any) -> NDArray[Any]:
    """Return all numbers of a column."""
    return joined([piece.columns[name] for piece in pieces]).values


def either(nulls: Sequence[NDArray[np.bool_] | None]) -> NDArray[np.bool_] | None:
    """Return where any of several is missing, None if nothing is.

    Examples
    --------
    >>> either([None, np.array([True, False]), np.array([False, False])])
    array([ True, False])
    """
    known = [n for n in nulls if n is not None]
    if len(known) < 2:
        return known[0] if known else None
    return np.asarray(np.logical_or.reduce(known))
