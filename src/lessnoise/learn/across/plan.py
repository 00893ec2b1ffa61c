"""What a training with noise across steps costs, before it starts. Nothing here needs PyTorch."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Claim, Guarantee
from lessnoise.learn.across.factorisation import (
    KINDS,
    BandedInverse,
    Factorisation,
    checked_steps,
    read_factorisation,
)
from lessnoise.learn.across.fit import fitted
from lessnoise.learn.plan import OURS, Accounted, asked_guarantee, gaussian, smallest
from lessnoise.mechanism import Mechanism, Radial

if TYPE_CHECKING:
    from lessnoise.composition import Composition

_MOST_PARAMETERS = 1 << 35  # whose noise the engine draws
BANDS = 16  # if nobody says how many


@dataclass(frozen=True)
class AcrossPlan(Accounted):
    """The steps of a training whose noise is correlated across them.

    ``factorisation`` says how (:class:`BandedInverse`, :class:`Banded`), ``noise_multiplier`` is sigma in clipping
    norms. Before the first step every record is given one of ``groups`` groups at random, independently of all else;
    step t takes records of group t mod ``groups`` alone, each with probability ``groups``/``batches``. So a record is
    in one of ``batches`` steps on average, and neighbours that differ by adding or removing a record have the same
    groups and samples of all others.

    * ``groups == batches``: everybody of the group takes part, once an epoch, at a place that stays. The steps so far
      are one Gaussian mechanism of the sensitivity of the leading block of C.
    * fewer groups, for a banded C with at most so many bands: the steps of a record are so far apart that their columns
      of C have no row in common, and t steps are at most as bad as ceil(t/groups) Gaussian mechanisms on Poisson
      samples at rate groups/batches, with the length of a column as their sensitivity (Choquette-Choo et al. 2023,
      "(Amplified) Banded Matrix Factorization: A unified approach to private training").

    >>> plan = AcrossPlan(BandedInverse((1.0, -0.5)), noise_multiplier=3.0, clip_norm=1.0, parameters=10, batches=20,
    ...                   steps=40, records=1000)
    >>> bracket = plan.epsilon(1e-5)
    >>> 2.19 < bracket.lower < bracket.upper < 2.2, AcrossPlan.from_dict(plan.to_dict()) == plan
    (True, True)
    """

    factorisation: Factorisation
    noise_multiplier: float
    clip_norm: float
    parameters: int
    batches: int
    steps: int
    records: int
    groups: int | None = None
    target: Guarantee | None = None
    claim: Claim | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.factorisation, Factorisation):
            raise InvalidInput(
                f"factorisation={self.factorisation!r} is not one: pass learn.BandedInverse(...) or learn.Banded(...)."
            )
        for name in ("parameters", "batches", "steps", "records"):
            settle(self, **{name: validation.whole_number(name, getattr(self, name))})
        checked_steps(self.steps, self.factorisation.bands)
        if self.parameters > _MOST_PARAMETERS:
            raise InvalidInput(f"parameters={self.parameters} exceed {_MOST_PARAMETERS}: train a smaller model.")
        settle(self, noise_multiplier=validation.positive("noise_multiplier", self.noise_multiplier))
        settle(self, clip_norm=validation.sensitivity(self.clip_norm, "clip_norm"))
        settle(self, groups=self._checked_groups())

    def _checked_groups(self) -> int:
        bands, batches = self.factorisation.bands, self.batches
        if self.groups is None:
            return batches if isinstance(self.factorisation, BandedInverse) else min(max(bands, 1), batches)
        groups = validation.whole_number("groups", self.groups)
        if groups > batches:
            raise InvalidInput(f"groups={groups} exceed batches={batches} an epoch: take no more than those.")
        if groups < batches and (isinstance(self.factorisation, BandedInverse) or groups < bands):
            raise InvalidInput(
                f"groups={groups} are fewer than batches={batches}, so that samples would be random, which is proved "
                f"for a banded C of at most so many bands alone: leave groups out, or take learn.Banded with "
                f"bands <= {groups}."
            )
        return groups

    @property
    def rate(self) -> float:
        """The share of the records in a step, on average."""
        return 1.0 / self.batches

    @property
    def sampling(self) -> float:
        """The probability of a record of the group whose turn it is."""
        return self._groups / self.batches

    @property
    def _groups(self) -> int:
        assert self.groups is not None
        return self.groups

    @functools.cached_property
    def mechanism(self) -> Mechanism:
        """sigma z_t, the fresh part of a step's noise, beside the clipping norm; by itself it guarantees nothing."""
        return gaussian(noise_multiplier=self.noise_multiplier, clip_norm=self.clip_norm, parameters=self.parameters)

    def composition(self, steps: int | None = None) -> Composition:
        """What all steps, or the first ``steps``, are equal to, or at most as bad as."""
        count = self.steps if steps is None else validation.whole_number("steps", steps)
        drawn = self.steps * self.parameters  # with one key: the machine's share is that of all of them
        law = Radial(drawn, 2.0, math.sqrt(2.0) * self.noise_multiplier * self.clip_norm * (1.0 - 2.0**-50))
        whole = self._groups == self.batches
        length = self.factorisation.sensitivity(count, self._groups if whole else count)
        clip = math.nextafter(length * self.clip_norm, math.inf)
        one = Mechanism(self.factorisation.kind, law, (drawn,), clip)
        return one.repeat(1) if whole else one.subsample(self.sampling).repeat(-(-count // self._groups))

    def machine_distance(self, steps: int | None = None) -> float:
        """How far the words of the noise, and those that choose the samples, are from ideal ones at most.

        Groups need no randomness at all, so that everybody's taking part needs none.
        """
        count = self.steps if steps is None else steps
        chosen = 0.0 if self._groups == self.batches else noise_engine.machine_distance(count * self.records)
        return self.composition(count).machine_distance + chosen

    def _steps_of_an_epoch(self) -> float:
        return float(self.batches)

    def _settings(self) -> list[tuple[str, str]]:
        kind = f"{self.factorisation.kind}, {self.factorisation.bands} bands"
        rows = [("noise across steps", kind), ("noise multiplier", f"{self.noise_multiplier:.4g}")]
        return [*rows, ("batches of an epoch", f"{self.batches:,}"), ("groups", f"{self.groups:,}")]

    def check_resume(self) -> None:
        """Never: the noise of past steps, a part of which is taken back later, is in no checkpoint."""
        raise InvalidInput(
            f"resume= with mechanism={self.factorisation.kind!r}: later steps take back a part of earlier noise, whose "
            "key is in no checkpoint, so such a training cannot go on; start a new one, and add up what both cost."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        names = ("noise_multiplier", "clip_norm", "parameters", "batches", "steps", "records", "groups")
        return {
            "factorisation": self.factorisation.to_dict(),
            **{name: getattr(self, name) for name in names},
            "target": None if self.target is None else self.target.to_dict(),
            "claim": None if self.claim is None else self.claim.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> AcrossPlan:
        """The inverse of :meth:`to_dict`."""
        given = dict(validation.members(cls, values, "plan"))
        target, claim = given["target"], given["claim"]
        given["factorisation"] = read_factorisation(given["factorisation"])
        given["target"] = None if target is None else Guarantee.from_dict(target)
        given["claim"] = None if claim is None else Claim.from_dict(claim)
        return cls(**given)


def plan_across_steps(
    mechanism: str | Factorisation = "banded-inverse",
    *,
    bands: int | None = None,
    clip_norm: float,
    parameters: int,
    batches: int,
    steps: int,
    records: int,
    epsilon: float | None = None,
    delta: float | None = None,
    groups: int | None = None,
    momentum: float = 0.0,
) -> AcrossPlan:
    """The plan of a training with noise across steps, and with the least of it that keeps (epsilon, delta).

    ``mechanism`` is "banded-inverse" or "banded", with ``bands`` coefficients (16) that are chosen for ``steps`` and
    ``batches``, steps an epoch, and for an optimizer with this ``momentum``; or a description, :class:`BandedInverse`
    or :class:`Banded`. ``groups`` is explained at :class:`AcrossPlan`.

    >>> plan = plan_across_steps("banded-inverse", bands=4, clip_norm=1, parameters=10, batches=20, steps=40,
    ...                          records=1000, epsilon=2, delta=1e-5)
    >>> 0.95e-5 < plan.delta(2).upper <= 1e-5, plan.groups
    (True, 20)
    """
    target = asked_guarantee(mechanism, epsilon, delta)
    if target is None:
        raise InvalidInput("epsilon=None: pass epsilon= and delta= for the whole training.")
    batches, steps = validation.whole_number("batches", batches), checked_steps(steps, BANDS if bands is None else 1)
    chosen = _chosen(mechanism, bands, batches, steps, groups, momentum)
    plan = AcrossPlan(chosen, 1.0, clip_norm, parameters, batches, steps, records, groups)

    def scaled(log_factor: float) -> AcrossPlan:
        return replace(plan, noise_multiplier=math.exp(log_factor))

    found = scaled(smallest(lambda x: scaled(x).delta(target.epsilon), target.delta))
    claim = Claim(target.epsilon, target.delta, target.neighbours, OURS)
    return replace(found, target=target, claim=claim)


def _chosen(
    mechanism: str | Factorisation, bands: int | None, batches: int, steps: int, groups: int | None, momentum: float
) -> Factorisation:
    if isinstance(mechanism, Factorisation):
        if bands is not None and bands != mechanism.bands:
            raise InvalidInput(f"bands={bands} differ from the {mechanism.bands} of mechanism: leave bands out.")
        return mechanism
    validation.choice("mechanism", mechanism, list(KINDS))
    count = BANDS if bands is None else validation.whole_number("bands", bands)
    return fitted(mechanism, bands=count, steps=steps, batches=batches, groups=groups, momentum=momentum)
