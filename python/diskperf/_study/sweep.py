"""Parameter studies, on the cores of one machine or on a cluster."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from time import perf_counter
from typing import Any

from diskperf._cluster.executors import Chunk, carry_out, opened, workers
from diskperf._errors import Error, FileError, RequestError, RunError, SweepWarning, TooManyPoints
from diskperf._run import SEED
from diskperf._settings import Value, flat
from diskperf._study.folder import Folder
from diskperf._study.progress import duration, shown_progress
from diskperf._study.space import Space
from diskperf._study.study import Study, arrow
from diskperf._study.swept import Sweep
from diskperf._system import System

#: Points whose rows are held in memory, at the most.
MOST_IN_MEMORY = 250_000

#: Points that nobody is asked about.
MOST_POINTS = 100_000_000

#: Nominal seconds of a chunk. With Dask one costs 25 to 60 ms in all processes
#: together, by its points (bench/sweep), which is little beside the shortest. A long
#: study has longer chunks rather than more than so many.
CHUNK_S, SHORTEST_CHUNK_S, LONGEST_CHUNK_S = 2.0, 0.6, 60.0
FEWEST_CHUNKS, MOST_CHUNKS = 60, 2000

#: Chunks are a multiple of this, where there are so many: two, three, four, six or twelve
#: workers have equally much to do.
SHARED_CHUNKS = 12

#: Studies of fewer points are not worth more than one for the pilot.
SMALL = 100


def sweep(
    system: System | str,
    suite: str | None = None,
    *,
    over: Mapping[str, Value | Iterable[Any]],
    seeds: int | str | Sequence[int] = SEED,
    executor: Any = None,
    to: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Value] | None = None,
    drives: int | None = None,
    size: int | str | None = None,
    repetitions: int | None = None,
    cache: str = "cold",
    time_calls: bool = True,
    errors: str = "column",
    chunk_points: int | None = None,
    most_points: int = MOST_POINTS,
    progress: bool | None = None,
) -> Sweep:
    """Runs a suite or a program for every combination of some keys' values and of
    seeds.

    Points are numbered: the first key changes the slowest, the seed the fastest.
    What a point comes to depends on itself alone, and the files of a study on the
    study alone: not on the executor, on how many workers it has, on the order in
    which they finish, or on having been killed and continued.

    Args:
        system: a modelled system.
        suite: a suite or a program; ``None`` for the system's default.
        over: for each key its values, as a list, or as a string, as ``diskperf tune
            --over`` has them: ``"0..10"`` (both included), ``"0..10:2"``, ``"4K,8K"``.
            Without keys there are seeds alone: ``{}``.
        seeds: one, several, or a range: ``range(1, 101)``, ``"1..100"``.
        executor: who computes. ``None``: the cores of this machine. A
            ``dask.distributed.Client``, a cluster of Dask's (``LocalCluster``,
            ``SLURMCluster``, ...), or the address of its scheduler
            (``"tcp://10.0.0.1:8786"``): that cluster, whose workers have the same
            diskperf installed; while it has none, it is waited for some, and that is
            said. Or what has ``map``, as executors of
            ``concurrent.futures`` and pools of ``multiprocessing`` have.
        to: the folder of the study: one Parquet file for each chunk of its points,
            and ``study.json``. The same call again goes on with what is missing, and
            gives the whole. Without it rows are held in memory, which a large study
            is refused.
        settings: the same for all points, before their own.
        drives, size, repetitions, cache, time_calls: as `run` has them.
        errors: a combination that cannot be is a row with ``error`` and nothing else
            (``"column"``), or ends the study (``"raise"``).
        chunk_points: points that a worker computes at a time, and of one file.
            Without it as many as take about two seconds, by what a pilot of three points
            does (and not by how long that took: the files would hang on it).
        most_points: more points than these are refused, with the time that they
            would take.
        progress: whether to show a bar with the time left (``rich``); without it, if
            standard error is a terminal.

    Returns:
        The study, whose columns are ``point``, ``seed``, one for each key, and those of
        `run_points`.

    Raises:
        SettingError: a key that there is not, or none of whose values can be.
        RequestError: no values, or an option or an executor that cannot be; another
            study is at work on the folder. Nothing is begun.
        TooManyPoints: more than ``most_points``, with the time that they would take.
        FileError: the folder holds another study, or was made by another model or
            catalogue; or it cannot be written, as on a full disk.
        RunError: the executor, its workers or its scheduler were lost.
        ImportError: pyarrow is not installed, or Dask for a scheduler's address.
        KeyboardInterrupt: Ctrl-C. As after all that ends a study in the middle, what
            is in the folder stays, and the same call goes on.

    Warns:
        SweepWarning: some points could not be run; a cluster has no workers, and is
            waited for.
    """
    arrow()
    if errors not in ("raise", "column"):
        raise RequestError(f'errors={errors!r}: give "raise" or "column"')
    if chunk_points is not None and chunk_points < 1:
        raise RequestError(f"chunk_points={chunk_points}: give a number from 1")
    options = {
        "settings": flat(settings or {}),
        "drives": drives,
        "size": size,
        "repetitions": repetitions,
        "cache": cache,
        "time_calls": time_calls,
    }
    system = System(system) if isinstance(system, str) else system
    study = Study(system, suite, Space.of(over, seeds), options, errors)
    study.check()
    study = dataclasses.replace(study, expected=study.identity())
    folder = None if to is None else Folder.read(to)
    if folder is not None:
        folder.agree(study.definition(), study.identity())
        if chunk_points not in (None, folder.chunk_points):
            raise FileError(
                f"{folder.path} has files of {folder.chunk_points} points: omit chunk_points, "
                "or give another folder"
            )
    with ExitStack() as open_until_the_end:
        executor = open_until_the_end.enter_context(opened(executor))
        if folder is None:
            chunk_points = _planned(study, executor, chunk_points, most_points, to is None)
            if to is None:
                return _in_memory(study, executor, chunk_points, progress)
            folder = Folder.new(to, _manifest(study, chunk_points))
        return _in_folder(study, executor, folder, progress)


def _planned(
    study: Study, executor: Any, chunk_points: int | None, most_points: int, in_memory: bool
) -> int:
    """Points of a chunk, by a pilot; refuses a study that is too large."""
    points = study.space.points
    if in_memory and MOST_IN_MEMORY < points <= most_points:
        raise RequestError(
            f"{points:,} points are too many to hold their rows in memory: give a folder for them, as "
            f"to='study' (without one, {MOST_IN_MEMORY:,} points at the most)"
        )
    if chunk_points is not None and points <= most_points:
        return chunk_points
    # What is loaded once is no point's cost.
    study.run(0, 0)
    tried = [0] if points < SMALL else [0, points // 2, points - 1]
    costs = [study.cost(number) for number in tried]
    seconds, nominal = (sum(cost) / len(costs) for cost in zip(*costs))
    if points > most_points:
        several = workers(executor)
        on = "on one worker" if not several else f"on {several} workers like this machine's cores"
        estimate = (
            f"{points:,} points take about {duration(seconds * points / (several or 1))} {on} "
            f"({1e3 * seconds:.1f} ms each)"
        )
        refusal = TooManyPoints(f"{estimate}: give fewer values, or say most_points={points} to begin")
        refusal.points, refusal.estimate = points, estimate
        raise refusal
    return chunk_points or chosen_chunk(points, nominal)


def chosen_chunk(points: int, nominal_s: float) -> int:
    """Points of a chunk, where one costs so much."""
    total_s = points * nominal_s
    chunks = min(max(total_s / CHUNK_S, FEWEST_CHUNKS), MOST_CHUNKS)
    chunk_s = min(max(total_s / chunks, SHORTEST_CHUNK_S), LONGEST_CHUNK_S)
    count = max(1, int(total_s / chunk_s))
    if count >= SHARED_CHUNKS:
        count -= count % SHARED_CHUNKS
    return -(-points // count)


def _manifest(study: Study, chunk_points: int) -> dict[str, Any]:
    version, catalogue = study.identity()
    return {
        **study.definition(),
        "points": study.space.points,
        "chunk_points": chunk_points,
        "model": {"version": version, "catalogue": catalogue},
    }


def _chunks(study: Study, numbers: Iterable[int], chunk_points: int) -> Iterator[Chunk]:
    points = study.space.points
    for number in numbers:
        start = number * chunk_points
        yield number, start, min(start + chunk_points, points)


def _in_memory(study: Study, executor: Any, chunk_points: int, shown: bool | None) -> Sweep:
    tables: dict[int, Any] = {}
    points = study.space.points
    every = range(-(-points // chunk_points))
    with shown_progress(points, 0, shown) as advance:
        for number, table in carry_out(executor, study, _chunks(study, every, chunk_points)):
            tables[number] = table
            advance(min(chunk_points, points - number * chunk_points))
    rows = arrow().concat_tables([tables[number] for number in every])
    return _told(Sweep(_manifest(study, chunk_points), table=rows))


def _in_folder(study: Study, executor: Any, folder: Folder, shown: bool | None) -> Sweep:
    points, chunk_points = study.space.points, folder.chunk_points
    kept = 0
    with folder:
        done = sum(min(chunk_points, points - number * chunk_points) for number in folder.finished())
        chunks = _chunks(study, folder.missing(), chunk_points)
        try:
            with shown_progress(points, done, shown) as advance:
                for number, table in carry_out(executor, study, chunks):
                    folder.keep(number, table)
                    kept += 1
                    advance(min(chunk_points, points - number * chunk_points))
        except (RunError, FileError) as error:
            if error.point is not None:
                raise
            error.args = (
                f"{error}; {sum(1 for _ in folder.finished())} of {folder.chunks} chunks are in "
                f"{folder.path}: start it again to compute the others",
            )
            raise
    return _told(Sweep(folder.manifest, folder=folder))


def _told(swept: Sweep) -> Sweep:
    """Warns of points that could not be run."""
    first = swept.first_error()
    if first is not None:
        warnings.warn(
            f"{swept.failed:,} of {swept.points:,} points could not be run, and have `error` in their "
            f"rows; point {first['point']}: {first['error']}",
            SweepWarning,
            stacklevel=4,
        )
    return swept
