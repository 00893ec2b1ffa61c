"""Who took part? An attack on one step of training, by whoever sees the noisy sum of gradients.

The attacker knows all records but one, and asks of one step whether that record was in its batch. Everything else
cancels out: the two sums differ by the clipped gradient of that record. The audit's attacks guess; what they prove
holds with the stated confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.audit import AuditReport, audit, draw_many
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Guarantee
from lessnoise.mechanism import Radial
from lessnoise_paper.codec import plain_fields, stored
from lessnoise_paper.training import settings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from lessnoise.learn import TrainingPlan
    from lessnoise.mechanism import Mechanism


@stored(
    advantage_proved=None,
    advantage_limit=None,
    advantage_claimed=None,
    report="audit",
    epsilon="training_claimed_epsilon",
    scores_without=None,
    scores_with=None,
)
@dataclass(frozen=True)
class Membership:
    """How well an attacker tells, from one step, whether a record was in the batch.

    ``epsilon`` is the one claimed for the whole training. Scores are places of noisy sums along the record's gradient,
    in clipping norms, for the picture: around 0 without the record, around 1 with it.
    """

    method: str
    advantage_proved: float
    advantage_limit: float
    advantage_claimed: float | None
    report: AuditReport
    epsilon: float | None
    scores_without: NDArray[np.float64]
    scores_with: NDArray[np.float64]

    @property
    def right_proved(self) -> float:
        """Share of right guesses that the attack is proved to reach, when in and out are equally likely."""
        return 0.5 * (1.0 + self.advantage_proved)

    @property
    def right_limit(self) -> float:
        """Share of right guesses that no attack can exceed: by the exact delta at epsilon = 0."""
        return 0.5 * (1.0 + self.advantage_limit)

    @property
    def right_claimed(self) -> float | None:
        """Share of right guesses that no attack could exceed if the claim of the step were true."""
        return None if self.advantage_claimed is None else 0.5 * (1.0 + self.advantage_claimed)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return plain_fields(
            self,
            right_guesses_proved=self.right_proved,
            right_guesses_limit=self.right_limit,
            right_guesses_claimed=self.right_claimed,
        )


def membership(
    plan: TrainingPlan,
    method: str,
    *,
    gradient: ArrayLike | None = None,
    samples: int = 4000,
    rng: np.random.Generator | None = None,
    epsilon: float | None = None,
    shown: int = 0,
) -> Membership:
    """Attack one step of a training; ``gradient`` is the record's clipped one (left out: any of full length).

    ``shown`` noisy sums of each kind are kept for the picture.

    >>> case = settings.CASES["mnist"]
    >>> step = settings.plan_of(case, case.budgets[0], "dpsgd")
    >>> found = membership(step, "dpsgd", samples=400, rng=np.random.default_rng(0))
    >>> found.right_proved < found.right_limit < 0.68
    True
    """
    mechanism = plan.mechanism
    # delta at epsilon = 0 is the total variation distance: the most that guesses can gain over a coin.
    limit = mechanism.delta(0.0).upper
    without = np.zeros(mechanism.shape)
    with_record = None
    if gradient is not None:
        with_record = np.asarray(gradient, dtype=np.float64).reshape(mechanism.shape)
        length = float(np.linalg.norm(with_record))
        if length > mechanism.sensitivity * (1.0 + 1e-6):
            raise InvalidInput(
                f"gradient norm={length:g} exceeds the clipping norm {mechanism.sensitivity:g}: clip it."
            )
    report = audit(
        mechanism, without, with_record, claim=Guarantee(0.0, limit), samples=samples, rng=rng, progress=False
    )
    shift = 1.0 if with_record is None else length / mechanism.sensitivity
    rng = np.random.default_rng() if rng is None else rng
    places = _places(mechanism, 2 * shown, rng) if shown else np.empty(0)
    return Membership(
        method,
        report.delta,
        limit,
        _claimed(mechanism.claim),
        report,
        epsilon,
        places[:shown],
        places[shown:] + shift,
    )


def _places(mechanism: Mechanism, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Noise along one direction, in clipping norms; radial noise has the same law along every direction.

    The noise is R u: a length R whose law does not depend on the dimension M, and a uniform direction u. A coordinate
    of u is g/sqrt(g^2 + c), with g standard normal and c chi-squared with M - 1 degrees of freedom.
    """
    if not isinstance(mechanism.law, Radial):
        raise InvalidInput(f"shown={count // 2} needs noise of a uniform direction, not {mechanism.law}: pass shown=0.")
    lengths = np.abs(draw_many(mechanism.law, (1,), count, rng)[:, 0])
    normal = rng.standard_normal(count)
    along = normal / np.sqrt(normal**2 + rng.chisquare(mechanism.dimension - 1, count))
    return lengths * along / mechanism.sensitivity


def _claimed(claim: Guarantee | None) -> float | None:
    """The most that guesses can gain if a claim were true: (e^eps - 1 + 2 delta)/(e^eps + 1) (Kairouz et al. 2015)."""
    if claim is None:
        return None
    ratio = math.exp(-claim.epsilon)
    return (1.0 - ratio + 2.0 * claim.delta * ratio) / (1.0 + ratio)


def demonstration(
    data: str = "mnist",
    samples: int = 4000,
    seed: int = 0,
    gradient: ArrayLike | None = None,
    shown: int = 1000,
) -> list[Membership]:
    """R1SMG at the published scale beside DP-SGD, at the data set's two budgets."""
    case = settings.CASES[data]
    found = []
    for budget in case.budgets:
        for method in ("r1smg-published", "dpsgd"):
            plan = settings.plan_of(case, budget, method)
            rng = np.random.default_rng(seed)
            found.append(
                membership(
                    plan, method, gradient=gradient, samples=samples, rng=rng, epsilon=budget.epsilon, shown=shown
                )
            )
    return found
