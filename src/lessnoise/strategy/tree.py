"""Trees: the sums over blocks of cells, blocks of blocks and so on, with one weight for each level."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import Deviations
from lessnoise.harmless import shown
from lessnoise.strategy.nested import Nested
from lessnoise.strategy.p_identity import PIdentity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array
    from lessnoise.strategy.squares import Line

_BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)


def tree(size: int, branching: int, weights: Sequence[float] | None = None) -> PIdentity | Nested:
    """A tree over so many cells whose nodes have at most ``branching`` children, without its root.

    ``weights``: one for each level, the top first; 1 if not given, as H_b has them (all entries are whole then).

    >>> binary = tree(4, 2)
    >>> binary.measure(np.array([1.0, 2.0, 3.0, 4.0])).tolist(), binary.whole
    ([3.0, 7.0, 1.0, 2.0, 3.0, 4.0], True)
    """
    height = levels(validation.whole_number("size", size), validation.whole_number("branching", branching, 2))
    given = (1.0,) * height if weights is None else validation.numbers("weights", weights)
    if len(given) != height:
        raise InvalidInput(f"weights={shown(weights)} are not {height} numbers: pass one for each level of the tree.")
    found: PIdentity | Nested | None = None
    for weight in given[::-1]:
        width = 1 if found is None else found.size
        blocks = min(branching, -(-size // width))
        level = PIdentity(Deviations.constant(weight, blocks))
        found = level if found is None else Nested(level, found, min(size, blocks * width))
    assert found is not None
    return found


def levels(size: int, branching: int) -> int:
    """How many levels a tree has below its root.

    >>> levels(8, 2), levels(9, 2), levels(1, 2)
    (3, 4, 1)
    """
    found, cells = 1, branching
    while cells < size:
        found, cells = found + 1, cells * branching
    return found


def optimise_tree(line: Line, size: int) -> PIdentity | Nested:
    """The tree of least error with columns of l1 norm 1, over branchings and weights of levels, for squares of lines.

    >>> from lessnoise.strategy.squares import line_of
    >>> from lessnoise.workload import Factor, prefixes
    >>> found = optimise_tree(line_of(Factor("prefixes", 64)), 64)
    >>> found.norm(1), 2 * found.trace(prefixes(64)) / 64 < 34.5
    (1.0, True)
    """
    branchings = [b for b in _BRANCHINGS if b <= max(size, 2)]
    equal = {b: levels(size, b) ** 2 * tree(size, b).line_trace(line) for b in branchings}
    best = sorted(branchings, key=lambda b: equal[b])[:2]
    return min((_weighted(line, size, b) for b in best), key=lambda found: found.line_trace(line))


def _weighted(line: Line, size: int, branching: int) -> PIdentity | Nested:
    """With the weights of levels that are best for it."""
    from scipy.optimize import minimize

    height = levels(size, branching)

    def shares(logits: Array) -> list[float]:
        raised = np.exp(np.append(logits, 0.0))
        exact = np.floor(raised / raised.sum() * 2.0**40) / 2.0**40  # sums of them are exact
        return [*np.maximum(exact, 2.0**-20).tolist()]

    def loss(logits: Array) -> float:
        chosen = shares(logits)
        return math.log(sum(chosen) ** 2 * tree(size, branching, chosen).line_trace(line))

    start = np.zeros(height - 1)
    chosen = shares(start)
    if height > 1:
        corners = np.vstack([start, 0.5 * np.eye(height - 1)])
        options = {"maxfev": 25 * height, "xatol": 1e-2, "fatol": 1e-4, "initial_simplex": corners}
        chosen = shares(minimize(loss, start, method="Nelder-Mead", options=options).x)
    chosen[-1] += 1.0 - sum(chosen)
    return tree(size, branching, chosen)
