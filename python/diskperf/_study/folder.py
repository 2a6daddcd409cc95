"""The folder of a study: one Parquet file for each chunk of its points, beside what
they are of.

A file is there whole or not at all: it is written beside its place and renamed. Its
bytes depend on the study alone, and not on who computed it, when, or after what; so
a study goes on by making the files that are missing.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from diskperf._errors import FileError, RequestError
from diskperf._study.study import arrow, written

if TYPE_CHECKING:
    import pyarrow

#: The manifest, and the folder of the chunks' files.
MANIFEST, PARTS = "study.json", "parts"

#: Whoever works on the study holds a lock on this file of the folder of the parts.
LOCK = ".lock"

#: Files in one folder.
FILES_IN_FOLDER = 1000

#: Of the manifest's form.
VERSION = 1

#: What a file that is being written ends with.
UNFINISHED = ".unfinished"

#: The lock files that studies of this process hold, each with its descriptors: the
#: system's locks keep other processes away, and not another thread of this one.
_TAKEN: dict[tuple[int, int], list[int]] = {}


class Folder:
    """A study's folder.

    ``manifest`` is what ``study.json`` has: the definition of the study, ``points``,
    ``chunk_points``, and the ``model``.
    """

    def __init__(self, path: str | os.PathLike[str], manifest: dict[str, Any]) -> None:
        self.path = pathlib.Path(path)
        self.manifest = manifest
        self._file: tuple[int, int] | None = None

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Folder | None:
        """The folder, or ``None`` if there is no study in it yet.

        Raises:
            FileError: it cannot be read, or holds something else.
        """
        folder = pathlib.Path(path)
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            version = int(manifest["diskperf_study"])
            if version != VERSION:
                age = "a newer" if version > VERSION else "an older"
                raise FileError(
                    f"{folder / MANIFEST} was written by {age} diskperf (form {version} of a study, and this "
                    f"one knows form {VERSION}): use that diskperf, or give another folder"
                )
        except FileNotFoundError:
            if folder.is_dir() and any(not _is_ours(name) for name in os.listdir(folder)):
                raise FileError(
                    f"{folder} has no {MANIFEST} and is not empty: give a new folder, or an empty one"
                ) from None
            return None
        except (NotADirectoryError, PermissionError, IsADirectoryError) as error:
            raise FileError(f"{folder} cannot be a study's folder: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise FileError(f"{folder / MANIFEST} is not a study of diskperf: give another folder") from None
        return Folder(folder, manifest)

    @staticmethod
    def new(path: str | os.PathLike[str], manifest: Mapping[str, Any]) -> Folder:
        """A folder that is made when it is entered."""
        return Folder(path, {"diskperf_study": VERSION, **manifest})

    def agree(self, definition: Mapping[str, Any], identity: tuple[str, str]) -> None:
        """Makes sure that it is this study's, and of this model.

        Raises:
            FileError: it is not; with what differs.
        """
        as_read = json.loads(json.dumps(definition))
        for name, asked in as_read.items():
            kept = self.manifest.get(name)
            # As text: points are numbered by the order of the keys.
            if json.dumps(kept) != json.dumps(asked):
                name, kept, asked = _difference(name, kept, asked)
                raise FileError(
                    f"{self.path} holds another study: its `{name}` is {_short(kept)}, and "
                    f"{_short(asked)} was asked for; give another folder"
                )
        kept = self.identity
        if kept != identity:
            raise FileError(
                f"{self.path} was made by {written(kept)}, and this is {written(identity)}: its rows "
                "would not fit together; give another folder"
            )

    @property
    def identity(self) -> tuple[str, str]:
        """The model's version and the hash of the catalogue."""
        model = self.manifest["model"]
        return model["version"], model["catalogue"]

    @property
    def chunk_points(self) -> int:
        """Points of one file."""
        points: int = self.manifest["chunk_points"]
        return points

    @property
    def chunks(self) -> int:
        """Files, when all are there."""
        points: int = self.manifest["points"]
        return -(-points // self.chunk_points)

    def part(self, chunk: int) -> pathlib.Path:
        """The place of a chunk's file."""
        folder, _ = divmod(chunk, FILES_IN_FOLDER)
        return self.path / PARTS / f"{folder:06}" / f"part-{chunk:09}.parquet"

    def missing(self) -> Iterator[int]:
        """The chunks that have no file, in their order."""
        return (chunk for chunk in range(self.chunks) if not self.part(chunk).exists())

    def finished(self) -> Iterator[int]:
        """The chunks that have a file, in their order."""
        return (chunk for chunk in range(self.chunks) if self.part(chunk).exists())

    def keep(self, chunk: int, table: pyarrow.Table) -> None:
        """Writes a chunk's file.

        Raises:
            FileError: it cannot be written, as on a full disk; nothing of it is left.
        """
        import pyarrow.parquet

        place = self.part(chunk)
        try:
            place.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise self._failure(place, error) from None
        self._write(place, lambda file: pyarrow.parquet.write_table(table, file, compression="zstd"))

    def table(self, chunk: int, columns: list[str] | None = None) -> pyarrow.Table:
        """The rows of a chunk.

        Raises:
            FileError: its file is damaged.
        """
        import pyarrow.parquet

        place = self.part(chunk)
        try:
            # It takes what stands before a dot for a column with others in it.
            table = pyarrow.parquet.ParquetFile(place).read(columns=columns)
        except (OSError, arrow().ArrowException) as error:
            raise FileError(
                f"{place} cannot be read: {error}; remove it, and the study computes it again"
            ) from None
        return table if columns is None else table.select(columns)

    def __enter__(self) -> Folder:
        """Takes the folder for this study alone, makes it if it is new, and removes
        what a killed process was writing.

        Raises:
            RequestError: another study is at work on it, or began meanwhile.
            FileError: it cannot be written.
        """
        try:
            (self.path / PARTS).mkdir(parents=True, exist_ok=True)
            self._take()
        except OSError as error:
            raise self._failure(self.path / PARTS, error) from None
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _take(self) -> None:
        lock = os.open(self.path / PARTS / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        status = os.fstat(lock)
        file = status.st_dev, status.st_ino
        own = [lock]
        # In one step, for threads.
        held = _TAKEN.setdefault(file, own)
        if held is not own:
            # With any of a process's descriptors of a file that is closed goes its lock:
            # whoever holds it closes this one with its own.
            held.append(lock)
            raise RequestError(
                f"another study of this process is at work in {self.path}: wait for it, or give another folder"
            )
        try:
            # Of this process alone: workers that it forks do not keep it.
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            del _TAKEN[file]
            os.close(lock)
            raise RequestError(
                f"another process is at work on the study in {self.path}: wait for it, or end it"
            ) from None
        except OSError:
            # A network file system without locks.
            pass
        self._file = file

    def _begin(self) -> None:
        there = Folder.read(self.path)
        if there is None:
            text = json.dumps(self.manifest, indent=1, ensure_ascii=False)
            self._write(self.path / MANIFEST, lambda file: file.write(f"{text}\n".encode()))
        elif there.manifest != json.loads(json.dumps(self.manifest)):
            raise RequestError(f"another study was begun in {self.path} meanwhile: give another folder")
        for left in self.path.glob(f"**/*{UNFINISHED}"):
            left.unlink(missing_ok=True)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            for lock in _TAKEN.pop(self._file):
                os.close(lock)
            self._file = None

    def _write(self, place: pathlib.Path, fill: Any) -> None:
        beside = place.with_name(f"{place.name}.{os.getpid()}{UNFINISHED}")
        try:
            with open(beside, "wb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, place)
        except OSError as error:
            raise self._failure(place, error) from None
        finally:
            beside.unlink(missing_ok=True)

    def _failure(self, place: pathlib.Path, error: OSError) -> FileError:
        return FileError(f"{place} cannot be written: {error.strerror or error}")


def _is_ours(name: str) -> bool:
    return name == PARTS or name.endswith(UNFINISHED)


def _difference(name: str, kept: Any, asked: Any) -> tuple[str, Any, Any]:
    """The first of two tables' entries that differs; if only their order does, the tables."""
    if isinstance(kept, Mapping) and isinstance(asked, Mapping):
        for key in {**kept, **asked}:
            if kept.get(key) != asked.get(key):
                return _difference(f"{name}.{key}", kept.get(key), asked.get(key))
    return name, kept, asked


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."
