"""The command line as a user meets it: output, exit codes, files."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli import app

RUNNER = CliRunner()
TARGET = ["--sensitivity", "1", "--epsilon", "0.5", "--delta", "1e-7"]


def invoke(*arguments):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def run(*arguments, code=0):
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.npy"
    np.save(path, np.arange(12.0).reshape(3, 4))
    return path


@pytest.mark.slow
def test_plan_lists_certified_mechanisms_first_and_by_loss():
    result = invoke(
        "plan", "--shape", "89x89", "--sensitivity", "1.41421356", "--epsilon", 0.5, "--delta", 1e-7, "--json"
    )
    assert result.exit_code == 0
    rows = json.loads(result.stdout)["mechanisms"]
    held = [row for row in rows if row["holds"]]
    assert rows[: len(held)] == held
    assert [row["expected_loss"] for row in held] == sorted(row["expected_loss"] for row in held)
    assert all(row["exact_delta"]["upper"] <= row["claim"]["delta"] for row in held)
    names = {row["name"] for row in rows}
    assert {"analytic-gaussian", "classic-gaussian", "l2", "laplace", "r1smg", "r1smg-published"} <= names
    assert {row["name"] for row in rows if not row["holds"]} == {"product-noise", "r1smg-published"}


@pytest.mark.slow
def test_plan_prints_every_mechanism_and_adds_a_radial_member():
    result = invoke("plan", "--shape", 20, *TARGET, "--k", 15, "--p", 1.5)
    assert result.exit_code == 0
    for name in ("analytic-gaussian", "l2", "zhao-gaussian-1", "zhao-gaussian-2", "r1smg", "radial(k=15, p=1.5)"):
        assert name in result.stdout


@pytest.mark.slow
def test_plan_uses_the_given_l1_sensitivity():
    rows = json.loads(invoke("plan", "--shape", 100, *TARGET, "--l1-sensitivity", 1, "--json").stdout)["mechanisms"]
    laplace = next(row for row in rows if row["name"] == "laplace")
    assert laplace["expected_loss"] == pytest.approx(100 * 2 / 0.5**2)


@pytest.mark.slow
def test_check_refutes_the_published_r1smg():
    result = invoke(
        "check", "r1smg-published", "--shape", 7921, "--sensitivity", 1.41421356, "--epsilon", 1e-5, "--delta", 1e-7
    )
    assert result.exit_code == 1
    assert "FAILS" in result.stdout
    assert "0.21664" in result.stdout


@pytest.mark.slow
def test_check_json_of_the_published_r1smg():
    arguments = ("--shape", 7921, "--sensitivity", 2**0.5, "--epsilon", 1e-5, "--delta", 1e-7, "--json")
    result = invoke("check", "r1smg-published", *arguments)
    assert result.exit_code == 1
    verdict = json.loads(result.stdout)
    assert verdict["holds"] is False
    assert verdict["refuted"] is True
    assert verdict["exact"]["lower"] <= 0.216642 <= verdict["exact"]["upper"] * (1 + 1e-5)
    assert verdict["claimed"] == {
        "epsilon": 1e-5, "delta": 1e-7, "neighbours": "add/remove", "source": "Ji & Li 2024, Theorem 5"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "epsilon", "code"),
    [("classic-gaussian", 10, 1), ("classic-gaussian", 0.5, 0), ("analytic-gaussian", 10, 0), ("laplace", 1, 0)],
)
def test_check_exit_code_is_the_verdict(name, epsilon, code):
    result = invoke("check", name, "--shape", 10, "--sensitivity", 1, "--epsilon", epsilon, "--delta", 1e-5)
    assert result.exit_code == code, result.output


@pytest.mark.slow
def test_check_with_exact_calibration_holds():
    result = invoke("check", "r1smg", "--shape", 100, *TARGET)
    assert result.exit_code == 0


@pytest.mark.slow
def test_names_say_which_calibration_is_meant():
    target = ("--shape", 100, "--sensitivity", 1, "--epsilon", 1e-3, "--delta", 1e-5, "--json")
    for name, code in (("r1smg", 0), ("r1smg-published", 1)):
        assert json.loads(run("check", name, *target, code=code).stdout)["mechanism"]["name"] == name
    refused = run("check", "r1smg", *target, "--calibration", "published", code=2)
    assert "--calibration" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_release_writes_array_and_certificate(counts, tmp_path):
    target = tmp_path / "noisy.npy"
    result = invoke("release", counts, target, *TARGET)
    assert result.exit_code == 0, result.output
    noisy = np.load(target)
    assert noisy.shape == (3, 4)
    certificate = json.loads((tmp_path / "noisy.npy.certificate.json").read_text())
    assert certificate["private"] is True
    assert certificate["guarantee"]["delta"] <= 1e-7
    mechanism = ln.Mechanism.from_dict(certificate["mechanism"])
    assert mechanism.check().holds
    loss = float(np.sum((noisy - np.load(counts)) ** 2))
    assert mechanism.loss_quantile(1e-9) < loss < mechanism.loss_quantile(1 - 1e-9)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts.npy", "noisy.npy", "noisy.npy.certificate.json"]


@pytest.mark.slow
def test_release_by_default_takes_the_certified_mechanism_of_least_loss(counts, tmp_path):
    result = invoke("release", counts, tmp_path / "noisy.npy", *TARGET, "--json")
    chosen = ln.Mechanism.from_dict(json.loads(result.stdout)["mechanism"])
    rows = json.loads(invoke("plan", "--shape", "3x4", *TARGET, "--json").stdout)["mechanisms"]
    assert chosen.expected_loss == rows[0]["expected_loss"]


def test_release_with_a_seed_repeats_and_is_not_private(counts, tmp_path):
    first, second = tmp_path / "a.npy", tmp_path / "b.npy"
    for target in (first, second):
        result = invoke("release", counts, target, *TARGET, "--seed", 7)
        assert "not private" in result.stdout
    assert np.array_equal(np.load(first), np.load(second))
    assert json.loads((tmp_path / "a.npy.certificate.json").read_text())["private"] is False


def test_two_private_releases_differ(counts, tmp_path):
    for name in ("a.npy", "b.npy"):
        assert invoke("release", counts, tmp_path / name, *TARGET).exit_code == 0
    assert not np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_release_never_overwrites_without_force(counts, tmp_path):
    target = tmp_path / "noisy.npy"
    target.write_bytes(b"precious")
    result = invoke("release", counts, target, *TARGET)
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert target.read_bytes() == b"precious"
    assert not (tmp_path / "noisy.npy.certificate.json").exists()
    assert invoke("release", counts, target, *TARGET, "--force").exit_code == 0
    assert np.load(target).shape == (3, 4)


def test_release_of_a_refuted_claim_says_so(counts, tmp_path):
    result = invoke("release", counts, tmp_path / "noisy.npy", *TARGET, "--mechanism", "r1smg-published")
    assert result.exit_code == 0
    assert "does not hold" in result.stdout
    certificate = json.loads((tmp_path / "noisy.npy.certificate.json").read_text())
    assert certificate["claim_holds"] is False
    assert certificate["guarantee"]["delta"] > 0.1


def test_a_failed_write_leaves_nothing(counts, tmp_path, monkeypatch):
    from lessnoise import files

    original = files._place

    def fail_on_array(temporary, path, force):
        if path.suffix == ".npy":
            raise OSError(28, "No space left on device", str(path))
        original(temporary, path, force)

    monkeypatch.setattr(files, "_place", fail_on_array)
    result = invoke("release", counts, tmp_path / "noisy.npy", *TARGET)
    assert result.exit_code == 2
    assert "No space left" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["counts.npy"]


def bad_arrays(folder):
    np.save(folder / "nan.npy", np.array([1.0, math.nan]))
    np.save(folder / "inf.npy", np.array([math.inf]))
    np.save(folder / "text.npy", np.array(["a"]))
    np.save(folder / "complex.npy", np.array([1j]))
    np.save(folder / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    (folder / "corrupt.npy").write_bytes(b"\x93NUMPY garbage")
    (folder / "empty.npy").write_bytes(b"")
    np.save(folder / "no-entries.npy", np.zeros((0, 3)))
    np.savez(folder / "several.npz", a=np.zeros(2))
    (folder / "folder.npy").mkdir()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nan.npy", "value[1]=nan"),
        ("inf.npy", "value[0]=inf"),
        ("text.npy", "dtype="),
        ("complex.npy", "dtype=complex128"),
        ("object.npy", "not a readable .npy"),
        ("corrupt.npy", "not a readable .npy"),
        ("empty.npy", "not a readable .npy"),
        ("no-entries.npy", "shape=(0, 3)"),
        ("several.npz", "several arrays"),
        ("folder.npy", "does not exist"),
        ("missing.npy", "does not exist"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path, name, words):
    bad_arrays(tmp_path)
    before = sorted(tmp_path.iterdir())
    result = invoke("release", tmp_path / name, tmp_path / "noisy.npy", *TARGET)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--sensitivity", "0", "sensitivity=0"),
        ("--sensitivity", "nan", "sensitivity=nan"),
        ("--epsilon", "-1", "epsilon=-1"),
        ("--epsilon", "inf", "epsilon=inf"),
        ("--delta", "0", "delta=0"),
        ("--delta", "1", "delta=1"),
        ("--mechanism", "magic", "mechanism='magic'"),
        ("--neighbours", "cousins", "neighbours='cousins'"),
        ("--l1-sensitivity", "-2", "l1_sensitivity=-2"),
        ("--mechanism", "radial", "k=None"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(counts, tmp_path, option, value, words):
    arguments = dict(zip(TARGET[::2], TARGET[1::2], strict=True)) | {option: value}
    flat = [part for pair in arguments.items() for part in pair]
    result = invoke("release", counts, tmp_path / "noisy.npy", *flat)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "noisy.npy").exists()


@pytest.mark.parametrize("shape", ["0", "-3", "axb", "2.5", ""])
def test_bad_shapes_are_refused(shape):
    result = invoke("plan", "--shape", shape, *TARGET)
    assert result.exit_code == 2
    assert "shape=" in result.stderr


def test_missing_output_folder(counts, tmp_path):
    result = invoke("release", counts, tmp_path / "nowhere" / "noisy.npy", *TARGET)
    assert result.exit_code == 2
    assert "create" in result.stderr


def test_published_r1smg_needs_more_than_two_entries():
    result = invoke("check", "r1smg-published", "--shape", 2, *TARGET)
    assert result.exit_code == 2
    assert "M=2" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["plan", "check", "release"])
def test_help_has_an_example(command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout


@pytest.mark.slow
def test_the_installed_command_runs():
    arguments = [sys.executable, "-m", "lessnoise", "--version"]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"lessnoise {ln.__version__}"


@pytest.mark.slow
def test_least_noise_is_the_default_and_the_first_row(tmp_path):
    target = ["--sensitivity", "1", "--epsilon", "4", "--delta", "1e-6"]
    plan = json.loads(run("plan", "--shape", "3", *target, "--optimality", "--json").stdout)
    assert plan["mechanisms"][0]["name"] == "least-noise"
    assert plan["mechanisms"][0]["design"]["choice"].endswith("shells")
    assert 1.0 <= plan["optimality"] < 1.01
    np.save(tmp_path / "in.npy", np.zeros(3))
    certificate = json.loads(run("release", tmp_path / "in.npy", tmp_path / "out.npy", *target, "--json").stdout)
    assert certificate["mechanism"]["name"] == "least-noise"
    assert certificate["claim_holds"] is True
    words = run("release", tmp_path / "in.npy", tmp_path / "other.npy", *target, "--objective", "l2").stdout
    assert "shells)" in words


@pytest.mark.slow
def test_an_l1_sensitivity_can_beat_the_least_noise(tmp_path):
    np.save(tmp_path / "in.npy", np.zeros(400))
    target = ["--sensitivity", "1", "--epsilon", "4", "--delta", "1e-6", "--l1-sensitivity", "1", "--json"]
    certificate = json.loads(run("release", tmp_path / "in.npy", tmp_path / "out.npy", *target).stdout)
    assert certificate["mechanism"]["name"] == "laplace"


@pytest.mark.slow
def test_frontier_prints_and_draws(tmp_path):
    picture = tmp_path / "frontier.svg"
    words = run(
        "frontier", "--epsilon", "4", "--entries", "2", "--entries", "10", "--no-bounds", "--out", picture
    ).stdout
    assert "0.0957" in words
    assert picture.read_bytes().startswith(b"<?xml")
    again = run("frontier", "--epsilon", "4", "--entries", "2", "--out", picture, code=2)
    assert "exists" in again.stderr
    points = json.loads(run("frontier", "--epsilon", "4", "--entries", "5", "--json").stdout)["points"]
    assert points[0]["bound"] <= points[0]["least"] <= points[0]["radial"] * (1 + 1e-9) <= 1.0


def test_bad_objectives_and_entries_are_one_sentence(tmp_path):
    np.save(tmp_path / "in.npy", np.zeros(3))
    target = ["--sensitivity", "1", "--epsilon", "4", "--delta", "1e-6"]
    assert (
        "objective='median'"
        in run("release", tmp_path / "in.npy", tmp_path / "out.npy", *target, "--objective", "median", code=2).stderr
    )
    assert "dimension=0" in run("frontier", "--entries", "0", code=2).stderr
    assert not (tmp_path / "out.npy").exists()
