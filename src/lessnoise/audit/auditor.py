"""Running an audit: train every attack, choose, test once."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lessnoise import validation
from lessnoise._common import cores
from lessnoise.audit import attacks as attack_module
from lessnoise.audit.confidence import Question, Rule, choose, coin_probability, fewest_batches
from lessnoise.audit.outputs import Outputs
from lessnoise.audit.report import AttackResult, AuditReport, Evidence
from lessnoise.audit.target import Calls, Target, guarantee, inputs, target_of
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import ArrayLike

    from lessnoise._common import Array, BoolArray, IntArray
    from lessnoise.audit.attacks import Attack
    from lessnoise.guarantees import Guarantee
    from lessnoise.mechanism import Mechanism


_T = TypeVar("_T")

MOST_NUMBERS = 10**12  # hours of drawing
SMALLEST_SAMPLES = 100
_TRAINING_SHARE = 8  # one release in eight chooses the events; the others test them
_LONGEST_TRAINING = 2**20  # their scores are kept in memory
_ENTRIES = 2**18  # of the outputs that one worker holds at a time
_LONGEST_BATCH = 2**15


def audit(
    mechanism: Mechanism | Callable[..., Any],
    value: ArrayLike,
    neighbour: ArrayLike | None = None,
    *,
    claim: Guarantee | tuple[float, float] | None = None,
    attacks: str | Callable[..., Any] | Iterable[str | Callable[..., Any]] = "all",
    samples: int = 100_000,
    confidence: float = 0.999,
    rng: np.random.Generator | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> AuditReport:
    """Attack a mechanism, and report what the attacks prove of its true delta and epsilon.

    ``mechanism`` is a description, or any function ``f(value)`` that makes one release. A function with a parameter
    ``size`` is asked for that many releases at once, one in each row; one with a parameter ``rng`` gets the generator
    to draw from. ``neighbour`` may be left out for a description: the worst one is used. For a function you vouch
    that the two inputs are neighbours under the claim.

    ``claim`` is (epsilon, delta) or a Guarantee; left out, it is the description's own. ``attacks`` are names, or
    functions from outputs (releases, ...) to one score each, high where an output looks like a release of ``value``.
    ``samples`` counts all releases. One in eight chooses attack and thresholds, the others test that choice once, so
    that the ``confidence`` is true: a claim that holds is refuted with probability 1 - confidence at most. Attacks see
    outputs and nothing else: which input an output comes from is a fair coin that neither its place in a batch nor the
    order of calls gives away.

    ``workers`` are threads: one a core, but a single one for functions that draw from a generator of their own.
    Attacks are called from these threads too.

    >>> import lessnoise as ln
    >>> published = ln.r1smg(epsilon=1e-3, delta=1e-5, sensitivity=1, shape=100, calibration="published")
    >>> print(audit(published, np.zeros(100), rng=np.random.default_rng(0)))
    r1smg-published: claimed (0.001, 1e-05); with 99.9% confidence delta >= 0... epsilon >= ...: REFUTED
    >>> def noisy(value, size, rng):
    ...     return value + rng.laplace(0.0, 1.0, size)
    >>> audit(noisy, 0.0, 1.0, claim=(1.0, 0.0), rng=np.random.default_rng(0)).refuted
    False
    """
    claimed = guarantee(mechanism, claim)
    target = target_of(mechanism)
    samples = validation.whole_number("samples", samples, SMALLEST_SAMPLES)
    first, second = inputs(mechanism, value, neighbour)
    if samples * first.size > MOST_NUMBERS:
        raise InvalidInput(
            f"samples={samples} releases of {first.size} entries are more than {MOST_NUMBERS:.0e} numbers: audit a "
            "smaller shape, or pass fewer samples."
        )
    error = 1.0 - validation.probability("confidence", confidence, "0.999, say")
    threads = cores() if workers is None else validation.whole_number("workers", workers)
    generator = validation.generator(rng) or np.random.default_rng()
    entropy = [int(word) for word in generator.integers(0, 2**32, 8)]
    noise, coins = entropy[:4], entropy[4:]  # what the mechanism draws from says nothing about the coins
    probe = target.release(first, 1, np.random.default_rng([*noise, 0]))
    fit, unfit = attack_module.resolve(attacks, target.law, first, second, probe.shape[1:])

    trained = min(samples // _TRAINING_SHARE, _LONGEST_TRAINING)
    tested = samples - trained
    size = min(max(_ENTRIES // max(probe[0].size, 1), 1), _LONGEST_BATCH)
    if target.calls is Calls.MANY_VOUCHED:
        size = min(size, max(tested // fewest_batches(0.5 * error), 1))
    # Half of the error for the bound of delta, half for that of epsilon: both hold together.
    questions = (Question(epsilon=claimed.epsilon), Question(delta=claimed.delta))
    run = _Run(
        *(target, first, second, probe.shape[1:], tuple(fit)),
        *(threads if workers or target.parallel else 1, noise, coins, size),
    )
    with _progress(progress, -(-trained // size) + -(-tested // size)) as advance:
        seen, truth = run.scores(trained, advance)
        chosen = [
            [choose(row, truth, q, tested, 0.5 * error, log_odds=attack.log_odds) for q in questions]
            for attack, row in zip(fit, seen, strict=True)
        ]
        counts = run.counts(tested, [[rule for _, rule in both] for both in chosen], advance)
    vouched = target.calls is Calls.MANY_VOUCHED
    results = tuple(
        AttackResult(
            attack.name,
            *(
                _evidence(question, rule, (int(right), int(wrong)), int(squares) if vouched else 0, tested, 0.5 * error)
                for question, (_, rule), (right, wrong, squares) in zip(questions, both, hits, strict=True)
            ),
        )
        for attack, both, hits in zip(fit, chosen, counts, strict=True)
    )
    best = [max(range(len(fit)), key=lambda i: (fit[i].log_odds, chosen[i][q][0])) for q in range(2)]
    return AuditReport(
        mechanism=target.name,
        claim=claimed,
        confidence=float(confidence),
        trained=trained,
        tested=tested,
        attacks=results,
        delta_attack=fit[best[0]].name,
        epsilon_attack=fit[best[1]].name,
        skipped=tuple((attack.name, attack.unfit or "") for attack in unfit),
    )


def _evidence(
    question: Question, rule: Rule, hits: tuple[int, int], squares: int, trials: int, error: float
) -> Evidence:
    right, wrong = hits
    by_chance = squares > 0 and coin_probability(right - wrong, squares) > error
    bound = 0.0 if by_chance else question.lower_bound(right, wrong, trials, rule.sides, error)
    return Evidence(bound, right, wrong, trials, rule)


@dataclass(frozen=True, slots=True)
class _Run:
    """Releases of both inputs in batches, each with generators of its own: the result depends on no worker's pace."""

    target: Target
    value: Array
    neighbour: Array
    shape: tuple[int, ...]
    attacks: tuple[Attack, ...]
    workers: int
    noise: list[int]
    coins: list[int]
    size: int

    def batches(self, stage: int, count: int) -> Iterator[tuple[int, int, int]]:
        """(stage, index, releases) of each batch."""
        for index, start in enumerate(range(0, count, self.size)):
            yield stage, index, min(self.size, count - start)

    def batch(self, stage: int, index: int, count: int) -> tuple[list[Array], BoolArray]:
        """Scores of every attack on fresh releases, and which of these are of the value: a fair coin each.

        Each row has the input that its own coin says, so the place of a row tells nothing. Where one call makes many
        releases, another coin says which input is asked for first.
        """
        coins, rng = (np.random.default_rng([*words, stage, index]) for words in (self.coins, self.noise))
        truth = coins.random(count) < 0.5
        array = np.empty((count, *self.shape))
        if self.target.calls is Calls.ONE:
            for row, ours in enumerate(truth):
                array[row] = self._released(self.value if ours else self.neighbour, 1, rng)[0]
        else:
            worlds = [(self.value, truth), (self.neighbour, ~truth)]
            for given, rows in worlds if coins.random() < 0.5 else worlds[::-1]:
                if rows.any():
                    array[rows] = self._released(given, int(np.count_nonzero(rows)), rng)
        outputs = Outputs(array, self.value, self.neighbour)
        return [attack.score(outputs) for attack in self.attacks], truth

    def _released(self, given: Array, count: int, rng: np.random.Generator) -> Array:
        result = self.target.release(given, count, rng)
        if result.shape[1:] != self.shape:
            raise InvalidInput(
                f"{self.target.name} returned outputs of shape={self.shape} and of shape={result.shape[1:]}: wrap it "
                "to return one shape for both inputs."
            )
        return result

    def scores(self, count: int, advance: Callable[[], None]) -> tuple[Array, Array]:
        """Training: all scores, one row an attack, and the truth."""
        rows, truths = [], []
        for scores, truth in _in_threads(lambda task: self.batch(*task), self.batches(1, count), self.workers):
            rows.append(np.stack(scores))
            truths.append(truth)
            advance()
        return np.concatenate(rows, axis=1), np.concatenate(truths).astype(np.float64)

    def counts(self, count: int, rules: list[list[Rule]], advance: Callable[[], None]) -> IntArray:
        """Testing: of each attack and question right guesses, wrong ones, and the squares of batches' surpluses."""

        def judge(task: tuple[int, int, int]) -> IntArray:
            scores, truth = self.batch(*task)
            return np.array(
                [[_judged(rule, row, truth) for rule in both] for row, both in zip(scores, rules, strict=True)]
            )

        total = np.zeros((len(self.attacks), 2, 3), dtype=np.int64)
        for counted in _in_threads(judge, self.batches(2, count), self.workers):
            total += counted
            advance()
        return total


def _judged(rule: Rule, scores: Array, truth: BoolArray) -> tuple[int, int, int]:
    """Right guesses, wrong ones, and the square of the difference."""
    ours, theirs = rule.guesses(scores)
    right = int(np.count_nonzero(ours & truth)) + int(np.count_nonzero(theirs & ~truth))
    wrong = int(np.count_nonzero(ours)) + int(np.count_nonzero(theirs)) - right
    return right, wrong, (right - wrong) ** 2


def _in_threads(function: Callable[[Any], _T], tasks: Iterable[Any], workers: int) -> Iterator[_T]:
    """``map`` with a few tasks under way at a time; NumPy lets go of the interpreter lock in its loops."""
    if workers == 1:
        yield from map(function, tasks)
        return
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(workers)
    try:
        waiting: deque[Any] = deque()
        for task in tasks:
            waiting.append(pool.submit(function, task))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _progress(wanted: bool, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing elsewhere."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not (wanted and console.is_terminal)) as bar:
        task = bar.add_task("audit", total=total)
        yield lambda: bar.advance(task)
