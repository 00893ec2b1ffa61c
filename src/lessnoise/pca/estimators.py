"""scikit-learn estimators: :class:`PrivateCovariance` and :class:`PrivatePCA`."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lessnoise import validation
from lessnoise._display import Cells, Charted, Estimates, to_html
from lessnoise.engines import ENGINES
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.pca.bingham import DEFAULT_SWEEPS
from lessnoise.pca.bounded_rows import RowBound, column_names, is_streamed, moments, source_of
from lessnoise.pca.exponential import ppca
from lessnoise.pca.layout import MOST_ROWS, Layout
from lessnoise.pca.noisy_moments import DEFAULT, MATRIX, PUBLISHED, NoisyMoments, release_moments
from lessnoise.query import column_names as _column_names
from lessnoise.query import unknown_column
from lessnoise.release import Payment

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ImportError("the estimators need scikit-learn: install it with pip install 'lessnoise[sklearn]'.") from None

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from lessnoise._common import Array
    from lessnoise.ledger import Ledger
    from lessnoise.pca.bounded_rows import Moments
    from lessnoise.pca.exponential import ComponentsCertificate
    from lessnoise.pca.noisy_moments import Builder
    from lessnoise.release import Certificate


SAMPLED = ("ppca", "ppca-one-by-one")


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRows(BaseEstimator, Charted):  # type: ignore[misc]
    """What all estimators share: parameters, reading the table, releasing its moments."""

    epsilon: float | None = None
    delta: float | None = None
    mechanism: str | Builder = DEFAULT
    clip_norm: float | None = None
    bounds: tuple[ArrayLike, ArrayLike] | None = None
    neighbours: Neighbours | str | None = None
    count_clipped: bool = False
    columns: Sequence[str] | None = None
    engine: str | None = None
    ledger: Ledger | None = None
    random_state: int | np.random.Generator | np.random.RandomState | None = None

    def _table(self, data: object) -> object:
        """Arrays and data frames through scikit-learn's checks; what an engine reads as it is."""
        if self.engine is not None:
            validation.choice("engine", self.engine, list(ENGINES))
        wanted = None if self.columns is None else list(_column_names(self.columns))
        if not is_streamed(data):
            validation.unmasked(data, "data")
            table = data if wanted is None else selected(data, wanted)
            rows = validate_data(self, table, dtype=[np.float64, np.float32], ensure_all_finite=False)
            if not np.isfinite(rows).all():
                raise InvalidInput("X has missing (NaN) or infinite (inf) entries: fill or drop them before the fit.")
            return rows
        names = column_names(data) if wanted is None else wanted
        source = source_of(data)
        if names is None or isinstance(source, np.ndarray):
            return self._mapped(source, wanted)
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.asarray(names, dtype=object)
        return source

    def _mapped(self, table: Array, wanted: list[str] | None) -> Array:
        if wanted is not None:
            raise InvalidInput(f"columns={wanted}, but an array has no names: leave them out, or pass a table.")
        if table.ndim != 2 or 0 in table.shape:
            raise InvalidInput(f"data.shape={table.shape} is not (n, d): pass one row for each individual.")
        self.n_features_in_ = table.shape[1]
        if hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        return table

    def _html_repr(self) -> str:
        """In notebooks: what a fit guarantees, once there is one; before, scikit-learn's table of parameters."""
        made = getattr(self, "certificate_", None)
        if made is None:
            return str(super()._html_repr())
        return f"<div><strong>{escape(type(self).__name__)}</strong>{to_html(made)}</div>"

    def _columns_in_words(self) -> list[str]:
        """The names of the columns of the fit; their places where they have none."""
        names = getattr(self, "feature_names_in_", None)
        return [f"column {place}" for place in range(self.n_features_in_)] if names is None else list(map(str, names))

    @property
    def _seeded(self) -> str:
        """What the title of a picture adds where a seed was used."""
        return "" if self.certificate_.private else "; seeded, NOT private"

    def _check_budget(self) -> None:
        if self.epsilon is None:
            raise InvalidInput("epsilon=None: pass the privacy budget of this fit, such as epsilon=1.")
        validation.epsilon(self.epsilon)
        if self.delta is not None:
            validation.delta(self.delta)

    def _release(self, layout: Layout, found: Moments, rng: np.random.Generator | None) -> NoisyMoments:
        assert self.epsilon is not None  # checked by _check_budget
        return release_moments(found, layout, self.mechanism, self.epsilon, self.delta, rng, self.ledger)


