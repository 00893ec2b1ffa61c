r"""Samplers of Bingham laws: unit vectors and orthonormal frames that prefer the leading eigenvectors of a matrix.

The vector law has density proportional to exp(x^T S x) on the unit sphere. :func:`sample_bingham` draws it exactly, by
rejection from an angular central Gaussian law (Kent, Ganeiban & Mardia, 2018, J. Comput. Graph. Stat. 27, 291). With
F = (largest eigenvalue) I - S, eigenvalues f_i >= 0, and b the root of sum 1/(b + 2 f_i) = 1: draw y ~ N(0, Omega^-1),
Omega = I + 2 F/b, and accept x = y/|y| with probability

    exp(-x^T F x) (x^T Omega x)^(d/2) / M,    M = exp(-(d - b)/2) (d/b)^(d/2).

The density of x is proportional to (x^T Omega x)^(-d/2), so that its inverse must *multiply* exp(-x^T F x).

The frame law has density proportional to exp(tr(V^T S V)) on the d x k matrices with orthonormal columns.
:func:`sample_frame` runs a Gibbs sampler for it (Hoff, 2009, J. Comput. Graph. Stat. 18, 438): given the other columns,
each one is a Bingham vector in their orthogonal complement, drawn exactly. After finitely many sweeps the law of the
frame is *near* the wanted one, and no bound of the distance is known here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.noise import Stream
from lessnoise.noise.floats import Floats

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DEFAULT_SWEEPS = 1000
_PROPOSALS = 8  # at a time


def sample_bingham(matrix: Array, rng: np.random.Generator | None = None) -> Array:
    """One unit vector x of density proportional to exp(x^T matrix x), drawn exactly; for exp(-x^T F x) pass -F.

    >>> x = sample_bingham(np.diag([0.0, -2.0, -5.0]))
    >>> x.shape, round(float(x @ x), 9)
    ((3,), 1.0)
    """
    return draw_vector(_symmetric(matrix), Floats(Stream.of(validation.generator(rng)).claim().sequence()))


def draw_vector(matrix: Array, source: Floats) -> Array:
    """As :func:`sample_bingham`, for a checked matrix and words that are claimed."""
    values, vectors = np.linalg.eigh(matrix)
    falls = values[-1] - values  # f_i, the smallest is 0
    size = len(falls)
    b = _envelope(falls)
    omega = 1.0 + 2.0 * falls / b
    deviations = 1.0 / np.sqrt(omega)
    log_peak = -0.5 * (size - b) + 0.5 * size * math.log(size / b)
    while True:
        proposals = source.normals(_PROPOSALS * size).reshape(_PROPOSALS, size) * deviations
        proposals /= np.linalg.norm(proposals, axis=1)[:, np.newaxis]
        squares = proposals**2
        log_accept = -squares @ falls + 0.5 * size * np.log(squares @ omega) - log_peak
        accepted = np.flatnonzero(-source.exponentials(_PROPOSALS) < log_accept)
        if len(accepted):
            chosen: Array = vectors @ proposals[accepted[0]]
            return chosen


def _envelope(falls: Array) -> float:
    """The root b of sum 1/(b + 2 f_i) = 1, which lies in [1, d] as one f_i is 0. Any b in (0, d] is valid."""
    from scipy.optimize import brentq

    size = float(len(falls))

    def excess(b: float) -> float:
        return float(np.sum(1.0 / (b + 2.0 * falls))) - 1.0

    if excess(size) >= 0.0:  # all f_i are 0, to rounding
        return size
    return float(brentq(excess, 1.0, size, xtol=1e-9)) if excess(1.0) > 0.0 else 1.0


@dataclass(frozen=True, eq=False)
class Chain:
    """A frame and how its chain went. ``trace`` depends on the data beyond what the frame reveals: keep it private."""

    frame: Array
    trace: Array

    @property
    def split_shift(self) -> float:
        """How far the means of tr(V^T S V) over the last two quarters lie apart, in their standard errors.

        Values of about 1 are what a converged chain gives; values well above 4 say that it still moves.
        """
        half = len(self.trace) // 2
        late = self.trace[half:]
        first, second = late[: len(late) // 2], late[len(late) // 2 :]
        errors = [float(np.var(part)) / max(effective_size(part), 1.0) for part in (first, second)]
        apart = abs(float(first.mean() - second.mean()))
        scale = math.sqrt(sum(errors))
        return apart / scale if scale > 0.0 else 0.0

    @property
    def effective_draws(self) -> float:
        """How many independent draws the second half of the chain is worth."""
        return effective_size(self.trace[len(self.trace) // 2 :])


def effective_size(values: Array) -> float:
    """Length over the integrated autocorrelation time (Geyer's initial positive sequence).

    >>> 700 < effective_size(np.random.default_rng(0).standard_normal(1000)) < 1400
    True
    """
    centred = values - values.mean()
    size = len(centred)
    spread = float(centred @ centred)
    if size < 4 or spread <= 0.0:
        return float(size)
    transform = np.fft.rfft(centred, 2 * size)
    correlations = np.fft.irfft(np.abs(transform) ** 2)[:size] / spread
    pairs = correlations[0 : 2 * (size // 2) : 2] + correlations[1 : 2 * (size // 2) : 2]
    ends = np.flatnonzero(pairs <= 0.0)
    time = 2.0 * float(pairs[: int(ends[0]) if len(ends) else len(pairs)].sum()) - 1.0
    return size / max(time, 1.0 / math.log(size))


def sample_frame(
    matrix: Array,
    components: int,
    rng: np.random.Generator | Stream | None = None,
    *,
    sweeps: int = DEFAULT_SWEEPS,
    progress: Callable[[str, int, int], None] | None = None,
) -> Chain:
    """A d x k frame of density nearly proportional to exp(tr(V^T matrix V)), after Gibbs sweeps from a uniform start.

    >>> chain = sample_frame(np.diag([9.0, 5.0, 0.0, 0.0]), 2, np.random.default_rng(0), sweeps=50)
    >>> np.allclose(chain.frame.T @ chain.frame, np.eye(2)), len(chain.trace)
    (True, 50)
    """
    checked = _symmetric(matrix)
    size, sweeps = len(checked), validation.whole_number("sweeps", sweeps)
    count = validation.whole_number("components", components)
    if count > size:
        raise InvalidInput(f"components={count} exceeds the {size} dimensions: ask for {size} at most.")
    stream = rng if isinstance(rng, Stream) else Stream.of(validation.generator(rng))
    source = Floats(stream.claim().sequence())
    # Never start at the eigenvectors: an unfinished chain would give them away.
    frame = np.linalg.qr(source.normals(size * count).reshape(size, count))[0]
    trace = np.empty(sweeps)
    for sweep in range(sweeps):
        for column in range(count):
            others = np.delete(frame, column, axis=1)
            complement = np.linalg.qr(others, mode="complete")[0][:, count - 1 :] if count > 1 else np.eye(size)
            frame[:, column] = complement @ draw_vector(complement.T @ checked @ complement, source)
        frame = np.linalg.qr(frame)[0]  # rounding does not add up; the span is what matters
        trace[sweep] = float(np.einsum("ik,ij,jk->", frame, checked, frame, optimize=True))
        if progress is not None:
            progress("Gibbs sweeps", sweep + 1, sweeps)
    return Chain(frame, trace)


def sample_sequence(matrix: Array, components: int, rng: np.random.Generator | Stream | None = None) -> Array:
    """A d x k frame whose columns are Bingham vectors, each drawn exactly in the complement of those before.

    >>> frame = sample_sequence(np.diag([90.0, 50.0, 0.0, 0.0]), 2, np.random.default_rng(0))
    >>> np.allclose(frame.T @ frame, np.eye(2)), bool(frame[0, 0] ** 2 > 0.9)
    (True, True)
    """
    checked, count = _symmetric(matrix), validation.whole_number("components", components)
    if count > len(checked):
        raise InvalidInput(f"components={count} exceeds the {len(checked)} dimensions: ask for {len(checked)} at most.")
    stream = rng if isinstance(rng, Stream) else Stream.of(validation.generator(rng))
    source = Floats(stream.claim().sequence())
    frame, basis = np.empty((len(checked), count)), np.eye(len(checked))
    for column in range(count):
        inside = draw_vector(_even(basis.T @ checked @ basis), source)
        frame[:, column] = basis @ inside
        basis = basis @ np.linalg.qr(inside[:, np.newaxis], mode="complete")[0][:, 1:]
    return frame


def _even(matrix: Array) -> Array:
    return 0.5 * (matrix + matrix.T)


def _symmetric(matrix: Array) -> Array:
    checked = validation.real_array(matrix, "matrix")
    if checked.ndim != 2 or checked.shape[0] != checked.shape[1] or not checked.size:
        raise InvalidInput(f"matrix.shape={checked.shape} is not square: pass a symmetric matrix.")
    if not np.allclose(checked, checked.T, rtol=1e-9, atol=1e-12 * max(float(np.abs(checked).max()), 1e-300)):
        raise InvalidInput("matrix is not symmetric: pass (matrix + matrix.T)/2 if that is what you mean.")
    return _even(checked)
