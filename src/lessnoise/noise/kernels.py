"""The same block in compiled code. A kernel that meets anything doubtful gives the block up to the reference.

``scratch`` is (x, pending, places, finals, seconds, rounded), ``tables`` is :attr:`Density.tables`, ``line`` is
(factor, shift, whole, near, slope, step): see :mod:`lessnoise.noise.job`.
"""
# ruff: noqa: ANN001, ANN201, ANN202, ANN003
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call, import-untyped"

from __future__ import annotations

import math

import numpy as np
from numba import njit

from lessnoise.noise.ziggurat import LAPLACE, LAYER_BITS, LAYERS, MARGIN, NORMAL, POSITION_BITS, UNIFORM

DONE, DOUBT = 0, 1
_MASK = np.uint64(LAYERS - 1)
_SHIFT = np.int64(LAYER_BITS)
_SMALLEST_TAIL = np.uint64(1 << 50)
_UNIT = 2.0**-64
_POSITION = 2.0**-POSITION_BITS
_FARTHEST = 2.0**10


def _compile(**options):
    """With a cache on disk where there is a place for one: the next process then loads in 0.5 s."""

    def decorate(function):
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # no folder to write to
            return njit(nogil=True, **options)(function)

    return decorate


@_compile()
def _sample(words, available, count, x, scratch, tables):
    """Fill x[:count]; returns (status, number of tail values).

    ``finals`` and ``seconds`` get the word of a value that was drawn again, and the second word of a tail value.
    """
    kind, p, r, slope, heights, ratios, steps, inner = tables
    if kind == UNIFORM:
        for j in range(count):
            x[j] = np.float64(np.int64(words[j]) >> _SHIFT) * _POSITION
        return DONE, 0
    pending, places, finals, seconds = scratch[1], scratch[2], scratch[3], scratch[4]
    failed = 0
    for j in range(count):
        word = words[j]
        layer = word & _MASK
        at = np.float64(np.int64(word) >> _SHIFT) * steps[layer]
        x[j] = at
        pending[failed] = j
        failed += not (abs(at) < inner[layer])
    for i in range(failed):
        places[i] = pending[i]
    tails = 0
    cursor = count
    while failed:
        if cursor + 2 * failed > available:
            return DOUBT, tails
        rejected = 0
        for i in range(failed):
            j = pending[i]
            word = words[places[i]]
            second = words[cursor + i]
            layer = word & _MASK
            at = np.float64(np.int64(word) >> _SHIFT) * steps[layer]
            size = abs(at)
            u = np.float64(second) * _UNIT
            if layer == 0:
                if abs(size - r) <= MARGIN:
                    return DOUBT, tails
                if size < r:
                    continue
                if second < _SMALLEST_TAIL:
                    return DOUBT, tails
                waited = -math.log(u)
                if kind != LAPLACE:
                    waited /= slope
                    if kind == NORMAL:
                        exponent = -0.5 * waited * waited
                    else:
                        exponent = min(max(r**p + slope * waited - (r + waited) ** p, -_FARTHEST), 0.0)
                    gap = math.exp(exponent) - (size - r) * slope
                    if abs(gap) <= MARGIN:
                        return DOUBT, tails
                    if gap < 0.0:
                        pending[rejected] = j
                        rejected += 1
                        continue
                tails += 1
                seconds[j] = cursor + i
                x[j] = math.copysign(r + waited, at)
                continue
            if kind == NORMAL:
                curve = 0.5 * (r * r - size * size)
            elif kind == LAPLACE:
                curve = r - size
            else:
                curve = r**p - size**p
            excess = curve - math.log(heights[layer] + u * ratios[layer])
            if abs(excess) <= MARGIN:
                return DOUBT, tails
            if excess < 0.0:
                pending[rejected] = j
                rejected += 1
        cursor += failed
        failed = 0
        for i in range(rejected):
            j = pending[i]
            word = words[cursor + i]
            layer = word & _MASK
            at = np.float64(np.int64(word) >> _SHIFT) * steps[layer]
            x[j] = at
            finals[j] = cursor + i
            if not (abs(at) < inner[layer]):
                pending[failed] = j
                places[failed] = cursor + i
                failed += 1
        cursor += rejected
    return DONE, tails


