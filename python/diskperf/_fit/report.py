"""What a fit found, as tables and as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from diskperf import _native

if TYPE_CHECKING:
    import numpy as np

    from diskperf._fit.fitting import Fit
    from diskperf._fit.interval import Sample
    from diskperf._fit.model import Response
    from diskperf._system import System


#: What ``determined`` says where the interval is about that of the prior alone: wider
#: than this share of it.
BY_PRIOR, PRIOR_SAYS = "by its prior", 0.8

#: What it says otherwise, by whether the interval ends below and above.
ENDS = {
    (True, True): "yes",
    (True, False): "from below only",
    (False, True): "from above only",
    (False, False): "no",
}

#: A 95 % interval of a normal distribution, in standard deviations.
WIDTH_95 = 3.92


def results(
    model: Response, start: np.ndarray, best: np.ndarray, sample: Sample, held_out: set[int], fitted: list[int],
    freedom: int,
) -> dict[str, Any]:
    """All that a :class:`Fit` has."""
    import numpy as np

    from diskperf._fit.fitting import standardised
    from diskperf._fit.search import covariance_of

    modelled = model.at([best])
    left = standardised(model, modelled)[0]
    slopes, roughness = sample.slopes()
    _, singular, directions = np.linalg.svd(slopes / math.sqrt(sample.scale))
    singular = np.concatenate([singular, np.zeros(len(directions) - len(singular))])
    correlation = _correlations(sample)
    errors = modelled[0] / [one.value or math.nan for one in model.observations] - 1
    table = _parameters(model, start, best, sample, correlation)
    keys = _names(model)
    return {
        "parameters": table,
        "observations": _observations(model, modelled[0], errors, left, held_out, dict(zip(fitted, roughness))),
        "correlations": _matrix(keys, correlation),
        "information": _information(keys, slopes / math.sqrt(sample.scale), fitted, covariance_of),
        "condition": float(singular[0] / singular[-1]) if singular[-1] > 0 else math.inf,
        "weakest": dict(zip(keys, (float(one) for one in directions[-1]))),
        "error": _root_mean_square(errors, fitted),
        "held_out_error": _root_mean_square(errors, sorted(held_out)) if held_out else None,
        "chi_squared": float(np.sum(left[fitted] ** 2)),
        "scale": math.sqrt(sample.scale),
        "draws": sample.worth,
        "evaluations": model.evaluations,
        "systems": [_with(model, system, best) for system in model.bases],
        "notes": _notes(table, keys, correlation, sample, singular, directions, left[fitted], freedom),
    }


def _names(model: Response) -> list[str]:
    """The keys; with their files where one key is free in several."""
    keys = [one.key for one in model.free]
    return [f"{one.key} ({one.file})" if keys.count(one.key) > 1 else one.key for one in model.free]


def _with(model: Response, system: System, best: np.ndarray) -> System:
    from diskperf._fit.model import keys_of

    values = model.values(best)
    own = keys_of(system, model.free)
    return system.with_(
        {key: model.free[one].setting(values[one]) for one, key in own if not key.startswith("program.")}
    )


def _correlations(sample: Sample) -> np.ndarray:
    import numpy as np

    covariance = sample.covariance()
    spread = np.sqrt(np.maximum(np.diag(covariance), 1e-30))
    return np.clip(covariance / np.outer(spread, spread), -1.0, 1.0)


def _matrix(keys: list[str], correlation: np.ndarray) -> _native.Columns:
    columns: dict[str, list[Any]] = {"key": keys}
    columns.update((key, [float(one) for one in row]) for key, row in zip(keys, correlation.T))
    return _native.Columns.from_pydict(columns, {"key": "string", **dict.fromkeys(keys, "double")})


def _parameters(
    model: Response, start: np.ndarray, best: np.ndarray, sample: Sample, correlation: np.ndarray
) -> _native.Columns:
    from diskperf._fit.fitting import _PARAMETERS
    from diskperf._fit.interval import AT_BOUND, SAYS_NOTHING

    names = _names(model)
    rows: dict[str, list[Any]] = {name: [] for name in _PARAMETERS}
    values = model.values(best)
    for number, one in enumerate(model.free):
        low, high = sample.interval(number)
        low, high = min(low, float(best[number])), max(high, float(best[number]))
        below, above = low > AT_BOUND, high < 1 - AT_BOUND
        if high - low > SAYS_NOTHING:
            below = above = False
        is_prior = high - low > PRIOR_SAYS * WIDTH_95 * one.prior_spread_of_place()
        others = [other for other in range(len(names)) if other != number]
        most = max(others, key=lambda other: abs(correlation[number, other]), default=None)
        row = {
            "key": one.key,
            "file": one.file,
            "value": values[number],
            "low": min(one.value(low), values[number]) if below else None,
            "high": max(one.value(high), values[number]) if above else None,
            "determined": BY_PRIOR if is_prior else ENDS[below, above],
            "least": one.low,
            "most": one.high,
            "start": one.value(float(start[number])),
            "share_of_range": high - low,
            "together_with": None if most is None else names[most],
            "correlation": None if most is None else float(correlation[number, most]),
        }
        for name, value in row.items():
            rows[name].append(value)
    return _native.Columns.from_pydict(rows, _PARAMETERS)


def _observations(
    model: Response,
    modelled: np.ndarray,
    errors: np.ndarray,
    left: np.ndarray,
    held_out: set[int],
    roughness: dict[int, float],
) -> _native.Columns:
    from diskperf._fit.fitting import _OBSERVATIONS

    observed = model.observations
    columns: dict[str, list[Any]] = {
        "observation": list(range(len(observed))),
        "name": [str(one) for one in observed],
        "target": list(model.targets),
        "metric": [one.metric for one in observed],
        "observed": [float(one.value) for one in observed],
        "modelled": [float(one) for one in modelled],
        "error": [float(one) if math.isfinite(one) else None for one in errors],
        "residual": [float(one) for one in left],
        "held_out": [number in held_out for number in range(len(observed))],
        "roughness": [
            float(roughness[number]) if number in roughness else None for number in range(len(observed))
        ],
    }
    return _native.Columns.from_pydict(columns, _OBSERVATIONS)


def _information(keys: list[str], slopes: np.ndarray, fitted: list[int], covariance_of: Any) -> _native.Columns:
    import numpy as np

    whole = np.diag(covariance_of(slopes))
    rows: dict[str, list[Any]] = {"observation": [], "key": [], "share": []}
    for place, number in enumerate(fitted):
        without = np.diag(covariance_of(np.delete(slopes, place, axis=0)))
        for key, share in zip(keys, 1 - whole / without):
            rows["observation"].append(number)
            rows["key"].append(key)
            rows["share"].append(float(share))
    return _native.Columns.from_pydict(rows, {"observation": "int64", "key": "string", "share": "double"})


def _root_mean_square(errors: np.ndarray, numbers: list[int]) -> float:
    import numpy as np

    return float(np.sqrt(np.nanmean(errors[numbers] ** 2)))


def _notes(
    table: _native.Columns,
    keys: list[str],
    correlation: np.ndarray,
    sample: Sample,
    singular: np.ndarray,
    directions: np.ndarray,
    left: np.ndarray,
    freedom: int,
) -> list[str]:
    from diskperf._fit.fitting import ONLY_TOGETHER

    notes = []
    for key, row in zip(keys, table.to_pylist()):
        if row["determined"] == BY_PRIOR:
            notes.append(f"{key} is close to its expected value: the observations add little")
        elif row["determined"] == "no":
            notes.append(f"{key} is not determined: the observations allow nearly all of its range")
        elif row["determined"] != "yes":
            bound = row["least"] if row["low"] is None else row["most"]
            notes.append(f"{key} is determined {row['determined']}: its bound {bound:g} is as likely")
    for one in range(len(keys)):
        for other in range(one):
            if abs(correlation[one, other]) >= ONLY_TOGETHER:
                notes.append(
                    f"{keys[other]} and {keys[one]} are determined only together: their correlation "
                    f"is {correlation[one, other]:.3f}"
                )
    if sample.scale > 1:
        notes.append(
            f"the model differs from the observations by more than their uncertainties: chi-squared is "
            f"{float(left @ left):.0f} for {freedom} degrees of freedom, and the "
            f"intervals are {math.sqrt(sample.scale):.2g} times as wide for it"
        )
    if sample.smoothed:
        notes.append(
            "the response is so rugged that the intervals use a smooth one and count its roughness as noise: "
            "they are wider for that; use several model_seeds or a larger size"
        )
    return notes


def text_of(fit: Fit) -> str:
    """A fit for a terminal."""
    lines = [_line("parameter", "value", "95 % interval", "determined", "most together with")]
    lines.append("─" * len(lines[0]))
    for row in fit.parameters:
        ends = ["" if row[name] is None else f"{row[name]:.4g}" for name in ("low", "high")]
        interval = {
            "yes": f"{ends[0]} to {ends[1]}",
            "from below only": f"above {ends[0]}",
            "from above only": f"below {ends[1]}",
        }.get(row["determined"], "none")
        other = "" if row["together_with"] is None else f"{row['correlation']:+.2f} {row['together_with']}"
        key = row["key"] if row["file"] is None else f"{row['key']} ({row['file']})"
        lines.append(_line(key, f"{row['value']:.5g}", interval, row["determined"], other))
    rows = fit.observations.to_pylist()
    held_out = [row for row in rows if row["held_out"]]
    lines += ["", f"{len(rows) - len(held_out)} observations fitted: error {100 * fit.error:.1f} %, "
                  f"chi-squared {fit.chi_squared:.1f}"]  # fmt: skip
    if fit.held_out_error is not None:
        lines.append(f"{len(held_out)} held out: error {100 * fit.held_out_error:.1f} %")
    lines.append(f"condition {fit.condition:.3g}; {fit.evaluations} settings were run")
    lines += [f"note: {note}" for note in fit.notes]
    worst = sorted(rows, key=lambda row: -abs(row["residual"]))[:3]
    lines += ["furthest off: " + "; ".join(
        f"{row['name']} {row['observed']:.5g} modelled {row['modelled']:.5g}" for row in worst)]  # fmt: skip
    return "\n".join(lines)


def _line(*words: str) -> str:
    widths = (36, 11, 20, 16, 30)
    first, value, *rest = words
    padded = [f"{first:<{widths[0]}}", f"{value:>{widths[1]}} "]
    padded += [f"{word:<{width}}" for word, width in zip(rest, widths[2:])]
    return " ".join(padded).rstrip()
