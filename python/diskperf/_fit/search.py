"""Where the model is nearest to the observations.

The response of a modelled disk is smooth where costs add up and jumps where a
revolution is missed. A derivative over a tiny step tells nothing of that: slopes
are taken over steps that change the sum of squares by about one, the smallest
that the observations can tell (``1 / sqrt`` of the parameter's information).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.stats import qmc

#: What a residual is that the model cannot run: far worse than any other.
HOPELESS = 1e3

#: Steps over which slopes are taken, as shares of a parameter's range.
FIRST_STEP, LEAST_STEP, LARGEST_STEP = 0.05, 0.002, 0.15

#: The spread of a place of which nothing is known: uniform from 0 to 1.
UNIFORM_SPREAD = 12**-0.5

#: Optima that differ by less than this, in places, are the same.
SAME = 0.01

#: Residuals in standard deviations, one row for each place.
Residuals = Callable[[np.ndarray], np.ndarray]


@dataclass
class Optimum:
    """A place where the search ended."""

    place: np.ndarray
    #: The sum of squares there.
    squares: float
    #: Change of each residual with each place, over steps that the noise hides.
    slopes: np.ndarray

    def covariance(self) -> np.ndarray:
        """Of the places, by the slopes and their ranges."""
        return covariance_of(self.slopes)


def covariance_of(slopes: np.ndarray) -> np.ndarray:
    """The covariance of the places by slopes of residuals. What these do not tell
    stays as uncertain as its range."""
    information = slopes.T @ slopes + np.eye(slopes.shape[1]) / UNIFORM_SPREAD**2
    return np.linalg.inv(information)


def squares(rows: np.ndarray) -> np.ndarray:
    """The sums of squares of rows of residuals."""
    return np.sum(rows**2, axis=1)


def slopes(residuals: Residuals, place: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Slopes at a place over steps to both sides, as far as the bounds let them."""
    ends = []
    for number, step in enumerate(steps):
        for way in (-step, step):
            end = place.copy()
            end[number] = min(max(end[number] + way, 0.0), 1.0)
            ends.append(end)
    rows = residuals(np.array(ends))
    lengths = [ends[2 * number + 1][number] - ends[2 * number][number] for number in range(len(steps))]
    return np.array(
        [(rows[2 * number + 1] - rows[2 * number]) / length for number, length in enumerate(lengths)]
    ).T


def steps_of(jacobian: np.ndarray) -> np.ndarray:
    """The steps that change the sum of squares by one."""
    information = np.sum(jacobian**2, axis=0)
    return np.clip(1 / np.sqrt(np.maximum(information, 1e-12)), LEAST_STEP, LARGEST_STEP)


def slopes_over_noise(residuals: Residuals, place: np.ndarray, rounds: int = 2) -> np.ndarray:
    """Slopes over steps that follow from slopes."""
    steps = np.full(len(place), FIRST_STEP)
    for _ in range(rounds):
        found = slopes(residuals, place, steps)
        steps = steps_of(found)
    return found


def _count(parameters: int) -> int:
    """How many places lie all over the ranges: a power of two, which Sobol wants."""
    return 2 ** int(np.ceil(np.log2(max(32, 8 * parameters))))


def scattered(count: int, parameters: int, seed: int) -> np.ndarray:
    """Places all over the ranges, evenly."""
    sobol = qmc.Sobol(parameters, scramble=True, rng=np.random.default_rng([seed, 1]))
    return sobol.random(count)


def least_squares(
    residuals: Residuals, start: np.ndarray, *, restarts: int, seed: int
) -> list[Optimum]:
    """Least squares from the start and from the best of places all over the ranges,
    among them the least of a curved surface through these.

    Returns:
        The optima, the best first.
    """
    places = np.vstack([start, scattered(_count(len(start)), len(start), seed)])
    rows = residuals(places)
    found = [_descended(residuals, one) for one in _starts(places, rows, residuals, restarts)]
    found.sort(key=lambda one: one.squares)
    different: list[Optimum] = []
    for one in found:
        if all(np.max(np.abs(one.place - other.place)) > SAME for other in different):
            different.append(one)
    return different


def _starts(
    places: np.ndarray, rows: np.ndarray, residuals: Residuals, restarts: int
) -> list[np.ndarray]:
    surface = _least_of_surface(places, rows)
    best = list(places[np.argsort(squares(rows), kind="stable")])
    known = [surface, *best]
    known_squares = squares(residuals(np.array([surface, best[0]])))
    if known_squares[1] < known_squares[0]:
        known = [best[0], surface, *best[1:]]
    chosen: list[np.ndarray] = []
    for place in known:
        if len(chosen) == max(restarts, 1):
            break
        if all(np.max(np.abs(place - other)) > 0.1 for other in chosen):
            chosen.append(place)
    return chosen


