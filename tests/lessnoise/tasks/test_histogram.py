"""Private counts, from the call and from the command line: values, certificates, files, and nothing on failure."""

import csv
import json
import sys

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli import app
from lessnoise.mechanism import Geometric
from lessnoise.release.certificate import Certificate
from lessnoise.tasks.histogram import POSTPROCESS

BOX = {"bins": (4, 3), "bounds": ((0, 1), (0, 1))}
TARGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return {"Lon": rng.random(5000), "Lat": rng.random(5000), "who": rng.integers(0, 50, 5000)}


@pytest.fixture(scope="module")
def true(points):
    return np.histogram2d(points["Lon"], points["Lat"], bins=(4, 3), range=((0, 1), (0, 1)))[0]


def noise_p_value(noise, sd):
    """Two-sided, for a normal standard deviation; 1/2 if the law is as stated."""
    square = float((noise**2).sum()) / sd**2
    below = stats.chi2.cdf(square, noise.size)
    return min(below, 1.0 - below)


def test_the_noise_has_the_stated_scale(points, true):
    options = {**BOX, **TARGET, "mechanism": "analytic-gaussian"}
    noise = np.array([ln.private_histogram(points, ["Lon", "Lat"], **options).value - true for _ in range(60)])
    sd = ln.analytic_gaussian(**TARGET, sensitivity=1, shape=(4, 3)).standard_deviation
    assert noise_p_value(noise, sd) > 1e-12
    assert noise_p_value(noise, sd * 2 / 3) < 1e-12
    assert noise_p_value(noise, sd * 3 / 2) < 1e-12


@pytest.mark.parametrize(("neighbours", "factor"), [("add/remove", 1.0), ("replace", 2**0.5)])
def test_the_mechanism_is_built_for_the_unit_and_the_relation(points, neighbours, factor):
    unit = ln.Unit("who", 7)
    result = ln.private_histogram(
        points, ["Lon", "Lat"], **BOX, **TARGET, mechanism="analytic-gaussian", neighbours=neighbours, unit=unit
    )
    mechanism = result.certificate.mechanism
    assert mechanism.sensitivity == pytest.approx(7 * factor, rel=1e-15)
    assert result.certificate.guarantee.neighbours.value == neighbours
    assert result.certificate.guarantee.delta <= 1e-6
    assert abs(result.value.sum() - 7 * 50) < 12 * 12**0.5 * mechanism.standard_deviation
    assert result.to_dict()["query"]["unit"] == {"id": "who", "max_rows": 7}


def test_counts_have_the_least_noise_that_integers_can_have(points):
    result = ln.private_histogram(points, ["Lon", "Lat"], **BOX, **TARGET)
    mechanism = result.certificate.mechanism
    assert mechanism.changes == ln.changes.counts()
    assert isinstance(mechanism.law, Geometric)
    assert mechanism.law.tail > 0.0
    assert result.value.dtype == np.int64


def test_integer_noise_gives_whole_numbers(points):
    result = ln.private_histogram(points, ["Lon", "Lat"], **BOX, **TARGET, mechanism="discrete-gaussian")
    assert (result.value == np.rint(result.value)).all()


def test_post_processing_in_the_order_given(points):
    rng = np.random.default_rng
    plain = ln.private_histogram(points, ["Lon", "Lat"], **BOX, **TARGET, rng=rng(3))
    done = ln.private_histogram(
        points, ["Lon", "Lat"], **BOX, **TARGET, rng=rng(3), postprocess=["round", "nonnegative"]
    )
    assert not plain.certificate.private
    assert np.array_equal(done.release.value, plain.value)
    assert np.array_equal(done.value, np.maximum(plain.value, 0))
    for name in POSTPROCESS:
        result = ln.private_histogram(points, ["Lon", "Lat"], **BOX, **TARGET, rng=rng(3), postprocess=name)
        assert result.postprocess == (name,)
        assert not np.array_equal(result.value, plain.value) or name in ("nonnegative", "round")
        assert (result.value.dtype == np.int64) == (name in ("nonnegative", "round"))
    real = ln.private_histogram(points, ["Lon", "Lat"], **BOX, **TARGET, mechanism="laplace", rng=rng(3))
    assert real.value.dtype == np.float64
    rounded = ln.private_histogram(
        points, ["Lon", "Lat"], **BOX, **TARGET, mechanism="laplace", rng=rng(3), postprocess="round"
    )
    assert rounded.value.dtype == np.int64
    assert np.array_equal(rounded.value, np.rint(real.value))


