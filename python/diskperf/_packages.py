"""Packages that a part of diskperf needs, and that are installed with it if asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, who: str, package: str) -> Any:
    """A module of another package.

    Raises:
        ImportError: it is not installed; with ``who`` needs it, and what installs it:
            the extra ``sweep``, or the package alone.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{who}: pip install '{package}', or diskperf's own extra: pip install '.[sweep]'") from error
