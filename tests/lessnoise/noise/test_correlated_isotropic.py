"""Isotropic noise plus a multiple of its sum: one output on every path, its law, and the exact sum of normals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

import lessnoise as ln
from lessnoise.noise import (
    CorrelatedIsotropic,
    GammaRadius,
    Grid,
    NormalRadius,
    Real,
    ShellRadius,
    Stream,
    add_noise,
    compiled,
    forms,
    job,
    norm,
    normal,
    prepare_streamed,
    reference,
    ziggurat,
)

P = 1e-9
DTYPES = (np.float64, np.float32)


def seeded(seed):
    return Stream.of(np.random.default_rng(seed))


def laws(n):
    return {
        "l2": CorrelatedIsotropic(GammaRadius(float(n), 1.0, 2.0), Real.exactly(1.0), Real.exactly(0.5)),
        "negative": CorrelatedIsotropic(
            GammaRadius(float(n), 2.0, 2.0), Real.root(Fraction(3)), Real.exactly(-0.1 / n)
        ),
        "r1smg": CorrelatedIsotropic(NormalRadius(Fraction(1600)), Real.exactly(0.3), Real.root(Fraction(1, 7 * n))),
        "shell": CorrelatedIsotropic(
            ShellRadius((0.0, 1.0, 9.0), (0.2, 0.8), n), Real.exactly(2.0), Real.exactly(1.0 / math.sqrt(n))
        ),
    }


LAWS = list(laws(1))


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [1, 2, 7, 150])
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_numpy_and_exact_agree_bit_for_bit(law, n, dtype):
    form = laws(n)[law]
    value = np.random.default_rng(1).normal(size=n).astype(dtype) * dtype(Grid.of(form.deviation(n)).step * 50)
    for seed in range(5 if n < 10 else 1):
        for bits in (8, 40 if dtype == np.float64 else 16):
            outputs = [
                add_noise(form, value, seeded(seed), path=path, margin=margin, bits=bits)
                for path, margin in (("numba", ziggurat.MARGIN), ("numpy", ziggurat.MARGIN), ("numpy", math.inf))
            ]
            assert outputs[0].dtype == dtype
            np.testing.assert_array_equal(outputs[0], outputs[1])
            np.testing.assert_array_equal(outputs[0], outputs[2])
            own = value.copy()
            add_noise(form, own, seeded(seed), path="numba", bits=bits, out=own)
            np.testing.assert_array_equal(outputs[0], own)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_in_place_and_streams_do_not_matter(law, dtype, monkeypatch):
    n = 150_001
    form = laws(n)[law]
    value = (np.random.default_rng(1).normal(size=n) / 100).astype(dtype)
    first = add_noise(form, value, seeded(3), path="numpy")
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(first, add_noise(form, value, seeded(3), path="numba", threads=threads))
    own = value.copy()
    add_noise(form, own, seeded(3), path="numba", out=own)
    np.testing.assert_array_equal(first, own)
    monkeypatch.setattr(ln.noise.core, "_HELD", 2)
    parts = []
    draw = prepare_streamed(form, (n,), np.dtype(dtype), seeded(3), lambda start, count: value[start : start + count])
    draw(lambda part: parts.append(part.copy()))
    np.testing.assert_array_equal(first, np.concatenate(parts))


def test_doubts_are_settled_by_the_exact_sum(monkeypatch):
    levels, original = [], forms.vector_sum
    monkeypatch.setattr(forms, "vector_sum", lambda working, level: (levels.append(level), original(working, level))[1])
    n = 2000
    form, value = laws(n)["l2"], np.linspace(-1.0, 1.0, n)
    fast = add_noise(form, value, seeded(5), path="numba", bits=32)
    assert levels == [1]
    slow = add_noise(form, value, seeded(5), path="numpy", margin=math.inf, bits=32)
    np.testing.assert_array_equal(fast, slow)


def test_kernels_meet_no_doubt_in_ordinary_use(monkeypatch):
    slow, original = [], job.Job.slowly
    monkeypatch.setattr(job.Job, "slowly", lambda self, *rest: (slow.append(1), original(self, *rest))[1])
    n = 1 << 17
    for name in ("r1smg", "shell"):
        add_noise(laws(n)[name], np.zeros(n), seeded(0), path="numba")
        assert not slow, name


def test_the_sum_in_pairs_of_doubles_encloses_the_one_in_integers():
    n = 40_000
    working = job.Job(
        np.zeros(n),
        np.zeros(n),
        seeded(1).claim(),
        normal(),
        Grid.of(1.0),
        ziggurat.MARGIN,
        compiled.compiled_kernels("correlated"),
        2,
        (n,),
    )
    low, high = norm.vector_sum(working, 1)
    near, far = norm.vector_sum(working, 2)
    assert low <= near <= far <= high
    assert high - low < Fraction(1, 2**57)
    assert far - near < Fraction(1, 2**150)
    reader = working.stream.reader()
    x = np.concatenate([reference.sample(normal(), reader, b, working.size(b)).x for b in range(working.blocks)])
    assert abs(Fraction(math.fsum(x)) - low) < n * Fraction(normal().body_error)
    assert abs(Fraction(float(working.kernels.total(x))) - Fraction(math.fsum(x))) < Fraction(1, 2**40)


def test_it_is_the_linear_image_of_isotropic_noise():
    n = 40
    plain = forms.Isotropic(GammaRadius(float(n), 1.0, 2.0))
    for a, c in ((1.0, 0.5), (0.5, -0.01), (2.0, 1.0 / n)):
        form = CorrelatedIsotropic(plain.radius, Real.exactly(a), Real.exactly(c))
        for seed in range(10):
            x = add_noise(plain, np.zeros(n), seeded(seed), bits=30)
            y = add_noise(form, np.zeros(n), seeded(seed), bits=30)
            np.testing.assert_allclose(y, a * x + c * x.sum(), atol=1e-6)


@pytest.mark.slow
def test_the_law_of_its_sum_and_of_its_differences():
    # With R^2 ~ 2 Gamma(M/2) the isotropic noise is a standard normal vector.
    n, a, c, rng = 5, 1.5, 0.4, np.random.default_rng(6)
    form = CorrelatedIsotropic(GammaRadius(float(n), 2.0, math.sqrt(2.0)), Real.exactly(a), Real.exactly(c))
    x = np.array([add_noise(form, np.zeros(n), Stream.of(rng), bits=16) for _ in range(2500)])
    total = x.sum(axis=1) / ((a + c * n) * math.sqrt(n))
    assert stats.kstest(special.ndtr(total), "uniform").pvalue > P
    assert stats.kstest(special.ndtr(total * 1.25), "uniform").pvalue < 1e-4
    difference = (x[:, 0] - x[:, 3]) / (a * math.sqrt(2.0))
    assert stats.kstest(special.ndtr(difference), "uniform").pvalue > P
    entry = x[:, 2] / form.deviation(n)
    assert stats.kstest(special.ndtr(entry), "uniform").pvalue > P
    assert abs(np.corrcoef(total, difference)[0, 1]) < 6.2 / math.sqrt(len(x))


def test_noise_that_is_nothing_is_refused():
    form = CorrelatedIsotropic(NormalRadius(Fraction(1)), Real.exactly(1.0), Real.exactly(-1.0))
    with pytest.raises(ln.InvalidInput, match="standard deviation=0"):
        add_noise(form, np.zeros(1), seeded(0))
