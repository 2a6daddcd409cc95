"""What is found without a run: in a trace, at the arm of a disk, by formula of a flash
drive, of real drives."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from diskperf import _native
from diskperf._display import Document
from diskperf._run import SEED
from diskperf._settings import Value, gathered, keywords_of, typed

_OPERATIONS = {"operation": "string", "requests": "int64", "bytes": "int64"}
_MISSES = {"cache_bytes": "int64", "share": "double"}
_PARTS = {
    "name": "string",
    "began_ns": "int64",
    "ended_ns": "int64",
    "counts": "bool",
    "requests": "int64",
}
_SERIES = {"reads": "int64", "writes": "int64", "others": "int64", "bytes": "int64", "depth": "double"}
_ORDERS = {
    "depth": "int64",
    "name": "string",
    "mean_ms": "double",
    "bound_ms": "double",
    "iops": "double",
    "gain": "double",
    "mean_response_ms": "double",
    "p99_ms": "double",
    "longest_ms": "double",
}
_VOLUMES = {
    "volume": "string",
    "size_gib": "int64",
    "verdict": "string",
    "p50_ms": "double",
    "p99_ms": "double",
    "wait_max_s": "double",
    "credits_end_s": "double",
    "credits_left_share": "double",
    "backlog_end": "double",
    "iops_start": "double",
    "iops_end": "double",
    "limit": "string",
}
_POLICIES = {
    "spare": "double",
    "over_provisioning": "double",
    "policy": "string",
    "formula": "double",
    "model": "double",
    "random_write_iops": "double",
    "terabytes_written": "double",
    "drive_writes_per_day": "double",
    "pools": "double",
}
_DEPTHS = {
    "depth": "int64",
    "formula": "double",
    "model": "double",
    "many_dies": "double",
    "bound": "double",
    "iops": "double",
}
_CLIFFS = {
    "name": "string",
    "bytes": "int64",
    "in_mb_per_s": "double",
    "out_mb_per_s": "double",
    "full_after_s": "double",
    "accepted_bytes": "double",
    "then_mb_per_s": "double",
}
_DRIVES = {
    "name": "string",
    "requests": "int64",
    "mean_ms": "double",
    "demerit_ms": "double",
    "rms_per_request_ms": "double",
    "within_half_ms_percent": "double",
    "error": "string",
}
_REMAINING = {
    "name": "string",
    "cause": "string",
    "revolution": "bool",
    "requests": "int64",
    "drive_slower": "int64",
    "squared_error_percent": "double",
    "arrival_off_p50_ms": "double",
    "arrival_off_p90_ms": "double",
}
_STEPS = {
    "name": "string",
    "request": "int64",
    "turned_rev": "double",
}
_OFF = {
    "name": "string",
    "request": "int64",
    "operation": "string",
    "first_block": "int64",
    "blocks": "int64",
    "measured_ms": "double",
    "modelled_ms": "double",
    "cause": "string",
    "arrival_off_ms": "double",
}


_EXPECTED = {
    "what": "string",
    "depth": "int64",
    "settings": "string",
    "unit": "string",
    "expected": "double",
    "found": "double",
    "off_share": "double",
    "tolerance_share": "double",
    "met": "bool",
    "source": "string",
}


def _table(rows: list[dict[str, Any]], types: dict[str, str]) -> _native.Columns:
    columns = {name: [row.get(name) for row in rows] for name in types}
    return _native.Columns.from_pydict(columns, types)


class Trace(Document[_native.Finding]):
    """What a block trace holds. Its JSON is that of ``diskperf trace``."""

    __slots__ = ()

    @property
    def operations(self) -> _native.Columns:
        """One row for each ``operation``, with its ``requests`` and ``bytes``."""
        return _table(self.to_dict()["summary"]["operations"], _OPERATIONS)

    @property
    def miss_ratios(self) -> _native.Columns:
        """What a cache that drops what is unused for longest misses: ``cache_bytes`` and
        the ``share`` of the uses of blocks. No rows where requests are longer than 4 MiB on
        average and 16 GiB in all: their blocks are not followed."""
        reuse = self.to_dict()["summary"]["reuse"]
        return _table(reuse["miss_ratios"] if reuse else [], _MISSES)

    @property
    def series(self) -> _native.Columns:
        """The trace over time, one row for each interval of
        ``to_dict()["summary"]["series"]["interval_ns"]``: ``reads``, ``writes``,
        ``others``, ``bytes``, mean ``depth``."""
        return _table(self.to_dict()["summary"]["series"]["intervals"], _SERIES)

    @property
    def parts(self) -> _native.Columns:
        """Of a trace that was recorded, its parts, as the repetitions of a run: ``name``,
        ``began_ns`` and ``ended_ns`` from the first request on, whether the part
        ``counts``, and its ``requests``."""
        return _table(self.to_dict()["parts"], _PARTS)

    def __repr__(self) -> str:
        found = self.to_dict()
        return f"<Trace of {found['summary']['requests']} requests, {found['form']}>"


class Recorded(Document[_native.Finding]):
    """What was recorded of a disk. Its JSON is that of ``diskperf record``."""

    __slots__ = ()

    @property
    def requests(self) -> int:
        """Requests that were issued."""
        return int(self.to_dict()["requests"])

    @property
    def lost_events(self) -> int:
        """Events that the kernel could not keep for want of room."""
        return int(self.to_dict()["lost_events"])

    def __repr__(self) -> str:
        return f"<Recorded: {self.requests} requests>"


class DiskQueue(Document[_native.Finding]):
    """What orders of service gain at the arm of a disk. Its JSON is that of
    ``diskperf calculate disk``."""

    __slots__ = ()

    @property
    def orders(self) -> _native.Columns:
        """One row for each order (``name``) at each ``depth``: ``mean_ms`` of a service,
        ``bound_ms`` below which no order comes, ``iops``, ``gain`` over depth 1,
        ``mean_response_ms``, ``p99_ms`` and ``longest_ms`` of the response."""
        depths = self.to_dict()["depths"]
        rows = [{**depth, **order} for depth in depths for order in depth["orders"]]
        return _table(rows, _ORDERS)

    def __repr__(self) -> str:
        return f"<DiskQueue of {self.to_dict()['what']}>"


class Volumes(Document[_native.Finding]):
    """Which cloud volumes carry a load. Its JSON is that of ``diskperf calculate volume``."""

    __slots__ = ()

    @property
    def volumes(self) -> _native.Columns:
        """One row for each volume: ``volume``, ``size_gib``, ``verdict``, ``p50_ms``, ``p99_ms``,
        ``wait_max_s``, ``credits_end_s``, ``credits_left_share``, ``backlog_end``,
        ``iops_start``, ``iops_end`` and the ``limit`` that holds longest."""
        return _table(self.to_dict()["volumes"], _VOLUMES)

    def __repr__(self) -> str:
        return f"<Volumes under {self.to_dict()['load']['name']}>"


class Flash(Document[_native.Finding]):
    """What can be said of a flash drive without its time. Its JSON is that of
    ``diskperf calculate flash``."""

    __slots__ = ()

    @property
    def policies(self) -> _native.Columns:
        """One row for each ``policy`` at each ``spare``: write amplification by ``formula``
        and of the ``model``, ``random_write_iops`` in the steady state,
        ``terabytes_written`` and ``drive_writes_per_day`` that erases allow; ``pools`` is
        what hot and cold data apart come to."""
        spares = self.to_dict()["spares"]
        rows = [{**spare, **policy} for spare in spares for policy in spare["policies"]]
        return _table(rows, _POLICIES)

    @property
    def depths(self) -> _native.Columns:
        """One row for each ``depth`` of the queue: the share of the time that a die is busy
        by ``formula``, of the ``model``, with ``many_dies``, its ``bound``, and ``iops``."""
        return _table(self.to_dict()["depths"], _DEPTHS)

    @property
    def cliffs(self) -> _native.Columns:
        """One row for each buffer that fills up: ``name``, ``bytes``, the rates in and out,
        ``full_after_s``, ``accepted_bytes``, and the rate from then on."""
        return _table(self.to_dict()["cliffs"], _CLIFFS)

    def __repr__(self) -> str:
        found = self.to_dict()
        return f"<Flash of {found['drive']['dies']} dies, {found['writes']}>"


class Expected(Document[_native.Finding]):
    """A drive of the catalogue beside what its data sheet and theory lead one to expect. Its
    JSON is that of ``diskperf show DRIVE --expected``."""

    __slots__ = ()

    @property
    def values(self) -> _native.Columns:
        """One row for each figure: ``what``, ``depth``, what the drive was set to for
        it (``settings``), ``unit``, the ``expected`` value and the one that was ``found``, by how much that is off and may be
        (``off_share``, ``tolerance_share``), whether it is ``met``, and the ``source`` of
        the expected one."""
        rows = self.to_dict()["values"]
        return _table([{**row, "settings": " ".join(row["settings"])} for row in rows], _EXPECTED)

    @property
    def met(self) -> bool:
        """Whether all are within their tolerances."""
        return all(value["met"] for value in self.to_dict()["values"])

    def __repr__(self) -> str:
        found = self.to_dict()
        met = sum(value["met"] for value in found["values"])
        return f"<Expected of {found['drive']}: {met} of {len(found['values'])} met>"


class RealDrives(Document[_native.Finding]):
    """Measured drives beside their calibrated models. Its JSON is that of
    ``diskperf reproduce real-drives``."""

    __slots__ = ()

    @property
    def drives(self) -> _native.Columns:
        """One row for each drive, its figures of the second half of its trace; ``error``
        of one whose files cannot be used."""
        return _table(self.to_dict()["drives"], _DRIVES)

    @property
    def remaining(self) -> _native.Columns:
        """What is off by more than half a millisecond, one row for each drive and
        ``cause``: whether that is whole revolutions (``revolution``), how many
        ``requests``, how many of them the drive took longer for than the model
        (``drive_slower``), their share of the squared error, and by how much the arm would
        have had to come earlier or later (half and nine tenths of them no more)."""
        return _table(self._each("remaining"), _REMAINING)

    @property
    def off(self) -> _native.Columns:
        """The same requests one by one: ``request`` counts from 1 over the whole trace,
        and ``arrival_off_ms`` is negative where the arm would have had to come earlier."""
        return _table(self._each("off"), _OFF)

    @property
    def steps(self) -> _native.Columns:
        """Jumps of the phase among the requests that were fitted to, one row for each drive
        and jump: the first ``request`` that shows it, counted from 1, and the turn of the
        platter that the trace's times lack (``turned_rev``). Lines were dropped there."""
        return _table(self._each("steps", within="phase"), _STEPS)

    def _each(self, key: str, within: str | None = None) -> list[dict[str, Any]]:
        rows = []
        for drive in self.to_dict()["drives"]:
            found = drive if within is None else drive.get(within, {})
            rows += [{**row, "name": drive["name"]} for row in found.get(key, [])]
        return rows

    def __repr__(self) -> str:
        return f"<RealDrives: {len(self.to_dict()['drives'])}>"


