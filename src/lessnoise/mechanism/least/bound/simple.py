r"""Bounds in closed form: never sharp, never vacuous.

Take v uniform in the shell s <= |v| <= 1 and the test phi(n) = 1{|n| <= rho}, rho < s/2. For any point m, the shifted
m - v lies in the ball of radius rho with probability at most C, and only if |m| >= s - rho:

* shell of positive thickness: C = rho^M/(1 - s^M), ratio of the volumes;
* s = 1: C is the largest fraction of the unit sphere inside a ball of radius rho, the cap with sine rho
  (1/2 on the line).

So P(|N| <= rho) - delta <= e^eps C P(|N| >= s - rho). With x = P(|N| > rho) and y = P(|N| >= s - rho) <= x this
reads 1 - x - delta <= e^eps C y, and E f >= f(rho) (x - y) + f(s - rho) y. The least value of that linear program is
at one of its two corners, y = 0 or x = y:

    E f >= (1 - delta) min{f(rho), f(s - rho)/(1 + e^eps C)}.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.least.bound.record import LowerBound
from lessnoise.mechanism.least.sphere import Sphere

if TYPE_CHECKING:
    from lessnoise.mechanism.least.objective import Objective


def ball_bound(dimension: int, epsilon: float, delta: float, objective: Objective) -> LowerBound:
    """The best of these bounds on a grid of rho and s."""
    begun = time.thread_time()
    best, at = 0.0, 1.0
    ratio = np.geomspace(1e-6, 0.4999, 400)
    for s in (1.0, 0.99, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5):
        rho = s * ratio
        if s == 1.0 and dimension > 1:
            log_c = np.log(np.maximum(Sphere(dimension).cap(np.sqrt(1.0 - rho**2), rho**2), 1e-300))
        elif s == 1.0:
            log_c = np.full_like(rho, math.log(0.5))
        else:
            log_c = dimension * np.log(rho) - math.log(-math.expm1(dimension * math.log(s)))
        share = np.exp(-np.logaddexp(0.0, epsilon + log_c))
        value = np.minimum(objective.value(rho), objective.value(s - rho) * share)
        if float(value.max()) > best:
            best, at = float(value.max()), s
    return LowerBound((1.0 - delta) * best * (1.0 - 1e-9), "ball", best, (), (at,), time.thread_time() - begun)
