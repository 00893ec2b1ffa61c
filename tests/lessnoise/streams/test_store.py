"""The folder of a stream: crashes, second processes, copies, and files that were changed."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.streams import StreamDamaged

PUSHER = Path(__file__).with_name("pusher.py")
OPTIONS = [
    pytest.param({"strategy": "tree"}, id="geometric"),
    pytest.param({"strategy": "buffers", "delta": 1e-6}, id="gaussian"),
    pytest.param({"strategy": "banded", "delta": 1e-6}, id="banded"),
    pytest.param({"strategy": "square-root", "delta": 1e-6}, id="square-root"),
]


def seeded():
    return np.random.default_rng(7)


def made(folder, periods=20, **options):
    return ln.Stream(periods=periods, epsilon=1, path=folder, rng=seeded(), **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_stream_goes_on_where_it_was(tmp_path, options):
    whole = ln.Stream(periods=20, epsilon=1, rng=seeded(), shape=3, **options)
    expected = [whole.push(np.arange(3) + t) for t in range(20)]
    stream = made(tmp_path / "s", shape=3, **options)
    found = []
    for t in range(20):
        found.append(stream.push(np.arange(3) + t, period=t + 1))
        stream.close()
        stream = ln.Stream.open(tmp_path / "s")
        assert np.array_equal(stream.push(np.arange(3) + t, period=t + 1), found[-1])
        with pytest.raises(ln.InvalidInput, match="another value"):
            stream.push(np.arange(3) + t + 1, period=t + 1)
    assert np.array_equal(found, expected)
    assert np.array_equal(stream.totals, expected)
    assert np.array_equal(stream.window(4, 9), whole.window(4, 9))
    assert not stream.private


def test_files_are_of_the_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        stream = ln.Stream(periods=3, epsilon=1, path=tmp_path / "s")
        stream.push(1)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "s").iterdir()} == {0o600}
    assert {path.name for path in (tmp_path / "s").iterdir()} == {"lock", "state", "stream.json", "totals"}
    stream.close()
    (tmp_path / "s" / "stream.json").chmod(0o644)
    with pytest.raises(ln.InvalidInput, match="chmod 600"):
        ln.Stream.open(tmp_path / "s")


@pytest.mark.slow
def test_only_one_at_a_time(tmp_path):
    with made(tmp_path / "s") as stream:
        with pytest.raises(ln.InvalidInput, match="in use"):
            ln.Stream.open(tmp_path / "s")
        code = "import sys, lessnoise as ln; ln.Stream.open(sys.argv[1])"
        other = subprocess.run([sys.executable, "-c", code, tmp_path / "s"], capture_output=True, text=True)
        assert "in use by another process" in other.stderr
        stream.push(1)
    with pytest.raises(ln.InvalidInput, match="is closed"):
        stream.push(1)
    ln.Stream.open(tmp_path / "s")  # forgotten, and so closed
    ln.Stream.open(tmp_path / "s").close()
    with pytest.raises(ln.InvalidInput, match="exists already"):
        made(tmp_path / "s")
    with pytest.raises(ln.InvalidInput, match="is not a stream"):
        ln.Stream.open(tmp_path / "t")


def test_changed_files_and_older_copies_are_refused(tmp_path):
    folder = tmp_path / "s"
    with made(folder) as stream:
        for value in (1, 2, 3):
            stream.push(value)
    older = tmp_path / "older"
    shutil.copytree(folder, older)
    with ln.Stream.open(folder) as stream:
        stream.push(4)

    def refused(name, change, words):
        spoiled = tmp_path / "spoiled"
        shutil.copytree(folder, spoiled)
        change(spoiled / name)
        with pytest.raises(StreamDamaged, match=words):
            ln.Stream.open(spoiled)
        shutil.rmtree(spoiled)

    def flip(place):
        def change(path):
            content = bytearray(path.read_bytes())
            content[place] ^= 1
            path.write_bytes(content)

        return change

    for place in (0, 25, 60, -40, -1):
        refused("state", flip(place), "state is not as it was written")
    refused("state", lambda path: path.write_bytes(b""), "not as it was written")
    refused("state", lambda path: shutil.copy(older / "state", path), "older than totals")
    refused("state", lambda path: path.unlink(), "older than totals")
    refused("totals", flip(3), "totals is not as it was written")
    refused("totals", lambda path: os.truncate(path, 16), "shorter")
    refused("totals", lambda path: path.unlink(), "cannot be opened")
    text = (folder / "stream.json").read_text()
    refused(
        "stream.json", lambda path: path.write_text(text.replace('"epsilon": 1.0', '"epsilon": 9.0')), "stream.json"
    )
    refused("stream.json", lambda path: path.write_text("{}"), "stream.json")
    for missing in (8, 12, 24):  # the last total is in the state: a crash may come before it is appended
        torn = tmp_path / "torn"
        shutil.copytree(folder, torn)
        os.truncate(torn / "totals", 32 - 8 if missing == 8 else 32 - 4)
        with ln.Stream.open(torn) as stream:
            assert np.array_equal(stream.totals, np.fromfile(folder / "totals"))
        shutil.rmtree(torn)


def test_nodes_of_a_torn_period_are_completed_and_older_states_refused(tmp_path):
    """A period that completes a block releases two rows; the state has both, whatever of them is in the file."""
    folder = tmp_path / "s"
    stream = made(folder, 64, strategy="tree")
    size = stream.plan.strategy.sizes[1]
    for value in range(size):
        stream.push(value)
    assert (folder / "totals").stat().st_size == 8 * (size + 1)
    expected, totals = stream.window(size), stream.totals
    stream.close()
    for length in range(8 * (size - 1), 8 * (size + 1) + 1, 4):
        torn = tmp_path / f"{length}"
        shutil.copytree(folder, torn)
        os.truncate(torn / "totals", length)
        with ln.Stream.open(torn) as again:
            assert again.window(size) == expected
            assert np.array_equal(again.totals, totals)
    os.truncate(torn / "totals", 8 * (size - 1) - 1)
    with pytest.raises(StreamDamaged, match="shorter"):
        ln.Stream.open(torn)
    with ln.Stream.open(folder) as later:
        later.push(1)
    shutil.copy(tmp_path / f"{8 * size}" / "state", folder / "state")
    with pytest.raises(StreamDamaged, match="older than totals"):
        ln.Stream.open(folder)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_failure_at_every_step_of_a_push_leaves_a_stream_that_goes_on(tmp_path, monkeypatch, options):
    """The n-th call of the system fails, for every n: what is not returned comes again, the same."""
    whole = ln.Stream(periods=20, epsilon=1, rng=seeded(), **options)
    expected = [whole.push(value) for value in (1, 2, 3)]
    failed = 0
    for last in range(1, 100):
        stream = made(tmp_path / f"{last}", **options)
        stream.push(1)
        calls = 0

        def failing(function, last=last):
            def call(*arguments):
                nonlocal calls
                calls += 1
                if calls == last:
                    raise OSError(28, "No space left on device")
                return function(*arguments)

            return call

        with monkeypatch.context() as broken:
            for name in ("fsync", "pwrite", "replace"):
                broken.setattr(os, name, failing(getattr(os, name)))
            try:
                stream.push(2)
            except OSError:
                failed += 1
                with pytest.raises(ln.InvalidInput, match="open it again"):
                    stream.push(2)
        stream.close()
        with ln.Stream.open(tmp_path / f"{last}") as again:
            assert again.push(2, period=2) == expected[1]
            assert again.push(3, period=3) == expected[2]
            assert again.totals.tolist() == expected
        if calls < last:
            break
    assert failed >= 8


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_killed_at_any_point_it_gives_the_same_totals(tmp_path, options):
    """Six processes, killed after random times, and one that ends: they tell, together, what one process tells."""
    periods, folder = 100, tmp_path / "s"
    made(folder, periods, **options).close()
    whole = ln.Stream(periods=periods, epsilon=1, rng=seeded(), **options)
    expected = [whole.push(period) for period in range(1, periods + 1)]
    done = subprocess.run([sys.executable, PUSHER, folder, "7"], capture_output=True, text=True, check=True)
    told: dict[int, float] = {}
    for line in done.stdout.splitlines():
        period, total = line.split()
        assert told.setdefault(int(period), float(total)) == float(total)
    assert told == dict(enumerate(expected, start=1))
    with ln.Stream.open(folder) as stream:
        assert stream.totals.tolist() == expected
        assert all(stream.window(first, 95) == whole.window(first, 95) for first in range(1, 96))
