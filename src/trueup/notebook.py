"""Tables as notebooks show them."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(
    head: Sequence[object], rows: Iterable[Sequence[object]], caption: str, above: str = ""
) -> str:
    r"""Return an HTML table; what is in its cells is text, ``above`` its head is markup.

    Examples
    --------
    >>> print(table(["n"], [["< 5"]], "one").replace("<t", "\n<t"))
    <BLANKLINE>
    <table><caption>one</caption>
    <thead>
    <tr>
    <th>n</th></tr></thead>
    <tbody>
    <tr>
    <td>&lt; 5</td></tr></tbody></table>
    """
    body = "".join(_row(row, "td") for row in rows)
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead>{above}{_row(head, 'th')}</thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _row(cells: Sequence[object], kind: str) -> str:
    return f"<tr>{''.join(f'<{kind}>{html.escape(str(cell))}</{kind}>' for cell in cells)}</tr>"
