"""What a training will cost, before it starts: one mechanism, on Poisson samples, for a number of steps.

Each step releases the sum of the clipped gradients of a fresh Poisson sample, plus noise. One record moves the sum by
at most the clipping norm, which is therefore the sensitivity. Nothing here needs PyTorch.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise._display import Charted, Facts, Lines, Listed
from lessnoise.composition import amortise
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.guarantees import Bracket, Claim, Guarantee, Neighbours, Verdict
from lessnoise.mechanism import Mechanism, Radial, r1smg
from lessnoise.text import up

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.composition import Composition

OURS = "calibrated on the exact composed curve by lessnoise"
PUBLISHED = "r1smg-published"
_MEMBERS: dict[str, Callable[[int], Radial]] = {
    "analytic-gaussian": lambda dimension: Radial(dimension, 2.0, math.sqrt(2.0)),
    "l2": lambda dimension: Radial(dimension, 1.0, 1.0 / math.sqrt(dimension)),
    "r1smg": lambda dimension: Radial(1.0, 2.0, math.sqrt(2.0)),
}
NAMES = (*_MEMBERS, PUBLISHED)
_SHORT = {"gaussian": "analytic-gaussian"}
_SHARE = 0.97  # a calibrated training spends at least this share of its delta
_NARROW = 1e-5  # or its scale is known this well
_USUAL_DELTA = 1e-6
_POINTS = 17  # of a picture


class Accounted(Listed, Charted, ABC):
    """A plan whose cost follows from the composition of its steps."""

    steps: int
    records: int
    target: Guarantee | None
    claim: Claim | None

    @abstractmethod
    def composition(self, steps: int | None = None) -> Composition:
        """All steps, or the first ``steps`` of them."""

    @abstractmethod
    def machine_distance(self, steps: int | None = None) -> float:
        """How far the words of the noise, and those that choose the samples, are from ideal ones at most."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""

    @abstractmethod
    def check_resume(self) -> None:
        """Refuse to go on from a checkpoint, if that cannot be done."""

    def delta(self, epsilon: float, steps: int | None = None) -> Bracket:
        """Exact delta at an epsilon after all steps, or the first ``steps``; zero before the first."""
        if steps == 0:
            return Bracket(0.0, 0.0)
        exact = self.composition(steps).delta(epsilon)
        return noise_engine.with_machine(exact, epsilon, self.machine_distance(steps))

    def epsilon(self, delta: float, steps: int | None = None) -> Bracket:
        """Exact epsilon at a delta after all steps, or the first ``steps``; zero before the first."""
        delta = validation.delta(delta)
        if steps == 0:
            return Bracket(0.0, 0.0)
        curve = self.composition(steps).epsilon
        exact = noise_engine.epsilon_with_machine(curve, delta, self.machine_distance(steps))
        upper = exact.upper
        if self.target is not None and delta >= self.target.delta and upper > self.target.epsilon:
            # Where the curve is flat epsilon is known less well than delta, for which the noise was chosen.
            upper = self.target.epsilon if self.delta(self.target.epsilon).upper <= self.target.delta else upper
        return Bracket(min(exact.lower, upper), upper)

    def check(self) -> Verdict:
        """Compare what a source claims of the whole training with the exact composed curve."""
        if self.claim is None:
            raise InvalidInput("claim=None for this training: there is nothing to check; read .delta(epsilon) instead.")
        exact = self.delta(self.claim.epsilon)
        return Verdict(exact.upper <= self.claim.delta, self.claim, exact)

    @abstractmethod
    def _steps_of_an_epoch(self) -> float:
        """After how many steps a record was used once, on average."""

    @abstractmethod
    def _settings(self) -> list[tuple[str, str]]:
        """What is particular to this kind of plan, for its table."""

    def _facts(self) -> Facts:
        rows = [("steps", f"{self.steps:,}"), ("records", f"{self.records:,}"), *self._settings()]
        asked = self.target or self.claim
        if asked is None:
            return Facts("A training", [*rows, ("exact epsilon at delta = 1e-06", str(self.epsilon(_USUAL_DELTA)))])
        exact = self.delta(asked.epsilon)
        word = "target" if self.target is not None else "claim"
        rows += [(word, str(asked)), (f"exact delta at epsilon = {asked.epsilon:g}", str(exact))]
        return Facts("A training", rows, good=exact.upper <= asked.delta)

    def _chart(self) -> Lines:
        asked = self.target or self.claim
        delta = _USUAL_DELTA if asked is None or asked.delta == 0.0 else asked.delta
        counts = sorted({round(share * self.steps) for share in np.linspace(0.0, 1.0, _POINTS).tolist()})
        spent = [self.epsilon(delta, count) for count in counts]
        epochs = [count / self._steps_of_an_epoch() for count in counts]
        word = "target" if self.target is not None else "claim"
        mark = None if asked is None else (f"{word}, ε = {up(asked.epsilon)}", asked.epsilon)
        title = f"Privacy that {self.steps:,} steps spend"
        lines = [("exact ε, upper end", epochs, [each.upper for each in spent])]
        if any(math.isinf(each.upper) for each in spent):
            lines.append(("exact ε, lower end", epochs, [each.lower for each in spent]))
        return Lines(title, "epochs", f"ε at δ = {up(delta)}", lines, mark)


