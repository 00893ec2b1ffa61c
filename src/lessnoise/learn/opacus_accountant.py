"""The accountant that Opacus calls: it counts steps, and answers from the exact composed curve."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from opacus.accountants.accountant import IAccountant

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Guarantee
from lessnoise.harmless import shown
from lessnoise.text import down, up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise.guarantees import Bracket
    from lessnoise.learn.across import AcrossPlan
    from lessnoise.learn.plan import Accounted, TrainingPlan

SCHEMA = 1


class ExactAccountant(IAccountant):
    """What a training has cost so far. ``str()`` of it is one line to print after each epoch."""

    def __init__(self, plan: TrainingPlan | AcrossPlan, *, delta: float | None, private: bool, randomness: str) -> None:
        self.plan = plan
        self.taken = 0
        self.private = private
        self.randomness = randomness
        self._delta = delta
        self._process = os.getpid()
        self.history: list[tuple[float, float, int]] = []  # Opacus's own format, for its tools

    def __str__(self) -> str:
        text = f"step {self.taken} of {self.plan.steps}"
        claim = self.plan.claim
        if claim is not None and self.plan.target is None:  # published: at its delta epsilon is infinite
            lower = self.delta(claim.epsilon).lower
            text += f": at the claimed epsilon={up(claim.epsilon)} delta is at least {down(lower, 4)}"
        elif self._delta is not None:
            found = self.epsilon()
            text += f": epsilon between {down(found.lower, 4)} and {up(found.upper, 4)} at delta={up(self._delta)}"
        return text if self.private else f"{text} (private: false, {self.randomness})"

    # Privacy.

    def epsilon(self, delta: float | None = None) -> Bracket:
        """Exact epsilon of the steps so far, at ``delta`` or that of the target."""
        return self.plan.epsilon(self._known_delta(delta), self.taken)

    def delta(self, epsilon: float) -> Bracket:
        """Exact delta of the steps so far."""
        return self.plan.delta(epsilon, self.taken)

    def guarantee(self, epsilon: float) -> Guarantee:
        """What the steps so far give at an epsilon, on the safe side, if the randomness is as assumed."""
        return Guarantee(epsilon, self.delta(epsilon).upper)

    def _known_delta(self, delta: float | None) -> float:
        if delta is None and self._delta is None:
            raise InvalidInput("delta=None: this training has no target, so pass the delta that you want to know.")
        return self._delta if delta is None else delta  # type: ignore[return-value]

    # What Opacus asks for.

    @classmethod
    def mechanism(cls) -> str:
        """The name by which checkpoints know this accountant."""
        return "lessnoise"

    def get_epsilon(self, delta: float, **_: object) -> float:
        """The upper end, a plain number, as Opacus's engine returns it."""
        return self.epsilon(delta).upper

    def __len__(self) -> int:
        return self.taken

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count a step whose noise has been added."""
        self.check_room()
        if abs(sample_rate - self.plan.rate) > 1e-12:
            raise InvalidInput(
                f"sample_rate={sample_rate:g} differs from rate={self.plan.rate:g} of the plan: call zero_grad() after "
                "every step, and train with the loader that make_private returned."
            )
        self.taken += 1
        self.history = [(noise_multiplier, sample_rate, self.taken)]

    def check_room(self) -> None:
        """Refuse a step that was neither planned nor calibrated nor paid for, before its noise is drawn."""
        if os.getpid() != self._process:
            raise InvalidInput(
                f"process={os.getpid()} was forked from the training of process={self._process}: both would take the "
                "steps that were paid for once, so go on there, or call make_private here."
            )
        if self.taken >= self.plan.steps:
            raise InvalidInput(
                f"steps={self.taken + 1} exceeds the {self.plan.steps} steps of this training: its noise was chosen "
                "for those, so plan more epochs in make_private."
            )

    # Checkpoints.

    def state_dict(self, destination: dict[str, Any] | None = None) -> dict[str, Any]:
        """Settings and steps taken, as plain values."""
        state = {} if destination is None else destination
        state.update(
            mechanism=self.mechanism(),
            history=list(self.history),
            schema=SCHEMA,
            plan=json.dumps(self.plan.to_dict()),
            taken=self.taken,
            private=self.private,
        )
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a checkpoint; one of other settings is refused."""
        self.plan.check_resume()
        taken, history, private = _checked(state_dict, self.plan)
        self.taken, self.history = taken, history
        self.private = self.private and private


def _checked(state: Mapping[str, Any], plan: Accounted) -> tuple[int, list[tuple[float, float, int]], bool]:
    if not isinstance(state, dict) or state.get("mechanism") != "lessnoise" or state.get("schema") != SCHEMA:
        found = state.get("mechanism") if isinstance(state, dict) else type(state).__name__
        raise InvalidInput(
            f"checkpoint mechanism={found!r} is not the state of this accountant: pass what its state_dict() gave."
        )
    ours = json.loads(json.dumps(plan.to_dict()))
    state = validation.fields(state, ("plan", "taken", "history", "private"), "checkpoint", optional=None)
    theirs = validation.json_object(state["plan"], "plan")
    for name, value in ours.items():
        if theirs.get(name) != value:
            raise InvalidInput(
                f"{name}={_short(theirs.get(name))} of the checkpoint differs from {name}={_short(value)} of this "
                "training: resume with the checkpoint's settings, or start afresh."
            )
    taken = state["taken"]
    if type(taken) is not int or not 0 <= taken <= plan.steps:
        raise InvalidInput(
            f"taken={shown(taken)} of the checkpoint is not between 0 and steps={plan.steps}: it is damaged."
        )
    return taken, list(state["history"] or ()), state["private"] is True


def _short(value: object) -> str:
    if isinstance(value, dict):
        return shown(value.get("noise", value))
    return shown(value)
