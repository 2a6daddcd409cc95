"""What a notebook shows of an object that stands last in a cell."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

#: Characters of a line: a notebook has no terminal whose width could be asked for.
COLUMNS = 100


#: Rows of a table of which only the first are shown.
SHOWN = 10


def rows_of_table(rows: list[dict[str, Any]], said: str) -> str:
    """Rows as a table with a line below it, for ``_repr_html_``."""

    def row(tag: str, cells: Iterable[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    head = row("th", rows[0]) if rows else ""
    body = "".join(row("td", map(_text, one.values())) for one in rows)
    return f"<table>{head}{body}</table><p>{escape(said)}</p>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def preformatted(text: str) -> str:
    """Text in columns, as a terminal shows it, for ``_repr_html_``."""
    style = "white-space: pre; overflow-x: auto; line-height: 1.3; font-size: 0.85em"
    return f'<pre style="{style}">{escape(text)}</pre>'
