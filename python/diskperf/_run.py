"""Running suites and programs, and what comes of it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union, overload

from diskperf import _native
from diskperf._charts import chosen, drawn
from diskperf._display import Document
from diskperf._errors import RecordWarning, StoreWarning
from diskperf._settings import Value, gathered, keywords_of, typed
from diskperf._system import System

if TYPE_CHECKING:
    import altair

    from diskperf._explain import Explanation

#: Where something runs: a modelled system by its name or as it is; real storage by
#: its path, which contains a ``/`` or is ``.``.
Target = Union[str, "os.PathLike[str]", System]

#: What runs: a suite or a program by its name, or a fio job file by its path or its text.
Suite = Union[str, "os.PathLike[str]"]

#: The seed where none is given: the year of the first document.
SEED = 1983

#: Keywords that a run which is like another does not take from it.
OF_ITS_OWN = (
    "on",
    "settings",
    "repetitions",
    "until_steady",
    "find_limits",
    "volume",
    "size",
    "label",
    "store",
    "record",
    "force",
    "destroy_data_on",
    "ignore_signature",
    "like",
)


class Run(Document[_native.Run]):
    """One suite or program on one target, with all that was measured.

    `run` and `Store.run` give it; ``id``, ``suite``, ``target``,
    ``world`` (``host`` or ``model``), ``seed``, ``label``, ``state``, ``notes`` and
    ``command_line`` are what their names say. Its JSON is that of ``diskperf run``.
    """

    __slots__ = ("_explained",)

    def __init__(self, native: _native.Run) -> None:
        super().__init__(native)
        self._explained: Explanation | None = None

    @property
    def id(self) -> str:
        """Ten hexadecimal digits, which name it in a store."""
        return self._native.id

    @property
    def suite(self) -> str:
        """The suite, or the program when it was run by itself."""
        return self._native.suite

    @property
    def target(self) -> str:
        """The system or the path; several, joined by `` + ``."""
        return self._native.target

    @property
    def world(self) -> str:
        """``host`` (real storage) or ``model`` (virtual time)."""
        return self._native.world

    @property
    def seed(self) -> int:
        """The seed of every random choice."""
        return self._native.seed

    @property
    def label(self) -> str | None:
        """The user's own name for it."""
        return self._native.label

    @property
    def state(self) -> str:
        """How far it came: ``finished``, ``running`` (or killed), ``interrupted``, ``failed``."""
        return self._native.state

    @property
    def notes(self) -> list[str]:
        """What a reader must know about it: programs left out, settings without effect, ..."""
        return self._native.notes

    @property
    def command_line(self) -> list[str]:
        """The command line that made it, word by word; empty of a run that Python made."""
        return self._native.command_line

    @property
    def results(self) -> _native.Columns:
        """One row for each program and file system: ``program``, ``filesystem``,
        ``drives``, ``size_bytes``, ``cache``, ``kept`` (repetitions that count),
        ``kb_per_s`` until the last call returned, ``durable_kb_per_s`` until all was
        synced, ``cpu_percent`` of elapsed time, ``elapsed_s``, ``durable_elapsed_s``,
        ``cpu_s``, the 95 % interval from ``kb_per_s_low`` to ``kb_per_s_high``,
        ``calls``, ``mean_call_ns``, percentiles of reads and writes (``read_p50_ns``,
        ...), and ``device_share``, the share of the bytes read that storage delivered.
        Of programs that keep several requests under way also ``iops`` with its 95 %
        interval from ``iops_low`` to ``iops_high``, ``mb_per_s`` (10^6 bytes),
        ``depth`` of each of the ``workers``, ``read_share``, percentiles of the response
        of reads and writes together (``response_p50_us``, ``response_p99_us``,
        ``response_p99_9_us``, ``response_max_us``) and ``cpu_us_per_io``; `latencies` has
        each operation, `series` the course over time. Of programs that were repeated until
        they were steady ``steady`` says whether they came to that, ``steady_at_s`` after
        how many seconds of load. Of modelled drives whose write cache filled up,
        ``cliff_cache`` names it (``slc`` of flash, ``media`` of a shingled disk),
        ``cliff_at_bytes`` is how much was written by then, and ``cliff_past_share`` the
        share of what counts that came after. ``unwritten_share`` is the share of what was
        read from a modelled flash drive where nothing was ever written: the drive answers
        that without its dies.
        What nobody can tell is ``None``, as a percentile of too few calls is.
        """
        return self._native.results()

    @property
    def repetitions(self) -> _native.Columns:
        """One row for each repetition, the discarded ones included: ``program``,
        ``filesystem``, ``repetition``, ``discarded``, ``drives``, ``kb_per_s``,
        ``durable_kb_per_s``, ``cpu_percent``, ``elapsed_ns``, ``durable_ns``,
        ``cpu_ns``, ``bytes``, ``read_bytes``, ``written_bytes``, ``calls``; of several
        requests under way ``iops``, ``response_p50_us`` and ``response_p99_us``; and
        ``disturbed``: what else the machine did meanwhile, ``None`` where nothing was
        noticed. Repetitions that were disturbed and run again are ``discarded``.
        """
        return self._native.repetitions()

    @property
    def latencies(self) -> _native.Columns:
        """Of programs that keep several requests under way, one row for each operation
        and part: ``program``, ``filesystem``, ``operation`` (``read``, ``write``,
        ``sync``, ``discard``, ``commit``, ``create``, ``stat``, ``rename``, ``unlink``), ``part`` (``response``: from a request's
        start, where requests arrive by the clock the intended one, until its completion
        was taken; ``submit``: of that, in the call that submitted), ``count``,
        ``p50_us`` and ``p99_us`` (medians over the repetitions) with their 95 %
        intervals (``p50_us_low``, ``p50_us_high``, ...), and ``p99_9_us``,
        ``p99_99_us``, ``max_us`` and ``mean_us`` of the requests of all repetitions
        together. What too few requests cannot tell is ``None``.
        """
        return self._native.latencies()

    @property
    def series(self) -> _native.Columns:
        """Of programs that keep several requests under way, one row for each interval of
        each repetition: ``program``, ``filesystem``, ``repetition``, ``discarded``,
        ``at_s`` (when the interval began, since the start of the timed part), ``iops``,
        ``mb_per_s`` (10^6 bytes) and ``p99_us``, ``None`` of fewer than 100 requests.
        """
        return self._native.series()

    @property
    def ledger(self) -> _native.Columns:
        """Of a modelled run, what the elapsed time of each worker went to, in ``ns``
        that sum to it: ``program``, ``filesystem``, ``repetition``, ``discarded``,
        ``worker``, ``drive``, ``stage``, ``cause`` (of a missed revolution, the
        deadline), ``ns``. Real storage keeps no such account: no rows.
        """
        return self._native.ledger()

    @property
    def replay(self) -> dict[str, Any] | None:
        """Of a replay of a block trace: its ``trace``, ``form`` and ``pace``, how faithfully
        the moments of issue were kept (``fidelity``), and what requests took in the trace
        (``trace_latency``); ``None`` of other runs."""
        results = self.to_dict()["results"]
        found: dict[str, Any] | None = results[0].get("replay") if results else None
        return found

    def spans(self) -> _native.Columns:
        """Everything that happened in a modelled run, which is made again for it: one
        row for each span of the repetition that stands for all, of each program.

        Returns:
            ``program``, ``filesystem``, ``kind`` (``process``, ``request`` of a drive,
            or ``handler`` of an interrupt), ``process`` and ``request`` (numbers),
            ``drive``, ``purpose``, ``sector``, ``sectors``, ``cylinder``, ``head``,
            ``stage``, ``cause``, ``start_ns`` and ``end_ns`` of virtual time. The spans
            of a request, and of a process, follow each other without gap.

        Raises:
            RequestError: a run of real storage, or one that was stored and cannot be
                made again.
        """
        if self._explained is None:
            self._explained = self.explain(counterfactuals=False)
        return self._explained.spans()

    def explain(self, *, counterfactuals: bool = True, threads: int | None = None) -> Explanation:
        """Says where its time went: ``diskperf.explain(self, ...)``."""
        from diskperf._explain import explain

        return explain(self, counterfactuals=counterfactuals, threads=threads)

    def charts(self) -> dict[str, altair.Chart]:
        """All its charts by their names, as the HTML report has them.

        Raises:
            ImportError: Altair is not installed (``pip install '.[plot]'``).
        """
        return drawn(_native.charts([self._native]))

    def plot(self, name: str | None = None) -> altair.Chart:
        """A chart as the HTML report has it.

        Args:
            name: one of `charts`; without one, the first, which is the
                throughput of the programs where there is one.

        Raises:
            ImportError: Altair is not installed (``pip install '.[plot]'``).
            KeyError: no chart has this name.
        """
        return chosen(_native.charts([self._native]), name)

    def to_fio_json(self, *, plus: bool = False) -> str:
        """The JSON of ``diskperf run --format fio-json``, as fio prints its results.

        Args:
            plus: with all latencies, as ``fio-json+`` has them.

        Raises:
            RequestError: a run in which no program keeps requests under way.
        """
        return self._native.fio_json(plus)

    def to_dict(self) -> dict[str, Any]:
        """The one run of `to_json`, as Python's own."""
        document: dict[str, Any] = super().to_dict()["runs"][0]
        return document

    def __repr__(self) -> str:
        return f"<Run {self.id}: {self.suite} on {self.target}, {self.state}>"


