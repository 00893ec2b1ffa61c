"""The noise of a table that is fitted to noisy answers: independent noise on A x, and then least squares.

The fit is linear, and exact on answers without noise where A determines the table, so this is one more noise law. Its
privacy is that of the measured answers; the table is a function of them. A change of l1 norm D moves the answers by a
combination of the columns a_j of A: for log-concave noise the overlap of the two laws is a log-concave function of the
move (Prekopa), so that delta is largest at a corner, D a_j, of the set of moves.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Neighbours
from lessnoise.harmless import shown
from lessnoise.mechanism.curve import delta_of, gaussian
from lessnoise.mechanism.curve.dispatch import (
    attained,
    entries,
    law_delta,
    law_pure_epsilon,
    moved_size,
    no_curve,
    pure_epsilon_of,
    worst_of,
)
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian
from lessnoise.mechanism.families.geometric import Geometric
from lessnoise.mechanism.law import Laplace, Law, Plain, law_from_dict, register
from lessnoise.mechanism.losses import expected_loss, log_raw_moment, quantile, query_error
from lessnoise.mechanism.measured.laplace_losses import laplace_losses
from lessnoise.mechanism.sampling import delivered, noise_form, prepare_noise, values_drawn
from lessnoise.noise import Integers, check_out
from lessnoise.strategy import Strategy, majorant, read_strategy
from lessnoise.workload import Workload, identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array
    from lessnoise.changes import Changes
    from lessnoise.noise import Stream

    Change = Literal["any", "moved"]

CHANGES = ("any", "moved")
NOISES = (Laplace, GeneralizedGaussian, Geometric)
_ROUNDING = 1e-11  # of products of columns
_NORMS = 1e-9  # by which a norm may be rounded up
_PAIRS = 5  # columns of which pairs are tried as the worst


@register
@dataclass(frozen=True)
class Measured(Plain):
    """Independent ``noise`` on the answers to a ``strategy``; the ``workload`` says what the table is asked for.

    ``change`` says which changes of the table the curve covers: "any" of at most the sensitivity in l1, or "moved",
    those that take away at most half of the sensitivity, and add at most half of it to other cells. A row may be
    replaced by one that is in no cell, so that nothing is added.
    """

    workload: Workload
    strategy: Strategy
    noise: Law
    change: Change = "any"

    kind: ClassVar[str] = "measured"
    norm: ClassVar[str] = "l1"
    rounding: ClassVar[str] = (
        "The noisy answers that are measured are real-valued noisy answers rounded to a grid, exactly, so floating "
        "point is covered; the output is computed from them alone."
    )

    def __post_init__(self) -> None:
        workload = Workload.from_dict(self.workload) if isinstance(self.workload, dict) else self.workload
        noise = law_from_dict(self.noise) if isinstance(self.noise, dict) else self.noise
        if not isinstance(workload, Workload):
            raise InvalidInput(f"workload={shown(workload)} is not a workload: build one with lessnoise.workload.")
        settle(self, workload=workload, strategy=read_strategy(self.strategy), noise=noise)
        if not isinstance(noise, NOISES) or not 1.0 <= getattr(noise, "p", 1.0) <= 2.0:
            raise InvalidInput(f"noise={shown(noise)} is not for measured answers: pass Laplace, normal or geometric.")
        if workload.shape != self.strategy.shape:
            raise InvalidInput(
                f"strategy.shape={self.strategy.shape} is not the workload's shape={workload.shape}: measure the table "
                "that is asked about."
            )
        if noise.integer and not (self.strategy.whole and len(self.strategy.columns()) == 1):
            raise InvalidInput(
                "noise of whole numbers needs a strategy of whole numbers whose columns are alike: pass Laplace noise."
            )
        validation.choice("change", self.change, CHANGES)

    @property
    def is_gaussian(self) -> bool:
        """Normal noise."""
        return isinstance(self.noise, GeneralizedGaussian) and self.noise.p == 2.0

    @property
    def variance(self) -> float:
        """Of the noise of one answer."""
        return expected_loss(self.noise, 1)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """The strategy is made for one table."""
        if shape != self.strategy.shape:
            raise InvalidInput(
                f"shape={shape} differs from the workload's shape={self.strategy.shape}: build the mechanism for it."
            )

    def check_neighbours(self, neighbours: Neighbours) -> None:
        """Rows that are moved are replaced."""
        if self.change == "moved" and neighbours is not Neighbours.REPLACE:
            raise InvalidInput(f'neighbours={neighbours.value!r} is not for change="moved": pass change="any".')

    def choice(self, dimension: int) -> str:
        """Noise and strategy, in words."""
        return f"{'Gaussian' if self.is_gaussian else self.noise.choice(1)} on {self.strategy}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        parts = {name: getattr(self, name).to_dict() for name in ("workload", "strategy", "noise")}
        return {"kind": self.kind, **parts, "change": self.change}


# Privacy.


@worst_of.register(Measured)
def _(law: Measured, changes: Changes, dimension: int) -> float:
    if law.change == "moved" and changes.relation is not Neighbours.REPLACE:  # half is taken away, half added
        raise no_curve(law, changes)
    if law.noise.integer and not changes.whole:
        raise no_curve(law, changes)
    return moved_size(law, changes, dimension) if law.change == "moved" else changes.norm(1, dimension)


def largest_move(strategy: Strategy, change: str, order: int) -> float:
    """The largest norm of a move of the answers by a change of size 1 in l1; rounded up.

    The moved changes of size 1 are mixtures of (e_i - e_j)/2, where a row leaves one cell and enters another, and of
    e_i/2, where the other row is in no cell.
    """
    if change == "any":
        return strategy.norm(order)
    return 0.5 * max(strategy.distance(order), strategy.norm(order))


def mu_of(law: Measured, sensitivity: float) -> tuple[float, float]:
    """Ends of the largest l2 move over the standard deviation, for normal noise."""
    strategy, size = law.strategy, sensitivity / math.sqrt(law.variance)
    upper = largest_move(strategy, law.change, 2) * size * (1.0 + _ROUNDING)
    if law.change == "any":
        return upper * (1.0 - _NORMS), upper
    found = max(strategy.norm(2) * (1.0 - _NORMS), *(float(np.linalg.norm(pair)) for pair in _pairs(strategy)))
    return min(0.5 * found * size * (1.0 - _ROUNDING), upper), upper


@attained.register(Measured)
def _(law: Measured, changes: Changes, dimension: int) -> bool:
    return changes.concentrates(dimension)


@law_delta.register(Measured)
def _(law: Measured, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    if law.is_gaussian:
        return gaussian.delta_between(*mu_of(law, sensitivity), epsilon)
    found, above = moves_of(law, sensitivity)
    if above is None:
        return largest_delta(law.noise, found, epsilon)
    if isinstance(law.noise, GeneralizedGaussian):
        raise InvalidInput(
            f"noise={law.noise} has a curve only where every move of the answers is listed: use Laplace or normal "
            "noise."
        )
    lower, upper = largest_delta(law.noise, found, epsilon).lower, largest_delta(law.noise, (above,), epsilon).upper
    return Bracket(min(lower, upper), upper)


@functools.lru_cache(maxsize=16)
def moves_of(law: Measured, sensitivity: float) -> tuple[tuple[Moves, ...], Moves | None]:
    """Moves of the answers that changes of the table make; and one that majorizes all, if those are not all.

    The order of majorization is that of delta for Laplace and geometric noise; for others every move must be listed.
    """
    columns, above = columns_of(law.strategy)
    if law.change == "any":
        return tuple(moves.scaled(sensitivity) for moves in columns), above and above.scaled(sensitivity)
    # One column up and another down: entries of one sign move by at most the larger of the two, as if both moved apart.
    one = above or majorant(list(columns))
    twice = Moves.counted((size, 2 * count) for size, count in one.sizes)
    both = twice if law.strategy.nonnegative else one.scaled(2.0)
    pairs = [Moves.of((pair * (1.0 - _ROUNDING)).tolist()) for pair in _pairs(law.strategy)]
    pairs += columns[:_PAIRS]  # of a row that enters no cell
    return tuple(moves.scaled(0.5 * sensitivity) for moves in pairs if moves.sizes), both.scaled(0.5 * sensitivity)


@functools.lru_cache(maxsize=16)
def columns_of(strategy: Strategy) -> tuple[tuple[Moves, ...], Moves | None]:
    """The strategy's columns and their envelope, computed once."""
    return tuple(strategy.columns()), strategy.envelope()


