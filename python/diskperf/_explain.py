"""Where the time of a modelled run went, and why two differ."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from typing import Any, overload

from diskperf import _native
from diskperf._display import COLUMNS, preformatted
from diskperf._errors import RequestError
from diskperf._run import SEED, Run, Target, asked
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
_COUNTERFACTUALS = {
    "program": "string",
    "filesystem": "string",
    "drives": "int64",
    "change": "string",
    "elapsed_ns": "int64",
    "gain": "double",
    "beats_sum": "bool",
}


class Explanation:
    """Where the time of each program went, what it means, and what would change it."""

    __slots__ = ("_document", "_native")

    def __init__(self, native: _native.Explanation) -> None:
        self._native = native
        self._document: dict[str, Any] = json.loads(native.json())

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

    def to_json(self) -> str:
        """The JSON of ``diskperf explain --format json``."""
        return self._native.json()

    def to_dict(self) -> dict[str, Any]:
        """`to_json` as Python's own: ``programs``, each with ``elapsed_ns``,
        ``ledger``, ``utilisation``, ``missed``, ``verdict``, ``counterfactuals``; on real
        storage ``accounted_cpu_ns``: the processor time by the kernel's accounting, which
        the events agree with."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    def __str__(self) -> str:
        return self._native.text(shutil.get_terminal_size((100, 24)).columns)

    def _repr_html_(self) -> str:
        return preformatted(self._native.text(COLUMNS))

    def __repr__(self) -> str:
        return f"<Explanation of {self._document['what']}>"


class Differences:
    """Why two runs or systems differ."""

    __slots__ = ("_json", "_text")

    def __init__(self, text_of_json: str, text: str) -> None:
        self._json = text_of_json
        self._text = text

    def to_json(self) -> str:
        """The JSON of ``diskperf explain A B --format json``."""
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """`to_json` as Python's own."""
        document: dict[str, Any] = json.loads(self._json)
        return document

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return preformatted(self._text)

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
    suite: str | None = None,
    settings: Mapping[str, Value] | None = None,
    drives: int | None = None,
    repetitions: int | None = None,
    seed: int = SEED,
    size: int | str | None = None,
    cache: str = "cold",
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
    options = {
        "drives": drives,
        "repetitions": repetitions,
        "seed": seed,
        "size": size,
        "cache": cache,
        "catalogue": catalogue,
        "no_budget": no_budget,
    }

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
    width = shutil.get_terminal_size((100, 24)).columns
    means = (counterfactuals, threads, width)
    return Differences(*_native.differences(subject(what), subject(against), means))
