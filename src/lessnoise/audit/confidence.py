r"""What guesses prove about delta and epsilon.

Each release is made from the value or from its neighbour, by a fair coin. An attack then guesses which, or abstains. It
guesses "value" on an event S and "neighbour" on a disjoint event T; one of them may be empty. If the mechanism is
(epsilon, delta)-private for this pair of inputs, with P and Q the laws of its outputs,

    P(S) <= e^epsilon Q(S) + delta   and   Q(T) <= e^epsilon P(T) + delta,

so that with h the probability of a guess, theta that of a right one among the guesses, and s = 1 or 2 sides in use,

    (2/s) h (theta - e^epsilon (1 - theta)) <= delta.

Of N releases the guesses are binomial in h, and the right ones binomial in theta given the guesses: two lower bounds of
Clopper and Pearson (1934), one for h and one for theta, bound delta or epsilon from below with a true confidence,
whatever the mechanism is. The events must not be chosen on the same releases: :func:`choose` uses others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lessnoise._common import Array, BoolArray


_SAFE = 1e-9  # relative, added to the beta quantiles: far above their rounding error
_SHARE = 0.2  # of the error probability, spent on h; theta decides, so it gets the rest
_THRESHOLDS = 80  # tried in each tail
_GROUPS = 256  # of scores, for the logistic curve
_RIDGE = 1e-3  # keeps its slope finite where the scores separate the two kinds


@dataclass(frozen=True, slots=True)
class Rule:
    """When to guess: "value" if sign * score >= upper, "neighbour" if sign * score <= lower; None: never.

    >>> Rule(1.0, 2.0, None).guesses(np.array([1.0, 3.0]))
    (array([False,  True]), array([False, False]))
    """

    sign: float
    upper: float | None
    lower: float | None

    @property
    def sides(self) -> int:
        """How many of the two guesses are ever made."""
        return (self.upper is not None) + (self.lower is not None)

    def guesses(self, scores: Array) -> tuple[BoolArray, BoolArray]:
        """Where it guesses "value", and where "neighbour"."""
        signed = self.sign * scores
        never = np.zeros(scores.shape, dtype=bool)
        return (
            never if self.upper is None else signed >= self.upper,
            never if self.lower is None else signed <= self.lower,
        )


@dataclass(frozen=True, slots=True)
class Question:
    """Which number is bounded: delta at an ``epsilon``, or epsilon at a ``delta``. The other one is None."""

    epsilon: float | None = None
    delta: float | None = None

    def lower_bound(self, right: int, wrong: int, trials: int, sides: int, error: float) -> float:
        """The bound that fails with probability ``error`` at most.

        >>> f"{Question(epsilon=0.0).lower_bound(right=900, wrong=100, trials=1000, sides=2, error=1e-3):.3f}"
        '0.727'
        >>> f"{Question(delta=0.0).lower_bound(right=1000, wrong=0, trials=10**6, sides=1, error=1e-3):.2f}"
        '4.97'
        """
        guesses = right + wrong
        if guesses == 0:
            return 0.0
        share = 0.0 if self.delta == 0.0 else _SHARE  # h does not matter for pure privacy
        rate = clopper_pearson_lower(guesses, trials, share * error) if share else 1.0
        failure = clopper_pearson_upper(wrong, guesses, (1.0 - share) * error)
        return max(float(self._value(np.array(rate), np.array(failure), sides)), 0.0)

    def estimates(self, right: Array, wrong: Array, trials: float, sides: int, z: float) -> Array:
        """The same by Wilson's formula, for many events at once, at z deviations: good enough to choose among them."""
        wrong = np.maximum(wrong, 0.0)  # a difference of sums may be off by rounding
        guesses = right + wrong
        rate = np.maximum(1.0 - _wilson_upper(np.maximum(trials - guesses, 0.0), trials, z), 1e-300)
        return self._value(rate, np.minimum(_wilson_upper(wrong, guesses, z), 1.0), sides)

    def _value(self, rate: Array, failure: Array, sides: int) -> Array:
        """Solve (2/s) h (theta - e^epsilon (1 - theta)) = delta for what is asked; ``failure`` is 1 - theta."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if self.epsilon is not None:
                return (2.0 / sides) * rate * (1.0 - failure - np.exp(self.epsilon + np.log(failure)))
            assert self.delta is not None
            surplus = 1.0 - failure - 0.5 * sides * self.delta / rate
            return np.where(surplus > 0.0, np.log(np.maximum(surplus, 1e-300) / failure), -np.inf)


def clopper_pearson_lower(hits: int, trials: int, error: float) -> float:
    """Lower bound of a proportion, above the truth with probability ``error`` at most.

    >>> f"{clopper_pearson_lower(10, 10, 0.001):.4f}"  # error^(1/10)
    '0.5012'
    """
    from scipy.special import betaincinv

    if hits == 0:
        return 0.0
    return float(betaincinv(hits, trials - hits + 1, error)) * (1.0 - _SAFE)


def clopper_pearson_upper(hits: int, trials: int, error: float) -> float:
    """Upper bound of a proportion, below the truth with probability ``error`` at most."""
    from scipy.special import betainccinv

    if hits == trials:
        return 1.0
    return min(float(betainccinv(hits + 1, trials - hits, error)) * (1.0 + _SAFE), 1.0)


def deviations(error: float) -> float:
    """How many standard deviations a normal variable exceeds with this probability."""
    from scipy.special import ndtri

    return float(-ndtri(error))


def _wilson_upper(hits: Array, trials: Array | float, z: float) -> Array:
    centre = hits + 0.5 * z * z
    spread = z * np.sqrt(hits * (trials - hits) / np.maximum(trials, 1e-300) + 0.25 * z * z)
    result: Array = (centre + spread) / (trials + z * z)
    return result


def coin_probability(surplus: int, squares: int) -> float:
    """How likely fair coins alone, one a batch, make such a surplus of right guesses; rounded up.

    A function that makes many releases in one call may keep state, share noise among them, or show how many were asked
    for. Even if it ignores its input, its outputs then tell the two calls of a batch apart, but not which of them is
    for the value: a coin decides that. So the sum of +-s_b over the batches' surpluses s_b is what chance makes of
    such outputs, and passes t with probability exp(-t^2/(2 sum s_b^2)) at most (Hoeffding 1963).

    >>> f"{coin_probability(30, 30):.1e}"  # one more right guess in each of 30 batches
    '3.1e-07'
    """
    return math.exp(-0.5 * surplus**2 / squares) * (1.0 + _SAFE) if surplus > 0 else 1.0


def fewest_batches(error: float) -> int:
    """So many that a leak in all of them is not taken for chance.

    >>> fewest_batches(0.0005)
    64
    """
    return max(64, math.ceil(-8.0 * math.log(error)))


def choose(
    scores: Array, truth: Array, question: Question, tested: int, error: float, *, log_odds: bool = False
) -> tuple[float, Rule]:
    """The best rule on training releases, and the bound to expect of it on ``tested`` others.

    ``truth`` is 1 for releases of the value and 0 for those of the neighbour. Two choosers compete, each judged on
    the half of the releases that it has not seen: one counts right and wrong guesses, the other replaces the truth by
    a logistic curve in the score, which is less noisy where the curve fits. Scores that *are* ``log_odds`` need none
    of this: the truth is replaced by its expectation.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 2000).astype(float)
    >>> expected, rule = choose(rng.normal(3 * truth, 1), truth, Question(epsilon=0.0), 10_000, 1e-3)
    >>> 0.8 < expected < 0.9, 1 < rule.upper < 2
    (True, True)
    """
    from scipy.special import expit

    if log_odds:
        return _best_rule(np.sort(scores), expit(np.sort(scores)), 1.0, question, tested, error, noise=0.0)
    halves = [(scores[i::2], truth[i::2]) for i in range(2)]
    rated = []
    for chooser in (_by_counts, _by_logistic_curve):
        found = [chooser(*half, question, tested, error) for half in halves]
        unseen = [_rate(rule, *half, question, tested, error) for rule, half in zip(found, halves[::-1], strict=True)]
        rated.append((sum(unseen) / 2.0, chooser))
    expected, chooser = max(rated, key=lambda one: one[0])
    return expected, chooser(scores, truth, question, tested, error)


def _rate(rule: Rule, scores: Array, truth: Array, question: Question, tested: int, error: float) -> float:
    """The bound to expect on ``tested`` releases if guesses go as here, less half a deviation of this very estimate."""
    ours, theirs = rule.guesses(scores)
    right = float(truth[ours].sum() + (1.0 - truth[theirs]).sum())
    wrong = float(np.count_nonzero(ours) + np.count_nonzero(theirs)) - right
    scale = tested / len(scores)
    z = deviations(error) + 0.5 * math.sqrt(0.5 * scale)  # both halves together are twice as many
    return float(question.estimates(np.array(scale * right), np.array(scale * wrong), tested, rule.sides, z))


def _by_counts(scores: Array, truth: Array, question: Question, tested: int, error: float) -> Rule:
    # As if the test were no longer than the training: large, noisy events must earn their place.
    order = np.argsort(scores, kind="stable")
    scores, truth = scores[order], truth[order]
    both = [_best_rule(scores, truth, sign, question, len(scores), error, noise=1.0) for sign in (1.0, -1.0)]
    return max(both, key=lambda found: found[0])[1]


def _by_logistic_curve(scores: Array, truth: Array, question: Question, tested: int, error: float) -> Rule:
    from scipy.special import expit

    order = np.argsort(scores, kind="stable")
    scores, truth = scores[order], truth[order]
    inside = scores[np.isfinite(scores)] if np.isfinite(scores).any() else np.zeros(1)
    finite = np.clip(scores, inside[0] - 1.0, inside[-1] + 1.0)
    slope, offset = _logistic_fit(finite, truth)
    probable = expit(slope * finite + offset)
    return _best_rule(scores, probable, -1.0 if slope < 0.0 else 1.0, question, tested, error, noise=0.0)[1]


def _logistic_fit(scores: Array, truth: Array) -> tuple[float, float]:
    """Slope and offset of the log odds, by Newton's method on the means of groups of equal size."""
    from scipy.special import expit

    edges = np.unique(np.linspace(0, len(scores), _GROUPS + 1).astype(np.int64))
    sizes = np.diff(edges)
    x, y = (np.add.reduceat(column, edges[:-1]) / sizes for column in (scores, truth))
    centre, width = float(np.average(x, weights=sizes)), float(x.max() - x.min()) or 1.0
    design = np.stack([(x - centre) / width, np.ones_like(x)])
    beta = np.zeros(2)
    for _ in range(12):
        mean = expit(beta @ design)
        curvature = (design * (sizes * mean * (1.0 - mean))) @ design.T + _RIDGE * np.eye(2)
        step = np.clip(np.linalg.solve(curvature, design @ (sizes * (y - mean)) - _RIDGE * beta), -20.0, 20.0)
        beta += step
        if np.abs(step).max() < 1e-3:
            break
    return float(beta[0] / width), float(beta[1] - beta[0] * centre / width)