@functools.lru_cache(maxsize=16)
def _pairs(strategy: Strategy) -> list[Array]:
    """Differences of some columns that lie apart, within rounding."""
    cells = math.prod(strategy.shape)
    places = sorted({round(share * (cells - 1)) for share in np.linspace(0.0, 1.0, _PAIRS)})
    units = np.zeros((len(places), cells))
    units[np.arange(len(places)), places] = 1.0
    found = strategy.measure(units.reshape(-1, *strategy.shape))
    return [found[i] - found[j] for i in range(len(found)) for j in range(i)] or [np.zeros(1)]


def largest_delta(noise: Law, moves: tuple[Moves, ...], epsilon: float) -> Bracket:
    """The largest delta of some moves of independent entries."""
    if isinstance(noise, Laplace):
        if all(each.count == 1 for each in moves):
            return delta_of(noise, 1, max(each.sizes[0][0] for each in moves), epsilon)
        return laplace_losses(_in_scales(noise, moves)).delta(epsilon)
    found = [delta_of(noise, 1, entries(each), epsilon) for each in moves]
    return Bracket(max(one.lower for one in found), max(one.upper for one in found))


def _in_scales(noise: Laplace, moves: tuple[Moves, ...]) -> tuple[Moves, ...]:
    return tuple(Moves(tuple((size / noise.scale, count) for size, count in each.sizes)) for each in moves)


