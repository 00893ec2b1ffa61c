"""Private covariance and components: sensitivities, noise, limits, bad input."""

import json
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

import lessnoise as ln
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.pca import PrivateCovariance, PrivatePCA, RowBound, moments
from lessnoise.pca.layout import Layout, entries, pack, unpack

HUGE = {"epsilon": 1e9, "delta": 1e-6}


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


ESTIMATORS = (
    PrivatePCA(1, epsilon=5, delta=1e-5, clip_norm=10),
    PrivateCovariance(epsilon=5, delta=1e-5, clip_norm=10),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{type(estimator).__name__}-{check.func.__name__}-{number}")
        for one in ESTIMATORS
        for number, (estimator, check) in enumerate(estimator_checks_generator(one))
        if check.func.__name__ != "check_array_api_input"  # only where SciPy runs in an experimental mode
    ],
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


# The vector that is released.

sizes = st.integers(1, 6)
numbers = st.floats(-1, 1, allow_subnormal=False)


@given(st.data(), sizes)
@settings(max_examples=50, deadline=None)
def test_packing_keeps_lengths_and_turns_back(data, size):
    half = data.draw(arrays(float, (size, size), elements=numbers))
    matrix = half + half.T
    vector = pack(matrix)
    assert len(vector) == entries(size)
    assert np.linalg.norm(vector) == pytest.approx(np.linalg.norm(matrix), rel=1e-12)
    np.testing.assert_allclose(unpack(vector), matrix, rtol=1e-14, atol=1e-300)


@pytest.mark.slow
@given(st.data(), sizes, st.booleans(), st.booleans(), st.sampled_from(Neighbours), st.floats(0.1, 10))
@settings(max_examples=150, deadline=None)
def test_no_neighbour_is_farther_than_the_sensitivity(data, size, center, clipped, relation, clip):
    base = data.draw(arrays(float, (3, size), elements=st.floats(-20, 20)))
    rows = data.draw(arrays(float, (2, size), elements=st.floats(-20, 20)))
    bound = RowBound.of(size, clip_norm=clip, bounds=data.draw(st.sampled_from([None, (-3, 1)])), center=center)
    layout = Layout(size, bound.norm, relation, center, clipped)
    first = np.vstack([base, rows[:1]])
    second = base if relation is Neighbours.ADD_REMOVE else np.vstack([base, rows[1:]])
    change = layout.pack(moments(first, bound)) - layout.pack(moments(second, bound))
    assert np.linalg.norm(change) <= layout.sensitivity * (1 + 1e-9)
    assert np.abs(change).sum() <= layout.l1_sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("relation", Neighbours)
def test_the_query_states_a_sensitivity_that_is_nearly_reached(relation):
    query = RowBound.of(2, clip_norm=50).query(["a", "b"])
    rows = [np.array([[60.0, 0.0]]), np.array([[0.0, 50.0]])]
    first, second = (query.answer(row).value for row in rows)
    change = first - (second if relation is Neighbours.REPLACE else 0.0)
    assert 0.99 * query.sensitivity(relation) < np.linalg.norm(change) <= query.sensitivity(relation)
    assert np.abs(change).sum() <= query.l1_sensitivity(relation)
    assert query.to_dict()["norm"] == 50.0


@pytest.mark.parametrize("center", [False, True])
def test_the_sensitivity_is_reached(center):
    bound = RowBound.of(4, clip_norm=2.0)
    row = np.array([[2.0, 0, 0, 0]])
    joined = Layout(4, 2.0, center=center)
    change = joined.pack(moments(np.vstack([row, row]), bound)) - joined.pack(moments(row, bound))
    assert np.linalg.norm(change) == pytest.approx(joined.sensitivity, rel=1e-9)
    replaced = Layout(4, 2.0, Neighbours.REPLACE, center=center)
    angle = np.arccos(-0.16 if center else 0.0)  # cos = -a^2/2
    other = 2.0 * np.array([[np.cos(angle), np.sin(angle), 0, 0]])
    change = replaced.pack(moments(row, bound)) - replaced.pack(moments(other, bound))
    assert np.linalg.norm(change) == pytest.approx(replaced.sensitivity, rel=1e-5)


