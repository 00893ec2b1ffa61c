"""The triangle of Figures 1 and 2: f(x), f(x') and the output s. The change, of length D, is opposite to s."""

from __future__ import annotations

import math

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise_paper.theory.accuracy import c_c, psi


def published_sides(theta: float) -> float:
    """The paper's bound 2 D/sin(theta) on the sum of the two sides at s, in units of D: two diameters of the circle.

    >>> f"{published_sides(math.pi / 2):.3f}"
    '2.000'
    """
    return 2.0 / math.sin(_angle(theta))


def longest_sides(theta: float) -> float:
    """The largest sum of the two sides at s, D/sin(theta/2) in units of D: that of two equal sides.

    The paper's bound is true, and larger by the factor 1/cos(theta/2).

    >>> f"{longest_sides(math.pi / 2):.3f}"
    '1.414'
    """
    return 1.0 / math.sin(0.5 * _angle(theta))


def meeting_epsilon_r1smg(dimension: int, delta: float) -> float:
    """The epsilon up to which two noises of published R1SMG, both of root mean square length, can meet: 8/psi.

    The length is D sqrt(2/(epsilon psi)), and two sides of that length close a triangle with the change if it is at
    least D/2. Remark 1 has this picture and sets the limit at 1/M.

    >>> f"{meeting_epsilon_r1smg(7921, 1e-7):.2f}, and 1/M is {1 / 7921:.2g}"
    '8.04, and 1/M is 0.00013'
    """
    return 8.0 / psi(dimension, delta)


def meeting_epsilon_classic(dimension: int, delta: float) -> float:
    """The epsilon up to which two noises of the classic Gaussian's root mean square length can meet: 2 sqrt(C_C) at 1.

    >>> f"{meeting_epsilon_classic(7921, 1e-7):.0f}"
    '1018'
    """
    return 2.0 * math.sqrt(c_c(dimension, 1.0, delta))


def _angle(value: object) -> float:
    theta = validation.number("theta", value)
    if not 0.0 < theta < math.pi:
        raise InvalidInput(f"theta={value} must lie strictly between 0 and pi: pass an angle in radians.")
    return theta
