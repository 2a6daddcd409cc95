"""What a fit found, as files of a catalogue."""

from __future__ import annotations

import json
import os
import re
import tempfile
from typing import TYPE_CHECKING, Any

from diskperf import _native
from diskperf._errors import FileError, RequestError
from diskperf._fit.report import BY_PRIOR
from diskperf._settings import COMPONENTS

if TYPE_CHECKING:
    from diskperf._fit.fitting import Fit
    from diskperf._system import System


def write(fit: Fit, folder: str, name: str) -> list[str]:
    """Writes a variant of each system of a fit; ``Fit.to_catalogue`` has the words."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise RequestError(f"`{name}` is no name of a variant: give small letters, digits and hyphens")
    bases = [_base(system) for system in fit.systems]
    twice = next((base for base in bases if bases.count(base) > 1), None)
    if twice is not None:
        raise RequestError(
            f"{twice} was observed with changes of several kinds, and {twice}:{name} can be only one "
            "of them: give what differs as settings of the observations"
        )
    texts = [_text(fit, system) for system in fit.systems]
    paths = [os.path.join(folder, "systems", base, f"{name}.toml") for base in bases]
    for path, text in zip(paths, texts):
        _written(path, text)
    return paths


def _base(system: System) -> str:
    if "/" in system.name or system.name.endswith(".toml"):
        raise RequestError(
            f"{system.name} is a file: put it below systems/ of a catalogue folder, and fit the system of it"
        )
    if ":" in system.name:
        raise RequestError(
            f"{system.name} is a variant, and can have none itself: fit {system.name.split(':')[0]} "
            "with what differs as settings"
        )
    return system.name


def _text(fit: Fit, system: System) -> str:
    """The file of one system: what the fit was given as it is, and what it found."""
    allowed = dict(zip(system.parameters["path"], system.parameters["allowed"]))
    found = {row["key"]: row for row in fit.parameters if _is_of(row, system)}
    tables: dict[str, list[str]] = {"": [], "components": []}
    for key, text in system.settings.items():
        source = _source(fit, found[key]) if key in found else "as the fit was given it"
        _add(tables, key, _value(key, text, allowed), source)
    lines = [
        f"description = {json.dumps(f'{system.description} With what was fitted.', ensure_ascii=False)}",
        f"source = {json.dumps(_source(fit, None), ensure_ascii=False)}",
    ]
    for name, entries in tables.items():
        if entries:
            lines += ["", f"[{name}]"] if name else []
            lines += entries
    return "\n".join(lines) + "\n"


def _is_of(row: dict[str, Any], system: System) -> bool:
    """Whether a parameter that was found is the system's own of that key."""
    if row["key"] not in system.settings or row["key"].startswith("program."):
        return False
    return bool(float(system.settings[row["key"]]) == row["value"])


def _add(tables: dict[str, list[str]], key: str, value: str, source: str) -> None:
    parts = key.split(".")
    if key in COMPONENTS:
        tables["components"].append(f"{key} = {value}")
    elif len(parts) == 1:
        tables[""].append(f"{key} = {value}")
    elif len(parts) == 2 and parts[1].isdigit():
        tables.setdefault(key, []).append(f"component = {value}")
    else:
        entries = tables.setdefault(".".join(parts[:-1]), [])
        entries.append(f"{parts[-1]} = {value}")
        entries.append(f"{parts[-1]}_source = {json.dumps(source, ensure_ascii=False)}")


def _value(key: str, text: str, allowed: dict[str, str]) -> str:
    """A value as TOML has it: a choice is a word, even where it looks like a number."""
    choices = allowed.get(key, "")
    is_word = choices == "text" or (" | " in choices and choices != "true | false")
    if not is_word and re.fullmatch(r"true|false|[-+0-9._eE]+|\[.*\]", text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _source(fit: Fit, row: dict[str, Any] | None) -> str:
    rows = fit.observations.to_pylist()
    held_out = sum(row["held_out"] for row in rows)
    words = f"fitted: on {len(rows) - held_out} observations, error {100 * fit.error:.1f} %"
    if fit.held_out_error is not None:
        words += f"; on {held_out} held out {100 * fit.held_out_error:.1f} %"
    if row is None:
        return f"{words}; diskperf {_native.__version__}"
    if row["determined"] == "yes":
        return f"{words}; 95 % interval {row['low']:.4g} to {row['high']:.4g}"
    if row["determined"] == BY_PRIOR:
        return f"{words}, which add little to what was expected"
    if row["determined"] == "no":
        return f"{words}; not determined by them"
    end = f"above {row['low']:.4g}" if row["high"] is None else f"below {row['high']:.4g}"
    return f"{words}; determined {row['determined']}: {end}"


def _written(path: str, text: str) -> None:
    """Writes a file beside its place and renames it."""
    folder = os.path.dirname(path)
    beside = None
    try:
        os.makedirs(folder, exist_ok=True)
        handle, beside = tempfile.mkstemp(prefix=".fitted-", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except OSError as error:
        if beside is not None and os.path.exists(beside):
            os.unlink(beside)
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
