"""What was observed of a system: the numbers that a fit has to come to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, Union

from diskperf import _native
from diskperf._errors import RequestError
from diskperf._run import Run
from diskperf._settings import flat
from diskperf._system import System

if TYPE_CHECKING:
    from diskperf._reproduce import Card

#: The uncertainty of an observation that has none of its own: one standard
#: deviation, as a share of the value. What two runs of the tables of 1983 differ by.
UNCERTAINTY = 0.03

#: The same of a CPU share that is taken from a document, in points: printed in
#: whole percent, and measured by ticks of a clock.
CPU_POINTS = 2.0

#: A column of :func:`diskperf.run_points`, and what it is multiplied by, for each
#: metric that is no column itself.
DERIVED = {
    "elapsed_s": ("elapsed_ns", 1e-9),
    "durable_s": ("durable_ns", 1e-9),
    "cpu_s": ("cpu_ns", 1e-9),
    "processor_s": ("processor_ns", 1e-9),
}

#: The columns that can be observed.
COLUMNS = (
    "kb_per_s", "durable_kb_per_s", "cpu_percent", "elapsed_ns", "durable_ns", "cpu_ns",
    "processor_ns", "requests", "missed_revolutions", "read_p99_ns", "write_p99_ns",
)  # fmt: skip


@dataclass(frozen=True)
class Observation:
    """One number that was measured or printed, and what it was measured of.

    Raises:
        RequestError: a value or an uncertainty that no fit can use.
    """

    #: The suite or program that it is of.
    suite: str
    #: The number.
    value: float
    #: What the number is: a column of :func:`run_points` (``kb_per_s``,
    #: ``cpu_percent``, ``elapsed_ns``, ...), or ``elapsed_s``, ``durable_s``, ``cpu_s``,
    #: ``processor_s``.
    metric: str = "kb_per_s"
    #: One standard deviation: a share of the value if ``relative``, and otherwise in
    #: the metric's own unit.
    uncertainty: float = UNCERTAINTY
    #: Whether the uncertainty is a share of the value.
    relative: bool = True
    #: What was set for it, by keys of the system and of the program.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Which program, of a suite that has several.
    program: Optional[str] = None
    #: The system that it was measured on, if not the one that is fitted.
    on: Union[System, str, None] = None
    #: As :func:`run_points` has them.
    drives: Optional[int] = None
    size: Union[int, str, None] = None
    repetitions: Optional[int] = None
    cache: str = "cold"
    #: What it is called in the results; without one, its program, metric and settings.
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", flat(self.settings))
        if self.metric not in COLUMNS and self.metric not in DERIVED:
            raise RequestError(
                f"{self}: there is no metric `{self.metric}`: there are "
                f"{', '.join([*COLUMNS, *DERIVED])}"
            )
        for what, number in (("value", self.value), ("uncertainty", self.uncertainty)):
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                number = _number(self, what, number)
            if not math.isfinite(number):
                raise RequestError(f"{self}: its {what} is {number}: give a finite number")
        if self.uncertainty <= 0:
            raise RequestError(f"{self}: its uncertainty is {self.uncertainty}: give one above 0")
        if self.relative and self.value <= 0:
            raise RequestError(
                f"{self}: its value is {self.value}, and its uncertainty a share of it: "
                "give relative=False with an uncertainty in the metric's unit"
            )

    @property
    def column(self) -> str:
        """The column of :func:`run_points` that it is compared with."""
        return DERIVED.get(self.metric, (self.metric, 1.0))[0]

    @property
    def factor(self) -> float:
        """What the column is multiplied by."""
        return DERIVED.get(self.metric, (self.metric, 1.0))[1]

    def __str__(self) -> str:
        if self.name:
            return self.name
        of = f"{self.program} of {self.suite}" if self.program else self.suite
        settings = "".join(f", {key}={text}" for key, text in self.settings.items())
        drives = f", {self.drives} drives" if self.drives else ""
        return f"{self.metric} of {of}{drives}{settings}"


def _number(observation: Observation, what: str, number: object) -> float:
    try:
        return float(number)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise RequestError(
            f"{observation}: its {what} is {number!r}: give a finite number"
        ) from None


def observations_of_card(
    card: Card,
    *,
    role: str | None = None,
    share: float = UNCERTAINTY,
    cpu_points: float = CPU_POINTS,
) -> list[Observation]:
    """The printed numbers of an accuracy card as observations: those of ``reproduce``
    that are the throughput or the CPU share of a program of ``ffs83`` on one drive
    or more, with 8 MiB each as printed. Suspect ones are left out, and one that
    another table prints as well counts once.

    Args:
        card: what :func:`reproduce` gave.
        role: only cells of this role: ``calibration`` or ``prediction``.
        share: the uncertainty of a rate, one standard deviation.
        cpu_points: that of a CPU share, in points.
    """
    observations = []
    for cell in card.cells:
        rate = cell["quantity"] == "kb_per_s"
        if not rate and cell["quantity"] != "cpu_percent":
            continue
        if cell["printed"] is None or cell["suspect"] or cell["same_as"] or not cell["filesystem"]:
            continue
        if role is not None and cell["role"] != role or cell["test"] not in FFS83:
            continue
        observations.append(
            Observation(
                "ffs83",
                cell["printed"],
                cell["quantity"],
                uncertainty=share if rate else cpu_points,
                relative=rate,
                settings={"filesystem": cell["filesystem"].split("/")[0].lower()},
                program=cell["test"],
                on=cell["target"],
                drives=cell["drives"] or 1,
                name=cell["id"],
            )
        )
    return observations


#: The programs of the suite that the documents' tables of file systems have.
FFS83 = ("read_8192", "write_4096", "write_8192", "rewrite_8192")


def observations_of_run(
    runs: Run | Iterable[Run],
    metrics: Iterable[str] = ("kb_per_s",),
    *,
    settings: Mapping[str, Any] | None = None,
    uncertainty: float | None = None,
) -> list[Observation]:
    """The results of measured runs as observations: one for each program and metric.

    Args:
        runs: what :func:`run` or a store gave.
        metrics: ``kb_per_s``, ``durable_kb_per_s``, ``cpu_percent``, ``elapsed_s`` or
            ``cpu_s``.
        settings: what the model has to have set for them.
        uncertainty: as a share of the value. Without it that of the repetitions: half
            of the 95 % interval over 1.96 where a run states one, and otherwise
            ``UNCERTAINTY``; at least 0.1 %.
    """
    observations = []
    for run in [runs] if isinstance(runs, Run) else runs:
        for row in run.results:
            for metric in metrics:
                if metric not in row:
                    raise RequestError(
                        f"a run has no metric `{metric}`: it has kb_per_s, durable_kb_per_s, "
                        "cpu_percent, elapsed_s, cpu_s"
                    )
                if row[metric] is not None:
                    observations.append(_of_row(run, row, metric, settings, uncertainty))
    return observations


def _of_row(
    run: Run,
    row: Mapping[str, Any],
    metric: str,
    settings: Mapping[str, Any] | None,
    uncertainty: float | None,
) -> Observation:
    low, high = row["kb_per_s_low"], row["kb_per_s_high"]
    if uncertainty is None and low and high and high > low:
        uncertainty = max(math.log(high / low) / (2 * 1.96), 0.001)
    return Observation(
        run.suite,
        row[metric],
        metric,
        uncertainty=UNCERTAINTY if uncertainty is None else uncertainty,
        settings=settings or {},
        program=row["program"],
        drives=row["drives"],
        size=row["size_bytes"],
        cache=row["cache"],
        name=f"{run.id} {row['program']} {metric}",
    )


def observations_of_rows(rows: _native.Columns | Iterable[Mapping[str, Any]]) -> list[Observation]:
    """Observations from rows of a table: a dict each, with the names that
    :class:`Observation` has; ``None`` stands for what it has by itself.

    Raises:
        RequestError: a row with a name that an observation does not have.
    """
    known = Observation.__dataclass_fields__
    observations = []
    for number, row in enumerate(rows):
        unknown = [name for name in row if name not in known]
        missing = [name for name in ("suite", "value") if row.get(name) is None]
        if unknown or missing:
            wrong = f"`{unknown[0]}` is none of" if unknown else f"`{missing[0]}` is missing of"
            raise RequestError(f"row {number}: {wrong} {', '.join(known)}")
        observations.append(Observation(**{name: one for name, one in row.items() if one is not None}))
    return observations
