"""Many points of one system and suite in one call: what sweeps are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from diskperf import _native
from diskperf._errors import RequestError
from diskperf._run import SEED
from diskperf._settings import flat, typed
from diskperf._system import System


def run_points(
    system: System | str,
    suite: str | None,
    points: Iterable[Mapping[str, Any]],
    *,
    seeds: int | Sequence[int] = SEED,
    settings: Mapping[str, Any] | None = None,
    drives: int | None = None,
    size: int | str | None = None,
    repetitions: int | None = None,
    cache: str | None = None,
    time_calls: bool = True,
    no_budget: bool = False,
    errors: str = "raise",
) -> _native.Columns:
    """Runs points of a parameter study one after the other, on one thread and with
    the interpreter free for others.

    A point is a machine of its own: what it comes to depends on the system, the
    suite, the settings and the seed alone, whatever stands beside it. Its figures
    are those of `run`; it runs on the system's own file system, and files are
    of whole calls.

    Args:
        system: a modelled system.
        suite: a suite or a program; ``None`` for the system's default.
        points: for each point its settings, by their keys, of the system and of the
            programs (``program.call_bytes``).
        seeds: one for all points, or one for each.
        settings: the same for all points, before their own.
        drives, size, repetitions, cache, time_calls, no_budget: as `run` has them.
        errors: ``"raise"`` the first point's exception, or keep it as text in the
            ``column`` ``error`` of a row that has nothing else.

    Returns:
        One row for each point and program, in their order: ``point`` (its place in
        ``points``), ``seed``, ``program``, ``filesystem``, ``drives``, ``kept``
        (repetitions that count); over these ``kb_per_s``, ``durable_kb_per_s`` and
        ``cpu_percent`` as `Run.results` has them; of the one in the middle by
        elapsed time ``elapsed_ns``, ``durable_ns``, ``cpu_ns`` (of the programs),
        ``bytes``, ``read_bytes``, ``written_bytes`` and ``calls``; of that whole
        repetition, in which files are prepared and synced as well, ``processor_ns``
        (for whomever), ``requests`` of the drives and ``missed_revolutions``; over all
        again ``read_p99_ns`` and ``write_p99_ns``; and ``error``. The types are the
        same whatever the points are.

    Raises:
        SettingError, RequestError, RunError: of the first point that fails, whose
            number the exception has as ``point``.
        KeyboardInterrupt: Ctrl-C.
    """
    if errors not in ("raise", "column"):
        raise RequestError(f'errors={errors!r}: give "raise" or "column"')
    system = System(system) if isinstance(system, str) else system
    own = [typed(flat(point)) for point in points]
    each = [seeds] * len(own) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if len(each) != len(own):
        raise RequestError(f"{len(each)} seeds for {len(own)} points: give one, or one for each")
    shared = {
        "targets": [system.name],
        "what": suite,
        "settings": typed({**system.settings, **flat(settings or {})}),
        "drives": drives,
        "size": size,
        "repetitions": repetitions,
        "cache": cache,
        "time_calls": time_calls,
        "no_budget": no_budget,
    }
    native = system.catalogue._core
    return _native.run_points(native, shared, list(zip(own, each)), errors == "column")
