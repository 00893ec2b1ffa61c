"""Case study II: the measures, the parts, the tables, the command."""

import gzip
import json

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli import app
from lessnoise_paper.data import tables
from lessnoise_paper.data.tables import FeatureTable, feature_table
from lessnoise_paper.experiments.components import Bench, digits_study, eigenpairs, run_pca
from lessnoise_paper.experiments.components_pictures import FIGURES
from lessnoise_paper.experiments.components_result import PARTS, PcaStudy


@pytest.fixture(scope="module")
def small_table():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 3000)
    rows = np.clip(0.1 * rng.standard_normal((3000, 6)) + 0.5 * labels[:, None] * np.eye(6)[0], -1, 1)
    return FeatureTable("a small table", rows, labels, 0.8)


@pytest.fixture(scope="module")
def study(small_table):
    return run_pca(small_table, epsilons=(0.2, 100.0), components=2, repetitions=6, sweeps=10)


def test_without_noise_the_deviation_is_zero_and_the_accuracy_is_scikit_learns():
    digits = feature_table()
    bench = Bench(digits, 4.0, 20, 0)
    exact = eigenpairs(bench.covariance)[1]
    assert bench.deviation(exact) == pytest.approx(0.0, abs=1e-9)
    centred = digits.rows - digits.rows.mean(axis=0)
    public = PCA(20).fit(centred).components_
    assert bench.accuracy(exact) == pytest.approx(bench.accuracy(public), abs=0.02)
    with_scaler = make_pipeline(StandardScaler(), LinearSVC(dual=False))  # another fit, the same within a few rows
    coordinates = digits.rows @ exact[:20].T
    with_scaler.fit(coordinates[bench.train], digits.labels[bench.train])
    scaled = with_scaler.score(coordinates[bench.test], digits.labels[bench.test])
    assert bench.accuracy(exact) == pytest.approx(scaled, abs=0.02)
    turned = exact.copy()
    turned[[0, 1]] = exact[[1, 0]]  # two components exchanged: each is off by the gap
    assert bench.deviation(turned) == pytest.approx(2 * (bench.values[0] - bench.values[1]))


@pytest.mark.slow
def test_huge_epsilon_is_no_noise(small_table):
    found = run_pca(small_table, epsilons=(500.0,), components=2, repetitions=1, sweeps=10)
    for part in ("equal-bounds", "equal-clip"):
        for key in ("least-noise", "analytic-gaussian", "l2"):
            (point,) = found.of(part)[key]
            # Rows over the clip are scaled down whatever epsilon is, so a little deviation stays there.
            assert point.deviation < (2e-3 if part == "equal-bounds" else 0.01)
            assert point.accuracy == pytest.approx(found.baseline, abs=0.01)


@pytest.mark.slow
def test_deviation_falls_with_epsilon(study):
    for part in ("published", "equal-bounds", "equal-clip"):
        for key, (low, high) in study.of(part).items():
            if key not in ("mvg-published", "r1smg-published", "r1smg", "mod-sulq"):  # noise alone, at both
                assert high.deviation < 0.7 * low.deviation, (part, key)


def test_clipping_buys_what_the_sensitivities_say(study, small_table):
    # sqrt(2) d against sqrt(2) c^2, in units of the same noise.
    bounds, clip = (study.of(part)["analytic-gaussian"][0] for part in ("equal-bounds", "equal-clip"))
    assert study.noisy["equal-bounds"].floor / study.noisy["equal-clip"].floor == pytest.approx(6 / 0.8**2, rel=1e-6)
    assert clip.deviation < bounds.deviation


def test_every_point_says_what_is_true(study):
    verdicts = {(point.part, point.key): point.verdict_word for point in study.points}
    assert {key for (part, key), word in verdicts.items() if word == "fails"} >= {"wishart", "r1smg-published"}
    assert verdicts["published", "ppca"] == "not proved"
    assert all(word == "holds" for (part, _), word in verdicts.items() if part.startswith("equal"))
    for point in study.points:
        if point.part.startswith("equal"):
            assert point.exact.upper <= 1e-7
    published = study.of("published")["r1smg-published"][0]
    assert published.epsilon == pytest.approx(0.2e-7)
    assert study.of("small")["analytic-gaussian"][0].epsilon == pytest.approx(0.2e-7)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_study(small_table):
    options = {"epsilons": (1.0,), "components": 2, "repetitions": 1, "sweeps": 3}
    first, second = (run_pca(small_table, seed=5, **options).to_dict() for _ in range(2))
    assert first == second
    assert first != run_pca(small_table, seed=6, **options).to_dict()


