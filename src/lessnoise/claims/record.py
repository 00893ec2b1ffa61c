"""What one entry of the record is, and how it is judged."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessnoise._display import Facts, Listed, Plotted
from lessnoise.changes import Moves
from lessnoise.errors import ClaimWarning, LessnoiseError
from lessnoise.guarantees import Bracket, Claim, Verdict
from lessnoise.mechanism import CATALOGUE, delta_of, invert_curve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lessnoise.mechanism import Mechanism, Request


@dataclass(frozen=True, slots=True)
class Finding(Listed, Plotted):
    """A claim, the truth, and by how much they differ.

    ``noise_ratio`` is the published noise over the least noise of the same law that would keep the claim:
    above 1 the source adds more than it needs, below 1 less. None where no such comparison is made.
    """

    name: str
    setting: str
    claimed: Claim
    exact: Bracket
    noise_ratio: float | None = None
    mechanism: Mechanism | None = None
    remark: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether the claim is proved, refuted or open."""
        return Verdict(self.exact.upper <= self.claimed.delta, self.claimed, self.exact)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "mechanism": self.name,
            "setting": self.setting,
            **self.verdict.to_dict(),
            "noise_ratio": self.noise_ratio,
            "description": None if self.mechanism is None else self.mechanism.to_dict(),
            "remark": self.remark,
        }

    def _facts(self) -> Facts:
        holds = self.verdict.holds
        rows = [("setting", self.setting), ("claimed", str(self.claimed)), ("exact", str(self.exact))]
        if self.noise_ratio is not None:
            rows.append(("published noise over the least that keeps the claim", f"{self.noise_ratio:.4g}"))
        rows += [("remark", self.remark)] if self.remark else []
        return Facts(f"{self.name}: the claim {'holds' if holds else 'is not proved to hold'}", rows, good=holds)


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the record: a name, its setting in words, and how to find the truth."""

    name: str
    setting: str
    find: Callable[[str, str, str], Finding]
    remark: str = ""

    @classmethod
    def of(cls, name: str, setting: str, build: Callable[[], Mechanism], remark: str = "") -> Case:
        """A case whose truth is a mechanism's exact curve."""

        def find(name: str, setting: str, remark: str) -> Finding:
            mechanism = _quietly(build)
            verdict = mechanism.check()
            claim = Claim.from_dict(verdict.claimed.to_dict())
            return Finding(name, setting, claim, verdict.exact, noise_ratio(mechanism), mechanism, remark)

        return cls(name, setting, find, remark)

    def evaluate(self) -> Finding:
        """Compute the truth."""
        return self.find(self.name, self.setting, self.remark)


def noise_ratio(mechanism: Mechanism) -> float | None:
    """How many times the noise that its claim needs a mechanism adds.

    Scaling continuous noise by c is the same as dividing the sensitivity by c, so the ratio is the largest
    sensitivity at which the claim holds, over the actual one. Integer noise has no such scale, and a pure
    claim (delta = 0) no such crossing: None.

    >>> import lessnoise as ln
    >>> f"{noise_ratio(ln.analytic_gaussian(epsilon=1, delta=1e-5, sensitivity=3, shape=4)):.3f}"
    '1.000'
    """
    claim = mechanism.claim
    if claim is None or claim.delta == 0.0 or mechanism.law.integer:
        return None

    def curve(x: float, tolerance: float) -> Bracket:
        factor, shift = math.exp(-x), mechanism.shift
        changed = shift.scaled(factor) if isinstance(shift, Moves) else shift * factor
        return delta_of(mechanism.law, mechanism.dimension, changed, claim.epsilon, tolerance)

    found = invert_curve(curve, claim.delta, start=0.0, lowest=-80.0, highest=80.0)
    return math.exp(-found.upper) if math.isfinite(found.lower) and math.isfinite(found.upper) else None


def evaluate(cases: Iterable[Case]) -> list[Finding]:
    """The findings of some cases, in their order."""
    return [case.evaluate() for case in cases]


def at_setting(request: Request) -> list[Finding]:
    """Every claim of the catalogue at one setting of the caller's."""
    change = f"D={request.sensitivity:g}" if request.changes is None else str(request.changes)
    setting = f"M={request.dimension}, {change}"
    findings = []
    for entry in CATALOGUE.values():
        try:
            findings.append(Case.of(entry.name, setting, lambda entry=entry: entry.build(request)).evaluate())  # type: ignore[misc]
        except LessnoiseError:
            continue  # not made for this setting
    return findings


def _quietly(build: Callable[[], Mechanism]) -> Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClaimWarning)  # the record says it, with numbers
        return build()
