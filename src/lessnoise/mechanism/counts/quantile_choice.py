"""Quantiles of lines of counts, chosen privately: a law whose release is not a noisy value but places on the line.

What is chosen how, and the proof, is in :mod:`lessnoise.mechanism.counts.descent`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Claim, Neighbours
from lessnoise.mechanism.counts.data_dependent import needs_data
from lessnoise.mechanism.counts.descent import Lines, level_shares, places_of
from lessnoise.mechanism.curve.dispatch import law_delta, law_pure_epsilon, law_pure_epsilon_lower
from lessnoise.mechanism.law import Plain, register
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.sampling import delivered, prepare_noise, values_drawn
from lessnoise.noise import check_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lessnoise._common import Array
    from lessnoise.mechanism.request import Relation
    from lessnoise.noise import Stream

SOURCE = "Kaplan, Schnapp & Stemmer 2022"
MOST_CELLS, MOST_QUANTILES = 1 << 20, 1 << 10
_ROUNDING = 1e-12
_MOST_ROWS = 1 << 40


@register
@dataclass(frozen=True, slots=True)
class QuantileChoice(Plain):
    """Quantiles of lines of so many ``cells``, for an l1 sensitivity; ``epsilon`` is for one row.

    ``whole``: every so many cells begins a value that is likelier than others before the data is seen (1: none is).
    """

    cells: int
    probabilities: tuple[float, ...]
    epsilon: float
    whole: int = 1

    kind: ClassVar[str] = "quantile-choice"
    norm: ClassVar[str] = "l1"
    data_dependent: ClassVar[bool] = True
    rounding: ClassVar[str] = (
        "The quantiles are drawn from their exact law: no choice is left to the rounding of floating-point numbers."
    )

    def __post_init__(self) -> None:
        settle(self, cells=validation.whole_number("cells", self.cells, 2), epsilon=validation.epsilon(self.epsilon))
        settle(self, whole=validation.whole_number("whole", self.whole))
        if self.cells > MOST_CELLS or self.whole > MOST_CELLS:
            raise InvalidInput(f"cells={max(self.cells, self.whole)} is more than {MOST_CELLS}: pass fewer.")
        listed = list(self.probabilities) if isinstance(self.probabilities, tuple) else self.probabilities
        given = validation.entries("probabilities", listed)
        checked = tuple(validation.probability(f"probabilities[{i}]", p) for i, p in enumerate(given))
        if not 1 <= len(checked) <= MOST_QUANTILES or not all(low < high for low, high in pairwise(checked)):
            raise InvalidInput(
                f"probabilities has {len(checked)} numbers that must rise, and at most {MOST_QUANTILES}: sort them, "
                "and name each once."
            )
        settle(self, probabilities=checked)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """The counts of one line after the other."""
        if math.prod(shape) % self.cells:
            raise InvalidInput(f"shape={shape} is not that of lines of {self.cells} cells: pass all cells of each.")

    @property
    def deviation(self) -> float:
        """Of a chosen rank, where rows are dense: root mean square over the probabilities, in rows."""
        return level_shares(self.probabilities)[1] / self.epsilon


def quantile_choice(
    *,
    epsilon: float,
    cells: int,
    probabilities: Sequence[float],
    groups: int = 1,
    whole: int = 1,
    rows: int = 1,
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Quantiles of each of the ``groups`` from the counts of its cells; pure epsilon-DP, for all groups together.

    One individual has at most ``rows`` rows, in any cells of any groups. What is released are places from 0 to
    ``cells``, one row for each group. A replaced row is one taken away and one added.

    >>> m = quantile_choice(epsilon=1, cells=8, probabilities=[0.25, 0.5, 0.75])
    >>> places = m.release([0, 0, 200, 0, 0, 400, 400, 0]).value
    >>> places.shape, bool((np.diff(places) >= 0).all()), m.check().holds
    ((1, 3), True, True)
    """
    epsilon, relation = validation.epsilon(epsilon), Neighbours.of(neighbours)
    sides = 1 if relation is Neighbours.ADD_REMOVE else 2
    sensitivity = float(sides * validation.whole_number("rows", rows))
    law = QuantileChoice(cells, tuple(probabilities), epsilon / sensitivity * (1.0 - 2.0 * _ROUNDING), whole)
    shape = (validation.whole_number("groups", groups) * law.cells,)
    return Mechanism("quantile-choice", law, shape, sensitivity, relation, Claim(epsilon, 0.0, relation, SOURCE))


# Privacy.


@law_pure_epsilon.register(QuantileChoice)
def _(law: QuantileChoice, dimension: int, sensitivity: float) -> float:
    return law.epsilon * math.ceil(sensitivity) * (1.0 + _ROUNDING)  # rows one after the other


@law_pure_epsilon_lower.register(QuantileChoice)
def _(law: QuantileChoice, dimension: int, sensitivity: float) -> float:
    return 0.0  # nothing is proved from below


@law_delta.register(QuantileChoice)
def _(law: QuantileChoice, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    """No mechanism of pure privacy E has more than (e^E - e^eps)/(e^E + 1) (Kairouz, Oh & Viswanath 2015)."""
    pure = law_pure_epsilon(law, dimension, sensitivity)
    if epsilon >= pure:
        return Bracket(0.0, 0.0)
    upper = -math.expm1(epsilon - pure) / (1.0 + math.exp(-pure))
    return Bracket(0.0, min(upper * (1.0 + _ROUNDING), 1.0))


# The release.


@prepare_noise.register(QuantileChoice)
def _(
    law: QuantileChoice, value: Array, stream: Stream, *, out: Array | None = None, threads: int | None = None
) -> Callable[[], Array]:
    counts = np.asarray(value, dtype=np.float64).reshape(-1, law.cells)
    if not (np.isfinite(counts).all() and (counts >= 0.0).all() and (np.rint(counts) == counts).all()):
        raise InvalidInput("value has an entry that is not a number of rows: quantiles are chosen from whole counts.")
    if counts.sum(axis=1).max() > _MOST_ROWS:
        raise InvalidInput(f"value has more than {_MOST_ROWS} rows in a line: quantiles are chosen among fewer.")
    check_out(out, (len(counts), len(law.probabilities)), np.dtype(np.float64))
    lines = Lines(counts.astype(np.int64), law.probabilities, law.epsilon, law.whole)

    def draw() -> Array:
        places = lines.draw(stream.claim().sequence())
        return delivered(places / float(places_of(law.cells)), out)

    return draw


@values_drawn.register(QuantileChoice)
def _(law: QuantileChoice, dimension: int) -> int:
    return dimension // law.cells * len(law.probabilities)


needs_data(QuantileChoice, "quantile-choice", "it depends on the data")
