"""Private linear regression: noise, coverage, limits, sources, bad input."""

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import estimator_checks_generator

import lessnoise as ln
from lessnoise import PrivateLinearRegression
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.pca.layout import COUNT_WEIGHT, MEAN_WEIGHT
from lessnoise.pca.scaled_rows import target_weight

LIMITS = {"bounds": ([0, -100], [1, 100]), "target_bounds": (-10, 10)}
BUDGET = {"epsilon": 1, "delta": 1e-6}
TRUE = np.array([2.0, -0.03])


def table(rng, rows):
    x = rng.beta(2, 2, size=(rows, 2)) * [1, 200] + [0, -100]
    return x, x @ TRUE + 1.0 + rng.uniform(-1, 1, rows)


@pytest.fixture(scope="module")
def rows():
    return table(np.random.default_rng(0), 5000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{check.func.__name__}-{number}")
        for number, (estimator, check) in enumerate(
            estimator_checks_generator(
                PrivateLinearRegression(epsilon=5, delta=1e-5, bounds=(-10, 10), target_bounds=(-100, 100))
            )
        )
        if check.func.__name__ != "check_array_api_input"  # only where SciPy runs in an experimental mode
    ],
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


# The line.


@pytest.mark.parametrize("neighbours", ["add/remove", "replace"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
def test_at_huge_epsilon_it_is_scikit_learns_regression(rows, intercept, neighbours):
    public = LinearRegression(fit_intercept=intercept).fit(*rows)
    options = {"fit_intercept": intercept, "neighbours": neighbours, **LIMITS}
    private = PrivateLinearRegression(epsilon=1e9, delta=1e-6, **options).fit(*rows)
    np.testing.assert_allclose(private.coef_, public.coef_, rtol=1e-3)
    assert private.intercept_ == pytest.approx(public.intercept_, abs=1e-3)
    np.testing.assert_allclose(private.predict(rows[0]), public.predict(rows[0]), atol=5e-3)
    assert private.score(*rows) == pytest.approx(public.score(*rows), abs=1e-5)
    residuals = rows[1] - public.predict(rows[0])
    assert private.residual_deviation_ == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-2)
    assert private.ridge_ == 0.0
    assert private.certificate_.guarantee.delta > 0.99  # no cipher can promise anything here, and it says so


@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
def test_a_norm_alone_bounds_rows_in_their_own_units():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(3000, 2))
    y = x @ [0.5, -0.2] + 0.1 + rng.normal(size=3000) / 20
    fitted = PrivateLinearRegression(epsilon=1e9, delta=1e-6, clip_norm=3).fit(x, y)
    np.testing.assert_allclose(fitted.coef_, LinearRegression().fit(x, y).coef_, atol=1e-3)
    both = PrivateLinearRegression(epsilon=1e9, delta=1e-6, clip_norm=3, bounds=(-1, 1), target_bounds=(-2, 2))
    np.testing.assert_allclose(both.fit(x, y).coef_, fitted.coef_, atol=1e-3)


def test_units_of_the_columns_do_not_matter(rows):
    x, y = rows
    first = PrivateLinearRegression(random_state=1, **BUDGET, **LIMITS).fit(x, y)
    other = {"bounds": ([0, -0.4], [1024, 0.4]), "target_bounds": (-1000, 1000)}
    second = PrivateLinearRegression(random_state=1, **BUDGET, **other).fit(x * [1024, 1 / 250], 100 * y)
    np.testing.assert_allclose(second.coef_ / 100 * [1024, 1 / 250], first.coef_, rtol=1e-6)
    assert second.intercept_ / 100 == pytest.approx(first.intercept_, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"neighbours": "replace"}, {"delta": None}, {"mechanism": "analytic-gaussian"}, {"fit_intercept": False}],
    ids=str,
)
def test_the_noise_of_the_line_has_the_size_that_is_said(options):
    """Accept the true scale, reject two thirds and three halves of it: on one table only the noise varies."""
    rng, many = np.random.default_rng(3), 250
    x, y = table(rng, 20000)
    public = LinearRegression(fit_intercept=options.get("fit_intercept", True)).fit(x, y)
    expected = np.append(public.coef_, public.intercept_)
    found, said = [], []
    for _ in range(many):
        fitted = PrivateLinearRegression(random_state=rng, **{**BUDGET, **LIMITS, **options}).fit(x, y)
        found.append(np.append(fitted.coef_, fitted.intercept_) - expected)
        said.append(np.sqrt(fitted._noise_variance))
    used = slice(0, 3 if options.get("fit_intercept", True) else 2)
    ratio = (np.std(found, axis=0)[used]) / np.median(said, axis=0)[used]
    assert ((ratio > 0.8) & (ratio < 1.25)).all()
    assert (np.abs(np.mean(found, axis=0)[used]) < 6 * np.std(found, axis=0)[used] / many**0.5).all()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"size": 3000, "neighbours": "replace", "delta": None}, {"size": 1000}], ids=str)
