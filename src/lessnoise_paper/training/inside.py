"""The budget of one step: what the paper prints, what its equation gives, and training inside the range of Remark 1.

Remark 1 lets epsilon be at most 1/M. The paper's two trainings have steps far above that, where it makes no claim.
Here are trainings whose steps are inside: what all steps together guarantee exactly, how long their noise is beside
DP-SGD's, and how well a network learns with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessnoise.composition import amortise
from lessnoise.guarantees import Bracket
from lessnoise_paper.training import results, settings

if TYPE_CHECKING:
    from lessnoise_paper.training.results import Reader

PRINTED = {
    ("mnist", 1.795): 0.71,
    ("mnist", 16.983): 5.42,
    ("cifar10", 2.673): 0.54,
    ("cifar10", 20.713): 3.52,
}
"""epsilon0 of a step as section 7.3 prints it, for each claimed total."""


@dataclass(frozen=True)
class StepBudget:
    """epsilon0 of one step for a claimed total: printed, and solved from the paper's equation; ``limit`` is 1/M."""

    data: str
    claimed_epsilon: float
    printed: float
    solved: float
    limit: float
    times_the_limit: float


def step_budgets() -> list[StepBudget]:
    """One line for every training of the paper.

    >>> first = step_budgets()[0]
    >>> first.printed, round(first.solved, 4), round(first.times_the_limit)
    (0.71, 0.7125, 18467)
    """
    found = []
    for (data, epsilon), printed in PRINTED.items():
        case = settings.CASES[data]
        solved = amortise(epsilon, settings.DELTA, steps=case.epochs / case.rate, rate=case.rate).epsilon
        limit = 1.0 / case.parameters
        found.append(StepBudget(data, epsilon, printed, solved, limit, printed / limit))
    return found


@dataclass(frozen=True)
class Inside:
    """A training whose steps have epsilon0 = ``share``/M, by R1SMG as published: all claims and what is true.

    Lengths are root mean squares in clipping norms. ``gaussian_epsilon`` is what Gaussian noise of the same length
    guarantees over the same steps at delta = 1e-5; None where that was not asked.
    """

    data: str
    share: float
    steps: int
    step_epsilon: float
    step_delta: float
    step_exact: Bracket
    claimed_epsilon: float
    claimed_delta: float
    exact: Bracket
    length: float
    gaussian_lengths: tuple[float, ...]
    gaussian_epsilon: float | None


def inside(data: str, share: float) -> Inside:
    """One of them, from its stored plan; what a single step guarantees is computed now.

    >>> found = inside("mnist", 0.99)
    >>> found.exact.lower > 0.98 > 1e-5 == found.claimed_delta
    True
    >>> found.length > max(found.gaussian_lengths)  # longer than the noise of both DP-SGD lines
    True
    """
    case, plans = settings.CASES[data], settings.stored_plans()
    entry = plans[settings.key(data, settings.INSIDE, share)]
    noise = settings.stored_plan(data, settings.INSIDE, share).mechanism
    step = settings.step_inside(case, share)
    gaussian = plans.get(settings.key(data, settings.GAUSSIAN_OF_THAT_LENGTH, share))
    root = math.sqrt(case.parameters)
    return Inside(
        data,
        share,
        case.steps,
        step.epsilon,
        step.delta,
        noise.delta(step.epsilon),
        entry["epsilon"],
        settings.DELTA,
        Bracket(*entry["delta"]),
        math.sqrt(noise.expected_loss) / case.clip_norm,
        tuple(budget.noise_multiplier * root for budget in case.budgets),  # sigma C sqrt(M), in units of C
        None if gaussian is None else gaussian["epsilon_at_1e-5"][1],
    )


def inside_range() -> list[Inside]:
    """Every data set and share."""
    return [inside(data, share) for data in settings.CASES for share in settings.SHARES]


@dataclass(frozen=True)
class Trained:
    """A line of the study, or of training inside the range, after some epochs: accuracy on the test set over seeds."""

    method: str
    claimed_epsilon: float
    length: float
    guarantee: str
    epochs: int
    seeds: int
    accuracy: float
    least: float
    greatest: float


def trained_inside(read_result: Reader = results.read) -> list[Trained]:
    """MNIST inside the range beside the lines of the study after as many epochs; empty if one of them is missing.

    The exact guarantee is that of the whole training of 30 epochs.
    """
    ours, study = read_result("inside"), read_result("mnist")
    if ours is None or study is None:
        return []
    epochs = min(ours["epochs_done"], study["epochs_done"])
    found = []
    for curve in (*results.curves(ours), *results.curves(study)):
        if curve.epsilon is None or curve.method not in (settings.INSIDE, "dpsgd", "r1smg-published"):
            continue
        last = settings.SHARES[0] if curve.method == settings.INSIDE else curve.epsilon
        plan = settings.stored_plan("mnist", curve.method, last)
        mean, least, greatest = map(float, curve.test[epochs - 1])
        length = math.sqrt(plan.mechanism.expected_loss) / plan.mechanism.sensitivity
        guarantee = results.stored_guarantee("mnist", curve.method, last)
        source = ours if curve.method == settings.INSIDE else study
        seeds = len({run["seed"] for run in source["runs"]})
        found.append(Trained(curve.method, curve.epsilon, length, guarantee, epochs, seeds, mean, least, greatest))
    return sorted(found, key=lambda one: -one.length)
