"""Two experiments against each other, in interleaved blocks."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Mapping
from typing import Any, Union

from diskperf import _native
from diskperf._display import COLUMNS, preformatted
from diskperf._errors import StoreWarning
from diskperf._run import OPTIONS, SEED, Run, Target, _place, asked
from diskperf._system import System

#: One side: where it runs, what is different there (keywords of `run`, and settings by
#: their keys), or a run whose experiment is repeated.
Side = Union[Target, Mapping[str, Any], Run]


class AB:
    """Two runs that were measured in interleaved blocks, and how they compare.

    ``a`` and ``b`` are the two `Run` objects.
    """

    __slots__ = ("_native", "a", "b")

    def __init__(self, a: Run, b: Run, native: _native.Compared) -> None:
        self.a = a
        self.b = b
        self._native = native

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """One for each program and rate, as the JSON of ``diskperf ab`` has them: among
        others ``title``, ``quantity``, ``ratio`` (B over A), ``interval`` and
        ``verdict``.
        """
        pairs: list[dict[str, Any]] = self.to_dict()["comparison"]["pairs"]
        return pairs

    def to_json(self) -> str:
        """The JSON of ``diskperf ab --format json``."""
        return self._native.json()

    def to_dict(self) -> dict[str, Any]:
        """The same as Python's own."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    def __str__(self) -> str:
        return self._native.text(shutil.get_terminal_size((100, 24)).columns)

    def _repr_html_(self) -> str:
        return preformatted(self._native.text(COLUMNS))

    def __repr__(self) -> str:
        return f"<AB {self.a.id}, {self.b.id}: {self.a.suite}>"


def ab(
    a: Side,
    b: Side,
    suite: str | None = None,
    *,
    before_a: str | None = None,
    before_b: str | None = None,
    budget_s: float = 180.0,
    blocks: int | None = None,
    min_effect: float = 0.03,
    seed: int = SEED,
    store: bool | str | os.PathLike[str] | None = None,
    label: str | None = None,
    **options: Any,
) -> AB:
    """Tells two targets or settings apart: repetitions of both in turn, in blocks of one of
    each in random order, until every verdict is firm or the time is over. A verdict is wrong
    with a probability of at most 1 %, however often it looked before.

    Args:
        a: what B is compared with: a target, a mapping of what is different there
            (``{"cache": "direct"}``, ``{"program.call_bytes": "4K"}``, ``{}`` for
            nothing), or a `Run`, whose experiment is repeated.
        b: what is compared with A.
        suite: a suite or a program; without one, the target's default.
        before_a: a shell command to run before each repetition of A.
        before_b: the same of B.
        budget_s: how many seconds the blocks of all programs may take.
        blocks: the most blocks of each program.
        min_effect: the smallest change that matters, as a share.
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
            "blocks": blocks,
            "min_effect": min_effect,
            "seed": seed,
        },
        _place(store),
    )
    if failure is not None:
        warnings.warn(failure, StoreWarning, stacklevel=2)
    return AB(Run(made_a), Run(made_b), compared)


def _side(
    name: str, side: Side, suite: str | None, label: str | None, common: Mapping[str, Any]
) -> _native.Run | dict[str, Any]:
    """One side as the core takes it."""
    if isinstance(side, Run):
        return side._native
    own: Mapping[str, Any] = {"on": side} if isinstance(side, (str, os.PathLike, System)) else side
    together = {**common, **own}
    together["settings"] = {**(common.get("settings") or {}), **(own.get("settings") or {})}
    if label is not None:
        together["label"] = f"{label}-{name}"
    known = {key: together.pop(key) for key in OPTIONS if key in together}
    on, settings = known.pop("on", "."), known.pop("settings")
    return asked("ab", suite, on, settings, together, known)