@dataclass(kw_only=True, eq=False, repr=False)
class _PrivateMoments(PrivateRows):
    """What covariance and components share: whether to centre, and which attributes they have."""

    center: bool | None = None

    def _prepare(self, data: object) -> tuple[Layout, RowBound, object]:
        """Every check that can be made before the data are summed, and before anything is spent."""
        self._check_budget()
        center, relation = self._form()
        table = self._table(data)
        bound = RowBound.of(self.n_features_in_, clip_norm=self.clip_norm, bounds=self.bounds, center=center)
        layout = Layout(self.n_features_in_, bound.norm, relation, center, bool(self.count_clipped), MOST_ROWS)
        return layout, bound, table

    def _form(self) -> tuple[bool, Neighbours]:
        """Whether to centre, and the neighbours: where left open, what the mechanism was made for."""
        around_origin = self.mechanism in (*MATRIX, *PUBLISHED, *SAMPLED)
        usual = Neighbours.REPLACE if self.mechanism in (*MATRIX, *PUBLISHED) else Neighbours.ADD_REMOVE
        center = not around_origin if self.center is None else bool(self.center)
        return center, usual if self.neighbours is None else Neighbours.of(self.neighbours)

    def _moments(self, table: object, bound: RowBound) -> Moments:
        names = None if isinstance(table, np.ndarray) else list(self.feature_names_in_)
        return moments(table, bound, names, self.engine)

    def _keep(self, noisy: NoisyMoments, layout: Layout, bound: RowBound) -> Array:
        """The attributes that both estimators have; returns the covariance."""
        self.certificate_: Certificate | ComponentsCertificate = noisy.certificate
        self.n_samples_ = noisy.moments.count
        self.mean_ = bound.shift + (noisy.moments.sums / max(noisy.moments.count, 1.0) if layout.center else 0.0)
        self.noise_floor_ = layout.noise_floor(noisy.deviation, noisy.moments.count)
        if self.count_clipped:
            self.clipped_rows_ = noisy.moments.clipped
        return noisy.moments.covariance(layout.center)


class PrivateCovariance(_PrivateMoments):
    r"""The covariance matrix of a table, released once under differential privacy.

    Parameters
    ----------
    epsilon, delta
        The privacy budget of one fit. Without delta the noise is for pure epsilon, and larger.
    mechanism
        A name from the catalogue, "mod-sulq" or "wishart", or a function from a
        :class:`~lessnoise.mechanism.catalogue.Request` to a mechanism. "least-noise" is the best that is known.
    clip_norm
        The largest l2 norm of a row; longer rows are scaled down to it.
    bounds
        Instead of ``clip_norm``: (low, high), numbers or one number for each column; entries outside are moved to the
        nearer end. With both, and ``center``, the norm is measured from the midpoint of the bounds. Limits are public
        knowledge and must not be read from the data.
    center
        Take deviations from the (noisy) mean, over n - 1; otherwise second moments around 0, over n. By default True,
        and False for the mechanisms that know no mean: "mod-sulq", "wishart", "mvg", "mgm" and "ppca".
    neighbours
        "add/remove": the number of rows is private. "replace": it is public. By default add/remove, and replace for the
        mechanisms that were made for a public number: "mod-sulq", "wishart", "mvg" and "mgm".
    count_clipped
        Also release, with noise, how many rows were clipped (``clipped_rows_``).
    columns
        Which columns of a table or file to use; all by default.
    engine
        "numpy", "duckdb", "spark" or "dask" computes the sums; chosen by the data if left out. All give the same.
    ledger
        A budget to spend from, before any noise is drawn.
    random_state
        None for a private release. A seed or generator makes the fit repeatable and *not private*.

    Attributes
    ----------
    covariance_, mean_, location_
        As released. The covariance is symmetric, but noise may make it indefinite.
    n_samples_
        The number of rows: released with noise under add/remove, public under replace.
    certificate_
        What the fit really guarantees.
    noise_floor_
        About the largest eigenvalue that noise alone would give.

    Examples
    --------
    >>> import numpy as np
    >>> from lessnoise.pca import PrivateCovariance
    >>> table = np.random.default_rng(0).normal(size=(5000, 3)) * [3.0, 2.0, 1.0]
    >>> private = PrivateCovariance(epsilon=1, delta=1e-6, clip_norm=9).fit(table)
    >>> private.covariance_.shape, private.certificate_.private
    ((3, 3), True)
    >>> private.certificate_.guarantee.delta <= 1e-6
    True
    """

    def fit(self, X: object, y: object = None) -> Self:  # noqa: N803
        """Release the covariance of a table: an array, a data frame, an Arrow table, or the path of a file."""
        if self.mechanism in SAMPLED:
            raise InvalidInput(f"mechanism={self.mechanism!r} samples components, no covariance: use it in PrivatePCA.")
        layout, bound, table = self._prepare(X)
        rng = generator_of(self.random_state)
        noisy = self._release(layout, self._moments(table, bound), rng)
        with Payment(self.ledger, noisy.release.receipt, noisy.release):
            self.covariance_ = self._keep(noisy, layout, bound)
            self.location_ = self.mean_
        return self

    def _chart(self) -> Cells:
        check_is_fitted(self)
        names = self._columns_in_words()
        title = f"Private covariance, {len(names)} columns{self._seeded}"
        return Cells(title, "covariance, as released", names, names, self.covariance_.tolist())


