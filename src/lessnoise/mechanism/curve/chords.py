"""Adaptive sums with proved lower and upper cell integrals."""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lessnoise.errors import LessnoiseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from lessnoise._common import Array

    Nodes = TypeVar("Nodes", bound=tuple[Array, ...])

MAX_CELLS = 500_000
_MANY_CELLS = 10_000  # from here on, splitting that does not narrow the bracket ends
_PATIENCE = 4  # rounds without a tenth less
_SUMMING = 1e-14

# Widening of every integrated bracket on both sides, far beyond the errors that are accounted for: a defect of this
# size in some build of a special function cannot turn a guarantee false. It costs at most as much noise.
MARGIN = 1e-5
BENT = 20.0  # a chord may be off by at most e^20: one that has underflown to 0 hides no more than that times 5e-324


_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)  # cells that may still be computed


class TooMuchWork(LessnoiseError):
    """A search asked for more cells than it was allowed."""


@contextmanager
def at_most(cells: int) -> Iterator[None]:
    """Within this block sums may compute so many cells in all: a bound of time that is the same on every machine.

    A block inside another has no more than the other has left, and what it takes is gone for both.
    """
    outer = _left.get()
    allowed = cells if outer is None else max(min(cells, outer[0]), 0)
    inner = [allowed]
    token = _left.set(inner)
    try:
        yield
    finally:
        _left.reset(token)
        if outer is not None:
            outer[0] -= allowed - inner[0]


def count_work(cells: int) -> None:
    """Take so many cells from what :func:`at_most` allows."""
    left = _left.get()
    if left is not None:
        left[0] -= cells
        if left[0] < 0:
            raise TooMuchWork("the curve takes too long to compute at so extreme a target")


def log_chord(width: Array, start: Array, end: Array, log_ratio: Array) -> Array:
    """Integral over a cell of the function that is linear in the logarithm between its ends."""
    nearly_flat = np.abs(log_ratio) < 1e-4
    curved = (end - start) / np.where(nearly_flat, 1.0, log_ratio)
    # (e^r - 1)/r = (1 + e^r)/2 (1 - r^2/12 + O(r^4)): relative error below 1e-17 for r < 1e-4.
    flat = 0.5 * (start + end) * (1.0 - log_ratio * log_ratio / 12.0)
    return width * np.where(nearly_flat, flat, curved)


def worst_cells(gaps: Array, allowance: float) -> NDArray[np.bool_]:
    """The fewest cells whose removal leaves a total gap within the allowance; at least one."""
    order = np.argsort(gaps)
    kept = int(np.searchsorted(np.cumsum(gaps[order]), allowance))
    worst = np.zeros(len(gaps), dtype=bool)
    worst[order[min(kept, len(gaps) - 1) :]] = True
    return worst


def adaptive_sum(
    grid: Array,
    evaluate: Callable[[Array], Nodes],
    cells: Callable[[Nodes, Nodes], tuple[Array, Array]],
    tolerance: float,
    floor: float = 0.0,
) -> tuple[float, float]:
    """Split the cells of ``grid`` until their total bracket is narrow; returns (lower, upper).

    ``evaluate`` gives the nodes at some points: a named tuple of arrays, the points first.
    ``cells`` gives the lower and upper integral between left and right nodes. The work ends once
    the bracket is within ``tolerance`` (relative) or ``floor`` (absolute), or where more cells do not narrow it, since
    what is left is rounding.
    """
    count_work(len(grid))
    nodes = evaluate(grid)
    left, right = _select(nodes, slice(None, -1)), _select(nodes, slice(1, None))
    lower, upper = cells(left, right)
    before, stalled = math.inf, 0
    while True:
        below, above = math.fsum(lower.tolist()), math.fsum(upper.tolist())
        stalled = stalled + 1 if above - below > 0.9 * before else 0
        before = above - below
        in_vain = len(lower) > _MANY_CELLS and stalled >= _PATIENCE
        if above - below <= max(tolerance * above, floor) or in_vain or len(lower) > MAX_CELLS:
            return below * (1.0 - _SUMMING), above * (1.0 + _SUMMING)
        split = worst_cells(upper - lower, 0.3 * tolerance * above)
        keep = ~split
        start, end = _select(left, split), _select(right, split)
        count_work(len(start[0]))
        middle = evaluate(0.5 * (start[0] + end[0]))
        new_left, new_right = _join(start, middle), _join(middle, end)
        new_lower, new_upper = cells(new_left, new_right)
        left, right = _join(_select(left, keep), new_left), _join(_select(right, keep), new_right)
        lower, upper = np.concatenate([lower[keep], new_lower]), np.concatenate([upper[keep], new_upper])


def _select(nodes: Nodes, which: NDArray[np.bool_] | slice) -> Nodes:
    return type(nodes)(*(field[which] for field in nodes))


def _join(first: Nodes, second: Nodes) -> Nodes:
    return type(first)(*(np.concatenate(pair) for pair in zip(first, second, strict=True)))
