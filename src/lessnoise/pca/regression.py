"""A scikit-learn estimator: :class:`PrivateLinearRegression`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lessnoise import validation
from lessnoise._display import Estimates, Facts, Listed
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.pca.bounded_rows import column_names, is_streamed, moments
from lessnoise.pca.estimators import SAMPLED, PrivateRows, generator_of, selected
from lessnoise.pca.layout import MOST_ROWS, Layout
from lessnoise.pca.least_squares import half_widths, solve
from lessnoise.pca.noisy_moments import MATRIX, PUBLISHED
from lessnoise.pca.scaled_rows import ScaledRows
from lessnoise.query import column_names as _column_names
from lessnoise.query import unknown_column
from lessnoise.release import Payment

try:
    from sklearn.base import RegressorMixin
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise ImportError("the estimators need scikit-learn: install it with pip install 'lessnoise[sklearn]'.") from None

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lessnoise._common import Array
    from lessnoise.guarantees import Guarantee
    from lessnoise.pca.least_squares import LeastSquares
    from lessnoise.pca.noisy_moments import NoisyMoments
    from lessnoise.release import Certificate


@dataclass(frozen=True, eq=False)
class ConfidenceIntervals(Listed):
    """Interval estimates at one level: ``coef`` has (low, high) of each coefficient in a row, ``intercept`` its own."""

    level: float
    coef: Array
    intercept: Array

    def _facts(self) -> Facts:
        ends = [*np.atleast_2d(self.coef).tolist(), np.ravel(self.intercept).tolist()]
        names = [*(f"coefficient {place}" for place in range(len(ends) - 1)), "intercept"]
        lines = [(name, f"{low:.5g}", f"{high:.5g}") for name, (low, high) in zip(names, ends, strict=True)]
        return Facts("Interval estimates", [("level", f"{self.level:g}")], ("of", "from", "to"), lines)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLinearRegression(RegressorMixin, PrivateRows):  # type: ignore[misc]
    r"""Least squares under differential privacy, from one noisy release of the second moments of features and target.

    Only ``fit`` is private: ``predict`` maps the rows that it is given, and ``score`` compares rows and targets, both
    without noise.

    Parameters
    ----------
    epsilon, delta
        The privacy budget of one fit. Without delta the noise is for pure epsilon, and larger.
    bounds, target_bounds
        (low, high) of the features, numbers or one number for each column, and of the target. Entries outside are
        moved to the nearer end. Each column is measured in units of its bounds, so that all share the noise. Limits
        are public knowledge and must not be read from the data.
    clip_norm
        The largest l2 norm of a row of features and target; longer rows are scaled down to it. With bounds it is
        measured from their midpoint, in half-widths; without an intercept, from 0 in units of the farther end.
        Without bounds it is measured from 0, in the columns' own units.
    fit_intercept
        Whether the line has an intercept.
    mechanism
        A name from the catalogue, or a function from a :class:`~lessnoise.mechanism.catalogue.Request` to a mechanism.
        "least-noise" is the best that is known.
    neighbours
        "add/remove" (the default): the number of rows is private. "replace": it is public.
    count_clipped
        Also release, with noise, how many rows were clipped (``clipped_rows_``).
    columns, target
        Names of the features and of the target, where ``fit`` is given a table or file alone. By default all other
        columns are features.
    engine
        "numpy", "duckdb", "spark" or "dask" computes the sums; chosen by the data if left out. All give the same.
    ledger
        A budget to spend from, before any noise is drawn.
    random_state
        None for a private release. A seed or generator makes the fit repeatable and *not private*.

    Attributes
    ----------
    coef_, intercept_
        The line, in the columns' own units.
    ridge_
        What was added to the diagonal of the features' moments, in units of the bounds, to lift their smallest
        eigenvalue to the level of the noise; 0 where it is above.
    residual_deviation_
        An estimate of the residuals' standard deviation.
    n_samples_
        The number of rows: released with noise under add/remove, public under replace.
    certificate_, guarantee_
        What the fit really guarantees.

    Examples
    --------
    >>> import numpy as np
    >>> import lessnoise as ln
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform([0, 0], [1, 500], size=(20000, 2))
    >>> y = 3 * X[:, 0] - 0.01 * X[:, 1] + rng.normal(size=20000)
    >>> line = ln.PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=([0, 0], [1, 500]), target_bounds=(-10, 10))
    >>> line.fit(X, y).coef_.shape, line.certificate_.private, line.guarantee_.delta <= 1e-6
    ((2,), True, True)
    >>> line.confidence_intervals(level=0.95).coef.shape
    (2, 2)
    """

    target_bounds: tuple[ArrayLike, ArrayLike] | None = None
    fit_intercept: bool = True
    target: str | None = None

    def fit(self, X: object, y: ArrayLike | None = None) -> Self:  # noqa: N803
        """Release the line: of an array or data frame and its targets, or of a table or file that holds ``target``."""
        self._check_budget()
        if self.mechanism in (*MATRIX, *PUBLISHED, *SAMPLED):
            raise InvalidInput(
                f"mechanism={self.mechanism!r} releases no sums beside the matrix: leave it out, or choose one for "
                "vectors, such as 'analytic-gaussian'."
            )
        relation = Neighbours.ADD_REMOVE if self.neighbours is None else Neighbours.of(self.neighbours)
        table, names = self._with_target(X, y)
        size, center = self.n_features_in_, bool(self.fit_intercept)
        bound = ScaledRows.for_target(
            size,
            bounds=self.bounds,
            target_bounds=self.target_bounds,
            clip_norm=self.clip_norm,
            center=center,
        )
        layout = Layout(size + 1, bound.norm, relation, center, bool(self.count_clipped), MOST_ROWS)
        rng = generator_of(self.random_state)
        noisy = self._release(layout, moments(table, bound, names, self.engine), rng)
        with Payment(self.ledger, noisy.release.receipt, noisy.release):
            self._keep(noisy, solve(noisy.moments, layout, noisy.deviation, bound.farthest), bound)
        return self

    def _keep(self, noisy: NoisyMoments, found: LeastSquares, bound: ScaledRows) -> None:
        """The attributes, in the columns' own units: z = (x - middle) scale."""
        size = self.n_features_in_
        units = bound.scale[:size] / bound.scale[size]
        back = np.diag(np.append(units, 1.0 / bound.scale[size]))
        back[size, :size] = -units * bound.middle[:size]
        values = back @ found.solution
        self.coef_: Array = values[:size]
        self.intercept_ = float(values[size] + bound.middle[size]) if self.fit_intercept else 0.0
        self.ridge_ = found.ridge
        self.residual_deviation_ = math.sqrt(found.residual_variance) / float(bound.scale[size])
        self.n_samples_ = noisy.moments.count
        if self.count_clipped:
            self.clipped_rows_ = noisy.moments.clipped
        self.certificate_: Certificate = noisy.certificate
        self.guarantee_: Guarantee = noisy.certificate.guarantee
        self._noise_variance, self._sampling_variance = (
            np.einsum("ij,jk,ik->i", back, part, back, optimize=True) for part in (found.noise, found.sampling)
        )

    def _with_target(self, data: object, y: ArrayLike | None) -> tuple[object, list[str] | None]:
        """Rows with the target as their last column: an array, or a table and the names of its columns."""
        if y is not None and self.target is not None:
            raise InvalidInput(f"target={self.target!r} and y are both given: pass one of them.")
        if self.target is None:
            return self._beside(data, y), None
        validation.text("target", self.target)
        if self.columns is not None and self.target in _column_names(self.columns):
            raise InvalidInput(f"target={self.target!r} is among columns too: leave it out of them.")
        names = self._names(data)
        if self.columns is None and self.target not in names:
            raise unknown_column(self.target, names)
        chosen = [name for name in names if name != self.target]
        if not chosen:
            raise InvalidInput(f"target={self.target!r} is the only column: pass a table with features beside it.")
        if is_streamed(data):
            self._table(data)
            self.n_features_in_ = len(chosen)
            self.feature_names_in_ = np.asarray(chosen, dtype=object)
            return data, [*chosen, self.target]
        frame = selected(data, [*chosen, self.target])
        return self._beside(frame[chosen], frame[self.target]), None

    def _names(self, data: Any) -> list[str]:  # noqa: ANN401
        """The columns to use, as far as they are known without reading the table."""
        if self.columns is not None:
            return list(_column_names(self.columns))
        names = column_names(data) if is_streamed(data) else getattr(data, "columns", None)
        if names is None:
            raise InvalidInput(f"target={self.target!r}, but an array has no names: pass y instead.")
        return list(names)

    def _beside(self, data: object, y: ArrayLike | None) -> Array:
        if y is None:
            raise InvalidInput(
                f"{type(self).__name__} requires y to be passed, but the target y is None: pass y, or a table and the "
                "name of its target."
            )
        if is_streamed(data):
            raise InvalidInput(
                f"y is given beside a table of type {type(data).__name__}: pass target= with the name of its column."
            )
        rows = np.asarray(self._table(data), dtype=np.float64)
        validation.unmasked(y, "y")
        targets = column_or_1d(y, warn=True)
        if targets.dtype.kind == "O":
            targets = _numbers(targets)
        if targets.dtype.kind not in "iufb":
            raise InvalidInput(f"y.dtype={targets.dtype} is not numeric: pass one number for each row.")
        if len(targets) != len(rows):
            raise InvalidInput(f"len(y)={len(targets)} differs from the {len(rows)} rows of X: pass one for each row.")
        targets = targets.astype(np.float64)
        if not np.isfinite(targets).all():
            raise InvalidInput("y has missing (NaN) or infinite (inf) entries: fill or drop them before the fit.")
        return np.column_stack([rows, targets])

    def predict(self, X: ArrayLike) -> Array:  # noqa: N803
        """The line at rows. No noise is added: the result is as private as the rows."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        result: Array = rows @ self.coef_ + self.intercept_
        return result

    def confidence_intervals(self, level: float = 0.95) -> ConfidenceIntervals:
        """Intervals for the coefficients of the population, each by itself; they cost no privacy.

        They cover the privacy noise, whose law is known, and the sampling error of least squares, for independent rows
        whose residuals have one variance; both to first order. They do not cover what
        clipping changes. Where ``ridge_`` is above 0 some direction of the features cannot be told from noise:
        then no coefficient is known, and all intervals are (-inf, inf).

        >>> rng = np.random.default_rng(1)
        >>> x = rng.uniform(-1, 1, size=(30000, 1))
        >>> y = 0.5 * x[:, 0] + rng.normal(size=30000) / 10
        >>> line = PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-1, 1)).fit(x, y)
        >>> low, high = line.confidence_intervals(level=0.99).coef[0]
        >>> bool(0.0 < low < line.coef_[0] < high < 1.0)
        True
        """
        check_is_fitted(self)
        level = validation.probability("level", level, "0.95, say")
        if self.ridge_ > 0.0:
            widths = np.full(self.n_features_in_ + 1, np.inf)
        else:
            widths = half_widths(self.certificate_.mechanism, self._noise_variance, self._sampling_variance, level)
        middle = np.append(self.coef_, self.intercept_)
        if not self.fit_intercept:
            widths[-1] = 0.0
        ends = np.column_stack([middle - widths, middle + widths])
        return ConfidenceIntervals(level, ends[:-1], ends[-1])

    def _chart(self) -> Estimates:
        """The coefficients; with bounds times the widths of the columns, so that they share an axis."""
        found = self.confidence_intervals()
        widths = np.ones(self.n_features_in_)
        label = "coefficient: change of the target for one unit of the column"
        if self.bounds is not None:
            low, high = (np.asarray(end, dtype=np.float64) for end in self.bounds)
            widths = np.broadcast_to(high - low, widths.shape)
            label = "change of the target across the bounds of the column"
        ends = [(float(low), float(high)) for low, high in widths[:, np.newaxis] * found.coef]
        title = f"Private coefficients with {found.level:.0%} intervals{self._seeded}"
        if self.ridge_ > 0.0:
            title, ends = f"Private coefficients; the noise is too large for intervals{self._seeded}", []
        values = (widths * self.coef_).tolist()
        return Estimates(title, label, self._columns_in_words(), values, ends, ("no effect", 0.0))

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on the hundred rows of scikit-learn's checks
        return tags


def _numbers(values: Any) -> Array:  # noqa: ANN401
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("y has entries that are not numbers: pass one number for each row.") from None