def test_axes_and_histograms_are_taken_as_they_are(points):
    axes = [ln.Axis("Lon", edges=[0, 0.3, 1]), ln.Axis("who", keys=list(range(50)))]
    assert ln.private_histogram(points, axes, **TARGET).value.shape == (2, 50)
    assert ln.private_histogram(points, ln.Histogram(axes), **TARGET).value.shape == (2, 50)
    assert ln.private_histogram(points, axes[0], **TARGET).value.shape == (2,)


def test_nothing_true_is_kept(points, true):
    result = ln.private_histogram(points, ["Lon", "Lat"], **BOX, **TARGET)
    kept = [value for value in vars(result).values() if isinstance(value, np.ndarray)]
    assert not any(np.array_equal(value, true) for value in kept)
    assert not np.array_equal(result.release.value, true)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mechanism": "magic"}, "mechanism='magic'"),
        ({"postprocess": ["sharpen"]}, "postprocess='sharpen'"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"delta": 1}, "delta=1"),
        ({"bins": None}, "bins=None"),
        ({"bins": (0, 3)}, "bins=0"),
        ({"bounds": ((1, 0), (0, 1))}, "smaller end first"),
        ({"rng": 3}, "rng=3"),
        ({"engine": "abacus"}, "engine='abacus'"),
    ],
)
def test_bad_arguments_are_refused_before_noise_is_drawn(points, monkeypatch, options, words):
    monkeypatch.setattr("lessnoise.mechanism.mechanism.Mechanism.release", lambda *_: pytest.fail("a release was made"))
    with pytest.raises(ln.InvalidInput, match=words):
        ln.private_histogram(points, ["Lon", "Lat"], **{**BOX, **TARGET, **options})


# The command line.


@pytest.fixture
def trips(points, tmp_path):
    path = tmp_path / "trips.csv"
    rows = zip(*(column.tolist() for column in points.values()), strict=True)
    path.write_text("Lon,Lat,who\n" + "".join(f"{x!r},{y!r},u{who}\n" for x, y, who in rows))
    return path


