"""Charts: the Vega-Lite specifications of the HTML reports, as Altair has them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from diskperf._packages import needed

if TYPE_CHECKING:
    import altair

#: Pixels. A report's charts are as wide as its page; a notebook's have a width.
WIDTH = 640


class Specification(NamedTuple):
    """A chart as the core gives it."""

    name: str
    title: str
    caption: str
    #: Vega-Lite, as JSON.
    text: str


def drawn(parts: Iterable[tuple[str, str, str, str]]) -> dict[str, altair.Chart]:
    """The charts by their names.

    Raises:
        ImportError: Altair is not installed.
    """
    return {one[0]: chart(Specification(*one)) for one in parts}


def chosen(parts: Iterable[tuple[str, str, str, str]], name: str | None) -> altair.Chart:
    """The chart of this name, or the first.

    Raises:
        ImportError: Altair is not installed.
        KeyError: there is none.
    """
    all_of_them = [Specification(*one) for one in parts]
    for one in all_of_them:
        if name is None or one.name == name:
            return chart(one)
    names = ", ".join(one.name for one in all_of_them)
    raise KeyError(f"there is no chart {name!r}: there are {names or 'none'}")


def chart(one: Specification) -> altair.Chart:
    """A chart of Altair's own.

    Raises:
        ImportError: Altair is not installed.
    """
    altair = needed("altair", "plots need Altair", "altair", extra="plot")
    specification = json.loads(one.text)
    if specification.get("width") == "container":
        specification["width"] = WIDTH
    specification["title"] = one.title
    return altair.Chart.from_dict(specification)