def test_intervals_cover_noise_and_sampling(options):
    rng, inside, within = np.random.default_rng(11), [], []
    options = dict(options)
    size = options.pop("size")
    for _ in range(300):
        fitted = PrivateLinearRegression(random_state=rng, **{**BUDGET, **LIMITS, **options}).fit(*table(rng, size))
        found = fitted.confidence_intervals(level=0.95)
        inside.append((found.coef[:, 0] <= TRUE) & (found.coef[:, 1] >= TRUE))
        within.append(found.intercept[0] <= 1.0 <= found.intercept[1])
    assert 0.93 <= np.mean(inside) <= 0.99
    assert 0.92 <= np.mean(within) <= 0.99


def test_intervals_widen_with_their_level_and_shrink_with_epsilon(rows):
    fitted = PrivateLinearRegression(random_state=0, **BUDGET, **LIMITS).fit(*rows)
    better = PrivateLinearRegression(random_state=0, epsilon=8, delta=1e-6, **LIMITS).fit(*rows)
    wide, narrow = (np.ptp(fitted.confidence_intervals(level).coef, axis=1) for level in (0.99, 0.5))
    assert (wide > 2 * narrow).all()
    assert (np.ptp(better.confidence_intervals(0.5).coef, axis=1) < 0.5 * narrow).all()
    level = fitted.confidence_intervals()
    assert level.level == 0.95
    np.testing.assert_allclose(level.coef.mean(axis=1), fitted.coef_)
    for bad in (0, 1, 95):
        with pytest.raises(ln.InvalidInput, match=f"level={bad} must lie strictly between 0 and 1"):
            fitted.confidence_intervals(bad)


@pytest.mark.parametrize("neighbours", ["add/remove", "replace"])
@pytest.mark.parametrize("count", [1, 2, 30])
def test_few_rows_give_a_line_and_no_knowledge(rows, count, neighbours):
    x, y = rows
    line = PrivateLinearRegression(neighbours=neighbours, random_state=count, **BUDGET, **LIMITS)
    fitted = line.fit(x[:count], y[:count])
    assert np.isfinite(fitted.predict(x)).all()
    assert fitted.ridge_ > 0.0
    assert np.isinf(fitted.confidence_intervals().coef).all()
    assert np.isinf(fitted.confidence_intervals().intercept).all()


def test_collinear_features_are_not_known(rows):
    x, y = rows
    limits = {"bounds": (-100, 100), "target_bounds": (-10, 10)}
    fitted = PrivateLinearRegression(random_state=0, **BUDGET, **limits).fit(x[:, [1, 1]], y)
    assert fitted.ridge_ > 0.0
    assert np.isinf(fitted.confidence_intervals().coef).all()
    assert np.abs(fitted.predict(x[:, [1, 1]]) - y).mean() < 5.0


def test_clipped_rows_are_counted_without_a_word(rows):
    x, y = rows
    wild = x.copy()
    wild[:1000] *= 1e300
    fitted = PrivateLinearRegression(count_clipped=True, epsilon=5, delta=1e-6, **LIMITS).fit(wild, y)
    assert fitted.clipped_rows_ == pytest.approx(1000, abs=300)
    assert not hasattr(PrivateLinearRegression(**BUDGET, **LIMITS).fit(x, y), "clipped_rows_")


# Sources of rows.


