"""Where randomness comes from: AES-256 in counter mode, or a caller's NumPy generator."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_CHUNK = 1 << 16  # normals per step: the working set stays in cache and memory stays bounded


class Source(Protocol):
    """The draws that every noise law is made of."""

    description: str
    private: bool

    def words(self, count: int) -> NDArray[np.uint64]:
        """Independent uniform 64-bit words."""

    def normals(self, count: int) -> Array:
        """Independent standard normal variables."""

    def exponentials(self, count: int) -> Array:
        """Independent standard exponential variables."""

    def signs(self, count: int) -> Array:
        """Independent fair signs, +1 or -1."""

    def log_gamma_variate(self, shape: float) -> float:
        """ln G for G ~ Gamma(shape); the logarithm, since G itself underflows for small shapes."""


class SecureSource:
    """A cryptographic stream: AES-256-CTR under a fresh key from the operating system.

    Each source has its own key, which lives and dies with it, so no two sources share a stream and
    no stream can be replayed.
    """

    description = "AES-256-CTR keyed by the operating system"
    private = True

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
        self._process = os.getpid()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Independent uniform 64-bit words."""
        if os.getpid() != self._process:  # a fork would repeat its parent's stream
            self.__init__()  # type: ignore[misc]
        return np.frombuffer(self._stream.update(bytes(8 * count)), dtype=np.uint64)

    def uniforms(self, count: int) -> Array:
        """Uniform on (0, 1], 53 bits: never 0, so a logarithm is always finite."""
        result: Array = ((self.words(count) >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
        return result

    def normals(self, count: int) -> Array:
        """Box and Muller's exact transform, chunk by chunk."""
        result = np.empty(count)
        for start in range(0, count, _CHUNK):
            size = min(_CHUNK, count - start)
            half = (size + 1) // 2
            radius = np.sqrt(-2.0 * np.log(self.uniforms(half)))
            angle = (2.0 * math.pi) * self.uniforms(half)
            pairs = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
            result[start : start + size] = pairs[:size]
        return result

    def exponentials(self, count: int) -> Array:
        """Inverse transform."""
        return -np.log(self.uniforms(count))

    def signs(self, count: int) -> Array:
        """One bit each."""
        bits = np.unpackbits(self.words((count + 63) // 64).view(np.uint8), count=count)
        result: Array = 2.0 * bits.astype(np.float64) - 1.0
        return result

    def log_gamma_variate(self, shape: float) -> float:
        """Inverse transform from whichever tail is nearer, with a uniform that resolves 2^-1074."""
        from scipy.special import gammainccinv, gammaincinv

        if shape < 1.0:
            # G(a) = G(a + 1) U^(1/a) (Marsaglia & Tsang 2000, section 6).
            return self.log_gamma_variate(shape + 1.0) + math.log(self._fine_uniform()) / shape
        tail = 0.5 * self._fine_uniform()
        lower = bool(self.words(1)[0] & np.uint64(1))
        return math.log(float(gammaincinv(shape, tail) if lower else gammainccinv(shape, tail)))

    def _fine_uniform(self) -> float:
        """Uniform on (0, 1) with full relative precision: a 53-bit mantissa under a geometric exponent."""
        exponent = -1
        while not (word := int(self.words(1)[0])):
            exponent -= 64
        exponent -= 64 - word.bit_length()
        mantissa = (int(self.words(1)[0]) >> 12) + 2**52
        return max(math.ldexp(mantissa, exponent - 52), math.ulp(0.0))


class NumpySource:
    """A caller's generator: reproducible, and therefore never private."""

    description = "NumPy generator given by the caller"
    private = False

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def words(self, count: int) -> NDArray[np.uint64]:
        """Delegated to the generator."""
        return self._rng.integers(0, 2**64, count, dtype=np.uint64)

    def normals(self, count: int) -> Array:
        """Delegated to the generator."""
        return self._rng.standard_normal(count)

    def exponentials(self, count: int) -> Array:
        """Delegated to the generator."""
        return self._rng.standard_exponential(count)

    def signs(self, count: int) -> Array:
        """Delegated to the generator."""
        result: Array = 2.0 * self._rng.integers(0, 2, count).astype(np.float64) - 1.0
        return result

    def log_gamma_variate(self, shape: float) -> float:
        """Delegated to the generator, boosted below 1 to avoid underflow."""
        if shape < 1.0:
            boosted = math.log(self._rng.standard_gamma(shape + 1.0))
            return boosted + math.log(1.0 - self._rng.random()) / shape
        return math.log(self._rng.standard_gamma(shape))
