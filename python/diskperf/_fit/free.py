"""The parameters that a fit may choose."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from diskperf._errors import RequestError

#: Digits of a parameter that are tried and written, unless it says others: more are
#: noise.
DIGITS = 6


@dataclass(frozen=True)
class Free:
    """A parameter that a fit may choose.

    Raises:
        RequestError: bounds the wrong way round or not finite, a start beyond them, a
            logarithm of what is not above zero.
    """

    #: The key: ``host.copy_ms_per_kb``.
    key: str
    #: The bounds.
    low: float
    high: float
    #: Where the search starts; without one, the system's own value, or the middle.
    start: Optional[float] = None
    #: ``linear`` or ``log``: in which of them it is searched and taken as equally
    #: likely everywhere within its bounds.
    scale: str = "linear"
    #: Whether only whole numbers are tried.
    whole: bool = False
    #: Of keys that several systems have in different files of the catalogue, the file
    #: that is meant: ``hosts/vax780.toml``. Without it the key of all systems.
    file: Optional[str] = None
    #: Digits that are tried: fewer find the same numbers where a last digit is noise.
    digits: int = DIGITS
    #: How far from the start it may well be, one standard deviation: an amount, or on
    #: the scale ``log`` a factor. The fit knows it beside the observations; without it
    #: all that is within the bounds is as likely.
    prior_spread: Optional[float] = None

    def __post_init__(self) -> None:
        numbers = [self.low, self.high] + ([] if self.start is None else [self.start])
        if not all(math.isfinite(number) for number in numbers):
            raise RequestError(f"`{self.key}`: its bounds are {self.low} and {self.high}: give finite numbers")
        if not self.low < self.high:
            raise RequestError(
                f"`{self.key}`: its lower bound {self.low} is not below its upper bound {self.high}: "
                f"give ({self.key!r}, lower, upper)"
            )
        if self.start is not None and not self.low <= self.start <= self.high:
            raise RequestError(f"`{self.key}`: its start {self.start} is not from {self.low} to {self.high}")
        if self.scale not in ("linear", "log"):
            raise RequestError(f'`{self.key}`: scale={self.scale!r}: give "linear" or "log"')
        if self.scale == "log" and self.low <= 0:
            raise RequestError(f"`{self.key}`: a logarithmic scale needs a lower bound above 0, not {self.low}")
        least = 1 if self.scale == "log" else 0
        if self.prior_spread is not None and not least < self.prior_spread < math.inf:
            kind = "a factor above 1" if least else "an amount above 0"
            raise RequestError(f"`{self.key}`: prior_spread={self.prior_spread}: give {kind}")

    def value(self, place: float) -> float:
        """The value at a place from 0 (the lower bound) to 1 (the upper)."""
        if self.scale == "log":
            value = self.low * (self.high / self.low) ** place
        else:
            value = self.low + (self.high - self.low) * place
        if self.whole:
            return float(round(value))
        return min(max(float(f"{value:.{self.digits}g}"), self.low), self.high)

    def place(self, value: float) -> float:
        """The place of a value: the inverse of :meth:`value`."""
        if self.scale == "log":
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def prior_spread_of_place(self) -> float:
        """The standard deviation of the place by what is known beforehand; infinite
        where nothing is."""
        if self.prior_spread is None:
            return math.inf
        if self.scale == "log":
            return math.log(self.prior_spread) / math.log(self.high / self.low)
        return self.prior_spread / (self.high - self.low)

    def setting(self, value: float) -> float | int:
        """The value as it is set."""
        return int(value) if self.whole else value

    def is_of(self, file: str) -> bool:
        """Whether a key that stands in this file is the one that is meant."""
        return self.file is None or file.removeprefix("catalogue/") == self.file


def free_of(given: Iterable[Any]) -> list[Free]:
    """Free parameters as :func:`fit` takes them: each a :class:`Free`, or
    ``(key, low, high)`` with what else it has in its order, or a dict of it.

    Raises:
        RequestError: none at all, the same twice, or what is no parameter.
    """
    found: list[Free] = []
    for one in given:
        try:
            free = one if isinstance(one, Free) else Free(**one) if isinstance(one, Mapping) else Free(*one)
        except TypeError:
            raise RequestError(
                f"{one!r} is no free parameter: give (key, low, high), or Free(key, low, high, ...)"
            ) from None
        if any((other.key, other.file) == (free.key, free.file) for other in found):
            raise RequestError(f"`{free.key}` is free twice: give each key once")
        found.append(free)
    if not found:
        raise RequestError("no parameter is free: give free=[(key, low, high), ...]")
    return found