@dataclass(eq=False, repr=False)
class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _PrivateMoments):  # type: ignore[misc]
    r"""Principal components under differential privacy, from one noisy covariance (or sampled: "ppca").

    The parameters are those of :class:`PrivateCovariance`, with ``n_components`` (all by default). Two more mechanisms
    sample the components themselves: "ppca", by a Markov chain of ``sweeps`` sweeps, and "ppca-one-by-one".
    Only ``fit`` is private: ``transform`` maps the rows that it is given, without noise.

    Attributes
    ----------
    components_
        One component in each row, orthonormal, the largest entry of each positive.
    explained_variance_, explained_variance_ratio_, singular_values_
        From the noisy covariance, cut off at 0; not available for "ppca".
    mean_, n_components_, n_samples_, noise_floor_, certificate_
        As in :class:`PrivateCovariance`.

    Examples
    --------
    >>> import numpy as np
    >>> from lessnoise.pca import PrivatePCA
    >>> table = np.random.default_rng(0).normal(size=(5000, 3)) * [3.0, 2.0, 1.0]
    >>> pca = PrivatePCA(n_components=2, epsilon=1, delta=1e-6, clip_norm=9, random_state=0).fit(table)
    >>> pca.transform(table).shape, pca.get_feature_names_out().tolist()
    ((5000, 2), ['privatepca0', 'privatepca1'])
    >>> pca.certificate_.guarantee.delta <= 1e-6, pca.certificate_.private  # a seed is never private
    (True, False)
    """

    n_components: int | None = field(default=None, kw_only=False)
    sweeps: int = field(default=DEFAULT_SWEEPS, kw_only=True)

    def fit(self, X: object, y: object = None) -> Self:  # noqa: N803
        """Release the components of a table: an array, a data frame, an Arrow table, or the path of a file."""
        layout, bound, table = self._prepare(X)
        count = self._wanted(layout.features)
        rng = generator_of(self.random_state)
        if self.mechanism in SAMPLED:
            return self._sample(count, layout, bound, table, rng)
        noisy = self._release(layout, self._moments(table, bound), rng)
        with Payment(self.ledger, noisy.release.receipt, noisy.release):
            covariance = self._keep(noisy, layout, bound)
            values, vectors = leading(covariance, count)
            self.components_ = vectors
            self.explained_variance_ = np.maximum(values, 0.0)
            total = max(float(np.trace(covariance)), float(self.explained_variance_.sum()))
            self.explained_variance_ratio_ = self.explained_variance_ / total if total > 0.0 else np.zeros(count)
            self.singular_values_ = np.sqrt(self.explained_variance_ * max(self.n_samples_ - layout.center, 1.0))
            self.n_components_ = count
        return self

    def _sample(
        self, count: int, layout: Layout, bound: RowBound, table: object, rng: np.random.Generator | None
    ) -> Self:
        assert self.epsilon is not None  # checked by _prepare
        if layout.center or layout.count_clipped:
            raise InvalidInput(
                f"mechanism={self.mechanism!r} samples components around the origin and counts nothing: pass "
                "center=False and count_clipped=False, or use another mechanism."
            )
        if self.ledger is not None:
            raise InvalidInput(
                f"ledger is given, but mechanism={self.mechanism!r} has no curve that a ledger could compose: leave it "
                "out and account for it by hand, or use another mechanism."
            )
        sampled = ppca(
            self._moments(table, bound).gram,
            components=count,
            epsilon=self.epsilon,
            clip_norm=bound.norm,
            neighbours=layout.neighbours,
            sweeps=self.sweeps,
            one_by_one=self.mechanism == "ppca-one-by-one",
            rng=rng,
        )
        self.components_ = _facing(sampled.value)
        self.certificate_ = sampled.certificate
        self.mean_ = bound.shift
        self.n_components_ = count
        # The chain depends on the data beyond what the guarantee covers.
        if sampled.chain is not None and not sampled.certificate.private:
            self.chain_ = sampled.chain
        return self

    def _wanted(self, features: int) -> int:
        if self.n_components is None:
            return features
        count = validation.whole_number("n_components", self.n_components)
        if count > features:
            raise InvalidInput(f"n_components={count} exceeds the {features} columns: ask for {features} at most.")
        return count

    def transform(self, X: ArrayLike) -> Array:  # noqa: N803
        """Coordinates of rows along the components. No noise is added: the result is as private as the rows."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        result: Array = (rows - self.mean_) @ self.components_.T
        return result

    def inverse_transform(self, X: ArrayLike) -> Array:  # noqa: N803
        """Rows from their coordinates along the components."""
        check_is_fitted(self)
        coordinates = validation.real_array(X, "X")
        if coordinates.ndim != 2 or coordinates.shape[1] != self.n_components_:
            raise InvalidInput(
                f"X.shape={coordinates.shape} is not (n, {self.n_components_}): pass what transform gave."
            )
        result: Array = coordinates @ self.components_ + self.mean_
        return result

    def get_covariance(self) -> Array:
        """The part of the covariance that the components explain."""
        check_is_fitted(self)
        if self.mechanism in SAMPLED:
            raise InvalidInput(f"mechanism={self.mechanism!r} releases components only: there is no covariance.")
        result: Array = (self.components_.T * self.explained_variance_) @ self.components_
        return result

    def _chart(self) -> Estimates | Cells:
        check_is_fitted(self)
        places = [str(place) for place in range(1, self.n_components_ + 1)]
        if self.mechanism in SAMPLED:  # no variances are released
            title = f"Private components, {self.mechanism}{self._seeded}"
            names = [f"component {place}" for place in places]
            return Cells(title, "weight of the column", names, self._columns_in_words(), self.components_.tolist())
        title = f"Variance that each component explains{self._seeded}"
        floor = "about the most that noise alone gives", float(self.noise_floor_)
        values = self.explained_variance_.tolist()
        return Estimates(title, "noisy variance, in squared units of the rows", places, values, (), floor, "component")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)


def leading(covariance: Array, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues, falling, and their eigenvectors in rows."""
    from scipy.linalg import eigh

    size = len(covariance)
    few = 4 * count < size
    values, vectors = eigh(covariance, subset_by_index=[size - count, size - 1] if few else None)
    return values[::-1][:count].copy(), _facing(vectors.T[::-1][:count])


def _facing(rows: Array) -> Array:
    """Each row with the sign that makes its largest entry positive."""
    largest = rows[np.arange(len(rows)), np.argmax(np.abs(rows), axis=1)]
    return np.ascontiguousarray(rows * np.where(largest < 0.0, -1.0, 1.0)[:, np.newaxis])


def selected(data: Any, names: list[str]) -> Any:  # noqa: ANN401
    """Some columns of a data frame."""
    if not hasattr(data, "columns"):
        raise InvalidInput(f"columns={names}, but an array has no names: leave them out, or pass a table.")
    for name in names:
        if name not in data.columns:
            raise unknown_column(name, [str(each) for each in data.columns])
    return data[names]


def generator_of(random_state: Any) -> np.random.Generator | None:  # noqa: ANN401
    """None, a seed, or a generator of NumPy's, old or new; a seed or generator is never private."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, 8, dtype=np.uint64))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return np.random.default_rng(validation.whole_number("random_state", random_state, minimum=0))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return random_state
    raise InvalidInput(
        f"random_state={random_state!r} is not a seed: leave it out for a private fit, or pass an int for a trial."
    )
