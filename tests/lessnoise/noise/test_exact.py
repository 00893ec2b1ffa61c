"""One output, whatever the path: compiled code, NumPy, exact arithmetic, any number of threads, in place or not."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessnoise.noise import (
    Behind,
    GammaRadius,
    Grid,
    Independent,
    Isotropic,
    Matrix,
    NormalRadius,
    Real,
    ShellRadius,
    Stream,
    WishartForm,
    add_noise,
    compiled,
    forms,
    job,
    laplace,
    matrix,
    norm,
    normal,
    power,
    reference,
    ziggurat,
)
from lessnoise.noise import (
    exact_arithmetic as exact,
)

DENSITIES = {"normal": normal, "laplace": laplace} | {f"power {p}": lambda p=p: power(p) for p in (1.0001, 1.5, 100.0)}


def seeded(seed):
    return Stream.of(np.random.default_rng(seed))


def laws(n):
    return {
        "gaussian": Independent(normal(), Real.root(Fraction(3))),
        "laplace": Independent(laplace(), Real.exactly(0.3)),
        "power 1.3": Independent(power(1.3), Real.exactly(0.7)),
        "power 100": Independent(power(100.0), Real.exactly(2.0)),
        "correlated": Independent(normal(), Real.root(Fraction(5, 3)), Real.root(Fraction(121))),
        "r1smg": Isotropic(NormalRadius(Fraction(1600))),
        "l2": Isotropic(GammaRadius(float(n), 1.0, 2.0)),
        "gaussian as radial": Isotropic(GammaRadius(float(n), 2.0, 2.0)),
        "heavy": Isotropic(GammaRadius(0.3, 0.7, 2000.0)),
        "shell": Isotropic(ShellRadius((0.0, 1.0, 3.0, 9.0), (0.2, 0.5, 0.3), n)),
    }


LAWS = list(laws(1))
DTYPES = (np.float64, np.float32)


# The tables: the four inequalities that make the rejection exact.


@pytest.mark.slow
@pytest.mark.parametrize("name", DENSITIES)
def test_tables_satisfy_the_four_inequalities_exactly(name):
    density = DENSITIES[name]()
    level = 1
    q, r, slope = exact.heights(density, level), Fraction(density.r), Fraction(density.slope)

    def g(x):
        return exact._drop(density, (x, x), level)

    widths = [Fraction(float(w)) for w in density.widths]
    assert all((x * 2**24).denominator == 1 for x in (*widths, r, slope))
    at_r = g(r)
    for i in range(1, ziggurat.LAYERS):
        assert g(widths[i])[0] >= at_r[1] - exact.ln(q[i], level)[0]  # cover
        assert abs(Fraction(float(density.heights[i])) - q[i][0]) < q[i][0] * Fraction(1, 2**50)
    assert exact.ln(q[ziggurat.LAYERS], level)[0] >= at_r[1]  # top
    assert (widths[0] - r) * slope >= 1  # tail
    derivative = {0: (r, r), 1: (Fraction(1), Fraction(1))}.get(density.kind)
    if derivative is None:
        power_of = exact.power((r, r), density.power - 1.0, level)
        derivative = tuple(Fraction(density.power) * end for end in power_of)
    assert slope <= derivative[0]
    if name == "laplace":
        assert widths[0] - r == 1
    for i in range(ziggurat.LAYERS - 1):
        inner = Fraction(float(density.inner[i])) + Fraction(1, 2**40)
        assert g(inner)[1] <= at_r[0] - exact.ln(q[i + 1], level)[1]  # inner
    assert density.inner[-1] == 0.0


@pytest.mark.parametrize("name", DENSITIES)
def test_tables_waste_little(name):
    density = DENSITIES[name]()
    half = math.sqrt(math.pi / 2) if name == "normal" else math.gamma(1.0 + 1.0 / density.power)
    area = ziggurat.LAYERS * density.widths[0] * math.exp(-ziggurat._exponent(density.kind, density.power, density.r))
    assert 0.996 < half / area <= 1.0


# Paths.


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [1, 2, 7, 150])
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_numpy_and_exact_agree_bit_for_bit(law, n, dtype):
    value = np.random.default_rng(1).normal(size=n).astype(dtype) * dtype(3)
    for seed in range(6 if n < 10 else 1):
        outputs = [
            add_noise(laws(n)[law], value, seeded(seed), path=path, margin=margin)
            for path, margin in (("numba", ziggurat.MARGIN), ("numpy", ziggurat.MARGIN), ("numpy", math.inf))
        ]
        assert outputs[0].dtype == dtype
        np.testing.assert_array_equal(outputs[0], outputs[1])
        np.testing.assert_array_equal(outputs[0], outputs[2])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_and_in_place_do_not_matter(law, dtype):
    n = 150_001
    value = (np.random.default_rng(1).normal(size=n) / 100).astype(dtype)
    form = laws(n)[law]
    first = add_noise(form, value, seeded(3), path="numpy")
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(first, add_noise(form, value, seeded(3), path="numba", threads=threads))
    own = value.copy()
    assert np.shares_memory(add_noise(form, own, seeded(3), path="numba", out=own), own)
    np.testing.assert_array_equal(first, own)
    assert not np.array_equal(first, add_noise(form, value, seeded(4)))


def turn(size, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (4, 7)])
@pytest.mark.parametrize("sides", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_noise_agrees_on_every_path(shape, sides, dtype):
    rng = np.random.default_rng(0)
    bases = [turn(size, 5) if used else None for size, used in zip(shape, sides, strict=True)]
    form = Matrix(rng.uniform(1, 5, shape[0]), rng.uniform(1, 5, shape[1]), *bases)
    value = (5 * rng.normal(size=shape)).astype(dtype)
    first = add_noise(form, value, seeded(1), path="numba")
    for keywords in ({"path": "numpy"}, {"path": "numpy", "margin": math.inf}, {"out": value.copy()}):
        np.testing.assert_array_equal(first, add_noise(form, value, seeded(1), **keywords))


@pytest.mark.slow
def test_matrix_doubts_are_settled_alike_in_pairs_of_doubles_and_in_integers(monkeypatch):
    # A grid so fine that BLAS leaves some entries open.
    form = Matrix(np.linspace(1.0, 3.0, 40), np.linspace(2.0, 1.0, 30), turn(40, 1), turn(30, 2))
    value, levels = np.zeros((40, 30)), []
    original = Matrix._settle

    def settle(self, working, doubtful, level):
        levels.append((len(doubtful), level))
        return original(self, working, doubtful, level)

    monkeypatch.setattr(Matrix, "_settle", settle)
    fast = add_noise(form, value, seeded(1), path="numba", bits=34)
    slow = add_noise(form, value, seeded(1), path="numpy", bits=34)
    assert levels[0][0] > 3
    assert [level for _, level in levels] == [1, 1]
    np.testing.assert_array_equal(fast, slow)


@settings(max_examples=40, deadline=None)
@given(st.floats(-1e6, 1e6), st.integers(0, 2**32), st.sampled_from([2.0**-40, 2.0**-12, 0.3, 1e3]), st.floats(-1, 1))
def test_the_output_depends_on_the_numbers_behind_the_values_alone(value, seed, error, off):
    form = Independent(laplace(), Real.exactly(2.0))
    numbers = [Fraction(value) + Fraction(k, 7) for k in range(6)]
    near = np.array([float(number) for number in numbers])
    wanted = add_noise(form, near, seeded(seed), margin=math.inf, behind=Behind(1.0, numbers.__getitem__))
    moved = near + 0.99 * off * error
    for path in ("numba", "numpy"):
        found = add_noise(form, moved, seeded(seed), path=path, behind=Behind(error + 2.0**-30, numbers.__getitem__))
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("dtype", DTYPES)
def test_wishart_noise_agrees_on_every_path_and_is_symmetric(size, dtype):
    form, rng = WishartForm(0.7), np.random.default_rng(0)
    value = rng.normal(size=(size, size)).astype(dtype)
    value = value + value.T
    for bits in (8, 12):
        first = add_noise(form, value, seeded(1), path="numba", bits=bits)
        np.testing.assert_array_equal(first, first.T)
        for keywords in ({"path": "numpy"}, {"path": "numpy", "margin": math.inf}, {"out": value.copy()}):
            np.testing.assert_array_equal(first, add_noise(form, value, seeded(1), bits=bits, **keywords))


def test_wishart_doubts_over_several_blocks_are_settled(monkeypatch):
    # A grid so fine that floats leave some entries open, of normals that fill two blocks.
    form, value, settled = WishartForm(3.0), np.zeros((128, 128)), []
    original = WishartForm._entry
    monkeypatch.setattr(WishartForm, "_entry", lambda *args: settled.append(args) or original(*args))
    fast = add_noise(form, value, seeded(2), path="numba", bits=33)
    slow = add_noise(form, value, seeded(2), path="numpy", bits=33)
    assert len(settled) > 4
    np.testing.assert_array_equal(fast, slow)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.integers(0, 2**32), st.floats(1.0, 40.0), st.integers(0, 20))
def test_exact_and_fast_agree_for_any_value_and_scale(value, scale, seed, p, bits):
    values = np.array([value, 0.0, value / 3])
    for density in (normal(), power(round(p))):
        form = Independent(density, Real.exactly(scale))
        a = add_noise(form, values, seeded(seed), path="numba", bits=bits)
        b = add_noise(form, values, seeded(seed), path="numpy", margin=math.inf, bits=bits)
        np.testing.assert_array_equal(a, b)


def test_a_value_on_a_cell_boundary_and_tiny_noise():
    # Half a cell, and a radius so small that value + noise is the value in floats: only the noise's sign counts.
    n = 2000
    form = Isotropic(GammaRadius(0.05, 1.0, 1.0))
    step = Grid.of(form.deviation(n)).step
    value = np.full(n, 0.5 * step)
    for seed in range(4):
        fast = add_noise(form, value, seeded(seed), path="numba")
        np.testing.assert_array_equal(fast[:40], add_noise(form, value, seeded(seed), path="numpy")[:40])
        assert set(np.unique(fast[np.abs(fast) < 2 * step] / step)) <= {-1.0, 0.0, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_doubts_in_place_and_in_overlapping_memory(law, dtype):
    # A grid so fine that every block has doubts: the value must still be there when they are settled.
    n = 300
    form, bits = laws(n)[law], 40 if dtype == np.float64 else 18
    value = np.random.default_rng(2).normal(size=n).astype(dtype) * dtype(Grid.of(form.deviation(n)).step)
    first = add_noise(form, value, seeded(1), path="numpy", bits=bits)
    for path in ("numba", "numpy"):
        own = value.copy()
        np.testing.assert_array_equal(first, add_noise(form, own, seeded(1), path=path, bits=bits, out=own))
        room = np.append(value, dtype(0))
        np.testing.assert_array_equal(first, add_noise(form, room[:-1], seeded(1), path=path, bits=bits, out=room[1:]))


def test_matrix_doubts_in_place():
    form = Matrix(np.linspace(1.0, 3.0, 20), np.linspace(2.0, 1.0, 15), turn(20, 1), turn(15, 2))
    value = np.random.default_rng(2).normal(size=(20, 15))
    first = add_noise(form, value, seeded(1), path="numpy", bits=36)
    for path in ("numba", "numpy"):
        own = value.copy()
        np.testing.assert_array_equal(first, add_noise(form, own, seeded(1), path=path, bits=36, out=own))
    assert not np.array_equal(first, value)


def test_doubt_is_rare_but_the_exact_side_is_used():
    # With a grid of 2^-44 deviations many values are within the float error of a boundary.
    form = Independent(normal(), Real.exactly(1.0))
    fast = add_noise(form, np.zeros(1500), seeded(0), path="numba", bits=44)
    slow = add_noise(form, np.zeros(1500), seeded(0), path="numpy", margin=math.inf, bits=44)
    np.testing.assert_array_equal(fast, slow)


def test_radial_doubt_is_settled_by_the_exact_norm(monkeypatch):
    levels = []
    original = forms.norm
    monkeypatch.setattr(forms, "norm", lambda working, level: (levels.append(level), original(working, level))[1])
    value = np.linspace(-1.0, 1.0, 2000)
    form = Isotropic(GammaRadius(2000.0, 1.0, 1.0))
    fast = add_noise(form, value, seeded(5), path="numba", bits=36)
    assert levels == [1]
    slow = add_noise(form, value, seeded(5), path="numpy", margin=math.inf, bits=36)
    np.testing.assert_array_equal(fast, slow)


def test_the_norm_in_pairs_of_doubles_encloses_the_one_in_integers():
    n = 40_000
    working = job.Job(
        np.zeros(n),
        np.zeros(n),
        seeded(1).claim(),
        normal(),
        Grid.of(1.0),
        ziggurat.MARGIN,
        compiled.compiled_kernels("matrix"),
        2,
        (n,),
    )
    low, high = norm.norm(working, 1)
    near, far = norm.norm(working, 2)
    assert low <= near <= far <= high
    assert (high - low) < low / 2**70
    assert (far - near) < near / 2**150
    reader = working.stream.reader()
    x = np.concatenate([reference.sample(normal(), reader, b, working.size(b)).x for b in range(working.blocks)])
    assert math.isclose(math.sqrt(math.fsum(x * x)), float(low), rel_tol=2.0**-48)


def test_words_beyond_the_reserve(monkeypatch):
    # Should a block's reserve ever run out, the reference goes on in the same stretch and nothing changes.
    form, value = Independent(normal(), Real.exactly(1.0)), np.zeros(5000)
    first = add_noise(form, value, seeded(2), path="numpy")
    for module in (reference, job):
        monkeypatch.setattr(module, "reserve", lambda count: 2)
    np.testing.assert_array_equal(first, add_noise(form, value, seeded(2), path="numpy"))
    np.testing.assert_array_equal(first, add_noise(form, value, seeded(2), path="numba"))


def test_kernels_meet_no_doubt_in_ordinary_use(monkeypatch):
    slow = []
    original = job.Job.slowly
    monkeypatch.setattr(job.Job, "slowly", lambda self, *rest: (slow.append(1), original(self, *rest))[1])
    n = 1 << 20
    for name in ("gaussian", "laplace", "r1smg"):
        add_noise(laws(n)[name], np.zeros(n), seeded(0), path="numba")
    assert not slow
    bounds = matrix.gamma(1000)
    assert 1000 * 2.0**-53 < bounds < 1010 * 2.0**-53


# Without compiled code.


def run_python(code, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


PROGRAM = """
import sys
{before}
import numpy as np
from lessnoise.noise import Independent, Real, Stream, add_noise, compiled, normal
form = Independent(normal(), Real.exactly(1.0))
y = add_noise(form, np.zeros(3000), Stream.of(np.random.default_rng(1)), path="numba")
print(bool(compiled._state.ready), float(y.sum()))
"""


@pytest.mark.slow
def test_numba_missing_or_without_a_cache_folder_is_no_obstacle():
    expected = add_noise(Independent(normal(), Real.exactly(1.0)), np.zeros(3000), seeded(1)).sum()
    missing = run_python(PROGRAM.format(before="sys.modules['numba'] = None"))
    assert missing.stdout.split() == ["False", str(expected)], missing.stderr
    nowhere = "import numba.core.caching as c; c.CacheImpl._locator_classes = []; c._CacheImpl._locator_classes = []"
    uncached = run_python(PROGRAM.format(before=f"try:\n    {nowhere}\nexcept AttributeError:\n    pass"))
    assert uncached.stdout.split() == ["True", str(expected)], uncached.stderr


@pytest.mark.slow
def test_importing_loads_neither_numba_nor_the_cipher():
    code = "import sys, lessnoise; print([m for m in ('numba', 'cryptography', 'scipy') if m in sys.modules])"
    assert run_python(code).stdout.strip() == "[]"
