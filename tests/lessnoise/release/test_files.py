"""A noisy array and its certificate belong together, in files too: bound by a hash, placed and replaced as one."""

import dataclasses
import hashlib
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise import files
from lessnoise.cli import app

GOAL = ["--sensitivity", "1", "--epsilon", "0.5", "--delta", "1e-7", "--mechanism", "laplace"]
LAPLACE = ln.laplace(epsilon=0.5, sensitivity=1, shape=(2, 3))
COUNTS = {"bins": [4], "bounds": [(0, 1)], "epsilon": 1, "delta": 1e-6}


def beside(path):
    return path.with_name(path.name + ".certificate.json")


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "noisy.npy"
    released = LAPLACE.release(np.zeros((2, 3)))
    released.write(path)
    return path, released


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(*words):
    result = invoke(*words)
    assert result.exit_code == 2, (result.output, result.exception)
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


# The hash.


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, ">f8", "fortran"])
def test_the_certificate_has_the_hash_of_the_file(tmp_path, kind):
    value = np.asfortranarray(np.ones((2, 3))) if kind == "fortran" else np.ones((2, 3), dtype=kind)
    law = ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=(2, 3)) if kind is np.int64 else LAPLACE
    released = law.release(value)
    released.write(str(tmp_path / "noisy.npy"))
    content = (tmp_path / "noisy.npy").read_bytes()
    stored = json.loads(beside(tmp_path / "noisy.npy").read_text())
    assert stored["value_sha256"] == hashlib.sha256(content).hexdigest()
    assert content[:8] == b"\x93NUMPY\x01\x00"
    assert released.certificate.value_sha256 is None
    again = ln.Release.read(tmp_path / "noisy.npy")
    assert again.value.dtype == released.value.dtype
    assert np.array_equal(again.value, released.value)
    assert dataclasses.replace(again.certificate, value_sha256=None) == released.certificate


def test_another_value_is_refused(written):
    path, released = written
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ln.InvalidInput, match=r"is not the value that noisy.npy.certificate.json was written for"):
        ln.Release.read(path)
    np.save(path, released.value)
    assert np.array_equal(ln.Release.read(path).value, released.value)


def test_a_certificate_that_is_missing_or_does_not_bind_is_refused(written):
    path, _ = written
    stored = json.loads(beside(path).read_text())
    del stored["value_sha256"]
    assert ln.Certificate.from_dict(stored).value_sha256 is None
    beside(path).write_text(json.dumps(stored))
    with pytest.raises(ln.InvalidInput, match="is not bound to its certificate"):
        ln.Release.read(path)
    beside(path).unlink()
    with pytest.raises(ln.InvalidInput, match="has no certificate"):
        ln.Release.read(path)


def test_an_array_that_is_missing_is_refused(written):
    path, _ = written
    path.unlink()
    with pytest.raises(ln.InvalidInput, match=r"noisy.npy does not exist"):
        ln.Release.read(path)


def test_the_command_writes_what_the_library_reads(tmp_path):
    np.save(tmp_path / "in.npy", np.arange(6.0).reshape(2, 3))
    printed = invoke("release", tmp_path / "in.npy", tmp_path / "noisy.npy", *GOAL, "--json")
    read = ln.Release.read(tmp_path / "noisy.npy")
    assert json.loads(printed.stdout) == json.loads(beside(tmp_path / "noisy.npy").read_text())
    assert read.value.shape == (2, 3)


@pytest.mark.parametrize("name", ["counts.csv", "counts.png", "counts.npy"])
def test_a_folder_of_counts_is_bound_too(tmp_path, name):
    result = ln.private_histogram({"x": [0.5]}, ["x"], **COUNTS)
    result.save(tmp_path, formats=["csv", "npy"])
    assert ln.HistogramRelease.verify(tmp_path).guarantee == result.certificate.guarantee
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content + b"\n")
    with pytest.raises(ln.InvalidInput, match=f"{name} is not the one that certificate.json was written for"):
        ln.HistogramRelease.verify(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ln.InvalidInput, match=f"{name} is not the one"):
        ln.HistogramRelease.verify(tmp_path)
    (tmp_path / name).write_bytes(content)
    stored = json.loads((tmp_path / "certificate.json").read_text())
    (tmp_path / "certificate.json").write_text(json.dumps({**stored, "sha256": {"../../etc/passwd": "0"}}))
    with pytest.raises(ln.InvalidInput, match=f"{tmp_path}/passwd is not the one"):
        ln.HistogramRelease.verify(tmp_path)
    (tmp_path / "certificate.json").write_text(json.dumps({**stored, "sha256": {}}))
    with pytest.raises(ln.InvalidInput, match="has no sha256"):
        ln.HistogramRelease.verify(tmp_path)
    (tmp_path / "certificate.json").unlink()
    with pytest.raises(ln.InvalidInput, match=r"has no certificate.json"):
        ln.HistogramRelease.verify(tmp_path)


