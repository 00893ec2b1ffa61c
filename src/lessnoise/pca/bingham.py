r"""Samplers of Bingham laws: unit vectors and orthonormal frames that prefer the leading eigenvectors of a matrix.

The vector law has density proportional to exp(x^T S x) on the unit sphere. :func:`sample_bingham` draws it exactly, by
rejection (:mod:`lessnoise.noise.unit_vector`), and rounds it to a grid.

The frame law has density proportional to exp(tr(V^T S V)) on the d x k matrices with orthonormal columns.
:func:`sample_frame` runs a Gibbs sampler for it (Hoff, 2009, J. Comput. Graph. Stat. 18, 438): given the other columns,
each one is a Bingham vector in their orthogonal complement (:mod:`lessnoise.pca.complement`, in floats). After finitely
many sweeps the law of the frame is *near* the wanted one, and no bound of the distance is known here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.noise import Bingham, Normals, Stream
from lessnoise.pca.complement import draw_orthogonal

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array


DEFAULT_SWEEPS = 1000


def sample_bingham(matrix: Array, rng: np.random.Generator | None = None) -> Array:
    """One unit vector x of density proportional to exp(x^T matrix x), drawn exactly; for exp(-x^T F x) pass -F.

    >>> x = sample_bingham(np.diag([0.0, -2.0, -5.0]))
    >>> x.shape, round(float(x @ x), 9)
    ((3,), 1.0)
    """
    return draw_vector(_symmetric(matrix), 1.0, None, _normals(rng))


def draw_vector(matrix: Array, weight: float, basis: Array | None, source: Normals) -> Array:
    """A unit vector in the span of a public basis, of density exp(weight x^T matrix x), from a rounded draw."""
    drawn = Bingham(matrix, weight, basis).draw(source)
    vector: Array = drawn if basis is None else basis @ drawn
    return vector / np.linalg.norm(vector)


@dataclass(frozen=True, eq=False)
class MarkovChain:
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
    weight: float = 1.0,
    progress: Callable[[str, int, int], None] | None = None,
) -> MarkovChain:
    """A d x k frame of density nearly proportional to exp(weight tr(V^T matrix V)), by Gibbs from a uniform start.

    >>> chain = sample_frame(np.diag([9.0, 5.0, 0.0, 0.0]), 2, np.random.default_rng(0), sweeps=50)
    >>> np.allclose(chain.frame.T @ chain.frame, np.eye(2)), len(chain.trace)
    (True, 50)
    """
    checked = _symmetric(matrix)
    size, sweeps = len(checked), validation.whole_number("sweeps", sweeps)
    count, source = _count(components, size), _normals(rng)
    values, vectors = np.linalg.eigh(checked)
    values, vectors = weight * values[::-1], vectors[:, ::-1]
    # Never start at the eigenvectors: an unfinished chain would give them away. From here on in their coordinates.
    frame = np.linalg.qr(source.batch(size * count)[0].x.reshape(size, count))[0]
    trace = np.empty(sweeps)
    levels: list[float | None] = [None] * count
    for sweep in range(sweeps):
        for column in range(count):
            others = np.delete(frame, column, axis=1)
            few = 2 * (count - 1) <= size
            drawn = draw_orthogonal(values, others, source, levels[column]) if few else None
            if drawn is None:
                frame[:, column] = draw_vector(np.diag(values), 1.0, _complement(others), source)
            else:
                frame[:, column], levels[column] = drawn
        frame = np.linalg.qr(frame)[0]  # rounding does not add up; the span is what matters
        trace[sweep] = float(values @ np.sum(frame**2, axis=1))
        if progress is not None:
            progress("Gibbs sweeps", sweep + 1, sweeps)
    return MarkovChain(vectors @ frame, trace)


def sample_sequence(
    matrix: Array, components: int, rng: np.random.Generator | Stream | None = None, *, weight: float = 1.0
) -> Array:
    """A d x k frame whose columns are Bingham vectors, each drawn exactly in the complement of those before.

    >>> frame = sample_sequence(np.diag([90.0, 50.0, 0.0, 0.0]), 2, np.random.default_rng(0))
    >>> np.allclose(frame.T @ frame, np.eye(2)), bool(frame[0, 0] ** 2 > 0.9)
    (True, True)
    """
    checked = _symmetric(matrix)
    count, source = _count(components, len(checked)), _normals(rng)
    frame = np.empty((len(checked), count))
    for column in range(count):
        frame[:, column] = draw_vector(checked, weight, _complement(frame[:, :column]), source)
    return frame


def _count(components: int, size: int) -> int:
    count = validation.whole_number("components", components)
    if count > size:
        raise InvalidInput(f"components={count} exceeds the {size} dimensions: ask for {size} at most.")
    return count


def _normals(rng: np.random.Generator | Stream | None) -> Normals:
    return Normals(rng if isinstance(rng, Stream) else Stream.of(validation.generator(rng)))


def _complement(frame: Array) -> Array | None:
    """An orthonormal basis of what is orthogonal to the columns; None for everything."""
    columns = frame.shape[1]
    return np.ascontiguousarray(np.linalg.qr(frame, mode="complete")[0][:, columns:]) if columns else None


def _symmetric(matrix: Array) -> Array:
    checked = validation.real_array(matrix, "matrix")
    if checked.ndim != 2 or checked.shape[0] != checked.shape[1] or not checked.size:
        raise InvalidInput(f"matrix.shape={checked.shape} is not square: pass a symmetric matrix.")
    if not np.allclose(checked, checked.T, rtol=1e-9, atol=1e-12 * max(float(np.abs(checked).max()), 1e-300)):
        raise InvalidInput("matrix is not symmetric: pass (matrix + matrix.T)/2 if that is what you mean.")
    return 0.5 * (checked + checked.T)
