"""What a notebook shows of an object that stands last in a cell."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from html import escape
from typing import Any, Generic, Protocol, TypeVar

#: Characters of a line: a notebook has no terminal whose width could be asked for.
COLUMNS = 100


#: Rows of a table of which only the first are shown.
SHOWN = 10


class Printable(Protocol):
    """What the core prints as a table and as JSON."""

    def json(self) -> str: ...
    def text(self, width: int) -> str: ...


Printed = TypeVar("Printed", bound=Printable)


class Document(Generic[Printed]):
    """Something that is a table for its reader, as the command line has it, and JSON."""

    __slots__ = ("_native",)

    def __init__(self, native: Printed) -> None:
        self._native = native

    def to_json(self) -> str:
        """The JSON of the command line's ``--format json``."""
        return self._native.json()

    def to_dict(self) -> dict[str, Any]:
        """`to_json` as Python's own."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    def __str__(self) -> str:
        return self._native.text(shutil.get_terminal_size((COLUMNS, 24)).columns)

    def _repr_html_(self) -> str:
        return preformatted(self._native.text(COLUMNS))


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