# Replacing as one.

KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
import lessnoise as ln
from lessnoise import files

folder, trials = Path(sys.argv[1]), int(sys.argv[2])
path = folder / "noisy.npy"
made = [ln.laplace(epsilon=e, sensitivity=1, shape=n).release(np.zeros(n)) for e, n in ((1, 100), (2, 20000))]
made[0].write(path)
seen = dict.fromkeys(("both", "array", "certificate", "none", "killed"), 0)


def check():
    there = (path.exists(), path.with_name(path.name + ".certificate.json").exists())
    state = {(1, 1): "both", (1, 0): "array", (0, 1): "certificate", (0, 0): "none"}[there]
    seen[state] += 1
    if state == "both":
        value = ln.Release.read(path).value  # raises, if they do not belong together
        assert any(np.array_equal(value, one.value) for one in made)


def forked(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


if trials == 0:  # die at each step of a replacement, in turn

    def die_at(step):
        left = [step]

        def dying(function):
            def call(*arguments, **options):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return function(*arguments, **options)

            return call

        for name in ("replace", "link", "unlink", "fsync", "chmod"):
            setattr(os, name, dying(getattr(os, name)))
        made[step % 2].write(path, force=True)

    for step in range(40):
        _, status = os.waitpid(forked(lambda: die_at(step)), 0)
        seen["killed"] += os.WIFSIGNALED(status)
        check()
        made[(step + 1) % 2].write(path, force=True)
else:
    rng = random.Random(0)
    begun = time.monotonic()
    made[0].write(path, force=True)
    once = time.monotonic() - begun

    def replace_for_ever():
        while True:
            for one in made[::-1]:
                one.write(path, force=True)

    for _ in range(trials):
        child = forked(replace_for_ever)
        time.sleep(rng.uniform(0.0, 2.0 * once))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        seen["killed"] += 1
        check()
        for left in folder.glob(".lessnoise-*"):
            left.unlink()
        made[0].write(path, force=True)
print(seen)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that are killed")
@pytest.mark.parametrize("trials", [0, 60])
def test_killed_replacements_never_leave_two_that_do_not_belong_together(tmp_path, trials):
    """At every step of a replacement in turn (0), and at random times."""
    words = [sys.executable, "-c", KILLED, str(tmp_path), str(trials)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen = eval(done.stdout)
    assert seen["killed"] >= (10 if trials == 0 else trials)
    assert seen["certificate"] == seen["none"] == 0  # there is always an array
    if trials == 0:
        assert seen["both"] >= 10  # before and after
        assert seen["array"] >= 2  # old and new, while the certificate changes


def test_a_forced_release_replaces_both(written):
    path, released = written
    other = ln.laplace(epsilon=2, sensitivity=1, shape=5).release(np.zeros(5))
    with pytest.raises(ln.InvalidInput, match="exists already"):
        other.write(path)
    assert np.array_equal(ln.Release.read(path).value, released.value)
    other.write(path, force=True)
    assert np.array_equal(ln.Release.read(path).value, other.value)
    assert len(list(path.parent.iterdir())) == 2
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(beside(path).stat().st_mode) == 0o666 & ~mask


def test_without_hard_links_an_existing_file_is_safe_too(written, monkeypatch):
    path, released = written
    other = ln.laplace(epsilon=2, sensitivity=1, shape=5).release(np.zeros(5))

    def unsupported(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", unsupported)
    monkeypatch.setattr(files, "check_free", lambda *_: None)  # somebody else is faster
    with pytest.raises(ln.InvalidInput, match="exists already"):
        other.write(path)
    assert np.array_equal(ln.Release.read(path).value, released.value)
    other.write(path.parent / "new.npy")
    assert np.array_equal(ln.Release.read(path.parent / "new.npy").value, other.value)


# What must not be replaced.


def special(kind, folder):
    place = folder / kind
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(place))
    elif kind == "dangling":
        place.symlink_to(folder / "nowhere")
    elif kind == "device":
        place.symlink_to("/dev/null")
    else:
        (folder / "target").write_text("precious")
        place.symlink_to(folder / "target")
    return place


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="files of other kinds")
@pytest.mark.parametrize("role", ["array", "certificate", "picture"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "dangling", "device", "link"])
def test_only_ordinary_files_are_replaced(tmp_path, kind, role):
    place = special(kind, tmp_path)
    before = place.lstat()
    np.save(tmp_path / "in.npy", np.arange(6.0))
    (tmp_path / "in.csv").write_text("x\n0.5\n")
    if role == "certificate":
        place = place.rename(beside(tmp_path / "noisy.npy"))
    elif role == "picture":
        place = place.rename(tmp_path / "counts.png")
    target = place if role == "array" else tmp_path / "noisy.npy"
    words = ["release", tmp_path / "in.npy", target, *GOAL]
    if role == "picture":
        words = ["histogram", tmp_path / "in.csv", "--x", "x", "--bins", 2, "--bounds", "0:1", "--out", tmp_path]
        words += ["--epsilon", 1, "--delta", 1e-6]
    assert "is a link, a pipe or a device" in refused(*words, "--force")
    assert "exists already" in refused(*words)
    after = place.lstat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)


