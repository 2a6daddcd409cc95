"""A Dask cluster as the one who computes, and its workers' hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any

from diskperf._errors import Error, RunError
from diskperf._study import Study, run_chunk

if TYPE_CHECKING:
    from diskperf._executors import Chunk, Done

#: Chunks under way that a cluster has at least, so that workers that join find some.
FEWEST_UNDER_WAY = 32

#: How often it is asked how many workers it has.
WINDOW_S = 5.0

#: How long a scheduler may take to answer.
ANSWER_S = 10


def distributed() -> Any:
    """Dask's package.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            "a cluster needs Dask: pip install 'diskperf[sweep]', or pip install 'dask[distributed]'"
        ) from error
    return distributed


@contextmanager
def client_of(address: str) -> Iterator[Any]:
    """A client of the scheduler at this address.

    Raises:
        RunError: nobody answers there.
    """
    library = distributed()
    try:
        client = library.Client(address, timeout=ANSWER_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise RunError(f"no Dask scheduler answers at {address}: {error}") from error
    try:
        yield client
    finally:
        client.close(timeout=ANSWER_S)


def threads(client: Any) -> int:
    """Threads of all workers."""
    return sum(client.nthreads().values())


def by_dask(client: Any, study: Study, chunks: Iterable[Chunk]) -> Iterator[Done]:
    """Has a cluster compute chunks; one whose worker dies is computed by another.

    Raises:
        RunError: workers die again and again, or the scheduler is lost.
        Error: of a point, where its errors are no rows.
    """
    from diskperf._executors import CHUNKS_OF_WORKER

    library = distributed()
    waiting = iter(chunks)
    under_way: dict[Any, int] = {}
    completed = library.as_completed(loop=client.loop)

    window, asked_s = 0, 0.0

    def submit() -> None:
        nonlocal window, asked_s
        # Workers come and go.
        if not window or monotonic() > asked_s + WINDOW_S:
            window, asked_s = max(FEWEST_UNDER_WAY, CHUNKS_OF_WORKER * threads(client)), monotonic()
        for number, start, end in islice(waiting, max(window - len(under_way), 0)):
            # An own key each: a chunk that was computed once is not kept for others.
            future = client.submit(run_chunk, study, start, end, pure=False)
            under_way[future] = number
            completed.add(future)

    try:
        submit()
        for future in completed:
            number = under_way.pop(future)
            table = _result(library, client, future)
            future.release()
            submit()
            yield number, table
    except OSError as error:
        raise _lost(client) from error
    finally:
        if under_way and client.status == "running":
            client.cancel(list(under_way), asynchronous=False)


def _result(library: Any, client: Any, future: Any) -> Any:
    try:
        return future.result()
    except Error:
        raise
    except library.KilledWorker as error:
        raise RunError(
            f"workers died {error.allowed_failures + 1} times at one chunk, the last at "
            f"{error.last_worker.address}: is there enough memory, and do other chunks work?"
        ) from error
    except (CancelledError, library.client.FutureCancelledError, OSError) as error:
        # What a future has that its scheduler knows nothing of any more.
        raise _lost(client) from error


def _lost(client: Any) -> RunError:
    address = getattr(client.scheduler, "address", None) or "its address"
    return RunError(f"the Dask scheduler at {address} was lost")
