"""Noise from torch's generator, on the device of the gradients: for experiments.

The laws are those of the engine, but drawn in floating point from a generator that is not cryptographic (Philox on a
GPU, a Mersenne Twister on a CPU): whoever knows its state knows the noise.
"""

from __future__ import annotations

import functools

import torch

from lessnoise.errors import InvalidInput
from lessnoise.mechanism import Law, Radial, Shells


def draw(law: Law, dimension: int, device: torch.device, generator: torch.Generator | None = None) -> torch.Tensor:
    """One draw of ``dimension`` entries, float32.

    >>> draw(Radial(3, 2, 1.0), 3, torch.device("cpu")).shape
    torch.Size([3])
    """
    if isinstance(law, Radial) and law.is_gaussian(dimension):
        normal = torch.randn(dimension, device=device, generator=generator)
        return normal.mul_(law.scale / 2.0**0.5)
    length = radius(law, dimension, device, generator)
    direction = torch.randn(dimension, device=device, generator=generator)
    return direction.mul_((length / direction.double().norm()).float())


@functools.singledispatch
def radius(law: Law, dimension: int, device: torch.device, generator: torch.Generator | None) -> torch.Tensor:
    """The length of isotropic noise, one float64."""
    raise InvalidInput(
        f"noise kind={law.kind!r} cannot be drawn by torch's generator: leave secure_mode on, and the engine draws it."
    )


@radius.register(Radial)
def _(law: Radial, dimension: int, device: torch.device, generator: torch.Generator | None) -> torch.Tensor:
    # (R/scale)^p is Gamma(k/p) distributed.
    shape = torch.tensor(law.k / law.p, dtype=torch.float64, device=device)
    return law.scale * torch._standard_gamma(shape, generator=generator) ** (1.0 / law.p)


@radius.register(Shells)
def _(law: Shells, dimension: int, device: torch.device, generator: torch.Generator | None) -> torch.Tensor:
    edges = torch.tensor(law.edges, dtype=torch.float64, device=device)
    weights = torch.tensor(law.probabilities, dtype=torch.float64, device=device)
    shell = torch.multinomial(weights, 1, generator=generator)[0]
    inner, outer = edges[shell], edges[shell + 1]
    share = torch.rand((), dtype=torch.float64, device=device, generator=generator)
    # r^M is uniform inside a shell.
    start = (inner / outer) ** dimension
    return outer * (start + share * (1.0 - start)) ** (1.0 / dimension)
