"""Settings as Python has them, and as the core takes them: ``PATH=VALUE``."""

from __future__ import annotations

import difflib
import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

from diskperf._errors import SettingError

#: A value of a setting: a number, a word, a flag, or a list of these.
Value = Union[str, int, float, bool, Sequence[Any]]

#: What stands in front of the dot of a key, and alone where another entry of the
#: catalogue is put in a component's place. ``drives`` is how many are configured.
COMPONENTS = ("host", "bus", "kernel", "filesystem", "driver", "controller", "drive")


def written(key: str, value: object) -> str:
    """A value as the catalogue's files have it."""
    if isinstance(value, str):
        return value
    if hasattr(value, "item") and not isinstance(value, (list, tuple)):
        value = value.item()  # A number of NumPy's.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, Iterable) and not isinstance(value, (Mapping, bytes)):
        return "[" + ", ".join(written(key, item) for item in value) + "]"
    raise SettingError(
        f"`{key}` cannot be {value!r} ({type(value).__name__}): give a number, a word, "
        "True or False, or a list of these"
    )


def flat(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings by their whole keys: ``{"drive": {"rpm": 3600}}`` is ``drive.rpm``."""
    found: dict[str, str] = {}
    for key, value in settings.items():
        if not isinstance(key, str) or not key:
            raise SettingError(f"a key of a setting is a word like drive.rpm, not {key!r}")
        if isinstance(value, Mapping):
            inner = flat(value)
            found.update((f"{key}.{name}", text) for name, text in inner.items())
        else:
            found[key] = written(key, value)
    return found


def typed(settings: Mapping[str, str]) -> list[str]:
    """Settings as the core takes them."""
    return [f"{key}={text}" for key, text in settings.items()]


def keywords_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The keywords of a function, each with what it is where nobody gives it."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}


def gathered(
    function: str,
    settings: Mapping[str, object] | None,
    keywords: Mapping[str, object],
    options: Iterable[str],
) -> dict[str, str]:
    """The settings of a call, given as a dict and as keywords.

    Raises:
        TypeError: a keyword that is neither a component nor has a dot in it.
    """
    for name in keywords:
        if "." not in name and name not in COMPONENTS:
            known = [*options, *COMPONENTS]
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            raise TypeError(f"{function}() has no keyword `{name}`{meant}")
    return {**flat(settings or {}), **flat(keywords)}
