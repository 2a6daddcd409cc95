"""The points of a parameter study: every combination of some keys' values and of
seeds, found by its number and never held in a list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union

from diskperf import _native
from diskperf._errors import RequestError
from diskperf._run import SEED
from diskperf._settings import written

#: More values of one key than these are a slip of the finger, as for
#: ``diskperf tune --over``.
MOST_VALUES = 100_000

#: Seeds are of 64 bits.
MOST_SEED = 2**64 - 1

#: A range of seeds, both ends included.
RANGE = re.compile(r"(\d+)\.\.(\d+)(?::(\d+))?", re.ASCII)


@dataclass(frozen=True)
class Axis:
    """A key with its values, each as it is written in a setting."""

    key: str
    values: tuple[str, ...]

    @property
    def type(self) -> str:
        """What its column is, as Arrow calls it: ``int64`` if all its values are
        whole numbers, ``double`` if all are numbers, ``string`` otherwise."""
        whole = (_parsed(int, value) for value in self.values)
        if all(number is not None and -(2**63) <= number < 2**63 for number in whole):
            return "int64"
        return "string" if any(_parsed(float, value) is None for value in self.values) else "double"

    def typed(self) -> list[Any]:
        """Its values as its column has them."""
        convert: Any = {"int64": int, "double": float, "string": str}[self.type]
        return [convert(value) for value in self.values]


def _parsed(convert: Any, text: str) -> Any:
    # Python's numbers may have underscores and blanks, and be nan.
    if not text.isascii() or not set(text) <= set("+-.0123456789eE"):
        return None
    try:
        return convert(text)
    except ValueError:
        return None


def axis(key: str, values: object) -> Axis:
    """A key with the values that a caller gave it.

    Raises:
        RequestError: no values, too many, or one twice.
        SettingError: a value that is none.
    """
    if not isinstance(key, str) or not key:
        raise RequestError(f"over={{{key!r}: ...}}: a key is a word like filesystem.rotdelay_ms")
    if isinstance(values, str):
        found = _native.values_of(key, values)
    elif isinstance(values, Iterable) and not isinstance(values, (Mapping, bytes)):
        if isinstance(values, Sequence):
            _count(key, len(values))
        found = [written(key, value) for value in values]
    else:
        found = [written(key, values)]
    if not found:
        raise RequestError(
            f"over: `{key}` has no values: give a list of them, or a range like '0..10' or '0..10:2'"
        )
    _count(key, len(found))
    if len(set(found)) < len(found):
        twice = next(value for number, value in enumerate(found) if value in found[:number])
        raise RequestError(f"over: `{key}` has the value {twice} twice")
    return Axis(key, tuple(found))


def _count(key: str, values: int) -> None:
    if values > MOST_VALUES:
        raise RequestError(f"over: `{key}` has {values:,} values, which is more than {MOST_VALUES:,}")


def seeds_of(seeds: int | str | Sequence[int]) -> Sequence[int]:
    """Seeds as a caller gave them: one, several, or a range of any length.

    Raises:
        RequestError: none, or what is no seed, or one twice.
    """
    if isinstance(seeds, str) and (ends := RANGE.fullmatch(seeds.strip())):
        # Of any length, as a range of Python's.
        first, last, step = (int(number or 1) for number in ends.groups())
        if not step or last < first:
            raise RequestError(f"seeds: the range {seeds} is empty: give FIRST..LAST, as 1..100, or FIRST..LAST:STEP")
        seeds = range(first, last + 1, step)
    if isinstance(seeds, str):
        seeds = [_parsed(int, value) for value in _native.values_of("seeds", seeds)]
    if isinstance(seeds, int):
        seeds = [seeds]
    if not isinstance(seeds, range):
        seeds = list(seeds)
        if len(set(seeds)) < len(seeds):
            raise RequestError("seeds: one is given twice; the same seed gives the same figures")
    if not seeds:
        raise RequestError("seeds: there are none: give one, several, or a range as range(1, 11)")
    for seed in (seeds[0], seeds[-1]) if isinstance(seeds, range) else seeds:
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= MOST_SEED:
            raise RequestError(f"seeds: {seed!r} is not a seed: give whole numbers from 0 to {MOST_SEED}")
    return seeds


@dataclass(frozen=True)
class Space:
    """Every combination: the first key changes the slowest, the seed the fastest."""

    axes: tuple[Axis, ...]
    seeds: Sequence[int]

    @staticmethod
    def of(over: Mapping[str, object], seeds: int | str | Sequence[int] = SEED) -> Space:
        """The space of a caller's keys and seeds.

        Raises:
            RequestError, SettingError: keys, values or seeds that are none.
        """
        return Space(tuple(axis(key, values) for key, values in over.items()), seeds_of(seeds))

    @property
    def points(self) -> int:
        """How many there are."""
        points = len(self.seeds)
        for one in self.axes:
            points *= len(one.values)
        return points

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Of each key, for how many points its value stays the same."""
        strides, stride = [], len(self.seeds)
        for one in reversed(self.axes):
            strides.append(stride)
            stride *= len(one.values)
        return tuple(reversed(strides))

    def places(self, number: int) -> list[int]:
        """Of the point of this number, the place of each key's value, and of its seed."""
        of_keys = (number // stride % len(one.values) for one, stride in zip(self.axes, self.strides))
        return [*of_keys, number % len(self.seeds)]

    def settings(self, number: int) -> dict[str, str]:
        """The settings of a point."""
        return {
            one.key: one.values[number // stride % len(one.values)]
            for one, stride in zip(self.axes, self.strides)
        }

    def seed(self, number: int) -> int:
        """The seed of a point."""
        return self.seeds[number % len(self.seeds)]

    def definition(self) -> dict[str, Any]:
        """The space as JSON has it."""
        seeds: Any = list(self.seeds)
        if isinstance(self.seeds, range):
            seeds = {"start": self.seeds.start, "stop": self.seeds.stop, "step": self.seeds.step}
        return {"over": {one.key: list(one.values) for one in self.axes}, "seeds": seeds}

    @staticmethod
    def from_definition(definition: Mapping[str, Any]) -> Space:
        """The reverse of `definition`."""
        seeds = definition["seeds"]
        if isinstance(seeds, Mapping):
            seeds = range(seeds["start"], seeds["stop"], seeds["step"])
        axes = (Axis(key, tuple(values)) for key, values in definition["over"].items())
        return Space(tuple(axes), seeds)