def _best_rule(
    scores: Array, truth: Array, sign: float, question: Question, tested: int, error: float, noise: float
) -> tuple[float, Rule]:
    """Over a grid of thresholds on sorted scores, of which large ones (by ``sign``) speak for the value.

    ``truth`` may be a probability. ``noise`` counts as that many wrong guesses more than seen, so that a lucky tail is
    not taken for a perfect event.
    """
    if sign < 0.0:
        scores, truth = -scores[::-1], truth[::-1]
    count = len(scores)
    ranks = np.unique(np.geomspace(1, count, _THRESHOLDS).astype(np.int64))
    # Fine in both tails; with every upper threshold the lower one next to it.
    cuts = np.concatenate([count - ranks, ranks])
    uppers, lowers = np.unique(scores[cuts[cuts < count]]), np.unique(scores[cuts[cuts > 0] - 1])
    start, stop = np.searchsorted(scores, uppers, "left"), np.searchsorted(scores, lowers, "right")
    of_value = np.concatenate([[0.0], np.cumsum(truth)])
    right_above, wrong_below = of_value[-1] - of_value[start], of_value[stop]
    scale = tested / count
    right_above, right_below = scale * right_above, scale * (stop - wrong_below)
    wrong_above, wrong_below = scale * (count - start + noise) - right_above, scale * (wrong_below + noise)

    trials, z = tested + 2.0 * scale * noise, deviations(error)
    above = question.estimates(right_above, wrong_above, trials, 1, z)
    below = question.estimates(right_below, wrong_below, trials, 1, z)
    right, wrong = np.add.outer(right_above, right_below), np.add.outer(wrong_above, wrong_below)
    both = question.estimates(right, wrong, trials, 2, z)
    both[np.less_equal.outer(uppers, lowers)] = -np.inf  # the two guesses exclude each other
    i, j = np.unravel_index(int(np.argmax(both)), both.shape)
    return max(
        (float(both[i, j]), Rule(sign, float(uppers[i]), float(lowers[j]))),
        (float(np.max(above)), Rule(sign, float(uppers[np.argmax(above)]), None)),
        (float(np.max(below)), Rule(sign, None, float(lowers[np.argmax(below)]))),
        key=lambda found: found[0],
    )