def trace(
    *files: str | os.PathLike[str],
    form: str | None = None,
    columns: str | None = None,
    time_unit: str | None = None,
    partial: bool = False,
    window_s: tuple[float, float] | None = None,
    part: int | None = None,
    device: str | None = None,
) -> Trace:
    """Reads a block trace once, and says what is in it.

    Args:
        files: the trace; of blktrace, the files of all processors.
        form: its form; told by what it begins with if absent.
        columns: of comma-separated values, ``time_us=1,op=3,offset=4,length=5``.
        time_unit: of a form that says none: ``s``, ``ms``, ``us``, ``ns``, ``ps``.
        partial: whether a trace that is cut off is read as far as it goes.
        window_s: only what was issued between these seconds from the beginning.
        part: only what was issued in this part of it, from 1.
        device: only what this device was asked.

    Raises:
        RequestError: a trace that cannot be read, with file and line.
        FileError: a file that is not there.
        KeyboardInterrupt: Ctrl-C.
    """
    asked = {
        "files": [os.fspath(file) for file in files],
        "form": form,
        "columns": columns,
        "time_unit": time_unit,
        "partial": partial,
        "window_s": window_s,
        "part": part,
        "device": device,
    }
    if not files:
        raise TypeError("trace() takes at least one file")
    return Trace(_native.trace(asked))