def _least_of_surface(places: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Where a surface of second degree through all residuals has its least sum of
    squares. The places nearest to the observations count most."""
    total = squares(rows)
    order = np.argsort(total, kind="stable")
    weights = 1 / (1 + total / max(total[order[len(order) // 4]], 1e-9))
    scale = np.sqrt(weights)[:, None]
    coefficients = np.linalg.lstsq(_terms(places) * scale, rows * scale, rcond=1e-6)[0]

    def surface(place: np.ndarray) -> np.ndarray:
        return (_terms(place[None, :]) @ coefficients)[0]

    ends = [
        optimize.least_squares(surface, np.clip(places[one], 1e-3, 1 - 1e-3), bounds=(0, 1))
        for one in order[:3]
    ]
    return min(ends, key=lambda end: end.cost).x


def _terms(places: np.ndarray) -> np.ndarray:
    first = places - 0.5
    number = first.shape[1]
    products = [first[:, i] * first[:, j] for i in range(number) for j in range(i, number)]
    return np.column_stack([np.ones(len(first)), first, *products])


def _descended(residuals: Residuals, start: np.ndarray) -> Optimum:
    """Least squares by SciPy from one start, with slopes over the noise."""
    steps = np.full(len(start), FIRST_STEP)
    last: dict[str, np.ndarray] = {}

    def jacobian(place: np.ndarray) -> np.ndarray:
        nonlocal steps
        last["slopes"] = slopes(residuals, place, steps)
        steps = steps_of(last["slopes"])
        return last["slopes"]

    end = optimize.least_squares(
        lambda place: residuals(place[None, :])[0],
        np.clip(start, 1e-3, 1 - 1e-3),
        jac=jacobian,
        bounds=(0, 1),
        ftol=2e-3,
        xtol=1e-4,
        gtol=1e-6,
        max_nfev=10,
    )
    return Optimum(end.x, 2 * float(end.cost), slopes(residuals, end.x, steps))


#: Steps of a walk, the first and the last, in what the observations can tell of a
#: direction; how often directions are taken anew, and what they have to gain.
WALK_FIRST, WALK_LAST, WALK_TURNS, WALK_GAIN = 2.0, 0.2, 4, 0.2


def walked(residuals: Residuals, place: np.ndarray) -> Optimum:
    """Where steps to both sides lead along the directions in which the slopes lie: all
    that help at once, the half that helps most, or the best alone, whichever is best;
    where none helps the step is halved. It follows the floor of a valley, and leaves a
    shelf of a staircase on which slopes say nothing."""
    least = float(squares(residuals(place[None, :]))[0])
    for _ in range(WALK_TURNS):
        before = least
        found = slopes_over_noise(residuals, place, rounds=1)
        _, singular, directions = np.linalg.svd(found)
        singular = np.concatenate([singular, np.zeros(len(place) - len(singular))])
        told = directions / np.sqrt(singular**2 + 1 / UNIFORM_SPREAD**2)[:, None]
        place, least = _along(residuals, place, least, told)
        if before - least < WALK_GAIN:
            break
    return Optimum(place, least, slopes_over_noise(residuals, place))


def _along(
    residuals: Residuals, place: np.ndarray, least: float, directions: np.ndarray
) -> tuple[np.ndarray, float]:
    step, number = WALK_FIRST, len(place)
    while step > WALK_LAST:
        ends = np.clip(place + step * np.vstack([directions, -directions]), 0, 1)
        gains = (least - squares(residuals(ends))).reshape(2, number)
        order = [one for one in np.argsort(-gains.max(axis=0), kind="stable") if gains[:, one].max() > 0]
        ways = np.where(gains[0] >= gains[1], step, -step)[:, None] * directions
        counts = list(dict.fromkeys((len(order), (len(order) + 1) // 2, 1))) if order else []
        tried = np.array([np.clip(place + ways[order[:count]].sum(axis=0), 0, 1) for count in counts])
        totals = squares(residuals(tried)) if order else np.array([least])
        if totals.min() < least:
            place, least = tried[np.argmin(totals)], float(totals.min())
        else:
            step /= 2
    return place, least


def differential_evolution(
    residuals: Residuals, start: np.ndarray, *, generations: int, seed: int
) -> list[Optimum]:
    """SciPy's differential evolution, a whole generation at a time, and least
    squares from its best."""
    end = optimize.differential_evolution(
        lambda columns: squares(residuals(np.atleast_2d(columns.T))),
        [(0.0, 1.0)] * len(start),
        init=np.vstack([start, scattered(_count(len(start)), len(start), seed)[1:]]),
        maxiter=generations,
        tol=1e-3,
        vectorized=True,
        updating="deferred",
        polish=False,
        rng=np.random.default_rng([seed, 2]),
    )
    found = [_descended(residuals, end.x)]
    if end.fun < found[0].squares:
        found.append(Optimum(end.x, float(end.fun), slopes_over_noise(residuals, end.x)))
    return sorted(found, key=lambda one: one.squares)


def bounded(rows: np.ndarray) -> np.ndarray:
    """Residuals with what the model cannot run as hopeless."""
    return np.where(np.isfinite(rows), np.clip(rows, -HOPELESS, HOPELESS), HOPELESS)


def softened(rows: np.ndarray, loss: str) -> np.ndarray:
    """Residuals whose squares are what a loss counts of them."""
    if loss == "soft-l1":
        counted = 2 * (np.sqrt(1 + rows**2) - 1)
    elif loss == "cauchy":
        counted = np.log1p(rows**2)
    else:
        return rows
    return np.sign(rows) * np.sqrt(counted)
