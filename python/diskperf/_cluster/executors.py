"""Who computes the chunks of a study: threads of this process, an executor of the
caller's, or a Dask cluster. diskperf distributes nothing itself.

Each is a generator of chunks with their rows in whatever order they come, and has
only so many of them under way that memory does not hang on how many there are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager
from itertools import islice
from time import perf_counter
from typing import Any

from diskperf._errors import Error, RequestError, RunError
from diskperf._study.study import Study, arrow, run_packed

#: A chunk's number, and its first point and the one behind its last.
Chunk = tuple[int, int, int]

#: A chunk's number and its rows.
Done = tuple[int, Any]

#: Chunks under way for each worker: one that it computes, and others so that it
#: need not wait for the next.
CHUNKS_OF_WORKER = 3

#: Of a chunk that threads of this process compute, the piece that is one's at a time.
PIECE_S = 0.05

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
    if of_dask(executor, "Client"):
        from diskperf._cluster.dask import by_dask

        return by_dask(executor, study, chunks)
    if callable(getattr(executor, "submit", None)):
        return _by_submitting(executor, study, chunks)
    if callable(getattr(executor, "map", None)):
        return _by_mapping(executor, study, chunks)
    raise no_executor(executor)


@contextmanager
def opened(executor: Any) -> Iterator[Any]:
    """Who computes, as it is needed: of a scheduler's address or a cluster of Dask's a
    client, for as long as it is needed.

    Raises:
        RequestError: an executor that is none.
        RunError: a scheduler does not answer.
    """
    if isinstance(executor, str) or of_dask(executor, "Client") or of_dask(executor, "deploy.Cluster"):
        from diskperf._cluster.dask import client_of

        with client_of(executor) as client:
            yield client
    elif executor is None or not isinstance(executor, type) and any(callable(getattr(executor, name, None)) for name in ("submit", "map")):
        yield executor
    else:
        raise no_executor(executor)


def no_executor(executor: object) -> RequestError:
    """What is wrong with what cannot compute."""
    return RequestError(
        f"executor={executor!r}: give None for this machine's cores, a Dask client or cluster or its "
        "scheduler's address, or something with map, as concurrent.futures has it"
    )


def workers(executor: object) -> int | None:
    """How many chunks an executor computes at a time, if it says."""
    if executor is None:
        return cores()
    if of_dask(executor, "Client"):
        from diskperf._cluster.dask import threads

        return threads(executor)
    for name in ("_max_workers", "_processes"):
        if isinstance(found := getattr(executor, name, None), int):
            return found
    return None


def of_dask(executor: object, name: str) -> bool:
    """Whether it is of a class of Dask's: which is not so where Dask was never loaded."""
    found: Any = sys.modules.get("distributed")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None and isinstance(executor, found)


class _Pieces:
    """Chunks in pieces: so that all cores are at work to the end, on the last chunk too,
    and that a study which is interrupted ends soon."""

    def __init__(self, study: Study, chunks: Iterable[Chunk]) -> None:
        self._study = study
        self._chunks = chunks
        self._points = 1
        #: Of chunks that are under way: points that are missing, and the rows by piece.
        self._parts: dict[int, tuple[int, dict[int, Any]]] = {}

    def __iter__(self) -> Iterator[Chunk]:
        for number, start, end in self._chunks:
            self._parts[number] = end - start, {}
            while start < end:
                stop = min(start + self._points, end)
                yield number, start, stop
                start = stop

    def run(self, piece: Chunk) -> Any:
        """The piece's rows; finds how many points a piece should have."""
        _, start, stop = piece
        begin = perf_counter()
        rows = self._study.run(start, stop)
        took_s = perf_counter() - begin
        if took_s < PIECE_S / 2:
            self._points = max(self._points, 2 * (stop - start))
        elif took_s > 2 * PIECE_S:
            self._points = max(1, (stop - start) // 2)
        return rows

    def whole(self, piece: Chunk, rows: Any) -> Any | None:
        """Takes the piece's rows: its chunk's rows, if it was the last."""
        number, start, stop = piece
        missing, parts = self._parts.pop(number)
        parts[start] = rows
        if missing := missing - (stop - start):
            self._parts[number] = missing, parts
            return None
        return arrow().concat_tables([parts[start] for start in sorted(parts)]).combine_chunks()


def _by_threads(study: Study, chunks: Iterable[Chunk]) -> Iterator[Done]:
    """Threads suffice: the interpreter is free while a model runs."""
    pieces = _Pieces(study, chunks)
    pool = futures.ThreadPoolExecutor(cores(), thread_name_prefix="diskperf-sweep")
    try:
        window = CHUNKS_OF_WORKER * cores()
        for piece, rows in _in_window(lambda piece: pool.submit(pieces.run, piece), pieces, window):
            whole = pieces.whole(piece, rows)
            if whole is not None:
                yield piece[0], whole
    finally:
        pool.shutdown(cancel_futures=True)


def _by_submitting(executor: Any, study: Study, chunks: Iterable[Chunk]) -> Iterator[Done]:
    packed = study.packed()

    def submit(chunk: Chunk) -> Any:
        try:
            return executor.submit(run_packed, *chunk[1:], packed)
        except futures.BrokenExecutor:
            raise
        except RuntimeError as error:
            raise RunError(f"the executor takes no more work: {error}") from error

    window = CHUNKS_OF_WORKER * (workers(executor) or CHUNKS_OF_POOL)
    try:
        for chunk, rows in _in_window(submit, chunks, window):
            yield chunk[0], rows
    except futures.BrokenExecutor as error:
        raise RunError(f"the executor lost a worker: {error}") from error
    except futures.CancelledError as error:
        raise RunError("the executor was shut down while the study ran") from error


def _in_window(submit: Any, chunks: Iterable[Chunk], window: int) -> Iterator[tuple[Chunk, Any]]:
    """Each chunk with its rows, as they are done; so many are under way at the most."""
    waiting = iter(chunks)
    under_way: dict[Any, Chunk] = {}
    try:
        while True:
            for chunk in islice(waiting, window - len(under_way)):
                under_way[submit(chunk)] = chunk
            if not under_way:
                return
            done, _ = futures.wait(under_way, return_when=futures.FIRST_COMPLETED)
            for future in done:
                chunk = under_way.pop(future)
                yield chunk, future.result()
    finally:
        for future in under_way:
            future.cancel()


def _by_mapping(executor: Any, study: Study, chunks: Iterable[Chunk]) -> Iterator[Done]:
    waiting, packed = iter(chunks), study.packed()
    while window := list(islice(waiting, CHUNKS_OF_POOL)):
        calls = [(start, end, packed) for _, start, end in window]
        try:
            tables = list(executor.map(_run_one, calls))
        except Error:
            raise
        except ValueError as error:
            # What a pool says that is closed.
            raise RunError(f"the executor takes no more work: {error}") from error
        if len(tables) != len(window):
            raise RunError(f"the executor's map gave {len(tables)} results of {len(window)} calls")
        yield from zip((number for number, *_ in window), tables)


def _run_one(call: tuple[int, int, bytes]) -> Any:
    return run_packed(*call)