@_compile()
def _round(x, unit, values, out, line):
    """out = values + shift + factor x on the grid; ``near + slope |factor x|`` bounds the float error, in cells."""
    factor, shift, whole, near, slope, step = line
    inverse = 1.0 / step
    limit = 0.5 - near
    doubt = False
    for j in range(out.size):
        cells = np.float64(values[j]) * inverse
        integer = np.rint(cells)
        move = factor * (x[j] * unit)
        t = ((cells - integer) + shift) + move
        steps = np.rint(t)
        doubt |= not (abs(t - steps) + slope * abs(move) < limit)
        out[j] = (integer + (steps + whole)) * step + 0.0  # never -0.0: the sign of a zero would tell the value's
    return DOUBT if doubt else DONE


@_compile()
def independent(words, available, count, scratch, tables, values, out, start, line, in_place):
    """Independent coordinates, from words to output in one go.

    In place nothing is written if anything is doubtful: the values are needed again then.
    """
    x = scratch[0]
    status, _ = _sample(words, available, count, x, scratch, tables)
    if status != DONE:
        return status
    part = slice(start, start + count)
    if not in_place:
        return _round(x[:count], 1.0, values[part], out[part], line)
    rounded = scratch[5][:count]
    status = _round(x[:count], 1.0, values[part], rounded, line)
    if status == DONE:
        out[part] = rounded
    return status


@_compile()
def _round_scaled(x, factors, values, out, line):
    """out = values + f (shift + factor x) on the grid, f being the entry's own factor (:meth:`Job.bounds`)."""
    factor, shift, near, slope, blur, largest, step = line
    inverse = 1.0 / step
    doubt = False
    for j in range(out.size):
        cells = np.float64(values[j]) * inverse
        integer = np.rint(cells)
        own = factor * x[j]
        move = factors[j] * (own + shift)
        size = abs(move)
        t = (cells - integer) + move
        steps = np.rint(t)
        error = factors[j] * (near + slope * abs(own)) + (1.0 + size) * 2.0**-50 + blur
        doubt |= not (size < largest and abs(t - steps) + error < 0.5)
        out[j] = (integer + steps) * step + 0.0
    return DOUBT if doubt else DONE


@_compile()
def scaled(words, available, count, scratch, tables, values, out, start, line, in_place, factors):
    """Independent coordinates with factors of their own, as :func:`independent`."""
    x = scratch[0]
    status, _ = _sample(words, available, count, x, scratch, tables)
    if status != DONE:
        return status
    part = slice(start, start + count)
    if not in_place:
        return _round_scaled(x[:count], factors, values[part], out[part], line)
    rounded = scratch[5][:count]
    status = _round_scaled(x[:count], factors, values[part], rounded, line)
    if status == DONE:
        out[part] = rounded
    return status


@_compile(fastmath={"reassoc", "contract"})
def _few_squares(x):
    """At most 32 squares, added in whatever order is fastest: 32 roundings."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * x[j]
    return total


@_compile()
def squares(x):
    """Sum of squares to a relative 2^-48: 32 at a time, then with Knuth's two-sum."""
    total, rest = 0.0, 0.0
    for start in range(0, x.size, 32):
        term = _few_squares(x[start : start + 32])
        after = total + term
        part = after - total
        rest += (total - (after - part)) + (term - part)
        total = after
    return total + rest


@_compile()
def total(x):
    """Sum to 2^-52 of itself and 2^-70 a value, with Knuth's two-sum."""
    found, rest = 0.0, 0.0
    for j in range(x.size):
        after = found + x[j]
        part = after - found
        rest += (found - (after - part)) + (x[j] - part)
        found = after
    return found + rest


@_compile()
def standard(words, available, count, scratch, tables, out, start):
    """Standard variables into out[start:]; returns (status, sum of squares, tail values)."""
    part = out[start : start + count]
    status, tails = _sample(words, available, count, part, scratch, tables)
    return status, squares(part), tails


@_compile()
def fixed(words, available, count, scratch, tables, out, start, unit):
    """The same, kept as 32-bit fixed point in the (float32) output's own memory until the norm is known."""
    x = scratch[0]
    status, tails = _sample(words, available, count, x, scratch, tables)
    part = out[start : start + count]
    for j in range(count):
        part[j] = np.int32(np.rint(x[j] * unit))
    return status, squares(x[:count]), tails


