"""Runs side by side: what may be said of their differences."""

from __future__ import annotations

import os
from typing import Any

from diskperf import _native
from diskperf._display import Document
from diskperf._run import Run, _place


class Comparison(Document[_native.Compared]):
    """Runs compared with the first of them: `compare` gives it, and `ab` one with both runs.
    Its JSON is that of ``diskperf compare``.
    """

    __slots__ = ()

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """One for each program and rate, as the JSON of ``diskperf compare`` has them: among
        others ``program``, ``quantity``, ``ratio`` (over the base), ``interval`` and
        ``verdict``.
        """
        pairs: list[dict[str, Any]] = self.to_dict()["comparison"]["pairs"]
        return pairs

    @property
    def gate(self) -> str | None:
        """What ``fail_over`` says: ``kept`` (larger slow-downs are excluded), ``exceeded``,
        ``cannot_tell`` or ``missing`` (a program was not measured in both); ``None`` without
        a limit.
        """
        return self._native.gate()

    @property
    def failures(self) -> list[str]:
        """Why the limit is not kept, or not known to be: a sentence for each."""
        return self._native.failures()

    def __repr__(self) -> str:
        ids = [run["id"] for run in self.to_dict()["comparison"]["runs"]]
        return f"<{type(self).__name__} {', '.join(ids)}>"


def compare(
    a: Run,
    b: Run,
    *others: Run,
    fail_over: float | None = None,
    min_effect: float | None = None,
    store: bool | str | os.PathLike[str] | None = None,
) -> Comparison:
    """Compares runs with the first of them. Two separate runs of real storage tell little:
    runs as wholes differ more than the repetitions within each. `ab` tells smaller
    differences; its two runs are compared by their blocks. Modelled runs are exact.

    Args:
        a: the base.
        b: what is compared with it.
        others: more that are.
        fail_over: a loss of speed, as a share, that is to be excluded: ``0.05`` is 5 %.
            `Comparison.gate` is then what is known of it.
        min_effect: the smallest change that matters, as a share; without it 3 %, or what
            the arms of `ab` were measured with.
        store: the result store whose earlier runs of the same things say how much runs
            differ: a file, ``False`` for none, else the user's own.

    Raises:
        RequestError: a share that is none.
        StoreError: the store cannot be read.
    """
    natives = [run._native for run in (a, b, *others)]
    return Comparison(_native.compare(natives, fail_over, min_effect, _place(store)))
