"""What came of a parameter study."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from diskperf._display import SHOWN, rows_of_table
from diskperf._errors import FileError, RequestError
from diskperf._study.folder import Folder
from diskperf._study.space import Space
from diskperf._study.study import arrow

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

#: Rows that are looked at together.
BATCH_ROWS = 65_536


class Goal(NamedTuple):
    """What is made as good as can be, as ``diskperf tune --goal`` has it."""

    #: The columns that it is made of.
    columns: tuple[str, ...]
    #: From these to a figure; ``None`` where it has none.
    figure: Callable[..., Any]
    #: Whether more of it is better.
    most: bool


def _worse(read_ns: int | None, write_ns: int | None) -> float | None:
    times = [time for time in (read_ns, write_ns) if time is not None]
    return max(times) / 1e6 if times else None


def _cpu_ms_per_mib(processor_ns: int, moved: int) -> float | None:
    return processor_ns / 1e6 / (moved / 2**20) if moved else None


GOALS = {
    "throughput": Goal(("kb_per_s",), lambda rate: rate, True),
    "latency": Goal(("read_p99_ns", "write_p99_ns"), _worse, False),
    "cpu": Goal(("processor_ns", "bytes"), _cpu_ms_per_mib, False),
}


class Sweep:
    """The rows of a parameter study, in the order of its points.

    `sweep` and `open_sweep` give it. A study with a folder is read from
    there piece by piece: pyarrow, polars, pandas and DuckDB take it as a stream, and
    `dataset` leaves out what is not asked for.
    """

    def __init__(self, manifest: dict[str, Any], folder: Folder | None = None, table: Any = None) -> None:
        self._manifest = manifest
        self._folder = folder
        self._table = table
        self._failed: tuple[int, dict[str, Any] | None] | None = None

    @property
    def definition(self) -> dict[str, Any]:
        """What it is of, as ``study.json`` has it: ``system``, ``settings``, ``suite``,
        ``over``, ``seeds``, ``options``, ``points``, ``chunk_points`` and ``model``."""
        return dict(self._manifest)

    @property
    def path(self) -> str | None:
        """Its folder, if it has one."""
        return None if self._folder is None else os.fspath(self._folder.path)

    @property
    def points(self) -> int:
        """How many points it has, when it is complete."""
        points: int = self._manifest["points"]
        return points

    @property
    def complete(self) -> bool:
        """Whether all its points are there."""
        return self._folder is None or next(self._folder.missing(), None) is None

    @property
    def schema(self) -> pyarrow.Schema:
        """Its columns: ``point``, ``seed``, one for each key, and those of
        `run_points`.

        Raises:
            FileError: nothing of it is there yet.
        """
        return next(self._tables()).schema

    @property
    def failed(self) -> int:
        """Points that could not be run; their rows have ``error``."""
        return self._failures()[0]

    def first_error(self) -> dict[str, Any] | None:
        """``point`` and ``error`` of the first point that could not be run."""
        return self._failures()[1]

    def _failures(self) -> tuple[int, dict[str, Any] | None]:
        if self._failed is None:
            count, first = 0, None
            for table in self._tables(["point", "error"]):
                failed = table.num_rows - table["error"].null_count
                if failed and first is None:
                    first = table.filter(table["error"].is_valid()).slice(0, 1).to_pylist()[0]
                count += failed
            self._failed = count, first
        return self._failed

    def _tables(self, columns: list[str] | None = None) -> Iterator[Any]:
        if self._folder is None:
            yield self._table if columns is None else self._table.select(columns)
            return
        some = False
        for chunk in self._folder.finished():
            some = True
            yield self._folder.table(chunk, columns)
        if not some:
            raise FileError(f"nothing of the study in {self._folder.path} is there yet")

    def dataset(self) -> pyarrow.dataset.Dataset:
        """The rows as a dataset of pyarrow's, which reads what is asked for."""
        arrow()
        from pyarrow import dataset

        if self._folder is None:
            return dataset.InMemoryDataset(self._table)
        parts = [os.fspath(self._folder.part(chunk)) for chunk in self._folder.finished()]
        return dataset.dataset(parts, schema=self.schema, format="parquet")

    def table(self, columns: list[str] | None = None) -> pyarrow.Table:
        """All rows at once, or some columns of them."""
        return arrow().concat_tables(self._tables(columns)).combine_chunks()

    def batches(self, columns: list[str] | None = None) -> Iterator[pyarrow.RecordBatch]:
        """The rows batch by batch, in the order of the points."""
        for table in self._tables(columns):
            yield from table.to_batches(max_chunksize=BATCH_ROWS)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            yield from batch.to_pylist()

    def __len__(self) -> int:
        return sum(table.num_rows for table in self._tables(["point"]))

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as a list of dicts."""
        return list(self)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = arrow().RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def best(self, goal: str = "throughput") -> dict[str, Any]:
        """The combination of values that is best.

        Args:
            goal: ``"throughput"`` (the most KB/s), ``"latency"`` (the fewest ms that 99
                of 100 calls stay under, of reads or writes whichever is worse), or
                ``"cpu"`` (the fewest ms of processor time for each MiB).

        Returns:
            The value of each key; and ``point``, the first of the combination's;
            ``seeds``, how many points it has; and, under the name of the goal, the
            geometric mean over its programs and seeds, with ``lowest`` and ``highest``
            of the seeds. Of equals the first. A combination of which a point could
            not be run does not count.

        Raises:
            RequestError: another goal, or no combination has such figures.
        """
        if goal not in GOALS:
            raise RequestError(f'goal={goal!r}: give {", ".join(map(repr, GOALS))}')
        found = None
        for candidate in self._combinations(GOALS[goal]):
            value = candidate[1]
            if found is None or (value > found[1] if GOALS[goal].most else value < found[1]):
                found = candidate
        if found is None:
            raise RequestError(f"no combination has figures for the goal {goal}: look at the column `error`")
        point, value, lowest, highest = found
        space = Space.from_definition(self._manifest)
        places = space.places(point)
        values = {one.key: one.typed()[place] for one, place in zip(space.axes, places)}
        return {
            **values, "point": point, "seeds": len(space.seeds),
            goal: value, "lowest": lowest, "highest": highest,
        }  # fmt: skip

    def _combinations(self, goal: Goal) -> Iterator[tuple[int, float, float, float]]:
        """Of each combination its first point, and the goal's mean and extremes."""
        seeds = len(Space.from_definition(self._manifest).seeds)

        def rows() -> Iterator[tuple[int, float | None]]:
            for batch in self.batches(["point", "error", *goal.columns]):
                columns = batch.to_pydict()
                of_goal = zip(*(columns[name] for name in goal.columns))
                for point, error, values in zip(columns["point"], columns["error"], of_goal):
                    figure = None if error is not None else goal.figure(*values)
                    yield point, math.log(figure) if figure else None

        for combination, group in groupby(rows(), key=lambda row: row[0] // seeds):
            of_points = (of_point for _, of_point in groupby(group, key=lambda row: row[0]))
            all_figures = [[figure for _, figure in of_point] for of_point in of_points]
            points = [
                [figure for figure in figures if figure is not None]
                for figures in all_figures
                if None not in figures
            ]
            if len(points) < seeds:
                continue
            means = [math.fsum(figures) / len(figures) for figures in points]
            mean = math.fsum(means) / len(means)
            yield combination * seeds, math.exp(mean), math.exp(min(means)), math.exp(max(means))

    def _repr_html_(self) -> str:
        return rows_of_table(list(islice(self, SHOWN)), repr(self).strip("<>"))

    def __repr__(self) -> str:
        of, where = self._manifest, "" if self.path is None else f" in {self.path}"
        state = "" if self.complete else ", not all of them run yet"
        return f"<Sweep of {self.points:,} points of {of['suite'] or 'the default suite'} on {of['system']}{where}{state}>"


def open_sweep(path: str | os.PathLike[str]) -> Sweep:
    """Opens the folder of a study, which may still be at work.

    Raises:
        FileError: there is none.
    """
    folder = Folder.read(path)
    if folder is None:
        raise FileError(f"{os.fspath(path)} has no study: sweep(..., to=...) makes one")
    return Sweep(folder.manifest, folder=folder)