def record(
    target: str | os.PathLike[str],
    file: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    force: bool = False,
) -> Recorded:
    """Records what a disk is asked by whatever runs on this machine, as a block trace (root).

    Args:
        target: a block device, or a path: all disks that it lies on.
        file: the trace, which `trace` reads; a new file.
        seconds: for how long; without, until Ctrl-C.
        force: replace the file.

    Raises:
        RequestError: not root, no disk, or a kernel that does not tell.
        FileError: a file that is there.
        KeyboardInterrupt: Ctrl-C; what was recorded is in the file.
    """
    return Recorded(_native.record(os.fspath(target), os.fspath(file), seconds, force))


def calculate_disk(
    on: str = "bare-sata-7200",
    *,
    settings: Mapping[str, Value] | None = None,
    drive: int = 1,
    orders: Sequence[str] = (),
    depths: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    block_bytes: int = 4096,
    requests: int = 20_000,
    seed: int = SEED,
    catalogue: str | os.PathLike[str] | None = None,
) -> DiskQueue:
    """Serves a closed queue of random reads by the modelled arm, in every order.

    Args:
        on: a system whose drive is a disk with firmware.
        settings: changes to the system, as `run` has them.
        drive: which, from 1.
        orders: orders of service by name; all if empty.
        depths: of the queue, ascending.
        block_bytes: of a request.
        requests: that are served for each figure.
        seed: of the places.
        catalogue: a folder that is laid over the catalogue.

    Raises:
        RequestError: a drive or an order that there is not.
        SettingError: a key or a value that there is not.
    """
    asked = {
        "on": on,
        "settings": typed(gathered("calculate_disk", settings, {}, keywords_of(calculate_disk))),
        "drive": drive,
        "orders": list(orders),
        "depths": sorted(set(depths)),
        "block_bytes": block_bytes,
        "requests": requests,
        "seed": seed,
        "catalogue": None if catalogue is None else os.fspath(catalogue),
    }
    return DiskQueue(_native.calculate_disk(asked))


