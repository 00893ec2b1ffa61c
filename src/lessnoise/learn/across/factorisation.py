"""Noise that is correlated across the steps of a training: which one, and what one record can change.

Step t releases x_t + sigma (C^-1 z)_t: x_t is the sum of the clipped gradients, z_1, z_2, ... are independent standard
normal vectors, and C is a lower triangular Toeplitz matrix of public numbers, C_ts = c_(t-s). Later noise then cancels
a part of earlier noise. Everything that is released follows from C x + sigma z, so that the whole training is one
Gaussian mechanism, whose sensitivity is the longest C (x - x') of two neighbours. That x_t depends on what was released
before changes nothing (Denisov et al. 2022, "Improved Differential Privacy for SGD via Optimal Private Linear
Operators on Adaptive Streams", Theorem 2.1).

A record that takes part in the steps of a set P moves x_t by a vector u_t with |u_t| <= 1 clipping norm for t in P, and
by nothing else. If no entry of C is below 0,

    |C u|^2 = sum_(s, t in P) (C^T C)_st <u_s, u_t> <= sum_(s, t in P) (C^T C)_st = |C 1_P|^2,

and equal vectors u_t reach it (Choquette-Choo et al. 2023, "Multi-Epoch Matrix Factorization Mechanisms for Private
Machine Learning", section 2).
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from lessnoise._common import Array

    Row = tuple[tuple[int, float], ...]

_TWO_ROUNDINGS = 2.0**-52  # relative: twice what one rounding can do
_UNDERFLOW = 1e-280  # far more than all that was too small for a float
_MOST_BANDS = 1 << 12
_MOST_STEPS = 1 << 20
_MOST_PRODUCTS = 1 << 28


@dataclass(frozen=True)
class Factorisation(ABC):
    """A lower triangular Toeplitz matrix C, given by ``coefficients`` of C or of its inverse; the first is 1.

    Whoever needs more steps than coefficients goes on with zeros.
    """

    coefficients: tuple[float, ...]

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        given = validation.numbers("coefficients", self.coefficients)
        if not given or given[0] != 1.0:
            raise InvalidInput(f"coefficients[0]={given[0] if given else None} is not 1: divide all by the first.")
        if len(given) > _MOST_BANDS:
            raise InvalidInput(f"bands={len(given)} exceed {_MOST_BANDS}: take fewer coefficients.")
        self._check(given)
        settle(self, coefficients=given)

    @abstractmethod
    def _check(self, given: tuple[float, ...]) -> None:
        """Refuse coefficients for which nothing is proved."""

    @property
    def bands(self) -> int:
        """How many coefficients there are."""
        return len(self.coefficients)

    @abstractmethod
    def matrix(self, steps: int) -> Array:
        """c_0, c_1, ... of C, computed without differences, so that each is off by few roundings."""

    @abstractmethod
    def inverse(self, steps: int) -> Array:
        """a_0, a_1, ... of C^-1: these very floats are what noise is multiplied by."""

    @abstractmethod
    def excess(self, steps: int) -> float:
        """A bound on the operator norm of C A - I, where A has the floats of :meth:`inverse`; 0 if A is C^-1."""

    @abstractmethod
    def row(self, step: int) -> Row:
        """The noise of a step, counted from 0: pairs of a step s and the coefficient of its vector z_s."""

    def sensitivity(self, steps: int, separation: int) -> float:
        """|C u| in clipping norms, at most, for the first ``steps``; rounded up.

        A record takes part in the steps s, s + ``separation``, s + 2 ``separation``, ... for one s. C 1_P is longest
        for s = 0: a later start shifts it, and less of it is left. If the coefficients of C do not increase, nothing
        else that keeps the distances is longer either: the i-th step of P is at least the i-th of these, and the
        distances between them are at least as large, while (C^T C)_st falls with both (Kalinin & Lampert 2024, "Banded
        Square Root Matrix Factorization for Differentially Private Model Training").

        >>> round(BandedInverse((1.0, -0.5)).sensitivity(3, 2), 6), round(math.hypot(1, 0.5, 1.25), 6)
        (1.677051, 1.677051)
        """
        steps = checked_steps(steps, self.bands)
        length = math.sqrt(float(_squares(self, steps, validation.whole_number("separation", separation))[steps - 1]))
        return length * (1.0 + _TWO_ROUNDINGS * _roundings(self.bands, steps)) / (1.0 - self.excess(steps))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, "coefficients": list(self.coefficients)}


class BandedInverse(Factorisation):
    """C^-1 has few coefficients: 1, and then none above 0, of which no more than 1 is taken away altogether.

    Then C is 1/(1 - p(x)) with p >= 0, so that no entry of C is below 0 or above 1. A step adds the noise of the last
    ``bands`` steps. With the first coefficients of (1 - x)^(1/2) this is BISR (Kalinin, McKenna, Upadhyay & Lampert
    2025, "Back to Square Roots: An Optimal Bound on the Matrix Factorization Error for Multi-Epoch Differentially
    Private SGD").

    >>> BandedInverse((1.0, -0.5)).matrix(4).tolist(), BandedInverse((1.0, -0.5)).row(7)
    ([1.0, 0.5, 0.25, 0.125], ((7, 1.0), (6, -0.5)))
    """

    kind: ClassVar[str] = "banded-inverse"

    def _check(self, given: tuple[float, ...]) -> None:
        if max(given[1:], default=0.0) > 0.0 or math.fsum(given) < 0.0:
            raise InvalidInput(
                f"coefficients={given[:3]}... of a banded inverse: after the first, 1, none may be above 0, and those "
                "must not add up to less than -1; else C has entries below 0 or grows, and nothing is proved."
            )

    def matrix(self, steps: int) -> Array:
        """By the recursion c_n = sum_k p_k c_(n-k), in which nothing is subtracted."""
        from scipy.signal import lfilter

        return np.asarray(lfilter([1.0], self.coefficients, _impulse(steps)))

    def inverse(self, steps: int) -> Array:
        """The coefficients, and zeros."""
        return _padded(self.coefficients, steps)

    def excess(self, steps: int) -> float:
        """Nothing: the inverse is given, and C is its inverse."""
        return 0.0

    def row(self, step: int) -> Row:
        """The last ``bands`` steps."""
        return tuple((step - lag, a) for lag, a in enumerate(self.coefficients[: step + 1]) if a)


class Banded(Factorisation):
    """C has few coefficients: 1, and then none below 0 or above the one before.

    C^-1 is dense: a step adds the noise of all steps before it. Steps that are ``bands`` or more apart have nothing to
    do with each other in C x, which lets Poisson samples count (see :class:`~lessnoise.learn.AcrossPlan`). With the
    first coefficients of (1 - x)^(-1/2) it is the banded square root of Kalinin & Lampert 2024.

    >>> Banded((1.0, 0.5)).inverse(4).tolist(), round(Banded((1.0, 0.5)).sensitivity(9, 3) ** 2, 9)
    ([1.0, -0.5, 0.25, -0.125], 3.75)
    """

    kind: ClassVar[str] = "banded"

    def _check(self, given: tuple[float, ...]) -> None:
        if given[-1] < 0.0 or any(later > before for before, later in itertools.pairwise(given)):
            raise InvalidInput(
                f"coefficients={given[:3]}... of a banded matrix must not increase, and none may be below 0; else its "
                "sensitivity is not known, or its inverse grows."
            )

    def matrix(self, steps: int) -> Array:
        """The coefficients, and zeros."""
        return _padded(self.coefficients, steps)

    def inverse(self, steps: int) -> Array:
        """By the recursion a_n = -sum_k c_k a_(n-k), rounded."""
        return _recursion(self.coefficients, steps)

    def excess(self, steps: int) -> float:
        """The sum of the sizes of the coefficients of c(x) a(x) - 1, and what its floats are off.

        C y = C x + sigma C A z. If C A = I + E with |E| <= e, its noise is at least that of (1 - e) I: it is sigma
        (1 - e) z and independent noise besides, which costs nothing. So the guarantee is that of C and sigma (1 - e).
        """
        return _excess(self, steps)

    def row(self, step: int) -> Row:
        """All steps so far."""
        inverse = _recursion(self.coefficients, 1 << step.bit_length() if step else 1)
        return tuple((step - lag, a) for lag, a in enumerate(inverse[: step + 1].tolist()) if a)


KINDS: dict[str, type[Factorisation]] = {each.kind: each for each in (BandedInverse, Banded)}


def read_factorisation(values: dict[str, Any]) -> Factorisation:
    """The inverse of ``to_dict``."""
    given = validation.fields(values, ("kind", "coefficients"), "factorisation")
    validation.choice("kind", given["kind"], list(KINDS))
    return KINDS[given["kind"]](tuple(validation.entries("coefficients", given["coefficients"])))


def checked_steps(steps: int, bands: int) -> int:
    """A number of steps for which the coefficients can be computed."""
    count = validation.whole_number("steps", steps)
    if count > _MOST_STEPS or count * bands > _MOST_PRODUCTS:
        most = min(_MOST_STEPS, _MOST_PRODUCTS // bands)
        raise InvalidInput(f"steps={count} exceed {most}, the most for {bands} bands: take larger batches.")
    return count


def _impulse(steps: int) -> Array:
    impulse = np.zeros(steps)
    impulse[0] = 1.0
    return impulse


def _padded(coefficients: tuple[float, ...], steps: int) -> Array:
    found = np.zeros(steps)
    found[: len(coefficients)] = coefficients[:steps]
    return found


@functools.lru_cache(maxsize=32)
def _recursion(coefficients: tuple[float, ...], steps: int) -> Array:
    """The first coefficients of 1/c(x); the first ones do not depend on how many are asked for."""
    from scipy.signal import lfilter

    found = np.asarray(lfilter([1.0], coefficients, _impulse(steps)))
    found[np.abs(found) < 1e-250] = 0.0  # nor would anybody notice
    found.setflags(write=False)
    return found


@functools.lru_cache(maxsize=32)
def _excess(factorisation: Banded, steps: int) -> float:
    from scipy.signal import lfilter

    inverse = factorisation.inverse(steps)
    off = lfilter(factorisation.coefficients, [1.0], inverse)
    off[0] -= 1.0
    # A sum of b products is off by at most b + 1 roundings of the sum of their sizes (Higham 2002, section 3.1).
    sizes = float(np.abs(inverse).sum()) * math.fsum(factorisation.coefficients)
    rounding = (factorisation.bands + 2.0) * _TWO_ROUNDINGS * sizes
    found = (float(np.abs(off).sum()) + rounding) * 1.001 + _UNDERFLOW
    if found > 1e-3:
        raise InvalidInput(
            f"coefficients={factorisation.coefficients[:3]}... have an inverse that floats do not hold well enough: "
            "let them fall faster."
        )
    return found


@functools.lru_cache(maxsize=32)
def _squares(factorisation: Factorisation, steps: int, separation: int) -> Array:
    """|C 1_P|^2 of the leading blocks of 1, 2, ... steps, P = {0, separation, 2 separation, ...}.

    All of it is sums and products of numbers that are not below 0: relative errors add up, and nothing else happens.
    """
    separation = min(separation, steps)
    times = -(-steps // separation)
    shifted = np.zeros((times, separation))
    shifted.reshape(-1)[:steps] = factorisation.matrix(steps)
    together = np.cumsum(shifted, axis=0).reshape(-1)[:steps]  # (C 1_P)_n = c_n + c_(n-separation) + ...
    found = np.cumsum(together**2) + _UNDERFLOW
    found.setflags(write=False)
    return found


def _roundings(bands: int, steps: int) -> float:
    """Of the square root of a sum of squares of sums of coefficients: a coefficient c_n has (bands + 2) n."""
    return (bands + 2.0) * steps + 2.0 * steps + 8.0