@dataclass(frozen=True)
class TrainingPlan(Accounted):
    """The steps of a training: ``mechanism`` on a Poisson sample at ``rate`` of ``records``, ``steps`` times.

    >>> plan = TrainingPlan(gaussian(noise_multiplier=1.1, clip_norm=1, parameters=26010), 256 / 60000, 7031, 60000)
    >>> bracket = plan.epsilon(1e-5)
    >>> 1.63 < bracket.lower < bracket.upper < 1.64
    True
    >>> TrainingPlan.from_dict(plan.to_dict()) == plan
    True
    """

    mechanism: Mechanism
    rate: float
    steps: int
    records: int
    target: Guarantee | None = None
    claim: Claim | None = None

    def __post_init__(self) -> None:
        settle(self, steps=validation.whole_number("steps", self.steps))
        settle(self, records=validation.whole_number("records", self.records))
        self.composition()  # checks the rest

    def composition(self, steps: int | None = None) -> Composition:
        """All steps, or the first ``steps`` of them."""
        return self.mechanism.subsample(self.rate).repeat(self.steps if steps is None else steps)

    def machine_distance(self, steps: int | None = None) -> float:
        """How far the words of the noise, and those that choose the samples, are from ideal ones at most."""
        count = self.steps if steps is None else steps
        chosen = noise_engine.machine_distance(count * self.records)  # the samples of a pass share one key
        return self.composition(count).machine_distance + chosen

    def _steps_of_an_epoch(self) -> float:
        return 1.0 / self.rate

    def _settings(self) -> list[tuple[str, str]]:
        noise = self.mechanism.standard_deviation / self.mechanism.sensitivity
        rows = [("mechanism of a step", self.mechanism.name), ("noise of an entry, in clipping norms", f"{noise:.4g}")]
        return [*rows, ("sampling rate", f"{self.rate:.4g}")]

    def check_resume(self) -> None:
        """Steps with noise of their own can always go on."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "mechanism": self.mechanism.to_dict(),
            "rate": self.rate,
            "steps": self.steps,
            "records": self.records,
            "target": None if self.target is None else self.target.to_dict(),
            "claim": None if self.claim is None else self.claim.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainingPlan:
        """The inverse of :meth:`to_dict`."""
        given = validation.members(cls, values, "plan")
        target, claim = given["target"], given["claim"]
        return cls(
            Mechanism.from_dict(given["mechanism"]),
            given["rate"],
            given["steps"],
            given["records"],
            None if target is None else Guarantee.from_dict(target),
            None if claim is None else Claim.from_dict(claim),
        )


def gaussian(*, noise_multiplier: float, clip_norm: float, parameters: int) -> Mechanism:
    """One step of DP-SGD: independent normal noise of deviation ``noise_multiplier * clip_norm`` (Abadi et al. 2016).

    >>> f"{gaussian(noise_multiplier=1.1, clip_norm=2, parameters=10).standard_deviation:.6f}"
    '2.200000'
    """
    clip = validation.sensitivity(clip_norm, "clip_norm")
    dimension = validation.whole_number("parameters", parameters)
    sigma = validation.positive("noise_multiplier", noise_multiplier) * clip
    return Mechanism("gaussian", Radial(dimension, 2.0, math.sqrt(2.0) * sigma), (dimension,), clip)


def plan_training(
    mechanism: str | Mechanism,
    *,
    clip_norm: float,
    parameters: int,
    rate: float,
    steps: int,
    records: int,
    epsilon: float | None = None,
    delta: float | None = None,
) -> TrainingPlan:
    """The plan of a training, with the least noise of the given kind that keeps (epsilon, delta) over all steps.

    ``mechanism`` is "analytic-gaussian" (or "gaussian" for short), "l2" or "r1smg", as in the catalogue, or any
    description for arrays of ``parameters`` entries, such as one made by :func:`lessnoise.least_noise`; its scale is
    then set anew. Without ``epsilon`` a description is used as it is. "r1smg-published" is the paper's own training:
    see :func:`published_r1smg`.

    >>> plan = plan_training("analytic-gaussian", clip_norm=1, parameters=10, rate=0.01, steps=500, records=1000,
    ...                      epsilon=1, delta=1e-5)
    >>> 0.95e-5 < plan.delta(1).upper <= 1e-5
    True
    """
    clip = validation.sensitivity(clip_norm, "clip_norm")
    dimension = validation.whole_number("parameters", parameters)
    target = asked_guarantee(mechanism, epsilon, delta)
    if isinstance(mechanism, str):
        name = _SHORT.get(mechanism, mechanism)
        validation.choice("mechanism", name, NAMES)
        if name == PUBLISHED:
            assert target is not None
            return published_r1smg(
                target.epsilon,
                target.delta,
                clip_norm=clip,
                parameters=dimension,
                rate=rate,
                steps=steps,
                records=records,
            )
        mechanism = Mechanism(name, _MEMBERS[name](dimension).scaled(clip), (dimension,), clip)
    _check_fit(mechanism, dimension, clip)
    plan = TrainingPlan(replace(mechanism, claim=None, design=None) if target else mechanism, rate, steps, records)
    if target is None:
        return plan
    claim = Claim(target.epsilon, target.delta, target.neighbours, OURS)
    return replace(_calibrated(plan, target), target=target, claim=claim)


def published_r1smg(
    epsilon: float, delta: float, *, clip_norm: float, parameters: int, rate: float, steps: int, records: int
) -> TrainingPlan:
    """R1SMG-DPSGD as published: each step gets (epsilon0, delta0) by strong composition with delta' = 1e-10.

    Ji & Li (USENIX Security 2024), equation for the amortised budget, then sigma_* of Theorem 5 for that step. The
    claim is theirs; :meth:`TrainingPlan.check` computes what all steps together really guarantee.
    """
    each = amortise(epsilon, delta, steps=validation.whole_number("steps", steps), rate=rate)
    step = r1smg(
        epsilon=each.epsilon,
        delta=each.delta,
        sensitivity=validation.sensitivity(clip_norm, "clip_norm"),
        shape=validation.whole_number("parameters", parameters),
        calibration="published",
    )
    claim = Claim(epsilon, delta, step.neighbours, "Ji & Li 2024, case study III")
    return TrainingPlan(step, rate, steps, records, claim=claim)


def asked_guarantee(mechanism: object, epsilon: float | None, delta: float | None) -> Guarantee | None:
    """What the whole training is to keep; None without an epsilon."""
    if epsilon is None:
        if isinstance(mechanism, str):
            raise InvalidInput(
                f"epsilon=None for mechanism={mechanism!r}: pass epsilon= and delta= for the whole training, or a "
                "description with the noise that you want, such as learn.gaussian(noise_multiplier=1.1, ...)."
            )
        return None
    if delta is None:
        raise InvalidInput(f"delta=None for epsilon={epsilon}: pass delta= too, well below 1/records.")
    return Guarantee(validation.epsilon(epsilon), validation.delta(delta))


def _check_fit(mechanism: Mechanism, dimension: int, clip: float) -> None:
    """The description must be one for the clipped sum."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput(f"mechanism={mechanism!r} is not known: pass one of {', '.join(NAMES)}, or a description.")
    if mechanism.dimension != dimension:
        raise InvalidInput(
            f"mechanism.shape={mechanism.shape} has {mechanism.dimension} entries, but {dimension} parameters are "
            f"trained: build it with shape={dimension}."
        )
    if mechanism.sensitivity != clip:
        raise InvalidInput(
            f"mechanism.sensitivity={mechanism.sensitivity:g} differs from clip_norm={clip:g}, the most that one "
            "record moves the sum: build it with that sensitivity."
        )
    if mechanism.neighbours is not Neighbours.ADD_REMOVE:
        raise InvalidInput(
            f"mechanism.neighbours={mechanism.neighbours.value!r}: training is accounted for add/remove neighbours, so "
            "build it for those."
        )
    if mechanism.law.norm != "l2" or mechanism.law.integer:
        raise InvalidInput(
            f"mechanism={mechanism.name!r} does not fit real gradients that are clipped in the l2 norm: choose "
            "Gaussian, l2, radial or shell noise."
        )


