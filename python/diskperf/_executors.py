"""Who computes the chunks of a study: threads of this process, an executor of the
caller's, or a Dask cluster. diskperf distributes nothing itself.

Each is a generator of chunks with their rows in whatever order they come, and has
only so many of them under way that memory does not hang on how many there are.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from concurrent import futures
from itertools import islice
from typing import Any

from diskperf._errors import RequestError, RunError
from diskperf._study import Study, run_chunk

#: A chunk's number, and its first point and the one behind its last.
Chunk = tuple[int, int, int]

#: A chunk's number and its rows.
Done = tuple[int, Any]

#: Chunks under way for each worker: one that it computes, and others so that it
#: need not wait for the next.
CHUNKS_OF_WORKER = 3

#: Chunks under way where nobody says how many workers there are.
CHUNKS_OF_POOL = 64


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def carry_out(executor: object, study: Study, chunks: Iterable[Chunk]) -> Iterator[Done]:
    """Has chunks computed.

    Raises:
        RunError: a worker, a pool or a scheduler is lost.
        RequestError: an executor that is none.
        Error: of a point, where its errors are no rows.
    """
    if executor is None:
        return _by_threads(study, chunks)
    if is_dask(executor):
        from diskperf._dask import by_dask

        return by_dask(executor, study, chunks)
    if callable(getattr(executor, "submit", None)):
        return _by_submitting(executor, study, chunks)
    if callable(getattr(executor, "map", None)):
        return _by_mapping(executor, study, chunks)
    raise RequestError(
        f"executor={executor!r}: give None for this machine's cores, a dask.distributed.Client or its "
        "scheduler's address, or something with map, as concurrent.futures has it"
    )


def workers(executor: object) -> int | None:
    """How many chunks an executor computes at a time, if it says."""
    if executor is None:
        return cores()
    if is_dask(executor):
        from diskperf._dask import threads

        return threads(executor)
    for name in ("_max_workers", "_processes"):
        if isinstance(found := getattr(executor, name, None), int):
            return found
    return None


def is_dask(executor: object) -> bool:
    """Whether it is a client of Dask's."""
    return type(executor).__module__.split(".")[0] == "distributed"


def _by_threads(study: Study, chunks: Iterable[Chunk]) -> Iterator[Done]:
    """Threads suffice: the interpreter is free while a model runs."""
    stop = threading.Event()

    def run(chunk: Chunk) -> Any:
        _, start, end = chunk
        return study.run_in_pieces(start, end, stop.is_set)

    pool = futures.ThreadPoolExecutor(cores(), thread_name_prefix="diskperf-sweep")
    try:
        yield from _in_window(lambda chunk: pool.submit(run, chunk), chunks, CHUNKS_OF_WORKER * cores())
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _by_submitting(executor: Any, study: Study, chunks: Iterable[Chunk]) -> Iterator[Done]:
    def submit(chunk: Chunk) -> Any:
        return executor.submit(run_chunk, study, *chunk[1:])

    window = CHUNKS_OF_WORKER * (workers(executor) or CHUNKS_OF_POOL)
    try:
        yield from _in_window(submit, chunks, window)
    except futures.BrokenExecutor as error:
        raise RunError(f"the executor lost a worker: {error}") from error


def _in_window(submit: Any, chunks: Iterable[Chunk], window: int) -> Iterator[Done]:
    waiting = iter(chunks)
    under_way: dict[Any, int] = {}
    try:
        while True:
            for chunk in islice(waiting, window - len(under_way)):
                under_way[submit(chunk)] = chunk[0]
            if not under_way:
                return
            done, _ = futures.wait(under_way, return_when=futures.FIRST_COMPLETED)
            for future in done:
                number = under_way.pop(future)
                yield number, future.result()
    finally:
        for future in under_way:
            future.cancel()


def _by_mapping(executor: Any, study: Study, chunks: Iterable[Chunk]) -> Iterator[Done]:
    waiting = iter(chunks)
    while window := list(islice(waiting, CHUNKS_OF_POOL)):
        calls = [(study, start, end) for _, start, end in window]
        tables = executor.map(_run_one, calls)
        yield from zip((number for number, *_ in window), tables)


def _run_one(call: tuple[Study, int, int]) -> Any:
    return run_chunk(*call)
