"""The result of an audit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessnoise._display import Facts, Listed, Plotted
from lessnoise.guarantees import Claim, Guarantee
from lessnoise.text import down, up

if TYPE_CHECKING:
    from lessnoise.audit.confidence import Rule


@dataclass(frozen=True, slots=True)
class Evidence(Listed):
    """A lower bound, and the guesses that prove it: ``right`` and ``wrong`` ones among ``trials`` releases."""

    bound: float
    right: int
    wrong: int
    trials: int
    rule: Rule

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "bound": self.bound,
            "right": self.right,
            "wrong": self.wrong,
            "trials": self.trials,
            "sign": self.rule.sign,
            "guess_value_from": self.rule.upper,
            "guess_neighbour_up_to": self.rule.lower,
        }

    def _facts(self) -> Facts:
        rows = [("at least", down(self.bound, 3)), ("guesses", f"{self.right:,} right and {self.wrong:,} wrong")]
        return Facts(f"A lower bound from {self.trials:,} releases", rows)


@dataclass(frozen=True, slots=True)
class AttackResult(Listed):
    """What one attack proves: a bound of delta at the claimed epsilon, and of epsilon at the claimed delta."""

    name: str
    delta: Evidence
    epsilon: Evidence

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"name": self.name, "delta": self.delta.to_dict(), "epsilon": self.epsilon.to_dict()}

    def _facts(self) -> Facts:
        bounds = down(self.delta.bound, 3), down(self.epsilon.bound, 3)
        return Facts(f"Attack {self.name}", [("delta, at least", bounds[0]), ("epsilon, at least", bounds[1])])


@dataclass(frozen=True, slots=True)
class AuditReport(Plotted):
    """What attacks prove: lower bounds of the true delta and epsilon of a mechanism, beside its claim.

    ``delta`` and ``epsilon`` hold together with the stated confidence: each comes from the one attack that was best
    on the training releases, tested once on the others. The bounds of the single attacks in ``attacks`` hold with
    that confidence each; the largest of them, picked after the fact, does not. ``skipped`` says which attacks did
    not fit, and why.
    """

    mechanism: str
    claim: Guarantee
    confidence: float
    trained: int
    tested: int
    attacks: tuple[AttackResult, ...]
    delta_attack: str
    epsilon_attack: str
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def delta(self) -> float:
        """Lower bound of delta at the claimed epsilon."""
        return self._named(self.delta_attack).delta.bound

    @property
    def epsilon(self) -> float:
        """Lower bound of epsilon at the claimed delta."""
        return self._named(self.epsilon_attack).epsilon.bound

    @property
    def refuted(self) -> bool:
        """The claim is false, with the stated confidence."""
        return self.delta > self.claim.delta or self.epsilon > self.claim.epsilon

    @property
    def samples(self) -> int:
        """Releases in all."""
        return self.trained + self.tested

    def _named(self, name: str) -> AttackResult:
        return next(attack for attack in self.attacks if attack.name == name)

    def __str__(self) -> str:
        return (
            f"{self.mechanism}: claimed ({up(self.claim.epsilon)}, {up(self.claim.delta)}); with "
            f"{percent(self.confidence)} confidence delta >= {down(self.delta, 3)} and, at the claimed delta, "
            f"epsilon >= {down(self.epsilon, 3)}: {'REFUTED' if self.refuted else 'not refuted'}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "mechanism": self.mechanism,
            "claim": {**self.claim.to_dict(), "source": self.claim.source if isinstance(self.claim, Claim) else ""},
            "confidence": self.confidence,
            "refuted": self.refuted,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "delta_attack": self.delta_attack,
            "epsilon_attack": self.epsilon_attack,
            "trained": self.trained,
            "tested": self.tested,
            "attacks": [attack.to_dict() for attack in self.attacks],
            "skipped": [{"name": name, "reason": reason} for name, reason in self.skipped],
        }

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict())


def percent(confidence: float) -> str:
    """A confidence as a percentage, never rounded up.

    >>> percent(0.999), percent(0.9999999)
    ('99.9%', '99.99999%')
    """
    return f"{down(100.0 * confidence, 10)}%"
