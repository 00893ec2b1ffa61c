"""The engine in Triton: a program does one tile, from words to rounded values. A tile with a doubt is left as it was.

Every formula is that of :mod:`lessnoise.noise.device.variables`. Doubles are passed as the integers with their bits,
since Triton takes Python's floats for 32-bit ones; the key is an argument too and never lies in the device's memory.
"""
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import triton
import triton.language as tl

from lessnoise.noise.device import stream, variables

_LANES = tl.constexpr(stream.LANES)
_TILE = tl.constexpr(stream.TILE)
_TOP = tl.constexpr(variables.TOP)
_SMALL = tl.constexpr(variables.SMALL)
_LN2 = tl.constexpr(variables.LN2)
_ROOT2 = tl.constexpr(variables.ROOT2)
_UNIT = tl.constexpr(2.0**-64)
_A = tl.constexpr(variables.ARTANH)
_C = tl.constexpr(variables.COS)
_S = tl.constexpr(variables.SIN)
_FIXED = tl.constexpr(2.0**44)

_NORMALS, _LAPLACES = tl.constexpr(0), tl.constexpr(1)


@triton.jit
def _quarter(a, b, c, d):
    """A quarter round (RFC 8439, section 2.1)."""
    a = a + b
    d = d ^ a
    d = (d << 16) | (d >> 16)
    c = c + d
    b = b ^ c
    b = (b << 12) | (b >> 20)
    a = a + b
    d = d ^ a
    d = (d << 8) | (d >> 24)
    c = c + d
    b = b ^ c
    b = (b << 7) | (b >> 25)
    return a, b, c, d


@triton.jit
def _joined(low, high):
    return low.to(tl.uint64) | (high.to(tl.uint64) << 32)


@triton.jit
def _words(counter, k0, k1, k2, k3, k4, k5, k6, k7, level, step, purpose):
    """The eight words of each block (RFC 8439, section 2.3)."""
    zero = counter ^ counter
    c0, c1, c2, c3 = zero + 0x61707865, zero + 0x3320646E, zero + 0x79622D32, zero + 0x6B206574
    e0, e1, e2, e3 = zero + k0.to(tl.uint32), zero + k1.to(tl.uint32), zero + k2.to(tl.uint32), zero + k3.to(tl.uint32)
    e4, e5, e6, e7 = zero + k4.to(tl.uint32), zero + k5.to(tl.uint32), zero + k6.to(tl.uint32), zero + k7.to(tl.uint32)
    n0, n1, n2 = zero + level.to(tl.uint32), zero + step.to(tl.uint32), zero + purpose.to(tl.uint32)
    x0, x1, x2, x3, x4, x5, x6, x7 = c0, c1, c2, c3, e0, e1, e2, e3
    x8, x9, x10, x11, x12, x13, x14, x15 = e4, e5, e6, e7, counter, n0, n1, n2
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    return (
        _joined(x0 + c0, x1 + c1),
        _joined(x2 + c2, x3 + c3),
        _joined(x4 + e0, x5 + e1),
        _joined(x6 + e2, x7 + e3),
        _joined(x8 + e4, x9 + e5),
        _joined(x10 + e6, x11 + e7),
        _joined(x12 + counter, x13 + n0),
        _joined(x14 + n1, x15 + n2),
    )


@triton.jit
def _double(bits):
    return bits.to(tl.int64).to(tl.float64, bitcast=True)