@pytest.mark.slow
def test_results_survive_json_and_are_drawn_from_it(study, small_table):
    stored = json.loads(json.dumps(study.to_dict()))
    assert PcaStudy.from_dict(stored).to_dict() == study.to_dict()
    for name, draw in FIGURES.items():
        if name == "components":
            with pytest.raises(ln.InvalidInput, match="holds no pictures"):
                draw(stored)
        else:
            assert len(draw(stored).axes) >= 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": [3]}, "shape has 1 entries, not 2"),
        ({"seed": -1}, "seed=-1"),
        ({"points": "none"}, "points='none' is not a list"),
        ({"extra": 1}, "extra"),
        ({"spectrum": [[1.0], [1.0, 2.0]]}, "spectrum has rows of different lengths"),
        ({"private": 0}, "private=0"),
    ],
)
def test_a_study_that_was_changed_is_refused(study, change, message):
    with pytest.raises(ln.InvalidInput, match=message):
        PcaStudy.from_dict({**study.to_dict(), **change})


@pytest.mark.slow
def test_the_digits_in_one_call():
    found = digits_study(repetitions=1, epsilons=(1.6,))
    assert found["shape"] == [1797, 64]
    assert len(found["spectrum"]) == 64
    assert len(FIGURES["components"](found).axes) == 24
    bounds, clip = (
        next(p for p in found["points"] if (p["part"], p["key"]) == (part, "least-noise"))
        for part in ("equal-bounds", "equal-clip")
    )
    assert clip["deviations"][0] < 0.8 * bounds["deviations"][0]
    assert clip["accuracies"][0] > 0.7


@pytest.mark.slow
def test_a_wide_table_has_all_its_components_in_single_precision_and_two_epsilons(monkeypatch, small_table):
    whole = run_pca(small_table, epsilons=(0.2, 1.6), components=2, repetitions=2, sweeps=3)
    monkeypatch.setattr("lessnoise_paper.experiments.components.WIDE", 5)
    wide = run_pca(small_table, components=2, repetitions=2, sweeps=3)
    assert sorted({point.axis for point in wide.points}) == [0.2, 1.6]
    assert "ppca" in wide.of("published")
    np.testing.assert_allclose(wide.spectrum, whole.spectrum, rtol=1e-12)
    for one, other in zip(wide.points, whole.points, strict=True):
        assert (one.part, one.key, one.axis) == (other.part, other.key, other.axis)
        if one.key not in ("ppca", "mvg-published") and one.part != "small":  # noise of up to 10^10 rounds too coarsely
            np.testing.assert_allclose(one.deviations, other.deviations, atol=2e-3 * whole.spectrum.sum())


@pytest.mark.slow
def test_ten_releases_and_their_spread(monkeypatch, small_table):
    seen = {}
    for crew in (1, 3):
        monkeypatch.setattr("lessnoise_paper.experiments.components.cores", lambda crew=crew: crew)
        seen[crew] = run_pca(small_table, epsilons=(1.0,), components=2, sweeps=2)
    assert seen[1].to_dict() == seen[3].to_dict()  # however many are made at a time
    for point in seen[1].points:
        assert len(point.deviations) == len(point.accuracies) == 10
        assert len(set(point.deviations)) == 10
        deviations = np.array(point.deviations)
        assert point.deviation == pytest.approx(deviations.sum() / 10)
        assert point.deviation_spread**2 == pytest.approx(((deviations - point.deviation) ** 2).sum() / 9)
    one = run_pca(small_table, epsilons=(1.0,), components=2, repetitions=1, sweeps=2)
    assert one.points[0].deviation_spread == 0.0
    assert one.points[0].deviations == seen[1].points[0].deviations[:1]  # the first release of the same stream


