"""A bar with the time left, where rich is installed and somebody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from diskperf._packages import needed


@contextmanager
def shown_progress(points: int, done: int, shown: bool | None) -> Iterator[Callable[[int], None]]:
    """A bar over points.

    Args:
        points: all of them.
        done: those that were done before.
        shown: whether it is; ``None``: on a terminal, if rich is installed.

    Yields:
        A function that is told how many more are done.

    Raises:
        ImportError: it is to be shown, and rich is not installed.
    """
    if shown is False or (shown is None and not sys.stderr.isatty()):
        yield lambda _: None
        return
    try:
        needed("rich", "a progress bar needs rich", "'rich'")
    except ImportError:
        if shown:
            raise
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("sweep"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("points,"),
        # Of the last minutes: chunks come in bursts.
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=300) as bar:
        task = bar.add_task("sweep", total=points, completed=done)
        yield lambda more: bar.advance(task, more)


def duration(seconds: float) -> str:
    """A time in words: ``2.5 hours``."""
    for unit, size in (("years", 365.25 * 86400), ("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s"