def test_equal_entries_reach_the_l1_sensitivity():
    layout, bound = Layout(9, 3.0, center=False), RowBound.of(9, clip_norm=3)
    change = layout.pack(moments(np.ones((1, 9)), bound)) - layout.pack(moments(np.zeros((0, 9)), bound))
    assert np.abs(change).sum() == pytest.approx(layout.l1_sensitivity, rel=1e-9)


def one_row(row, bound):
    found = moments(np.array([row]), bound)
    return found.sums, found.clipped


def test_midpoint_bounds_reach_their_norm_and_no_row_exceeds_it():
    bound = RowBound.of(3, bounds=([0, -1, 5], [2, 1, 5]), center=True)
    assert bound.norm == pytest.approx(2**0.5)
    for row, length, changed in (([9.0, 9, 9], 2**0.5, 1), ([1, 0, 5], 0.0, 0), ([0, -1, 5], 2**0.5, 0)):
        kept, clipped = one_row(row, bound)
        assert (np.linalg.norm(kept), clipped) == (pytest.approx(length), changed)


@given(st.floats(1e-3, 1e3), st.floats(-1e300, 1e300) | st.floats(-1e3, 1e3))
def test_huge_rows_are_clipped_without_overflow(clip, entry):
    kept, changed = one_row([entry, entry], RowBound.of(2, clip_norm=clip))
    assert np.linalg.norm(kept) <= clip * (1 + 1e-12)
    assert changed == (2**0.5 * abs(entry) > clip * (1 + 1e-9)) or abs(2**0.5 * abs(entry) / clip - 1) < 2e-5
    assert np.linalg.norm(kept) >= min(2**0.5 * abs(entry), clip) - 2e-5 * clip  # two entries, a step of 2^-17 each


@pytest.mark.slow
@given(st.data(), st.floats(0.1, 10), st.sampled_from(["norm", "box", "both"]))
@settings(max_examples=150, deadline=None)
def test_sums_are_those_of_the_clipped_rows(data, clip, limits):
    rows = kept = data.draw(arrays(float, (7, 3), elements=st.floats(-20, 20)))
    norm = None if limits == "box" else clip
    box = None if limits == "norm" else ([-clip, 0, 1], [clip, 3, 1 + clip])
    bound = RowBound.of(3, clip_norm=norm, bounds=box, center=True)
    if box is not None:
        kept = np.clip(rows, bound.low, bound.high) - bound.shift
    if norm is not None:
        assert bound.norm <= clip
        kept = kept * np.minimum(1.0, clip / np.maximum(np.linalg.norm(kept, axis=1), 1e-300))[:, None]
    found = moments(rows, bound)
    step = 1e-5 * max(clip, 3.0)  # entries are rounded to 2^-18 of the bound
    np.testing.assert_allclose(found.gram, kept.T @ kept, atol=7 * 3 * step * bound.norm)
    np.testing.assert_allclose(found.sums, kept.sum(axis=0), atol=7 * step)
    assert found.count == 7


# Noise: accept the true scale, reject two thirds and three halves of it.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("least-noise", {}),
        ("analytic-gaussian", {}),
        ("laplace", {}),
        ("r1smg", {}),
        ("mod-sulq", {"neighbours": "replace"}),
        ("mvg", {"neighbours": "replace"}),
        ("wishart", {"neighbours": "replace"}),
    ],
)
@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
def test_the_noise_of_the_covariance_has_the_certified_size(mechanism, options):
    table, rng = np.eye(4)[[0, 1, 2, 3] * 5], np.random.default_rng(7)
    exact = table.T @ table / 20
    squared = []
    for _ in range(600):
        fitted = PrivateCovariance(
            epsilon=1, delta=1e-3, clip_norm=1, center=False, mechanism=mechanism, random_state=rng, **options
        ).fit(table)
        # Back to what was released: the sum of squares over the packed entries of n C.
        noise = (fitted.covariance_ * fitted.n_samples_ - 20 * exact) / (
            20 if mechanism in ("mod-sulq", "wishart") else 1
        )
        squared.append(np.sum(pack(noise, 1.0 if mechanism == "mod-sulq" else 2**0.5) ** 2))
    described = fitted.certificate_.mechanism
    expected = described.expected_loss * (
        10 / 11 if described.dimension == 11 else 10 / 16 if mechanism == "mvg" else 1
    )
    ratio = np.mean(squared) / expected
    assert (2 / 3) ** 2 + 0.2 < ratio < (3 / 2) ** 2 - 0.6  # scales between 0.8 and 1.28


