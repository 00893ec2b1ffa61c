"""A release from file to file: the same bits as in memory, in little memory, whatever happens to the file meanwhile."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli import app
from lessnoise.mechanism.sampling import is_streamed
from lessnoise.noise import compiled_kernels, core
from lessnoise.release.streamed import ArrayFile, open_array, release_file

TARGET = {"epsilon": 1, "delta": 1e-6, "sensitivity": 1}
GOAL = ["--sensitivity", "1", "--epsilon", "1", "--delta", "1e-6"]
COUNT = 5 * (1 << 14) + 123  # five blocks and a bit
LAWS = {
    "gaussian": lambda shape: ln.analytic_gaussian(**TARGET, shape=shape),
    "laplace": lambda shape: ln.laplace(epsilon=1, sensitivity=1, shape=shape),
    "l2": lambda shape: ln.l2_mechanism(**TARGET, shape=shape),
    "r1smg": lambda shape: ln.r1smg(**TARGET, shape=shape, calibration="exact"),
    "shells": lambda shape: ln.shells(edges=(0.0, 1.0, 3.0), probabilities=(0.5, 0.5), sensitivity=0.1, shape=shape),
    "correlated": lambda shape: ln.correlated_gaussian(**TARGET, shape=shape),
    "power": lambda shape: ln.generalized_gaussian(**TARGET, p=3.0, shape=shape),
    "discrete": lambda shape: ln.discrete_gaussian(**TARGET, shape=shape),
    "wide discrete": lambda shape: ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=10**6, shape=shape),
}


@pytest.fixture
def few_blocks(monkeypatch):
    """Two at a time, so that small arrays take several rounds."""
    monkeypatch.setattr(core, "_HELD", 2)


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.open(tmp_path / "a.ledger", epsilon=9, delta=1e-5)


def both(mechanism, value, folder):
    """The noisy value from file to file, and in memory, from the same seed."""
    np.save(folder / "in.npy", value)
    with open_array(folder / "in.npy") as array:
        certificate, _ = release_file(mechanism, array, folder / "out.npy", force=True, rng=np.random.default_rng(7))
    read = ln.Release.read(folder / "out.npy")
    assert read.certificate == certificate
    return read.value, mechanism.release(value, np.random.default_rng(7))


@pytest.mark.slow
@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("name", LAWS)
def test_the_output_is_that_of_a_release_in_memory(name, tmp_path):
    mechanism = LAWS[name]((COUNT,))
    assert is_streamed(mechanism.law, mechanism.shape)
    value = np.arange(COUNT) % 1000
    streamed_value, inside = both(mechanism, value if "discrete" in name else value + 0.25, tmp_path)
    assert streamed_value.dtype == inside.value.dtype
    assert np.array_equal(streamed_value, inside.value)
    assert not np.array_equal(streamed_value, value)


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("name", ["gaussian", "l2"])
@pytest.mark.parametrize("kind", ["<f8", "<f4", ">f8", ">f4", "<f2", "<i8", ">i2", "u1", "fortran", "three axes"])
def test_every_kind_of_number_and_order(name, kind, tmp_path):
    value = np.arange(COUNT // 123 * 123) % 100
    if kind == "fortran":
        value = np.asfortranarray(value.reshape(123, -1), dtype=np.float64)
    elif kind == "three axes":
        value = value.reshape(3, 41, -1).astype(np.float64)
    else:
        value = value.astype(kind)
    streamed_value, inside = both(LAWS[name](value.shape), value, tmp_path)
    assert streamed_value.dtype == inside.value.dtype
    assert streamed_value.flags.c_contiguous
    assert np.array_equal(streamed_value, inside.value)


@pytest.mark.slow
@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("name", ["laplace", "l2"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_compiled_code_gives_the_same(name, kind, tmp_path):
    form = "independent" if name == "laplace" else "isotropic"
    if compiled_kernels(form, kind, path="numba") is None:
        pytest.skip("nothing can be compiled here")
    streamed_value, inside = both(LAWS[name]((COUNT,)), np.arange(COUNT, dtype=kind) % 100, tmp_path)
    assert np.array_equal(streamed_value, inside.value)


@pytest.mark.parametrize("value", [np.float64(3.0), np.arange(1.0), np.arange(7.0)], ids=str)
def test_small_arrays(value, tmp_path):
    streamed_value, inside = both(LAWS["laplace"](value.shape), value, tmp_path)
    assert np.array_equal(streamed_value, inside.value)


def test_noise_that_mixes_its_entries_is_released_in_memory(tmp_path):
    np.save(tmp_path / "in.npy", np.arange(64.0))
    tree = ln.hb(epsilon=1, shape=64, l1_sensitivity=1)
    assert not is_streamed(tree.law, tree.shape)
    streamed_value, inside = both(tree, np.arange(64.0), tmp_path)
    assert np.array_equal(streamed_value, inside.value)


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize(
    ("bad", "words"), [(np.nan, r"value\[81920\]=nan"), (np.inf, "inf"), (1e300, r"value\[81920\]=1e\+300 exceeds")]
)
def test_a_bad_value_far_down_costs_nothing(bad, words, tmp_path, ledger):
    value = np.zeros(COUNT)
    value[81920] = bad
    np.save(tmp_path / "in.npy", value)
    with open_array(tmp_path / "in.npy") as array, pytest.raises(ln.InvalidInput, match=words):
        release_file(LAWS["laplace"]((COUNT,)), array, tmp_path / "out.npy", ledger=ledger)
    assert ledger.count() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ledger", "in.npy"]


@pytest.mark.usefixtures("few_blocks")
def test_fractions_far_down_are_refused_for_integer_noise(tmp_path, ledger):
    value = np.zeros(COUNT)
    value[81920] = 0.5
    np.save(tmp_path / "in.npy", value)
    with open_array(tmp_path / "in.npy") as array, pytest.raises(ln.InvalidInput, match=r"0\.5 is not a whole number"):
        release_file(LAWS["discrete"]((COUNT,)), array, tmp_path / "out.npy", ledger=ledger)
    assert ledger.count() == 0


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("change", ["shorter", "nan"])
@pytest.mark.parametrize("name", ["laplace", "l2", "discrete"])
def test_a_file_that_changes_after_the_payment_is_not_released(name, change, tmp_path, ledger, monkeypatch):
    np.save(tmp_path / "in.npy", np.zeros(COUNT))
    spend = ln.Ledger.spend

    def meanwhile(self, *arguments, **options):
        with (tmp_path / "in.npy").open("r+b") as file:
            if change == "shorter":
                file.truncate(1000)
            else:
                file.seek(-8, os.SEEK_END)
                file.write(np.array([np.nan]).tobytes())
        return spend(self, *arguments, **options)

    monkeypatch.setattr(ln.Ledger, "spend", meanwhile)
    with open_array(tmp_path / "in.npy") as array, pytest.raises(ln.PaidNotReleased, match="record 1") as caught:
        release_file(LAWS[name]((COUNT,)), array, tmp_path / "out.npy", ledger=ledger)
    assert ("ended before its last entry" if change == "shorter" else "nan") in str(caught.value)
    assert "lost" in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ledger", "in.npy"]


def test_a_shape_of_another_mechanism_is_refused(tmp_path):
    np.save(tmp_path / "in.npy", np.zeros(4))
    with (
        open_array(tmp_path / "in.npy") as array,
        pytest.raises(ln.InvalidInput, match="differs from the mechanism"),
    ):
        release_file(LAWS["laplace"]((5,)), array, tmp_path / "out.npy")


@pytest.mark.parametrize("shape", [f"({10**20},)", f"(3, {10**18})", "(-1,)", "(5,)", "(True,)", "(2.0, 2)", "'no'"])
def test_headers_that_do_not_fit_their_file_are_not_streamed(shape, tmp_path):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    text = header.ljust(117).encode() + b"\n"
    (tmp_path / "in.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(32))
    words = ["release", str(tmp_path / "in.npy"), str(tmp_path / "out.npy"), *GOAL]
    result = CliRunner().invoke(app, words)
    assert result.exit_code != 0
    assert not (tmp_path / "out.npy").exists()


def test_a_file_in_c_order_is_read_part_by_part_and_one_in_fortran_order_whole(tmp_path):
    np.save(tmp_path / "c.npy", np.zeros((3, 4)))
    np.save(tmp_path / "f.npy", np.asfortranarray(np.ones((3, 4))))
    with open_array(tmp_path / "c.npy") as array:
        assert isinstance(array, ArrayFile)
        assert np.array_equal(array.read(5, 2), [0, 0])
    with open_array(tmp_path / "f.npy") as array:
        assert isinstance(array, np.ndarray)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="how memory is counted")
def test_a_large_array_takes_little_memory(tmp_path):
    """The peak is far below the array and the same for one four times as large."""
    script = (
        "import resource, sys, lessnoise.cli\n"
        "from contextlib import suppress\n"
        "with suppress(SystemExit): lessnoise.cli.run()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for count in (1 << 22, 1 << 24):
        np.save(tmp_path / "in.npy", np.zeros(count))
        words = [tmp_path / "in.npy", tmp_path / "out.npy", "--mechanism", "l2", "--force", "--json"]
        words += GOAL
        done = subprocess.run(
            [sys.executable, "-c", script, "release", *map(str, words)], capture_output=True, text=True, check=True
        )
        printed, peak = done.stdout.rsplit("}", 1)
        assert json.loads(printed + "}")["mechanism"]["shape"] == [count]
        peaks.append(int(peak) / 1024)
    assert peaks[1] < peaks[0] + 32  # MiB, of the 96 that the array grew by
