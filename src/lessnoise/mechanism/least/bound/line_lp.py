r"""One dimension with many shift lengths, by linear programming: for the middle range of epsilon.

For a shift v > 0 of length d <= 1 test phi_d(n) = c_d(n)/lambda_d for n > 0 and 0 otherwise. Averaged over the two
signs of v,

    G(r) = f(r) + sum_d [c_d(r) - e^eps c_d(r - d) 1{r > d}]/2,      lambda_d = max c_d.

On the lattice of edges {i w} and {gamma + i w}, with shifts that are multiples of w, take each c_d linear on every
cell: then G - f is linear on every cell, and G is least at the cells' ends up to the sag of f. The coefficients come
from a linear program; the bound is evaluated from them.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.least.bound.proof import LowerBound

if TYPE_CHECKING:
    from lessnoise.mechanism.least.objective import Objective

_GAP = 1.35  # growth of the gaps between the shorter shifts
_STEPS = 2  # steps of the staircase on which they act


def _sparse(count: int) -> list[int]:
    """1, 2, 3, ... then growing gaps, up to count - 1; sums of a few reach everything."""
    out: list[int] = []
    j = 1.0
    while j < count:
        if not out or int(j) > out[-1]:
            out.append(int(j))
        j = max(j + 1.0, j * _GAP)
    return out


def lower_bound(
    epsilon: float,
    delta: float,
    objective: Objective,
    expected: float,
    gamma: float,
    reach: float,
    *,
    per_unit: int = 32,
    limit: float = 20.0,
) -> LowerBound:
    """Proved lower bound; ``gamma`` and ``reach``, first and last radius of a good staircase, place the grid."""
    import scipy.sparse as sparse
    from scipy.optimize import linprog

    begun = time.thread_time()
    nothing = LowerBound(0.0, "shorter shifts", math.nan)
    per_unit = min(per_unit, int(3000 / (reach + 1.0)))
    if per_unit < 8 or objective.kinks():
        return nothing
    w = 1.0 / per_unit
    alpha = gamma - w * math.floor(gamma / w)
    if min(alpha, w - alpha) < 1e-6 * w:
        alpha = 0.5 * w
    count = int((reach + 1.0) / w) + 1
    edges = np.sort(np.concatenate([w * np.arange(count + 1), alpha + w * np.arange(count)]))
    cells = len(edges) - 1  # cell i + 2 is cell i moved by w
    core = min(int(np.searchsorted(edges, gamma + _STEPS - 1.0 + 1e-9)), cells)
    shorter = _sparse(per_unit)
    shifts = [per_unit, *(per_unit - j for j in shorter)]
    used = [cells] + [core] * len(shorter)
    offsets = np.concatenate([[0], np.cumsum(2 * np.array(used))])
    grow = math.exp(epsilon)

    # Row (i, e): G at end e of cell i. Variable (j, i, e): c_j at end e of cell i; none may leave the grid.
    rows, cols, values, blocked = [], [], [], np.zeros(int(offsets[-1]), dtype=bool)
    for j, (shift, number) in enumerate(zip(shifts, used, strict=True)):
        i = np.arange(number)
        moved = i + 2 * shift
        inside = moved < cells
        blocked[offsets[j] : offsets[j + 1]] = np.repeat(~inside, 2)
        for end in (0, 1):
            column = offsets[j] + 2 * i + end
            rows += [2 * i + end, 2 * moved[inside] + end]
            cols += [column, column[inside]]
            values += [np.full(number, 0.5), np.full(int(inside.sum()), -0.5 * grow)]
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols)))
    matrix = sparse.csr_matrix(entries, shape=(2 * cells, len(blocked)))
    sag = objective.sag(edges[:-1], edges[1:]) / expected
    floor = objective.value(np.column_stack([edges[:-1], edges[1:]]).ravel()) / expected - np.repeat(sag, 2)
    keep, tests = ~blocked, len(shifts)
    number = int(keep.sum())
    which = np.repeat(np.arange(tests), np.diff(offsets))[keep]
    top = sparse.hstack([-matrix[:, keep], sparse.csr_matrix((2 * cells, tests)), np.ones((2 * cells, 1))])
    caps = sparse.csr_matrix((-np.ones(number), (np.arange(number), which)), shape=(number, tests))
    bottom = sparse.hstack([delta * sparse.identity(number), caps, sparse.csr_matrix((number, 1))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = linprog(
            np.concatenate([np.zeros(number), np.ones(tests), [-1.0]]),
            A_ub=sparse.vstack([top, bottom]).tocsr(),
            b_ub=np.concatenate([floor, np.zeros(number)]),
            bounds=[(0.0, None)] * (number + tests) + [(None, None)],
            method="highs-ipm",
            options={"run_crossover": "off", "time_limit": 5.0 * max(limit, 1.0)},
        )
    if found.x is None or not np.all(np.isfinite(found.x)):
        return nothing
    coefficients = np.zeros(len(blocked))
    coefficients[keep] = np.maximum(found.x[:number], 0.0)
    largest = [float(coefficients[offsets[j] : offsets[j + 1]].max()) for j in range(tests)]
    # Every row is a sum of at most 2 tests + 1 products, each rounded once or twice. Beyond the grid G = f.
    size = abs(matrix) @ coefficients + np.abs(floor)
    g = floor + matrix @ coefficients - 4e-16 * (2 * tests + 4) * size
    low = min(float(g.min()), float(objective.value(edges[-1:])[0]) / expected * (1.0 - 1e-14))
    low -= math.fsum(largest) * delta * (1.0 + 1e-14)
    return LowerBound(
        max(low, 0.0) * expected,
        "shorter shifts",
        -float(found.fun) * expected,
        tuple(expected * value for value in largest),
        tuple(shift * w for shift in shifts),
        time.thread_time() - begun,
    )