@pytest.mark.slow
def test_the_count_and_the_mean_have_their_noise():
    table, rng = np.full((1000, 2), 0.5), np.random.default_rng(1)
    fits = [PrivateCovariance(epsilon=1, delta=1e-5, clip_norm=1, random_state=rng).fit(table) for _ in range(500)]
    deviation = fits[0].certificate_.mechanism.standard_deviation
    counts = np.array([fit.n_samples_ for fit in fits])
    assert abs(counts.mean() - 1000) < 6 * counts.std() / 500**0.5
    assert 0.8 < counts.std() / (deviation / 0.1) < 1.25
    means = np.array([fit.mean_ * fit.n_samples_ for fit in fits])[:, 0]
    assert 0.8 < means.std() / (deviation / (0.4 * 2**0.5)) < 1.25


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["least-noise", "l2", "laplace"])
def test_without_delta_the_noise_is_for_pure_epsilon(mechanism):
    table, rng = np.eye(4)[[0, 1, 2, 3] * 5], np.random.default_rng(3)
    options = {"epsilon": 0.7, "clip_norm": 1, "center": False, "mechanism": mechanism, "random_state": rng}
    squared = []
    for _ in range(400):
        fitted = PrivateCovariance(**options).fit(table)
        squared.append(np.sum(pack(fitted.covariance_ * fitted.n_samples_ - 5 * np.eye(4)) ** 2))
    described, guarantee = fitted.certificate_.mechanism, fitted.certificate_.guarantee
    assert guarantee.epsilon == 0.7
    assert guarantee.delta < 1e-25  # of the random words
    assert described.delta(0.7).upper == 0.0
    assert described.delta(0.69).lower > 0.0  # and no noise is wasted
    assert 0.65 < np.mean(squared) / (described.expected_loss * 10 / 11) < 1.6


# The non-private limit.