@pytest.mark.slow
def test_inputs_and_ledgers_are_not_replaced(tmp_path):
    np.save(tmp_path / "in.npy", np.arange(6.0))
    np.save(tmp_path / "x.certificate.json", np.arange(6.0))
    os.replace(tmp_path / "x.certificate.json.npy", tmp_path / "x.certificate.json")
    ledger = ln.Ledger.open(tmp_path / "a.ledger", epsilon=9, delta=1e-5)
    (tmp_path / "linked.npy").symlink_to(tmp_path / "in.npy")
    (tmp_path / "counts.csv").write_text("x\n0.5\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    pay = ["--ledger", ledger.path, "--force"]
    first = tmp_path / "in.npy"
    assert "would replace input=" in refused("release", first, first, *GOAL, *pay)
    assert "would replace input=" in refused("release", tmp_path / "linked.npy", first, *GOAL, *pay)
    assert "would replace input=" in refused("release", tmp_path / "x.certificate.json", tmp_path / "x", *GOAL, *pay)
    for ending in ("", "-journal", "-wal"):
        place = Path(f"{ledger.path}{ending}")
        assert f"would replace ledger{ending}=" in refused("release", first, place, *GOAL, *pay)
    assert "is a file of the ledger itself" in refused("ledger", "export", ledger.path, ledger.path, "--force")
    counts = ["--x", "x", "--bins", 2, "--bounds", "0:1", "--epsilon", 1, "--delta", 1e-6, "--out", tmp_path]
    for data in ("counts.csv", "c*.csv"):
        words = ["histogram", tmp_path / data, *counts, "--format", "csv", *pay]
        assert "would replace data=" in refused(*words)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert ledger.count() == 0


def test_names_that_no_file_can_have_cost_nothing(tmp_path):
    np.save(tmp_path / "in.npy", np.arange(6.0))
    ledger = ln.Ledger.open(tmp_path / "a.ledger", epsilon=9, delta=1e-5)
    pay = [*GOAL, "--ledger", ledger.path]
    for length in (300, 256, 240):  # the certificate's name is 17 letters longer
        assert "is not a name for a file" in refused("release", tmp_path / "in.npy", tmp_path / ("n" * length), *pay)
    assert ledger.count() == 0
    assert invoke("release", tmp_path / "in.npy", tmp_path / ("n" * 238), *pay).exit_code == 0
    with pytest.raises(ln.InvalidInput, match="is not a name for a file"):
        LAPLACE.release(np.zeros((2, 3))).write("a\0b.npy")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners of files")
def test_a_file_of_somebody_elses_in_a_shared_folder_is_told_before_the_payment(tmp_path, monkeypatch):
    (tmp_path / "noisy.npy").write_text("precious")
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1000)
    with pytest.raises(ln.InvalidInput, match="may not be written"):
        files.check_free([tmp_path / "noisy.npy"], force=True)
    tmp_path.chmod(0o777)
    files.check_free([tmp_path / "noisy.npy"], force=True)


def test_folders_that_were_made_for_nothing_are_removed(tmp_path):
    with pytest.raises(KeyError), files.made_folder(tmp_path / "a" / "b"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileExistsError), files.made_folder(tmp_path / "a" / "b"):
        os.makedirs(tmp_path / "a" / "b" / "other" / ".." / "other")
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["other"]


def test_room_is_reserved_where_the_system_cannot(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    with files.staged({tmp_path / "a": 3_000_000}) as staged:
        (temporary,) = staged.temporary.values()
        assert temporary.stat().st_size == 3_000_000
        staged.write(tmp_path / "a", files.writer(b"short"))
        staged.place()
    assert (tmp_path / "a").read_bytes() == b"short"
