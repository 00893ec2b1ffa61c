"""A release with a ledger: what can fail, fails before the payment; what fails after it says so and loses nothing."""

import csv
import errno
import io
import json
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise import files
from lessnoise.cli import app
from lessnoise.noise.stream import Stream
from lessnoise.tasks import HistogramFolder, plan_histogram

TARGET = {"epsilon": 0.5, "delta": 1e-7}
GOAL = ["--sensitivity", "1", "--epsilon", "0.5", "--delta", "1e-7"]
LAPLACE = ln.laplace(epsilon=0.5, sensitivity=1, shape=4)


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.open(tmp_path / "a.ledger", epsilon=9, delta=1e-5)


def fails(error):
    def failing(*_, **__):
        raise error

    return failing


def full_disk(path="noisy.npy"):
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def release(folder, *more, name="noisy.npy", mechanism="laplace"):
    if not (folder / "in.npy").exists():
        np.save(folder / "in.npy", np.arange(4.0))
    words = ["release", folder / "in.npy", folder / name, *GOAL, "--mechanism", mechanism, "--ledger"]
    return CliRunner().invoke(app, [str(word) for word in (*words, folder / "a.ledger", *more)])


def one_sentence(result, code):
    assert result.exit_code == code, (result.output, result.exception)
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


# Before the payment.

READ_ONLY = np.zeros(4)
READ_ONLY.setflags(write=False)


@pytest.mark.parametrize(
    "out",
    [
        READ_ONLY,
        np.zeros(4)[::-1],
        np.zeros(4, dtype=">f8"),
        np.zeros(4, dtype=np.float32),
        np.zeros((2, 2)),
        np.ma.masked_array(np.zeros(4)),
        np.frombuffer(bytearray(33), dtype=np.uint8)[1:].view(np.float64),
        [0.0] * 4,
    ],
    ids=["read-only", "reversed", "big-endian", "float32", "shape", "masked", "unaligned", "list"],
)
def test_an_output_that_will_not_do_costs_nothing(ledger, out):
    with pytest.raises(ln.InvalidInput, match=r"^out .*: pass "):
        LAPLACE.release(np.arange(4.0), ledger=ledger, out=out)
    assert ledger.count() == 0


def test_integer_noise_refuses_the_same_outputs(ledger):
    mechanism = ln.discrete_gaussian(**TARGET, sensitivity=1, shape=4)
    out = np.zeros(4, dtype=np.int64)
    out.setflags(write=False)
    with pytest.raises(ln.InvalidInput, match="out is read-only"):
        mechanism.release([1, 2, 3, 4], ledger=ledger, out=out)
    assert ledger.count() == 0
    out.setflags(write=True)
    assert mechanism.release([1, 2, 3, 4], ledger=ledger, out=out).value.base is out


def test_a_value_that_only_dawas_buckets_make_too_large_costs_nothing(ledger):
    mechanism = ln.dawa(epsilon=0.5, shape=64)
    each = 2.0**43  # a cell is on the grid of the noise, a bucket of 64 cells is not
    LAPLACE.release(np.full(4, each))
    with pytest.raises(ln.InvalidInput, match=r"^value"):
        mechanism.release(np.full(64, each), ledger=ledger)
    with pytest.raises(ln.InvalidInput, match=r"^value"):
        mechanism.release(np.full(64, 1e308), ledger=ledger)
    assert ledger.count() == 0
    assert mechanism.release(np.full(64, each / 64), ledger=ledger).value.shape == (64,)


def test_an_array_that_does_not_fit_into_memory_costs_nothing(ledger, monkeypatch):
    monkeypatch.setattr("lessnoise.noise.core.np.empty", fails(MemoryError()))
    with pytest.raises(MemoryError):
        LAPLACE.release(np.arange(4.0), ledger=ledger)
    assert ledger.count() == 0


def test_memory_that_the_noise_needs_beside_its_output_is_there_before_the_payment(ledger, monkeypatch):
    tree = ln.hb(epsilon=0.5, shape=64, l1_sensitivity=1)
    monkeypatch.setattr(np, "ones", fails(MemoryError()))
    LAPLACE.release(np.arange(4.0), ledger=ledger)  # needs none
    with pytest.raises(MemoryError):
        tree.release(np.zeros(64), ledger=ledger)
    assert ledger.count() == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
