"""diskperf: a laboratory for disk subsystem performance.

It runs I/O programs on real storage and, in virtual time, on modelled computers,
says where the time went, and compares the models with what was published of them.

    >>> import diskperf
    >>> run = diskperf.run("write_8192", on="vax780-sc780-eagle")
    >>> round(run.results["kb_per_s"][0])
    488

Results are `Columns`: tables that pandas, polars, pyarrow and DuckDB take
without copying, and that `Columns.to_pylist` gives as plain Python. Times in
the model are whole nanoseconds of virtual time (``_ns``); KB is 1024 bytes.
"""

from diskperf._ab import AB, ab
from diskperf._catalogue import Catalogue, Entry
from diskperf._cluster.fleet import Fleet, measure_fleet
from diskperf._compare import Comparison, compare
from diskperf._errors import (
    BudgetError,
    Error,
    FileError,
    RecordWarning,
    RequestError,
    RunError,
    SettingError,
    StoreError,
    StoreWarning,
    SweepWarning,
    TooManyPoints,
)
from diskperf._explain import Differences, Explanation, explain
from diskperf._findings import (
    DiskQueue,
    Expected,
    Flash,
    RealDrives,
    Recorded,
    Trace,
    Volumes,
    calculate_disk,
    calculate_flash,
    calculate_volume,
    expected,
    record,
    reproduce_real_drives,
    trace,
)
from diskperf._fit.fitting import Fit, fit
from diskperf._fit.free import Free
from diskperf._fit.observation import (
    Observation,
    observations_of_card,
    observations_of_rows,
    observations_of_run,
)
from diskperf._native import Columns, __version__
from diskperf._points import run_points
from diskperf._replay import replay
from diskperf._reproduce import Card, reproduce
from diskperf._run import Run, describe, plot, programs, run, suites
from diskperf._store import Store, open_store
from diskperf._study.sweep import sweep
from diskperf._study.swept import Sweep, open_sweep
from diskperf._system import System

__all__ = [
    "AB",
    "BudgetError",
    "Card",
    "Catalogue",
    "Columns",
    "Comparison",
    "Differences",
    "DiskQueue",
    "Entry",
    "Error",
    "Expected",
    "Explanation",
    "FileError",
    "Fit",
    "Flash",
    "Fleet",
    "Free",
    "Observation",
    "RealDrives",
    "RecordWarning",
    "Recorded",
    "RequestError",
    "Run",
    "RunError",
    "SettingError",
    "Store",
    "StoreError",
    "StoreWarning",
    "Sweep",
    "SweepWarning",
    "System",
    "TooManyPoints",
    "Trace",
    "Volumes",
    "__version__",
    "ab",
    "calculate_disk",
    "calculate_flash",
    "calculate_volume",
    "compare",
    "describe",
    "expected",
    "explain",
    "fit",
    "measure_fleet",
    "observations_of_card",
    "observations_of_rows",
    "observations_of_run",
    "open_store",
    "open_sweep",
    "plot",
    "programs",
    "record",
    "replay",
    "reproduce",
    "reproduce_real_drives",
    "run",
    "run_points",
    "suites",
    "sweep",
    "trace",
]
