"""Live curves beside the verifier's enclosures, on random mechanisms."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import lessnoise_verify as verifier
from lessnoise._display import Facts, Listed
from lessnoise.audit.random_mechanisms import KINDS, random_mechanism
from lessnoise.mechanism import enclosure

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.guarantees import Bracket

_ROUNDING = 1e-14  # relative: both brackets are rounded to doubles, and a sensitivity may be rounded up


@dataclass(frozen=True)
class Comparison(Listed):
    """One mechanism: its bracket, and the enclosure by ball arithmetic, or why there is none."""

    kind: str
    description: dict[str, Any]
    epsilon: float
    ours: Bracket
    proved: Bracket | None
    reason: str
    seconds: float

    @property
    def meets(self) -> bool:
        """The two have a number in common, or there is no enclosure."""
        if self.proved is None:
            return True
        slack = _ROUNDING * self.proved.upper
        return self.proved.lower - slack <= self.ours.upper and self.ours.lower <= self.proved.upper + slack

    @property
    def inside(self) -> bool:
        """The enclosure lies in the bracket."""
        if self.proved is None:
            return False
        slack = _ROUNDING * self.proved.upper
        return self.ours.lower - slack <= self.proved.lower and self.proved.upper <= self.ours.upper + slack

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "mechanism": self.description,
            "epsilon": self.epsilon,
            "ours": self.ours.to_dict(),
            "proved": None if self.proved is None else self.proved.to_dict(),
            "reason": self.reason,
            "seconds": self.seconds,
        }

    def _facts(self) -> Facts:
        rows = [
            ("epsilon", f"{self.epsilon:g}"),
            ("bracket", str(self.ours)),
            ("by ball arithmetic", self.reason if self.proved is None else str(self.proved)),
        ]
        return Facts(f"Two routes to delta: {self.kind}", rows, good=self.meets)


def compare_curves(
    count: int,
    rng: np.random.Generator | None = None,
    *,
    digits: int = 12,
    progress: Callable[[Comparison], None] | None = None,
) -> list[Comparison]:
    """Random mechanisms of every kind in turn, each with its bracket and the verifier's enclosure.

    >>> found = compare_curves(2, np.random.default_rng(0))
    >>> all(each.meets for each in found)
    True
    """
    generator, kinds, found = rng or np.random.default_rng(), list(KINDS), []
    for index in range(count):
        example = random_mechanism(generator, kinds[index % len(kinds)])
        mechanism, description = example.mechanism, example.mechanism.to_dict()
        begun, proved, reason = time.perf_counter(), None, ""
        try:
            proved = enclosure(description, example.epsilon, digits)
        except verifier.NotProved as error:
            reason = str(error)
        seconds = time.perf_counter() - begun
        ours = mechanism.delta(example.epsilon)
        one = Comparison(example.kind, description, example.epsilon, ours, proved, reason, seconds)
        found.append(one)
        if progress is not None:
            progress(one)
    return found


def summary(found: list[Comparison]) -> list[dict[str, Any]]:
    """One row a kind: how many, how many covered, met and inside, and the verifier's median and slowest time."""
    rows = []
    for kind in dict.fromkeys(each.kind for each in found):
        own = [each for each in found if each.kind == kind]
        times = sorted(each.seconds for each in own)
        rows.append(
            {
                "kind": kind,
                "mechanisms": len(own),
                "covered": sum(each.proved is not None for each in own),
                "inside": sum(each.inside for each in own),
                "missed": sum(not each.meets for each in own),
                "median_seconds": times[len(times) // 2],
                "slowest_seconds": times[-1],
            }
        )
    return rows
