"""What several computations share: the paper's setting, and a mechanism with its verdict as plain values."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lessnoise_paper.experiments.demo import PAPER_DELTA, PAPER_EPSILON

if TYPE_CHECKING:
    from lessnoise.mechanism import Mechanism
    from lessnoise_paper.model import Numbers

COUNT_QUERY: dict[str, Any] = {
    "epsilon": PAPER_EPSILON,
    "delta": PAPER_DELTA,
    "sensitivity": 2.0**0.5,
    "shape": [89, 89],
    "neighbours": "replace",
}
"""R1SMG's setting on the count query (Ji & Li 2024, section 7.1): squared sensitivity 2, one pickup replaced."""


def judged(mechanism: Mechanism, label: str) -> Numbers:
    """A mechanism's claim, its exact delta at the claimed epsilon, the verdict, and its expected loss."""
    verdict = mechanism.check()
    return {
        "label": label,
        "claimed": verdict.claimed.to_dict(),
        "exact": verdict.exact.to_dict(),
        "verdict": verdict.word,
        "expected_loss": mechanism.expected_loss,
        "standard_deviation": mechanism.standard_deviation,
    }


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