@_compile()
def finish(stored, unit, scratch, values, out, start, count, line):
    """Scale, add and round: the second pass of radial noise. ``stored`` may be the output's own memory."""
    end = start + count
    here, old = scratch[0][:count], stored[start:end]
    for j in range(count):
        here[j] = old[j]
    return _round(here, unit, values[start:end], out[start:end], line)


@_compile()
def _split_product(a, b):
    """a b as a sum of two doubles, exactly (Dekker 1971)."""
    product = a * b
    c = 134217729.0 * a
    high_a = c - (c - a)
    low_a = a - high_a
    c = 134217729.0 * b
    high_b = c - (c - b)
    low_b = b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


@_compile()
def _fine(word, further, widths):
    """(s + theta) X as two doubles, off by less than 2^-48."""
    width = widths[word & _MASK]
    a, b = _split_product(np.float64(np.int64(word) >> _SHIFT), width)
    b += np.float64(further) * _UNIT * width
    high = a + b
    return high, (b - (high - a) if abs(a) >= abs(b) else a - (high - b))


@_compile()
def fine_squares(words, further, count, finals, seconds, widths):
    """Sum of ((s + theta) X)^2 over the values below r, as two doubles: off by 2^-72 of it and count 2^10 at most."""
    total, rest = 0.0, 0.0
    for j in range(count):
        if seconds[j] >= 0:
            continue
        high, low = _fine(words[finals[j]], further[finals[j]], widths)
        term, more = _split_product(high, high)
        after = total + term
        part = after - total
        rest += ((total - (after - part)) + (term - part)) + (more + 2.0 * high * low)
        total = after
    return total, rest


@_compile()
def fine_sums(words, further, count, finals, seconds, widths):
    """Sum of (s + theta) X over the values of a block below r, as two doubles: off by less than 2^-7.

    The total stays below 2^70, so a two-sum leaves 2^17 at most and ``rest`` stays below 2^31; each of 2^14 values
    rounds it by 2^-22, and is itself off by 2^-48.
    """
    total, rest = 0.0, 0.0
    for j in range(count):
        if seconds[j] >= 0:
            continue
        term, low = _fine(words[finals[j]], further[finals[j]], widths)
        after = total + term
        part = after - total
        rest += ((total - (after - part)) + (term - part)) + low
        total = after
    return total, rest


@_compile()
def fine_dots(words, further, count, finals, seconds, widths, start, left, right, sums):
    """Add left_k ((s + theta) X)_kl right_l over the values below r of a block, for each row of left and right.

    ``left`` and ``right`` have high and low parts; entry j of the block is number ``start`` + j of the matrix. Every
    product and sum of pairs is within a relative 2^-100.
    """
    columns = right.shape[2]
    for j in range(count):
        if seconds[j] >= 0:
            continue
        high, low = _fine(words[finals[j]], further[finals[j]], widths)
        k, col = divmod(start + j, columns)
        for d in range(left.shape[0]):
            a, b = left[d, 0, k], right[d, 0, col]
            if a == 0.0 or b == 0.0:
                continue
            c, more = _split_product(a, b)
            more += a * right[d, 1, col] + left[d, 1, k] * b
            term, rest = _split_product(c, high)
            rest += c * low + more * high
            total = sums[d, 0] + term
            part = total - sums[d, 0]
            rest += (sums[d, 0] - (total - part)) + (term - part)
            rest += sums[d, 1]
            sums[d, 0] = total + rest
            sums[d, 1] = rest - (sums[d, 0] - total)


@_compile()
def tally(x, count, sums, tails):
    """For the self-test: sums of powers 1 to 4, products of neighbours, and how many |x| exceed 1, 2, ..., 6."""
    s1, s2, s3, s4, near = 0.0, 0.0, 0.0, 0.0, 0.0
    n1 = 0
    n2 = 0
    n3 = 0
    before = 0.0
    for j in range(count):
        v = x[j]
        w = v * v
        s1 += v
        s2 += w
        s3 += w * v
        s4 += w * w
        near += v * before
        before = v
        n1 += w > 1.0
        n2 += w > 4.0
        if w > 9.0:
            n3 += 1
            tails[3] += w > 16.0
            tails[4] += w > 25.0
            tails[5] += w > 36.0
    tails[0] += n1
    tails[1] += n2
    tails[2] += n3
    for i, s in enumerate((s1, s2, s3, s4, near)):
        sums[i] += s
