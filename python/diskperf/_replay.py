"""Replays of block traces."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import overload

from diskperf import _native
from diskperf._errors import StoreWarning
from diskperf._run import OPTIONS, SEED, Run, Target, _place, asked
from diskperf._settings import Value
from diskperf._system import System


# A str is a sequence of str too: here it is one target.
@overload
def replay(  # type: ignore[overload-overlap]
    *files: str | os.PathLike[str],
    on: Target,
    speed: float | None = ...,
    depth: int | None = ...,
    think: bool = ...,
    slots: int | None = ...,
    scale_addresses: bool | int | str = ...,
    round_to_sectors: int | None = ...,
    form: str | None = ...,
    columns: str | None = ...,
    time_unit: str | None = ...,
    partial: bool = ...,
    window_s: tuple[float, float] | None = ...,
    part: int | None = ...,
    device: str | None = ...,
    repetitions: int | None = ...,
    cache: str = ...,
    settings: Mapping[str, Value] | None = ...,
    catalogue: str | os.PathLike[str] | None = ...,
    fresh: str | None = ...,
    destroy_data_on: Sequence[str | os.PathLike[str]] = ...,
    ignore_signature: bool = ...,
    no_budget: bool = ...,
    seed: int = ...,
    label: str | None = ...,
    store: bool | str | os.PathLike[str] | None = ...,
) -> Run: ...
@overload
def replay(
    *files: str | os.PathLike[str],
    on: Sequence[Target],
    speed: float | None = ...,
    depth: int | None = ...,
    think: bool = ...,
    slots: int | None = ...,
    scale_addresses: bool | int | str = ...,
    round_to_sectors: int | None = ...,
    form: str | None = ...,
    columns: str | None = ...,
    time_unit: str | None = ...,
    partial: bool = ...,
    window_s: tuple[float, float] | None = ...,
    part: int | None = ...,
    device: str | None = ...,
    repetitions: int | None = ...,
    cache: str = ...,
    settings: Mapping[str, Value] | None = ...,
    catalogue: str | os.PathLike[str] | None = ...,
    fresh: str | None = ...,
    destroy_data_on: Sequence[str | os.PathLike[str]] = ...,
    ignore_signature: bool = ...,
    no_budget: bool = ...,
    seed: int = ...,
    label: str | None = ...,
    store: bool | str | os.PathLike[str] | None = ...,
) -> list[Run]: ...
def replay(
    *files: str | os.PathLike[str],
    on: Target | Sequence[Target],
    speed: float | None = None,
    depth: int | None = None,
    think: bool = False,
    slots: int | None = None,
    scale_addresses: bool | int | str = False,
    round_to_sectors: int | None = None,
    form: str | None = None,
    columns: str | None = None,
    time_unit: str | None = None,
    partial: bool = False,
    window_s: tuple[float, float] | None = None,
    part: int | None = None,
    device: str | None = None,
    repetitions: int | None = None,
    cache: str = "direct",
    settings: Mapping[str, Value] | None = None,
    catalogue: str | os.PathLike[str] | None = None,
    fresh: str | None = None,
    destroy_data_on: Sequence[str | os.PathLike[str]] = (),
    ignore_signature: bool = False,
    no_budget: bool = False,
    seed: int = SEED,
    label: str | None = None,
    store: bool | str | os.PathLike[str] | None = None,
) -> Run | list[Run]:
    """Makes the requests of a block trace again, on real storage or on a modelled system.

    Args:
        files: the trace; of blktrace, the files of all processors.
        on: where, as `run` has it. In a directory a file stands for the trace's device.
        speed: open loop: at the trace's times, so many times as fast. So it is at speed 1
            where neither this nor ``depth`` nor ``think`` is given.
        depth: closed loop: so many requests under way, in the trace's order.
        think: dependent: each request as long after the completion that it followed as in
            the trace.
        slots: the most requests under way, of open loop and ``think``.
        scale_addresses: ``True`` scales addresses to what the target has; a number or
            ``"4G"`` to so many bytes.
        round_to_sectors: makes whole sectors of so many bytes of reads and writes.
        form: the trace's form; told by what it begins with if absent.
        columns: of comma-separated values, ``time_us=1,op=3,offset=4,length=5``.
        time_unit: of a form that says none: ``s``, ``ms``, ``us``, ``ns`` or ``ps``.
        partial: read a trace that is cut off as far as it goes.
        window_s: only what was issued from the first on and before the second, in seconds.
        part: only the requests of this part of a recorded trace, by its number from 1.
        device: only the requests to this device.
        repetitions: how often all of it is replayed, in place of once.
        cache: ``"direct"`` (past the page cache where that can be), ``"cold"`` or ``"warm"``.
        settings: parameters of a modelled system by their keys.
        catalogue, fresh, destroy_data_on, ignore_signature, no_budget, seed, label, store: as
            `run` has them.

    Returns:
        The run; of several targets a list of runs. ``Run.replay`` says how faithfully the
        moments of issue were kept, and what requests took in the trace.

    Raises:
        RequestError: a trace that cannot be read, that does not fit, or that has not what
            the pace needs: times, completions.
        RunError: a request failed.
        BudgetError: a modelled system took more than it may.
        TypeError: two of ``speed``, ``depth`` and ``think``.

    Warns:
        StoreWarning: the store failed; the results are in a file that is named.
    """
    paces = [name for name, value in (("speed", speed), ("depth", depth), ("think", think or None)) if value is not None]
    if len(paces) > 1:
        raise TypeError(f"replay() takes one of {' and '.join(paces)}")
    given = {name: value for name, value in locals().items() if name in OPTIONS}
    request = {
        **asked("replay", None, on, settings, {}, given),
        "replay": {
            "files": [os.fspath(file) for file in files],
            "form": form,
            "columns": columns,
            "time_unit": time_unit,
            "partial": partial,
            "window_s": window_s,
            "part": part,
            "device": device,
            "speed": speed,
            "depth": depth,
            "think": think,
            "slots": slots,
            "scale_addresses": scale_addresses is not False,
            "round_to_sectors": round_to_sectors,
            "scale_to": None if isinstance(scale_addresses, bool) else scale_addresses,
        },
    }
    made, failure, _ = _native.run(request, _place(store), None)
    if failure is not None:
        warnings.warn(failure, StoreWarning, stacklevel=2)
    runs = [Run(native) for native in made]
    alone = isinstance(on, (str, os.PathLike, System))
    return runs[0] if alone and len(runs) == 1 else runs