def test_at_huge_epsilon_it_is_scikit_learns_pca(digits):
    table, labels = digits
    public = PCA(20).fit(table)
    private = PrivatePCA(20, clip_norm=100, **HUGE).fit(table)
    np.testing.assert_allclose(private.explained_variance_, public.explained_variance_, rtol=1e-4)
    np.testing.assert_allclose(private.mean_, table.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(np.abs(np.sum(private.components_ * public.components_, axis=1)), np.ones(20), rtol=1e-4)
    np.testing.assert_allclose(private.explained_variance_ratio_, public.explained_variance_ratio_, rtol=1e-4)
    np.testing.assert_allclose(private.singular_values_, public.singular_values_, rtol=1e-4)
    scores = [
        LinearSVC(C=1e-3, random_state=0)
        .fit(pca.transform(table[:1000]), labels[:1000])
        .score(pca.transform(table[1000:]), labels[1000:])
        for pca in (public, private)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=0.005)
    deviations = np.abs(
        public.explained_variance_ - np.diag(private.components_ @ np.cov(table.T) @ private.components_.T)
    )
    assert deviations.sum() < 1e-4 * public.explained_variance_.sum()
    assert private.certificate_.guarantee.delta > 0.99  # no cipher can promise anything here, and it says so
    back = private.inverse_transform(private.transform(table))
    np.testing.assert_allclose(back, public.inverse_transform(public.transform(table)), atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", ["least-noise", "analytic-gaussian", "mod-sulq", "wishart", "mvg", "ppca", "ppca-one-by-one"]
)
@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
def test_more_epsilon_explains_more(digits, mechanism):
    table = digits[0]
    exact = np.cov(table.T)
    explained = []
    for epsilon in (0.05, 1.0, 200.0):
        values = []
        for seed in range(3):
            fitted = PrivatePCA(
                1,
                epsilon=epsilon,
                delta=1e-6,
                clip_norm=80,
                mechanism=mechanism,
                random_state=seed,
                center=False,
                neighbours="replace",
            ).fit(table - table.mean(axis=0))
            values.append(float(np.trace(fitted.components_ @ exact @ fitted.components_.T)))
        explained.append(np.mean(values))
    assert explained[0] < explained[1] + 1.0
    assert explained[1] <= explained[2] + 1.0
    assert explained[0] < 0.6 * explained[2]


# Sources of rows.


@pytest.mark.slow
def test_every_source_gives_the_same_components(digits, tmp_path):
    import pandas
    import polars
    import pyarrow.csv
    import pyarrow.parquet

    table = digits[0]
    frame = pandas.DataFrame(table, columns=[f"pixel{i}" for i in range(64)])
    arrow = pyarrow.Table.from_pandas(frame)
    pyarrow.parquet.write_table(arrow, tmp_path / "digits.parquet", row_group_size=100)
    pyarrow.csv.write_csv(arrow, tmp_path / "digits.csv")
    np.save(tmp_path / "digits.npy", table)
    options = {"epsilon": 1, "delta": 1e-6, "clip_norm": 60, "random_state": 3}
    expected = PrivatePCA(5, **options).fit(table).components_
    files = [tmp_path / f"digits.{kind}" for kind in ("parquet", "csv", "npy")]
    for source in (table.tolist(), frame, polars.DataFrame(frame), arrow, arrow.to_reader(), str(files[0]), *files):
        np.testing.assert_array_equal(PrivatePCA(5, **options).fit(source).components_, expected)
    assert PrivatePCA(5, **options).fit(files[2]).n_features_in_ == 64
    assert PrivatePCA(5, **options).fit(files[0]).feature_names_in_[0] == "pixel0"
    for source, engine in ((files[0], "dask"), (table, "duckdb"), (files[1], "dask")):
        np.testing.assert_array_equal(PrivatePCA(5, engine=engine, **options).fit(source).components_, expected)


def test_bounds_by_column_are_the_same_from_a_file(digits, tmp_path):
    import pyarrow.parquet

    table = digits[0][:, :6]
    names = list("abcdef")
    pyarrow.parquet.write_table(pyarrow.table(dict(zip(names, table.T, strict=True))), tmp_path / "some.parquet")
    options = {"epsilon": 1, "delta": 1e-6, "random_state": 0}
    limits = (np.arange(4), np.arange(4) + 9.0)
    whole = PrivateCovariance(bounds=limits, **options).fit(table[:, [2, 3, 5, 4]])
    chosen = PrivateCovariance(bounds=limits, columns=["c", "d", "f", "e"], **options).fit(tmp_path / "some.parquet")
    np.testing.assert_array_equal(whole.covariance_, chosen.covariance_)
    assert chosen.feature_names_in_.tolist() == ["c", "d", "f", "e"]


def test_columns_of_words_and_missing_values_are_refused(tmp_path):
    import pandas
    import pyarrow.parquet

    options = {"epsilon": 1, "delta": 1e-6, "clip_norm": 1}
    words = pyarrow.table({"a": [1.0, 2.0], "b": ["x", "y"]})
    with pytest.raises(ln.InvalidInput, match="column 'b' holds text, not numbers"):
        PrivatePCA(1, **options).fit(words)
    assert PrivatePCA(1, columns=["a"], **options).fit(words).n_features_in_ == 1
    assert PrivatePCA(1, columns=["a"], **options).fit(words.to_pandas()).n_features_in_ == 1
    for bad in (None, float("nan"), float("inf")):
        table = pyarrow.table({"a": [1.0, 2.0], "b": [1.0, bad]})
        pyarrow.parquet.write_table(table, tmp_path / "bad.parquet")
        for source in (table, tmp_path / "bad.parquet"):
            with pytest.raises(ln.InvalidInput, match="column='b' holds NULL, NaN or infinity: drop or repair"):
                PrivatePCA(1, **options).fit(source)
    with pytest.raises(ln.InvalidInput, match="column='z' is not in the data: choose among 'a', 'b'"):
        PrivatePCA(1, columns=["z"], **options).fit(pandas.DataFrame({"a": [1.0], "b": [2.0]}))
    with pytest.raises(ln.InvalidInput, match="column='z' is not in the data"):
        PrivatePCA(1, columns=["z"], **options).fit(words)
    with pytest.raises(ln.InvalidInput, match="an array has no names"):
        PrivatePCA(1, columns=["z"], **options).fit(np.eye(3))
    with pytest.raises(ln.InvalidInput, match="engine='abacus'"):
        PrivatePCA(1, engine="abacus", **options).fit(np.eye(3))


def test_blocks_add_up(digits):
    bound = RowBound.of(64, clip_norm=55)
    many = np.tile(digits[0], (12, 1))  # more than a block
    one, twelve = moments(digits[0], bound), moments(many, bound)
    assert (one.count, one.clipped) == (1797, np.sum(np.linalg.norm(digits[0], axis=1) > 55))
    assert (twelve.count, twelve.clipped) == (12 * one.count, 12 * one.clipped)
    np.testing.assert_array_equal(twelve.gram, 12 * one.gram)
    np.testing.assert_array_equal(twelve.sums, 12 * one.sums)


# In scikit-learn's machinery.


@pytest.mark.slow
def test_pipeline_and_grid_search(digits):
    table, labels = digits
    pipeline = make_pipeline(
        PrivatePCA(10, epsilon=50, delta=1e-6, clip_norm=80, random_state=0), LinearSVC(C=1e-3, random_state=0)
    )
    search = GridSearchCV(pipeline, {"privatepca__n_components": [2, 20]}, cv=2).fit(table[:900], labels[:900])
    assert search.best_params_ == {"privatepca__n_components": 20}
    assert search.score(table[900:], labels[900:]) > 0.8


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.open(tmp_path / "rows.ledger", epsilon=2, delta=1e-5)


def test_every_fit_is_paid_for_and_clones_share_the_ledger(ledger):
    options = {"epsilon": 0.5, "delta": 1e-6, "clip_norm": 1, "ledger": ledger}
    PrivateCovariance(**options).fit(np.eye(3))
    pca = PrivatePCA(1, **options)
    pca.fit(np.eye(3))
    copied = clone(pca)
    assert copied.ledger is not ledger
    copied.fit(np.eye(3))
    pickle.loads(pickle.dumps(pca)).fit(np.eye(3))
    assert ledger.count() == 4
    make_pipeline(pca, LinearSVC()).fit(np.eye(3), [0, 1, 1])
    assert ledger.count() == 5
    assert ledger.records()[-1].composition.parts[0].mechanism == pca.certificate_.mechanism


def test_an_empty_ledger_stops_a_fit_before_noise(ledger, monkeypatch):
    fit = PrivatePCA(1, epsilon=3, delta=1e-6, clip_norm=1, ledger=ledger)
    with pytest.raises(ln.BudgetExceeded):
        fit.fit(np.eye(3))
    assert not hasattr(fit, "components_")
    assert ledger.count() == 0
    with pytest.raises(ln.InvalidInput, match="ledger is given, but mechanism='ppca'"):
        PrivatePCA(1, epsilon=1, clip_norm=1, ledger=ledger, mechanism="ppca", center=False).fit(np.eye(3))
    with pytest.raises(ln.InvalidInput, match="do not go together"):
        PrivatePCA(1, epsilon=1, delta=1e-6, clip_norm=1, ledger=ledger, random_state=0).fit(np.eye(3))
    with pytest.raises(ln.InvalidInput, match="n_components=4 exceeds"):
        PrivatePCA(4, epsilon=1, delta=1e-6, clip_norm=1, ledger=ledger).fit(np.eye(3))
    assert ledger.count() == 0


@pytest.mark.slow
def test_a_search_pays_for_every_fit(ledger, digits):
    table, labels = digits[0][:300], digits[1][:300]
    pipeline = make_pipeline(
        PrivatePCA(2, epsilon=0.1, delta=1e-7, clip_norm=80, ledger=ledger), LinearSVC(C=1e-3, random_state=0)
    )
    GridSearchCV(pipeline, {"privatepca__n_components": [1, 2, 3]}, cv=2).fit(table, labels)
    assert ledger.count() == 3 * 2 + 1  # m k and the last one
    spent = ledger.spent().upper
    assert 0.1 < spent < 0.7


def test_the_certificate_is_the_releases_own():
    fitted = PrivatePCA(2, epsilon=0.5, delta=1e-7, bounds=(0, 1)).fit(np.eye(3))
    stored = json.loads(fitted.certificate_.to_json())
    assert stored["private"] is True
    assert stored["guarantee"]["delta"] <= 1e-7
    assert stored["mechanism"]["neighbours"] == "add/remove"
    seeded = PrivatePCA(2, epsilon=0.5, delta=1e-7, bounds=(0, 1), random_state=np.random.RandomState(0)).fit(np.eye(3))
    assert seeded.certificate_.private is False
    published = PrivateCovariance(epsilon=1, clip_norm=1, mechanism="wishart", center=False, neighbours="replace")
    with pytest.warns(ln.ClaimWarning, match="does not hold"):
        assert published.fit(np.eye(3)).certificate_.claim_holds is False


def test_a_builder_of_ones_own_must_meet_the_request():
    options = {"epsilon": 1, "delta": 1e-6, "clip_norm": 1}
    fitted = PrivateCovariance(mechanism=lambda r: ln.radial(**r.standard(), k=3, p=1), **options).fit(np.eye(3))
    assert fitted.certificate_.mechanism.name.startswith("radial")
    with pytest.raises(ln.InvalidInput, match="build it for shape"):
        PrivateCovariance(
            mechanism=lambda r: ln.analytic_gaussian(**{**r.standard(), "sensitivity": 0.1}), **options
        ).fit(np.eye(3))


# Bad input: one sentence, before anything is drawn or spent; the data never decide whether there is an error.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 5}, "n_components=5 exceeds the 3 columns"),
        ({"n_components": 0}, "n_components=0 must be at least 1"),
        ({"n_components": 0.5}, "n_components=0.5 is not a whole number"),
        ({"epsilon": None}, "epsilon=None: pass"),
        ({"epsilon": -1}, "epsilon=-1 must be above 0"),
        ({"delta": 1.0}, "delta=1.0 must lie strictly between 0 and 1"),
        ({"delta": None, "mechanism": "r1smg"}, "delta=None, but this mechanism needs it"),
        ({"clip_norm": None}, "clip_norm=None and bounds=None: pass one of them"),
        ({"clip_norm": None, "bounds": (1, 0)}, "run from high to low"),
        ({"clip_norm": None, "bounds": ([0, 0], [1, 1])}, "fits no table of 3 columns"),
        ({"clip_norm": None, "bounds": (0, np.nan)}, "is not finite"),
        ({"clip_norm": None, "bounds": 3}, "is not a pair"),
        ({"clip_norm": None, "bounds": (2, 2)}, "leave a single point"),
        ({"clip_norm": float("nan")}, "clip_norm=nan is not finite"),
        ({"mechanism": "magic"}, "mechanism='magic' is not known"),
        (
            {"mechanism": "mod-sulq", "center": True},
            'pass center=False, count_clipped=False and neighbours="replace"',
        ),
        ({"mechanism": "wishart", "neighbours": "add/remove"}, 'neighbours="replace"'),
        ({"mechanism": "ppca", "center": True}, "pass center=False"),
        ({"mechanism": "discrete-gaussian"}, "integer=False"),
        ({"neighbours": "friends"}, "neighbours='friends' is not known"),
        ({"random_state": "lucky"}, "random_state='lucky' is not a seed"),
    ],
)
def test_bad_arguments_have_one_clear_sentence(options, message, monkeypatch):
    monkeypatch.setattr(Mechanism, "release", lambda *_: pytest.fail("noise was drawn"))
    arguments = {"epsilon": 1, "delta": 1e-6, "clip_norm": 1, **options}
    with pytest.raises(ln.InvalidInput, match="(?s)" + message.replace("(", r"\(").replace(")", r"\)")):
        PrivatePCA(**arguments).fit(np.eye(3))


