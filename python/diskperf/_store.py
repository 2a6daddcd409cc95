"""Runs that the command line or Python stored."""

from __future__ import annotations

import os
from collections.abc import Iterator

from diskperf import _native
from diskperf._errors import FileError
from diskperf._run import Run


class Store:
    """A result store, which may be in use by others at the same time."""

    __slots__ = ("_path",)

    def __init__(self, path: str | None) -> None:
        self._path = path

    @property
    def runs(self) -> _native.Columns:
        """Its runs, the newest first: ``id``, ``started_unix_ms``, ``suite``,
        ``target``, ``world``, ``label``, ``state``, ``results``, ``repetitions``.

        Raises:
            StoreError: it is damaged, locked, or of something else.
        """
        return _native.stored_runs(self._path)

    def run(self, name: str = "last") -> Run:
        """One of its runs.

        Args:
            name: an id, a prefix that only one id has, a label (its newest run), or
                ``last``.

        Raises:
            StoreError: there is no such run, or there are several.
        """
        found = _native.load_runs(self._path, name)
        if len(found) != 1:
            raise FileError(f"{name} holds {len(found)} runs, and one was asked for")
        return Run(found[0])

    def delete(self, *names: str, killed: bool = False, dry_run: bool = False) -> list[str]:
        """Removes runs, all of them or none.

        Args:
            names: ids, prefixes that only one id has, labels that only one run has, or
                ``last``.
            killed: also runs that never ended, since their process was killed.
            dry_run: remove nothing.

        Returns:
            The ids of the runs that it removed, or would remove.

        Raises:
            StoreError: there is no such run, or the store cannot be written.
            RequestError: a name of several runs, or a run that has not ended.
        """
        return _native.delete_runs(self._path, list(names), killed, dry_run)

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return (self.run(name) for name in self.runs["id"])

    def __repr__(self) -> str:
        return f"<Store {self._path or 'of the user'}>"


def open_store(path: str | os.PathLike[str] | None = None) -> Store:
    """Opens a result store; one that is not there is made.

    Args:
        path: its file; without one, the user's own, as the command line has it.

    Raises:
        StoreError: it cannot be opened, is damaged, or is a file of something else.
    """
    store = Store(None if path is None else os.fspath(path))
    _ = store.runs
    return store
