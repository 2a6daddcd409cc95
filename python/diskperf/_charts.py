"""Charts: the Vega-Lite specifications of the HTML reports, as Altair has them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

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


def drawn(specifications: Iterable[Specification]) -> dict[str, altair.Chart]:
    """The charts by their names.

    Raises:
        ImportError: Altair is not installed.
    """
    try:
        import altair
    except ImportError as error:
        raise ImportError(
            "plots need Altair: pip install 'diskperf[plot]', or pip install altair"
        ) from error
    charts = {}
    for one in specifications:
        specification = json.loads(one.text)
        if specification.get("width") == "container":
            specification["width"] = WIDTH
        specification["title"] = one.title
        charts[one.name] = altair.Chart.from_dict(specification)
    return charts
