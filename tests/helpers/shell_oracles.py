"""Independent references for shell densities: many-digit arithmetic by shell pairs, sampling, and a linear program."""

import math

import mpmath as mp
import numpy as np
from scipy import sparse
from scipy.integrate import quad
from scipy.optimize import linprog


def exact_delta(dimension, edges, probabilities, epsilon, shift=1.0, digits=50):
    """The hockey-stick pair by pair: sum over i, j of (h_i - e^eps h_j)_+ vol{n in shell i, n + v in shell j}.

    No slicing and no lunes: the volumes are intersections of balls, each two caps given by incomplete beta functions.
    """
    with mp.workdps(digits):
        m = dimension
        radii = [mp.mpf(float(edge)) for edge in edges]
        total = sum(mp.mpf(float(p)) for p in probabilities)
        heights = [
            mp.mpf(float(p)) / total / (radii[i + 1] ** m - radii[i] ** m) for i, p in enumerate(probabilities)
        ] + [mp.mpf(0)]
        distance = mp.mpf(float(shift))

        def cap(x):
            if abs(x) >= 1:
                return mp.mpf(0) if x > 0 else mp.mpf(1)
            half = mp.betainc(mp.mpf(m + 1) / 2, mp.mpf(1) / 2, 0, 1 - x * x, regularized=True) / 2
            return half if x >= 0 else 1 - half

        def common(u, y):
            if u + y <= distance or u == 0 or y == 0:
                return mp.mpf(0)
            if abs(u - y) >= distance:
                return min(u, y) ** m
            a = (u * u + distance**2 - y * y) / (2 * distance)
            return u**m * cap(a / u) + y**m * cap((distance - a) / y)

        count = len(probabilities)
        outer = [*radii, radii[-1] + 2 * distance]
        table = [[common(u, y) for y in outer] for u in radii]
        grow = mp.e ** mp.mpf(epsilon)
        result = mp.mpf(0)
        for i in range(count):
            for j in range(count + 1):
                gain = heights[i] - grow * heights[j]
                if gain > 0:
                    result += gain * (table[i + 1][j + 1] - table[i][j + 1] - table[i + 1][j] + table[i][j])
        return result


def heights_at(law, radius):
    """Log-height at given radii, from the definition (probability over volume)."""
    edges = np.array(law.edges)
    volume = np.diff((edges / edges[-1]) ** law.dimension)
    log_heights = np.append(np.log(law.probabilities) - np.log(volume), -np.inf)
    return log_heights[np.minimum(np.searchsorted(edges[1:], radius), len(log_heights) - 1)]


def delta_monte_carlo(law, noise, epsilon, shift=1.0):
    """(mean, standard error) of (1 - e^(eps - loss))_+ over rows of noise."""
    moved = noise.copy()
    moved[:, 0] += shift
    near = heights_at(law, np.minimum(np.linalg.norm(noise, axis=1), law.edges[-1]))  # the grid may round outwards
    far = heights_at(law, np.linalg.norm(moved, axis=1))
    values = np.maximum(1.0 - np.exp(np.minimum(epsilon + far - near, 0.0)), 0.0)
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


def radius_cdf(law, radius):
    """P(|n| <= radius) by adding shells."""
    edges, m = np.array(law.edges), law.dimension
    inside = np.clip(radius, edges[:-1], edges[1:])
    share = ((inside / edges[1:]) ** m - (edges[:-1] / edges[1:]) ** m) / (1.0 - (edges[:-1] / edges[1:]) ** m)
    return float(np.dot(share, law.probabilities) / math.fsum(law.probabilities))


def moment(law, order):
    """E |n|^order by quadrature of the radius density over each shell."""
    total, m = 0.0, law.dimension
    for low, high, p in zip(law.edges, law.edges[1:], law.probabilities, strict=False):
        mass = quad(lambda r, high=high: (r / high) ** (m - 1), low, high)[0]
        total += p * quad(lambda r, high=high: r**order * (r / high) ** (m - 1), low, high)[0] / mass
    return total


def least_by_program(dimension, epsilon, delta, edges):
    """The least E|n|^2 over densities that are constant on given shells and fall outwards: a linear program.

    Variables: probabilities p_i and excesses u_ij >= c_ij (p_i - e^eps p_j vol_i/vol_j), c_ij the chance that a shift
    of length 1 leads from shell i to shell j. Its optimum cannot be below that over all falling densities.
    """
    edges = np.asarray(edges, dtype=float)
    count = len(edges) - 1
    volume = np.diff((edges / edges[-1]) ** dimension)
    mean = dimension / (dimension + 2) * np.diff((edges / edges[-1]) ** (dimension + 2)) / volume * edges[-1] ** 2
    chance = _transition(dimension, edges, volume)
    i, j = np.nonzero(chance > 1e-15)
    i, j = i[j > i], j[j > i]
    scale, pairs = chance[i, j] / delta, len(i)
    here = np.arange(pairs)
    rows = [here, here, here, np.full(pairs, pairs)]
    cols = [i, j, count + here, count + here]
    values = [scale, -scale * math.exp(epsilon) * volume[i] / volume[j], -np.ones(pairs), np.ones(pairs)]
    k = np.arange(count - 1)
    rows += [pairs + 1 + k, pairs + 1 + k]
    cols += [k + 1, k]
    values += [volume[:-1] / volume[1:], -np.ones(count - 1)]
    matrix = sparse.csr_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))))
    limits = np.concatenate([np.zeros(pairs), [1.0], np.zeros(count - 1)])
    equal = sparse.csr_matrix(
        (np.ones(count), (np.zeros(count, dtype=int), np.arange(count))), shape=(1, count + pairs)
    )
    cost = np.concatenate([mean / mean.mean(), np.zeros(pairs)])
    found = linprog(cost, A_ub=matrix, b_ub=limits, A_eq=equal, b_eq=[1.0], method="highs")
    return float(found.x[:count] @ mean)


def _transition(dimension, edges, volume):
    """c_ij by Gauss quadrature in |n| inside each shell and the exact law of the cosine."""
    from scipy.special import betainc

    nodes, weights = np.polynomial.legendre.leggauss(8)
    low, high = edges[:-1], edges[1:]
    total = np.zeros((len(low), len(low)))
    for node, weight in zip(0.5 * (nodes + 1.0), 0.5 * weights, strict=True):
        a = low + (high - low) * node
        density = weight * dimension * (a / edges[-1]) ** (dimension - 1) * (high - low) / edges[-1] / volume
        cosine = np.clip((edges[None, :] ** 2 - a[:, None] ** 2 - 1.0) / (2.0 * a[:, None]), -1.0, 1.0)
        half = 0.5 * betainc(0.5 * (dimension - 1), 0.5, 1.0 - cosine**2)
        above = np.where(cosine > 0.0, half, 1.0 - half)
        above[:, 0] = 1.0
        total += density[:, None] * (above[:, :-1] - above[:, 1:])
    return total