@triton.jit
def _exponential(word):
    """E, whether its error is the coarse one, and whether it is left to exact arithmetic."""
    high = (word >> 32).to(tl.int64)
    top = high >= _TOP
    d = (~word + 1).to(tl.float64) * _UNIT
    bits = word.to(tl.float64).to(tl.int64, bitcast=True)
    exponent = (bits >> 52) - 1023
    m = ((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).to(tl.float64, bitcast=True)
    large = m > _ROOT2
    m = tl.where(large, 0.5 * m, m)
    k = tl.where(top, 0, 64 - exponent - large.to(tl.int64)).to(tl.float64)
    t = tl.where(top, -d, m - 1.0) / tl.where(top, 2.0 - d, m + 1.0)
    s = t * t
    p = ((((_A[10] * s + _A[9]) * s + _A[8]) * s + _A[7]) * s + _A[6]) * s + _A[5]
    p = ((((p * s + _A[4]) * s + _A[3]) * s + _A[2]) * s + _A[1]) * s + _A[0]
    return k * _LN2 - 2.0 * t * p, high < _SMALL, (high == 0) | (high == 0xFFFFFFFF)


@triton.jit
def _direction(word):
    """cos and sin of 2 pi A."""
    octant = (word >> 61).to(tl.int32)
    odd = (octant & 1) == 1
    rest = word << 3
    f = tl.where(odd, ~rest, rest).to(tl.float64) * _UNIT
    s = f * f
    c = (((_C[8] * s + _C[7]) * s + _C[6]) * s + _C[5]) * s + _C[4]
    c = (((c * s + _C[3]) * s + _C[2]) * s + _C[1]) * s + _C[0]
    n = (((_S[8] * s + _S[7]) * s + _S[6]) * s + _S[5]) * s + _S[4]
    n = ((((n * s + _S[3]) * s + _S[2]) * s + _S[1]) * s + _S[0]) * f
    x, y = tl.where(odd, n, c), tl.where(odd, c, n)
    turned = (octant & 2) != 0
    x, y = tl.where(turned, -y, x), tl.where(turned, x, y)
    back = tl.where((octant & 4) != 0, -1.0, 1.0).to(tl.float64)
    return x * back, y * back


@triton.jit
def _pair(first, second):
    """Two normals."""
    energy, coarse, left = _exponential(first)
    radius = tl.sqrt(2.0 * energy)
    x, y = _direction(second)
    return radius * x, radius * y, coarse, left


@triton.jit
def _eight(counter, k0, k1, k2, k3, k4, k5, k6, k7, step, kind: tl.constexpr):
    """Standard variables of eight words, and for each pair of them whether it is coarse or left."""
    nothing = step & 0
    w0, w1, w2, w3, w4, w5, w6, w7 = _words(counter, k0, k1, k2, k3, k4, k5, k6, k7, nothing, step, nothing)
    if kind == _NORMALS:
        x0, x1, a0, b0 = _pair(w0, w1)
        x2, x3, a1, b1 = _pair(w2, w3)
        x4, x5, a2, b2 = _pair(w4, w5)
        x6, x7, a3, b3 = _pair(w6, w7)
    else:
        x0, x1, a0, b0 = _signs(w0, w1)
        x2, x3, a1, b1 = _signs(w2, w3)
        x4, x5, a2, b2 = _signs(w4, w5)
        x6, x7, a3, b3 = _signs(w6, w7)
    return x0, x1, x2, x3, x4, x5, x6, x7, a0, a1, a2, a3, b0, b1, b2, b3


@triton.jit
def _signs(first, second):
    """Two of Laplace's variables."""
    x, a, c = _exponential((first >> 1) << 1)
    y, b, d = _exponential((second >> 1) << 1)
    return tl.where((first & 1) != 0, -x, x), tl.where((second & 1) != 0, -y, y), a | b, c | d


@triton.jit
def _cell(value, x, coarse, left, place, count, factor, shift, whole, near, rough, slope, inverse):
    """The number of the cell of value + shift + factor x, and whether floats do not tell."""
    v = tl.load(value + place, mask=place < count, other=0).to(tl.float64)
    cells = v * inverse
    integer = tl.floor(cells + 0.5)
    move = factor * x
    t = ((cells - integer) + shift) + move
    steps = tl.floor(t + 0.5)
    sure = tl.abs(t - steps) + slope * tl.abs(move) < 0.5 - tl.where(coarse, rough, near)
    return integer + (steps + whole), (left | (sure == 0)) & (place < count)


@triton.jit
def _put(out, cells, place, end, step):
    """Store; never -0.0, since the sign of a zero would tell the value's."""
    rounded = cells * step
    tl.store(out + place, tl.where(rounded == 0.0, 0.0, rounded).to(out.dtype.element_ty), mask=place < end)


_KEYS = ("k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7")
_LINE = ("factor", "shift", "whole", "near", "rough", "slope", "inverse", "cell")


@triton.jit(do_not_specialize=["count", "step", "rows", *_KEYS, *_LINE])
def add(
    value, out, flags, count, k0, k1, k2, k3, k4, k5, k6, k7, step, factor, shift, whole, near, rough, slope, inverse,
    cell, steps, weights, rows, kind: tl.constexpr, across: tl.constexpr,
):  # fmt: skip
    """out = value + shift + factor x on the grid, for one tile; its flag tells whether it was left as it was.

    With ``across``, x is the sum of weights[r] times the normals of step steps[r].
    """
    tile = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, _LANES)
    counter = (tile * _LANES + lanes).to(tl.uint32)
    if across:
        zero = lanes.to(tl.float64) * 0.0
        none = lanes < 0
        x0, x1, x2, x3, x4, x5, x6, x7 = zero, zero, zero, zero, zero, zero, zero, zero
        a0, a1, a2, a3, b0, b1, b2, b3 = none, none, none, none, none, none, none, none
        for r in range(rows):
            weight = tl.load(weights + r)
            y0, y1, y2, y3, y4, y5, y6, y7, c0, c1, c2, c3, d0, d1, d2, d3 = _eight(
                counter, k0, k1, k2, k3, k4, k5, k6, k7, tl.load(steps + r), kind
            )
            x0, x1, x2, x3 = x0 + weight * y0, x1 + weight * y1, x2 + weight * y2, x3 + weight * y3
            x4, x5, x6, x7 = x4 + weight * y4, x5 + weight * y5, x6 + weight * y6, x7 + weight * y7
            a0, a1, a2, a3 = a0 | c0, a1 | c1, a2 | c2, a3 | c3
            b0, b1, b2, b3 = b0 | d0, b1 | d1, b2 | d2, b3 | d3
    else:
        x0, x1, x2, x3, x4, x5, x6, x7, a0, a1, a2, a3, b0, b1, b2, b3 = _eight(
            counter, k0, k1, k2, k3, k4, k5, k6, k7, step, kind
        )
    f, h, w, n, c = _double(factor), _double(shift), _double(whole), _double(near), _double(rough)
    s, i, g = _double(slope), _double(inverse), _double(cell)
    p = tile * _TILE + lanes
    x0, d0 = _cell(value, x0, a0, b0, p, count, f, h, w, n, c, s, i)
    x1, d1 = _cell(value, x1, a0, b0, p + _LANES, count, f, h, w, n, c, s, i)
    x2, d2 = _cell(value, x2, a1, b1, p + 2 * _LANES, count, f, h, w, n, c, s, i)
    x3, d3 = _cell(value, x3, a1, b1, p + 3 * _LANES, count, f, h, w, n, c, s, i)
    x4, d4 = _cell(value, x4, a2, b2, p + 4 * _LANES, count, f, h, w, n, c, s, i)
    x5, d5 = _cell(value, x5, a2, b2, p + 5 * _LANES, count, f, h, w, n, c, s, i)
    x6, d6 = _cell(value, x6, a3, b3, p + 6 * _LANES, count, f, h, w, n, c, s, i)
    x7, d7 = _cell(value, x7, a3, b3, p + 7 * _LANES, count, f, h, w, n, c, s, i)
    doubt = tl.max((d0 | d1 | d2 | d3 | d4 | d5 | d6 | d7).to(tl.int32), axis=0)
    tl.store(flags + tile, doubt.to(tl.int8))
    end = tl.where(doubt == 0, count, 0).to(tl.int64)  # a tile with a doubt is left as it was
    _put(out, x0, p, end, g)
    _put(out, x1, p + _LANES, end, g)
    _put(out, x2, p + 2 * _LANES, end, g)
    _put(out, x3, p + 3 * _LANES, end, g)
    _put(out, x4, p + 4 * _LANES, end, g)
    _put(out, x5, p + 5 * _LANES, end, g)
    _put(out, x6, p + 6 * _LANES, end, g)
    _put(out, x7, p + 7 * _LANES, end, g)


