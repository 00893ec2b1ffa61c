"""The stream: one key a release, never shared, copied, replayed or forked."""

import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.noise import Independent, Real, Stream, add_noise, normal
from lessnoise.noise.stream import SEQUENCES, Sequence

FORM = Independent(normal(), Real.exactly(1.0))
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def seeded(seed):
    return Stream.of(np.random.default_rng(seed))


def test_the_key_cannot_be_read_copied_or_pickled():
    stream = Stream.secure().claim()
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never be used twice"):
            call(stream)
    assert "AES-256-CTR" in repr(stream)
    assert not hasattr(stream, "__dict__")
    assert stream._key is None


def test_the_key_comes_from_the_operating_system_when_the_release_begins(monkeypatch):
    asked = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or real(count))
    stream = Stream.secure()
    assert asked == []
    stream.claim()
    assert asked == [32]


def test_a_stream_serves_one_release():
    stream = Stream.secure()
    with pytest.raises(RuntimeError, match="no key yet"):
        stream.reader()
    add_noise(FORM, np.zeros(3), stream)
    with pytest.raises(RuntimeError, match="already"):
        add_noise(FORM, np.zeros(3), stream)


def test_words_have_addresses():
    reader = seeded(0).claim().reader()
    long = reader.words(0, 5, 0, 100)[:100].copy()
    np.testing.assert_array_equal(long[40:60], reader.words(0, 5, 40, 20)[:20])
    assert reader.word(0, 5, 41) == long[41]
    seen = {bytes(reader.words(level, block, 0, 8)[:8]) for level in range(4) for block in (0, 1, 2, 1 << 60)}
    assert len(seen) == 16
    for address in ((1 << 16, 0, 0, 2), (0, 1 << 80, 0, 2), (0, 0, 1, 2), (0, 0, 1 << 33, 2)):
        with pytest.raises(ValueError, match="address"):
            reader.words(*address)


def test_words_are_counter_mode_of_the_cipher():
    # By the cipher itself, block by block: level, block and position are the counter.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = np.random.default_rng(7).bytes(32)
    encrypt = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    counters = b"".join((3 << 112 | 9 << 32 | i).to_bytes(16, "big") for i in range(2, 6))
    expected = np.frombuffer(encrypt.update(counters), dtype=np.uint64)
    np.testing.assert_array_equal(seeded(7).claim().reader().words(3, 9, 4, 8)[:8], expected)


def test_a_sequence_never_repeats_a_word():
    sequence = seeded(1).claim().sequence()
    words = np.concatenate([sequence.words(count) for count in (1, 2, 3, 64, 1000, 1)])
    assert len(np.unique(words)) == 1071
    full = Sequence(seeded(1).claim().reader())
    full._position = (1 << 32) - 2
    full.words(4)
    assert full._block == SEQUENCES + 1


def test_two_releases_never_share_a_stream():
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=100)
    other = ln.laplace(epsilon=1, sensitivity=1, shape=100)
    assert not np.array_equal(mechanism.noise(), mechanism.noise())
    rng = np.random.default_rng(0)
    first, second, third = mechanism.noise(rng), mechanism.noise(rng), other.noise(rng)
    assert not np.array_equal(first, second)
    assert abs(np.corrcoef(second, third)[0, 1]) < 0.7  # one stream for both would give the same signs


def first_words(_=None):
    return Stream.secure().claim().reader().words(0, 0, 0, 4)[:4].tobytes()


def noise(_=None):
    return ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=4).noise().tobytes()


@pytest.mark.slow
def test_many_releases_never_repeat_a_word_sequence():
    # 20,000 streams of four words: two equal ones, or two equal words anywhere, would be a miracle (2^-32).
    words = np.frombuffer(b"".join(first_words() for _ in range(20_000)), dtype=np.uint64)
    assert len(np.unique(words)) == 80_000


@needs_fork
def test_a_forked_child_must_not_draw_its_parents_noise():
    stream = Stream.secure().claim()
    reader = stream.reader()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            reader.words(0, 0, 0, 2)
            os.write(write, b"drew")
        except RuntimeError:
            os.write(write, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"refused"
    reader.words(0, 0, 0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes_draw_different_noise(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    noise()
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        outputs = [noise(), *pool.map(noise, range(4))]
    assert len(set(outputs)) == 5


PROGRAM = """
import sys, time
import lessnoise as ln
m = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=4)
while True:
    print(m.noise().tobytes().hex(), flush=True)
"""


@pytest.mark.slow
def test_killing_and_restarting_never_replays():
    seen = []
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
        lines = [process.stdout.readline() for _ in range(20)]
        process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        process.wait()
        process.stdout.close()
        seen += lines
    assert all(len(line) == 65 for line in seen)
    assert len(set(seen)) == 40


def test_a_seed_gives_the_same_output_on_any_number_of_threads():
    mechanism = ln.l2_mechanism(epsilon=1, delta=1e-6, sensitivity=1, shape=(300, 1000))
    value = np.zeros(mechanism.shape)
    outputs = [mechanism.release(value, np.random.default_rng(5), threads=threads) for threads in (1, 2, 5)]
    for other in outputs[1:]:
        np.testing.assert_array_equal(outputs[0].value, other.value)
    assert outputs[0].certificate.private is False