@pytest.mark.slow
def test_every_source_gives_the_same_line(rows, tmp_path):
    import pandas
    import polars
    import pyarrow.csv
    import pyarrow.parquet

    x, y = rows
    frame = pandas.DataFrame({"a": x[:, 0], "price": y, "b": x[:, 1], "word": "x"})
    arrow = pyarrow.Table.from_pandas(frame)
    pyarrow.parquet.write_table(arrow, tmp_path / "rows.parquet", row_group_size=1000)
    pyarrow.csv.write_csv(arrow, tmp_path / "rows.csv")
    options = {"random_state": 3, **BUDGET, **LIMITS}
    expected = PrivateLinearRegression(**options).fit(x, y).coef_
    named = {"columns": ["a", "b"], "target": "price", **options}
    sources = (frame, polars.DataFrame(frame), arrow, tmp_path / "rows.parquet", str(tmp_path / "rows.csv"))
    for source in sources:
        fitted = PrivateLinearRegression(**named).fit(source)
        np.testing.assert_array_equal(fitted.coef_, expected)
        if not isinstance(source, polars.DataFrame):  # scikit-learn asks it for names by a protocol of old
            assert fitted.feature_names_in_.tolist() == ["a", "b"]
    for engine in ("dask", "duckdb"):
        fitted = PrivateLinearRegression(engine=engine, **named).fit(tmp_path / "rows.parquet")
        np.testing.assert_array_equal(fitted.coef_, expected)
    numbers = frame[["a", "price", "b"]]
    np.testing.assert_array_equal(PrivateLinearRegression(target="price", **options).fit(numbers).coef_, expected)
    np.testing.assert_array_equal(
        PrivateLinearRegression(**options).fit(numbers[["a", "b"]], numbers["price"]).coef_, expected
    )
    for bad in (None, float("nan"), float("inf")):
        broken = pyarrow.table({"a": [0.1, 0.2], "b": [1.0, 2.0], "price": [1.0, bad]})
        with pytest.raises(ln.InvalidInput, match="column='price' holds NULL, NaN or infinity"):
            PrivateLinearRegression(**named).fit(broken)
    for source in (frame, arrow, tmp_path / "rows.parquet"):
        for columns in (None, ["a", "b"]):
            with pytest.raises(ln.InvalidInput, match="column='cost' is not in the data"):
                PrivateLinearRegression(target="cost", columns=columns, **options).fit(source)
    with pytest.raises(ln.InvalidInput, match="target='price' is the only column"):
        PrivateLinearRegression(target="price", **options).fit(arrow.select(["price"]))
    with pytest.raises(ln.InvalidInput, match="target='a' is among columns too"):
        PrivateLinearRegression(target="a", columns=["a"], **options).fit(arrow)
    with pytest.raises(ln.InvalidInput, match="pass target= with the name of its column"):
        PrivateLinearRegression(**options).fit(arrow, y)


# In scikit-learn's machinery, and paid for.


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.open(tmp_path / "rows.ledger", epsilon=2, delta=1e-5)


def test_every_fit_is_paid_for_and_clones_share_the_ledger(rows, ledger):
    line = PrivateLinearRegression(epsilon=0.2, delta=1e-6, ledger=ledger, **LIMITS).fit(*rows)
    clone(line).fit(*rows)
    pickle.loads(pickle.dumps(line)).fit(*rows)
    assert ledger.count() == 3
    assert ledger.records()[-1].composition.parts[0].mechanism == line.certificate_.mechanism
    cross_val_score(line, *rows, cv=2)
    assert ledger.count() == 5


def test_nothing_is_spent_on_a_fit_that_is_refused(rows, ledger):
    fit = PrivateLinearRegression(epsilon=3, delta=1e-6, ledger=ledger, **LIMITS)
    with pytest.raises(ln.BudgetExceeded):
        fit.fit(*rows)
    assert not hasattr(fit, "coef_")
    with pytest.raises(ln.InvalidInput, match="do not go together"):
        PrivateLinearRegression(ledger=ledger, random_state=0, **BUDGET, **LIMITS).fit(*rows)
    assert ledger.count() == 0


def test_a_line_that_cannot_be_finished_keeps_its_release(rows, ledger, monkeypatch):
    def fails(*_):
        raise np.linalg.LinAlgError("no convergence")

    monkeypatch.setattr("lessnoise.pca.regression.solve", fails)
    with pytest.raises(ln.PaidNotReleased, match="no convergence") as caught:
        PrivateLinearRegression(ledger=ledger, **BUDGET, **LIMITS).fit(*rows)
    assert caught.value.release.certificate.private
    assert ledger.count() == 1


def test_the_certificate_is_the_releases_own(rows):
    fitted = PrivateLinearRegression(epsilon=0.5, delta=1e-7, **LIMITS).fit(*rows)
    stored = json.loads(fitted.certificate_.to_json())
    assert stored["private"] is True
    assert stored["guarantee"]["delta"] <= 1e-7
    assert stored["mechanism"]["neighbours"] == "add/remove"
    assert fitted.guarantee_ == fitted.certificate_.guarantee
    used = fitted.certificate_.mechanism
    assert 0.9e-7 < used.delta(0.5).lower <= used.delta(0.5).upper <= 1e-7  # the promise is kept, and no noise wasted
    squared = 2 + target_weight(2) ** 2  # of a row in a corner of its bounds
    weights = 1 + MEAN_WEIGHT**2 + COUNT_WEIGHT**2
    assert used.sensitivity == pytest.approx(squared * weights**0.5, rel=1e-5)
    assert used.shape == (6 + 3 + 1,)  # half a matrix of three columns, their sums, and a count
    seeded = PrivateLinearRegression(random_state=0, **BUDGET, **LIMITS).fit(*rows)
    assert seeded.certificate_.private is False


