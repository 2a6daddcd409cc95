"""Modelled systems."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

from diskperf import _native
from diskperf._catalogue import Catalogue
from diskperf._display import preformatted
from diskperf._errors import SettingError
from diskperf._settings import Value, flat, gathered, typed

if TYPE_CHECKING:
    from diskperf._explain import Explanation
    from diskperf._run import Run, Suite


class System:
    """A modelled computer: an entry of the catalogue with changes. It never
    changes itself; `with_` gives another.

    Args:
        name: an entry of the catalogue (``vax780-sc780-eagle``), a variant of one
            (``vax780-sc780-eagle:initial-arbitration``), or the path of a
            ``FILE.toml`` that describes one.
        settings: changes, by their keys.
        catalogue: the catalogue that it is of.

    Raises:
        SettingError: a name or a key that there is not, with the nearest, or a
            value that is not allowed, with what is.
    """

    __slots__ = ("__dict__", "_catalogue", "_name", "_settings")

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Value] | None = None,
        *,
        catalogue: Catalogue | None = None,
    ) -> None:
        self._name = name
        self._settings = flat(settings or {})
        self._catalogue = catalogue or Catalogue()
        for key in self._settings:
            if key.split(".")[0] == "program":
                raise SettingError(
                    f"`{key}` belongs to a program, not to a system: give it to run()"
                )
        # Whatever is wrong with it is said now.
        _ = self._entry

    @cached_property
    def _entry(self) -> tuple[str, list[tuple[str, str]], _native.Columns]:
        return self._catalogue._core.system(self._name, typed(self._settings))

    @property
    def name(self) -> str:
        """Its name in the catalogue, or the path of its file."""
        return self._name

    @property
    def settings(self) -> dict[str, str]:
        """What is changed of it, by key, each as it is written in a file."""
        return dict(self._settings)

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue that it is of."""
        return self._catalogue

    @property
    def description(self) -> str:
        """What it is, in words."""
        return self._entry[0]

    @property
    def components(self) -> dict[str, str]:
        """The catalogue's name of each part, by kind; of the drives by ``drive 1``, ..."""
        return dict(self._entry[1])

    @property
    def parameters(self) -> _native.Columns:
        """Every number: ``path``, ``value``, ``unit``, ``allowed``, ``source``,
        ``file``, ``line`` and ``meaning``. A number that was changed has the file
        ``--set``."""
        return self._entry[2]

    def __getitem__(self, key: str) -> str:
        """The value of a parameter, as it is written in a file.

        Raises:
            KeyError: a key that the system does not have, with the nearest.
        """
        rows = zip(self.parameters["path"], self.parameters["value"])
        for path, value in rows:
            if path == key:
                return str(value)
        near = sorted(get_close_matches(key, self.parameters["path"], n=3))
        raise KeyError(f"{self._name} has no `{key}`; near it {', '.join(near) or 'nothing'}")

    def with_(self, settings: Mapping[str, Any] | None = None, /, **changes: Any) -> System:
        """The same system with some things changed.

        Args:
            settings: changes by their keys: ``{"filesystem.rotdelay_ms": 7}``.
            changes: the same as keywords: ``drive="capricorn"`` puts another entry
                of the catalogue in a part's place, ``host={"speed": 4}`` changes
                numbers of a part, ``**{"host.speed": 4}`` as well.

        Returns:
            Another system. Of two changes of one key the later one counts.

        Raises:
            SettingError: a key that there is not, with the nearest, or a value that
                is not allowed, with what is.
        """
        changed = {**self._settings, **gathered("with_", settings, changes, ())}
        return System(self._name, changed, catalogue=self._catalogue)

    def run(self, suite: Suite | None = None, **options: Any) -> Run:
        """Runs a suite or a program on it: ``diskperf.run(suite, on=self, ...)``."""
        from diskperf._run import run

        return run(suite, on=self, **options)

    def explain(self, suite: Suite | None = None, **options: Any) -> Explanation:
        """Says where the time of a suite goes on it: ``diskperf.explain(self, ...)``."""
        from diskperf._explain import explain

        return explain(self, None, suite=suite, **options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, System) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self._name, tuple(sorted(self._settings.items())), self._catalogue

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._name, self._settings, self._catalogue)

    def _repr_html_(self) -> str:
        parts = {**self.components, **{f"{key} =": value for key, value in self._settings.items()}}
        width = max(map(len, parts))
        rows = "".join(f"\n{kind:{width}}  {name}" for kind, name in parts.items())
        return preformatted(f"{self._name}: {self.description}{rows}")

    def __repr__(self) -> str:
        settings = f", {self._settings!r}" if self._settings else ""
        catalogue = f", catalogue={self._catalogue!r}" if self._catalogue.folder else ""
        return f"System({self._name!r}{settings}{catalogue})"


def _restored(name: str, settings: dict[str, str], catalogue: Catalogue) -> System:
    return System(name, settings, catalogue=catalogue)