def _calibrated(plan: TrainingPlan, target: Guarantee) -> TrainingPlan:
    """The same noise at the smallest scale whose composed curve is proved to keep the target."""
    if not hasattr(plan.mechanism.law, "scaled"):
        raise InvalidInput(
            f"mechanism={plan.mechanism.name!r} cannot be calibrated to epsilon={target.epsilon:g}: leave epsilon out "
            "and pass it with the noise that you want, or choose Gaussian, l2, radial or shell noise."
        )
    law: Any = plan.mechanism.law

    def scaled(log_factor: float) -> TrainingPlan:
        return replace(plan, mechanism=replace(plan.mechanism, law=law.scaled(math.exp(log_factor))))

    return scaled(smallest(lambda x: scaled(x).delta(target.epsilon), target.delta))


def smallest(curve: Callable[[float], Bracket], goal: float, widest: float = 80.0) -> float:
    """About the smallest x at which a falling curve's upper end is at most the goal; it is at most the goal there.

    >>> x = smallest(lambda x: Bracket(math.exp(-x), 1.01 * math.exp(-x)), 1e-3)
    >>> 0.97e-3 <= 1.01 * math.exp(-x) <= 1e-3
    True
    """

    def excess(x: float) -> float:
        upper = curve(x).upper
        return math.log(upper / goal) if upper > 0.0 else -math.inf

    x, step = 0.0, 0.7
    low = high = None
    while low is None or high is None:
        value = excess(x)
        if value > 0.0:
            low = (x, value)
        else:
            high = (x, value)
        if abs(x) > widest:
            raise LessnoiseError(f"no scale of this noise was found that keeps delta={goal:g}: choose another noise.")
        if low is None or high is None:
            x, step = x + (step if value > 0.0 else -step), 1.7 * step
    while high[1] < math.log(_SHARE) and high[0] - low[0] > _NARROW:
        width = high[0] - low[0]
        # Aim a little below the goal on the chord; halve where the curve is flat at 1 or has reached 0.
        useful = math.isfinite(high[1]) and low[1] < 0.999 * math.log(1.0 / goal)
        share = (low[1] - 0.5 * math.log(_SHARE)) / (low[1] - high[1]) if useful else 0.5
        x = low[0] + width * min(max(share, 0.05), 0.95)
        value = excess(x)
        if value > 0.0:
            low = (x, value)
        else:
            high = (x, value)
    return high[0]
