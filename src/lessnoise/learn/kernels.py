"""Sums of clipped gradients on a GPU in one pass over memory: the whole numbers of :mod:`lessnoise.learn.gradients`."""
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import triton
import triton.language as tl

RECORDS, COLUMNS = 32, 128  # of a tile
STRETCH = 1 << 14  # entries of a record whose squares one program adds up


@triton.jit
def clipped_sum(
    rows, factors, finite, out, records, width, down, along,
    tile_records: tl.constexpr, tile_columns: tl.constexpr,
):  # fmt: skip
    """out[c] = the sum over records of rows[r, c] factors[r], cut towards zero; records that are not finite add 0.

    ``down`` and ``along`` are the strides of the rows; products are made in the type of the factors.
    """
    column = tl.program_id(0).to(tl.int64) * tile_columns + tl.arange(0, tile_columns)
    total = tl.zeros((tile_columns,), dtype=tl.int64)
    for start in range(0, records, tile_records):
        record = start + tl.arange(0, tile_records).to(tl.int64)
        there = record < records
        both = there[:, None] & (column < width)[None, :]
        factor = tl.load(factors + record, mask=there, other=0.0)
        some = tl.load(rows + record[:, None] * down + column[None, :] * along, mask=both, other=0.0)
        fine = tl.load(finite + record, mask=there, other=0)
        scaled = some.to(factor.dtype) * factor[:, None]
        whole = tl.where(fine[:, None] != 0, scaled, 0.0).to(tl.int32)  # less than 2^23; 32 of them fit
        total += tl.sum(whole, axis=0).to(tl.int64)
    tl.store(out + column, total.to(tl.float64), mask=column < width)


@triton.jit
def squares(rows, out, width, stretches, down, along, stretch: tl.constexpr, tile: tl.constexpr):
    """out[r, s] = the sum of squares of stretch s of record r, in doubles."""
    record, place = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    total = tl.zeros((tile,), dtype=tl.float64)
    for start in range(0, stretch, tile):
        column = place * stretch + start + tl.arange(0, tile)
        some = tl.load(rows + record * down + column * along, mask=column < width, other=0.0).to(tl.float64)
        total += some * some
    tl.store(out + record * stretches + place, tl.sum(total, axis=0))