@pytest.mark.parametrize("mechanism", ["mod-sulq", "wishart", "mvg", "mgm", "ppca", "ppca-one-by-one"])
@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
def test_special_mechanisms_work_with_the_plain_call(mechanism):
    rows = np.random.default_rng(0).normal(size=(400, 3)) * [0.5, 0.2, 0.1]
    plain = {"epsilon": 1e4, "delta": 1e-6, "clip_norm": 2.0, "mechanism": mechanism}
    private = PrivatePCA(n_components=1, random_state=0, **plain).fit(rows)
    spelt_out = PrivatePCA(
        n_components=1,
        random_state=0,
        center=False,
        neighbours="add/remove" if mechanism.startswith("ppca") else "replace",
        **plain,
    ).fit(rows)
    np.testing.assert_array_equal(private.components_, spelt_out.components_)
    assert private.certificate_.guarantee.neighbours is spelt_out.certificate_.guarantee.neighbours
    assert abs(private.components_[0, 0]) > 0.99


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_entries_are_refused(bad, tmp_path):
    table = np.eye(3)
    table[1, 2] = bad
    options = {"epsilon": 1, "delta": 1e-6, "clip_norm": 1}
    with pytest.raises(
        ln.InvalidInput, match=r"^X has missing \(NaN\) or infinite \(inf\) entries: fill or drop them[^\n]*$"
    ):
        PrivatePCA(1, **options).fit(table)
    np.save(tmp_path / "bad.npy", table)
    with pytest.raises(ln.InvalidInput, match="column='x2' holds NULL, NaN or infinity"):
        PrivatePCA(1, **options).fit(tmp_path / "bad.npy")
    with pytest.raises(ln.InvalidInput, match="does not exist"):
        PrivatePCA(1, **options).fit(tmp_path / "none.parquet")


