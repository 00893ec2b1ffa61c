"""Tensors are released where they lie, and come back there."""

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import noise as device
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import device_form

torch = pytest.importorskip("torch", reason="needs PyTorch")

GAUSSIAN = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=(2, 3))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_tensor_gives_a_tensor_of_its_type(dtype):
    value = torch.ones(2, 3, dtype=dtype, requires_grad=True)
    made = GAUSSIAN.release(value)
    assert isinstance(made.value, torch.Tensor)
    assert made.value.dtype == dtype
    assert made.value.shape == value.shape
    assert not made.value.requires_grad
    assert made.certificate.private
    assert not torch.equal(made.value, value)


def test_the_noise_is_that_of_the_array():
    value = torch.arange(6.0).reshape(3, 2).T  # not contiguous
    one = GAUSSIAN.release(value, np.random.default_rng(1))
    other = GAUSSIAN.release(value.numpy(), np.random.default_rng(1))
    assert np.array_equal(one.value.numpy(), other.value)
    assert one.certificate == other.certificate
    assert not one.certificate.private


def test_integers_stay_integers():
    counts = ln.geometric(epsilon=1, sensitivity=1, shape=4)
    made = counts.release(torch.tensor([1, 2, 3, 4], dtype=torch.int32))
    assert made.value.dtype == torch.int64


def test_a_released_tensor_is_written_and_read(tmp_path):
    made = GAUSSIAN.release(torch.ones(2, 3, dtype=torch.bfloat16))
    made.write(tmp_path / "noisy.npy")
    assert np.array_equal(ln.Release.read(tmp_path / "noisy.npy").value, made.value.float().numpy())


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (lambda: torch.ones(3, 2), r"value.shape=\(3, 2\)"),
        (lambda: torch.ones(2, 3, dtype=torch.complex64), "complex64"),
        (lambda: torch.ones(2, 3).to_sparse(), "sparse"),
        (lambda: torch.full((2, 3), torch.nan), r"value\[0, 0\]=nan"),
        (lambda: torch.full((2, 3), 1e30), "exceeds"),
        (lambda: torch.ones(2, 3, device="meta"), "dense tensor"),
        (lambda: torch.ones(2, 3).to(torch.float8_e4m3fn), "float8_e4m3fn cannot be computed with"),
    ],
)
def test_what_cannot_be_released_is_refused(value, says):
    with pytest.raises(InvalidInput, match=says):
        GAUSSIAN.release(value())


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (lambda: torch.full((3,), torch.nan), r"value\[0\]=nan is not finite"),
        (lambda: torch.tensor([0.0, torch.inf, 0.0]), r"value\[1\]=inf"),
        (lambda: torch.tensor([0.0, 0.0, 1e30]), r"value\[2\]=1e\+30 exceeds .* pass float64"),
    ],
)
def test_the_device_engine_refuses_the_same(value, says):
    form, stream = device_form(GAUSSIAN.law, (3,)), device.ChaChaStream.secure()
    with pytest.raises(InvalidInput, match=says):
        device.prepare_noise_on_device(form, value(), stream)
    assert stream.unclaimed, "before a key is drawn"


def test_what_fails_in_the_middle_leaves_nothing(monkeypatch):
    """Out of memory, a device that disappears: one error, no half release, and the stream is used up."""
    form, stream = device_form(GAUSSIAN.law, (3,)), device.ChaChaStream.secure()
    out = torch.zeros(3)
    drawing = device.prepare_noise_on_device(form, torch.zeros(3), stream, out=out)

    def fails(*_):
        out.fill_(7.0)
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr("lessnoise.noise.device.engine.forms.add", fails)
    with pytest.raises(ln.LessnoiseError, match=r"in the middle of a release .*nothing of it was returned"):
        drawing()
    assert out.isnan().all()
    assert not stream.unclaimed


def test_an_output_that_does_not_fit_is_refused():
    form = device_form(GAUSSIAN.law, (3,))
    for out in (torch.zeros(4), torch.zeros(3, dtype=torch.float64), torch.zeros(6)[::2], np.zeros(3)):
        with pytest.raises(InvalidInput, match="out="):
            device.prepare_noise_on_device(form, torch.zeros(3), device.ChaChaStream.secure(), out=out)


def test_an_output_over_the_value_reads_it_first():
    form = device_form(GAUSSIAN.law, (3000,))
    room = torch.arange(3001.0)
    seeded = [device.ChaChaStream.of(np.random.default_rng(2)) for _ in range(2)]
    apart = device.add_noise_on_device(form, room[1:], seeded[0])
    assert torch.equal(device.add_noise_on_device(form, room[1:], seeded[1], out=room[:3000]), apart)


@pytest.mark.parametrize(
    ("law", "drawn"),
    [
        (ln.Laplace(3.0), True),
        (ln.Radial(10, 2.0, 3.0), True),
        (ln.Radial(10, 1.0, 3.0), True),
        (ln.Radial(1, 2.0, 3.0), True),
        (ln.least_noise(epsilon=1, delta=1e-6, sensitivity=1, shape=10).law, True),
        (ln.Geometric(1.0), True),
        (ln.Geometric(1e-3), True),
        (ln.Geometric(1e-5), False),
        (ln.Geometric(1.0, 1e-6), False),
        (ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=1000, shape=10).law, True),
        (ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=1e6, shape=10).law, False),
    ],
)
def test_which_laws_a_device_draws(law, drawn):
    assert (device_form(law, (10,)) is not None) == drawn


DISCRETE = ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=9, shape=9).law
VARIANCE = float(DISCRETE.variance_parameter)


@pytest.mark.parametrize(
    ("law", "weight"),
    [(ln.Geometric(0.01), lambda k: np.exp(-0.01 * np.abs(k))), (DISCRETE, lambda k: np.exp(-(k**2) / (2 * VARIANCE)))],
)
def test_integers_by_table_have_their_law(law, weight):
    """A chi-square over 40 cells against the law's own probabilities: 11 deviations, below 1e-9."""
    noise = device.add_noise_to_array(
        device_form(law, (9,)), np.zeros(400_000, dtype=np.int64), device.ChaChaStream.secure()
    )
    spread = int(4 * noise.std())
    k = np.arange(-spread, spread + 1)
    share = weight(k) / weight(np.arange(-60 * spread, 60 * spread + 1)).sum()
    counts = np.bincount(noise[np.abs(noise) <= spread] + spread, minlength=k.size)
    groups = np.array_split(np.arange(k.size), 40)
    expected = np.array([share[g].sum() for g in groups]) * noise.size
    seen = np.array([counts[g].sum() for g in groups])
    assert ((seen - expected) ** 2 / expected).sum() < 40 + 11 * np.sqrt(80)


def test_a_sample_takes_each_record_with_the_rate():
    stream = device.ChaChaStream.secure().claim()
    cpu = torch.device("cpu")
    sizes = [len(device.poisson_sample(stream, 100_000, 0.01, step, cpu)) for step in range(50)]
    assert abs(sum(sizes) - 50_000) < 6.5 * np.sqrt(50_000)
    assert len(set(sizes)) > 10
    assert len(device.poisson_sample(stream, 7, 1.0, 0, cpu)) == 7
    assert len(device.poisson_sample(stream, 10_000, 0.0, 0, cpu)) == 0
