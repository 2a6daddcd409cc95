"""How well observations determine parameters, where the model may jump.

The likelihood is sampled, and not approximated: places are drawn from wide
distributions around the optima, run, and weighted by ``exp(-squares / 2)`` over
the density that they were drawn from (adaptive multiple importance sampling:
each round draws from what the rounds before have shown, and all draws count). No
derivative is taken, so that a missed revolution, where the response jumps, is a
boundary like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats
from scipy.stats import qmc

from diskperf._fit.search import Optimum, Residuals, squares

#: Degrees of freedom of the distributions that are drawn from: wide tails.
TAILS = 5

#: Draws of a round, the least and the largest number of rounds, and the number of
#: independent draws that the weighted ones are worth when they are enough.
DRAWS, LEAST_ROUNDS, MOST_ROUNDS, ENOUGH = 64, 2, 8, 120

#: The same while the next round's distribution is found, and the least for an
#: interval: with less, the response is smoothed.
FOR_SHAPE, FOR_INTERVAL = 20, 60

#: Draws from a smoothed response, which take no run.
SMOOTHED_DRAWS = 4096

#: Optima that are this much worse than the best are no candidates.
WORSE = 20.0

#: The 95 % point of chi-squared with one degree of freedom.
LIKELY = 3.841

#: Ends that are nearer than this to a bound, in places, rest upon it.
AT_BOUND = 0.03

#: An interval over more than this of the range says nothing: the range alone
#: would give 0.95.
SAYS_NOTHING = 0.8


@dataclass
class Sample:
    """Places with weights that stand for what the observations allow."""

    places: np.ndarray
    residuals: np.ndarray
    squares: np.ndarray
    weights: np.ndarray
    #: How many independent draws the weighted ones are worth.
    worth: float
    #: What the squares were divided by because the model is further from the
    #: observations than their uncertainties say; 1 if it is not.
    scale: float
    #: Whether the response was smoothed, and its roughness taken for noise, since it
    #: is too rugged for the draws to be worth enough.
    smoothed: bool
    #: The draws that were run, with what they weigh.
    run: tuple[np.ndarray, np.ndarray, np.ndarray]

    def mean(self) -> np.ndarray:
        return self.weights @ self.places

    def covariance(self) -> np.ndarray:
        return _covariance(self.places, self.weights)

    def interval(self, number: int) -> tuple[float, float]:
        """The 95 % interval of a place: from 2.5 % to 97.5 % of the weights, and wider
        where a place as likely as the profile's 95 % lies beyond.

        How far the ends lie from where more draws would put them averages out where
        the response is straight. Where it is rugged, draws miss what is between them:
        there the ends go out by up to one standard error of the share of so few draws."""
        column = self.places[:, number]
        share = 0.025 - min(self._ruggedness() * np.sqrt(0.025 * 0.975 / self.worth), 0.0245)
        low, high = weighted_quantiles(column, self.weights, (share, 1 - share))
        least = self.squares.min()
        likely = column[self.squares <= least + LIKELY * self.scale]
        return min(low, likely.min()), max(high, likely.max())

    def _ruggedness(self) -> float:
        """By how many standard deviations of an observation the model's response departs
        from a straight line over what the observations allow; 1 at the most."""
        _, roughness = self.slopes()
        return min(1.0, float(np.sqrt(np.mean(roughness**2))))

    def slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """The change of each residual with each place over all that the observations
        allow, and by how much the model's response departs from that: its roughness,
        in standard deviations of the observation."""
        places, rows, weights = self.run
        surface = _Surface.through(places, rows, weights, curved=False)
        left = rows - surface.at(places)
        return surface.coefficients[1:].T, np.sqrt(weights @ left**2)


@dataclass
class _Surface:
    """A smooth response: a polynomial of the places."""

    centre: np.ndarray
    coefficients: np.ndarray
    curved: bool

    @staticmethod
    def through(places: np.ndarray, rows: np.ndarray, weights: np.ndarray, curved: bool) -> _Surface:
        surface = _Surface(weights @ places, np.empty(0), curved)
        root = np.sqrt(weights)[:, None]
        terms = surface._terms(places)
        surface.coefficients = np.linalg.lstsq(terms * root, rows * root, rcond=1e-9)[0]
        return surface

    def at(self, places: np.ndarray) -> np.ndarray:
        return self._terms(places) @ self.coefficients

    def _terms(self, places: np.ndarray) -> np.ndarray:
        apart = places - self.centre
        number = apart.shape[1]
        products = [apart[:, i] * apart[:, j] for i in range(number) for j in range(i, number)]
        return np.column_stack([np.ones(len(apart)), apart, *(products if self.curved else [])])


@dataclass
class _Proposal:
    centre: np.ndarray
    root: np.ndarray
    #: The share of it that is within the bounds.
    inside: float

    def density(self, places: np.ndarray) -> np.ndarray:
        number = len(self.centre)
        scaled = np.linalg.solve(self.root, (places - self.centre).T)
        distances = np.sum(scaled**2, axis=0)
        log = -0.5 * (TAILS + number) * np.log1p(distances / TAILS)
        return np.exp(log) / (np.abs(np.prod(np.diag(self.root))) * self.inside)


def sampled(
    residuals: Residuals, optima: Sequence[Optimum], *, scale: float, seed: int,
    rounds: int = MOST_ROUNDS, draws: int = DRAWS,
) -> Sample:  # fmt: skip
    """Draws and weighs places until they are worth enough, or so many rounds of so
    many draws are done."""
    dimensions = len(optima[0].place)
    engine = qmc.Sobol(dimensions + 1, scramble=True, rng=np.random.default_rng([seed, 3]))
    near = [one for one in optima if one.squares <= optima[0].squares + WORSE * scale]
    proposals = [_proposal(one.place, one.covariance() * scale * 2.0) for one in near]
    shares = [1.0 / len(near)] * len(near)
    drawn: list[int] = []
    places = np.empty((0, dimensions))
    rows = np.empty((0, 0))
    density: list[_Proposal] = []
    current = list(zip(proposals, shares))
    for number in range(rounds):
        new = np.vstack([_draw(one, engine, max(8, round(draws * share))) for one, share in current])
        density += [one for one, _ in current]
        drawn += [max(8, round(draws * share)) for _, share in current]
        found = residuals(new)
        rows = found if not len(places) else np.vstack([rows, found])
        places = np.vstack([places, new])
        total = squares(rows)
        mixture = sum(count * one.density(places) for one, count in zip(density, drawn)) / sum(drawn)
        logs = -np.log(mixture)
        weights = _weights(total, logs, scale)
        if number + 1 >= LEAST_ROUNDS and _worth(weights) >= ENOUGH:
            break
        shape = _weights(total, logs, scale * _flattening(total, logs, scale, FOR_SHAPE))
        current = [(_proposal(shape @ places, _covariance(places, shape) * 1.5), 1.0)]
    if _worth(weights) >= FOR_INTERVAL:
        return Sample(places, rows, total, weights, _worth(weights), scale, False, (places, rows, weights))
    return _smoothed(places, rows, logs, scale, engine)


def _smoothed(
    places: np.ndarray, rows: np.ndarray, logs: np.ndarray, scale: float, engine: qmc.Sobol
) -> Sample:
    """A sample of a smooth response through the draws. How far the draws are from it
    counts as noise, with how that goes together among the observations."""
    total = squares(rows)
    weights = _weights(total, logs, scale * _flattening(total, logs, scale, FOR_INTERVAL))
    for _ in range(4):
        surface = _Surface.through(places, rows, weights, curved=True)
        left = rows - surface.at(places)
        noise = np.eye(rows.shape[1]) * scale + (left * weights[:, None]).T @ left
        root = np.linalg.cholesky(noise)

        def whitened(at: np.ndarray, surface: _Surface = surface, root: np.ndarray = root) -> np.ndarray:
            return squares(np.linalg.solve(root, surface.at(at).T).T)

        smooth = whitened(places)
        weights = _weights(smooth, logs, 1.5 * _flattening(smooth, logs, 1.5, FOR_INTERVAL))
    proposal = _proposal(weights @ places, _covariance(places, weights) * 1.5)
    drawn = _draw(proposal, engine, SMOOTHED_DRAWS)
    smooth = whitened(drawn)
    chosen = _weights(smooth, -np.log(proposal.density(drawn)), 1.0)
    return Sample(
        drawn, surface.at(drawn), smooth * scale, chosen, _worth(chosen), scale, True, (places, rows, weights)
    )


def _proposal(centre: np.ndarray, covariance: np.ndarray) -> _Proposal:
    # Far beyond the bounds it would draw in vain, and a hair's breadth is none.
    spread = np.sqrt(np.diag(covariance))
    limited = np.clip(spread, 1e-4, 0.6)
    covariance = covariance * np.outer(limited / spread, limited / spread)
    root = np.linalg.cholesky(covariance + np.diag(1e-6 * np.diag(covariance)))
    proposal = _Proposal(np.clip(centre, 0, 1), root, 1.0)
    engine = qmc.Sobol(len(centre) + 1, scramble=True, rng=np.random.default_rng(4))
    proposal.inside = max(float(np.mean(_within(_outward(proposal, engine.random(2048))))), 1e-3)
    return proposal


def _outward(proposal: _Proposal, uniform: np.ndarray) -> np.ndarray:
    """Uniform numbers as draws from the proposal."""
    normal = stats.norm.ppf(np.clip(uniform[:, :-1], 1e-9, 1 - 1e-9))
    wide = stats.chi2.ppf(np.clip(uniform[:, -1], 1e-9, 1 - 1e-9), TAILS) / TAILS
    return proposal.centre + (normal @ proposal.root.T) / np.sqrt(wide)[:, None]


def _within(places: np.ndarray) -> np.ndarray:
    return np.all((places >= 0) & (places <= 1), axis=1)


def _draw(proposal: _Proposal, engine: qmc.Sobol, count: int) -> np.ndarray:
    found = np.empty((0, len(proposal.centre)))
    while len(found) < count:
        several = _outward(proposal, engine.random(64))
        found = np.vstack([found, several[_within(several)]])
    return found[:count]


def _weights(total: np.ndarray, logs: np.ndarray, scale: float) -> np.ndarray:
    exponent = -total / (2 * scale) + logs
    weights = np.exp(exponent - exponent.max())
    return weights / weights.sum()


def _worth(weights: np.ndarray) -> float:
    return 1 / float(np.sum(weights**2))


def _flattening(total: np.ndarray, logs: np.ndarray, scale: float, wanted: float) -> float:
    """By how much the likelihood must be flattened for the draws to be worth so many."""

    def lacking(flattened: float) -> float:
        return _worth(_weights(total, logs, scale * flattened)) - wanted

    if lacking(1.0) >= 0:
        return 1.0
    if lacking(1e4) <= 0:
        return 1e4
    log = optimize.brentq(lambda log: lacking(np.exp(log)), 0.0, np.log(1e4), xtol=1e-3)
    return float(np.exp(log))


def _covariance(places: np.ndarray, weights: np.ndarray) -> np.ndarray:
    apart = places - weights @ places
    return (apart * weights[:, None]).T @ apart


def weighted_quantiles(
    values: np.ndarray, weights: np.ndarray, shares: Sequence[float]
) -> list[float]:
    """Quantiles of weighted values, with straight lines between them."""
    order = np.argsort(values, kind="stable")
    heaped = np.cumsum(weights[order]) - weights[order] / 2
    return [float(np.interp(share, heaped, values[order])) for share in shares]
