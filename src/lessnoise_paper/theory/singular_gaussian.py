"""The singular multivariate Gaussian of rank r, and uniform bases (Ji & Li 2024, Definition 7 and Theorem 6).

With a *fixed* basis the noise lives on an r-dimensional subspace that neighbours need not share, so it hides
nothing outside it. With a fresh uniform basis per draw it is isotropic: for r equal eigenvalues lambda it is the
radial member k = r, p = 2, scale = sqrt(2 lambda) of :class:`lessnoise.Radial`, and r = 1 is R1SMG. These
functions are for study; private releases go through :class:`lessnoise.Mechanism`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

ORTHONORMAL_TOLERANCE = 1e-10
SUPPORT_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class SingularGaussian:
    """N(mean, V diag(eigenvalues) V^T) in R^M, with V the M by r orthonormal ``basis`` (Definition 7).

    The definition has r < M; r = M, an ordinary Gaussian, is welcome too. The arrays are kept as read-only copies.

    >>> law = SingularGaussian(mean=[0, 0, 0], eigenvalues=[4.0], basis=[[0], [0.6], [0.8]])
    >>> law.rank, law.dimension
    (1, 3)
    >>> law.covariance()
    array([[0.  , 0.  , 0.  ],
           [0.  , 1.44, 1.92],
           [0.  , 1.92, 2.56]])
    """

    mean: Array
    eigenvalues: Array
    basis: Array

    def __init__(self, mean: ArrayLike, eigenvalues: ArrayLike, basis: ArrayLike) -> None:
        object.__setattr__(self, "mean", _array("mean", mean, 1))
        object.__setattr__(self, "eigenvalues", _eigenvalues(eigenvalues))
        object.__setattr__(self, "basis", _array("basis", basis, 2))
        _check_basis(self.basis, len(self.mean), len(self.eigenvalues))

    @property
    def dimension(self) -> int:
        """M, the length of a draw."""
        return len(self.mean)

    @property
    def rank(self) -> int:
        """r, the dimension of the support."""
        return len(self.eigenvalues)

    def covariance(self) -> Array:
        """V Lambda V^T, an M by M matrix of rank r."""
        # Definition 7.
        result: Array = (self.basis * self.eigenvalues) @ self.basis.T
        return result

    def pseudo_inverse(self) -> Array:
        """V Lambda^-1 V^T, the Moore-Penrose inverse of the covariance, an M by M matrix."""
        # Definition 7.
        result: Array = (self.basis / self.eigenvalues) @ self.basis.T
        return result

    def log_density(self, x: ArrayLike) -> Array:
        """Log-density at a point, or at each row of an array of points, in O(M r) per point.

        The density is with respect to r-dimensional volume on the support mean + span(V). Off the support it
        is 0, so the logarithm is -inf. A point counts as on the support when its distance from it is within
        1e-8 of ||x|| + ||mean|| + the largest standard deviation.

        >>> law = SingularGaussian([0, 0], [1.0], [[1], [0]])
        >>> law.log_density([[0, 0], [2, 0], [0, 1]])
        array([-0.91893853, -2.91893853,        -inf])
        """
        points = _points(x, self.dimension)
        centred = points - self.mean
        coordinates = centred @ self.basis
        # Definition 7, in the coordinates of the support.
        quadratic = (coordinates**2 / self.eigenvalues).sum(axis=-1)
        constant = self.rank * math.log(2.0 * math.pi) + np.log(self.eigenvalues).sum()
        distance = np.linalg.norm(centred - coordinates @ self.basis.T, axis=-1)
        size = np.linalg.norm(points, axis=-1) + np.linalg.norm(self.mean) + math.sqrt(self.eigenvalues.max())
        return np.asarray(np.where(distance <= SUPPORT_TOLERANCE * size, -0.5 * (quadratic + constant), -np.inf))

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Array:
        """One draw of length M, or ``size`` draws as rows.

        >>> law = SingularGaussian([1, 2, 3], [4.0], [[0], [0.6], [0.8]])
        >>> law.sample(np.random.default_rng(0), size=5).shape
        (5, 3)
        """
        rng = _generator(rng)
        shape = (self.rank,) if size is None else (validation.whole_number("size", size), self.rank)
        # n = V Lambda^(1/2) z (the paper's linear mapping).
        result: Array = self.mean + (rng.standard_normal(shape) * np.sqrt(self.eigenvalues)) @ self.basis.T
        return result


def uniform_stiefel(dimension: int, rank: int, rng: np.random.Generator) -> Array:
    """An M by r matrix with orthonormal columns, uniform on the Stiefel manifold, in O(M r^2).

    >>> v = uniform_stiefel(5, 2, np.random.default_rng(0))
    >>> bool(np.allclose(v.T @ v, np.eye(2)))
    True
    """
    dimension = validation.whole_number("dimension", dimension)
    rank = validation.whole_number("rank", rank)
    if rank > dimension:
        raise InvalidInput(f"rank={rank} exceeds dimension={dimension}: pass a rank of at most the dimension.")
    x = _generator(rng).standard_normal((dimension, rank))
    # Theorem 6 (Chikuse 2003, Theorem 2.2.1): v = x (x^T x)^(-1/2). With x = U S W^T it is U W^T, the orthogonal
    # factor of x's polar decomposition; going through x^T x itself would square the condition number.
    u, _, w = np.linalg.svd(x, full_matrices=False)
    result: Array = u @ w
    return result


def random_basis_noise(dimension: int, eigenvalues: ArrayLike, rng: np.random.Generator) -> Array:
    """One draw of zero-mean singular Gaussian noise on a fresh uniform basis; one eigenvalue gives R1SMG.

    Its covariance, over draws, is (sum of eigenvalues)/M times the identity.

    >>> random_basis_noise(4, [2.0, 1.0], np.random.default_rng(0)).shape
    (4,)
    """
    values = _eigenvalues(eigenvalues)
    basis = uniform_stiefel(dimension, len(values), rng)
    # The paper's linear mapping n = V Lambda^(1/2) z, V uniform.
    result: Array = basis @ (np.sqrt(values) * rng.standard_normal(len(values)))
    return result


def _array(name: str, value: ArrayLike, *axes: int) -> Array:
    """A finite float64 array with one of the given numbers of axes, as a read-only copy."""
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise InvalidInput(f"{name} is not a rectangular array ({error}): pass a NumPy array.") from None
    if raw.dtype.kind not in "iuf":
        raise InvalidInput(f"{name}.dtype={raw.dtype} is not numeric: convert it to float64 first.")
    if raw.ndim not in axes:
        wanted = " or ".join(str(count) for count in axes)
        raise InvalidInput(f"{name}.shape={raw.shape} has {raw.ndim} axes: pass an array with {wanted}.")
    if raw.size == 0:
        raise InvalidInput(f"{name}.shape={raw.shape} is empty: pass at least one entry.")
    result: Array = raw.astype(np.float64, copy=True)
    if not np.isfinite(result).all():
        position = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise InvalidInput(f"{name}{list(position)}={result[position]} is not finite: pass ordinary numbers.")
    result.flags.writeable = False
    return result


def _eigenvalues(value: ArrayLike) -> Array:
    result = _array("eigenvalues", value, 1)
    if (result <= 0.0).any():
        index = int(np.argmax(result <= 0.0))
        raise InvalidInput(
            f"eigenvalues[{index}]={result[index]} must be above 0: "
            "leave out the zero eigenvalues and their basis columns."
        )
    return result


def _check_basis(basis: Array, dimension: int, rank: int) -> None:
    if basis.shape != (dimension, rank):
        raise InvalidInput(
            f"basis.shape={basis.shape} differs from (len(mean), len(eigenvalues))={(dimension, rank)}: "
            "pass one column for each eigenvalue."
        )
    if rank > dimension:
        raise InvalidInput(
            f"basis.shape={basis.shape} has more columns than rows: pass at most {dimension} orthonormal columns."
        )
    error = float(np.abs(basis.T @ basis - np.eye(rank)).max())
    if error > ORTHONORMAL_TOLERANCE:
        raise InvalidInput(
            f"basis has max|V^T V - I|={error:.3g}, above {ORTHONORMAL_TOLERANCE:g}: "
            "orthonormalise its columns first, for example with numpy.linalg.qr."
        )


def _points(x: ArrayLike, dimension: int) -> Array:
    result = _array("x", x, 1, 2)
    if result.shape[-1] != dimension:
        raise InvalidInput(f"x.shape={result.shape} must end in M={dimension}: pass points of that length.")
    return result


def _generator(rng: object) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    raise InvalidInput(f"rng={rng!r} is not a NumPy generator: pass numpy.random.default_rng(seed).")
