"""The catalogue of modelled systems and of the parts that they consist of."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from diskperf import _native
from diskperf._display import preformatted
from diskperf._errors import RequestError
from diskperf._settings import COMPONENTS, Value

if TYPE_CHECKING:
    from diskperf._system import System

#: What can be listed, by its plural as ``diskperf list`` has it.
PLURALS = {
    "hosts": "host",
    "buses": "bus",
    "kernels": "kernel",
    "filesystems": "filesystem",
    "drivers": "driver",
    "controllers": "controller",
    "drives": "drive",
}


@dataclass(frozen=True)
class Entry:
    """An entry of the catalogue with its numbers and where they come from."""

    #: Its name.
    name: str
    #: ``system``, or the kind of part: ``drive``, ``controller``, ...
    kind: str
    #: What it is, in words.
    description: str
    #: One row for each number: ``path``, ``value``, ``unit``, ``allowed``,
    #: ``source``, ``file``, ``line``, ``meaning``.
    parameters: _native.Columns = field(repr=False, compare=False)
    #: Of a system, the name of each of its parts by kind; of its drives by
    #: ``drive 1``, ``drive 2``, ...
    components: dict[str, str] = field(default_factory=dict, compare=False)
    #: Of a drive, what follows from its numbers, each with its unit:
    #: ``{"capacity": (473.9, "MB"), ...}``.
    figures: dict[str, tuple[float, str]] = field(default_factory=dict, compare=False)
    #: Of a drive, points of its seek curve: cylinders, and ms for that distance.
    seek_ms_by_cylinders: list[tuple[int, float]] = field(
        default_factory=list, repr=False, compare=False
    )

    def _repr_html_(self) -> str:
        figures = {what: f"{value:,.6g} {unit}" for what, (value, unit) in self.figures.items()}
        parts = {**self.components, **figures}
        width = max(map(len, parts), default=0)
        rows = "".join(f"\n{what:{width}}  {value}" for what, value in parts.items())
        return preformatted(f"{self.name}: {self.description}{rows}") + self.parameters._repr_html_()


class Catalogue:
    """Every drive, controller, bus, host, kernel, driver, file system and system
    that can be modelled, with the source of each number.

    Args:
        folder: a folder of the same form that is laid over the catalogue that is
            part of diskperf: its files replace entries and add others.

    Raises:
        SettingError: a file of the folder that is wrong, with line and column.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = None if folder is None else os.fspath(folder)

    @property
    def folder(self) -> str | None:
        """The folder that is laid over it."""
        return self._folder

    @cached_property
    def _core(self) -> _native.Catalogue:
        return _native.Catalogue(self._folder)

    def list(self, what: str = "systems") -> _native.Columns:
        """What there is, as ``diskperf list`` has it.

        Args:
            what: ``systems``, ``drives``, ``controllers``, ``buses``, ``hosts``,
                ``kernels``, ``drivers``, ``filesystems``, or ``published``.

        Returns:
            One row each: ``name`` and ``description``; of the documents with
            published numbers ``name``, ``cells``, ``scored`` and ``modelled``.

        Raises:
            RequestError: anything else.
        """
        if what == "systems":
            return self._core.systems()
        if what == "published":
            return self._core.documents()
        if what in PLURALS:
            return self._core.components(PLURALS[what])
        raise RequestError(
            f"there is no list of `{what}`: there are systems, {', '.join(PLURALS)}, published"
        )

    def show(self, name: str, kind: str | None = None) -> Entry:
        """An entry with its numbers and sources.

        Args:
            name: a system, a variant of one (``NAME:VARIANT``), or a part.
            kind: where parts of two kinds share a name, which (``drive``).

        Raises:
            RequestError: a name that is not in the catalogue, or that two kinds of
                part share.
            SettingError: an entry that is wrong.
        """
        kinds = self._core.kinds_named(name) if kind is None else [kind]
        if not kinds or kind == "system":
            description, components, parameters = self._core.system(name, [])
            return Entry(name, "system", description, parameters, dict(components))
        if len(kinds) > 1:
            raise RequestError(
                f"`{name}` is the name of a {' and of a '.join(kinds)}: say which, as "
                f"show({name!r}, kind={kinds[0]!r})"
            )
        kind, description, parameters, figures, seek = self._core.component(kinds[0], name)
        return Entry(
            name,
            kind,
            description,
            parameters,
            figures={what: (value, unit) for what, value, unit in figures},
            seek_ms_by_cylinders=seek,
        )

    def system(self, name: str, /, **changes: Value) -> System:
        """The modelled system of this name, with changes if there are any.

        Raises:
            SettingError: a name that is not in the catalogue, with the nearest.
        """
        from diskperf._system import System

        system = System(name, catalogue=self)
        return system.with_(**changes) if changes else system

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalogue) and self._folder == other._folder

    def __hash__(self) -> int:
        return hash(self._folder)

    def __reduce__(self) -> tuple[type[Catalogue], tuple[str | None]]:
        return Catalogue, (self._folder,)

    def _repr_html_(self) -> str:
        return self.list()._repr_html_()

    def __repr__(self) -> str:
        return f"Catalogue({self._folder!r})" if self._folder else "Catalogue()"


assert set(PLURALS.values()) == set(COMPONENTS)
