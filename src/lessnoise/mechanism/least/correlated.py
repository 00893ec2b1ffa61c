"""The least noise of an l2 ball, correlated for a corner of changes."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from lessnoise.changes import Changes, read_changes
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.families.correlated_gaussian import CorrelatedGaussian, worst_mu
from lessnoise.mechanism.families.correlated_radial import CorrelatedRadial
from lessnoise.mechanism.least.objective import Goal
from lessnoise.mechanism.least.search import find
from lessnoise.mechanism.request import Request

if TYPE_CHECKING:
    from lessnoise._common import Shape
    from lessnoise.mechanism.mechanism import Mechanism


def correlated_radial(
    *,
    epsilon: float,
    delta: float,
    shape: Shape,
    changes: Changes,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Noise for bounded sums that one individual raises all or lowers all: correlated, and less than Gaussian noise.

    ``changes`` is a corner with one bound for all entries. The noise is the least of the l2 ball, plus a multiple of
    the sum of its entries.

    >>> import lessnoise as ln
    >>> m = correlated_radial(epsilon=1, delta=1e-6, shape=30, changes=ln.changes.corner(1.0))
    >>> gaussian = ln.correlated_gaussian(epsilon=1, delta=1e-6, shape=30)
    >>> f"{m.expected_loss / gaussian.expected_loss:.2f} of the correlated Gaussian's loss", m.check().holds
    ("0.78 of the correlated Gaussian's loss", True)
    """
    found = read_changes(changes)
    target = Request(epsilon, delta, None, shape, neighbours, changes=found)  # type: ignore[arg-type]  # it converts
    size = found.norm(math.inf, target.dimension)
    if not found.one_sided or found.single(target.dimension) < size * (1.0 - 1e-12):
        raise InvalidInput(f"changes={found} is not a corner with one bound: use changes.corner(bound).")
    common = best_common(target.dimension)
    # The same function of the law finds mu again; its rounding is allowed for there, and once more here.
    mu = worst_mu(CorrelatedGaussian(common * (2.0 + common * target.dimension), 1.0), target.dimension, size)
    answer = find(
        target.dimension, target.epsilon, target.reserved_delta, mu * (1.0 + 1e-14), Goal.of(target.objective)
    )
    return target.mechanism(CorrelatedRadial.kind, CorrelatedRadial(answer.law, common), OURS)


@functools.lru_cache(maxsize=256)
def best_common(dimension: int) -> float:
    """The multiple of the sum with the least loss (1 + r) mu^2; r = 1/sqrt(M) but for what whole numbers change.

    >>> f"{best_common(100):.5f}"  # (sqrt(1 + 10) - 1)/100
    '0.02317'
    """
    if dimension == 1:
        return 0.0

    def loss(ratio: float) -> float:
        return (1.0 + ratio) * worst_mu(CorrelatedGaussian(ratio, 1.0), dimension, 1.0) ** 2

    usual = 1.0 / math.sqrt(dimension)
    ratio = min((usual * math.exp2(step / 500.0) for step in range(-500, 501)), key=loss)
    # (1 + c M)^2 = 1 + M r.
    return ratio / (math.sqrt(1.0 + dimension * ratio) + 1.0)
