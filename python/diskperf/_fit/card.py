"""The accuracy card as a model that a fit can have: numbers of catalogue files in,
the numbers of cells out. Whatever a document measured can be fitted so, under the
settings that the card has of it."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from diskperf._errors import RunError
from diskperf._fit.free import Free
from diskperf._fit.model import Response
from diskperf._fit.observation import CPU_POINTS, UNCERTAINTY
from diskperf._reproduce import reproduce
from diskperf._system import System

#: The texts of catalogue files by their names (``hosts/vax780.toml``), with numbers.
Overlay = Callable[[Sequence[float]], Mapping[str, str]]


@dataclass(frozen=True)
class CellNumber:
    """A printed number of a cell."""

    #: The cell's id; of its CPU share with ``#cpu`` behind.
    name: str
    #: What it was measured on.
    target: str
    metric: str
    value: float
    #: One standard deviation: what two runs of one table differ by, with the width
    #: that the printed digits or the clock leave. A share, but of CPU shares points.
    uncertainty: float
    relative: bool

    def __str__(self) -> str:
        return self.name


def numbers_of(patterns: Sequence[str]) -> list[CellNumber]:
    """The scored numbers of cells, one for each that was measured, in the card's order.

    Args:
        patterns: of ids, in which ``*`` stands for any characters but ``/``.

    Raises:
        RequestError: patterns that no cell fits.
    """
    documents = list(dict.fromkeys(one.split("/")[0] for one in patterns))
    each = [re.escape(one).replace(r"\*", "[^/]*") + "(#cpu)?" for one in patterns]
    found: dict[str, CellNumber] = {}
    for cell in reproduce(documents, cell=list(patterns)).cells:
        name = cell["same_as"] or cell["id"]
        is_one = any(re.fullmatch(one, cell["id"]) for one in each)
        if is_one and cell["scored"] and cell["printed"] is not None and name not in found:
            found[name] = _number(name, cell)
    return list(found.values())


def _number(name: str, cell: Mapping[str, Any]) -> CellNumber:
    printed = float(cell["printed"])
    if cell["quantity"] == "cpu_percent":
        # csh drops its fraction, which may be any.
        return CellNumber(name, cell["target"] or "", cell["quantity"], printed + 0.5, CPU_POINTS, False)
    uncertainty = math.hypot(UNCERTAINTY, _half_width(cell) / math.sqrt(3) / printed)
    return CellNumber(name, cell["target"] or "", cell["quantity"], printed, uncertainty, True)


def _half_width(cell: Mapping[str, Any]) -> float:
    """Half of the range of true values that are printed so: of the clock's range where
    the card has one; otherwise of the last digit, which of a whole number that ends in
    0 is the tens."""
    if cell["printed_low"] is not None and cell["printed_high"] is not None:
        return float(cell["printed_high"] - cell["printed_low"]) / 2
    printed = float(cell["printed"])
    if printed.is_integer():
        return 5.0 if printed % 10 == 0 else 0.5
    return 0.5 * 10.0 ** -len(repr(printed).split(".")[1])


class CardModel(Response):
    """The cells as a function of the places of free numbers."""

    #: A card is of systems as the catalogue has them: none with settings comes of it.
    bases: Sequence[System] = ()

    def __init__(self, numbers: Sequence[CellNumber], free: Sequence[Free], overlay: Overlay) -> None:
        super().__init__(free)
        self.observations = list(numbers)
        self.targets = [one.target for one in numbers]
        self._overlay = overlay
        self._ids = list(dict.fromkeys(one.name.removesuffix("#cpu") for one in numbers))

    def _rows(self, settings: list[tuple[float, ...]]) -> list[np.ndarray]:
        pool = ThreadPoolExecutor(os.cpu_count() or 1)
        try:
            return list(pool.map(self._run, settings))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, values: tuple[float, ...]) -> np.ndarray:
        documents = list(dict.fromkeys(one.split("/")[0] for one in self._ids))
        with tempfile.TemporaryDirectory(prefix="diskperf-card-") as folder:
            for name, text in self._overlay(values).items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            try:
                cells = reproduce(documents, cell=self._ids, threads=1, catalogue=folder).cells
            except RunError:
                # Numbers with which a driver gives up: no place for a fit to be.
                return np.full(len(self.observations), np.nan)
        modelled = dict(zip(cells["id"], cells["modelled"]))
        return np.array([modelled[one.name] for one in self.observations], dtype=float)
