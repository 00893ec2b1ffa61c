"""The best test on a grid: a linear program (HiGHS), with the radii at which G is watched added as it dips.

Nothing here needs to be right: whatever the program returns is made a valid test by cutting off negative entries,
and ``proof`` computes the bound from that test alone.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.least.bound.averages import Averages, NodeGrid
from lessnoise.mechanism.least.bound.proof import Proof, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix as Matrix  # noqa: N812

    from lessnoise._common import Array
    from lessnoise.mechanism.least.bound.guide import Guide

    Indices = NDArray[np.int64]

TOLERANCE = 1e-3  # of the proof
_MARGIN = 2e-4


class Dual:
    """The test problem on one grid, in units in which the objective is about 1."""

    def __init__(self, guide: Guide, grid: NodeGrid) -> None:
        self.guide, self.grid, self.problem = guide, grid, guide.problem
        self.scale, self.target = guide.expected, guide.problem.target
        self.grow = math.exp(self.problem.epsilon)
        self.averages = Averages(self.problem.dimension, grid.nodes, grid.levels)
        self.counts = [min(test.used, len(grid.nodes)) for test in grid.tests]
        size = len(grid.levels)
        self.offsets = np.concatenate([[0], np.cumsum([count * size for count in self.counts])])
        self.keep = grid.mask.copy()
        for j, used in enumerate(self.counts):
            if used == len(grid.nodes):  # a test ends in zero
                self.keep[self.offsets[j + 1] - size : self.offsets[j + 1]] = False
        density = guide.density(grid.nodes[1:])
        held = grid.nodes[1:][density > 1e-9 * density.max()]
        self._range = float(held[-1] - held[0]) or 1.0

    def f(self, r: Array) -> Array:
        """The objective in the units used here."""
        return self.problem.objective.value(r) / self.scale

    def margin(self, r: Array) -> Array:
        """Slack asked of G where a good mechanism has little mass: nearly free there, and G dips less between."""
        f = self.f(r)
        cap = np.minimum(0.02 + 0.1 * np.maximum(f - 1.0, 0.0), 0.1 * np.abs(f - 1.0))
        return np.minimum(_MARGIN / np.maximum(self.guide.density(r) * self._range, 1e-300), cap)

    def rows(self, r: Array) -> Matrix:
        """Phi1 - e^eps Phi2 of each basis function, scaled so that its Phi1 peaks at 1."""
        import scipy.sparse as sparse

        size = len(self.grid.levels)
        cell, share, inside = self.averages.hats(r)
        blocks = []
        for test, count in zip(self.grid.tests, self.counts, strict=True):
            entries: list[tuple[Indices, Indices, Array]] = []  # rows, nodes, values per level
            for node, weight in ((cell, 1.0 - share), (cell + 1, share)):
                own = np.nonzero(inside & (node < count) & (weight != 0.0))[0]
                entries.append((own, node[own], np.repeat(weight[own][:, None], size, axis=1)))
            active = np.nonzero(r > test.shift)[0]
            for begin in range(0, len(active), 1000):
                part = active[begin : begin + 1000]
                cells = self.averages.cells(r[part], test.shift)
                for node, mass in ((cells.left, cells.mass - cells.up), (cells.right, cells.up)):
                    i, j = np.nonzero((cells.right > cells.left) & (node < count))
                    entries.append((part[i], node[i, j], -self.grow * mass[i, j] / self.averages.fraction))
            row, node, value = (np.concatenate(column) for column in zip(*entries, strict=True))
            column = node[:, None] * size + np.arange(size)
            place = (np.repeat(row, size), column.ravel())
            blocks.append(sparse.csr_matrix((value.ravel(), place), shape=(len(r), count * size)))
        return sparse.hstack(blocks).tocsr()

    def program(self, r: Array, matrix: Matrix, limit: float) -> tuple[Array, float] | None:
        """Coefficients (times the caps' fractions) with G >= nu at the given radii, and the program's value."""
        import scipy.sparse as sparse
        from scipy.optimize import linprog

        tests, size = len(self.grid.tests), len(self.grid.levels)
        node_test = np.concatenate([np.full(count, j) for j, count in enumerate(self.counts)])
        node_count, count = len(node_test), len(r)
        matrix = matrix.tocsc()[:, self.keep].tocsr()
        matrix.data[np.abs(matrix.data) < 1e-12] = 0.0
        matrix.eliminate_zeros()
        variables = matrix.shape[1]
        if not (variables and np.all(np.isfinite(matrix.data))):
            return None
        nodal = np.repeat(np.arange(node_count), size)[self.keep]
        per_level = np.tile(self.target / self.averages.fraction, node_count)[self.keep]
        sums = sparse.csr_matrix((per_level, (nodal, np.arange(variables))), shape=(node_count, variables))
        cap = sparse.csr_matrix((-np.ones(node_count), (np.arange(node_count), node_test)), shape=(node_count, tests))
        top = sparse.hstack([-matrix, sparse.csr_matrix((count, tests)), np.ones((count, 1))])
        bottom = sparse.hstack([sums, cap, sparse.csr_matrix((node_count, 1))])
        cost = np.concatenate([np.zeros(variables), np.ones(tests), [-1.0]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begun = time.thread_time()
            for tolerance, presolve in ((1e-6, True), (1e-6, False), (1e-4, True)):
                left = limit - (time.thread_time() - begun)
                if left <= 0.0:
                    return None
                found = linprog(
                    cost,
                    A_ub=sparse.vstack([top, bottom]).tocsr(),
                    b_ub=np.concatenate([self.f(r) - self.margin(r), np.zeros(node_count)]),
                    bounds=[(0.0, None)] * (variables + tests) + [(None, None)],
                    method="highs-ipm",
                    options={
                        "run_crossover": "off",
                        "time_limit": 5.0 * left,  # by the clock, which runs on while other programs have the processor
                        "ipm_optimality_tolerance": tolerance,
                        "presolve": presolve,
                    },
                )
                if found.x is not None and np.all(np.isfinite(found.x)):
                    break
            else:
                return None
        coefficients = np.zeros(len(self.keep))
        coefficients[self.keep] = np.maximum(found.x[:variables], 0.0)
        return coefficients, -float(found.fun)

    def tables(self, coefficients: Array) -> list[Table]:
        """The tests as nodal values."""
        size, out = len(self.grid.levels), []
        for j, test in enumerate(self.grid.tests):
            values = np.zeros((len(self.grid.nodes), size))
            block = coefficients[self.offsets[j] : self.offsets[j + 1]].reshape(self.counts[j], size)
            values[: self.counts[j]] = block / self.averages.fraction
            if values.any():
                out.append(Table(test.shift, values))
        return out

    def spent(self, coefficients: Array) -> float:
        """Delta times the sum of the multipliers."""
        return self.target * sum(float(table.values.sum(axis=1).max()) for table in self.tables(coefficients))

    def prove(self, coefficients: Array, tolerance: float, seconds: float) -> tuple[float, Proof, Array]:
        """The proved bound (in units of the scale), its proof, and the radii where G is lowest."""
        proof = Proof(self.problem, self.scale, self.grid.nodes, self.grid.levels, self.tables(coefficients))
        minimum = proof.minimum(tolerance, seconds=seconds)
        return proof.bound(minimum), proof, minimum.dips

    def watched(self, per_cell: int, check: int) -> tuple[Array, Indices]:
        """Radii at which G is looked at, and which of them the first program holds."""
        nodes, width = self.grid.nodes, np.diff(self.grid.nodes)

        def spread(count: int) -> Array:
            return np.asarray((nodes[:-1, None] + width[:, None] * (np.arange(count) + 0.5) / count).ravel())

        rims = []
        for test in self.grid.tests:
            a = nodes[: min(test.used, 40)]
            a = a[a <= 1.2]
            b = np.sqrt(a[:, None] ** 2 + test.shift**2 + 2.0 * a[:, None] * test.shift * self.grid.levels[None, :])
            touch = nodes[1 : test.used] + test.shift  # Phi2 has cusps here in low dimension
            cell = width[: len(touch)]
            if self.problem.dimension < 5:
                touch = (touch[:, None] - cell[:, None] * np.array([0.0, 0.03, 0.08, 0.2, -0.05])).ravel()
            rims.append(np.concatenate([b.ravel(), [test.shift * (1.0 + 1e-9)], touch]))
        rim = np.concatenate(rims)
        core = np.linspace(0.0, 1.2, 481)[1:] if len(self.grid.tests) > 1 else np.zeros(0)
        tails = [nodes[-1] + np.linspace(1e-6, 1.0, count) for count in (2 * check, 3 * per_cell)]
        fine = np.unique(np.concatenate([spread(check), core, nodes, tails[0], rim]))
        chosen = np.searchsorted(fine, np.concatenate([spread(per_cell), nodes, tails[1], rim]))
        return fine, np.unique(np.minimum(chosen, len(fine) - 1))


def solve(
    dual: Dual,
    *,
    per_cell: int = 6,
    check: int = 20,
    rounds: int = 12,
    tolerance: float = TOLERANCE,
    limit: float = 20.0,
) -> tuple[float, float, Proof] | None:
    """Exchange: a program on some radii, add the radii where G dips, repeat; then prove.

    Returns the proved bound, the program's value and the proof, or None if no program was solved.
    """
    import scipy.sparse as sparse

    begun = time.thread_time()
    fine, chosen = dual.watched(per_cell, check)
    rows = dual.rows(fine)
    best: tuple[float, Array] | None = None
    proved: tuple[float, float, Proof] | None = None
    for done in range(1, rounds + 1):
        left = limit - (time.thread_time() - begun)
        if left < 0.0 and best is not None:
            break
        found = dual.program(fine[chosen], rows[chosen], max(left, 1.0))
        if found is None:
            break
        coefficients, value = found
        g = dual.f(fine) + rows @ coefficients
        bound = float(g.min()) - dual.spent(coefficients)
        if best is None or bound > best[0]:
            best = bound, coefficients
        late = time.thread_time() - begun > limit or done == rounds
        dip = np.nonzero((g[1:-1] <= g[:-2]) & (g[1:-1] <= g[2:]))[0] + 1
        dip = dip[g[dip] < float(g[chosen].min()) - 0.05 * tolerance]
        if value - bound >= tolerance and not late and len(dip):
            chosen = np.unique(np.concatenate([chosen, dip]))
            continue
        left = limit - (time.thread_time() - begun)
        low, proof, dips = dual.prove(best[1], tolerance, max(left, 0.3 * limit))
        if proved is None or low > proved[0]:
            proved = low, value, proof
        # G may dip between the radii watched: then watch those too and go on.
        extra = np.setdiff1d(dips, fine)
        best = None
        if value - proved[0] < 4.0 * tolerance or late or not len(extra):
            break
        order = np.argsort(np.concatenate([fine, extra]))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        rows = sparse.vstack([rows, dual.rows(extra)]).tocsr()[order]
        chosen = np.concatenate([place[: len(fine)][chosen], place[len(fine) :]])
        fine = np.concatenate([fine, extra])[order]
    if best is not None:
        low, proof, _ = dual.prove(best[1], tolerance, 0.3 * limit)
        if proved is None or low > proved[0]:
            proved = low, math.nan, proof
    return proved
