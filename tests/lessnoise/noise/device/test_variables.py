"""Words, variables and tiles of the device engine, against the RFC, other arithmetic, and themselves."""

import math
import multiprocessing
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from lessnoise.errors import InvalidInput
from lessnoise.noise import (
    GammaRadius,
    Independent,
    Isotropic,
    NormalRadius,
    Real,
    ShellRadius,
    laplace,
    normal,
)
from lessnoise.noise.device import AcrossSteps, ChaChaStream, add_noise_to_array, is_drawn_on_devices, twin, variables
from lessnoise.noise.device import stream as streams
from lessnoise.noise.device.sources import AcrossNormals, Laplaces, Normals
from lessnoise.noise.exact_arithmetic import ZERO
from lessnoise.noise.grid import Grid
from lessnoise.noise.radius import scalars

FORMS = {
    "Gaussian": Independent(normal(), Real.root(Fraction(3))),
    "Laplace": Independent(laplace(), Real.exactly(1.5)),
    "common": Independent(normal(), Real.exactly(1.5), Real.exactly(0.7)),
    "l2": Isotropic(GammaRadius(3001.0, 1.0, 0.7)),
    "R1SMG": Isotropic(NormalRadius(Fraction(5))),
    "shells": Isotropic(ShellRadius((0.0, 1.0, 3.0), (0.25, 0.75), 3001)),
    "across": AcrossSteps(Real.exactly(2.0), ((7, 1.0), (6, -0.5), (2**32 - 1, 0.25))),
}


def seeded(seed=3):
    return ChaChaStream.of(np.random.default_rng(seed))


def test_known_answers_of_the_cipher():
    """RFC 8439, sections 2.3.2 and A.1 (test vectors 1, 3 and 5)."""
    known = [
        (bytes(range(32)), 1, "000000090000004a00000000", "10f1e7e4d13b5915500fdd1fa32071c4"),
        (bytes(32), 0, "00" * 12, "76b8e0ada0f13d90405d6ae55386bd28"),
        (bytes(31) + b"\x01", 1, "00" * 12, "3aeb5224ecf849929b9d828db1ced4dd"),
        (bytes(32), 0, "00" * 11 + "02", "c2c64d378cd536374ae204b9ef933fcd"),
    ]
    for key, counter, nonce, begins in known:
        level, step, purpose = np.frombuffer(bytes.fromhex(nonce), dtype="<u4").tolist()
        found = streams.claimed(key).blocks(counter, 1, level=level, step=step, purpose=purpose)
        assert found.tobytes().hex().startswith(begins)


def test_every_value_has_words_of_its_own():
    stream = streams.claimed(bytes(range(32)))
    tiles = stream.tiles(0, 3).reshape(-1)
    assert len(np.unique(tiles)) == 3 * streams.TILE
    for place in (0, 255, 256, 2047, 2048, 5000):
        assert stream.word(place, 0) == tiles[place]
        assert stream.word(place, 1) != tiles[place]
        assert stream.word(place, 0, step=1) != tiles[place]


def test_a_stream_serves_one_release_and_cannot_be_copied():
    stream = seeded()
    add_noise_to_array(FORMS["Gaussian"], np.zeros(3), stream)
    with pytest.raises(RuntimeError, match="served a release already"):
        stream.claim()
    with pytest.raises(TypeError, match="copied or pickled"):
        pickle.dumps(stream)
    assert ChaChaStream.secure().private
    assert not seeded().private
    assert "0x" not in repr(stream)


def _draw(stream, answers):
    try:
        stream.word(0, 0)
    except RuntimeError as error:
        answers.put(str(error))
    else:
        answers.put("drawn")


def test_a_forked_process_draws_nothing():
    stream, context = seeded().claim(), multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_draw, args=(stream, answers))
    child.start()
    assert "forked" in answers.get(timeout=20)
    child.join()


@pytest.mark.parametrize("source", [Normals(), Normals(5), Laplaces(), AcrossNormals(((0, 1.0), (1, -0.5), (9, 0.25)))])
def test_floats_are_within_their_error_of_the_exact_values(source):
    stream = streams.claimed(bytes(32))
    x, error, _ = (each.reshape(-1) for each in source.floats(stream, 0, 1))
    for place in range(0, streams.TILE, 31):
        low, high = source.exactly(stream, place)(1)
        assert high - low < Fraction(1, 1 << 50)
        assert abs(Fraction(float(x[place])) - (low + high) / 2) < Fraction(float(error[place])) / 16


