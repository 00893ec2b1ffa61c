"""The strategies of least error for noise that is scaled to the l1 norm of the columns, found by L-BFGS-B.

The columns of [I; T] D all have the sum 1 if D = diag(1/(1 + column sums of T)), so that T >= 0 alone is to be found.
For any A, d tr(G X^-1) = -2 tr(X^-1 G X^-1 A^T dA), X = A^T A. All is O(n p^2) for n cells and p rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.frozen_matrix import Deviations, FrozenMatrix
from lessnoise.strategy.hats import Grid, Hats
from lessnoise.strategy.nested import BASIS, Nested
from lessnoise.strategy.p_identity import PIdentity, unit_columns
from lessnoise.strategy.squares import Dense, Line, Lines
from lessnoise.strategy.woodbury import Woodbury

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array
    from lessnoise.strategy.squares import Squares

    Loss = Callable[[Array], tuple[float, Array]]

_MOST = 1e4  # of an entry of T: a cell keeps some weight of its own


def optimise_p_identity(
    squares: Squares | Array,
    rows: int | None = None,
    steps: int = 600,
    length: float = 1.0,
    known: Array | float = 0.0,
) -> PIdentity:
    """The p-identity strategy with columns of l1 norm ``length`` and a locally least tr(G (A^T A + diag(known))^-1).

    ``squares`` is G = W^T W; ``rows`` is p, chosen by the number of cells if not given; ``known`` is the precision with
    which cells are known from elsewhere.

    >>> from lessnoise.workload import prefixes
    >>> found = optimise_p_identity(prefixes(32).gram())
    >>> found.norm(1), 2 * found.trace(prefixes(32)) / 32 < 20.5  # 33 for Laplace noise in every cell
    (1.0, True)
    """
    given = Dense(squares) if isinstance(squares, np.ndarray) else squares
    size = len(given.diagonal)
    p = default_rows(size) if rows is None else rows
    scale = 1.0 / float(given.diagonal.sum())

    def loss(flat: Array) -> tuple[float, Array]:
        part = _Part(flat.reshape(p, size), length)
        inverse = Woodbury(np.sqrt(part.diagonal**2 + known), part.rows)
        own, slopes = inverse.slope(given)
        slope, _ = part.back(-2.0 * part.diagonal * own, -2.0 * slopes)
        return scale * inverse.trace(given), scale * slope.ravel()

    starts = [start(size, p, seed).ravel() for seed in range(4 if size <= 128 else 3 if size <= 512 else 2)]
    return unit_columns(_least(loss, starts, [(0.0, _MOST)] * (p * size), steps).reshape(p, size), length)


def optimise_nested(line: Line, size: int, blocks: int, steps: int = 400) -> Nested:
    """Two nested p-identity strategies, of so many blocks and of their cells, for squares that are lines.

    >>> from lessnoise.workload import Factor, prefixes
    >>> from lessnoise.strategy.squares import line_of
    >>> found = optimise_nested(line_of(Factor("prefixes", 100)), 100, 10)
    >>> found.norm(1), 2 * found.trace(prefixes(100)) / 100 < 39.0
    (1.0, True)
    """
    width = -(-size // blocks)
    blocks = -(-size // width)
    p, q = default_rows(blocks), default_rows(width)
    loss = nested_loss(line, blocks, width, p, q)
    starts = [np.concatenate([start(blocks, p, seed).ravel(), start(width, q, seed).ravel(), [0.0]]) for seed in (0, 1)]
    bounds = [(0.0, _MOST)] * (p * blocks + q * width) + [(-8.0, 8.0)]
    found = _least(loss, starts, bounds, steps)
    share = 1.0 / (1.0 + math.exp(-found[-1]))
    fine = math.floor(share * 2.0**40) / 2.0**40  # so that both shares are exact
    above, below = found[: p * blocks].reshape(p, blocks), found[p * blocks : -1].reshape(q, width)
    return Nested(unit_columns(above, 1.0 - fine), unit_columns(below, fine), size)


def optimise_hats(line: Line, size: int, step: int = 16, length: float = 1.0, steps: int = 400) -> Hats:
    """Hats with nodes so many cells apart and columns of l1 norm ``length``, for squares that are lines.

    >>> from lessnoise.workload import Factor, prefixes
    >>> from lessnoise.strategy.squares import line_of
    >>> found = optimise_hats(line_of(Factor("prefixes", 100)), 100)
    >>> found.norm(1), 2 * found.trace(prefixes(100)) / 100 < 36.5
    (1.0, True)
    """
    nodes = -(-size // step) + 1
    rows = default_rows(nodes)
    loss, count = hats_loss(line, size, step, rows)
    starts = []
    for seed in (0, 1):
        sums = np.random.default_rng(seed).uniform(0.0, 0.5, (rows, nodes))
        starts.append(np.concatenate([np.ones(nodes), sums.ravel()]))
    found = _least(loss, starts, [(0.0, _MOST)] * count, steps).reshape(rows + 1, nodes)
    found[found < 2.0**-60] = 0.0
    kept = [0, *(np.flatnonzero(found[1:].any(axis=1)) + 1)]
    return Hats(size, step, FrozenMatrix(found[kept]), length)


def optimise_blocks(line: Line, size: int, width: int, step: int = 20, steps: int = 300, left: float = 0.01) -> Nested:
    """Blocks of ``width`` cells with hats inside, and a p-identity strategy of the blocks, for squares that are lines.

    What the total of a block says is left to the strategy of blocks: the squares for the hats are those of an average
    block, less nearly all that is the same in all cells.
    """
    blocks = -(-size // width)
    mean = line.moved(width * np.arange(blocks, dtype=np.float64)).mean(axis=0)
    mean[0, 0] -= (1.0 - left) * (mean[0, 0] + mean[0, 1] * (width - 1.0))  # the entry of the first and the last cell
    hats = optimise_hats(Line(mean, line.own), width, step, steps=steps)
    found = []
    for share in (0.65, 0.7, 0.75, 0.8, 0.85) if blocks <= 60 else (0.7, 0.75):
        fine = Hats(width, step, hats.heights, math.floor(share * 1024.0) / 1024.0)
        trial = Nested(PIdentity(Deviations.constant(1.0, blocks)), fine, size)
        known, asked = 1.0 / trial.spreads, trial.coarse_squares(line)
        coarse = optimise_p_identity(asked, steps=steps // 3, length=1.0 - fine.length, known=known)
        found.append(Nested(coarse, fine, size))
    return min(found, key=lambda each: each.line_trace(line))


def default_rows(size: int) -> int:
    """P for so many cells."""
    return max(1, round(0.5 * math.pow(size, 0.7)))


def start(size: int, rows: int, seed: int) -> Array:
    """Where to begin: for even seeds random numbers, for odd ones random numbers that are larger along a tree."""
    rng = np.random.default_rng(seed)
    if seed % 2 == 0:
        return rng.uniform(0.0, 1.0, (rows, size))
    found = np.full((rows, size), 0.3)
    row, parts = 0, 4 if size <= 512 else 8
    branching = parts
    while row < rows and parts < size:
        for part in range(min(parts, rows - row)):
            found[row, part * size // parts : (part + 1) * size // parts] = 1.0
            row += 1
        parts *= branching
    return np.asarray(found * rng.uniform(0.5, 1.5, found.shape))


def _least(loss: Loss, starts: list[Array], bounds: list[tuple[float, float]], steps: int) -> Array:
    """The best of some starts after a fifth of the steps, carried on."""
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    def descend(values: Array, most: int) -> tuple[float, Array]:
        options = {"maxiter": most, "maxfun": 2 * most, "ftol": 1e-8, "gtol": 1e-10, "maxcor": 10}
        with threadpool_limits(1):  # matrices so small that threads wait for each other
            found = minimize(loss, values, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return float(found.fun), np.asarray(found.x)

    tried = [descend(values, steps // 5) for values in starts]
    return descend(min(tried, key=lambda each: each[0])[1], steps)[1]


class _Part:
    """[I; T] with columns of sum ``share``, and the way back from slopes in it to those in T and in the share."""

    def __init__(self, entries: Array, share: float) -> None:
        self.share = share
        self.diagonal: Array = share / (1.0 + entries.sum(axis=0))
        self.rows: Array = entries * self.diagonal

    def back(self, diagonal: Array, rows: Array) -> tuple[Array, float]:
        each = (rows * self.rows).sum(axis=0) + diagonal * self.diagonal
        return rows * self.diagonal - each * self.diagonal / self.share, float(each.sum()) / self.share


def nested_loss(line: Line, blocks: int, width: int, p: int, q: int) -> Loss:
    """tr(G X^-1) of nested strategies and its slope, over the entries of both T and the logit of the fine one's share.

    With Y = (X_c + I/s)^-1 and (G_c)_bc = u^T G_bc u/s^2, the slope in X_c is -Y G_c Y, and that in X_f is minus
    X_f^-1 G_f X_f^-1 - u v^T - v u^T + kappa u u^T, where G_f = sum_b G_bb, v = X_f^-1 (G_f u - k/s)/s,
    k = sum_bc Y_bc G_cb u and kappa = tr G_c - 2 tr(Y G_c)/s + tr(Y G_c Y)/s^2.
    """
    starts = width * np.arange(blocks, dtype=np.float64)
    each, c, places = line.moved(starts), line.coefficients, np.arange(width, dtype=np.float64)
    fine_squares = Line(each.sum(axis=0), line.own * blocks).over(width)
    basis = [Line(matrix, 0.0).over(width) for matrix in BASIS]
    scale = 1.0 / (float(fine_squares.diagonal.sum()))

    def loss(flat: Array) -> tuple[float, Array]:
        share = 1.0 / (1.0 + math.exp(-flat[-1]))
        fine = _Part(flat[p * blocks : -1].reshape(q, width), share)
        coarse = _Part(flat[: p * blocks].reshape(p, blocks), 1.0 - share)
        below = Woodbury(fine.diagonal, fine.rows)
        u = below.solve(np.ones(width))
        s = float(u.sum())
        means = starts + float(places @ u) / s
        quadratic = each.reshape(-1, 4) @ [float(lines.times(u) @ u) for lines in basis] + line.own * float(u @ u)
        squares = Lines(means, c, quadratic / s**2)
        above = Woodbury(np.sqrt(coarse.diagonal**2 + 1.0 / s), coarse.rows)
        known = above.trace(squares)
        total = below.trace(fine_squares) - float(quadratic.sum()) / s + known

        own, slopes = above.slope(squares)
        kappa = float(squares.diagonal.sum()) - 2.0 * known / s + float(own.sum()) / s**2
        coarse_slope, coarse_share = coarse.back(-2.0 * coarse.diagonal * own, -2.0 * slopes)

        # k: Y_bb and the sums of Y_bc and of Y_bc z_c over c < b, as Y is a diagonal less a few products
        left, right = above.scaled / above.diagonal, above.inverse @ above.scaled / above.diagonal
        y_own = above.diagonal**-2.0 - (left * right).sum(axis=0)
        sums = np.stack([-(left * (np.cumsum(right * by, axis=1) - right * by)).sum(axis=0) for by in (1.0, means)])
        moved = np.stack([sums[0], sums[1] - (means[0] - starts[0]) * sums[0]])  # by the starts in place of the means
        late, early = np.stack([np.ones(blocks), means]), np.stack([np.ones(blocks), starts])
        level = float((moved * (c @ late)).sum() + (sums * (c @ early)).sum())
        rise = float((sums[0] * (c[1] @ late)).sum() + (c[:, 1] @ sums).sum())
        weighted = Line(np.tensordot(y_own, each, 1), line.own * float(y_own.sum())).over(width)
        k = weighted.times(u) + s * (level + rise * places)

        v = below.solve((fine_squares.times(u) - k / s) / s)
        own, slopes = below.slope(fine_squares)
        own = own - 2.0 * u * v + kappa * u * u
        slopes = slopes - np.outer(fine.rows @ u, v) - np.outer(fine.rows @ (v - kappa * u), u)
        fine_slope, fine_share = fine.back(-2.0 * fine.diagonal * own, -2.0 * slopes)
        by_share = (fine_share - coarse_share) * share * (1.0 - share)
        return scale * total, scale * np.concatenate([coarse_slope.ravel(), fine_slope.ravel(), [by_share]])

    return loss


def hats_loss(line: Line, size: int, step: int, rows: int) -> tuple[Loss, int]:
    """tr(G X^-1) with columns of sum 1 and its slope, over the entries of a and B; and how many these are.

    With S = diag(sigma), K = H S G S H^T and fixed sigma the slope in T is -2 T Z K Z^T, and that in sigma_j is
    2 (G_jj sigma_j - (H^T Q Z H S G)_jj); sigma = 1 + H^T (column sums of T).
    """
    grid = Grid(size, step)
    gram, nodes, c = grid.gram(), grid.nodes, line.coefficients
    own = line.over(size).diagonal
    scale = 1.0 / float(own.sum())
    z = grid.places[:, 0, :]
    early = np.stack([c[0, 0] + c[0, 1] * z, c[1, 0] + c[1, 1] * z], axis=-1)  # C (1, z)^T
    late = np.stack([c[0, 0] + c[1, 0] * z, c[0, 1] + c[1, 1] * z], axis=-1)  # (1, z) C

    def loss(flat: Array) -> tuple[float, Array]:
        heights = flat.reshape(rows + 1, nodes)
        sigma = 1.0 + grid.up(heights.sum(axis=0))
        squares, inside, moments = grid.squares(line, sigma)
        q = heights[1:].T @ heights[1:] + np.diag(heights[0] ** 2)
        inverse = np.linalg.inv(np.eye(nodes) + gram @ q)  # Z
        core = q @ inverse
        total = float((own * sigma**2).sum()) - float(np.vdot(core, squares))
        outer = inverse @ squares @ inverse.T
        slope = np.concatenate([(heights[0] * np.diagonal(outer))[np.newaxis], heights[1:] @ outer])
        # (Q Z H S G)_ij for the two nodes i beside a cell j: halves in earlier blocks, in its own, in later ones
        spread = np.stack([core[:, :-1], core[:, 1:]], axis=-1)  # nodes, blocks, halves
        summed = np.einsum("nbh,bhk->nbk", spread, moments)
        running = np.cumsum(summed, axis=1)
        found = np.zeros((grid.blocks, step))
        block = np.arange(grid.blocks)
        for half in (0, 1):
            upto = running[block + half, block]
            before = upto - summed[block + half, block]
            after = running[block + half, -1] - upto
            here = np.einsum("bh,bhs->bs", spread[block + half, block], inside)
            parts = np.einsum("bsk,bk->bs", early, before) + np.einsum("bsk,bk->bs", late, after) + here
            found += grid.halves[half] * parts
        by_sigma = own * sigma - found.reshape(-1)[:size]
        return scale * total, 2.0 * scale * (grid.down(by_sigma) - slope).ravel()

    return loss, (rows + 1) * nodes
