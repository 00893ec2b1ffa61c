"""What the user wants to be small."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.mechanism.least.objective import Power
from lessnoise.mechanism.losses import log_raw_moment, quantile

if TYPE_CHECKING:
    from lessnoise.mechanism.law import Law

_QUANTILE = "quantile:"


@dataclass(frozen=True, slots=True)
class Goal:
    """The mean of ||n||^2 ("squared"), of ||n|| ("l2"), or a quantile of ||n||^2 ("quantile:0.95").

    >>> Goal.of("quantile:0.95").probability
    0.95
    """

    name: str
    probability: float | None = None

    @classmethod
    def of(cls, objective: object) -> Goal:
        """Read the caller's words."""
        if objective in ("squared", "l2"):
            return cls(str(objective))
        if isinstance(objective, str) and objective.startswith(_QUANTILE):
            try:
                probability = float(objective.removeprefix(_QUANTILE))
            except ValueError:
                probability = math.nan
            return cls(objective, validation.probability(f"objective={objective!r}: probability", probability))
        raise InvalidInput(f'objective={objective!r} is not known: choose "squared", "l2" or "quantile:0.95".')

    @property
    def power(self) -> Power:
        """The objective whose optimum this is, or from which the search for a quantile starts."""
        return Power(1.0 if self.name == "l2" else 2.0)

    def log_size(self, law: Law, dimension: int) -> float:
        """ln of the law's size as a length: root mean square, mean length, or quantile of ||n||."""
        if self.probability is not None:
            return 0.5 * math.log(quantile(law, dimension, self.probability))
        if self.name == "l2":
            return log_raw_moment(law, dimension, 0.5)
        return 0.5 * log_raw_moment(law, dimension, 1)

    def loss_ratio(self, log_size_difference: float) -> float:
        """Ratio of losses from a difference of log-sizes: lengths for "l2", squares otherwise."""
        return math.exp(log_size_difference * (1.0 if self.name == "l2" else 2.0))
