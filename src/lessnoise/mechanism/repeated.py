"""Which laws may lose least over many releases? The best for one need not be the best for twelve.

Composed often enough, all losses look normal, and of all noise of one variance the Gaussian then loses least. Before
that, noise between Laplace and Gaussian is better. The laws here are candidates, about as wide as they must be for one
release; who asks calibrates them on the composed curve.
"""

from __future__ import annotations

import functools
import math
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

from lessnoise import changes as sets
from lessnoise.errors import ClaimWarning, LessnoiseError
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.catalogue import best, find_mechanism
from lessnoise.mechanism.choice import FEWEST_NORMAL, least_argument, least_scale
from lessnoise.mechanism.families.discrete_power import DiscretePower
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian
from lessnoise.mechanism.law import Radial
from lessnoise.mechanism.least.objective import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.mechanism.request import Request

_FEW = 60  # entries times releases, for which noise on all entries together is tried
_FEW_ENTRIES = 3  # for which a power between the l2 mechanism and the Gaussian is tried, whose curve takes seconds


def candidates_for_many(request: Request, releases: int, *, sampled: bool = False) -> Iterator[Mechanism]:
    """What may be the least noise over so many releases: whole numbers first, then the Gaussian, then the others.

    ``sampled``: each is on a Poisson sample, for which no estimate of the best power is made.

    >>> import lessnoise as ln
    >>> count = ln.Request(1, 1e-6, None, 1, changes=ln.changes.counts())
    >>> [one.name for one in candidates_for_many(count, 12)]
    ['discrete-gaussian', 'geometric', 'discrete-power', 'analytic-gaussian']
    """
    whole = request.integer
    if releases == 1 and not sampled:
        with suppress(LessnoiseError):
            yield best(request)
    named = ["discrete-gaussian", "geometric"] if whole else []
    yield from _built(request, *named)
    if whole and not sampled:
        yield from _by_power(request, releases, DiscretePower)
    yield from _built(request, "analytic-gaussian")
    if request.entry_bound is not None and request.dimension > 1:
        yield from _built(request, "correlated-gaussian")
    if not whole:
        yield from _by_entry(request, releases, sampled)
    if request.dimension > 1 and request.dimension * releases <= _FEW:
        yield from _built(request, "l2")
        if request.dimension <= _FEW_ENTRIES:
            p = _power_on_a_line(request, releases)
            yield request.mechanism("radial", Radial(request.dimension, p, request.sensitivity), OURS)
        if isinstance(request.changes, (sets.Ball, sets.Box, sets.Corner)) or request.entry_bound is not None:
            yield from _built(request, "norm-radial")


def _by_entry(request: Request, releases: int, sampled: bool) -> Iterator[Mechanism]:
    """Independent real numbers: the best power, or Laplace noise where that cannot be looked for."""
    found = [] if sampled else list(_by_power(request, releases, GeneralizedGaussian))
    yield from found
    if not found and (request.l1_sensitivity is not None or request.dimension == 1):
        yield from _built(request, "laplace")


def _built(request: Request, *names: str) -> Iterator[Mechanism]:
    for name in names:
        with suppress(LessnoiseError, ArithmeticError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore", ClaimWarning)
            yield find_mechanism(name).build(request)


def _by_power(
    request: Request, releases: int, family: type[DiscretePower | GeneralizedGaussian]
) -> Iterator[Mechanism]:
    """Independent entries of density exp(-|x/scale|^p), the p of the least loss, for changes known entry by entry."""
    changes = request.changes
    if changes is None and request.dimension == 1:
        changes = sets.ball(request.sensitivity)
    moves = None if changes is None else changes.dominant(request.dimension)
    if moves is None or not moves.count * releases < FEWEST_NORMAL:
        return
    found = _best_power(request, moves, releases, family)
    if found is not None:
        yield request.mechanism(family.kind, found, OURS)


def _power_on_a_line(request: Request, releases: int) -> float:
    """The best power for one entry: a good one for balls in few dimensions, too."""
    found = _best_power(request, sets.Moves(((request.sensitivity, 1),)), releases, GeneralizedGaussian)
    return 1.5 if found is None else found.p


def _best_power(
    request: Request, moves: sets.Moves, releases: int, family: type[DiscretePower | GeneralizedGaussian]
) -> DiscretePower | GeneralizedGaussian | None:
    goal = Goal.of(request.objective)
    scale = functools.partial(least_scale, moves, releases, request.epsilon, family is DiscretePower)

    def size(p: float) -> float:
        return goal.log_size(family(p, scale(p, request.delta)), request.dimension)

    with suppress(LessnoiseError, ArithmeticError, ValueError):
        p = least_argument(size, 1.0, 2.0)
        return family(p, scale(p, request.delta))
    return None


def log_size(mechanism: Mechanism, objective: str) -> float:
    """ln of the size of the noise in an objective; infinite where that is not computed."""
    try:
        return Goal.of(objective).log_size(mechanism.law, mechanism.dimension)
    except (TypeError, LessnoiseError, IndexError):
        return math.inf
