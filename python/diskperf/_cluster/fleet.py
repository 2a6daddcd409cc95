"""The storage of every host of a cluster, measured by one suite."""

from __future__ import annotations

import math
import os
import socket
import statistics
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from time import monotonic, sleep, time
from typing import Any

from diskperf import _native
from diskperf._cluster.dask import SILENCE_S, client_of, distributed, incapable, on_worker
from diskperf._cluster.executors import of_dask
from diskperf._errors import Error, RequestError, RunError, SweepWarning
from diskperf._run import describe, run

#: Round trips by which a host's clock is compared with the client's; the shortest
#: counts.
ROUND_TRIPS = 8

#: From the agreement on a common start to the start, besides the longest round trip:
#: in all, and for each host that is to be told.
AGREED_AHEAD_S, HOST_AHEAD_S = 1.0, 0.02

#: This process: a worker's address may be another's, when it has died.
_PROCESS = uuid.uuid4().hex

#: What a process that is killed while it measures does not remove.
LEFT = "its files are still there: `python -m diskperf clean --on DIRECTORY` on that host removes them"

#: How often it is looked whether a host's worker is still there.
LOOK_S = 1.0

#: A modified z-score beyond this is an outlier (Iglewicz and Hoaglin, "How to detect
#: and handle outliers", 1993), 0.6745 being the quartile of the normal distribution.
OUTLIER_SCORE, NORMAL_QUARTILE = 3.5, 0.6745

#: Of fewer hosts nobody can say which one is the outlier.
FEWEST_HOSTS = 3

#: The spread of hosts that are alike is taken for this at least, on logarithms: of
#: hosts that happen to agree to a thousandth, one that differs by a percent is none.
LEAST_SPREAD = 0.01

_HOSTS = {
    "host": "string",
    "worker": "string",
    "filesystem": "string",
    "device": "string",
    "clock_offset_ms": "double",
    "clock_error_ms": "double",
    "start_ms": "double",
    "elapsed_s": "double",
    "outlier": "string",
    "error": "string",
}