def _mpmath_normals(first, second):
    with mpmath.workdps(60):
        energy = -mpmath.log((mpmath.mpf(int(first)) + mpmath.mpf(0.5)) / 2**64)
        angle = 2 * mpmath.pi * (mpmath.mpf(int(second)) + mpmath.mpf(0.5)) / 2**64
        length = mpmath.sqrt(2 * energy)
        return length * mpmath.cos(angle), length * mpmath.sin(angle)


def test_normals_at_the_ends_of_every_piece_against_mpmath():
    """Powers of two, the neighbours of sqrt(1/2), ends of octants: wherever a formula begins or ends."""
    powers = [2**k + d for k in range(33, 64) for d in (-1, 0, 1)]
    roots = [math.isqrt(2 ** (2 * k + 1)) + d for k in range(40, 63) for d in (-1, 0, 1)]
    tops = [2**64 - 2**k - d for k in range(33, 64) for d in (0, 1)] + [variables.TOP << 32, (variables.TOP << 32) - 1]
    firsts = np.array([w for w in (*powers, *roots, *tops) if 2**32 <= w < 2**64 - 2**32], dtype=np.uint64)
    octants = [k * 2**61 + d for k in range(8) for d in (0, 1, 2**60, 2**61 - 1)]
    for second in octants:
        words = np.stack([firsts, np.full_like(firsts, second)])
        x, error, left = variables.normals(words)
        assert not left.any()
        for i in range(second % 7, firsts.size, 7):
            for found, true, allowed in zip(x[:, i], _mpmath_normals(firsts[i], second), error[:, i], strict=True):
                assert abs(mpmath.mpf(float(found)) - true) <= allowed


def test_words_next_to_0_and_1_are_left_to_exact_arithmetic():
    ends = np.array([0, 1, 2**32 - 1, 2**64 - 2**32, 2**64 - 1], dtype=np.uint64)
    assert variables.exponentials(ends)[2].all()
    zeros = variables.normal(lambda level: 0 if level < 2 else 1, lambda level: 0, odd=False)
    assert zeros(0)[0] < 0 < zeros(0)[1], "nothing is known yet"
    assert abs(float(sum(zeros(2)) / 2) - math.sqrt(2 * 192 * math.log(2))) < 0.1


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_output_is_that_of_exact_arithmetic_alone(name, dtype, monkeypatch):
    """Floats decide nothing that real numbers would decide otherwise: with a huge margin the bits are the same."""
    value = np.linspace(-5.0, 5.0, 300).astype(dtype)
    fast = add_noise_to_array(FORMS[name], value, seeded())
    numbers = twin.Line.numbers
    monkeypatch.setattr(twin.Line, "numbers", lambda self: numbers(self) | {"near": 1.0, "rough": 1.0})
    assert np.array_equal(fast, add_noise_to_array(FORMS[name], value, seeded()))


@pytest.mark.parametrize("name", FORMS)
def test_the_bits_do_not_depend_on_threads(name):
    value = np.linspace(-5.0, 5.0, 200_000)
    one, other = (add_noise_to_array(FORMS[name], value, seeded(), threads=threads) for threads in (1, 2))
    assert one.tobytes() == other.tobytes()


def test_outputs_are_on_the_grid_and_zeros_have_no_sign():
    form = FORMS["Gaussian"]
    noisy = add_noise_to_array(form, np.full(100_000, -1e-300), seeded())
    step = Grid.of(form.deviation(1)).step
    assert (noisy % step == 0.0).all()
    zeros = noisy[noisy == 0.0]
    assert zeros.size > 20
    assert not np.signbit(zeros).any()


@pytest.mark.parametrize(("source", "cumulative"), [(Normals(), "normal"), (Laplaces(), "laplace")])
def test_variables_have_their_law(source, cumulative):
    """Kolmogorov and Smirnov's distance of 2^20 values: above 3.3/sqrt(n) with probability below 1e-9."""
    x = np.sort(source.floats(ChaChaStream.secure().claim(), 0, 512)[0].reshape(-1))
    if cumulative == "normal":
        below = 0.5 * (1.0 + np.vectorize(math.erf)(x[::64] / math.sqrt(2.0)))
    else:
        below = np.where(x[::64] < 0, 0.5 * np.exp(-np.abs(x[::64])), 1.0 - 0.5 * np.exp(-np.abs(x[::64])))
    distance = np.abs(below - np.arange(0, x.size, 64) / x.size).max()
    assert distance < 3.4 / math.sqrt(x.size)