def plot(runs: Run | Sequence[Run], name: str | None = None) -> altair.Chart:
    """A chart of several runs, side by side where they are of one suite.

    Args:
        runs: the runs.
        name: one of the charts' names (``throughput-1``); without one, the first.

    Raises:
        ImportError: Altair is not installed (``pip install '.[plot]'``).
        KeyError: no chart has this name.
    """
    several = [runs] if isinstance(runs, Run) else list(runs)
    return chosen(_native.charts([run._native for run in several]), name)


def names_its_place(what: Suite | None) -> bool:
    """Whether it may say itself where it runs, as the jobs of a fio job file do."""
    return what is not None and _native.is_job_file(os.fspath(what))


def asked(
    function: str,
    what: Suite | None,
    on: Target | Sequence[Target] | None,
    settings: Mapping[str, Any] | None,
    keywords: Mapping[str, Any],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """A request as the core takes it. Of the keywords of `run`, those that are not
    ``given``, or are ``None``, are what they usually are.

    Raises:
        TypeError: a target that is none, or an option that a run takes from another
            which it is to be like.
    """
    options = {
        name: usual if given.get(name) is None else given[name]
        for name, usual in OPTIONS.items()
    }
    what = None if what is None else os.fspath(what)
    like = options["like"]
    if like is not None:
        taken = [name for name in OPTIONS if name not in OF_ITS_OWN]
        wrong = [name for name in taken if options[name] != OPTIONS[name]]
        wrong += [] if what is None else ["suite"]
        if wrong:
            raise TypeError(f"{function}() takes {wrong[0]} from the run that it is to be like")
    elif on is None and not names_its_place(what):
        raise TypeError(f"{function}() needs a target: on=")
    several = [on] if isinstance(on, (str, os.PathLike, System)) else list(on or ())
    own: dict[str, str] = {}
    targets: list[str] = []
    catalogue = options["catalogue"]
    for target in several:
        if isinstance(target, System):
            if len(several) > 1 and target.settings:
                raise TypeError("a system with changes runs by itself: give one target")
            own = target.settings
            catalogue = target.catalogue.folder or catalogue
            targets.append(target.name)
        else:
            targets.append(os.fspath(target))
    folder = getattr(catalogue, "folder", catalogue)
    steady = options["until_steady"]
    other = options["other"]
    return {
        **options,
        "what": what,
        "targets": targets,
        "settings": typed({**own, **gathered(function, settings, keywords, OPTIONS)}),
        "catalogue": None if folder is None else os.fspath(folder),
        "other": None if other is None else os.fspath(other),
        "until_steady": "" if steady is True else steady or None,
        "like": None if like is None else like._native,
        "destroy_data_on": [os.fspath(device) for device in options["destroy_data_on"]],
        "fio_args": list(options["fio_args"]),
    }


@overload
def run(
    suite: Suite | None = ...,
    *,
    on: Target,
    settings: Mapping[str, Value] | None = ...,
    **options: Any,
) -> Run: ...
@overload
def run(
    suite: Suite | None = ...,
    *,
    on: Sequence[Target],
    settings: Mapping[str, Value] | None = ...,
    **options: Any,
) -> list[Run]: ...
@overload
def run(
    suite: Suite,
    *,
    settings: Mapping[str, Value] | None = ...,
    **options: Any,
) -> Run: ...
@overload
def run(
    *,
    like: Run,
    settings: Mapping[str, Value] | None = ...,
    **options: Any,
) -> Run: ...
def run(
    suite: Suite | None = None,
    *,
    on: Target | Sequence[Target] | None = None,
    settings: Mapping[str, Value] | None = None,
    drives: int | None = None,
    repetitions: int | None = None,
    until_steady: str | bool = False,
    seed: int = SEED,
    size: int | str | None = None,
    fio_args: Sequence[str] = (),
    cache: str | None = None,
    time_calls: bool = True,
    label: str | None = None,
    store: bool | str | os.PathLike[str] | None = None,
    catalogue: str | os.PathLike[str] | None = None,
    together: bool = False,
    other: str | os.PathLike[str] | None = None,
    drop_caches: bool = False,
    fresh: str | None = None,
    destroy_data_on: Sequence[str | os.PathLike[str]] = (),
    ignore_signature: bool = False,
    no_budget: bool = False,
    find_limits: bool = False,
    volume: str | None = None,
    record: str | os.PathLike[str] | None = None,
    force: bool = False,
    like: Run | None = None,
    **keywords: Value,
) -> Run | list[Run]:
    """Runs a suite or a program on a modelled system or on real storage.

    Args:
        suite: a suite or a program (`suites`, `programs`), the path of a fio job file,
            or the text of one; without one, the target's default.
        on: where: a modelled system (a name of the catalogue, the path of a
            ``FILE.toml``, a `System`), or a directory, a file or a block
            device (a path, which contains a ``/`` or is ``.``). Of several, each is
            run by itself, one after the other. A fio job file runs without where its
            jobs name one place.
        settings: parameters by their keys: ``{"filesystem.rotdelay_ms": 7}`` of a
            modelled system, ``{"program.call_bytes": "64K"}`` of the programs.
        drives: drives of a modelled system that run each program at once.
        repetitions: of each program, in place of the suite's.
        until_steady: repeat each program until its last rounds are steady, at most
            ``repetitions`` (25) times: ``True`` by SNIA's rule, which is ``"5,20%,10%"``
            (rounds, excursion, slope), or another one.
        seed: of every random choice. The same seed gives the same bytes on a model.
        size: bytes that each program moves, as a number, ``"8M"`` or ``"8MB"``; without it
            8 MiB on a model, and about half a second's worth on real storage. Of a fio job
            file: of each job that says no size.
        fio_args: words of fio's command line for a job file, ``["--runtime=10"]``: as in
            fio, defaults for what the file does not say.
        cache: ``"cold"``, ``"warm"``, or ``"direct"`` (past the page cache, O_DIRECT); by
            default cold, and O_DIRECT where the file system has it for programs that keep
            requests in flight.
        time_calls: whether each call is timed.
        label: a name of your own for the run.
        store: the file of a result store to keep it in, ``True`` for the user's own,
            ``False`` for none. Without it real measurements go to the user's own, and
            modelled runs, which can be made again, to none.
        catalogue: a folder that is laid over the catalogue.
        together: all targets at the same time, as one run.
        other: a directory on another file system, for copies.
        drop_caches: drop the caches of the whole machine before each repetition (root).
        fresh: make a fresh file system for the run: ``"ext4:block_bytes=1024"`` (root).
        destroy_data_on: block devices that may be overwritten; each must be a target.
        ignore_signature: overwrite them also if they carry a file system or the like.
        no_budget: let a modelled system take as many events, and as much virtual time
            and memory, as it needs.
        find_limits: after the programs, probe each kind of their requests for a limit on the
            rate; ``cap`` and ``at_cap`` in the document of the run say what was found.
        volume: the cloud volume that the targets are, ``"gp2:100GiB"``: a limit that is
            found is compared with its limits.
        record: a new file for a block trace of what storage is asked for in the timed
            parts, each repetition a part of it: of one target. `trace` reads it.
        force: replace the file of ``record``.
        like: a run whose programs, sizes, settings, cache mode and seed are taken, and its
            target without ``on``; ``settings`` are added to its own, and ``size``,
            ``repetitions`` and ``label`` are this run's.
        keywords: settings as keywords: ``drive="capricorn"``,
            ``filesystem={"rotdelay_ms": 7}``, ``**{"program.call_bytes": 4096}``.

    Returns:
        The run; of several targets a list of runs, with ``together`` of one.

    Raises:
        SettingError: a key that there is not, with the nearest, or a value that is
            not allowed, with what is.
        RequestError: a suite or a target that there is not, or that cannot run so, or a
            run to be like that does not keep what it was asked to do.
        RunError: a program failed.
        BudgetError: a modelled system took more than it may.
        TypeError: a keyword that there is not, or one that ``like`` decides.
        KeyboardInterrupt: Ctrl-C, within a fraction of a second; what was made on
            real storage is removed first.

    Warns:
        StoreWarning: the store failed; the results are in a file that is named.
        RecordWarning: not all that was to be recorded is, and why.
    """
    options = {name: value for name, value in locals().items() if name in OPTIONS}
    request = asked("run", suite, on, settings, keywords, options)
    recorded = None if record is None else (os.fspath(record), force)
    made, failure, unrecorded = _native.run(request, _place(store), recorded)
    if unrecorded is not None:
        warnings.warn(unrecorded, RecordWarning, stacklevel=2)
    if failure is not None:
        warnings.warn(failure, StoreWarning, stacklevel=2)
    runs = [Run(native) for native in made]
    alone = on is None or isinstance(on, (str, os.PathLike, System))
    return runs[0] if alone and len(runs) == 1 else runs


#: The keywords of `run`, each with what it is where nobody gives it.
OPTIONS = keywords_of(run)


def _place(store: bool | str | os.PathLike[str] | None) -> bool | str | None:
    return store if store is None or isinstance(store, bool) else os.fspath(store)


def describe(
    suite: Suite | None = None,
    *,
    on: Target | Sequence[Target] | None = None,
    settings: Mapping[str, Value] | None = None,
    **options: Any,
) -> str:
    """What `run` would write where, how much and for how long; nothing is done.

    Args:
        suite, on, settings, options: as `run` has them.

    Raises:
        SettingError, RequestError, TypeError: as `run`.
    """
    known = {name: options.pop(name) for name in OPTIONS if name in options}
    return _native.describe(asked("describe", suite, on, settings, options, known))


def suites() -> _native.Columns:
    """The suites: ``suite`` and ``description``."""
    return _native.suites()


def programs() -> _native.Columns:
    """The programs with their parameters, one row for each: ``program``,
    ``description``, ``path`` (the key of a setting), ``value`` unless another is
    given, ``allowed`` and ``meaning``."""
    return _native.programs()
