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

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_SAFE = 1e-9  # relative, added to the beta quantiles: far above their rounding error
_SHARE = 0.2  # of the error probability, spent on h; theta decides, so it gets the rest
_THRESHOLDS = 120  # tried on each side


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

    def guesses(self, scores: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
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

    def estimates(self, right: Array, wrong: Array, trials: float, sides: int, error: float) -> Array:
        """The same by Wilson's formula, for many events at once: good enough to choose among them."""
        from scipy.special import ndtri

        z = float(-ndtri(error))
        guesses = right + wrong
        rate = np.maximum(1.0 - _wilson_upper(trials - guesses, trials, z), 1e-300)
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


def _wilson_upper(hits: Array, trials: Array | float, z: float) -> Array:
    centre = hits + 0.5 * z * z
    spread = z * np.sqrt(hits * (trials - hits) / np.maximum(trials, 1e-300) + 0.25 * z * z)
    result: Array = (centre + spread) / (trials + z * z)
    return result


def choose(value: Array, neighbour: Array, question: Question, tested: int, error: float) -> tuple[float, Rule]:
    """The best rule on training scores of the two kinds, and the bound to expect of it on ``tested`` releases.

    >>> rng = np.random.default_rng(0)
    >>> expected, rule = choose(rng.normal(3, 1, 999), rng.normal(0, 1, 999), Question(epsilon=0.0), 10_000, 1e-3)
    >>> 0.8 < expected < 0.9, rule.sides, 1 < rule.upper < 2, 1 < rule.lower < 2
    (True, 2, True, True)
    """
    value, neighbour = np.sort(value), np.sort(neighbour)
    return max(
        (
            _choose_signed(value, neighbour, 1.0, question, tested, error),
            _choose_signed(-value[::-1], -neighbour[::-1], -1.0, question, tested, error),
        ),
        key=lambda found: found[0],
    )


def _choose_signed(
    value: Array, neighbour: Array, sign: float, question: Question, tested: int, error: float
) -> tuple[float, Rule]:
    """Both arguments sorted; large scores are taken to speak for the value."""
    pooled = np.sort(np.concatenate([value, neighbour]), kind="stable")
    ranks = np.unique(np.geomspace(1, len(pooled), _THRESHOLDS).astype(np.int64))
    uppers, lowers = np.unique(pooled[len(pooled) - ranks]), np.unique(pooled[ranks - 1])
    scale = tested / len(pooled)
    # One wrong guess more than seen: a lucky tail is not taken for a perfect event.
    right_above: Array = scale * (len(value) - np.searchsorted(value, uppers, "left"))
    wrong_above: Array = scale * (len(neighbour) - np.searchsorted(neighbour, uppers, "left") + 1.0)
    right_below: Array = scale * np.searchsorted(neighbour, lowers, "right")
    wrong_below: Array = scale * (np.searchsorted(value, lowers, "right") + 1.0)

    trials = tested * (1.0 + 2.0 / len(pooled))
    above = question.estimates(right_above, wrong_above, trials, 1, error)
    below = question.estimates(right_below, wrong_below, trials, 1, error)
    right = np.add.outer(right_above, right_below)
    wrong = np.add.outer(wrong_above, wrong_below)
    both = question.estimates(right, np.minimum(wrong, trials - right), trials, 2, error)
    both[np.less_equal.outer(uppers, lowers)] = -np.inf  # the two guesses exclude each other

    i, j = np.unravel_index(int(np.argmax(both)), both.shape)
    return max(
        (float(both[i, j]), Rule(sign, float(uppers[i]), float(lowers[j]))),
        (float(np.max(above)), Rule(sign, float(uppers[np.argmax(above)]), None)),
        (float(np.max(below)), Rule(sign, None, float(lowers[np.argmax(below)]))),
        key=lambda found: found[0],
    )
