"""What is trained in case study III, with which noise. Plans are computed once, exactly, and kept beside this module.

``python -m lessnoise_paper.training.settings`` computes them anew, in minutes.

Settings are those of the paper, which takes DP-SGD from the TensorFlow Privacy tutorial: C = 1, batch 256, noise
multipliers 1.1 and 0.5, 30 epochs for MNIST and 100 for CIFAR-10. It states no learning rate; 0.15 is the tutorial's.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import warnings
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from lessnoise import validation
from lessnoise.composition import amortise, strong_composition
from lessnoise.errors import ClaimWarning
from lessnoise.guarantees import Guarantee
from lessnoise.learn import TrainingPlan, gaussian, plan_training, published_r1smg

if TYPE_CHECKING:
    from collections.abc import Callable

DELTA = 1e-5
PRIVATE_METHODS = ("dpsgd", "dpsgd-exact", "r1smg-published", "r1smg")
SWEPT = ("dpsgd", "r1smg-published")
SWEEP_EPOCHS = 8
"""Lines and epochs of the sweep over learning rates."""
INSIDE = "r1smg-inside"
"""R1SMG as published with the budget of a step below 1/M, where the paper's Remark 1 allows it."""
SHARES = (0.99, 0.1, 0.01)
"""That budget, as shares of 1/M; the first has the shortest noise, and is trained with."""
GAUSSIAN_OF_THAT_LENGTH = "gaussian-inside"
"""Gaussian noise as long as that of the first share."""


@dataclass(frozen=True)
class Budget:
    """A noise multiplier of the tutorial, and the epsilon that the paper states for it at delta = 1e-5."""

    noise_multiplier: float
    epsilon: float


@dataclass(frozen=True)
class Case:
    """One data set with its network and training."""

    data: str
    records: int
    parameters: int
    epochs: int
    budgets: tuple[Budget, Budget]
    batch: int = 256
    learning_rate: float = 0.15
    clip_norm: float = 1.0
    optimizer: str = "sgd"

    @property
    def rate(self) -> float:
        """Probability of a record to take part in a step."""
        return self.batch / self.records

    @property
    def steps(self) -> int:
        """E/q, rounded down."""
        return self.epochs * self.records // self.batch


CASES = {
    "mnist": Case("mnist", 60000, 26010, 30, (Budget(1.1, 1.795), Budget(0.5, 16.983))),
    "cifar10": Case("cifar10", 50000, 122570, 100, (Budget(1.1, 2.673), Budget(0.5, 20.713))),
}


@dataclass(frozen=True)
class StrongRecipe:
    """A linear classifier on scattering features, with large batches, momentum and averaged weights."""

    data: str
    epsilon: float
    batch: int
    steps: int
    learning_rate: float
    clip_norm: float
    groups: int
    momentum: float = 0.9
    average_from: float = 0.5
    records: int = 0
    features: int = 0
    delta: float = DELTA

    @property
    def rate(self) -> float:
        """Probability of a record to take part in a step."""
        return self.batch / self.records

    @property
    def parameters(self) -> int:
        """Weights and biases of ten classes."""
        return 10 * self.features + 10


STRONG = {
    "mnist": StrongRecipe("mnist", 1.795, 16384, 300, 8.0, 0.1, 27, records=60000, features=81 * 7 * 7),
    "cifar10": StrongRecipe("cifar10", 2.673, 16384, 300, 4.0, 0.1, 27, records=50000, features=243 * 8 * 8),
}


def plan_of(case: Case, budget: Budget, method: str) -> TrainingPlan:
    """The noise of one line of the study, computed now; seconds for most, a minute for R1SMG calibrated exactly."""
    validation.choice("method", method, PRIVATE_METHODS)
    training: dict[str, Any] = {"rate": case.rate, "steps": case.steps, "records": case.records}
    if method == "dpsgd":
        step = gaussian(noise_multiplier=budget.noise_multiplier, clip_norm=case.clip_norm, parameters=case.parameters)
        return TrainingPlan(step, **training)
    setting: dict[str, Any] = {"clip_norm": case.clip_norm, "parameters": case.parameters, **training}
    if method in ("dpsgd-exact", "r1smg"):
        kind = "gaussian" if method == "dpsgd-exact" else "r1smg"
        return plan_training(kind, epsilon=budget.epsilon, delta=DELTA, **setting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClaimWarning)  # the study's tables say it all
        return published_r1smg(budget.epsilon, DELTA, **setting)


def strong_plan(recipe: StrongRecipe) -> TrainingPlan:
    """The noise of the strong recipe, computed now."""
    names = ("clip_norm", "parameters", "rate", "steps", "records", "epsilon", "delta")
    return plan_training("gaussian", **{name: getattr(recipe, name) for name in names})


def step_inside(case: Case, share: float) -> Guarantee:
    """(epsilon0, delta0) that a step gets with epsilon0 = ``share``/M, and the delta0 of the paper's two trainings.

    >>> print(step_inside(CASES["mnist"], 0.99))
    (3.80623e-05, 3.33342e-07)-DP under add/remove
    """
    # delta0 does not depend on the total epsilon: (delta - delta')/(T q), the paper's second equation.
    delta = amortise(case.budgets[0].epsilon, DELTA, steps=case.steps, rate=case.rate).delta
    return Guarantee(share / case.parameters, delta)


def claimed_inside(case: Case, share: float) -> Guarantee:
    """The total that the paper's strong composition states for such steps.

    >>> print(claimed_inside(CASES["mnist"], 0.99))
    (9.24094e-05, 1e-05)-DP under add/remove
    """
    step = step_inside(case, share)
    return strong_composition(step.epsilon, step.delta, steps=case.steps, rate=case.rate)