@triton.jit
def _square(first, second, place, count):
    """x^2 + y^2 = 2 E of a pair in units of 2^-44, or x^2 where y is beyond the end; coarse, left."""
    energy, coarse, left = _exponential(first)
    x, _ = _direction(second)
    both, one = place + _LANES < count, place < count
    square = tl.where(both, 2.0 * energy, tl.where(one, 2.0 * energy * (x * x), 0.0))
    return tl.floor(square * _FIXED + 0.5).to(tl.int64), coarse & one, left & one


@triton.jit(do_not_specialize=["count", *_KEYS])
def squares(sums, marks, count, k0, k1, k2, k3, k4, k5, k6, k7):
    """For each tile the sum of squares, in whole units of 2^-44, and how many pairs are coarse, 2^20 more if left."""
    tile = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, _LANES)
    counter = (tile * _LANES + lanes).to(tl.uint32)
    nothing = k0 & 0
    w0, w1, w2, w3, w4, w5, w6, w7 = _words(counter, k0, k1, k2, k3, k4, k5, k6, k7, nothing, nothing, nothing)
    p = tile * _TILE + lanes
    s0, a0, b0 = _square(w0, w1, p, count)
    s1, a1, b1 = _square(w2, w3, p + 2 * _LANES, count)
    s2, a2, b2 = _square(w4, w5, p + 4 * _LANES, count)
    s3, a3, b3 = _square(w6, w7, p + 6 * _LANES, count)
    tl.store(sums + tile, tl.sum(s0 + s1 + s2 + s3, axis=0))
    coarse = a0.to(tl.int32) + a1.to(tl.int32) + a2.to(tl.int32) + a3.to(tl.int32)
    left = (b0 | b1 | b2 | b3).to(tl.int32)
    tl.store(marks + tile, (tl.sum(coarse, axis=0) + (tl.max(left, axis=0) << 20)).to(tl.int64))


