"""Where the time of a modelled run went, and why two differ."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, overload

from diskperf import _native
from diskperf._display import Document
from diskperf._errors import RequestError
from diskperf._run import OPTIONS, SEED, Run, Suite, Target, asked
from diskperf._settings import Value
from diskperf._system import System

_LEDGER = {
    "program": "string",
    "filesystem": "string",
    "drives": "int64",
    "stage": "string",
    "cause": "string",
    "ns": "int64",
}
_RESPONSE = {
    "program": "string",
    "filesystem": "string",
    "drives": "int64",
    "requests": "int64",
    "stage": "string",
    "cause": "string",
    "ns": "int64",
    "mean_ns": "double",
}
_COUNTERFACTUALS = {
    "program": "string",
    "filesystem": "string",
    "drives": "int64",
    "change": "string",
    "elapsed_ns": "int64",
    "gain": "double",
    "beats_sum": "bool",
}


class Explanation(Document[_native.Explanation]):
    """Where the time of each program went, what it means, and what would change it.

    Its JSON is that of ``diskperf explain``: ``programs``, each with ``elapsed_ns``,
    ``ledger``, ``utilisation``, ``missed``, ``verdict``, ``counterfactuals``; where a drive
    had several requests under way ``response``: what these took together, by stage; where
    disks with a cache were read ``buffered``: how many reads that answered; on real
    storage ``accounted_cpu_ns``: the processor time by the kernel's accounting, which the
    events agree with.
    """

    __slots__ = ("_document",)

    def __init__(self, native: _native.Explanation) -> None:
        super().__init__(native)
        self._document = self.to_dict()

    @property
    def verdict(self) -> str:
        """What it means, in a few sentences for each program."""
        programs = self._document["programs"]
        return "\n".join(
            f"{one['program']}, {one['filesystem']}: {one['verdict']}" for one in programs
        )

    @property
    def ledger(self) -> _native.Columns:
        """What the elapsed time went to, one row for each stage of each program:
        ``program``, ``filesystem``, ``drives``, ``stage``, ``cause``, ``ns``. The ``ns``
        of a program sum to its elapsed time, to the nanosecond."""
        return self._rows("ledger", _LEDGER)

    @property
    def response(self) -> _native.Columns:
        """What the requests of each program took together, by stage, where a drive had several
        under way: ``program``, ``filesystem``, ``drives``, ``requests``, ``stage``, ``cause``,
        ``ns`` (of all of them) and ``mean_ns`` (of one). Empty where none had."""
        rows = [
            {
                **one,
                **line,
                "requests": one["response"]["requests"],
                "mean_ns": line["ns"] / one["response"]["requests"],
            }
            for one in self._document["programs"]
            if "response" in one
            for line in one["response"]["stages"]
        ]
        columns = {column: [row.get(column) for row in rows] for column in _RESPONSE}
        return _native.Columns.from_pydict(columns, _RESPONSE)

    @property
    def counterfactuals(self) -> _native.Columns:
        """What each program would take with something changed, the best first:
        ``program``, ``filesystem``, ``drives``, ``change`` (in words), ``elapsed_ns``,
        ``gain`` (how much less time, as a share), ``beats_sum`` (two changes that gain
        more together than the sum of both)."""
        return self._rows("counterfactuals", _COUNTERFACTUALS)

    def _rows(self, name: str, types: dict[str, str]) -> _native.Columns:
        rows = [{**one, **row} for one in self._document["programs"] for row in one[name]]
        columns = {column: [row.get(column) for row in rows] for column in types}
        return _native.Columns.from_pydict(columns, types)

    def spans(self) -> _native.Columns:
        """One row for each span of what is explained: see `Run.spans`."""
        return self._native.spans()

    def perfetto(self) -> bytes:
        """A trace that https://ui.perfetto.dev opens: programs, processor, bus, drives."""
        return self._native.perfetto()

    def __repr__(self) -> str:
        return f"<Explanation of {self._document['what']}>"


class Differences(Document[_native.Differences]):
    """Why two runs or systems differ. Its JSON is that of ``diskperf explain A B``."""

    __slots__ = ()

    def __repr__(self) -> str:
        document = self.to_dict()
        return f"<Differences of {document['a']} and {document['b']}>"


@overload
def explain(what: Run | Target, against: None = ..., **options: Any) -> Explanation: ...
@overload
def explain(what: Run | Target, against: Run | Target, **options: Any) -> Differences: ...
def explain(
    what: Run | Target,
    against: Run | Target | None = None,
    *,
    suite: Suite | None = None,
    settings: Mapping[str, Value] | None = None,
    drives: int | None = None,
    repetitions: int | None = None,
    seed: int = SEED,
    size: int | str | None = None,
    cache: str | None = None,
    catalogue: str | os.PathLike[str] | None = None,
    no_budget: bool = False,
    counterfactuals: bool = True,
    threads: int | None = None,
    **keywords: Value,
) -> Explanation | Differences:
    """Says where the time of a modelled run went and what would change it; of two,
    why they differ.

    Args:
        what: a run, which is repeated exactly, or a modelled system.
        against: another.
        suite, settings, drives, repetitions, seed, size, cache, catalogue,
            no_budget, keywords: of a system, as `run` has them.
        counterfactuals: whether it is also run with one thing changed at a time.
        threads: machines at a time; without it, as many as there are processors. The
            result does not depend on it.

    Raises:
        RequestError: a run of real storage, which keeps no account of its time; a
            stored run that this version would not make again as it was.
        SettingError: a key or a value that there is not.
        BudgetError: a system took more than it may, or a record of it would.
        KeyboardInterrupt: Ctrl-C.
    """
    options = {name: value for name, value in locals().items() if name in OPTIONS}
    of_system = suite or settings or keywords or drives or repetitions or size

    def subject(one: Run | Target) -> _native.Run | dict[str, Any]:
        if isinstance(one, Run):
            if of_system and not isinstance(against, (str, System)):
                raise RequestError(
                    "a run is repeated exactly: suite, settings, drives, repetitions and "
                    "size apply to a system, as in explain('vax780-sc780-eagle', suite='write_8192')"
                )
            return one._native
        return asked("explain", suite, one, settings, keywords, options)

    if against is None:
        return Explanation(_native.explain(subject(what), counterfactuals, threads))
    found = _native.differences(subject(what), subject(against), (counterfactuals, threads))
    return Differences(found)
