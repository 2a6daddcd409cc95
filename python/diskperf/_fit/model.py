"""The model as a fit sees it: parameters in, one number for each observation out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from diskperf._cluster.executors import no_executor
from diskperf._errors import Error, RequestError, SettingError
from diskperf._fit.free import Free
from diskperf._fit.observation import Observation
from diskperf._points import run_points
from diskperf._settings import COMPONENTS
from diskperf._system import System

#: Places from 0 to 1, or rows of them.
Places = Union[np.ndarray, Sequence[Any]]

#: Points of one call, so that an interrupt need not wait for long.
POINTS_OF_A_CALL = 8


@dataclass(frozen=True)
class Group:
    """Observations that one call of :func:`run_points` serves."""

    system: System
    suite: str
    #: The settings of each point that is observed.
    points: tuple[Mapping[str, str], ...]
    #: The free keys that this system has: number and key.
    keys: tuple[tuple[int, str], ...]
    options: Mapping[str, Any]
    #: Of each observation its number, its point, program, column and factor.
    cells: tuple[tuple[int, int, Optional[str], str, float], ...]
    seeds: tuple[int, ...]


#: What is carried out elsewhere: groups, and settings of the free keys by number.
Task = tuple[Sequence[Group], Sequence[Sequence[float]], int]


def carried_out(task: Task) -> list[list[float]]:
    """For each of several settings of the free keys what the model gives for each
    observation; what it cannot run is NaN. A function of its argument alone, which
    any executor may call anywhere."""
    groups, settings, observations = task
    rows = [[math.nan] * observations for _ in settings]
    for group in groups:
        points = [
            {**point, **{key: values[number] for number, key in group.keys}}
            for values in settings
            for point in group.points
            for _ in group.seeds
        ]
        seeds = [seed for _ in settings for _ in group.points for seed in group.seeds]
        table = run_points(
            group.system, group.suite, points, seeds=seeds, time_calls=False,
            errors="column", **group.options,
        )  # fmt: skip
        _fill(rows, group, table.to_pylist())
    return rows


def _fill(rows: list[list[float]], group: Group, table: list[dict[str, Any]]) -> None:
    found = {(row["point"], row["program"]): row for row in table}
    alone = {row["point"]: row for row in table}
    each = len(group.seeds)
    for place, values in enumerate(rows):
        for number, point, program, column, factor in group.cells:
            first = (place * len(group.points) + point) * each
            several = [
                found.get((one, program)) if program else alone.get(one)
                for one in range(first, first + each)
            ]
            numbers = [row[column] for row in several if row is not None and row[column] is not None]
            if len(numbers) == each:
                values[number] = factor * sum(numbers) / each


def mapper(executor: Any) -> Callable[[Callable[[Any], Any], list[Any]], list[Any]]:
    """How a function is applied to each of a list: by the threads of this process
    (``None``: the model runs without the interpreter), by a Dask client, or by
    whatever has ``map``.

    Raises:
        RequestError: what has no ``map``.
    """
    if executor is None:
        return _threads
    if not callable(getattr(executor, "map", None)):
        raise no_executor(executor)
    if hasattr(executor, "gather"):
        return lambda function, items: executor.gather(executor.map(function, items, pure=False))
    return lambda function, items: list(executor.map(function, items))


def _threads(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    if len(items) < 2:
        return [function(item) for item in items]
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        return list(pool.map(function, items))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class Response:
    """The numbers that observations come to, as a function of the free parameters'
    places. What has been found is kept, so that nothing is run twice."""

    #: What a fit compares the numbers with: each has a name, a value, its uncertainty.
    observations: Sequence[Any]
    #: What each of them was observed on.
    targets: Sequence[str]
    #: The systems that become others with what a fit finds.
    bases: Sequence[System]

    def __init__(self, free: Sequence[Free]) -> None:
        self.free = list(free)
        self._known: dict[tuple[float, ...], np.ndarray] = {}

    @property
    def evaluations(self) -> int:
        """How many settings of the free keys have been run."""
        return len(self._known)

    def values(self, place: Places) -> tuple[float, ...]:
        """The values of the parameters at a place."""
        return tuple(one.value(float(number)) for one, number in zip(self.free, place))

    def at(self, places: Places) -> np.ndarray:
        """The model's numbers, one row for each place, one column for each
        observation."""
        wanted = [self.values(place) for place in places]
        new = list(dict.fromkeys(values for values in wanted if values not in self._known))
        self._known.update(zip(new, self._rows(new)))
        return np.array([self._known[values] for values in wanted]).reshape(len(wanted), -1)

    def _rows(self, settings: list[tuple[float, ...]]) -> list[np.ndarray]:
        """The numbers for each of several settings of the free parameters."""
        raise NotImplementedError


class Model(Response):
    """Programs on systems: what observations of them come to."""

    def __init__(
        self,
        system: System,
        observations: Sequence[Observation],
        free: Sequence[Free],
        *,
        options: Mapping[str, Any],
        seeds: Sequence[int],
        executor: Any = None,
    ) -> None:
        super().__init__(free)
        self.observations = list(observations)
        self.systems = _systems(system, observations)
        #: The same without what single observations put in a part's place.
        self.bases = list(dict.fromkeys(_base_of(system, one) for one in observations))
        self._map = mapper(executor)
        keys = {one: keys_of(one, self.free) for one in self.systems}
        for number, one in enumerate(self.free):
            if not any(number == found for of in keys.values() for found, _ in of):
                _refuse_key(one, self.systems)
        self.groups = _groups(system, observations, keys, options, tuple(seeds))
        on = {number: group.system.name for group in self.groups for number, *_ in group.cells}
        #: What each observation is of.
        self.targets = [on[number] for number in range(len(self.observations))]

    def _rows(self, settings: list[tuple[float, ...]]) -> list[np.ndarray]:
        texts = [[one.setting(value) for one, value in zip(self.free, values)] for values in settings]
        # As many pieces as keep every core busy, whose number changes no result.
        cores = os.cpu_count() or 1
        piece = max(1, min(POINTS_OF_A_CALL, -(-len(texts) // cores)))
        tasks = [
            (self.groups, texts[first : first + piece], len(self.observations))
            for first in range(0, len(texts), piece)
        ]
        return [np.array(row, dtype=float) for done in self._map(carried_out, tasks) for row in done]

    def check(self, start: Places) -> None:
        """Runs the observations at the start, and each parameter at its bounds.

        Raises:
            RequestError: an observation that its system cannot be asked for.
            SettingError: a value within the bounds that a key cannot have.
        """
        for group in self.groups:
            _check_observations(self, group, self.values(start))
        for number, one in enumerate(self.free):
            for bound in (one.low, one.high):
                values = list(self.values(start))
                values[number] = bound
                _check_bound(self, number, bound, values)


def _systems(system: System, observations: Sequence[Observation]) -> list[System]:
    found = [_system_of(system, one) for one in observations]
    return list(dict.fromkeys(found)) or [system]


def _system_of(system: System, observation: Observation) -> System:
    on = _base_of(system, observation)
    parts, _ = _parts(observation)
    return on.with_(parts) if parts else on


def _base_of(system: System, observation: Observation) -> System:
    if observation.on is None:
        return system
    if isinstance(observation.on, System):
        return observation.on
    return System(observation.on, catalogue=system.catalogue)


def _parts(observation: Observation) -> tuple[dict[str, str], dict[str, str]]:
    """What an observation puts in a part's place, which makes another system with
    files of its own, and what else it sets."""
    settings = observation.settings
    parts = {key: text for key, text in settings.items() if key in COMPONENTS}
    return parts, {key: text for key, text in settings.items() if key not in parts}


def keys_of(system: System, free: Sequence[Free]) -> tuple[tuple[int, str], ...]:
    files = dict(zip(system.parameters["path"], system.parameters["file"]))
    return tuple((number, one.key) for number, one in enumerate(free) if _has(system, files, one))


def _has(system: System, files: Mapping[str, str], free: Free) -> bool:
    if free.key in files:
        return free.is_of(files[free.key])
    if free.key.startswith("program."):
        return True
    # One drive's own number is no row of its own while it is that of all drives.
    try:
        return free.file is None and bool(system.with_({free.key: free.setting(free.low)}))
    except SettingError:
        return False


def _refuse_key(free: Free, systems: Sequence[System]) -> None:
    if free.file is not None:
        raise SettingError(
            f"`{free.key}` of {free.file} is in none of "
            f"{', '.join(one.name for one in systems)}: Catalogue().show() has the files"
        )
    # The core knows the nearest keys, and says so.
    systems[0].with_({free.key: free.setting(free.low)})
    raise SettingError(f"`{free.key}` is no number of {systems[0].name}")


def _groups(
    system: System,
    observations: Sequence[Observation],
    keys: Mapping[System, tuple[tuple[int, str], ...]],
    options: Mapping[str, Any],
    seeds: tuple[int, ...],
) -> list[Group]:
    gathered: dict[tuple[Any, ...], list[int]] = {}
    for number, one in enumerate(observations):
        own = {
            "drives": one.drives,
            "size": one.size if one.size is not None else options.get("size"),
            "repetitions": one.repetitions if one.repetitions is not None else options.get("repetitions"),
            "cache": one.cache,
        }
        kind = (_system_of(system, one), one.suite, tuple(own.items()))
        gathered.setdefault(kind, []).append(number)
    groups = []
    for (on, suite, own), numbers in gathered.items():
        settings = {number: tuple(_parts(observations[number])[1].items()) for number in numbers}
        points = list(dict.fromkeys(settings.values()))
        cells = tuple(
            (
                number,
                points.index(settings[number]),
                observations[number].program,
                observations[number].column,
                observations[number].factor,
            )
            for number in numbers
        )
        groups.append(Group(on, suite, tuple(map(dict, points)), keys[on], dict(own), cells, seeds))
    return groups


def _check_observations(model: Model, group: Group, values: Sequence[float]) -> None:
    """Runs a group point by point, so that what is wrong is named."""
    for place, point in enumerate(group.points):
        own = {key: model.free[number].setting(values[number]) for number, key in group.keys}
        cells = [cell for cell in group.cells if cell[1] == place]
        first = model.observations[cells[0][0]]
        try:
            clash = next((key for key in own if key in point), None)
            if clash is not None:
                raise RequestError(f"it sets `{clash}`, which is free")
            rows = run_points(
                group.system, group.suite, [{**point, **own}], seeds=group.seeds[0],
                time_calls=False, **group.options,
            ).to_pylist()  # fmt: skip
        except Error as error:
            words = f"observation {cells[0][0]} ({first}) on {group.system.name}: {error}"
            raise type(error)(words) from error
        for number, _, program, column, _ in cells:
            _check_cell(model, number, program, column, rows)


def _check_cell(
    model: Model, number: int, program: Optional[str], column: str, rows: list[dict[str, Any]]
) -> None:
    named = f"observation {number} ({model.observations[number]})"
    programs = [row["program"] for row in rows]
    if program is None and len(rows) > 1:
        raise RequestError(f"{named}: its suite has several programs: give program=, one of {', '.join(programs)}")
    row = rows[0] if program is None else next((row for row in rows if row["program"] == program), None)
    if row is None:
        raise RequestError(f"{named}: its suite has no program `{program}`: it has {', '.join(programs)}")
    if row[column] is None:
        raise RequestError(f"{named}: the model has no `{column}` of {row['program']}")


def _check_bound(model: Model, number: int, bound: float, values: Sequence[float]) -> None:
    key = model.free[number].key
    for group in model.groups:
        if not any(number == one for one, _ in group.keys):
            continue
        own = {key: model.free[one].setting(values[one]) for one, key in group.keys}
        try:
            run_points(
                group.system, group.suite, [{**group.points[0], **own}], seeds=group.seeds[0],
                time_calls=False, **group.options,
            )  # fmt: skip
        except Error as error:
            raise type(error)(f"`{key}` at its bound {bound:g}: {error}") from error
