"""Published numbers beside modelled ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diskperf import _native
from diskperf._charts import chosen, drawn
from diskperf._display import Document
from diskperf._run import SEED
from diskperf._settings import Value, gathered, keywords_of, typed

if TYPE_CHECKING:
    import altair

_CELLS = {
    "id": "string",
    "published": "string",
    "table": "string",
    "target": "string",
    "filesystem": "string",
    "test": "string",
    "drives": "int64",
    "quantity": "string",
    "printed": "double",
    "printed_low": "double",
    "printed_high": "double",
    "modelled": "double",
    "error": "double",
    "scored": "bool",
    "same_as": "string",
    "role": "string",
    "phases": "int64",
    "seeds": "int64",
    "suspect": "bool",
    "unexplained": "bool",
    "note": "string",
}
_PARAMETERS = {"path": "string", "file": "string", "value": "string", "choice": "string", "source": "string"}


class Card(Document[_native.Card]):
    """An accuracy card: every published number beside the model's. Its JSON is that of
    ``diskperf reproduce``.
    """

    __slots__ = ("_document",)

    def __init__(self, native: _native.Card) -> None:
        super().__init__(native)
        self._document = self.to_dict()

    @property
    def cells(self) -> _native.Columns:
        """One row for each number: its ``id``, the document (``published``) and
        ``table``, ``target``, ``filesystem``, ``test``, ``drives``, ``quantity``
        (``kb_per_s``, ``cpu_percent``, ``seconds``, ...), as ``printed`` and as
        ``modelled``, the ``error`` (modelled / printed - 1; of a CPU share the
        difference in points), whether it is ``scored``, its ``role`` (``calibration``
        or ``prediction``), and more that ``diskperf reproduce --format json`` has."""
        return _table(self._document["cells"], _CELLS)

    @property
    def parameters(self) -> _native.Columns:
        """The free parameters: ``path``, ``file``, ``value``, how it was chosen
        (``choice``: ``fitted``, ``by_hand`` or ``assumed``), ``source``."""
        return _table(self._document["parameters"]["list"], _PARAMETERS)

    def charts(self) -> dict[str, altair.Chart]:
        """Its charts by their names, as ``diskperf reproduce --report`` has them."""
        return drawn(self._native.charts())

    def plot(self, name: str | None = None) -> altair.Chart:
        """A chart of `charts`; without a name, the first: printed against
        modelled.

        Raises:
            ImportError: Altair is not installed (``pip install '.[plot]'``).
            KeyError: no chart has this name.
        """
        return chosen(self._native.charts(), name)

    def __repr__(self) -> str:
        return f"<Card of {len(self._document['cells'])} numbers>"


def _table(rows: list[dict[str, Any]], types: dict[str, str]) -> _native.Columns:
    columns = {name: [row.get(name) for row in rows] for name in types}
    return _native.Columns.from_pydict(columns, types)


def reproduce(
    document: str | Sequence[str] | None = None,
    *,
    settings: Mapping[str, Value] | None = None,
    cell: str | Sequence[str] | None = None,
    table: str | None = None,
    seed: int = SEED,
    threads: int | None = None,
    catalogue: str | os.PathLike[str] | None = None,
    **keywords: Value,
) -> Card:
    """Runs the models of what a document measured, and puts the numbers side by side.

    Args:
        document: ``kridle-mckusick-1983``, ...: `Catalogue.list` of
            ``published`` has the names; without one, all that have models.
        settings, keywords: changes to every system, as `run` has them.
        cell: only cells whose id fits this pattern, or one of these patterns, in which
            ``*`` stands for any characters and ``?`` for one.
        table: only cells of this table: ``T2``.
        seed: of all random choices.
        threads: machines at a time; the result does not depend on it.
        catalogue: a folder that is laid over the catalogue.

    Raises:
        RequestError: a document or a cell that there is not.
        SettingError: a key or a value that there is not.
        KeyboardInterrupt: Ctrl-C.
    """
    documents = [document] if isinstance(document, str) else list(document or ())
    changes = gathered("reproduce", settings, keywords, keywords_of(reproduce))
    asked = {
        "documents": documents,
        "settings": typed(changes),
        "cells": [cell] if isinstance(cell, str) else list(cell or ()),
        "table": table,
        "catalogue": None if catalogue is None else os.fspath(catalogue),
        "seed": seed,
        "threads": threads,
    }
    return Card(_native.reproduce(asked))
