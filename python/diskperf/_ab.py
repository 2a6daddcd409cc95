"""Two experiments against each other, in interleaved blocks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any, Union

from diskperf import _native
from diskperf._compare import Comparison
from diskperf._errors import StoreWarning
from diskperf._run import OPTIONS, SEED, Run, Suite, Target, _place, asked, names_its_place
from diskperf._system import System

#: One side: where it runs, what is different there (keywords of `run`, and settings by
#: their keys), or a run whose experiment is repeated.
Side = Union[Target, Mapping[str, Any], Run]


class AB(Comparison):
    """Two runs that were measured in interleaved blocks, and how they compare.

    ``a`` and ``b`` are the two `Run` objects.
    """

    __slots__ = ("a", "b")

    def __init__(self, a: Run, b: Run, native: _native.Compared) -> None:
        super().__init__(native)
        self.a = a
        self.b = b


def ab(
    a: Side,
    b: Side,
    suite: Suite | None = None,
    *,
    before_a: str | None = None,
    before_b: str | None = None,
    budget_s: float = 180.0,
    min_time_s: float = 0.0,
    blocks: int | None = None,
    min_effect: float = 0.03,
    fail_over: float | None = None,
    seed: int = SEED,
    store: bool | str | os.PathLike[str] | None = None,
    label: str | None = None,
    **options: Any,
) -> AB:
    """Tells two targets or settings apart: repetitions of both in turn, in blocks of one of
    each in random order, until every verdict is firm or the time is over. A verdict is wrong
    with a probability of at most 1 %, however often it looked before. Where the two differ,
    as many blocks again measure by how much.

    Args:
        a: what B is compared with: a target, a mapping of what is different there
            (``{"cache": "direct"}``, ``{"program.call_bytes": "4K"}``, ``{}`` for
            nothing), or a `Run`, whose experiment is repeated.
        b: what is compared with A.
        suite: a suite, a program or a fio job file; without one, the target's default.
        before_a: a shell command to run before each repetition of A.
        before_b: the same of B.
        budget_s: how many seconds the blocks of all programs may take.
        min_time_s: how many seconds the blocks of each program take at least, though its
            verdict comes earlier.
        blocks: the most blocks of each program.
        min_effect: the smallest change that matters, as a share.
        fail_over: a loss of speed, as a share, that is to be found or excluded besides:
            see `Comparison.gate`.
        seed: of the coins, and of both runs.
        store: as `run` has it, of both runs.
        label: names the runs ``LABEL-a`` and ``LABEL-b``.
        options: what both have in common, as `run` has it: ``on``, ``settings``, ``size``,
            and settings as keywords.

    Returns:
        Both runs, and how they compare. Two modelled systems run once each, and are
        compared exactly.

    Raises:
        SettingError, RequestError, RunError, TypeError, KeyboardInterrupt: as `run`.

    Warns:
        StoreWarning: as `run`.
    """
    common = {**options, "seed": seed}
    made_a, made_b, compared, failure = _native.ab(
        {
            "a": _side("a", a, suite, label, common),
            "b": _side("b", b, suite, label, common),
            "before_a": before_a,
            "before_b": before_b,
            "budget_s": budget_s,
            "min_time_s": min_time_s,
            "blocks": blocks,
            "min_effect": min_effect,
            "fail_over": fail_over,
            "seed": seed,
        },
        _place(store),
    )
    if failure is not None:
        warnings.warn(failure, StoreWarning, stacklevel=2)
    return AB(Run(made_a), Run(made_b), compared)


def _side(
    name: str, side: Side, suite: Suite | None, label: str | None, common: Mapping[str, Any]
) -> _native.Run | dict[str, Any]:
    """One side as the core takes it."""
    if "like" in common:
        raise TypeError("ab() takes no like: give the run as a or b, and its experiment is repeated")
    if isinstance(side, Run):
        return side._native
    own: Mapping[str, Any] = {"on": side} if isinstance(side, (str, os.PathLike, System)) else side
    together = {**common, **own}
    together["settings"] = {**(common.get("settings") or {}), **(own.get("settings") or {})}
    if label is not None:
        together["label"] = f"{label}-{name}"
    for name in ("record", "force"):
        if name in together:
            raise TypeError(f"ab() takes no {name}: `run` records, one side at a time")
    known = {key: together.pop(key) for key in OPTIONS if key in together}
    on, settings = known.pop("on", None), known.pop("settings")
    here = None if names_its_place(suite) else "."
    return asked("ab", suite, here if on is None else on, settings, together, known)
