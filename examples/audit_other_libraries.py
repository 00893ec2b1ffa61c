"""Audit noise that lessnoise did not make: NumPy's with a wrong scale, diffprivlib's and OpenDP's mechanisms.

Run ``python examples/audit_other_libraries.py``. Libraries that are not installed are passed over. Exit code 0 means
that every audit ended as it should: wrong noise refuted, right noise not.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np

import lessnoise as ln

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Audit = tuple[str, bool, ln.AuditReport]  # what it is, whether its claim holds, what the audit found

VALUE, NEIGHBOUR = 10.0, 11.0  # a count, with and without one individual
CONFIDENCE = 1 - 1e-9  # other libraries cannot be seeded: right noise is refuted once in a billion runs


def numpy_gaussian(sigma: float) -> Callable[..., Array]:
    """Gaussian noise as one writes it by hand. With ``size`` and ``rng`` the audit draws many releases at once."""

    def gaussian(value: Array, size: int, rng: np.random.Generator) -> Array:
        return value + rng.normal(0.0, sigma, size)

    return gaussian


def audit_numpy(rng: np.random.Generator | None = None) -> list[Audit]:
    """The textbook formula where it is valid, and three slips that no test of accuracy would notice."""

    def textbook(epsilon: float, delta: float) -> float:
        return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon

    least = ln.analytic_gaussian(epsilon=1, delta=1e-3, sensitivity=1, shape=1).standard_deviation
    slips = [
        ("textbook sigma", True, textbook(0.5, 1e-3), (0.5, 1e-3), 200_000),
        (
            "textbook sigma at epsilon = 8, which its theorem does not cover",
            False,
            textbook(8.0, 0.1),
            (8.0, 0.1),
            1_000_000,
        ),
        ("root of sigma, where NumPy wants sigma itself", False, textbook(0.5, 1e-3) ** 0.5, (0.5, 1e-3), 200_000),
        ("nine tenths of the least sigma that keeps the promise", False, 0.9 * least, (1.0, 1e-3), 2_000_000),
    ]
    return [
        (name, holds, ln.audit(numpy_gaussian(sigma), VALUE, NEIGHBOUR, claim=claim, samples=samples, rng=rng))
        for name, holds, sigma, claim, samples in slips
    ]


def audit_diffprivlib(rng: np.random.Generator | None = None) -> list[Audit]:
    """Mechanisms of diffprivlib: one release a call, by their own randomness."""
    from diffprivlib import mechanisms

    right = [
        (mechanisms.Laplace(epsilon=1.0, sensitivity=1.0), (1.0, 0.0)),
        (mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-3, sensitivity=1.0), (1.0, 1e-3)),
    ]
    # The mechanism keeps its promise for a sensitivity of 0.25; the count changes by 1.
    misused = mechanisms.Laplace(epsilon=1.0, sensitivity=0.25)

    def audit(mechanism: mechanisms.DPMechanism, claim: tuple[float, float]) -> ln.AuditReport:
        def release(value: Array) -> float:
            return float(mechanism.randomise(float(value)))

        return ln.audit(release, VALUE, NEIGHBOUR, claim=claim, samples=20_000, confidence=CONFIDENCE, rng=rng)

    return [
        *((f"diffprivlib {type(one).__name__}", True, audit(one, claim)) for one, claim in right),
        ("diffprivlib Laplace with a sensitivity that is too small", False, audit(misused, (1.0, 0.0))),
    ]


def audit_opendp(rng: np.random.Generator | None = None) -> list[Audit]:
    """Measurements of OpenDP over vectors: many equal entries with independent noise are many releases at once."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=1.0)
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=3.0)
    curve = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0)

    def audit(measurement: dp.Measurement, claim: tuple[float, float]) -> ln.AuditReport:
        def release(value: Array, size: int) -> Array:
            return np.asarray(measurement([float(value)] * size))

        return ln.audit(release, VALUE, NEIGHBOUR, claim=claim, samples=20_000, confidence=CONFIDENCE, rng=rng)

    return [
        ("OpenDP Laplace", True, audit(laplace, (laplace.map(1.0), 0.0))),
        ("OpenDP Gaussian", True, audit(gaussian, (curve.epsilon(1e-3), 1e-3))),
        ("OpenDP Laplace with half of the epsilon", False, audit(laplace, (0.5 * laplace.map(1.0), 0.0))),
    ]


def main() -> int:
    """Print every audit; 1 if one ended as it should not."""
    surprises = 0
    for audits in (audit_numpy, audit_diffprivlib, audit_opendp):
        try:
            found = audits()
        except ImportError as error:
            print(f"{audits.__name__}: skipped, because {error.name} is not installed")
            continue
        for name, holds, report in found:
            print(f"{name}\n    {report}")
            surprises += report.refuted == holds
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
