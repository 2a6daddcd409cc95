"""A parameter study: what is run, and how a stretch of its points is."""

from __future__ import annotations

import pickle
import platform
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

from diskperf._errors import Error, FileError, RequestError, SettingError
from diskperf._packages import needed
from diskperf._points import run_points
from diskperf._run import describe
from diskperf._settings import COMPONENTS
from diskperf._study.space import Axis, Space
from diskperf._system import System

if TYPE_CHECKING:
    import pyarrow

#: Of the figures, the column that has the name of a key, and what that key's
#: column is called in its place.
RENAMED = {"drives": "configured_drives"}

#: Of a key whose values are tried by themselves, at most so many.
MOST_TRIED = 64

#: Studies that a worker has at hand: one at work, and one that others began.
STUDIES_KEPT = 4


def arrow() -> Any:
    """pyarrow, which sweeps need.

    Raises:
        ImportError: it is not installed.
    """
    return needed("pyarrow", "sweeps need pyarrow", "'pyarrow'")


@dataclass(frozen=True)
class Study:
    """What is run: a system, a suite, a space, and options that all points share."""

    system: System
    suite: str | None
    space: Space
    #: As `run_points` takes them.
    options: dict[str, Any]
    #: ``"raise"`` or ``"column"``.
    errors: str
    #: What `identity` was where the study began.
    expected: tuple[str, str] | None = None

    def identity(self) -> tuple[str, str]:
        """The model's version, and a hash of the catalogue."""
        return self.system.catalogue._core.identity(self.system.name)

    def definition(self) -> dict[str, Any]:
        """What the figures hang on, as JSON has it, but for the model."""
        return {
            "system": self.system.name,
            "settings": self.system.settings,
            "suite": self.suite,
            "options": self.options,
            **self.space.definition(),
        }

    def check(self) -> None:
        """Makes sure before anything starts that there are such keys.

        Of a point that cannot be, its row says so; but a key that is wrong in all
        points is wrong.

        Raises:
            SettingError: a key that there is not; none of whose values can be.
            RequestError: a suite or an option that cannot be.
        """
        for one in self.space.axes:
            if one.key in self.system.settings or one.key in self.options["settings"]:
                raise RequestError(f"`{one.key}` is in over and in set: omit one of them")
            if one.key in COMPONENTS and one.key != "drives":
                self._check_entries(one)
        first = self._refusal(self.space.settings(0))
        if first is None:
            return
        if not isinstance(first, SettingError) or self._refusal({}) is not None:
            raise first
        for one in self.space.axes:
            step = -(-len(one.values) // MOST_TRIED)
            alone = [self._refusal({one.key: value}) for value in one.values[::step]]
            if alone[0] is not None and None not in alone:
                raise alone[0]
        if self.errors == "raise":
            raise first

    def _check_entries(self, one: Axis) -> None:
        for value in one.values:
            try:
                self.system.catalogue.show(value, kind=one.key)
            except RequestError as error:
                raise SettingError(f"over: `{one.key}` cannot be {value}: {error}") from None

    def _refusal(self, settings: dict[str, str]) -> Error | None:
        """Why the system does not take settings, if it does not."""
        options = {name: self.options[name] for name in ("drives", "size", "repetitions", "cache")}
        shared = {**self.options["settings"], **settings}
        try:
            describe(self.suite, on=self.system, settings=shared, **options)
        except RequestError as error:
            return error
        return None

    def cost(self, number: int) -> tuple[float, float]:
        """Runs a point for its cost: seconds that it took, and `nominal_s`."""
        begin = perf_counter()
        table = self.run(number, number + 1)
        return perf_counter() - begin, nominal_s(table.to_pylist())

    def run(self, start: int, stop: int) -> pyarrow.Table:
        """The rows of the points from ``start`` up to and without ``stop``.

        Raises:
            Error: of the first point that fails, unless errors are rows.
        """
        return self._with_keys(arrow().table(self._figures(start, stop)), start)

    def _figures(self, start: int, stop: int) -> Any:
        numbers = range(start, stop)
        try:
            return run_points(
                self.system,
                self.suite,
                map(self.space.settings, numbers),
                seeds=[self.space.seed(number) for number in numbers],
                errors=self.errors,
                **self.options,
            )
        except Error as error:
            if error.point is not None:
                error.point += start
            raise

    def _with_keys(self, table: Any, start: int) -> Any:
        """The table with numbers of the study in place of those of the stretch, and
        with a column for each key."""
        pa = arrow()
        numbers = [start + point for point in table["point"].to_pylist()]
        columns: dict[str, Any] = {
            "point": pa.array(numbers, pa.int64()),
            "seed": table["seed"].combine_chunks(),
        }
        for one, stride in zip(self.space.axes, self.space.strides):
            values = one.typed()
            column = [values[number // stride % len(values)] for number in numbers]
            columns[RENAMED.get(one.key, one.key)] = pa.array(column, {"double": "float64"}.get(one.type, one.type))
        for name in table.column_names[2:]:
            columns[name] = table[name].combine_chunks()
        return pa.table(columns)

    def packed(self) -> bytes:
        """What a worker is sent: `run_packed` runs it."""
        return pickle.dumps(self)

    def verify(self) -> None:
        """Makes sure that this machine has the model that the study began with.

        Raises:
            FileError: it has another.
        """
        identity = self.identity()
        if self.expected is not None and identity != tuple(self.expected):
            raise FileError(
                f"the worker on {platform.node()} has another model: {written(identity)}, and the study was "
                f"begun with {written(self.expected)}; install the same diskperf and give the same catalogue "
                "everywhere, and start the workers again"
            )


def written(identity: tuple[str, str]) -> str:
    """An identity in words."""
    return f"model {identity[0]}, catalogue {identity[1]}"


@lru_cache(STUDIES_KEPT)
def _unpacked(packed: bytes) -> Study:
    """A study on a worker, which has read the catalogue and is verified: for all its
    chunks, and by the text that was verified, should a file change meanwhile."""
    study: Study = pickle.loads(packed)
    study.verify()
    return study


def run_packed(start: int, stop: int, packed: bytes) -> Any:
    """A chunk of a study, on whatever machine."""
    return _unpacked(packed).run(start, stop)


#: What a point, and each read or write call of it or request of a drive, costs:
#: rounded from the processor time of read_8192 and write_8192 with 64 KiB to 8 MiB on
#: a core of 2.6 GHz (0.4 ms with 60 of these events, and 4.8 ms with 6188). A stated
#: cost, and not a time, chooses how many points are a chunk: so that the same study has
#: the same files on every machine.
POINT_S, EVENT_S = 0.4e-3, 0.7e-6


def nominal_s(rows: list[dict[str, Any]]) -> float:
    """What the rows of a point cost, by what was done."""
    # One repetition is discarded by most protocols.
    events: int = sum((row["kept"] + 1) * (row["calls"] + row["requests"]) for row in rows if row["error"] is None)
    return POINT_S + events * EVENT_S