def test_rows_over_the_limits_are_clipped_and_counted_without_a_word():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((4000, 3))
    table[:1000] *= 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ln.ClaimWarning)  # of the huge epsilon, whatever the rows are
        fitted = PrivateCovariance(clip_norm=5, count_clipped=True, **HUGE).fit(table)
        bounded = PrivateCovariance(bounds=(-1, 1), count_clipped=True, **HUGE).fit(table)
    assert fitted.clipped_rows_ == pytest.approx(np.sum(np.linalg.norm(table, axis=1) > 5), abs=0.5)
    assert np.trace(fitted.covariance_) < 25
    assert bounded.clipped_rows_ == pytest.approx(np.sum(np.abs(table).max(axis=1) > 1), abs=0.5)
    assert np.diag(bounded.covariance_).max() < 1.0 + 1e-3
    assert not hasattr(PrivateCovariance(clip_norm=5, **HUGE).fit(table), "clipped_rows_")


def test_constant_columns_and_single_rows_are_ordinary():
    table = np.column_stack([np.ones(50), np.arange(50.0)])
    fitted = PrivatePCA(2, clip_norm=100, **HUGE).fit(table)
    assert fitted.explained_variance_[1] == pytest.approx(0.0, abs=0.06)  # ten deviations of the noise
    assert abs(fitted.components_[0, 1]) == pytest.approx(1.0, abs=1e-4)
    one = PrivatePCA(1, epsilon=1, delta=1e-6, clip_norm=1).fit([[0.5, 0.5]])
    assert np.isfinite(one.components_).all()
    assert np.isfinite(one.explained_variance_ratio_).all()