class Fleet:
    """What a suite came to on every host."""

    def __init__(self, hosts: list[dict[str, Any]], documents: dict[str, dict[str, Any]]) -> None:
        self._hosts = hosts
        self._documents = documents
        self.outliers: list[dict[str, Any]] = outliers(results_of(documents))
        named: dict[str, list[str]] = {}
        for one in self.outliers:
            named.setdefault(one["host"], []).append(one["words"])
        for row in hosts:
            row["outlier"] = "; ".join(named.get(row["host"], [])) or None

    @property
    def hosts(self) -> _native.Columns:
        """One row for each host: ``host``, its ``worker``, ``filesystem`` and ``device``
        of the path; ``clock_offset_ms`` of its clock against the client's, known to
        ``clock_error_ms``; ``start_ms``, when it began after the agreed moment (one
        after another: after the first did), by the client's clock; ``elapsed_s`` of the
        whole suite; then for each program its ``PROGRAM_kb_per_s``; ``outlier``, by what
        it is one; and ``error``, if it could not be measured."""
        programs: dict[str, dict[str, float]] = {}
        for row in results_of(self._documents):
            programs.setdefault(row["program"], {})[row["host"]] = row["kb_per_s"]
        types = dict(_HOSTS)
        last = {name: types.pop(name) for name in ("outlier", "error")}
        types.update({f"{program}_kb_per_s": "double" for program in programs})
        types.update(last)
        rows = []
        for host in self._hosts:
            rates = {f"{name}_kb_per_s": rate.get(host["host"]) for name, rate in programs.items()}
            rows.append({**host, **rates})
        return _native.Columns.from_pydict(
            {name: [row.get(name) for row in rows] for name in types}, types
        )

    @property
    def results(self) -> _native.Columns:
        """One row for each host and program: ``host``, ``program``, ``kb_per_s``,
        ``durable_kb_per_s``, ``cpu_percent``, ``elapsed_s``, ``size_bytes``."""
        rows = results_of(self._documents)
        types = {
            "host": "string", "program": "string", "kb_per_s": "double", "durable_kb_per_s": "double",
            "cpu_percent": "double", "elapsed_s": "double", "size_bytes": "int64",
        }  # fmt: skip
        return _native.Columns.from_pydict(
            {name: [row.get(name) for row in rows] for name in types}, types
        )

    @property
    def documents(self) -> dict[str, dict[str, Any]]:
        """The whole run of each host, as ``diskperf run --format json`` has it."""
        return self._documents

    def __str__(self) -> str:
        lines = []
        for row in self.hosts:
            rates = [
                f"{name.removesuffix('_kb_per_s')} {value:,.0f}"
                for name, value in row.items()
                if name.endswith("_kb_per_s") and value is not None
            ]
            lines.append(f"{row['host']}: {row['error'] or ', '.join(rates) + ' KB/s'}")
            if row["outlier"]:
                lines.append(f"    OUTLIER: {row['outlier']}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Fleet of {len(self._hosts)} hosts, {len(self.outliers)} outliers>"


def measure_fleet(
    suite: str | None,
    path: str | os.PathLike[str],
    client: Any,
    together: bool = False,
    *,
    host_of: Callable[..., str] | None = None,
    **options: Any,
) -> Fleet:
    """Runs a suite on the storage that every host of a Dask cluster has at a path.

    Each host is measured by one of its workers, in a process of that host, by the
    rules of `run`: nothing is written but in a folder of its own below the path,
    a device only with ``destroy_data_on``, and so on. Before anything is measured
    every host says whether it would (`describe`), and if one refuses, none is.

    Args:
        suite: a suite or a program; ``None`` for the path's default.
        path: a directory, a file or a block device, which each host has for itself.
            Of a path on shared storage all hosts measure the same.
        client: a ``dask.distributed.Client``, a cluster of Dask's, or its scheduler's
            address. Its workers should be idle: a busy one
            begins late, which ``start_ms`` shows, and shares its host.
        together: all hosts at the same time: their runs begin at a moment that is
            agreed on by the client's clock, which the hosts' are compared with
            (``clock_offset_ms``, known to ``clock_error_ms``). The runs begin together,
            and not each program of them. Without it, one host after another.
        host_of: called on each worker, by ``Client.run``, says which host it is on;
            workers with the same answer are one host. Without it, the host's name and the kernel's
            number of its last start, so that containers of one machine are one host
            if their name is the machine's.
        options: as `run` has them: ``size``, ``repetitions``, ... Runs are kept
            in the store of each host only with ``store``.

    Returns:
        The hosts in the order of their names. A host that fails on the way has a row
        with ``error``. An outlier is a host whose KB/s of a program has a modified
        z-score (by the median absolute deviation of the logarithms, taken for 1 % at
        least) beyond 3.5; of fewer than three hosts there is none.

    Raises:
        RequestError: a path that is none, or that a host refuses; no workers.
        RunError: no host could be measured, a worker has no diskperf, or the
            scheduler was lost.
        KeyboardInterrupt: Ctrl-C. What has not begun does not begin; a host that is at
            work goes on to the end of its run, for Dask ends no task that runs.

    Warns:
        SweepWarning: a host does not answer, and is waited for.
    """
    place = os.fspath(path)
    if "/" not in place and place != ".":
        raise RequestError(
            f"`{place}` is not a path: measure_fleet measures real storage, and a path has a / (./{place})"
        )
    distributed()
    if not (isinstance(client, str) or of_dask(client, "Client") or of_dask(client, "deploy.Cluster")):
        raise RequestError(f"client={client!r}: give a Dask client or cluster, or its scheduler's address")
    options.setdefault("store", False)
    with client_of(client) as client:
        try:
            hosts = _hosts(client, host_of)
            processes = _ready(client, hosts, (suite, place, options))
            measured = _measured(client, hosts, processes, (suite, place, options), together)
        except (OSError, CancelledError) as error:
            raise RunError(f"the Dask scheduler was lost: {error}") from error
    if all(row["error"] for row, _ in measured):
        raise RunError(f"no host could be measured; {measured[0][0]['host']}: {measured[0][0]['error']}")
    documents = {row["host"]: document for row, document in measured if document is not None}
    return Fleet([row for row, _ in measured], documents)


def this_host() -> str:
    """The name of this host, and which start of its kernel this is."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}".strip()


def _hosts(client: Any, host_of: Callable[..., str] | None) -> dict[str, str]:
    """One worker for each host, by the host's name."""
    if words := incapable(client, ("diskperf",)):
        raise RunError(f"{words}; nothing was begun")
    found: dict[str, str] = {}
    for worker, host in sorted(client.run(host_of or this_host, on_error="return").items()):
        if not isinstance(host, str) or not host:
            raise RequestError(
                f"host_of says {host!r} of the worker at {worker}: it is to give the name of a host"
            )
        found.setdefault(host, worker)
    if not found:
        raise RequestError("the cluster has no workers: start some, or wait with client.wait_for_workers(1)")
    if host_of is None:
        # The number of a start is for nobody to read, where names suffice.
        names = {host: host.split()[0] for host in found}
        if len(set(names.values())) == len(names):
            found = {names[host]: worker for host, worker in found.items()}
    return {host: found[host] for host in sorted(found)}


def _ready(client: Any, hosts: dict[str, str], asked: tuple[Any, ...]) -> dict[str, str]:
    """Makes sure that every host would run the suite, and gives its worker's process.

    Raises:
        RequestError: one would not.
    """
    with _submitted(client, hosts, lambda host: (_would, *asked)) as futures:
        processes = {}
        for host, worker in hosts.items():
            found = _outcome(client, host, worker, futures[host], said=True)
            if found.get("version", _native.__version__) != _native.__version__:
                found["error"] = f"it has diskperf {found['version']}, and this is {_native.__version__}"
            if found.get("error") is not None:
                raise RequestError(f"{host} refuses, and no host began: {found['error']}")
            processes[host] = found["process"]
    return processes


def _would(suite: str | None, path: str, options: dict[str, Any]) -> dict[str, Any]:
    """On a host: why it would not run the suite, if it would not."""
    known = {name: value for name, value in options.items() if name not in ("store", "label")}
    refusal = None
    try:
        describe(suite, on=path, **known)
    except (Error, TypeError) as error:
        refusal = str(error)
    return {"process": _PROCESS, "version": _native.__version__, "error": refusal}


@contextmanager
def _submitted(
    client: Any, hosts: dict[str, str], call_of: Callable[[str], tuple[Any, ...]]
) -> Iterator[dict[str, Any]]:
    """A call on the worker of each host, and nowhere else. What has not begun when this
    is left, as by Ctrl-C, does not begin."""
    futures: dict[str, Any] = {}
    try:
        for host, worker in hosts.items():
            function, *words = call_of(host)
            futures[host] = client.submit(
                on_worker(function), *words, workers=[worker], allow_other_workers=False, pure=False
            )
        yield futures
    finally:
        left = [future for future in futures.values() if not future.done()]
        if left and client.status == "running":
            client.cancel(left)


def _clock(client: Any, worker: str) -> tuple[float, float] | None:
    """What a host's clock is ahead of this one's, and how far that may be off: half of
    the shortest round trip. ``None`` if its worker is gone."""
    # Dask would try for long to reach one that is gone.
    if worker not in client.scheduler_info(n_workers=-1)["workers"]:
        return None
    found = []
    for _ in range(ROUND_TRIPS):
        begin = time()
        there = client.run(time, workers=[worker], on_error="return").get(worker)
        end = time()
        if not isinstance(there, float):
            return None
        found.append(((end - begin) / 2, there - (begin + end) / 2))
    error, offset = min(found)
    return offset, error


def _measured(
    client: Any, hosts: dict[str, str], processes: dict[str, str], asked: tuple[Any, ...], together: bool
) -> list[tuple[dict[str, Any], Any]]:
    clocks = {host: _clock(client, worker) for host, worker in hosts.items()}
    lost = {"error": "its worker was lost before it began"}
    outcomes: dict[str, dict[str, Any]] = {host: lost for host, clock in clocks.items() if clock is None}
    known = {host: clock for host, clock in clocks.items() if clock is not None}
    longest = max((error for _, error in known.values()), default=0.0)
    begin = time() + AGREED_AHEAD_S + HOST_AHEAD_S * len(hosts) + 2 * longest if together else None

    def call_of(host: str) -> tuple[Any, ...]:
        moment = None if begin is None else begin + known[host][0]
        return (_run_here, *asked, moment, processes[host])

    for some in [list(known)] if together else [[host] for host in known]:
        with _submitted(client, {host: hosts[host] for host in some}, call_of) as futures:
            for host, future in futures.items():
                outcomes[host] = _outcome(client, host, hosts[host], future)
    started = {
        host: outcome["started"] - known[host][0] for host, outcome in outcomes.items() if "started" in outcome
    }
    first = begin if begin is not None else min(started.values(), default=0.0)
    rows = []
    for host, worker in hosts.items():
        outcome, clock = outcomes[host], clocks[host]
        document = outcome.get("document")
        row = {
            "host": host,
            "worker": worker,
            **_place(document),
            "clock_offset_ms": None if clock is None else 1e3 * clock[0],
            "clock_error_ms": None if clock is None else 1e3 * clock[1],
            "start_ms": 1e3 * (started[host] - first) if host in started else None,
            "elapsed_s": outcome.get("elapsed_s"),
            "error": outcome.get("error"),
        }
        rows.append((row, document))
    return rows


def _outcome(client: Any, host: str, worker: str, future: Any, said: bool = False) -> dict[str, Any]:
    """What came of a host, also if its worker dies: then it is not measured again
    behind anybody's back."""
    library = distributed()
    lost = {"error": f"its worker at {worker} was lost on the way ({LEFT})"}
    begin = monotonic()
    while True:
        try:
            found: dict[str, Any] = future.result(timeout=LOOK_S)
            return found
        except (TimeoutError, library.TimeoutError):
            if worker not in client.scheduler_info(n_workers=-1)["workers"]:
                future.cancel()
                return lost
        except library.KilledWorker:
            return lost
        if said and monotonic() > begin + SILENCE_S:
            said = False
            words = f"{host} does not answer: is its worker at {worker} busy? The measurement waits for it"
            warnings.warn(words, SweepWarning, stacklevel=2)


def _run_here(
    suite: str | None, path: str, options: dict[str, Any], moment: float | None, process: str
) -> dict[str, Any]:
    """A run on this host, begun at a moment of its clock."""
    if process != _PROCESS:
        # Dask gives the work of a worker that died to the one that has its address.
        return {"error": f"its worker was lost on the way ({LEFT}), and is another process now"}
    if moment is not None:
        sleep(max(moment - time(), 0.0))
    started = time()
    try:
        document = run(suite, on=path, **options).to_dict()
    except Error as error:
        return {"started": started, "error": str(error)}
    except Exception as error:  # Of one host, which is not to end the others' runs.
        return {"started": started, "error": f"{type(error).__name__}: {error}"}
    return {"started": started, "elapsed_s": time() - started, "document": document}


def _place(document: dict[str, Any] | None) -> dict[str, str | None]:
    if document is None:
        return {}
    place = (document["environment"]["places"] or [{}])[0]
    filesystem = (place.get("filesystem") or {}).get("kind")
    devices = [device["name"] for device in place.get("devices") or []]
    return {"filesystem": filesystem, "device": " ".join(devices) or None}


def results_of(documents: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each host and program."""
    return [
        {"host": host, **result}
        for host, document in documents.items()
        for result in document["results"]
    ]


def scores(values: Sequence[float]) -> list[float]:
    """The modified z-score of each value, on logarithms."""
    logarithms = [math.log(value) for value in values]
    middle = statistics.median(logarithms)
    spread = statistics.median(abs(value - middle) for value in logarithms)
    return [NORMAL_QUARTILE * (value - middle) / max(spread, LEAST_SPREAD) for value in logarithms]


def outliers(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outliers among hosts' results, each with ``host``, ``program``,
    ``kb_per_s``, ``median_kb_per_s``, ``score`` and ``words``."""
    by_program: dict[str, list[dict[str, Any]]] = {}
    for row in results:
        if row["kb_per_s"] > 0:
            by_program.setdefault(row["program"], []).append(row)
    found = []
    for program, rows in by_program.items():
        if len(rows) < FEWEST_HOSTS:
            continue
        rates = [row["kb_per_s"] for row in rows]
        middle = statistics.median(rates)
        for row, score in zip(rows, scores(rates)):
            if abs(score) > OUTLIER_SCORE:
                ratio = row["kb_per_s"] / middle
                words = f"{program} {row['kb_per_s']:,.0f} KB/s, {ratio:.2f} of the median (score {score:+.1f})"
                found.append(
                    {"host": row["host"], "program": program, "kb_per_s": row["kb_per_s"],
                     "median_kb_per_s": middle, "score": score, "words": words}
                )  # fmt: skip
    return found