def test_pairs_of_normals_are_independent():
    x = Normals().floats(ChaChaStream.secure().claim(), 0, 512)[0]
    first, second = x[:, 0::2].reshape(-1), x[:, 1::2].reshape(-1)
    n = first.size
    for one, other in ((first, second), (first**2 - 1, second**2 - 1), (first[1:], first[:-1])):
        assert abs(np.mean(one * other)) < 6.5 * np.std(one) * np.std(other) / math.sqrt(n)


def test_the_norm_is_a_product_of_words():
    """The exact norm against the sum of squares of exact normals, for counts that end in the middle of pairs."""
    for count in (1, 3, 255, 256, 257, 700):
        stream = seeded(count).claim()
        low, high = twin.norm(stream, count, 2)
        squares = [Normals().exactly(stream, place)(2) for place in range(count)]
        total = sum(((a + b) / 2) ** 2 for a, b in squares)
        assert abs(float((low + high) / 2) - math.sqrt(total)) < 1e-14 * math.sqrt(count)
        found = twin.Tiles(np.zeros(count), np.zeros(count), stream).squares()()
        assert abs(Fraction(found.units, 1 << twin.FIXED) - total) * 2**twin.FIXED <= twin.square_error(found, count)


def test_isotropic_noise_has_the_length_that_was_drawn():
    value = np.zeros(5001)
    noisy = add_noise_to_array(Isotropic(ShellRadius((2.0, 2.0000001), (1.0,), 5001)), value, seeded())
    assert abs(np.linalg.norm(noisy) - 2.0) < 1e-3


def test_the_radius_of_shells_in_floats_is_within_its_error():
    rng = np.random.default_rng(1)
    for _ in range(150):
        edges = 10 ** rng.uniform(-5, 5) * np.concatenate([[0.0], 1.0 + np.cumsum(10 ** rng.uniform(-9, 0, 3))])
        start = int(rng.integers(2))
        drawn = ShellRadius(edges[start:], rng.random(3 - start), int(10 ** rng.uniform(0, 8))).draw(
            scalars(ChaChaStream.of(rng).claim())
        )
        low, _ = drawn.interval(2)
        assert abs(Fraction(drawn.value) - low) <= Fraction(drawn.error) * low * Fraction(1, 2)
        assert drawn.error < 2.0**-40


def test_a_step_is_drawn_again_with_the_same_bits():
    """What correlated noise across steps rests on: two steps with one vector in common."""
    stream = seeded().claim()
    one = add_noise_to_array(AcrossSteps(Real.exactly(2.0**20), ((3, 1.0),)), np.zeros(9), stream)
    both = add_noise_to_array(AcrossSteps(Real.exactly(2.0**20), ((4, 1.0), (3, 1.0))), np.zeros(9), stream)
    other = add_noise_to_array(AcrossSteps(Real.exactly(2.0**20), ((4, 1.0),)), np.zeros(9), stream)
    assert np.abs(both - one - other).max() <= 2.0**14
    assert (one != other).all()


def test_rows_that_make_no_sense_are_refused():
    for rows in ((), ((1, 1.0), (1, 2.0)), ((-1, 1.0),), ((1, math.nan),), ((1, 0.0),)):
        with pytest.raises(InvalidInput):
            AcrossSteps(Real.exactly(1.0), rows)


def test_a_factor_beyond_floats_is_settled_exactly():
    """Noise far longer than the grid holds: the output is moved to the end, as on the CPU."""
    grid = Grid(1.0, single=True)
    line = twin.Line(Normals(), Real.exactly(2.0**30), ZERO, grid)
    out = twin.rounded(line, seeded().claim(), 0, np.zeros(20))
    assert (np.abs(out) <= 2.0**24).all()
    assert (np.abs(out) == 2.0**24).sum() > 15


def test_forms_that_a_device_does_not_know_are_the_cpus():
    assert all(is_drawn_on_devices(form) for form in FORMS.values())
    assert not is_drawn_on_devices(None)
