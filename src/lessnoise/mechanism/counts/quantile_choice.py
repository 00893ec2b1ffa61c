"""Quantiles of lines of counts, chosen privately: a law whose release is not a noisy value but places on the line.

A few quantiles are chosen at once (:mod:`lessnoise.mechanism.counts.joint_choice`), one alone or many in a descent
(:mod:`lessnoise.mechanism.counts.descent`): there is what is chosen how, and the proof.
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
from lessnoise.mechanism.counts.descent import Lines, level_shares
from lessnoise.mechanism.counts.joint_choice import JointLines, joint_deviation
from lessnoise.mechanism.curve.dispatch import law_delta, law_pure_epsilon, law_pure_epsilon_lower
from lessnoise.mechanism.law import Plain, register
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.sampling import delivered, prepare_noise, values_drawn
from lessnoise.noise import check_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lessnoise._common import Array, IntArray
    from lessnoise.mechanism.request import Relation
    from lessnoise.noise import Stream

JOINT_SOURCE, DESCENT_SOURCE = "Gillenwater, Joseph & Kulesza 2021", "Kaplan, Schnapp & Stemmer 2022"
MOST_CELLS, MOST_QUANTILES = 1 << 20, 1 << 10
_ROUNDING = 1e-12
_MOST_ROWS, _MOST_ROWS_AT_ONCE = 1 << 40, 1 << 34
_MOST_AT_ONCE, _MOST_GROUPS_AT_ONCE = 8, 500  # each group takes some hundredths of a second
_LEAST_EPSILON_AT_ONCE = 0.01  # below it, too many ranks are likely


@register
@dataclass(frozen=True, slots=True)
class QuantileChoice(Plain):
    """Quantiles of lines of so many ``cells``, for an l1 sensitivity; ``epsilon`` is for one row.

    ``whole``: every so many cells begins a value that is likelier than others before the data is seen (1: none is).
    ``descent``: one after the other, which is quicker, even where all at once have the smaller error.
    """

    cells: int
    probabilities: tuple[float, ...]
    epsilon: float
    whole: int = 1
    descent: bool = False

    kind: ClassVar[str] = "quantile-choice"
    norm: ClassVar[str] = "l1"
    data_dependent: ClassVar[bool] = True
    rounding: ClassVar[str] = (
        "The quantiles are drawn from their exact law: no choice depends on the rounding of floating-point numbers."
    )

    def __post_init__(self) -> None:
        settle(self, cells=validation.whole_number("cells", self.cells, 2), epsilon=validation.epsilon(self.epsilon))
        settle(self, whole=validation.whole_number("whole", self.whole))
        if not isinstance(self.descent, bool):
            raise InvalidInput("descent is neither True nor False: pass one of them.")
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
    def at_once(self) -> bool:
        """Whether all are chosen at once."""
        allowed = self.epsilon >= _LEAST_EPSILON_AT_ONCE and not self.descent
        return allowed and _better_at_once(self.probabilities)

    @property
    def deviation(self) -> float:
        """Of a chosen rank, where rows are dense: root mean square over the probabilities, in rows."""
        one = joint_deviation(self.probabilities) if self.at_once else level_shares(self.probabilities)[1]
        return one / self.epsilon

    def lines(self, counts: IntArray) -> JointLines | Lines:
        """How the quantiles of these lines are chosen."""
        build = JointLines if self.at_once else Lines
        return build(counts, self.probabilities, self.epsilon, self.whole)


def _better_at_once(probabilities: tuple[float, ...]) -> bool:
    few = len(probabilities) <= _MOST_AT_ONCE
    return few and joint_deviation(probabilities) < level_shares(probabilities)[1]


def choice_deviation(probabilities: tuple[float, ...]) -> float:
    """Of a chosen rank at epsilon 1, in rows: root mean square over the probabilities, which rise.

    >>> round(choice_deviation((0.5,)), 2), round(choice_deviation((0.25, 0.5, 0.75)), 2)
    (1.41, 2.58)
    """
    return joint_deviation(probabilities) if _better_at_once(probabilities) else level_shares(probabilities)[1]


def quantile_choice(
    *,
    epsilon: float,
    cells: int,
    probabilities: Sequence[float],
    groups: int = 1,
    whole: int = 1,
    rows: int = 1,
    neighbours: Relation = Neighbours.ADD_REMOVE,
    descent: bool | None = None,
) -> Mechanism:
    """Quantiles of each of the ``groups`` from the counts of its cells; pure epsilon-DP, for all groups together.

    One individual has at most ``rows`` rows, in any cells of any groups. What is released are places from 0 to
    ``cells``, one row for each group. A replaced row is one taken away and one added. ``descent``: one quantile after
    the other instead of all at once, which is quicker; left out, where there are many groups.

    >>> m = quantile_choice(epsilon=1, cells=8, probabilities=[0.25, 0.5, 0.75])
    >>> places = m.release([0, 0, 200, 0, 0, 400, 400, 0]).value
    >>> places.shape, bool((np.diff(places) >= 0).all()), m.check().holds
    ((1, 3), True, True)
    """
    epsilon, relation = validation.epsilon(epsilon), Neighbours.of(neighbours)
    sides = 1 if relation is Neighbours.ADD_REMOVE else 2
    sensitivity = float(sides * validation.whole_number("rows", rows))
    groups = validation.whole_number("groups", groups)
    quick = groups > _MOST_GROUPS_AT_ONCE if descent is None else descent
    law = QuantileChoice(cells, tuple(probabilities), epsilon / sensitivity * (1.0 - 2.0 * _ROUNDING), whole, quick)
    shape = (groups * law.cells,)
    claim = Claim(epsilon, 0.0, relation, JOINT_SOURCE if law.at_once else DESCENT_SOURCE)
    return Mechanism("quantile-choice", law, shape, sensitivity, relation, claim)


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
    most = _MOST_ROWS_AT_ONCE if law.at_once else _MOST_ROWS
    if counts.sum(axis=1).max() > most:
        raise InvalidInput(f"value has more than {most} rows in a line: quantiles are chosen among fewer.")
    check_out(out, (len(counts), len(law.probabilities)), np.dtype(np.float64))
    lines = law.lines(counts.astype(np.int64))

    def draw() -> Array:
        places = lines.draw(stream.claim().sequence())
        return delivered(places / float(lines.unit), out)

    return draw


@values_drawn.register(QuantileChoice)
def _(law: QuantileChoice, dimension: int) -> int:
    return dimension // law.cells * len(law.probabilities)


needs_data(QuantileChoice, "quantile-choice", "it depends on the data")
