"""What an audit asks of noise whose density depends on the norm of a body, and of correlated isotropic noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.audit.laws import distance, draw_many, log_density_ratio, worst_of_size
from lessnoise.audit.outputs import Outputs
from lessnoise.mechanism import CorrelatedRadial, NormRadial, NormStaircase, gauge, steps, worst_count, worst_entries

if TYPE_CHECKING:
    from lessnoise._common import Array

    BodyLaw = NormRadial | NormStaircase
    Shape = tuple[int, ...]


def _stretch(law: BodyLaw) -> Array | float:
    return np.array(law.factors) if law.factors else 1.0


@draw_many.register(NormRadial)
@draw_many.register(NormStaircase)
def _(law: BodyLaw, shape: Shape, count: int, rng: np.random.Generator) -> Array:
    dimension = math.prod(shape)
    if isinstance(law, NormRadial):
        radii = law.scale * rng.standard_gamma((dimension + law.power) / law.power, count) ** (1.0 / law.power)
    else:
        places, chances = steps(law, dimension)
        radii = rng.choice(places, count, p=chances)
    vectors = uniform_in(law.body, dimension, count, rng) * radii[:, np.newaxis] * _stretch(law)
    return vectors.reshape(count, *shape)


def uniform_in(body: str, dimension: int, count: int, rng: np.random.Generator) -> Array:
    """Uniform points of the body, one in each row."""
    if body == "cube":
        return rng.uniform(-1.0, 1.0, (count, dimension))
    places = rng.random((count, dimension + 1))
    places[np.arange(count), rng.integers(dimension + 1, size=count)] = 0.0
    return places[:, 1:] - places[:, :1]


@log_density_ratio.register(NormRadial)
@log_density_ratio.register(NormStaircase)
def _(law: BodyLaw, outputs: Outputs) -> Array:
    near = gauge(law.body, outputs.noise / _stretch(law))
    far = gauge(law.body, (outputs.noise - outputs.shift) / _stretch(law))
    if isinstance(law, NormRadial):
        return (far / law.scale) ** law.power - (near / law.scale) ** law.power
    crossed = [np.maximum(np.ceil(norm / law.width - law.share), 0.0) for norm in (near, far)]
    ratio: Array = law.rate * (crossed[1] - crossed[0])
    return ratio


@worst_of_size.register(NormRadial)
@worst_of_size.register(NormStaircase)
def _(law: BodyLaw, shape: Shape, sensitivity: float) -> Array:
    shift = np.zeros(shape)
    shift.flat[: worst_entries(law.body, shift.size)] = sensitivity
    if law.factors:
        shift *= np.array(law.factors).reshape(shape)
    return shift


@distance.register(NormRadial)
@distance.register(NormStaircase)
def _(law: BodyLaw, shift: Array) -> float:
    return float(gauge(law.body, shift.ravel() / _stretch(law)))


# Correlated noise: isotropic once the multiple of the sum is taken away.


@draw_many.register(CorrelatedRadial)
def _(law: CorrelatedRadial, shape: Shape, count: int, rng: np.random.Generator) -> Array:
    return _with_sum(draw_many(law.base, shape, count, rng), len(shape), law.common)


@log_density_ratio.register(CorrelatedRadial)
def _(law: CorrelatedRadial, outputs: Outputs) -> Array:
    axes = outputs.value.ndim
    back = -law.common / (1.0 + law.common * outputs.shift.size)  # (I + c 1 1^T)^-1
    turned = [_with_sum(values, axes, back) for values in (outputs.array, outputs.value, outputs.neighbour)]
    return log_density_ratio(law.base, Outputs(*turned))


def _with_sum(values: Array, axes: int, multiple: float) -> Array:
    """Values plus a multiple of their sum over the last axes."""
    result: Array = values + multiple * values.sum(axis=tuple(range(-axes, 0)), keepdims=True)
    return result


@worst_of_size.register(CorrelatedRadial)
def _(law: CorrelatedRadial, shape: Shape, sensitivity: float) -> Array:
    shift = np.zeros(shape)
    shift.flat[: worst_count(law, shift.size)] = sensitivity
    return shift
