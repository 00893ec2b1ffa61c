"""Adding the noise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise.errors import ClaimWarning
from lessnoise.mechanism.families.discrete_sampler import integer_array
from lessnoise.mechanism.sampling import NumpySource, SecureSource, Source, perturb
from lessnoise.release.certificate import Certificate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from lessnoise.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Release:
    """A noisy value and its certificate."""

    value: NDArray[np.float64] | NDArray[np.int64]
    certificate: Certificate


def release(mechanism: Mechanism, value: ArrayLike, rng: np.random.Generator | None = None) -> Release:
    """Check everything, certify, and only then draw and add the noise.

    >>> import lessnoise as ln
    >>> m = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=3)
    >>> r = release(m, [1.0, 2.0, 3.0])
    >>> r.value.shape, r.certificate.private, r.certificate.guarantee.delta <= 1e-6
    ((3,), True, True)
    """
    checked = _checked(mechanism, value)
    generator = validation.generator(rng)
    source: Source = SecureSource() if generator is None else NumpySource(generator)
    certificate = Certificate.of(mechanism, source)
    if certificate.claim_holds is False and mechanism.claim is not None:
        warnings.warn(
            f"the claim {mechanism.claim} of {mechanism.name} does not hold: the exact guarantee of this release is "
            f"{certificate.guarantee}.",
            ClaimWarning,
            stacklevel=3,
        )
    noisy = perturb(mechanism.law, checked, source)
    return Release(noisy, certificate)


def _checked(mechanism: Mechanism, value: ArrayLike) -> NDArray[np.float64] | NDArray[np.int64]:
    if mechanism.law.integer:
        return integer_array(value, mechanism.shape)
    return validation.array(value, mechanism.shape)