def test_the_deviation_adds_up_over_all_components(small_table):
    bench = Bench(small_table, 0.8, 2, 0)
    rng = np.random.default_rng(3)
    frames = np.array([np.linalg.qr(rng.standard_normal((6, 6)))[0] for _ in range(400)])
    found = [bench.deviation(frame.astype(np.float32)) for frame in frames]
    exact = [
        sum(abs(value - v @ bench.covariance @ v) for value, v in zip(bench.values, frame, strict=True))
        for frame in frames
    ]
    np.testing.assert_allclose(found, exact, atol=1e-5)


@pytest.mark.slow
def test_the_command_writes_numbers_and_pictures(monkeypatch, small_table, tmp_path):
    monkeypatch.setattr(tables, "feature_table", lambda name, data: small_table)
    out = tmp_path / "study"
    arguments = ["study", "pca", "--quick", "--repetitions", "2", "--components", "2", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "Equal exact privacy, clipped rows" in result.output
    values = json.loads((out / "numbers.json").read_text())
    assert values["private"] is False
    assert {point["part"] for point in values["points"]} == set(PARTS)
    pictures = {f"{name}.{kind}" for name in ("equal", "published", "scree", "small") for kind in ("svg", "png")}
    assert {path.name for path in out.iterdir()} == {"index.html", "numbers.json", *pictures}
    (out / "index.html").write_text("mine")
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 2
    assert "exists already" in again.output


def test_without_scikit_learn_the_command_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["study", "pca", "--out", str(tmp_path / "study")])
    assert result.exit_code == 2
    assert "lessnoise[sklearn]" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilons": (), "components": 2}, "is empty"),
        ({"components": 7}, "components=7 exceeds the 6 features"),
        ({"repetitions": 0}, "repetitions=0"),
        ({"delta": 1}, "delta=1 must lie"),
        ({"clip_norm": -1}, "clip_norm=-1"),
    ],
)
def test_bad_settings(small_table, options, message):
    with pytest.raises(ln.InvalidInput, match=message):
        run_pca(small_table, **options)


# Tables.


def test_tables_that_are_not_there(monkeypatch, tmp_path):
    monkeypatch.delenv("LESSNOISE_DATA", raising=False)
    for name in ("enron", "mnist", "swarm"):
        with pytest.raises(ln.InvalidInput, match=r"is not part of lessnoise: save .* in a folder"):
            feature_table(name)
    with pytest.raises(ln.InvalidInput, match="table='iris' is not known"):
        feature_table("iris")
    with pytest.raises(ln.InvalidInput, match="holds no Flocking"):
        feature_table("swarm", tmp_path)
    (tmp_path / "emails.csv.gz").write_bytes(gzip.compress(b"Email No.,the\n"))
    with pytest.raises(ln.InvalidInput, match="has sha256"):
        feature_table("enron", tmp_path)


def test_the_swarm_loader_scales_every_column(tmp_path):
    rng = np.random.default_rng(1)
    features = np.column_stack([rng.uniform(-900, 900, 30), rng.uniform(0, 1, 30), np.full(30, 7.0)])
    labels = rng.integers(0, 2, 30)
    text = "x1,y1,nS1,Class\n" + "".join(
        ",".join(repr(float(v)) for v in row) + f",{label}\n" for row, label in zip(features, labels, strict=True)
    )
    (tmp_path / "Flocking.csv").write_text(text)
    found = tables.swarm(tmp_path, shape=(30, 3))
    assert found.rows.min(axis=0).tolist() == [-1.0, -1.0, 0.0]
    assert found.rows.max(axis=0).tolist() == [1.0, 1.0, 0.0]
    np.testing.assert_array_equal(found.labels, labels)
    with pytest.raises(ln.InvalidInput, match="30 rows of 4 numbers, not 24016 of 2401"):
        feature_table("swarm", tmp_path)
    (tmp_path / "Flocking.csv").write_text("a,b\n1,x\n")
    with pytest.raises(ln.InvalidInput, match="is not a table of numbers"):
        feature_table("swarm", tmp_path)
