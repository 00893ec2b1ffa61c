"""The least error for a workload: strategy and noise law chosen together, on the exact curve."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lessnoise import changes as sets
from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown
from lessnoise.mechanism import estimate
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.curve import gaussian
from lessnoise.mechanism.curve.coins import largest_size
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian
from lessnoise.mechanism.families.geometric import Geometric
from lessnoise.mechanism.law import Laplace, Law
from lessnoise.mechanism.least.objective import Design
from lessnoise.mechanism.losses import expected_loss
from lessnoise.mechanism.measured.law import Measured, largest_delta, largest_move, moves_of, mu_of
from lessnoise.mechanism.request import Request
from lessnoise.strategy import L1, L2, Strategy, any_matrix, singular_value_bound, strategies
from lessnoise.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.changes import Changes, Moves
    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.mechanism.request import Relation

NAME = "workload"
_NOT_OF_COUNTS = (sets.Ball, sets.Box, sets.Corner)  # but for the l1 ball
_MARGIN, _STEP, _MOST_STEPS = 0.97, 1.001, 12  # the share of delta that estimates aim at, and steps until it is proved
_FEWEST = 8  # entries that change together, in all releases, for which less than the pure noise may do
_MOST_ENTRIES = 64  # for which it is; beyond, normal noise is as good
_TRIED = 8  # columns whose noise is estimated
_GAIN = 0.995  # of the error of Laplace or Gaussian noise: less is not worth the proof
_POWERS = (1.2, 1.4, 1.6, 1.8)
_FEW_COLUMNS = 2  # for which noise between Laplace and Gaussian is tried


def workload_mechanism(
    workload: Workload,
    *,
    epsilon: float,
    delta: float,
    changes: Changes | None = None,
    releases: int = 1,
    neighbours: Relation | None = None,
) -> Mechanism:
    """The mechanism of least squared error for linear questions about a table of counts.

    ``workload`` says what is asked, from :mod:`lessnoise.workload`; ``changes`` what one individual can change of the
    table, by default one row of one cell. The target (epsilon, delta) is for all ``releases`` together, each with fresh
    noise. The mechanism adds noise to well-chosen sums of cells and releases the table that fits these best: its
    ``query_error`` is the expected squared error of an answer, averaged over the workload. ``design`` says what was
    compared.

    >>> import lessnoise as ln
    >>> days = ln.workload.prefixes(64)
    >>> m = ln.workload_mechanism(days, epsilon=1, delta=1e-6)
    >>> alone = ln.least_noise(epsilon=1, delta=1e-6, shape=64, changes=ln.changes.counts())
    >>> f"{m.query_error:.1f} for a running total, {alone.query_error * 32.5:.1f} from noisy cells"
    '28.4 for a running total, 59.8 from noisy cells'
    >>> table = m.release(range(64)).value
    >>> days.answers(table).shape
    (64,)
    """
    if not isinstance(workload, Workload):
        raise InvalidInput(f"workload={shown(workload)} is not a workload: build one with lessnoise.workload.")
    found = sets.counts() if changes is None else sets.read_changes(changes)
    relation = found.relation or Neighbours.ADD_REMOVE if neighbours is None else Neighbours.of(neighbours)
    if isinstance(found, _NOT_OF_COUNTS) and not (isinstance(found, sets.Ball) and found.order == 1):
        raise InvalidInput(
            f"changes={found} is not a set for a table of counts: pass lessnoise.changes.counts(), or ball(D, norm=1) "
            "for amounts that add up to at most D."
        )
    request = Request(epsilon, delta, None, workload.shape, relation, changes=found)  # type: ignore[arg-type]
    return best_for(workload, request, validation.whole_number("releases", releases))


@functools.lru_cache(maxsize=32)
def best_for(workload: Workload, request: Request, releases: int = 1) -> Mechanism:
    """The mechanism of least error for a request that names its changes."""
    target = _Target(workload, request, releases)
    found = target.candidates()
    for best in found:
        built = request.mechanism(NAME, best.law, OURS)
        if target.keeps(best.law):
            errors: dict[str, float] = {}
            for each in found:
                errors.setdefault(each.words, each.error)
            compared = tuple(list(errors.items())[:_MOST_COMPARED])
            choice = best.law.choice(request.dimension)
            return replace(built, design=Design("squared", choice, releases=releases, compared=compared))
    raise InvalidInput(
        f"epsilon={request.epsilon:g}, delta={request.delta:g} are too extreme for a workload: choose ordinary numbers."
    )


_MOST_COMPARED = 12


@dataclass(frozen=True)
class Candidate:
    """A law and its error per question."""

    law: Measured
    error: float

    @property
    def words(self) -> str:
        """For people."""
        return self.law.choice(0)


@dataclass(frozen=True)
class _Target:
    """What is asked, and what to keep."""

    workload: Workload
    request: Request
    releases: int

    def candidates(self) -> list[Candidate]:
        """Each strategy with the noise that serves it best, the least error first."""
        found: list[Candidate] = []
        tried = dict.fromkeys(each for order in (L1, L2) for each in strategies(self.workload, order))
        for strategy in tried:
            found.extend(self._with_noise(strategy, _least(found)))
        for order in (L1, L2):
            # What takes long is tried where the least error that normal noise can have would be an improvement.
            if order == L1 or self.least_normal() < _least(found):
                for strategy in any_matrix(self.workload, order):
                    found.extend(self._with_noise(strategy, _least(found)))
        return sorted(found, key=lambda candidate: candidate.error)

    def _with_noise(self, strategy: Strategy, least: float) -> list[Candidate]:
        """With every noise; what takes long to prove only where the error may be below the ``least`` so far."""
        trace = strategy.trace(self.workload) / self.workload.queries
        if not math.isfinite(trace):
            return []
        laws = (self.integers, self.laplace, self.normal)
        found = [Candidate(law, trace * law.variance) for noise in laws for law in _computed(noise(strategy))]
        most = min(least, _least(found)) / max(trace, 1e-300)
        return found + [Candidate(law, trace * law.variance) for law in _computed(self.powers(strategy, most))]

    def least_normal(self) -> float:
        """About a lower bound on the error of normal noise."""
        sigma = gaussian.gaussian_scale(self.request.epsilon, self.request.delta)
        alone = self.request.changes.single(self.workload.cells) if self.request.changes else 1.0
        return sigma**2 * self.releases * alone**2 * singular_value_bound(self.workload) / self.workload.queries

    @property
    def change(self) -> str:
        """A replaced row leaves one cell and enters another."""
        return "moved" if self.request.moved else "any"

    @property
    def size(self) -> float:
        """The largest change of the table, in l1; of moved rows, twice as much as leaves or enters."""
        return self.request.l1_of_counts

    def law(self, strategy: Strategy, noise: Law) -> Measured:
        """Of this target."""
        return Measured(self.workload, strategy, noise, self.change)  # type: ignore[arg-type]

    def delta(self, strategy: Strategy) -> float:
        """What is left for the noise, over all releases."""
        request = self.request
        return noise_engine.reserved(request.delta, request.epsilon, strategy.rows * self.releases)

    def moves(self, strategy: Strategy) -> tuple[Moves, ...]:
        """What may move, in all releases; if that is not all, what is above it."""
        found, above = moves_of(self.law(strategy, Laplace(1.0)), self.size)
        chosen = found if above is None else (above,)
        if self.releases == 1:
            return chosen
        return tuple(sets.Moves.counted((size, count * self.releases) for size, count in each.sizes) for each in chosen)

    def keeps(self, law: Measured) -> bool:
        """Whether all releases together are proved to keep the target."""
        epsilon, allowed = self.request.epsilon, self.delta(law.strategy)
        if law.is_gaussian:
            mu = mu_of(law, self.size)[1] * math.sqrt(self.releases) * (1.0 + 1e-15)
            return gaussian.gaussian_delta(mu, epsilon).upper <= allowed
        if self.releases == 1:
            return self.request.mechanism(NAME, law, OURS).delta(epsilon).upper <= allowed
        if isinstance(law.noise, Laplace) and self._pure(law.strategy) <= law.noise.scale * epsilon * (1.0 - 1e-15):
            return True
        return largest_delta(law.noise, self.moves(law.strategy), epsilon).upper <= allowed

    def _pure(self, strategy: Strategy) -> float:
        """The l1 norm of the largest move, over all releases."""
        return largest_move(strategy, self.change, 1) * self.size * self.releases

    # Laws.

    def normal(self, strategy: Strategy) -> Iterator[Measured]:
        """Gaussian noise."""
        apart = largest_move(strategy, self.change, 2)
        sigma = gaussian.gaussian_scale(self.request.epsilon, self.delta(strategy))
        size = apart * self.size * math.sqrt(self.releases) * sigma
        yield self.law(strategy, GeneralizedGaussian(2.0, math.sqrt(2.0) * size * (1.0 + 1e-10)))

    def laplace(self, strategy: Strategy) -> Iterator[Measured]:
        """Laplace noise: pure, or less of it where delta allows."""
        epsilon = self.request.epsilon
        pure = self._pure(strategy) / epsilon * (1.0 + 1e-14)
        yield self.law(strategy, Laplace(pure))
        moves = self.moves(strategy)
        if not _FEWEST <= max(each.count for each in moves) <= _MOST_ENTRIES:
            return
        places = sorted({round(share * (len(moves) - 1) / (_TRIED - 1)) for share in range(_TRIED)})
        allowed = self.delta(strategy)

        def least(each: Moves) -> float:
            def curve(x: float) -> float:
                return estimate.power_delta(1.0, math.exp(x), each, 1, epsilon)

            start = math.log(0.9 * each.norm(1) / epsilon)
            return math.exp(estimate.crossing(curve, _MARGIN * allowed, start))

        scale = max(least(moves[place]) for place in places)
        for _ in range(_MOST_STEPS):
            if scale >= 0.999 * pure:
                return
            if largest_delta(Laplace(scale), moves, epsilon).upper <= allowed:
                yield self.law(strategy, Laplace(scale))
                return
            scale *= _STEP

    def integers(self, strategy: Strategy) -> Iterator[Measured]:
        """Geometric noise, or the integer optimum where one count changes by 1."""
        request = self.request
        if not request.integer or not strategy.whole or len(strategy.columns()) > 1:
            return
        moves = self.moves(strategy)[0]
        allowed = self.delta(strategy)
        if moves.sizes == ((1.0, 1),):
            yield self.law(strategy, Geometric(request.epsilon * (1.0 - 1e-15), allowed * (1.0 - 1e-9)))
        rate = request.epsilon / moves.norm(1) * (1.0 - 1e-14)
        if moves.sizes[0][0] == 1.0:
            rate = max(rate, largest_size(moves.count, request.epsilon, allowed) * (1.0 - 1e-9))
        yield self.law(strategy, Geometric(rate))

    def powers(self, strategy: Strategy, most: float) -> Iterator[Measured]:
        """Noise between Laplace and Gaussian, where all moves are listed and it has less than ``most`` variance."""
        if moves_of(self.law(strategy, Laplace(1.0)), self.size)[1] is not None:
            return
        moves = self.moves(strategy)
        if len(moves) > _FEW_COLUMNS or not _FEWEST <= max(each.count for each in moves) <= _MOST_ENTRIES:
            return
        epsilon, allowed = self.request.epsilon, self.delta(strategy)
        found = []
        for p in _POWERS:

            def curve(x: float, p: float = p) -> float:
                return max(estimate.power_delta(p, math.exp(x), each, 1, epsilon) for each in moves)

            start = math.log(max(each.norm(2) for each in moves) * 1.5 * gaussian.gaussian_scale(epsilon, allowed))
            found.append(GeneralizedGaussian(p, math.exp(estimate.crossing(curve, _MARGIN * allowed, start))))
        best = min(found, key=lambda noise: expected_loss(noise, 1))
        if expected_loss(best, 1) > _GAIN * most:
            return
        for step in range(_MOST_STEPS):
            noise = GeneralizedGaussian(best.p, best.scale * _STEP**step)
            if largest_delta(noise, moves, epsilon).upper <= allowed:
                yield self.law(strategy, noise)
                return


def _least(found: list[Candidate]) -> float:
    return min((each.error for each in found), default=math.inf)


def _computed(laws: Iterator[Measured]) -> list[Measured]:
    """What can be computed: extreme numbers are none for some laws."""
    found: list[Measured] = []
    try:
        found.extend(laws)
    except (LessnoiseError, ArithmeticError, ValueError):
        return found
    return found
