"""``python -m diskperf sweep STUDY.toml``."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from diskperf._catalogue import Catalogue
from diskperf._errors import Error, FileError, RequestError, SweepWarning, TooManyPoints
from diskperf._study.sweep import sweep
from diskperf._study.swept import GOALS, Sweep
from diskperf._system import System

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: What a study's file may have, beside the tables ``over`` and ``settings``.
KEYS = (
    "system", "suite", "seeds", "drives", "size", "repetitions", "cache", "time_calls",
    "catalogue", "to", "errors", "chunk_points", "most_points",
)  # fmt: skip
TABLES = ("over", "settings")

#: Exit codes, as those of the command line.
DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130


def parser() -> argparse.ArgumentParser:
    """The words that the command takes."""
    words = argparse.ArgumentParser(
        prog="diskperf sweep",
        description="Runs a suite for every combination of some keys' values, on this machine's cores "
        "or on a Dask cluster. The same command resumes an interrupted study.",
    )
    words.add_argument("study", help="the study: a TOML file (docs/sweeps.md)")
    words.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler: tcp://10.0.0.1:8786")
    words.add_argument("--to", metavar="FOLDER", help="directory of the results; overrides the file")
    words.add_argument("--goal", choices=tuple(GOALS), default="throughput", help="goal by which the best point is chosen")
    words.add_argument("--yes", action="store_true", help="start a study of very many points without confirmation")
    words.add_argument("--quiet", action="store_true", help="no progress bar")
    return words


def main(words: list[str]) -> int:
    """Does what the words say, and gives the exit code."""
    options = parser().parse_args(words)
    warnings.simplefilter("always", SweepWarning)
    warnings.showwarning = lambda message, *_, **__: _say(f"note: {message}")
    try:
        study = read(options.study)
        if options.to is not None:
            study["to"] = options.to
        if study.get("to") is None:
            raise RequestError(f'{options.study} does not say where to: write to = "FOLDER", or give --to FOLDER')
        _print(_run(study, options), options.goal)
    except KeyboardInterrupt:
        _say("diskperf: interrupted; the same command computes what is missing")
        return INTERRUPTED
    except (RequestError, FileError, ImportError) as error:
        _say_error(error)
        return WRONG
    except Error as error:
        _say_error(error)
        return FAILED
    return DONE


def _run(study: dict[str, Any], options: argparse.Namespace) -> Sweep:
    shown = False if options.quiet else None
    try:
        return sweep(**study, executor=options.scheduler, progress=shown)
    except TooManyPoints as error:
        if not options.yes and not _agreed(error.estimate):
            remedy = f"give fewer values, or --yes (in {options.study}: most_points = {error.points}) to begin"
            raise RequestError(f"{error.estimate}: {remedy}") from None
        return sweep(**{**study, "most_points": error.points}, executor=options.scheduler, progress=shown)


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return False
    print(f"{question}\nBegin? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def read(path: str) -> dict[str, Any]:
    """A study's file as `sweep` takes it.

    Raises:
        FileError: it cannot be read, or is no TOML.
        RequestError: a key that there is not, or one that is missing.
    """
    try:
        with open(path, "rb") as file:
            study = tomllib.load(file)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: {error}") from None
    for key in study:
        if key not in (*KEYS, *TABLES):
            raise RequestError(f"{path}: a study has no `{key}`; it has {', '.join((*KEYS, *TABLES))}")
    for key in TABLES:
        if not isinstance(study.get(key, {}), Mapping):
            raise RequestError(f"{path}: `{key}` is a table: write [{key}], and its keys below")
    if "system" not in study:
        raise RequestError(f'{path}: it does not say on what: write system = "vax780-sc780-eagle"')
    study["over"] = _whole_keys(study.get("over", {}))
    folder = study.pop("catalogue", None)
    if folder is not None:
        # As the other paths of the file: from where the command is given.
        study["system"] = System(study["system"], catalogue=Catalogue(os.fspath(folder)))
    return study


def _whole_keys(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """``[over] filesystem.rotdelay_ms = ...`` is a table in a table; its key is
    ``filesystem.rotdelay_ms``."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found.update(_whole_keys(value, f"{before}{key}."))
        else:
            found[f"{before}{key}"] = value
    return found


def _print(swept: Sweep, goal: str) -> None:
    print(f"{swept.points:,} points are in {swept.path}")
    try:
        best = swept.best(goal)
    except RequestError as error:
        print(error)
        return
    settings = [f"{key}={best[key]}" for key in swept.definition["over"]]
    unit = {"throughput": "KB/s", "latency": "ms, 99 % of calls", "cpu": "CPU ms per MiB"}[goal]
    spread = f" ({best['lowest']:.4g} to {best['highest']:.4g} over {best['seeds']} seeds)" if best["seeds"] > 1 else ""
    print(f"best: {' '.join(settings) or 'as it is'}, {best[goal]:.4g} {unit}{spread}")


def _say_error(error: Exception) -> None:
    # What is wrong with the catalogue or a setting begins with this word.
    text = str(error)
    _say(text if text.startswith("error: ") else f"diskperf: {text}")


def _say(text: str) -> None:
    print(text, file=sys.stderr)