def expected(drive: str, *, catalogue: str | os.PathLike[str] | None = None) -> Expected:
    """Measures on a modelled drive what its data sheet and theory lead one to expect of it.

    Args:
        drive: ``sata-7200``, ``nvme-tlc``, ...: a drive with a file in ``expected/``.
        catalogue: a folder that is laid over the catalogue.

    Raises:
        RequestError: a drive that there is not, or of which nothing is expected.
        KeyboardInterrupt: Ctrl-C.
    """
    return Expected(_native.expected_of(drive, None if catalogue is None else os.fspath(catalogue)))


def calculate_flash(
    *,
    spares: Sequence[float] = (0.07, 0.10, 0.15, 0.20, 0.28),
    policies: Sequence[str] = ("fifo", "greedy"),
    superblock_units: int = 256,
    hot: str | None = None,
    trimmed: float = 0.0,
    apart: bool = False,
    depths: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256),
    dies: int = 32,
    program_bytes: int = 98_304,
    program_us: float = 1170.0,
    sensed_bytes: int = 32_768,
    read_us: float = 45.0,
    transfer_us: float = 3.8,
    capacity_bytes: int = 1_920_000_000_000,
    buffer_bytes: int = 67_108_864,
    arrival_mb_per_s: float = 7200.0,
    cache_bytes: int = 0,
    cache_mb_per_s: float = 3300.0,
    cycles: float = 7000.0,
    years: float = 5.0,
    seed: int = SEED,
) -> Flash:
    """Calculates write amplification, dies at work, buffers that fill, and endurance, by
    formula and by the model of the translation layer.

    Args:
        spares: shares of closed superblocks that hold no mapped unit.
        policies: of collection: ``fifo``, ``greedy``, ``cost_benefit``, ``choices_N``.
        superblock_units: units of 4 KiB of a superblock.
        hot: percents of the writes and of the space that they go to, ``90/10``.
        trimmed: the share of the space that is trimmed.
        apart: whether what collection moves has superblocks of its own.
        depths: of the queue of random reads.
        dies: that work side by side.
        program_bytes: that one die programs at once.
        program_us: the time of a program.
        sensed_bytes: that one die senses at once.
        read_us: the time of sensing.
        transfer_us: the time of 4 KiB on the channel.
        capacity_bytes: of the host.
        buffer_bytes: of the write buffer.
        arrival_mb_per_s: what the host sends.
        cache_bytes: of the cache of one bit a cell.
        cache_mb_per_s: its rate.
        cycles: erases that a block endures.
        years: of the warranty.
        seed: of what the model draws.

    Raises:
        RequestError: a number out of its range, a policy that there is not.
    """
    asked = {
        "spares": list(spares),
        "policies": list(policies),
        "superblock_units": superblock_units,
        "hot": hot,
        "trimmed": trimmed,
        "apart": apart,
        "depths": list(depths),
        "seed": seed,
        "drive": {
            "dies": dies,
            "program_bytes": program_bytes,
            "program_us": program_us,
            "sensed_bytes": sensed_bytes,
            "read_us": read_us,
            "transfer_us": transfer_us,
            "capacity_bytes": capacity_bytes,
            "buffer_bytes": buffer_bytes,
            "arrival_mb_per_s": arrival_mb_per_s,
            "cache_bytes": cache_bytes,
            "cache_mb_per_s": cache_mb_per_s,
            "cycles": cycles,
            "years": years,
        },
    }
    return Flash(_native.calculate_flash(asked))


