"""Sums of clipped gradients that one record moves by no more than the clipping norm, in floating point as on paper.

Each record's gradient is clipped, then cut to whole multiples of a power of two, towards zero, which makes it no
longer. Sums of such numbers are exact in float64, in whatever order: a record moves the sum by its own clipped gradient
and by nothing else.
"""

from __future__ import annotations

import math

import torch

RESERVE = 2.0**-12  # of the clipping norm: for products in float32, and kernels that round differently for other batches
_BITS = 23  # the norm's own digits in such units: float32 holds them, and float64 the sum of 2^29 records
_ENTRIES = 2**20  # worked on at a time


def clipped_sums(gradients: list[torch.Tensor], clip: float) -> list[torch.Tensor]:
    """For each parameter the sum over records (the first axis) of their gradients, clipped together; float64.

    A record whose gradient is not finite adds nothing.

    >>> sums = clipped_sums([torch.tensor([[3e30], [0.25], [math.inf]])], 1.0)
    >>> 0.999 < float(sums[0]) - 0.25 < 1
    True
    """
    device = gradients[0].device
    squares = [_squared_norms(g) for g in gradients]
    norms = torch.stack([square.to(device) for square in squares]).sum(0).sqrt()
    finite = norms.isfinite()
    unit = math.ldexp(1.0, math.frexp(clip)[1] - 1 - _BITS)
    factors = (clip * (1.0 - RESERVE) / norms).clamp(max=1.0).where(finite, 0.0) / unit
    narrow = 1e-20 < clip < 1e20  # else such units are out of float32's range
    return [_summed(g, factors.to(g.device), finite.to(g.device), narrow=narrow).mul_(unit) for g in gradients]


def _squared_norms(gradient: torch.Tensor) -> torch.Tensor:
    rows = gradient.reshape(len(gradient), math.prod(gradient.shape[1:]))
    return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64).square()


def _summed(gradient: torch.Tensor, factors: torch.Tensor, finite: torch.Tensor, *, narrow: bool) -> torch.Tensor:
    """The sum in units."""
    total = torch.zeros(gradient.shape[1:], dtype=torch.float64, device=gradient.device)
    width = torch.float32 if narrow and gradient.dtype != torch.float64 else torch.float64
    records = max(1, _ENTRIES // max(1, total.numel()))
    ones = (1,) * total.dim()
    for start in range(0, len(gradient), records):
        part = slice(start, start + records)
        scaled = gradient[part].to(width) * factors[part].to(width).view(-1, *ones)
        if not finite[part].all():
            scaled = scaled.where(finite[part].view(-1, *ones), 0.0)
        total += scaled.trunc_().sum(0, dtype=torch.float64)
    return total
