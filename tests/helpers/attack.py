"""The attack on low bits: which outputs are *reachable* from a value at all.

A double y can be the float sum of v and some double n only if one of the doubles around y - v gives it. For v = 0 every
y can. For v = 1 and |y| < 1/2, n lies in (-3/2, -1/2), where doubles are 2^-53 or more apart: a y that is no multiple
of 2^-53 never comes from 1. So plain ``value + noise`` gives a neighbour away with certainty whenever such a y is seen.
"""

import numpy as np

from lessnoise.noise import Grid


def reachable(outputs, value):
    """Whether some double n has fl(value + n) = output."""
    guess = outputs - value
    found = np.zeros(outputs.size, dtype=bool)
    for candidate in (guess, np.nextafter(guess, -np.inf), np.nextafter(guess, np.inf)):
        found |= value + candidate == outputs
    return found


def advantage(outputs, others, neighbour, deviation):
    """What the attack gains from ``outputs`` of a value against ``others`` of its neighbour.

    ``proved`` is how often an output is proved impossible for the neighbour, ``false`` how often the neighbour's own
    are. ``beyond`` compares the two within the same grid cell (Mantel and Haenszel's difference of rates): what low
    bits tell beyond the rounded value, which is all that the ideal mechanism shows.
    """
    step = Grid.of(deviation).step
    flags = [~reachable(y, neighbour) for y in (outputs, others)]
    cells = [np.rint(y / step).astype(np.int64) for y in (outputs, others)]
    low = min(c.min() for c in cells)
    size = max(c.max() for c in cells) - low + 1
    counts = [np.bincount(c - low, minlength=size) for c in cells]
    hits = [np.bincount(c - low, weights=f, minlength=size) for c, f in zip(cells, flags, strict=True)]
    both = (counts[0] > 0) & (counts[1] > 0)
    a, b = (c[both].astype(np.float64) for c in counts)
    weight = a * b / (a + b)
    beyond = (weight * (hits[0][both] / a - hits[1][both] / b)).sum() / weight.sum()
    return {"proved": flags[0].mean(), "false": flags[1].mean(), "beyond": beyond}


def largest_low_digit_difference(outputs, others, deviation, modulus=64):
    """Largest standardised difference between the two laws of (output/grid) mod ``modulus``; below 8 is chance."""
    step = Grid.of(deviation).step
    counts = []
    for y in (outputs, others):
        cells = y / step
        if not (cells == np.rint(cells)).all():
            return np.inf
        counts.append(np.bincount(np.mod(cells, modulus).astype(np.int64), minlength=modulus))
    difference = counts[0] - counts[1]
    return float(np.abs(difference / np.sqrt(counts[0] + counts[1])).max())