@triton.jit
def _integer(value, word, first, last, size, place, count, rounds: tl.constexpr):
    """The value plus a signed integer from a table, and whether its 63 digits do not tell."""
    digits = (word >> 1).to(tl.int64)
    low = digits * 0
    high = low + size
    for _ in tl.static_range(rounds):
        middle = (low + high) >> 1
        open_ = low < high
        above = tl.load(last + middle, mask=open_, other=0) < digits
        low = tl.where(open_ & above, middle + 1, low)
        high = tl.where(open_ & (above == 0), middle, high)
    beyond = low >= size
    doubt = beyond | (tl.load(first + low, mask=beyond == 0, other=0) <= digits)
    v = tl.load(value + place, mask=place < count, other=0).to(tl.int64)
    return v + tl.where((word & 1) != 0, -low, low), doubt & (place < count)


@triton.jit
def _put_integer(out, x, place, end):
    tl.store(out + place, x, mask=place < end)


@triton.jit(do_not_specialize=["count", "size", *_KEYS])
def add_integers(
    value, out, flags, count, k0, k1, k2, k3, k4, k5, k6, k7, first, last, size, rounds: tl.constexpr
):  # fmt: skip
    """out = value + integers of a table, for one tile; its flag tells whether it was left as it was."""
    tile = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, _LANES)
    counter = (tile * _LANES + lanes).to(tl.uint32)
    nothing = k0 & 0
    w0, w1, w2, w3, w4, w5, w6, w7 = _words(counter, k0, k1, k2, k3, k4, k5, k6, k7, nothing, nothing, nothing)
    p = tile * _TILE + lanes
    x0, d0 = _integer(value, w0, first, last, size, p, count, rounds)
    x1, d1 = _integer(value, w1, first, last, size, p + _LANES, count, rounds)
    x2, d2 = _integer(value, w2, first, last, size, p + 2 * _LANES, count, rounds)
    x3, d3 = _integer(value, w3, first, last, size, p + 3 * _LANES, count, rounds)
    x4, d4 = _integer(value, w4, first, last, size, p + 4 * _LANES, count, rounds)
    x5, d5 = _integer(value, w5, first, last, size, p + 5 * _LANES, count, rounds)
    x6, d6 = _integer(value, w6, first, last, size, p + 6 * _LANES, count, rounds)
    x7, d7 = _integer(value, w7, first, last, size, p + 7 * _LANES, count, rounds)
    doubt = tl.max((d0 | d1 | d2 | d3 | d4 | d5 | d6 | d7).to(tl.int32), axis=0)
    tl.store(flags + tile, doubt.to(tl.int8))
    end = tl.where(doubt == 0, count, 0).to(tl.int64)  # a tile with a doubt is left as it was
    _put_integer(out, x0, p, end)
    _put_integer(out, x1, p + _LANES, end)
    _put_integer(out, x2, p + 2 * _LANES, end)
    _put_integer(out, x3, p + 3 * _LANES, end)
    _put_integer(out, x4, p + 4 * _LANES, end)
    _put_integer(out, x5, p + 5 * _LANES, end)
    _put_integer(out, x6, p + 6 * _LANES, end)
    _put_integer(out, x7, p + 7 * _LANES, end)


