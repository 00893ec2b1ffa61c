"""The chain of inequalities from which C_M follows (Ji & Li 2024, section 3.2), with appendix A as its step (e)."""

from __future__ import annotations

import itertools
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import mvg_constants
from lessnoise_paper.theory.accuracy import c_m

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def harmonic_step(eigenvalues: ArrayLike) -> float:
    """||a||_2 ||1/a||_2 / M for eigenvalues a, which appendix A proves to be at least 1.

    The step (e) is the product of this for the rows' covariance and for the columns'.

    >>> harmonic_step([4.0, 4.0, 4.0, 4.0])
    1.0
    >>> f"{harmonic_step([1.0, 2.0, 4.0]):.2f}"
    '1.75'
    """
    a = _positive("eigenvalues", eigenvalues)
    return float(np.linalg.norm(a) * np.linalg.norm(1.0 / a) / a.size)


@dataclass(frozen=True, slots=True)
class MvgChain:
    """Every expression of the chain, largest first: each is claimed to be at least the next one.

    ``trace`` is the expected loss, ``two_norms`` what (d) leaves, ``harmonic`` (e), ``theorem`` (f), ``without_beta``
    the line after it, and ``constant`` is C_M D^2, the last.
    """

    trace: float
    two_norms: float
    harmonic: float
    theorem: float
    without_beta: float
    constant: float

    @property
    def steps(self) -> tuple[float, ...]:
        """Each expression over the next one: (d), (e), (f), the line after it, and (h)."""
        values = astuple(self)
        return tuple(first / second for first, second in itertools.pairwise(values))


def mvg_chain(
    rows: ArrayLike, columns: ArrayLike, *, epsilon: float, delta: float, bound: float = 0.5, excess: float = 1.0
) -> MvgChain:
    """The chain for MVG noise whose covariances have these eigenvalues, up to a factor that Theorem 3 decides; D = 1.

    ``bound`` is gamma, at least 1/2. ``excess`` is how many times larger the covariances are than the theorem asks for.

    >>> chain = mvg_chain(np.ones(10), np.ones(10), epsilon=1, delta=1e-5)
    >>> f"expected loss {chain.trace:.2e}, C_M {chain.constant:.0f}"
    'expected loss 3.13e+09, C_M 246'
    """
    a, b = _positive("rows", rows), _positive("columns", columns)
    if validation.number("excess", excess) < 1.0:
        raise InvalidInput(f"excess={excess} is less than the theorem asks for: pass at least 1.")
    constants = mvg_constants(epsilon=epsilon, delta=delta, sensitivity=1, shape=(a.size, b.size), bound=bound)
    inverse = float(np.linalg.norm(1.0 / a) * np.linalg.norm(1.0 / b))
    entries = a.size * b.size
    factor = excess * inverse / constants.phi_squared  # Theorem 3: ||1/a||_2 ||1/b||_2 at most phi squared
    return MvgChain(
        trace=factor * float(a.sum() * b.sum()),
        two_norms=factor * float(np.linalg.norm(a) * np.linalg.norm(b)),
        harmonic=factor * entries / inverse,
        theorem=entries / constants.phi_squared,
        without_beta=entries * constants.alpha / (2.0 * epsilon),
        constant=c_m(a.size, b.size, epsilon),
    )


def _positive(name: str, values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size or not np.isfinite(array).all() or (array <= 0.0).any():
        raise InvalidInput(
            f"{name}={values!r} must be a list of numbers above 0: pass the eigenvalues of a covariance."
        )
    return array
