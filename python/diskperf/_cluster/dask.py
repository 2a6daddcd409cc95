"""A Dask cluster as the one who computes, and its workers' hosts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import islice
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from diskperf import _native
from diskperf._errors import Error, RequestError, RunError, SweepWarning
from diskperf._packages import needed
from diskperf._study.study import Study, run_packed

if TYPE_CHECKING:
    from diskperf._cluster.executors import Chunk, Done

#: Chunks under way that a cluster has at least, so that workers that join find some.
FEWEST_UNDER_WAY = 32

#: How often it is asked how many workers it has.
WINDOW_S = 5.0

#: How long a study is silent about a cluster without workers. Jobs of a queue may take
#: hours to begin, so it goes on waiting.
SILENCE_S = 10.0

#: How long a scheduler may take to answer.
ANSWER_S = 10

#: Ways to reach a scheduler by a host and a port; others (``inproc``) are Dask's own.
WITH_PORT = ("tcp", "tls", "ws", "wss")


def distributed() -> Any:
    """Dask's package.

    Raises:
        ImportError: it is not installed.
    """
    return needed("distributed", "a cluster needs Dask", "'dask[distributed]'")


@contextmanager
def client_of(cluster: Any) -> Iterator[Any]:
    """A client that is open as long as it is needed.

    Args:
        cluster: a scheduler's address, a cluster of Dask's, or a client, which stays
            as it is.

    Raises:
        RequestError: it is none, or closed.
        RunError: nobody answers there.
    """
    library = distributed()
    if isinstance(cluster, library.Client):
        _check(cluster)
        yield cluster
        return
    if isinstance(cluster, str):
        cluster = _address(cluster)
    elif getattr(cluster, "status", None) == library.Status.closed:
        raise RequestError(f"the cluster {type(cluster).__name__} is closed: make a new one")
    try:
        client = library.Client(cluster, timeout=ANSWER_S, set_as_default=False)
    except ValueError as error:
        raise RequestError(f"no Dask scheduler can be at {cluster}: {error}") from error
    # An assertion is what Dask has where it runs out of time as it connects.
    except (OSError, AssertionError) as error:
        raise RunError(f"no Dask scheduler answers at {cluster}: {error or 'no answer'}") from error
    try:
        yield client
    finally:
        client.close(timeout=ANSWER_S)


def _check(client: Any) -> None:
    if client.asynchronous:
        raise RequestError(
            "the Dask client is asynchronous: give its scheduler's address "
            "(client.scheduler.address), or a Client(...) without asynchronous=True"
        )
    if client.status != "running":
        raise RequestError(
            f"the Dask client is {client.status}: give a new Client(...), or its scheduler's address"
        )


def _address(text: str) -> str:
    """An address with its scheme.

    Raises:
        RequestError: it is none.
    """
    address = text if "://" in text else f"tcp://{text}"
    try:
        parts = urlsplit(address)
        whole = parts.scheme not in WITH_PORT or (parts.hostname and parts.port and " " not in text)
    except ValueError:
        whole = False
    if not whole:
        raise RequestError(
            f"`{text}` is not an address of a Dask scheduler: give tcp://HOST:PORT, as `dask scheduler` "
            "says it when it starts (tcp://10.0.0.1:8786)"
        )
    return address


def threads(client: Any) -> int:
    """Threads of all workers."""
    return sum(client.nthreads().values())


class _Workers:
    """How many there are, which changes, and whether somebody must be told."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._asked_s = float("-inf")
        self._some_s: float | None = monotonic()
        #: Chunks that may be under way.
        self.window = 0

    def look(self) -> None:
        from diskperf._cluster.executors import CHUNKS_OF_WORKER

        now = monotonic()
        # While there are none it is looked more often, to be silent no longer than is said.
        if now < self._asked_s + (WINDOW_S if self._some_s == self._asked_s else SILENCE_S / 4):
            return
        self._asked_s = now
        found = threads(self._client)
        self.window = max(FEWEST_UNDER_WAY, CHUNKS_OF_WORKER * found)
        if found:
            self._some_s = now
        elif self._some_s is not None and now >= self._some_s + SILENCE_S:
            # Once, until there are some again.
            self._some_s = None
            address = self._client.scheduler.address
            warnings.warn(
                f"the Dask cluster at {address} has no workers: the study waits for some (as "
                f"`dask worker {address}` starts one, with diskperf {_native.__version__} installed)",
                SweepWarning,
                stacklevel=2,
            )


def on_worker(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of diskperf's as a worker is sent it: by value and not by name, so that
    a scheduler without diskperf will do, and a worker without it says so."""
    module, name = function.__module__, function.__name__

    def diskperf_call(*words: Any, **keywords: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(module), name)(*words, **keywords)

    return diskperf_call


def by_dask(client: Any, study: Study, chunks: Iterable[Chunk]) -> Iterator[Done]:
    """Has a cluster compute chunks; one whose worker dies is computed by another.

    Raises:
        RunError: workers die again and again, have no diskperf, or the scheduler is lost.
        Error: of a point, where its errors are no rows.
    """
    library = distributed()
    waiting, packed, run = iter(chunks), study.packed(), on_worker(run_packed)
    under_way: dict[Any, int] = {}
    completed: SimpleQueue[Any] = SimpleQueue()
    workers = _Workers(client)

    def submit() -> None:
        workers.look()
        room = workers.window - len(under_way)
        # Several at a time: a message to the scheduler costs about what one of its
        # tasks does.
        if room < workers.window / 2 or not (several := list(islice(waiting, room))):
            return
        numbers, starts, ends = zip(*several)
        # An own key each: a chunk that was computed once is not kept for others.
        futures = client.map(run, starts, ends, packed=packed, pure=False)
        under_way.update(zip(futures, numbers))
        for future in futures:
            future.add_done_callback(completed.put)

    try:
        submit()
        while under_way:
            try:
                future = completed.get(timeout=SILENCE_S / 4)
            except Empty:
                workers.look()
                continue
            number = under_way.pop(future)
            table = _result(library, client, future)
            future.release()
            submit()
            yield number, table
    except OSError as error:
        raise _lost(client) from error
    except RuntimeError as error:
        # What a client says whose connections are gone.
        if client.status == "running":
            raise
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
    except ImportError as error:
        raise RunError(incapable(client) or f"a worker cannot run diskperf: {error}") from error
    except (CancelledError, library.client.FutureCancelledError, OSError) as error:
        # What a future has that its scheduler knows nothing of any more.
        raise _lost(client) from error


def incapable(client: Any, modules: tuple[str, ...] = ("diskperf", "pyarrow")) -> str | None:
    """Which workers lack something, and what to do about it, if there are such."""

    # By value as well.
    def why(modules: tuple[str, ...]) -> str | None:
        import socket
        import sys
        from importlib import import_module

        try:
            for module in modules:
                import_module(module)
        except ImportError as error:
            return f"{error} in {sys.executable} on {socket.gethostname()}"
        return None

    asked = client.run(why, modules, on_error="return")
    found = sorted((worker, str(words)) for worker, words in asked.items() if words)
    if not found:
        return None
    worker, words = found[0]
    others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return (
        f"the worker at {worker}{others} cannot run diskperf: {words}; install diskperf "
        f"{_native.__version__}{' and pyarrow' if 'pyarrow' in modules else ''} there, in the "
        "environment of every worker"
    )


def _lost(client: Any) -> RunError:
    if client.status in ("closing", "closed"):
        return RunError("the Dask client was closed while the study ran")
    address = getattr(client.scheduler, "address", None) or "its address"
    return RunError(f"the Dask scheduler at {address} was lost")