def plan_inside(case: Case, share: float) -> TrainingPlan:
    """R1SMG as published at such a total, computed now.

    >>> noise = plan_inside(CASES["mnist"], 0.99).mechanism
    >>> f"{noise.expected_loss ** 0.5:.1f}"  # longer than that of DP-SGD: 1.1 sqrt(26010) = 177.4
    '229.4'
    """
    total = claimed_inside(case, share)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClaimWarning)  # the study's tables say it all
        return published_r1smg(
            total.epsilon,
            DELTA,
            clip_norm=case.clip_norm,
            parameters=case.parameters,
            rate=case.rate,
            steps=case.steps,
            records=case.records,
        )


def plan_of_that_length(case: Case, share: float) -> TrainingPlan:
    """Gaussian noise whose root mean square length is that of R1SMG at such a total."""
    length = math.sqrt(plan_inside(case, share).mechanism.expected_loss)
    multiplier = length / math.sqrt(case.parameters) / case.clip_norm
    step = gaussian(noise_multiplier=multiplier, clip_norm=case.clip_norm, parameters=case.parameters)
    return TrainingPlan(step, rate=case.rate, steps=case.steps, records=case.records)


def key(data: str, method: str, epsilon: float) -> str:
    """The name of a line of the study. A line inside the range of Remark 1 has its share of 1/M in place of epsilon."""
    return f"{data} {method} {epsilon:g}"


def compute_plans(only: Callable[[str], bool] = lambda name: True) -> dict[str, dict[str, Any]]:
    """All plans, with the exact delta at the claimed epsilon and the exact epsilon at delta = 1e-5."""
    tasks: dict[str, tuple[float, Callable[[], TrainingPlan]]] = {}
    for case in CASES.values():
        for budget in case.budgets:
            for method in PRIVATE_METHODS:
                name = key(case.data, method, budget.epsilon)
                tasks[name] = budget.epsilon, functools.partial(plan_of, case, budget, method)
        if case.data == "mnist":
            for budget, method in itertools.product(case.budgets, SWEPT):
                name = f"{key(case.data, method, budget.epsilon)} after {SWEEP_EPOCHS}"
                tasks[name] = budget.epsilon, functools.partial(_shorter, case, budget, method)
        for share in SHARES:
            total = claimed_inside(case, share).epsilon
            tasks[key(case.data, INSIDE, share)] = total, functools.partial(plan_inside, case, share)
        same = functools.partial(plan_of_that_length, case, SHARES[0])
        tasks[key(case.data, GAUSSIAN_OF_THAT_LENGTH, SHARES[0])] = claimed_inside(case, SHARES[0]).epsilon, same
    for recipe in STRONG.values():
        tasks[key(recipe.data, "strong", recipe.epsilon)] = recipe.epsilon, functools.partial(strong_plan, recipe)
    return {name: described(plan(), epsilon) for name, (epsilon, plan) in tasks.items() if only(name)}


def _shorter(case: Case, budget: Budget, method: str) -> TrainingPlan:
    """The same noise for the epochs of the sweep; what a whole training claims is no claim for a part of it."""
    steps = SWEEP_EPOCHS * case.records // case.batch
    return replace(plan_of(case, budget, method), steps=steps, target=None, claim=None)


def described(plan: TrainingPlan, epsilon: float) -> dict[str, Any]:
    """A plan, with what it guarantees."""
    delta = plan.delta(epsilon)
    # R1SMG as published has a delta of 0.4 to 1: no finite epsilon at 1e-5 is proved.
    found = plan.epsilon(DELTA) if delta.upper < 0.4 else None
    return {
        "plan": plan.to_dict(),
        "epsilon": epsilon,
        "delta": [delta.lower, delta.upper],
        "epsilon_at_1e-5": None if found is None else [found.lower, found.upper],
    }


def stored_plans() -> dict[str, dict[str, Any]]:
    """The plans that the committed results were made with."""
    text = (resources.files(__package__) / "results" / "plans.json").read_text(encoding="utf-8")
    plans: dict[str, dict[str, Any]] = json.loads(text)
    return plans


def stored_plan(data: str, method: str, epsilon: float) -> TrainingPlan:
    """One of them."""
    return TrainingPlan.from_dict(stored_plans()[key(data, method, epsilon)]["plan"])


def plan_of_run(data: str, method: str, epsilon: float, records: int, epochs: int) -> dict[str, Any] | None:
    """What a training of these records and epochs guarantees with the noise of the study; None without a step.

    The stored plan says it for the study's own settings. For others it is computed: fewer epochs cost less, more epochs
    or fewer records cost more.
    """
    case = CASES[data]
    name = key(data, method, epsilon)
    if records == case.records:
        kept = stored_plans().get(name if epochs == case.epochs else f"{name} after {epochs}")
        if kept is not None:
            return kept
    return _plan_of_run(data, method, epsilon, records, epochs)


@functools.lru_cache(maxsize=64)
def _plan_of_run(data: str, method: str, epsilon: float, records: int, epochs: int) -> dict[str, Any] | None:
    case, plan = CASES[data], stored_plan(data, method, epsilon)
    steps = epochs * records // case.batch
    if not steps:
        return None
    rate = min(case.batch / records, 1.0)
    return described(replace(plan, rate=rate, steps=steps, records=records, target=None, claim=None), epsilon)


if __name__ == "__main__":  # `python -m lessnoise_paper.training.settings` prints results/plans.json anew
    print(json.dumps(compute_plans(), indent=1))
