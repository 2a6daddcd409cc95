"""Free parameters of a model, found from observations."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diskperf import _native
from diskperf._cluster.executors import opened
from diskperf._errors import RequestError
from diskperf._fit.free import Free, free_of
from diskperf._fit.observation import Observation, observations_of_rows
from diskperf._fit.report import text_of
from diskperf._packages import needed
from diskperf._run import SEED
from diskperf._system import System

if TYPE_CHECKING:
    import numpy as np

    from diskperf._fit.model import Model, Response

#: The share of the observations that the fit never sees, and is then tried on.
HOLD_OUT = 0.2

#: How unlikely a sum of squares must be by the stated uncertainties alone before
#: these are taken to be too small.
UNLIKELY = 0.01

#: Correlations from here on make of two parameters one.
ONLY_TOGETHER = 0.95

METHODS = ("least-squares", "differential-evolution")

#: What a residual of so many standard deviations counts: its square; as much for a
#: small one, and for a large one only twice its size; or the logarithm of it.
LOSSES = ("linear", "soft-l1", "cauchy")

_PARAMETERS = {
    "key": "string", "file": "string", "value": "double", "low": "double", "high": "double",
    "determined": "string", "least": "double", "most": "double", "start": "double",
    "share_of_range": "double", "together_with": "string", "correlation": "double",
}  # fmt: skip
_OBSERVATIONS = {
    "observation": "int64", "name": "string", "target": "string", "metric": "string",
    "observed": "double", "modelled": "double", "error": "double", "residual": "double",
    "held_out": "bool", "roughness": "double",
}  # fmt: skip


class Fit:
    """Parameters that were found, how sure they are, and how good the model is with
    them. :func:`fit` gives it."""

    def __init__(self, **found: Any) -> None:
        self._found = found

    @property
    def parameters(self) -> _native.Columns:
        """One row for each free parameter: its ``key`` (and the ``file`` of the
        catalogue, if the fit was told one); its ``value``; its 95 % interval from
        ``low`` to ``high``; ``determined``: ``yes``, ``from above only`` or ``from
        below only`` (then there is no ``low``, or no ``high``, since its bound is as
        likely as the value), ``no`` (then there is neither), or ``by its prior``, if
        the observations add little to its ``prior_spread``; its bounds ``least``
        and ``most``; its ``start``; ``share_of_range``, how much of the range between
        the bounds the interval takes; and the parameter that it goes most
        ``together_with``, by their ``correlation``."""
        return self._found["parameters"]

    @property
    def observations(self) -> _native.Columns:
        """One row for each observation: its number and ``name``, the ``target``, the
        ``metric``, as ``observed`` and as ``modelled``, the ``error`` (modelled /
        observed - 1), the ``residual`` in its standard deviations, whether it was
        ``held_out``, and its ``roughness``: by how many standard deviations the
        model's response departs from a straight line over what the observations
        allow (jumps, where revolutions are missed)."""
        return self._found["observations"]

    @property
    def correlations(self) -> _native.Columns:
        """The correlation matrix: ``key``, and a column for each parameter."""
        return self._found["correlations"]

    @property
    def information(self) -> _native.Columns:
        """Which observations carry the information: for each ``observation`` and
        ``key`` the ``share`` of the parameter's precision (one over its variance)
        that would be lost without it."""
        return self._found["information"]

    @property
    def condition(self) -> float:
        """How many times better the best determined direction among the parameters is
        determined than the worst, each parameter by its range."""
        return self._found["condition"]

    @property
    def weakest(self) -> dict[str, float]:
        """The worst determined direction: how much of each parameter there is in it."""
        return dict(self._found["weakest"])

    @property
    def values(self) -> dict[str, float]:
        """The value of each parameter, by its key."""
        return dict(zip(self.parameters["key"], self.parameters["value"]))

    @property
    def error(self) -> float:
        """The root mean square of the errors of the observations that were fitted, as
        shares."""
        return self._found["error"]

    @property
    def held_out_error(self) -> float | None:
        """The same of those that were held out, which the fit has never seen."""
        return self._found["held_out_error"]

    @property
    def chi_squared(self) -> float:
        """The sum of the squared residuals of those that were fitted."""
        return self._found["chi_squared"]

    @property
    def scale(self) -> float:
        """What the uncertainties were multiplied by for the intervals: above 1 where
        the model is further from the observations than these say."""
        return self._found["scale"]

    @property
    def draws(self) -> float:
        """How many independent draws the sample is worth that intervals are of."""
        return self._found["draws"]

    @property
    def evaluations(self) -> int:
        """How many settings of the parameters were run."""
        return self._found["evaluations"]

    @property
    def notes(self) -> list[str]:
        """What a reader must know."""
        return list(self._found["notes"])

    @property
    def systems(self) -> list[System]:
        """The systems that were observed, with the values that were found."""
        return list(self._found["systems"])

    @property
    def system(self) -> System:
        """The first of them."""
        return self.systems[0]

    def to_catalogue(self, path: str | os.PathLike[str], name: str = "fitted") -> list[str]:
        """Writes what was found as a variant of each system: files of a folder that
        ``--catalogue`` and :class:`Catalogue` take, as ``SYSTEM:NAME``. Each number has
        ``source = "fitted: ..."``. A file is written beside and renamed.

        Args:
            path: the folder; it is made if it is not there.
            name: of the variant.

        Returns:
            The paths of the files.

        Raises:
            RequestError: a name that is none, a system that can have no variant.
            FileError: the folder or a file cannot be written.
        """
        from diskperf._fit.catalogue import write

        return write(self, os.fspath(path), name)

    def __str__(self) -> str:
        return text_of(self)

    def __repr__(self) -> str:
        return f"<Fit of {len(self.parameters)} parameters to {len(self.observations)} observations>"


def fit(
    system: System | str,
    observations: Iterable[Observation | Mapping[str, Any]],
    free: Iterable[Free | Sequence[Any] | Mapping[str, Any]],
    *,
    method: str = "least-squares",
    restarts: int = 3,
    generations: int = 20,
    hold_out: float = HOLD_OUT,
    seed: int = SEED,
    model_seeds: int | Sequence[int] = SEED,
    size: int | str | None = None,
    repetitions: int | None = None,
    executor: Any = None,
    loss: str = "linear",
) -> Fit:
    """Finds the free parameters of a model from observations.

    The search is by least squares of the residuals in standard deviations (of a
    relative uncertainty, of the logarithms), with slopes over steps as wide as the
    noise, since the response jumps where a revolution is missed. The intervals are
    not of these slopes: the likelihood is sampled, with every value within the
    bounds taken as equally likely before (on the parameter's scale), or by how far from
    its start the parameter is said to be (``prior_spread``), and a parameter
    whose interval reaches its bounds is said not to be determined. Where the model
    is further from the observations than their uncertainties allow, these are scaled
    up, and that is said. The result depends on the seed, and on no executor.

    Args:
        system: a modelled system.
        observations: :class:`Observation` each, or dicts of its names;
            :func:`observations_of_card` and :func:`observations_of_run` make them.
        free: what may be chosen: :class:`Free` each, or ``(key, low, high)``,
            ``(key, low, high, start, scale)``. What is known of one beforehand is its
            start and its ``prior_spread``.
        method: ``"least-squares"``, from several starts, or
            ``"differential-evolution"`` before it, for a rugged response.
        restarts: starts of the first.
        generations: of the second.
        hold_out: the share of the observations, drawn by the seed, that the fit does
            not see; the error on them is reported.
        seed: of the search, and of what is held out.
        model_seeds: of the model: with several, an observation is compared with the
            mean over them.
        size, repetitions: of observations that have none of their own.
        executor: who runs the model: the cores of this machine (``None``), a Dask
            client or cluster or its address, or whatever has ``map``.
        loss: what a residual counts: its square (``"linear"``), or, so that what
            no value explains does not bend all others, ``"soft-l1"`` (of a large one
            twice its size) or ``"cauchy"`` (its logarithm), as SciPy has them.

    Returns:
        The parameters with their intervals, residuals, and the rest of a :class:`Fit`.

    Raises:
        RequestError: fewer observations than parameters, a bound or a value that is
            none, an observation that its system cannot be asked for.
        SettingError: a free key that there is not, or that cannot have its bounds.
        ImportError: SciPy is not installed (``pip install '.[fit]'``).
        KeyboardInterrupt: Ctrl-C.

    >>> found = diskperf.fit("vax780-sc780-eagle", observations,
    ...                      free=[("host.copy_ms_per_kb", 0.3, 1.2)])  # doctest: +SKIP
    """
    _check_options(method, restarts, generations, hold_out, loss)
    needed("scipy", "fits need SciPy", "scipy", extra="fit")
    from diskperf._fit.model import Model

    system = System(system) if isinstance(system, str) else system
    parameters = free_of(free)
    observed = _observed(observations)
    seeds = [model_seeds] if isinstance(model_seeds, int) else [int(one) for one in model_seeds]
    if not seeds:
        raise RequestError("model_seeds: give at least one")
    held_out = _held_out(len(observed), len(parameters), hold_out, seed)
    with opened(executor) as who:
        model = Model(
            system, observed, parameters, seeds=seeds, executor=who,
            options={"size": size, "repetitions": repetitions},
        )  # fmt: skip
        start = _start(model)
        model.check(start)
        return solved(
            model, start, held_out, method=method, restarts=restarts, generations=generations, seed=seed, loss=loss
        )


def solved(
    model: Response, start: np.ndarray, held_out: set[int], *, method: str, restarts: int,
    generations: int, seed: int, loss: str = "linear", walk: bool = False, sampling: Mapping[str, int] | None = None,
) -> Fit:  # fmt: skip
    """A fit of a model whose request has been checked. With ``walk`` the best that
    was found is where a walk from there ends (the method ``walk`` is nothing else); ``sampling`` says how many ``rounds`` of
    how many ``draws`` the intervals are of at most."""
    import numpy as np
    from scipy import stats

    from diskperf._fit import interval, search
    from diskperf._fit.report import results

    fitted = [number for number in range(len(model.observations)) if number not in held_out]
    spreads = np.array([one.prior_spread_of_place() for one in model.free])
    known = np.isfinite(spreads)

    def residuals(places: np.ndarray) -> np.ndarray:
        rows = search.bounded(standardised(model, model.at(places))[:, fitted])
        beforehand = (np.asarray(places) - start)[:, known] / spreads[known]
        return np.hstack([search.softened(rows, loss), beforehand])

    if method == "walk":
        optima = [search.walked(residuals, start)]
    elif method == "least-squares":
        optima = search.least_squares(residuals, start, restarts=restarts, seed=seed)
    else:
        optima = search.differential_evolution(residuals, start, generations=generations, seed=seed)
    if walk and method != "walk":
        optima.insert(0, search.walked(residuals, optima[0].place))
    freedom = len(fitted) + int(known.sum()) - len(model.free)
    for _ in range(3):
        scale = 1.0
        if freedom > 0 and stats.chi2.sf(optima[0].squares, freedom) < UNLIKELY:
            scale = optima[0].squares / freedom
        sample = interval.sampled(residuals, optima, scale=scale, seed=seed, **(sampling or {}))
        places, rows, _ = sample.run
        total = search.squares(rows)
        least = int(np.argmin(total))
        better = total[least] < optima[0].squares
        best = places[least] if better else optima[0].place
        if total[least] > optima[0].squares - interval.WORSE * scale:
            break
        # The draws found a better place by themselves: they begin again from there.
        slopes = search.slopes_over_noise(residuals, best)
        optima.insert(0, search.Optimum(best, float(total[least]), slopes))
    return Fit(**results(model, start, best, sample, held_out, fitted, freedom))


def standardised(model: Response, rows: np.ndarray) -> np.ndarray:
    """The model's numbers as residuals: in standard deviations of the observations,
    of logarithms where these are shares."""
    import numpy as np

    values = np.array([one.value for one in model.observations], dtype=float)
    spreads = np.array([one.uncertainty for one in model.observations], dtype=float)
    relative = np.array([one.relative for one in model.observations])
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.log(rows / np.where(relative, values, 1.0))
    return np.where(relative, logarithms, rows - values) / spreads


def _check_options(
    method: str, restarts: int, generations: int, hold_out: float, loss: str
) -> None:
    if loss not in LOSSES:
        raise RequestError(f"loss={loss!r}: give {', '.join(map(repr, LOSSES[:-1]))} or {LOSSES[-1]!r}")
    if method not in METHODS:
        raise RequestError(f"method={method!r}: give {' or '.join(map(repr, METHODS))}")
    if restarts < 1 or generations < 1:
        raise RequestError(f"restarts={restarts}, generations={generations}: give at least one")
    if not 0 <= hold_out < 1:
        raise RequestError(f"hold_out={hold_out}: give a share from 0, and below 1")


def _observed(observations: Iterable[Observation | Mapping[str, Any]]) -> list[Observation]:
    found: list[Observation] = []
    for number, one in enumerate(observations):
        if isinstance(one, Observation):
            found.append(one)
            continue
        try:
            found.extend(observations_of_rows([one]))
        except RequestError as error:
            raise RequestError(f"observation {number}: {str(error).removeprefix('row 0: ')}") from error
    return found


def _held_out(observations: int, parameters: int, share: float, seed: int) -> set[int]:
    import numpy as np

    count = math.floor(observations * share + 0.5)
    if observations - count < parameters:
        kept = f"{observations} observations, of which {count} are held out" if count else (
            f"{observations} observations"
        )  # fmt: skip
        raise RequestError(
            f"{parameters} parameters are free, and there are {kept}: give more observations, "
            "or free fewer parameters"
        )
    order = np.random.default_rng([seed, 0]).permutation(observations)
    return {int(number) for number in order[:count]}


def _start(model: Model) -> np.ndarray:
    """Where the search starts: the start that was given, the system's own value, or
    the middle."""
    import numpy as np

    places = []
    for one in model.free:
        own = one.start
        for system in model.systems if own is None else ():
            rows = system.parameters
            for path, value, file in zip(rows["path"], rows["value"], rows["file"]):
                if own is None and path == one.key and one.is_of(file):
                    own = _number(value)
        known = own is not None and one.low <= own <= one.high
        places.append(one.place(own) if known else 0.5)  # type: ignore[arg-type]
    return np.array(places)


def _number(text: str) -> float | None:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        return None