def one_move(law: Measured, sensitivity: float) -> Moves:
    """A single move that is about the worst: what a lower end of a composition is made of."""
    found, _ = moves_of(law, sensitivity)
    if len(found) == 1 or not isinstance(law.noise, Laplace):
        return found[0]
    return found[laplace_losses(_in_scales(law.noise, found)).worst()]


@law_pure_epsilon.register(Measured)
def _(law: Measured, dimension: int, sensitivity: float) -> float:
    if law.is_gaussian:
        return math.inf
    if isinstance(law.noise, Laplace):
        return largest_move(law.strategy, law.change, 1) * sensitivity / law.noise.scale * (1.0 + 2e-15)
    found, above = moves_of(law, sensitivity)
    return max(pure_epsilon_of(law.noise, 1, entries(moves)) for moves in (*found, above) if moves is not None)


# Noise and its size.


@prepare_noise.register(Measured)
def _(
    law: Measured, value: Array, stream: Stream, *, out: Array | None = None, threads: int | None = None
) -> Callable[[], Array]:
    """Noise on every answer, on the grid; then the fit, which only processes what was measured."""
    check_out(out, value.shape, np.dtype(np.float64))
    table = validation.array(value, value.shape)
    answers, error = law.strategy.measure(table), law.strategy.error(table)
    form = noise_form(law.noise, answers.shape)
    if isinstance(form, Integers):
        if error or bool((table != np.rint(table)).any()):
            raise InvalidInput("the table is not one of whole numbers below 2^53 in all, which this noise is for.")
        measure: Callable[[], Array] = prepare_noise(law.noise, answers.astype(np.int64), stream, threads=threads)
    else:
        behind = noise_engine.Behind(error, functools.partial(law.strategy.exact, table)) if error else None
        measure = noise_engine.prepare_noise(form, answers, stream, threads=threads, behind=behind)

    def draw() -> Array:
        return delivered(np.ascontiguousarray(law.strategy.fit(measure().astype(np.float64, copy=False))), out)

    return draw


@values_drawn.register(Measured)
def _(law: Measured, dimension: int) -> int:
    return law.strategy.rows


@query_error.register(Measured)
def _(law: Measured, dimension: int) -> float:
    return law.strategy.trace(law.workload) * law.variance / law.workload.queries


@log_raw_moment.register(Measured)
def _(law: Measured, dimension: int, order: int) -> float:
    if order != 1:
        raise InvalidInput(
            f"order={order}: of the loss of a fitted table only the mean is computed; draw releases for the rest."
        )
    return math.log(law.strategy.trace(identity(*law.strategy.shape))) + math.log(law.variance)


@quantile.register(Measured)
def _(law: Measured, dimension: int, probability: float) -> float:
    raise InvalidInput(
        f"q={probability:g}: quantiles of the loss of a fitted table are not computed; draw releases instead."
    )
