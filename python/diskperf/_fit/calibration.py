"""The calibrated numbers of a catalogue: which they are, on which cells, and fits
that find them again.

A number is fitted where its source says ``calibrated on: SET``, and chosen by hand
where it says ``calibrated by hand on: SET``; ``published/calibration.toml`` has the
cells of each set. A number whose source is
``as FOLDER/FILE.toml`` is that file's, and follows it. Nothing else is listed here but
where a fit looks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Optional

from diskperf._errors import RequestError
from diskperf._fit.free import Free

if TYPE_CHECKING:
    import numpy as np

    from diskperf._fit.fitting import Fit
    from diskperf._fit.card import CardModel, CellNumber

#: Of each search; any other has to find the same numbers, or they are not determined.
SEED = 1983

#: Of what a residual counts: cells that no value explains are in the sets as well.
LOSS = "soft-l1"

#: Rounds of draws for the intervals, which take most of the time, and of draws for
#: each number that is fitted.
ROUNDS, DRAWS_EACH = 2, 16

#: Where a fit looks, whatever the catalogue has: of the names of files and keys, the
#: first that fits; its bounds, the scale, whether it is a whole number, and digits.
BOUNDS: tuple[tuple[str, float, float, str, bool, int], ...] = (
    # What the task does between two commands, up to a revolution.
    ("controllers/supra.toml command_poll_ms", 0.5, 22, "log", False, 3),
    # The read of half a kilobyte of /dev/null takes 7.8 ms, in all; a request to the
    # disk at most half of a revolution.
    ("kernels/minix.toml call_ms", 0.5, 8, "log", False, 3),
    ("kernels/minix.toml task_ms", 0.1, 4, "log", False, 3),
    ("kernels/minix.toml buffer_replace_ms", 1, 11, "log", False, 3),
    ("drivers/minix-disk-task.toml request_ms", 0.5, 11, "log", False, 3),
    # A controller's processor takes from a tenth of a millisecond to a quarter of a
    # revolution for a command, and moves a sector in less than it passes in.
    ("controllers/* command_ms", 0.1, 5, "log", False, 3),
    ("controllers/* move_sector_ms", 0.05, 0.5, "log", False, 3),
    ("controllers/wd1003.toml command_poll_ms", 0.02, 2, "log", False, 2),
    ("controllers/* command_poll_ms", 0.1, 5, "log", False, 3),
    ("controllers/* maintenance_track_ms", 0.2, 15, "log", False, 3),
    ("controllers/* buffer_sectors", 67, 2048, "log", True, 4),
    ("controllers/* write_lead_sectors", 1, 67, "log", True, 2),
    ("controllers/* search_command_ms", 0.2, 5, "log", False, 3),
    ("controllers/* search_poll_per_drive_ms", 0.02, 2, "log", False, 3),
    ("controllers/* finish_per_sector_ms", 0.1, 2, "log", False, 3),
    ("controllers/* data_late_per_sector", 0.005, 0.5, "log", False, 3),
    ("controllers/* data_late_idle_share", 0.001, 1, "log", False, 3),
    ("buses/* memory_contention_share", 0, 0.6, "linear", False, 2),
    ("hosts/* *_ms_per_kb", 0.15, 1.5, "log", False, 3),
    ("kernels/sunos3.toml name_lookup_ms", 1, 25, "log", False, 2),
    # Fifty instructions of an 11/780 to a thousand.
    ("kernels/* *_ms", 0.05, 2, "log", False, 3),
    ("drivers/* map_register_us", 2, 50, "log", False, 3),
    ("drivers/* *_ms", 0.05, 2, "log", False, 3),
)

#: About what the numbers of a set are that is too wide to be searched all over, by
#: hand; docs/mechanisms/calibration.md says how they were set. Memory takes a longword
#: in one to two microseconds, so that a kilobyte is copied in about 0.6 ms, whichever
#: the processor, and cleared in 0.4 to 0.5; some hundred instructions of an 11/780 take
#: some tenths of a millisecond, and a command of a controller's processor between one
#: millisecond and two.
STARTS = {
    "one-drive": {
        "controllers/si9900.toml search_command_ms": 1.4,
        "drivers/hp-1983-07.toml complete_ms": 0.5,
        "hosts/vax750.toml copy_ms_per_kb": 0.6,
        "hosts/vax750.toml clear_ms_per_kb": 0.4,
        "hosts/vax780.toml copy_ms_per_kb": 0.6,
        "hosts/vax780.toml clear_ms_per_kb": 0.5,
        "kernels/4.2bsd.toml read_write_ms": 0.4,
        "kernels/4.2bsd.toml new_buffer_ms": 0.2,
        "kernels/4.2bsd.toml allocate_ms": 0.4,
    },
}

#: How far from there a number of `STARTS` may well lie: a factor, one standard
#: deviation. What cells tell only together, or not at all, stays near what is expected.
PRIOR_FACTOR = 1.5

#: How a source says that a fit found the value, and that somebody chose it.
FITTED, BY_HAND = "calibrated on:", "calibrated by hand on:"

_LINE = re.compile(r"^([a-z0-9_]+) = (.*)$")
_NUMBER = re.compile(r"^-?[0-9][0-9_]*(\.[0-9]+)?$")


@dataclass(frozen=True)
class Calibrated:
    """A number or a rule that was calibrated."""

    #: The file below ``catalogue/``, and the key in it.
    file: str
    key: str
    #: As it is written.
    text: str
    #: The set of cells.
    set: str

    @property
    def number(self) -> float:
        return float(self.text.replace("_", ""))

    @property
    def is_expected(self) -> bool:
        """Whether `STARTS` says about how much it is."""
        return f"{self.file} {self.key}" in STARTS.get(self.set, {})

    def free(self) -> Free:
        """Where a fit looks for it.

        Raises:
            RequestError: nothing says where.
        """
        folder = {"kernels": "kernel", "buses": "bus"}.get(self.file.split("/")[0])
        part = folder or self.file.split("/")[0].removesuffix("s")
        for pattern, low, high, scale, whole, digits in BOUNDS:
            if fnmatchcase(f"{self.file} {self.key}", pattern):
                return Free(
                    f"{part}.{self.key}", low, high, scale=scale, whole=whole, file=self.file, digits=digits,
                    prior_spread=PRIOR_FACTOR if self.is_expected else None,
                )  # fmt: skip
        raise RequestError(
            f"{self.file}: `{self.key}` is calibrated, and BOUNDS of diskperf._fit.calibration does not "
            "say where a fit looks for it"
        )


class Texts:
    """The files of a catalogue folder, whose numbers may be changed."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    @staticmethod
    def read(folder: str | os.PathLike[str]) -> Texts:
        texts = {}
        for below, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                path = os.path.join(below, name)
                with open(path, encoding="utf-8") as file:
                    texts[os.path.relpath(path, folder).replace(os.sep, "/")] = file.read()
        return Texts(texts)

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def parts(self) -> dict[str, str]:
        """The files of parts, which have all numbers."""
        return {name: text for name, text in self._texts.items() if _is_part(name)}

    def sets(self) -> dict[str, list[str]]:
        """The patterns of the cells of each set, in the order of fitting."""
        text = re.sub(r"#.*", "", self["published/calibration.toml"])
        found = re.findall(r"^([a-z0-9-]+) = \[(.*?)\]", text, re.M | re.S)
        return {name: re.findall(r'"([^"]+)"', cells) for name, cells in found}

    def calibrated(self) -> list[Calibrated]:
        """What a fit found, in the order of files and keys."""
        return self._by(FITTED)

    def by_hand(self) -> list[Calibrated]:
        """What somebody chose with cells in view: rules, and numbers that a fit does not determine."""
        return self._by(BY_HAND)

    def _by(self, opening: str) -> list[Calibrated]:
        return [
            Calibrated(name, key, value, source.split(";")[0].removeprefix(opening).strip())
            for name, key, value, source in self._sourced()
            if source.startswith(opening)
        ]

    def with_(self, file: str, key: str, value: float) -> Texts:
        """The same with another number in its line, and in those that follow it."""
        changed = Texts(self._texts)
        for name in [file, *self._followers(file, key)]:
            line = rf"(?m)^({re.escape(key)} = ).*$"
            text, count = re.subn(line, lambda match: match[1] + f"{value:.10g}", self[name])
            if count != 1:
                raise RequestError(f"{name}: `{key}` stands there {count} times, not once")
            changed._texts[name] = text
        return changed

    def _followers(self, file: str, key: str) -> list[str]:
        direct = [
            name
            for name, other, _, source in self._sourced()
            if other == key and re.match(rf"as {re.escape(file)}\b", source)
        ]
        return [*direct, *(one for name in direct for one in self._followers(name, key))]

    def _sourced(self) -> Iterator[tuple[str, str, str, str]]:
        """The file, key, value and source of what stands in the parts' files above
        their tables. What a file's source says is of its numbers."""
        for name, text in self._texts.items():
            if not _is_part(name):
                continue
            head = re.split(r"(?m)^\[", text)[0]
            pairs: dict[str, str] = {
                match[1]: match[2] for match in map(_LINE.match, head.splitlines()) if match
            }
            for key, value in pairs.items():
                own: Optional[str] = pairs.get(f"{key}_source")
                if own is None and _NUMBER.match(value):
                    own = pairs.get("source", "")
                if own is not None:
                    yield name, key, value, own.strip('"')


