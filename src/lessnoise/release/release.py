"""Adding the noise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessnoise import validation
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.mechanism.families.discrete_sampler import integer_array
from lessnoise.mechanism.sampling import prepare_noise, values_drawn
from lessnoise.noise import Stream, can_keep
from lessnoise.release.certificate import Certificate
from lessnoise.shown import Plotted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from lessnoise.ledger import Ledger, Receipt
    from lessnoise.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Release(Plotted):
    """A noisy value and its certificate; with a ledger, the receipt of what it cost.

    A float32 value stays float32; integers stay integers for integer noise.
    """

    value: NDArray[np.float64] | NDArray[np.float32] | NDArray[np.int64]
    certificate: Certificate
    receipt: Receipt | None = None


def release(
    mechanism: Mechanism,
    value: ArrayLike,
    rng: np.random.Generator | None = None,
    *,
    ledger: Ledger | None = None,
    partition: str | None = None,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
) -> Release:
    """Check everything, certify, pay, and only then draw and add the noise.

    >>> import lessnoise as ln
    >>> m = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=3)
    >>> r = release(m, [1.0, 2.0, 3.0])
    >>> r.value.shape, r.certificate.private, r.certificate.guarantee.delta <= 1e-6
    ((3,), True, True)
    """
    integer = mechanism.law.integer
    checked = integer_array(value, mechanism.shape) if integer else validation.shaped_array(value, mechanism.shape)
    generator = validation.generator(rng)
    _check_payment(generator, ledger, partition)
    stream = Stream.of(generator)
    if threads is not None:
        validation.whole_number("threads", threads)
    certificate = Certificate.of(mechanism, stream, checked.dtype)
    _refuse_impossible(certificate)
    drawing = prepare_noise(mechanism.law, checked, stream, out=out, threads=threads)
    if certificate.claim_holds is False and mechanism.claim is not None:
        warnings.warn(
            f"the claim {mechanism.claim} of {mechanism.name} does not hold: the exact guarantee of this release is "
            f"{certificate.guarantee}.",
            ClaimWarning,
            stacklevel=3,
        )
    receipt = None if ledger is None else ledger.spend(mechanism, partition=partition)
    return Release(drawing(), certificate, receipt)


def _check_payment(rng: np.random.Generator | None, ledger: Ledger | None, partition: str | None) -> None:
    if ledger is not None and not hasattr(ledger, "spend"):
        raise InvalidInput(f"ledger={ledger!r} is not a ledger: pass Ledger.open(path).")
    if ledger is None and partition is not None:
        raise InvalidInput(f"partition={partition!r} is of no use without a ledger: pass ledger= too, or leave it out.")
    if ledger is not None and rng is not None:
        raise InvalidInput(
            "rng= and ledger= do not go together: a release from a seeded generator is not private, so leave one out."
        )


def _refuse_impossible(certificate: Certificate) -> None:
    """A target that the noise keeps, but not a cipher: its delta is too small for its epsilon and dimension."""
    mechanism, claim = certificate.mechanism, certificate.mechanism.claim
    if claim is None or not certificate.claim_holds or claim.delta == 0.0:
        return
    if not can_keep(claim.delta, claim.epsilon, values_drawn(mechanism.law, mechanism.dimension)):
        raise InvalidInput(
            f"delta={claim.delta:g} is too small for epsilon={claim.epsilon:g} and M={mechanism.dimension}: the random "
            f"words alone cost {certificate.delta_numeric:.3g}; use a larger delta or a smaller epsilon."
        )
