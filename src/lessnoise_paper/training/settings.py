"""What is trained in case study III, with which noise. Plans are computed once, exactly, and kept beside this module.

``python -m lessnoise_paper.training.settings`` computes them anew, in minutes.

Settings are those of the paper: DP-SGD of the TensorFlow Privacy tutorial, C = 1, batch 256, learning rate 0.15, 30
epochs for MNIST and 100 for CIFAR-10, noise multipliers 1.1 and 0.5.
"""

from __future__ import annotations

import functools
import json
import warnings
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from lessnoise import validation
from lessnoise.errors import ClaimWarning
from lessnoise.learn import TrainingPlan, gaussian, plan_training, published_r1smg

if TYPE_CHECKING:
    from collections.abc import Callable

DELTA = 1e-5
PRIVATE_METHODS = ("dpsgd", "dpsgd-exact", "r1smg-published", "r1smg")


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


def key(data: str, method: str, epsilon: float) -> str:
    """The name of a line of the study."""
    return f"{data} {method} {epsilon:g}"


def compute_plans(only: Callable[[str], bool] = lambda name: True) -> dict[str, dict[str, Any]]:
    """All plans, with the exact delta at the claimed epsilon and the exact epsilon at delta = 1e-5."""
    tasks: dict[str, Callable[[], TrainingPlan]] = {}
    for case in CASES.values():
        for budget in case.budgets:
            for method in PRIVATE_METHODS:
                name = key(case.data, method, budget.epsilon)
                tasks[name] = functools.partial(plan_of, case, budget, method)
    for recipe in STRONG.values():
        tasks[key(recipe.data, "strong", recipe.epsilon)] = functools.partial(strong_plan, recipe)
    return {name: described(task(), float(name.split()[-1])) for name, task in tasks.items() if only(name)}


def described(plan: TrainingPlan, epsilon: float) -> dict[str, Any]:
    """A plan, with what it guarantees."""
    delta = plan.delta(epsilon)
    # R1SMG as published has a delta of 0.58 to 1: no finite epsilon at 1e-5 is proved.
    found = plan.epsilon(DELTA) if delta.upper < 0.5 else None
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
    if (records, epochs) == (case.records, case.epochs):
        return stored_plans()[key(data, method, epsilon)]
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