@pytest.mark.parametrize("command", ["release", "histogram"])
def test_a_disk_without_room_costs_nothing(ledger, tmp_path, command):
    """The limit on the size of files stands for a full disk: the system refuses to write beyond it."""
    np.save(tmp_path / "in.npy", np.zeros(1 << 16))
    (tmp_path / "in.csv").write_text("x\n1\n")
    words = {
        "release": [tmp_path / "in.npy", tmp_path / "noisy.npy", *GOAL, "--mechanism", "laplace"],
        "histogram": [tmp_path / "in.csv", "--x", "x", "--bins", 1 << 15, "--bounds", "0:1", "--out",
                      tmp_path / "new" / "d", "--format", "npy", "--mechanism", "laplace", *GOAL[2:]],
    }[command]  # fmt: skip
    limited = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))\n"
        "from lessnoise.cli import run\n"
        "run()"
    )
    command_line = [sys.executable, "-c", limited, command, *map(str, words), "--ledger", str(ledger.path)]
    done = subprocess.run(command_line, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert os.strerror(errno.EFBIG) in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert ledger.count() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ledger", "in.csv", "in.npy"]


NAMES = [
    "fare_$ and tip_$",
    "a$b$",
    "$\\frac{",
    "\\$",
    "_^{}",
    "two\nlines\r",
    "x" * 3000,
    "",
    " ",
    "🚕 žluťoučký",
    "\x00\x07\x1b[31m",
    'comma, "quote" and ; and\ttab',
    "<script>alert(1)</script>",
    "[/bold]",
    "count",
    "a from",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_written_and_drawn(name, tmp_path):
    axes = [ln.Axis(name, keys=[name, "other"]), ln.Axis("a", bins=2, bounds=(0, 1))]
    plan = plan_histogram(ln.Histogram(axes), 1.0, 1e-6, "laplace", "add/remove", ln.Unit(), ())
    made = HistogramFolder(tmp_path, ["csv", "npy", "parquet"]).contents(plan.trial())
    assert made["counts.png"].startswith(b"\x89PNG")
    rows = list(csv.reader(io.StringIO(made["counts.csv"].decode(), newline="")))
    assert rows[0][0] == name
    assert len(set(rows[0])) == 4
    assert [row[0] for row in rows[1:]] == [name, name, "other", "other"]
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(made["counts.parquet"]))
    assert table.column_names == rows[0]
    assert table[name].to_pylist() == [row[0] for row in rows[1:]]
    assert table[3].to_pylist() == np.load(io.BytesIO(made["counts.npy"])).ravel().tolist()


def test_a_name_that_no_file_can_hold_costs_nothing(ledger, tmp_path):
    (tmp_path / "in.csv").write_bytes(b"a,\xff\n1,2\n")
    words = ["histogram", tmp_path / "in.csv", "--x", "\udcff", "--bins", 2, "--bounds", "0:1", *GOAL[2:]]
    words += ["--out", tmp_path / "d", "--format", "csv", "--ledger", ledger.path]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert "is not valid Unicode" in one_sentence(result, 2)
    assert ledger.count() == 0


def test_a_column_with_dollars_from_the_command_line(ledger, tmp_path):
    (tmp_path / "in.csv").write_text("fare_$ and tip_$\n0.5\n")
    words = ["histogram", tmp_path / "in.csv", "--x", "fare_$ and tip_$", "--bins", 2, "--bounds", "0:1", *GOAL[2:]]
    result = CliRunner().invoke(app, [str(word) for word in (*words, "--out", tmp_path / "d", "--ledger", ledger.path)])
    assert result.exit_code == 0, result.output
    assert ledger.count() == 1


# After the payment, in Python.


@pytest.mark.parametrize(
    ("error", "words"),
    [(MemoryError(), "memory ran out"), (full_disk(), "No space left"), (ValueError("odd."), "odd;")],
)
def test_a_failure_after_the_payment_says_so(ledger, monkeypatch, error, words):
    monkeypatch.setattr(Stream, "claim", fails(error))
    with pytest.raises(ln.PaidNotReleased, match=rf"^paid \(record 1 of ledger={ledger.path}\).*{words}") as caught:
        LAPLACE.release(np.arange(4.0), ledger=ledger)
    assert caught.value.receipt.id == ledger.count() == 1
    assert caught.value.release is None
    assert "lost" in str(caught.value)
    assert caught.value.__cause__ is error
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.receipt) == (str(caught.value), caught.value.receipt)
    with pytest.raises(type(error)):  # without a ledger nothing was paid
        LAPLACE.release(np.arange(4.0))