def _is_part(name: str) -> bool:
    return name.endswith(".toml") and name.split("/")[0] not in ("published", "systems")


def fitted(texts: Texts, name: str, *, restarts: int = 2, without: Optional[str] = None) -> tuple[Texts, Optional[Fit]]:
    """Fits the numbers of a set to its cells, with all others as the texts have them.

    Args:
        without: a table (``T2``) whose cells are left out. Numbers of which the others
            say nothing are where the search would begin.

    Returns:
        The texts with what was found, and the fit; ``None`` for that of no number.
    """
    from diskperf._fit.card import numbers_of

    numbers = [one for one in texts.calibrated() if one.set == name]
    cells = [one for one in numbers_of(texts.sets()[name]) if without is None or without not in one.name.split("/")]
    if without and not cells:
        start = [one.free().value(place) for one, place in zip(numbers, _start(numbers))]
        return _changed(texts, numbers, start), None
    found = _solved(texts, name, numbers, cells, restarts)
    return _changed(texts, numbers, found.parameters["value"]), found


def _solved(
    texts: Texts, name: str, numbers: Sequence[Calibrated], cells: Sequence[CellNumber], restarts: int
) -> Fit:
    from diskperf._fit.fitting import solved

    if len(cells) < len(numbers):
        raise RequestError(f"{name}: {len(numbers)} numbers were calibrated on it, which has {len(cells)} cells")
    method = "walk" if name in STARTS else "least-squares"
    return solved(
        _model(texts, numbers, cells), _start(numbers), set(), method=method, restarts=restarts,
        generations=1, seed=SEED, loss=LOSS, walk=True,
        sampling={"rounds": ROUNDS, "draws": min(64, DRAWS_EACH * len(numbers))},
    )  # fmt: skip


def _model(texts: Texts, numbers: Sequence[Calibrated], cells: Sequence[CellNumber]) -> CardModel:
    """The cells as a function of some numbers, with all others as the texts have them."""
    from diskperf._fit.card import CardModel

    free = [one.free() for one in numbers]
    return CardModel(cells, free, lambda values: _changed(texts, numbers, values).parts())


def _changed(texts: Texts, numbers: Sequence[Calibrated], values: Sequence[float]) -> Texts:
    for one, value in zip(numbers, values):
        texts = texts.with_(one.file, one.key, value)
    return texts


def _start(numbers: Sequence[Calibrated]) -> np.ndarray:
    """The place where the search for some numbers begins: the middle of their bounds, or
    what `STARTS` says."""
    import numpy as np

    given = [STARTS.get(one.set, {}).get(f"{one.file} {one.key}") for one in numbers]
    places = [one.free().place(value) if value is not None else 0.5 for one, value in zip(numbers, given)]
    return np.array(places)


__all__ = ["Calibrated", "Texts", "fitted"]