def reproduce_real_drives(data: str | os.PathLike[str]) -> RealDrives:
    """Calibrates each drive of a directory on the first half of its trace, replays it, and
    scores the second half.

    Args:
        data: a directory with ``NAME.trace`` and ``NAME.diskspecs`` of each drive.

    Raises:
        RequestError: a directory that cannot be read, or has no trace.
        KeyboardInterrupt: Ctrl-C.
    """
    return RealDrives(_native.reproduce_real_drives(os.fspath(data)))


def calculate_volume(
    load: str | os.PathLike[str],
    *,
    volumes: Sequence[str] = (),
    settings: Mapping[str, Value] | None = None,
    fio_arguments: Sequence[str] = (),
    seconds: float = 604_800.0,
    size_gib: int = 1,
    catalogue: str | os.PathLike[str] | None = None,
) -> Volumes:
    """Calculates which cloud volumes carry a load that repeats, and when their credits end.

    Args:
        load: a job file whose jobs have ``time_based`` and ``runtime``, or a block trace.
        volumes: ``gp3``, ``gp2:100GiB``, ``premium-ssd:P10``, ...; if empty, the smallest volume
            of each type that carries the load.
        settings: changes to the volumes, such as ``{"drive.instance": "m5.large"}``.
        fio_arguments: options of fio for the job file, such as ``--rate_iops=200``.
        seconds: for which the load repeats.
        size_gib: the smallest size of a volume.
        catalogue: a folder that is laid over the catalogue.

    Raises:
        RequestError: a load without an end in time, or a volume that there is not.
        SettingError: a key or a value that there is not.
    """
    asked = {
        "load": os.fspath(load),
        "volumes": list(volumes),
        "settings": typed(gathered("calculate_volume", settings, {}, keywords_of(calculate_volume))),
        "fio_arguments": list(fio_arguments),
        "seconds": seconds,
        "size_gib": size_gib,
        "catalogue": None if catalogue is None else os.fspath(catalogue),
    }
    return Volumes(_native.calculate_volume(asked))
