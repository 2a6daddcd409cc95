"""Trials of what a fit states: of many fits to observations with noise, how many
intervals hold the true values, and how wide they are beside the Cramér-Rao width.

That width is of all observations, at the true values, with slopes over steps as
wide as the noise, since a slope at a jump is none.
"""

import dataclasses

import diskperf
import numpy as np
from conftest import VAX
from diskperf._fit import fitting, search
from diskperf._fit.free import Free
from diskperf._fit.model import Model
from diskperf._fit.observation import Observation

NOISE = 0.02
OBSERVATIONS = 30


class Additive:
    """A response that has a modelled disk's two kinds of parts, and takes no run: costs
    that add up, and revolutions, of which each of ``blocks`` blocks waits for a
    whole number. The fewer the blocks, the higher the jumps."""

    free = [
        Free("copy", 0.3, 1.2),
        Free("call", 0.1, 2.0, scale="log"),
        Free("driver", 0.1, 1.5),
        Free("rpm", 3000, 4500, whole=True),
    ]
    systems: list = []
    bases: list = []

    def __init__(self, blocks, observations=None):
        self.blocks = blocks
        random = np.random.default_rng(5)
        self._costs = random.uniform(0.3, 3, (OBSERVATIONS, 3)) * [4, 1.5, 1.5]
        self._turns = random.uniform(0.3, 2, OBSERVATIONS)
        self._waits = np.arange(OBSERVATIONS) % 3 == 0
        self._phases = (np.arange(blocks) + 0.5) / blocks
        self.evaluations = 0
        self.observations = observations or [
            Observation("read_8192", 1.0, "elapsed_s", uncertainty=NOISE, name=str(number))
            for number in range(OBSERVATIONS)
        ]
        self.targets = ["additive"] * OBSERVATIONS

    def values(self, place):
        return tuple(one.value(float(number)) for one, number in zip(self.free, place))

    def at(self, places):
        self.evaluations += len(places)
        return np.array([self._row(self.values(place)) for place in places])

    def _row(self, values):
        costs, turn = self._costs @ values[:3], 60_000 / values[3]
        waits = turn * np.ceil(costs[:, None] / turn + self._phases).mean(axis=1) + 0.3 * costs
        return np.where(self._waits, waits, costs + 0.3 * self._turns * turn)

    def observing(self, observations):
        return Additive(self.blocks, observations)


class Modelled(Model):
    """A model whose observations can be put in others' place; what has been run for
    one trial serves the others."""

    def observing(self, observations):
        other = object.__new__(type(self))
        other.__dict__ = {**self.__dict__, "observations": observations}
        return other


def vax(size, executor=None):
    """A VAX, fitted in a cost for each kilobyte, for each call and for each request,
    and its spindle's speed: the first three decide whether the fourth is in time."""
    free = [
        Free("host.copy_ms_per_kb", 0.3, 1.2),
        Free("kernel.read_write_ms", 0.1, 2.0, scale="log"),
        Free("driver.complete_ms", 0.1, 1.5),
        Free("drive.spindle_rpm", 3000, 4500, whole=True),
    ]
    points = [{}, {"filesystem.block_bytes": 4096, "filesystem.fragment_bytes": 512}, {"host.speed": 2}]
    programs = ["read_8192", "write_4096", "write_8192", "rewrite_8192"]
    observations = [
        Observation("ffs83", 1.0, metric, uncertainty=NOISE, settings=point, program=program)
        for metric in ("processor_ns", "kb_per_s", "elapsed_ns")
        for point in points
        for program in programs
    ][:OBSERVATIONS]
    return Modelled(
        diskperf.System(VAX), observations, free, options={"size": size, "repetitions": 2},
        seeds=[1983], executor=executor,
    )  # fmt: skip


@dataclasses.dataclass
class Outcome:
    #: For each trial and parameter whether the interval holds the true value, whether
    #: it was stated at all, and its width over the Cramér-Rao width.
    held: np.ndarray
    stated: np.ndarray
    ratios: np.ndarray
    smoothed: int

    def __str__(self):
        return (
            f"{self.held[self.stated].sum()} of {self.stated.sum()} stated intervals "
            f"({100 * self.coverage:.1f} %) hold the true value; median width "
            f"{np.median(self.ratios):.2f} times Cramer-Rao's; {(~self.stated).sum()} not stated; "
            f"{self.smoothed} of {len(self.held)} smoothed"
        )

    @property
    def coverage(self):
        return float(self.held[self.stated].mean())


def outcome(model, truth, trials, first_seed=0):
    """Fits a model to its own numbers with noise, with another seed each time."""
    place = np.array([one.place(value) for one, value in zip(model.free, truth)])
    clean = model.at([place])[0]
    widths = 2 * 1.96 * cramer_rao(model, place, clean)
    held, stated, ratios, smoothed = [], [], [], 0
    for seed in range(first_seed, first_seed + trials):
        noisy = clean * (1 + NOISE * np.random.default_rng([7, seed]).standard_normal(len(clean)))
        one = fitting.solved(
            observing(model, noisy),
            np.full(len(truth), 0.5),
            fitting._held_out(len(clean), len(truth), 0.2, seed),
            method="least-squares", restarts=2, generations=1, seed=seed,
        )  # fmt: skip
        rows = one.parameters.to_pylist()
        stated.append([row["determined"] == "yes" for row in rows])
        held.append([
            (row["low"] is None or row["low"] <= value) and (row["high"] is None or value <= row["high"])
            for row, value in zip(rows, truth)
        ])  # fmt: skip
        ratios.append([row["share_of_range"] for row in rows] / widths)
        smoothed += any("rugged" in note for note in one.notes)
    return Outcome(np.array(held), np.array(stated), np.array(ratios), smoothed)


def observing(model, values):
    return model.observing(
        [dataclasses.replace(one, value=float(value)) for one, value in zip(model.observations, values)]
    )


def cramer_rao(model, place, clean):
    """The least standard deviations of the places that an unbiased estimate can have."""
    exact = observing(model, clean)
    slopes = search.slopes_over_noise(
        lambda places: search.bounded(fitting.standardised(exact, exact.at(places))), place, rounds=4
    )
    return np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
