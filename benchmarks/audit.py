"""What audits find, how often they cry wolf, how long they take. Run ``python benchmarks/audit.py [audits]``."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import lessnoise as ln

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def function(sigma: float) -> Callable[..., NDArray[np.float64]]:
    def gaussian(value: NDArray[np.float64], size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return value + rng.normal(0.0, sigma, (size, *value.shape))

    return gaussian


def power(audits: int) -> None:
    right = ln.analytic_gaussian(epsilon=1, delta=1e-3, sensitivity=1, shape=1)
    short = replace(right, law=replace(right.law, scale=0.9 * right.law.scale))
    print(f"Gaussian at 0.9 of the least sigma, (1, 0.001), exact delta {short.delta(1).middle:.5f}, 10^6 releases:")
    for name, mechanism in (("description", short), ("function", function(0.9 * right.standard_deviation))):
        start = time.perf_counter()
        reports = [
            ln.audit(mechanism, [0.0], [1.0], claim=(1, 1e-3), samples=10**6, rng=np.random.default_rng(seed))
            for seed in range(audits)
        ]
        found = sum(report.refuted for report in reports)
        mean = float(np.mean([report.delta for report in reports]))
        each = (time.perf_counter() - start) / audits
        print(f"  {name}: refuted by {found} of {audits} audits, mean bound {mean:.5f}, {each:.2f} s each")


def false_alarms(audits: int) -> None:
    gaussian = ln.analytic_gaussian(epsilon=0.5, delta=0.1, sensitivity=1, shape=1)
    laplace = ln.laplace(epsilon=1, sensitivity=1, shape=1)
    count = 0
    for seed in range(audits):
        mechanism = gaussian if seed % 2 else laplace
        report = ln.audit(mechanism, [0.0], [1.0], samples=2000, rng=np.random.default_rng(seed), workers=1)
        count += report.refuted
    print(f"correct mechanisms, exactly at their claim: {count} of {audits} audits refute it, at 99.9% confidence")


def published_r1smg() -> None:
    mechanism = ln.r1smg(epsilon=1e-5, delta=1e-7, sensitivity=2**0.5, shape=(89, 89), calibration="published")
    start = time.perf_counter()
    report = ln.audit(mechanism, np.zeros((89, 89)), samples=200_000, rng=np.random.default_rng(0))
    exact = mechanism.delta(1e-5).middle
    print(f"{report}\n  exact delta {exact:.4f}; {report.samples:,} releases in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    published_r1smg()
    power(number)
    false_alarms(10 * number)