def run(path, out, *more, bins="4x3", bounds="0:1,0:1", epsilon="1"):
    arguments = ["histogram", path, "--x", "Lon", "--y", "Lat", "--bins", bins, "--bounds", bounds]
    arguments += ["--epsilon", epsilon, "--delta", "1e-6", "--out", out, *more]
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_command_writes_counts_certificate_and_picture(trips, tmp_path, true):
    out = tmp_path / "new" / "folder"
    result = run(
        trips, out, "--format", "csv", "--format", "npy", "--format", "parquet", "--unit", "who", "--max-rows", 200
    )
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == [
        "certificate.json", "counts.csv", "counts.npy", "counts.parquet", "counts.png"
    ]  # fmt: skip
    noisy = np.load(out / "counts.npy")
    certificate = json.loads((out / "certificate.json").read_text())
    assert Certificate.from_dict(certificate).private
    asked = certificate["query"]
    assert asked["description"]["axes"][1] == {"column": "Lat", "bounds": [0, 1], "bins": 3, "outside": "drop"}
    assert asked["unit"] == {"id": "who", "max_rows": 200}
    assert np.abs(noisy - true).max() < 40 * 200
    with (out / "counts.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["count"]) for row in rows] == noisy.ravel().tolist()
    assert (float(rows[1]["Lat from"]), float(rows[-1]["Lon to"])) == (1 / 3, 1.0)
    from pyarrow import parquet

    assert parquet.read_table(out / "counts.parquet")["count"].to_pylist() == noisy.ravel().tolist()
    assert (out / "counts.png").read_bytes().startswith(b"\x89PNG")
    assert "protects one user by 'who', at most 200 rows each" in result.output


def test_command_as_json_on_dask_and_with_one_axis(trips, tmp_path):
    pytest.importorskip("dask", reason="dask is not installed")
    arguments = ["histogram", trips, "--x", "Lon", "--bins", "5", "--bounds=-1:1", "--epsilon", "1", "--delta", "1e-6"]
    arguments += ["--out", tmp_path / "out", "--engine", "dask", "--post", "nonnegative", "--json", "--seed", "1"]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["query"]["engine"] == "dask"
    assert printed["private"] is False
    assert printed["postprocess"] == ["nonnegative"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "certificate.json",
        "counts.parquet",
        "counts.png",
    ]


@pytest.mark.slow
def test_negative_bounds_need_no_equals_sign(trips, tmp_path):
    assert run(trips, tmp_path / "out", bounds="-1:1,-2:2").exit_code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": "0:1"}, "bounds=.*must have one part"),
        ({"bounds": "0:1,a:b"}, "bounds='0:1,a:b' is not a list of intervals"),
        ({"bounds": "1:0,0:1"}, "smaller end first"),
        ({"bins": "4xx"}, "bins='4xx'"),
        ({"bins": "0x3"}, "bins=0"),
        ({"epsilon": "-1"}, "epsilon=-1"),
    ],
)
def test_command_refuses_and_writes_nothing(trips, tmp_path, options, words):
    import re

    result = run(trips, tmp_path / "out", **options)
    assert result.exit_code == 2
    assert re.search(words, result.stderr)
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--unit", "who"], "pass both"),
        (["--unit", "driver", "--max-rows", 3], "column='driver' is not in the data"),
        (["--mechanism", "magic"], "mechanism='magic'"),
        (["--engine", "abacus"], "engine='abacus'"),
        (["--format", "xls"], "format='xls'"),
        (["--post", "sharpen"], "postprocess='sharpen'"),
        (["--table", "t"], "for PostgreSQL addresses only"),
    ],
)
def test_command_refuses_options(trips, tmp_path, more, words):
    result = run(trips, tmp_path / "out", *more)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_unreadable_data_leaves_nothing_behind(trips, tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and nothing else")
    for path, words in ((broken, "nothing was spent"), (tmp_path / "none.csv", "does not exist")):
        result = run(path, tmp_path / "out")
        assert result.exit_code == 2
        assert words in result.stderr
        assert not (tmp_path / "out").exists()


def test_without_pyarrow_parquet_is_refused_before_the_release(points, tmp_path, monkeypatch):
    result = ln.private_histogram(points, ["Lon", "Lat"], **BOX, **TARGET)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setattr("lessnoise.mechanism.mechanism.Mechanism.release", lambda *_: pytest.fail("a release was made"))
    with pytest.raises(ln.LessnoiseError, match="pyarrow is not installed: run pip install"):
        result.save(tmp_path / "out")
    refused = run(tmp_path / "any.csv", tmp_path / "out")
    assert (refused.exit_code, "pyarrow is not installed" in refused.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_existing_output_is_kept_unless_forced(trips, tmp_path):
    out = tmp_path / "out"
    assert run(trips, out).exit_code == 0
    before = (out / "counts.parquet").read_bytes()
    result = run(trips, out)
    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert (out / "counts.parquet").read_bytes() == before
    assert run(trips, out, "--force").exit_code == 0
    assert (out / "counts.parquet").read_bytes() != before


def test_noise_that_depends_on_the_data_is_released_and_saved(tmp_path):
    """DAWA has no deviation of its own: what needs one is refused before anything is spent, all else works."""
    rng = np.random.default_rng(0)
    points = {"x": rng.random(300), "y": rng.random(300)}
    ledger = ln.Ledger.open(tmp_path / "a.ledger", epsilon=2, delta=1e-6)
    asked = {"bins": (8, 8), "bounds": ((0, 1), (0, 1)), "epsilon": 0.5, "delta": 1e-7, "mechanism": "dawa"}
    result = ln.private_histogram(points, ["x", "y"], **asked, postprocess=["nonnegative"], ledger=ledger)
    assert result.value.min() >= 0.0
    assert (tmp_path / "out" / "counts.png") in result.save(tmp_path / "out", formats=["npy"])
    with pytest.raises(ln.InvalidInput, match="depends on the data"):
        ln.private_histogram(points, ["x", "y"], **asked, postprocess=["james-stein"], ledger=ledger)
    assert ledger.count() == 1
