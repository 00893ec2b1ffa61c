"""Noisy second moments, by any mechanism, with their certificate."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise._common import round_up
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.guarantees import Claim, Neighbours
from lessnoise.mechanism import Mechanism, Radial, Request, find_mechanism, laplace, mod_sulq, values_drawn, wishart
from lessnoise.noise import can_keep
from lessnoise.pca.bounded_rows import Moments
from lessnoise.pca.layout import unpack
from lessnoise.release import Payment

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.ledger import Ledger
    from lessnoise.pca.layout import Layout
    from lessnoise.release import Certificate, Release


Builder = Callable[[Request], Mechanism]

DEFAULT = "least-noise"
MATRIX = ("mvg", "mvg-code", "mvg-published", "mgm")
PUBLISHED = ("mod-sulq", "wishart")
PURE = ("l2", "laplace")
_PROMISING_NOTHING = "analytic-gaussian"  # at a huge epsilon: the least noise may be too small for the grid of doubles


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """The moments as released. ``deviation`` is the noise of one packed entry of the Gram matrix."""

    moments: Moments
    release: Release
    deviation: float

    @property
    def certificate(self) -> Certificate:
        """Of the release."""
        return self.release.certificate


def release_moments(
    moments: Moments,
    layout: Layout,
    mechanism: str | Builder,
    epsilon: float,
    delta: float | None,
    rng: np.random.Generator | None = None,
    ledger: Ledger | None = None,
) -> NoisyMoments:
    """Add noise to the moments, by a mechanism of the catalogue, a published one for covariances, or a builder.

    At a huge epsilon the noise is as small as it may be, but what the random words add to delta cannot be neglected any
    more. Such a release is made, and its certificate promises nothing.
    """
    epsilon = validation.epsilon(epsilon)
    if mechanism in MATRIX or mechanism in PUBLISHED:
        _check_uncentred(str(mechanism), layout)
        layout.check(moments)
        described, value, gram_of = _matrix_form(str(mechanism), moments, layout, epsilon, delta)
        deviation = described.standard_deviation * (1.0 if mechanism in MATRIX else moments.count)
        released = _promised(described).release(value, rng, ledger=ledger)
        with Payment(ledger, released.receipt, released):
            gram = gram_of(np.asarray(released.value, dtype=np.float64))
            zeros = np.zeros(layout.features)
            return NoisyMoments(Moments(moments.count, math.nan, zeros, gram), released, deviation)
    described = build_mechanism(mechanism, layout, epsilon, delta)
    deviation = described.standard_deviation
    released = _promised(described).release(layout.pack(moments), rng, ledger=ledger)
    with Payment(ledger, released.receipt, released):
        noisy = layout.unpack(np.asarray(released.value, dtype=np.float64), moments.count)
        return NoisyMoments(noisy, released, deviation)


def build_mechanism(mechanism: str | Builder, layout: Layout, epsilon: float, delta: float | None) -> Mechanism:
    """The mechanism for the packed moments; without a delta, one of pure epsilon."""
    if delta is None and mechanism in (DEFAULT, *PURE):
        return _pure(str(mechanism), layout, epsilon)
    request = layout.request(epsilon, _delta(delta))
    if mechanism == DEFAULT and not can_keep(request.delta, epsilon, layout.size):
        mechanism = _PROMISING_NOTHING
    if isinstance(mechanism, str):
        return find_mechanism(mechanism).build(request)
    if not callable(mechanism):
        raise InvalidInput(f"mechanism={mechanism!r} is neither a name nor a function from a Request to a Mechanism.")
    built = mechanism(request)
    if not isinstance(built, Mechanism):
        raise InvalidInput(f"mechanism returned {type(built).__name__}: return a Mechanism built for the request.")
    needed = {"l1": request.l1, "l2": request.sensitivity}.get(built.law.norm, math.inf)
    if built.shape != request.shape or built.sensitivity < needed or built.neighbours is not request.neighbours:
        raise InvalidInput(
            f"mechanism returned shape={built.shape}, sensitivity={built.sensitivity:g} ({built.law.norm}), "
            f"neighbours={built.neighbours.value}: build it for shape={request.shape}, sensitivity={needed:g} and "
            f"neighbours={request.neighbours.value}, as request.standard() says."
        )
    return built


def _pure(name: str, layout: Layout, epsilon: float) -> Mechanism:
    """Noise for pure epsilon: of density exp(-epsilon |n|/D), or independent Laplace noise; the lesser by default."""
    relation, shape = layout.neighbours, (layout.size,)
    found = {}
    if name != "laplace":
        law = Radial(layout.size, 1.0, layout.sensitivity / epsilon * (1.0 + 1e-12))
        claim = Claim(epsilon, 0.0, relation, "lessnoise")
        found["l2"] = Mechanism("l2", law, shape, layout.sensitivity, relation, claim)
    if name != "l2":
        found["laplace"] = laplace(epsilon=epsilon, sensitivity=layout.l1_sensitivity, shape=shape, neighbours=relation)
    return min(found.values(), key=lambda mechanism: mechanism.expected_loss)


def _matrix_form(
    name: str, moments: Moments, layout: Layout, epsilon: float, delta: float | None
) -> tuple[Mechanism, Array, Callable[[Array], Array]]:
    """Mechanisms for the full matrix, or for the covariance (1/n) sum x x^T: what is released, and the way back."""
    records, size = max(int(moments.count), 1), layout.features
    if name == "wishart":
        described = wishart(epsilon=epsilon, features=size, records=records, clip_norm=layout.norm)
        # As below; the eigenvalues above 0 of what rounding moves sum to sqrt(d) times its length at most.
        moved = (math.isqrt(size) + 1) * Fraction(layout.norm) ** 2 / 2**50
        lost = round_up(Fraction(described.sensitivity) + moved)
        described = dataclasses.replace(described, sensitivity=lost)
        return described, moments.gram / records, lambda value: records * value
    if name == "mod-sulq":
        described = mod_sulq(
            epsilon=epsilon, delta=_delta(delta), features=size, records=records, clip_norm=layout.norm
        )
        triangle = (moments.gram / records)[np.triu_indices(size)]
        # Rounding moves entries by 2^-51 of themselves at most, so two neighbours by 2^-50 clip_norm^2 together.
        lost = round_up(Fraction(described.sensitivity) + Fraction(layout.norm) ** 2 / 2**50)
        described = dataclasses.replace(described, sensitivity=lost)
        return described, triangle, lambda value: records * unpack(value, weight=1.0)
    request = Request(
        epsilon=epsilon,
        delta=_delta(delta),
        sensitivity=layout.sensitivity,
        shape=(size, size),
        neighbours=layout.neighbours,
        bound=records * layout.norm**2,
    )
    return find_mechanism(name).build(request), moments.gram, lambda value: 0.5 * (value + value.T)


def _promised(described: Mechanism) -> Mechanism:
    """The mechanism, without its claim where no release by a cipher could keep it, and with a warning."""
    claim = described.claim
    if claim is None or claim.delta == 0.0:
        return described
    if can_keep(claim.delta, claim.epsilon, values_drawn(described.law, described.dimension)):
        return described
    warnings.warn(
        f"epsilon={claim.epsilon:g} is beyond what random words can keep at delta={claim.delta:g}: the certificate "
        "promises nothing; use an epsilon below 30 for a private fit.",
        ClaimWarning,
        stacklevel=5,
    )
    return dataclasses.replace(described, claim=None)


def _check_uncentred(name: str, layout: Layout) -> None:
    if layout.center or layout.count_clipped or layout.neighbours is not Neighbours.REPLACE:
        raise InvalidInput(
            f"mechanism={name!r} releases the matrix sum x x^T/n alone, for a public n: pass center=False, "
            f'count_clipped=False and neighbours="replace", or use mechanism={DEFAULT!r}.'
        )


def _delta(delta: float | None) -> float:
    if delta is None:
        raise InvalidInput(
            "delta=None, but this mechanism needs it: pass a small probability, such as 1e-6, or for pure epsilon "
            f"leave the mechanism out or choose one of {', '.join(PURE)}."
        )
    return validation.delta(delta)
