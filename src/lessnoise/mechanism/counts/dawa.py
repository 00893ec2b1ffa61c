"""DAWA: counts in buckets that follow the data (Li, Hay, Miklau & Wang, PVLDB 2014), on a line or, by Hilbert, a map.

Stage 1 chooses buckets of nearly equal counts with epsilon1, stage 2 asks for their totals with epsilon2 and spreads
each evenly. Stage 2 is exact: Laplace noise on its queries, of an l1 sensitivity of 1. For stage 1, "safe" is ours and
proved (the exponential mechanism). The published noise on the costs does not give epsilon1: ``published_delta_lower``
has two neighbours and an output in closed form. It is kept, by name, for comparison.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Claim, Neighbours
from lessnoise.mechanism.counts import partition
from lessnoise.mechanism.counts.data_dependent import needs_data
from lessnoise.mechanism.counts.inference import Answers, fitted_totals, greedy_weights, sums_error
from lessnoise.mechanism.counts.laplace import laplace_delta, published_delta_lower
from lessnoise.mechanism.curve.dispatch import law_delta, law_pure_epsilon, law_pure_epsilon_lower
from lessnoise.mechanism.law import Plain, register
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.numerics import sufficient_scale
from lessnoise.mechanism.sampling import delivered, prepare_noise, values_drawn
from lessnoise.noise import check_out
from lessnoise.strategy import exact_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise._common import Array, Shape
    from lessnoise.mechanism.request import Relation
    from lessnoise.noise import Form, Sequence, Stream

    Stage1 = Literal["safe", "doubled", "dpcomp"]
    Workload = Literal["cells", "ranges"]

STAGE1 = ("safe", "doubled", "dpcomp")
WORKLOADS = ("cells", "ranges")
SOURCE = "Li, Hay, Miklau & Wang 2014"
_STAGE1_SOURCES = {"safe": ", stage 1 by lessnoise", "doubled": ", with twice the noise in stage 1", "dpcomp": ""}
_FACTORS = {"doubled": 2.0, "dpcomp": 1.0}
_LARGEST_MATRIX = 4096  # cells of a workload of ranges
_ROUNDING = 1e-12  # relative: the weights of a path sum to 1 only up to rounding
_LARGEST_EXPONENT = 2.0**53  # of a partition's weight; beyond, its digits would have no end


@register
@dataclass(frozen=True, slots=True)
class Dawa(Plain):
    """Both stages of DAWA, for an l1 sensitivity: ``epsilon1`` and ``epsilon2`` are what each spends per unit of it.

    ``noise`` is that of stage 1: "safe" (ours), "dpcomp" (the published scale) or "doubled" (twice that).
    ``workload`` is what stage 2 fits its queries to: single cells, or all ranges of a line.
    """

    shape: tuple[int, ...]
    epsilon1: float
    epsilon2: float
    noise: Stage1
    workload: Workload

    kind: ClassVar[str] = "dawa"
    norm: ClassVar[str] = "l1"
    data_dependent: ClassVar[bool] = True
    rounding: ClassVar[str] = (
        "The buckets are drawn from their exact law, or follow from noisy costs; noisy costs and noisy totals are "
        "real-valued ones rounded to a grid, exactly, so floating point is covered; the output is computed from them "
        "alone."
    )

    def __post_init__(self) -> None:
        sizes = validation.shape(self.shape)
        if len(sizes) not in (1, 2) or max(sizes) < 2:
            raise InvalidInput(f"shape={sizes} is neither a line nor a map of at least 2 cells: pass n or (n, m).")
        spent = {name: validation.epsilon(getattr(self, name), name) for name in ("epsilon1", "epsilon2")}
        settle(self, shape=sizes, **spent)
        validation.choice("noise", self.noise, STAGE1)
        validation.choice("workload", self.workload, WORKLOADS)
        if self.workload == "ranges" and (len(sizes) == 2 or sizes[0] > _LARGEST_MATRIX):
            raise InvalidInput(
                f'workload="ranges" with shape={sizes}: ranges are for a line of at most {_LARGEST_MATRIX} cells; pass '
                'workload="cells".'
            )

    @property
    def cells(self) -> int:
        """Cells of the line that is partitioned: the counts, padded with zeros to a power of 2 a side where needed."""
        if len(self.shape) == 1 and self.noise != "safe":
            return self.shape[0]
        side = 1 << (max(self.shape) - 1).bit_length()
        return side if len(self.shape) == 1 else side * side

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """The order of the cells is made for one grid."""
        if shape != self.shape:
            raise InvalidInput(f"shape={shape} differs from DAWA's shape={self.shape}: build it for this shape.")


def dawa(
    *,
    epsilon: float,
    shape: Shape,
    ratio: float | None = None,
    noise: Stage1 = "safe",
    workload: Workload = "cells",
    l1_sensitivity: float | None = None,
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """DAWA: counts of neighbouring cells with similar counts are merged. With the default noise delta is 0.

    ``ratio`` is the share of epsilon that stage 1 spends: by default 1/2 on a line and 1/4 on a map, as the authors'
    code has it. ``l1_sensitivity`` is the largest change of the counts, by default that of one record: 1 if added or
    removed, 2 if replaced. How large the error is depends on the data, so no expected loss is stated.

    >>> m = dawa(epsilon=0.5, shape=(89, 89))
    >>> print(m.check())
    claim (0.5, 0)-DP under add/remove holds: exact delta(0.5) is in [0, 0] against 0 claimed
    >>> print(dawa(epsilon=1.5, shape=4, ratio=2 / 3, noise="dpcomp").check())
    claim (1.5, 0)-DP under add/remove FAILS: exact delta(1.5) is in [0.0704892, 0.621005] against 0 claimed
    """
    epsilon, sizes, relation = validation.epsilon(epsilon), validation.shape(shape), Neighbours.of(neighbours)
    share = (0.5 if len(sizes) == 1 else 0.25) if ratio is None else validation.probability("ratio", ratio, "0.25, say")
    default = 1.0 if relation is Neighbours.ADD_REMOVE else 2.0
    sensitivity = default if l1_sensitivity is None else validation.sensitivity(l1_sensitivity, "l1_sensitivity")
    unit = epsilon / sensitivity * (1.0 - 2.0 * _ROUNDING)
    law = Dawa(sizes, share * unit, (1.0 - share) * unit, noise, workload)
    claim = Claim(epsilon, 0.0, relation, SOURCE + _STAGE1_SOURCES[noise])
    name = "dawa" if noise == "safe" else f"dawa-{noise}"
    return Mechanism(name, law, sizes, sensitivity, relation, claim)


# Privacy.


def stage1_epsilon(law: Dawa) -> float:
    """What stage 1 is proved to spend per unit of l1 sensitivity.

    The exponential mechanism spends epsilon1. Noise on costs is proved to spend no more than if all noisy costs were
    published: one record is in up to l buckets of each length l, and changes each of their costs by 2 - 2/l.
    """
    if law.noise == "safe":
        return law.epsilon1
    total, n = 0.0, law.cells
    for level in range(1, n.bit_length()):
        length = 2**level
        number = min(length, n - length + 1)
        scale = _FACTORS[law.noise] * partition.published_scale(length, n, law.epsilon1)
        total += number * partition.deviation_sensitivity(length) / scale
    return total


@law_pure_epsilon.register(Dawa)
def _(law: Dawa, dimension: int, sensitivity: float) -> float:
    return (stage1_epsilon(law) + law.epsilon2) * sensitivity * (1.0 + _ROUNDING)


@law_pure_epsilon_lower.register(Dawa)
def _(law: Dawa, dimension: int, sensitivity: float) -> float:
    """What stage 2 alone spends: where all cells are single anyway, nothing less will do."""
    return law.epsilon2 * sensitivity * (1.0 - _ROUNDING)


@law_delta.register(Dawa)
def _(law: Dawa, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    """Stage 1 is no worse than randomised response, whose loss is +-epsilon1; stage 2 is Laplace noise."""
    first = stage1_epsilon(law) * sensitivity * (1.0 + _ROUNDING)
    second = law.epsilon2 * sensitivity * (1.0 + _ROUNDING)
    truthful = 1.0 / (1.0 + math.exp(-min(first, 700.0)))
    worse, better = laplace_delta(epsilon - first, second), laplace_delta(epsilon + first, second)
    upper = truthful * worse + (1.0 - truthful) * better
    lower = 0.0
    if law.noise != "safe" and sensitivity >= 1.0 and law.workload == "cells" and min(law.shape) >= 4:
        lower = published_delta_lower(law.epsilon1, law.epsilon2, law.cells, _FACTORS[law.noise], epsilon)
    return Bracket(min(lower, upper), min(upper * (1.0 + 1e-12), 1.0))


# The release.


@prepare_noise.register(Dawa)
def _(
    law: Dawa, value: Array, stream: Stream, *, out: Array | None = None, threads: int | None = None
) -> Callable[[], Array]:
    check_out(out, value.shape, np.dtype(np.float64))
    line = _to_line(law, _checked(law, validation.array(value, value.shape)))

    return lambda: delivered(_release(law, line, stream.claim().sequence()), out)


def _checked(law: Dawa, value: Array) -> Array:
    """Refuse, before anything is drawn, counts beyond the grid of a noisy cost or total."""
    with np.errstate(over="ignore"):  # an infinite total is refused below
        total = float(np.abs(value).sum())
    forms, exponent = [_total_noise(law)], 0.0
    if law.noise == "safe":
        exponent = law.epsilon1 * (total + law.cells / law.epsilon2)
    else:
        lengths = (2**level for level in range(1, law.cells.bit_length()))
        forms += [partition.cost_noise(length, law.cells, law.epsilon1, _FACTORS[law.noise]) for length in lengths]
    grids = [noise_engine.Grid.of(form.deviation(1)) for form in forms]
    limit = min(grid.largest_value * grid.step for grid in grids)
    if not (2.0 * total <= limit and exponent <= _LARGEST_EXPONENT):
        raise InvalidInput(
            f"value has a total of {total:g}, too large for epsilon1={law.epsilon1:g} and epsilon2={law.epsilon2:g}: "
            "use smaller ones, or another mechanism."
        )
    return value


def _total_noise(law: Dawa) -> Form:
    """Of a query of stage 2."""
    scale = sufficient_scale(1.0 / law.epsilon2, law.epsilon2, Fraction(1))
    return noise_engine.Independent(noise_engine.laplace(), noise_engine.Real.exactly(scale))


def _release(law: Dawa, line: Array, words: Sequence) -> Array:
    starts = buckets(law, line, words)
    lengths = np.diff(starts, append=len(line))
    totals = np.add.reduceat(line, starts)
    if law.workload == "cells":  # no query asks for two buckets, so none profits from a total over several
        weights = [np.ones(len(starts))]
    else:
        weights = greedy_weights(ranges_workload(law, starts, lengths))
    queries, bounds = Answers(totals, weights), np.append(starts, len(line))

    def number(index: int) -> Fraction:
        first, last = queries.ends[index]
        return Fraction(float(queries.weights[index])) * exact_sum(line[bounds[first] : bounds[last]])

    # An entry is rounded once in each sum that it is in, and once when weighted.
    error = sums_error(line, len(line) + len(weights) + 1, parts=1 if law.workload == "cells" else 2**53)
    behind = noise_engine.Behind(error, number) if error else None
    measured = noise_engine.add_noise(_total_noise(law), queries.values, words.stream(), behind=behind)
    fitted = fitted_totals(measured, weights, len(starts))
    return _from_line(law, np.repeat(fitted / lengths, lengths))


@values_drawn.register(Dawa)
def _(law: Dawa, dimension: int) -> int:
    return law.cells * (law.cells.bit_length() + 2)


def buckets(law: Dawa, line: Array, words: Sequence) -> NDArray[np.intp]:
    """Stage 1: where the buckets start."""
    cost = 1.0 / law.epsilon2
    if law.noise == "safe":
        return partition.sample_partition(line, law.epsilon1, cost, words)
    return partition.cheapest_partition(line, law.epsilon1, cost, _FACTORS[law.noise], words)


def ranges_workload(law: Dawa, starts: NDArray[np.intp], lengths: NDArray[np.intp]) -> Array:
    """Q^T Q of all ranges over the buckets, padded to a power of 2: a bucket's weight in a query is its cells' mean."""
    size, n = 1 << (len(starts) - 1).bit_length(), law.shape[0]
    # Ranges that hold both cells i <= j: (i + 1)(n - j); cells beyond the data are in none.
    place = np.arange(law.cells)
    both = np.maximum((np.minimum.outer(place, place) + 1.0) * (n - np.maximum.outer(place, place)), 0.0)
    summed = np.add.reduceat(np.add.reduceat(both, starts, axis=0), starts, axis=1)
    matrix = np.zeros((size, size))
    matrix[: len(starts), : len(starts)] = summed / np.outer(lengths, lengths)
    return matrix


@functools.lru_cache(maxsize=4)
def hilbert_order(side: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the cells of a side x side square along the Hilbert curve; the side is a power of 2.

    Neighbours in this order are neighbours on the map.

    >>> [axis.tolist() for axis in hilbert_order(2)]
    [[0, 0, 1, 1], [0, 1, 1, 0]]
    """
    x, y = np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp)
    half = 1
    while half < side:
        # Four copies of the smaller curve: the first and last turned, so that the ends meet.
        x, y = (
            np.concatenate([y, x, half + x, 2 * half - 1 - y]),
            np.concatenate([x, half + y, half + y, half - 1 - x]),
        )
        half *= 2
    x.setflags(write=False)
    y.setflags(write=False)
    return x, y


def _to_line(law: Dawa, value: Array) -> Array:
    if len(law.shape) == 1:
        return np.concatenate([value, np.zeros(law.cells - len(value))])
    side = math.isqrt(law.cells)
    square = np.zeros((side, side))
    square[: law.shape[0], : law.shape[1]] = value
    return np.asarray(square[hilbert_order(side)])


def _from_line(law: Dawa, line: Array) -> Array:
    if len(law.shape) == 1:
        return line[: law.shape[0]].copy()
    side = math.isqrt(law.cells)
    square = np.empty((side, side))
    square[hilbert_order(side)] = line
    return np.ascontiguousarray(square[: law.shape[0], : law.shape[1]])


needs_data(Dawa, "dawa", "its error depends on the data")