@triton.jit
def _put_word(out, word, place, count):
    tl.store(out + place, word.to(tl.int64, bitcast=True), mask=place < count)


@triton.jit(do_not_specialize=["count", "level", "step", "purpose", *_KEYS])
def words(out, count, k0, k1, k2, k3, k4, k5, k6, k7, level, step, purpose):
    """The words themselves, as signed integers: for known answers, and for samples."""
    tile = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, _LANES)
    counter = (tile * _LANES + lanes).to(tl.uint32)
    w0, w1, w2, w3, w4, w5, w6, w7 = _words(counter, k0, k1, k2, k3, k4, k5, k6, k7, level, step, purpose)
    p = tile * _TILE + lanes
    _put_word(out, w0, p, count)
    _put_word(out, w1, p + _LANES, count)
    _put_word(out, w2, p + 2 * _LANES, count)
    _put_word(out, w3, p + 3 * _LANES, count)
    _put_word(out, w4, p + 4 * _LANES, count)
    _put_word(out, w5, p + 5 * _LANES, count)
    _put_word(out, w6, p + 6 * _LANES, count)
    _put_word(out, w7, p + 7 * _LANES, count)


@triton.jit
def _put_chosen(out, word, place, count, limit):
    chosen = (word >> 1).to(tl.int64) < limit
    tl.store(out + place, chosen.to(tl.int8), mask=place < count)


@triton.jit(do_not_specialize=["count", "step", "purpose", "limit", *_KEYS])
def sample(out, count, k0, k1, k2, k3, k4, k5, k6, k7, step, purpose, limit):
    """1 where the first 63 bits of a word are below the limit, else 0."""
    tile = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, _LANES)
    counter = (tile * _LANES + lanes).to(tl.uint32)
    nothing = step & 0
    w0, w1, w2, w3, w4, w5, w6, w7 = _words(counter, k0, k1, k2, k3, k4, k5, k6, k7, nothing, step, purpose)
    p = tile * _TILE + lanes
    _put_chosen(out, w0, p, count, limit)
    _put_chosen(out, w1, p + _LANES, count, limit)
    _put_chosen(out, w2, p + 2 * _LANES, count, limit)
    _put_chosen(out, w3, p + 3 * _LANES, count, limit)
    _put_chosen(out, w4, p + 4 * _LANES, count, limit)
    _put_chosen(out, w5, p + 5 * _LANES, count, limit)
    _put_chosen(out, w6, p + 6 * _LANES, count, limit)
    _put_chosen(out, w7, p + 7 * _LANES, count, limit)


@triton.jit
def operations(left, right, integers, out, count):
    """Quotients, roots, products, sums and conversions of doubles, for the self-test: five stretches of ``count``."""
    place = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    inside = place < count
    a, b = tl.load(left + place, mask=inside, other=1.0), tl.load(right + place, mask=inside, other=1.0)
    whole = tl.load(integers + place, mask=inside, other=1)
    tl.store(out + place, a / b, mask=inside)
    tl.store(out + count + place, tl.sqrt(a), mask=inside)
    tl.store(out + 2 * count + place, a * b, mask=inside)
    tl.store(out + 3 * count + place, a + b, mask=inside)
    tl.store(out + 4 * count + place, whole.to(tl.uint64, bitcast=True).to(tl.float64), mask=inside)