def test_an_interrupt_stays_one_and_tells_of_the_payment(ledger, monkeypatch):
    monkeypatch.setattr(Stream, "claim", fails(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt) as caught:
        LAPLACE.release(np.arange(4.0), ledger=ledger)
    assert caught.value.__notes__[0].startswith("paid (record 1 of ledger=")
    monkeypatch.setattr(ln.Ledger, "spend", fails(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt) as caught:
        LAPLACE.release(np.arange(4.0), ledger=ledger)
    assert "whether it was paid, the last record" in caught.value.__notes__[0]


def test_a_budget_that_does_not_suffice_is_no_payment(ledger):
    with pytest.raises(ln.BudgetExceeded):
        ln.laplace(epsilon=50, sensitivity=1, shape=4).release(np.arange(4.0), ledger=ledger)
    assert ledger.count() == 0


def test_a_histogram_that_cannot_be_finished_keeps_its_release(ledger, monkeypatch):
    monkeypatch.setattr("lessnoise.postprocess.nonnegative", fails(MemoryError()))
    options = {"bins": [4], "bounds": [(0, 1)], "postprocess": ["nonnegative"]}
    with pytest.raises(ln.PaidNotReleased, match=r"in this error's \.release") as caught:
        ln.private_histogram({"x": [0.5]}, ["x"], **options, **TARGET, ledger=ledger)
    assert caught.value.release.value.shape == (4,)
    assert caught.value.release.receipt == caught.value.receipt


@pytest.mark.parametrize("name", ["PrivateCovariance", "PrivatePCA"])
def test_an_estimator_that_cannot_be_finished_keeps_its_release(ledger, monkeypatch, name):
    estimators = pytest.importorskip("lessnoise.pca.estimators", reason="scikit-learn is not installed")
    monkeypatch.setattr("lessnoise.pca.bounded_rows.Moments.covariance", fails(np.linalg.LinAlgError("no convergence")))
    rows = np.random.default_rng(0).normal(size=(50, 2))
    estimator = getattr(estimators, name)(**TARGET, clip_norm=3, ledger=ledger)
    with pytest.raises(ln.PaidNotReleased, match="no convergence") as caught:
        estimator.fit(rows)
    assert caught.value.release.certificate.private
    assert ledger.count() == 1


# After the payment, on the command line.


def test_a_value_that_cannot_be_written_is_kept_elsewhere(ledger, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    write, broken = files.Staged.write, tmp_path / "noisy.npy"

    def fail_once(self, path, writer):
        if path == broken:
            raise full_disk(path)
        write(self, path, writer)

    monkeypatch.setattr(files.Staged, "write", fail_once)
    tree = {"mechanism": "hb"}  # its noise is drawn in memory; what is written part by part would be lost
    sentence = one_sentence(release(tmp_path, "--counts", "--l1-sensitivity", 1, **tree), 4)
    assert sentence.startswith(
        f"error: paid (record 1 of ledger={ledger.path}), but then it failed: {broken}: No space"
    )
    kept = Path(sentence.split("is kept in ")[1].split(", with")[0])
    assert kept.parent.parent == tmp_path / "temporary"
    assert ln.Release.read(kept).value.shape == (4,)
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ledger", "in.npy", "temporary"]
    monkeypatch.setattr(files.Staged, "write", fails(full_disk()))
    assert "is lost" in one_sentence(release(tmp_path), 4)
    assert ledger.count() == 2


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("ending", [".npy", ".json"])
def test_complete_files_that_cannot_get_their_names_are_kept(ledger, tmp_path, monkeypatch, force, ending):
    place = files._place

    def fail(temporary, path, forced):
        if path.suffix == ending:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))
        place(temporary, path, forced)

    monkeypatch.setattr(files, "_place", fail)
    sentence = one_sentence(release(tmp_path, *(["--force"] if force else [])), 4)
    assert "paid (record 1" in sentence
    array, certificate = (Path(word) for word in sentence.split(": move ")[1].split(" to their")[0].split(", "))
    array.rename(tmp_path / "moved.npy")
    certificate.rename(tmp_path / "moved.npy.certificate.json")
    assert ln.Release.read(tmp_path / "moved.npy").value.shape == (4,)


def test_another_process_that_takes_the_name_first_keeps_it(ledger, tmp_path, monkeypatch):
    draw = Stream.claim

    def meanwhile(self):
        (tmp_path / "noisy.npy").write_text("precious")
        return draw(self)

    monkeypatch.setattr(Stream, "claim", meanwhile)
    assert "exists already" in one_sentence(release(tmp_path), 4)
    assert (tmp_path / "noisy.npy").read_text() == "precious"
    assert not (tmp_path / "noisy.npy.certificate.json").exists()


def test_an_interrupt_after_the_payment_has_the_code_of_a_payment(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", fails(KeyboardInterrupt()))
    sentence = one_sentence(release(tmp_path), 4)
    assert sentence.startswith("interrupted: paid (record 1 of")
    assert "its files are complete" in sentence
    monkeypatch.setattr(Stream, "claim", fails(KeyboardInterrupt()))
    assert "is lost" in one_sentence(release(tmp_path), 4)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("paid", "code"), [(True, 4), (False, 143)])
def test_the_system_ends_a_run_in_order(ledger, tmp_path, paid, code):
    np.save(tmp_path / "in.npy", np.arange(4.0))
    script = (
        "import os, signal, sys\n"
        "from lessnoise.cli import run\n"
        "from lessnoise.noise.stream import Stream\n"
        "Stream.claim = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "run()"
    )
    words = ["release", tmp_path / "in.npy", tmp_path / "noisy.npy", *GOAL, "--mechanism", "laplace"]
    words += ["--ledger", ledger.path] if paid else []
    done = subprocess.run([sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done
    assert done.stderr.startswith("interrupted: paid (record 1" if paid else "interrupted: no half-written file")
    assert ledger.count() == paid
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ledger", "in.npy"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("command", ["release", "spend"])
def test_words_that_cannot_be_printed_take_nothing_back(ledger, tmp_path, command):
    np.save(tmp_path / "in.npy", np.arange(4.0))
    words = {
        "release": ["release", tmp_path / "in.npy", tmp_path / "noisy.npy", *GOAL, "--mechanism", "laplace", "--ledger",
                    ledger.path],
        "spend": ["ledger", "spend", ledger.path, "laplace", "--shape", 4, *GOAL],
    }[command]  # fmt: skip
    with Path("/dev/full").open("w") as full:
        command_line = [sys.executable, "-m", "lessnoise", *map(str, words)]
        done = subprocess.run(command_line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 4, done
    assert len(done.stderr.splitlines()) == 1
    assert ("record 1" if command == "release" else "number 1") in done.stderr
    assert "No space left" in done.stderr
    assert ledger.count() == 1
    if command == "release":
        assert ln.Release.read(tmp_path / "noisy.npy").value.shape == (4,)


def test_a_ledger_that_fails_after_the_release_takes_nothing_back(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(ln.Ledger, "remaining", fails(ln.LedgerError("it is gone; nothing was spent.")))
    result = release(tmp_path)
    assert result.exit_code == 4
    assert "noisy.npy and its certificate are paid for (record 1) and written" in result.stderr
    assert ln.Release.read(tmp_path / "noisy.npy").value.shape == (4,)


def test_a_name_that_looks_like_markup_is_printed_as_it_is(ledger, tmp_path):
    result = release(tmp_path, name="a[b].npy")
    assert (result.exit_code, "a[b].npy and its" in result.stdout.replace("\n", "")) == (0, True)
    assert json.loads((tmp_path / "a[b].npy.certificate.json").read_text())["private"]
