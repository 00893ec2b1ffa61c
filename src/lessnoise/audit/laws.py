"""What an audit asks of a noise law: many draws at once, the ratio of two densities, the worst shift, a distance.

All of them are single-dispatch. A new law needs none of them: it is then drawn one release at a time, and audited
without the likelihood attack. To add that to an isotropic law, register one function:

    @log_density_ratio.register(MyLaw)
    def _(law, outputs):
        return radial_ratio(outputs, lambda radius: ...)  # ln of the density at a distance, -inf where it is 0
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.changes import Moves
from lessnoise.mechanism import (
    CorrelatedGaussian,
    Dawa,
    DiscreteGaussian,
    DiscretePower,
    GeneralizedGaussian,
    Geometric,
    Hierarchy,
    Laplace,
    Law,
    MatrixGaussian,
    Radial,
    Shells,
    Wishart,
    draw_noise,
    log_height,
    log_weights,
    prepare_noise,
    radius_at,
    squared_budget,
    worst_vertex,
)
from lessnoise.noise import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array
    from lessnoise.audit.outputs import Outputs
    from lessnoise.mechanism import Deviations, FrozenMatrix

    Shape = tuple[int, ...]


ROUNDING = 1e-8  # relative: a sensitivity typed as 1.41421356 is meant to be the square root of 2


# Many independent draws, the first axis counting them. An audit reveals nothing, so NumPy's generator will do.


@functools.singledispatch
def draw_many(law: Law, shape: Shape, count: int, rng: np.random.Generator) -> Array:
    """As many draws of :func:`draw_noise`; laws that can do it in one sweep register that."""
    return np.stack([draw_noise(law, shape, rng) for _ in range(count)]) if count else np.empty((0, *shape))


@draw_many.register(Laplace)
@draw_many.register(GeneralizedGaussian)
@draw_many.register(DiscreteGaussian)
@draw_many.register(DiscretePower)
@draw_many.register(Geometric)
def _(law: Law, shape: Shape, count: int, rng: np.random.Generator) -> Array:
    # Independent entries: many arrays are one long one.
    flat = draw_noise(law, (max(count, 1) * math.prod(shape),), rng)
    return flat[: count * math.prod(shape)].reshape(count, *shape).astype(np.float64, copy=False)


@draw_many.register(Radial)
def _(law: Radial, shape: Shape, count: int, rng: np.random.Generator) -> Array:
    dimension = math.prod(shape)
    vectors = rng.standard_normal((count, dimension))
    if law.is_gaussian(dimension):
        vectors *= law.scale * math.sqrt(0.5)
    else:
        # R = s G^(1/p), G ~ Gamma(k/p) = Gamma(k/p + 1) U^(p/k), which underflows later than G itself.
        order = law.k / law.p
        logs = np.log(rng.standard_gamma(order + 1.0, count)) + np.log1p(-rng.random(count)) / order
        _stretch(vectors, law.scale * np.exp(logs / law.p))
    return vectors.reshape(count, *shape)


@draw_many.register(Shells)
def _(law: Shells, shape: Shape, count: int, rng: np.random.Generator) -> Array:
    vectors = rng.standard_normal((count, law.dimension))
    _stretch(vectors, radius_at(law, 1.0 - rng.random(count)))
    return vectors.reshape(count, *shape)


def _stretch(vectors: Array, lengths: Array) -> None:
    """Give each row its length."""
    vectors *= (lengths / np.sqrt(np.einsum("ij,ij->i", vectors, vectors)))[:, np.newaxis]


@draw_many.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, shape: Shape, count: int, rng: np.random.Generator) -> Array:
    flat = math.sqrt(law.own_variance) * rng.standard_normal((count, math.prod(shape)))
    flat += math.sqrt(law.common_variance) * rng.standard_normal((count, 1))
    return flat.reshape(count, *shape)


@draw_many.register(MatrixGaussian)
def _(law: MatrixGaussian, shape: Shape, count: int, rng: np.random.Generator) -> Array:
    noise = rng.standard_normal((count, *shape))
    noise *= law.row_deviations.array()[:, np.newaxis]
    noise *= law.column_deviations.array()
    if law.row_basis is not None:
        noise = law.row_basis.array @ noise
    if law.column_basis is not None:
        noise = noise @ law.column_basis.array.T
    return noise


@draw_many.register(Wishart)
def _(law: Wishart, shape: Shape, count: int, rng: np.random.Generator) -> Array:
    factors = math.sqrt(law.scale) * rng.standard_normal((count, shape[0], shape[0] + 1))
    products: Array = np.einsum("nij,nkj->nik", factors, factors)  # without BLAS, whose threads compete
    return products


@functools.singledispatch
def release_many(law: Law, value: Array, count: int, rng: np.random.Generator) -> Array:
    """As many releases of a value, the first axis counting them."""
    outputs = draw_many(law, value.shape, count, rng)
    outputs += value
    return outputs


@release_many.register(Dawa)
def _(law: Dawa, value: Array, count: int, rng: np.random.Generator) -> Array:
    releases = [prepare_noise(law, value, Stream.of(rng))() for _ in range(count)]
    return np.stack(releases) if count else np.empty((0, *value.shape))


# The likelihood ratio ln f(n) - ln f(n - v): the best of all attacks (Neyman and Pearson), where densities are known.


@functools.singledispatch
def log_density_ratio(law: Law, outputs: Outputs) -> Array:
    """Privacy loss of each output: how much likelier it is from the value than from the neighbour, as a logarithm."""
    raise NotImplementedError(f"the densities of {type(law).__name__} are not known")


def radial_ratio(outputs: Outputs, log_density: Callable[[Array], Array]) -> Array:
    """ln h(|n|) - ln h(|n - v|) of a density h that depends on the distance alone; 0 where both vanish."""
    with np.errstate(invalid="ignore"):
        loss = log_density(outputs.distance) - log_density(outputs.other_distance)
    loss[np.isnan(loss)] = 0.0
    return loss


@log_density_ratio.register(Radial)
def _(law: Radial, outputs: Outputs) -> Array:
    # g(|n - v|) - g(|n|) with g(r) = (M - k) ln r + (r/s)^p; infinite at the pole of k < M.
    near, far = outputs.distance, outputs.other_distance
    loss: Array = (far / law.scale) ** law.p - (near / law.scale) ** law.p
    spare = outputs.shift.size - law.k
    if spare > 0.0:
        with np.errstate(divide="ignore"):
            loss += spare * (np.log(far) - np.log(near))
    return loss


@log_density_ratio.register(Shells)
def _(law: Shells, outputs: Outputs) -> Array:
    return radial_ratio(outputs, lambda radius: log_height(law, radius))


@log_density_ratio.register(Laplace)
def _(law: Laplace, outputs: Outputs) -> Array:
    return _power_loss(outputs, 1.0, law.scale)


@log_density_ratio.register(GeneralizedGaussian)
@log_density_ratio.register(DiscretePower)
def _(law: GeneralizedGaussian | DiscretePower, outputs: Outputs) -> Array:
    return _power_loss(outputs, law.p, law.scale)


def _power_loss(outputs: Outputs, p: float, scale: float) -> Array:
    """Sum of (|n_i - v_i|^p - |n_i|^p)/scale^p over the entries that differ."""
    moved = np.flatnonzero(outputs.shift)
    noise, shift = outputs.noise[:, moved] / scale, outputs.shift[moved] / scale
    loss: Array = np.sum(np.abs(noise - shift) ** p - np.abs(noise) ** p, axis=1)
    return loss


@log_density_ratio.register(Geometric)
def _(law: Geometric, outputs: Outputs) -> Array:
    moved = np.flatnonzero(outputs.shift)
    noise, shift = outputs.noise[:, moved], outputs.shift[moved]
    with np.errstate(invalid="ignore"):
        losses = log_weights(law, noise) - log_weights(law, noise - shift)
    losses[np.isnan(losses)] = 0.0  # neither can give it
    loss: Array = losses.sum(axis=1)
    return loss


@log_density_ratio.register(DiscreteGaussian)
def _(law: DiscreteGaussian, outputs: Outputs) -> Array:
    return _gaussian_loss(outputs, outputs.shift / float(law.variance_parameter))


@log_density_ratio.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, outputs: Outputs) -> Array:
    # Sherman and Morrison: (own I + common 1 1^T)^-1 v = (v - 1 common sum(v)/(own + d common))/own.
    shared = law.common_variance / (law.own_variance + outputs.shift.size * law.common_variance)
    return _gaussian_loss(outputs, (outputs.shift - shared * outputs.shift.sum()) / law.own_variance)


@log_density_ratio.register(MatrixGaussian)
def _(law: MatrixGaussian, outputs: Outputs) -> Array:
    scaled = _inverse_covariance(law.row_deviations, law.row_basis, outputs.shift.reshape(law.shape))
    scaled = _inverse_covariance(law.column_deviations, law.column_basis, scaled.T).T
    return _gaussian_loss(outputs, scaled.ravel())


def _inverse_covariance(deviations: Deviations, basis: FrozenMatrix | None, matrix: Array) -> Array:
    """W diag(a^-2) W^T X."""
    weights = deviations.array()[:, np.newaxis] ** -2.0
    if basis is None:
        return weights * matrix
    turned: Array = basis.array @ (weights * (basis.array.T @ matrix))
    return turned


@log_density_ratio.register(Wishart)
def _(law: Wishart, outputs: Outputs) -> Array:
    # ln of exp(-tr(W)/(2 s)) over itself at W - v, infinite where W - v is not positive definite.
    size = math.isqrt(outputs.shift.size)
    other = (outputs.noise - outputs.shift).reshape(-1, size, size)
    loss = np.full(len(other), -0.5 * float(np.trace(outputs.shift.reshape(size, size))) / law.scale)
    loss[np.linalg.eigvalsh(other)[:, 0] < 0.0] = math.inf
    own = np.linalg.eigvalsh(outputs.noise.reshape(-1, size, size))[:, 0] < 0.0
    loss[own] = np.where(np.isinf(loss[own]), 0.0, -math.inf)  # seen from the neighbour; 0 where both vanish
    return loss


def _gaussian_loss(outputs: Outputs, scaled_shift: Array) -> Array:
    """v.S^-1 v/2 - n.S^-1 v, from S^-1 v."""
    return 0.5 * float(np.sum(outputs.shift * scaled_shift)) - outputs.against(scaled_shift)


# Neighbours.


def worst_shift(law: Law, shape: Shape, shift: float | Moves) -> Array:
    """The worst change of the value that is known.

    >>> worst_shift(Laplace(1.0), (2,), 3.0)
    array([3., 0.])
    """
    if not isinstance(shift, Moves):
        return worst_of_size(law, shape, shift)
    found, done = np.zeros(shape), 0
    for size, count in shift.sizes:
        found.flat[done : done + count] = size
        done += count
    return found


@functools.singledispatch
def worst_of_size(law: Law, shape: Shape, sensitivity: float) -> Array:
    """All of the sensitivity in one entry, unless a law says otherwise."""
    return _shift(shape, sensitivity)


def _shift(shape: Shape, change: float, entries: int = 1) -> Array:
    """The first so many entries change, by so much each."""
    shift = np.zeros(shape)
    shift.flat[:entries] = change
    return shift


@worst_of_size.register(Hierarchy)
def _(law: Hierarchy, shape: Shape, sensitivity: float) -> Array:
    shift = _shift(shape, sensitivity)
    if law.change == "moved":  # opposite corners share no node of the tree below its root
        shift.flat[0], shift.flat[-1] = 0.5 * sensitivity, -0.5 * sensitivity
    return shift


@worst_of_size.register(Radial)
@worst_of_size.register(Shells)
def _(law: Law, shape: Shape, sensitivity: float) -> Array:
    # All directions are alike; one of whole numbers lets whole-number attacks join.
    size = math.prod(shape)
    changed = round(min(sensitivity**2, 2.0 * size))
    whole = 1 <= changed <= size and math.isclose(math.sqrt(changed), sensitivity, rel_tol=ROUNDING)
    return _shift(shape, 1.0, changed) if whole else _shift(shape, sensitivity)


@worst_of_size.register(DiscreteGaussian)
def _(law: DiscreteGaussian, shape: Shape, sensitivity: float) -> Array:
    budget = squared_budget(sensitivity)
    return _shift(shape, 1.0, budget) if budget <= math.prod(shape) else _shift(shape, math.isqrt(budget))


@worst_of_size.register(GeneralizedGaussian)
def _(law: GeneralizedGaussian, shape: Shape, sensitivity: float) -> Array:
    # Not proved to be the worst; beyond p = 2 many small changes tell more than one large one.
    changed = math.prod(shape) if law.p > 2.0 else 1
    return _shift(shape, sensitivity * changed ** (-1.0 / law.p), changed)


@worst_of_size.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, shape: Shape, sensitivity: float) -> Array:
    return _shift(shape, sensitivity, worst_vertex(law, math.prod(shape)))


@worst_of_size.register(MatrixGaussian)
def _(law: MatrixGaussian, shape: Shape, sensitivity: float) -> Array:
    row = _least_direction(law.row_deviations, law.row_basis)
    column = _least_direction(law.column_deviations, law.column_basis)
    return sensitivity * np.outer(row / np.linalg.norm(row), column / np.linalg.norm(column))


def _least_direction(deviations: Deviations, basis: FrozenMatrix | None) -> Array:
    index = int(np.argmin(deviations.array()))
    if basis is not None:
        return basis.array[:, index]
    direction = np.zeros(deviations.size)
    direction[index] = 1.0
    return direction


@functools.singledispatch
def distance(law: Law, shift: Array) -> float:
    """How far apart two neighbours are, in the norm of the law's sensitivity; infinite if no norm allows it.

    >>> distance(Laplace(1.0), np.array([1.0, -2.0]))
    3.0
    """
    flat = shift.ravel()
    if law.norm == "one-sided linf":  # one individual moves all entries the same way
        return math.inf if flat.min() < 0.0 < flat.max() else float(np.abs(flat).max())
    if law.norm == "outer product":
        return _record_distance(shift)
    order = {"l1": 1.0, "l2": 2.0, "lp": getattr(law, "p", 2.0)}[law.norm]
    return float(np.linalg.norm(flat, order))


@distance.register(Hierarchy)
def _(law: Hierarchy, shift: Array) -> float:
    if law.change != "moved":
        return distance.dispatch(object)(law, shift)
    # A replaced individual takes away at most half of the sensitivity, and adds at most half.
    return 2.0 * float(max(shift[shift > 0.0].sum(), -shift[shift < 0.0].sum()))


@functools.singledispatch
def covered_distance(law: Law, sensitivity: float) -> float:
    """How far apart neighbours may be that a sensitivity covers."""
    return sensitivity


@covered_distance.register(DiscreteGaussian)
def _(law: DiscreteGaussian, sensitivity: float) -> float:
    return max(sensitivity, math.sqrt(squared_budget(sensitivity)))


def _record_distance(shift: Array) -> float:
    """The larger |x|^2 of a change x x^T - y y^T; infinite if it is none: one eigenvalue above and one below 0."""
    values = np.linalg.eigvalsh(shift)
    size = float(np.abs(values).max())
    if not np.allclose(shift, shift.T) or np.any(np.abs(values[1:-1]) > ROUNDING * size):
        return math.inf
    return math.inf if len(values) > 1 and values[0] * values[-1] > (ROUNDING * size) ** 2 else size