# Bad input: one sentence, before anything is drawn or spent.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": None}, "epsilon=None: pass"),
        ({"epsilon": -1}, "epsilon=-1 must be above 0"),
        ({"delta": 1.0}, "delta=1.0 must lie strictly between 0 and 1"),
        ({"bounds": None, "target_bounds": None}, "pass both, each as (low, high), or clip_norm alone"),
        ({"bounds": None}, "bounds=None and target_bounds=(-10, 10): pass both"),
        ({"target_bounds": None, "clip_norm": 1}, "target_bounds=None: pass both"),
        ({"bounds": (1, 0)}, "bounds of column 0=(1, 0) run from high to low"),
        ({"target_bounds": (1, 0)}, "target_bounds of column 0=(1, 0) run from high to low"),
        ({"bounds": ([0, 0, 0], [1, 1, 1])}, "fits no table of 2 columns"),
        ({"target_bounds": ([0, 0], [1, 1])}, "target_bounds[0].shape=(2,) fits no table of 1 columns"),
        ({"bounds": ([0, 5], [1, 5])}, "bounds of column 1=(5, 5) leave a single point"),
        ({"target_bounds": (2, 2)}, "target_bounds=(2, 2) leave a single point"),
        ({"target_bounds": (0, np.nan)}, "is not finite"),
        ({"target_bounds": 3}, "target_bounds=3 is not a pair"),
        ({"clip_norm": -1}, "clip_norm=-1 must be above 0"),
        ({"mechanism": "wishart"}, "mechanism='wishart' releases no sums"),
        ({"mechanism": "magic"}, "mechanism='magic' is not known"),
        ({"neighbours": "friends"}, "neighbours='friends' is not known"),
        ({"random_state": "lucky"}, "random_state='lucky' is not a seed"),
        ({"target": "price"}, "target='price' and y are both given"),
        ({"engine": "abacus"}, "engine='abacus'"),
    ],
)
def test_bad_arguments_have_one_clear_sentence(rows, options, message, monkeypatch):
    monkeypatch.setattr(Mechanism, "release", lambda *_: pytest.fail("noise was drawn"))
    escaped = message.replace("(", r"\(").replace(")", r"\)").replace("[", r"\[")
    with pytest.raises(ln.InvalidInput, match=escaped):
        PrivateLinearRegression(**{**BUDGET, **LIMITS, **options}).fit(*rows)


def test_bad_rows_have_one_clear_sentence(rows, monkeypatch):
    monkeypatch.setattr(Mechanism, "release", lambda *_: pytest.fail("noise was drawn"))
    line, (x, y) = PrivateLinearRegression(**BUDGET, **LIMITS), rows
    for bad in (np.nan, np.inf):
        with pytest.raises(ln.InvalidInput, match=r"^y has missing \(NaN\) or infinite \(inf\) entries: fill or drop"):
            line.fit(x, np.append(y[:-1], bad))
        with pytest.raises(ln.InvalidInput, match=r"^X has missing \(NaN\) or infinite \(inf\) entries: fill or drop"):
            line.fit(np.full_like(x, bad), y)
    with pytest.raises(ln.InvalidInput, match=r"len\(y\)=4999 differs from the 5000 rows"):
        line.fit(x, y[:-1])
    with pytest.raises(ln.InvalidInput, match=r"y\.dtype=<U1 is not numeric"):
        line.fit(x, np.full(5000, "a"))
    with pytest.raises(ln.InvalidInput, match="requires y to be passed"):
        line.fit(x)
    with pytest.raises(ln.InvalidInput, match="an array has no names: pass y instead"):
        PrivateLinearRegression(target="price", **BUDGET, **LIMITS).fit(x)


# Beside diffprivlib.


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_line_is_nearer_than_diffprivlibs():
    models = pytest.importorskip("diffprivlib.models")
    rng = np.random.default_rng(2)
    x, y = table(rng, 20000)
    ours, pure, theirs = [], [], []
    for seed in range(25):
        for found, delta in ((ours, 1e-6), (pure, None)):
            line = PrivateLinearRegression(epsilon=1, delta=delta, random_state=seed, **LIMITS)
            found.append((line.fit(x, y).coef_ - TRUE) * [1, 200])
        peer = models.LinearRegression(epsilon=1, bounds_X=LIMITS["bounds"], bounds_y=(-10, 10), random_state=seed)
        theirs.append((peer.fit(x.copy(), y.copy()).coef_ - TRUE) * [1, 200])
    errors = [float(np.sqrt(np.mean(np.square(found)))) for found in (ours, pure, theirs)]
    assert max(errors[0], errors[1]) < 0.5 * errors[2]
