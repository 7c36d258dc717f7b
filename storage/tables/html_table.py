"""A few rows as a table in HTML, as notebooks show a value (`_repr_html_`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from penstock.storage.base.errors import printable

SHOWN = 10
"""Rows that are shown; columns at most 12."""
_COLUMNS = 12
_CELL = 60
"""Characters of a cell."""


def html_table(caption: str, columns: Mapping[str, Sequence[Any]], rows: int | None) -> str:
    """Return rows as HTML; what is None is shown as null, a number with six digits.

    Parameters
    ----------
    caption : str
        What stands above.
    columns : mapping of str to sequence
        The rows that are shown, by column; behind the twelfth column is an ellipsis.
    rows : int or None
        How many the whole table has; None: not known.
    """
    names = list(columns)[:_COLUMNS]
    dots = ["…"] if len(columns) > len(names) else []
    shown = list(zip(*(columns[name] for name in names), strict=True))
    lines = [_row("th", [*names, *dots])]
    lines += [_row("td", [*(_text(value) for value in row), *dots]) for row in shown]
    if rows is not None and rows > len(shown):
        lines.append(_row("td", ["…"] * len([*names, *dots])))
    note = "" if rows is None else f"<p>{rows:,} {'row' if rows == 1 else 'rows'}</p>"
    return f"<div><p>{html_text(caption)}</p><table>{''.join(lines)}</table>{note}</div>"


def html_text(text: str) -> str:
    """The text as HTML shows it, in an element or an attribute: unprintable characters are visible escapes."""
    return escape(printable(text))


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(value: Any) -> str:
    if value is None:
        return "null"
    text = f"{value:.6g}" if isinstance(value, float) else printable(str(value))
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"
