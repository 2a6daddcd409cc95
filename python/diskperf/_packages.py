"""Packages that a part of diskperf needs, and that are installed with it if asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, who: str, package: str, extra: str = "sweep") -> Any:
    """A module of another package.

    Args:
        package: what `pip install` is to be given, quoted if a shell needs that.

    Raises:
        ImportError: it is not installed; with ``who`` needs it, and what installs it:
            the package alone, or the extra of this one.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{who}: pip install {package}, or diskperf's own extra: pip install '.[{extra}]'") from error
