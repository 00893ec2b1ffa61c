"""Gradients: sums of clipped ones, and noise for them that is drawn where they are.

A record moves a sum by no more than the clipping norm, in floating point as on paper.
Each record's gradient is clipped, then cut to whole multiples of a power of two, towards zero, which makes it no
longer. Sums of such whole numbers are exact, in whatever order: a record moves the sum by its own clipped gradient
and by nothing else.

The noise is from torch's generator, for experiments. Its laws are those of the engine, but drawn in floating point from
a generator that is not cryptographic (Philox on a GPU, a Mersenne Twister on a CPU): whoever knows its state knows the
noise.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import torch

from lessnoise.errors import InvalidInput
from lessnoise.mechanism import Law, Radial, Shells
from lessnoise.noise import has_kernels, on_device_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lessnoise.learn.ghost import Layer

RESERVE = 2.0**-12  # of the clipping norm: for products in float32, and kernels that round differently in other batches
_BITS = 22  # the norm is less than 2^23 units: int32 holds the sum of 256 records, float64 that of 2^30
_RECORDS = 256
MOST_SUMMED = 2.0**30  # records: a sum is at most this times the clipping norm
_ENTRIES = {"cpu": 2**18, "cuda": 2**24}  # worked on at a time
_TOGETHER = {"cpu": 2**20, "cuda": 2**26}  # entries up to which all parameters are put into one table


def clipped_sums(gradients: Sequence[torch.Tensor | Layer], clip: float) -> list[torch.Tensor]:
    """For each parameter the sum over records (the first axis) of their gradients, clipped together; float64.

    A record whose gradient is not finite adds nothing. Gradients that are computed twice, once for their norms and
    once for their sums, are refused if they became longer in between than what is held back for rounding.

    >>> sums = clipped_sums([torch.tensor([[3e30], [0.25], [math.inf]])], 1.0)
    >>> 0.999 < float(sums[0]) - 0.25 < 1
    True
    """
    flat = [g.reshape(len(g), math.prod(g.shape[1:])) if isinstance(g, torch.Tensor) else g for g in gradients]
    if len(flat) > 1 and _is_small(flat):
        widths = [rows.shape[1] for rows in flat]
        (total,) = clipped_sums([torch.cat(flat, dim=1)], clip)  # type: ignore[arg-type]
        return [part.view(g.shape[1:]) for part, g in zip(total.split(widths), gradients, strict=True)]
    norms = torch.stack([_norms(rows).to(flat[0].device) for rows in flat]).norm(dim=0)
    finite = norms.isfinite()
    unit = math.ldexp(1.0, math.frexp(clip)[1] - 1 - _BITS)
    factors = (clip * (1.0 - RESERVE) / norms).clamp(max=1.0).where(finite, 0.0) / unit
    narrow = 1e-20 < clip < 1e20  # else such units are out of float32's range
    squares = torch.zeros_like(norms)  # of what was summed, in units
    sums = [_summed(rows, factors, finite, squares, narrow=narrow) for rows in flat]
    again = not all(isinstance(rows, torch.Tensor) for rows in flat)
    if again and len(squares) and float(squares.max()) > (clip * (1.0 - RESERVE / 2.0) / unit) ** 2:
        raise InvalidInput(
            "gradients of one record came out differently when computed again, so that no clipping norm holds for "
            'them: pass grad_sample_mode="hooks", which computes them once.'
        )
    return [(total * unit).view(g.shape[1:]) for total, g in zip(sums, gradients, strict=True)]


def _is_small(flat: Sequence[torch.Tensor | Layer]) -> bool:
    """Whether many small tables are quicker as one: of one type, on one device."""
    first = flat[0]
    if not all(isinstance(rows, torch.Tensor) for rows in flat):
        return False
    kinds = {(rows.dtype, rows.device) for rows in flat}  # type: ignore[union-attr]
    entries = sum(rows.shape[1] for rows in flat) * len(first)
    return len(kinds) == 1 and entries <= _TOGETHER.get(first.device.type, 0)


def _norms(rows: torch.Tensor | Layer) -> torch.Tensor:
    if isinstance(rows, torch.Tensor) and has_kernels(rows.device) and rows.numel():
        return norms_by_kernel(rows)
    parts = [torch.linalg.vector_norm(rows[part], dim=1, dtype=torch.float64) for part in _parts(rows)]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64, device=rows.device)


def _summed(
    rows: torch.Tensor | Layer, factors: torch.Tensor, finite: torch.Tensor, squares: torch.Tensor, *, narrow: bool
) -> torch.Tensor:
    """The sum in units; the squared lengths of what is computed again are added to those of other layers."""
    factors, finite = factors.to(rows.device), finite.to(rows.device)
    if isinstance(rows, torch.Tensor) and has_kernels(rows.device) and len(rows):
        return summed_by_kernel(rows, factors.to(_width(rows, narrow)), finite)
    total = torch.zeros(rows.shape[1], dtype=torch.float64, device=rows.device)
    for part in _parts(rows):
        some = rows[part]
        width = _width(some, narrow)
        scaled = some.to(width) * factors[part].to(width).unsqueeze(1)
        if not finite[part].all():
            scaled = scaled.where(finite[part].unsqueeze(1), 0.0)
        whole = scaled.to(torch.int32)  # the conversion cuts towards zero
        total += whole.sum(0, dtype=torch.int32)
        if not isinstance(rows, torch.Tensor):
            squares[part] += torch.linalg.vector_norm(whole.double(), dim=1).square().to(squares.device)
    return total


def _width(rows: torch.Tensor, narrow: bool) -> torch.dtype:
    """The type in which products are made."""
    return torch.float32 if narrow and rows.dtype != torch.float64 else torch.float64


def norms_by_kernel(rows: torch.Tensor) -> torch.Tensor:
    """The records' norms in one pass over memory, without a copy in doubles."""
    from lessnoise.learn import kernels

    stretches = -(-rows.shape[1] // kernels.STRETCH)
    parts = torch.empty(len(rows), stretches, dtype=torch.float64, device=rows.device)
    with on_device_of(rows):
        kernels.squares[parts.shape](
            rows, parts, rows.shape[1], stretches, *rows.stride(), stretch=kernels.STRETCH, tile=1024
        )
    return parts.sum(1).sqrt()


def summed_by_kernel(rows: torch.Tensor, factors: torch.Tensor, finite: torch.Tensor) -> torch.Tensor:
    """The same sum in one pass over memory."""
    from lessnoise.learn import kernels

    total = torch.empty(rows.shape[1], dtype=torch.float64, device=rows.device)
    with on_device_of(rows):
        kernels.clipped_sum[(-(-rows.shape[1] // kernels.COLUMNS),)](
            rows,
            factors,
            finite.to(torch.int8),
            total,
            *rows.shape,
            *rows.stride(),
            tile_records=kernels.RECORDS,
            tile_columns=kernels.COLUMNS,
        )
    return total


def _parts(rows: torch.Tensor | Layer) -> Iterator[slice]:
    """A few records at a time: copies that fit into a processor's cache take a tenth of the time."""
    step = min(_RECORDS, max(1, _ENTRIES.get(rows.device.type, 2**20) // max(1, rows.shape[1])))
    return (slice(start, start + step) for start in range(0, len(rows), step))


@functools.singledispatch
def draw(law: Law, dimension: int, device: torch.device, generator: torch.Generator | None = None) -> torch.Tensor:
    """One draw of ``dimension`` entries, float32.

    >>> draw(Radial(3, 2, 1.0), 3, torch.device("cpu")).shape
    torch.Size([3])
    """
    raise InvalidInput(
        f"noise kind={law.kind!r} cannot be drawn by torch's generator: leave secure_mode on, and the engine draws it."
    )


@draw.register
def _(law: Radial, dimension: int, device: torch.device, generator: torch.Generator | None = None) -> torch.Tensor:
    if law.is_gaussian(dimension):
        normal = torch.randn(dimension, device=device, generator=generator)
        return normal.mul_(law.scale / 2.0**0.5)
    # (R/scale)^p is Gamma(k/p) distributed.
    shape = torch.tensor(law.k / law.p, dtype=torch.float64, device=device)
    return _isotropic(
        law.scale * torch._standard_gamma(shape, generator=generator) ** (1.0 / law.p), dimension, generator
    )


@draw.register
def _(law: Shells, dimension: int, device: torch.device, generator: torch.Generator | None = None) -> torch.Tensor:
    edges = torch.tensor(law.edges, dtype=torch.float64, device=device)
    weights = torch.tensor(law.probabilities, dtype=torch.float64, device=device)
    shell = torch.multinomial(weights, 1, generator=generator)[0]
    inner, outer = edges[shell], edges[shell + 1]
    share = torch.rand((), dtype=torch.float64, device=device, generator=generator)
    # r^M is uniform inside a shell.
    start = (inner / outer) ** dimension
    return _isotropic(outer * (start + share * (1.0 - start)) ** (1.0 / dimension), dimension, generator)


def _isotropic(length: torch.Tensor, dimension: int, generator: torch.Generator | None) -> torch.Tensor:
    """A vector of this length, one float64, in a direction that is uniform."""
    direction = torch.randn(dimension, device=length.device, generator=generator)
    return direction.mul_((length / direction.double().norm()).float())
