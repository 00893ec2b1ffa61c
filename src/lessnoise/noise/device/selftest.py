"""Tests of the live engine of one device, with a verdict: cipher, arithmetic, bits, laws.

Each test of a correct engine fails by chance with probability below 10^-9, so all of them with less than 10^-7.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.noise import ziggurat
from lessnoise.noise.device.engine import add_noise_on_device, has_kernels, loaded_kernels, poisson_sample
from lessnoise.noise.device.forms import AcrossSteps
from lessnoise.noise.device.stream import TILE, ChaChaStream, claimed
from lessnoise.noise.exact_arithmetic import Real
from lessnoise.noise.forms import Independent, Isotropic
from lessnoise.noise.radius import GammaRadius, NormalRadius, ShellRadius
from lessnoise.noise.selftest import Check, moment_checks, released_checks

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from lessnoise.noise.device.forms import DeviceForm

_FINE = 33  # a grid of 2^-33 deviations: an error of a variable beyond 2^-34 would show
_PART = 1 << 22  # values drawn at a time
_KNOWN = (0x09000000, 0x4A000000, 0)  # level, step and purpose of RFC 8439, section 2.3.2
FORMS: dict[str, DeviceForm] = {
    "Gaussian": Independent(ziggurat.normal(), Real.root(Fraction(3))),
    "Laplace": Independent(ziggurat.laplace(), Real.exactly(1.5)),
    "correlated Gaussian": Independent(ziggurat.normal(), Real.exactly(1.5), Real.exactly(0.7)),
    "l2": Isotropic(GammaRadius(300.0, 1.0, 0.7)),
    "R1SMG": Isotropic(NormalRadius(Fraction(5))),
    "shells": Isotropic(ShellRadius((0.0, 1.0, 3.0), (0.25, 0.75), 100_003)),
    "across steps": AcrossSteps(Real.exactly(2.0), ((7, 1.0), (6, -0.5), (2**32 - 1, 0.25))),
}


def run_device_selftest(
    name: str, seconds: float = 6.0, *, progress: Callable[[str], None] = lambda stage: None
) -> list[Check]:
    """All tests on a device, such as "cuda" or "cuda:1"; on "cpu" they are those of the twin.

    >>> all(check.passed for check in run_device_selftest("cpu", seconds=0.1))
    True
    """
    device = _device(name)
    stages: list[tuple[str, Callable[[], list[Check]]]] = [
        ("cipher", lambda: _cipher(device)),
        ("arithmetic", lambda: _arithmetic(device)),
        ("bits of device and CPU", lambda: _bits(device)),
        ("moments and tails", lambda: _moments(device, seconds)),
        ("released values", lambda: _released(device)),
        ("samples", lambda: _samples(device)),
    ]
    checks: list[Check] = []
    for stage, test in stages:
        progress(stage)
        checks += test()
    return checks


def _device(name: str) -> torch.device:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "tests of a device need torch: install the extra with pip install 'lessnoise[learn]'."
        ) from error
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InvalidInput(
            f"device={name} cannot be used ({(str(error).splitlines() or [''])[0][:120]}): pass cuda, cuda:1 or cpu."
        ) from error
    return device


def _cipher(device: torch.device) -> list[Check]:
    """RFC 8439, and words of random addresses, against the CPU's library."""
    import torch

    known = claimed(bytes(range(32)))
    rng = np.random.default_rng()
    differing = 0
    addresses = [_KNOWN, *(tuple(rng.integers(0, 2**31, 3).tolist()) for _ in range(8))]
    for place, address in enumerate(addresses):
        stream = known if place == 0 else ChaChaStream.secure().claim()
        expected = stream.tiles(0, 2, level=address[0], step=address[1], purpose=address[2]).reshape(-1)
        words = torch.from_numpy(expected.view(np.int64).copy()).to(device)
        if has_kernels(device):
            words.zero_()
            loaded_kernels().words[(2,)](words, 2 * TILE, *stream.kernel_key(), *address)
        differing += int(np.count_nonzero(words.cpu().numpy().view(np.uint64) != expected))
    begins = known.blocks(1, 1, level=_KNOWN[0], step=_KNOWN[1]).tobytes()[:8].hex()
    return [
        Check("known answer of RFC 8439, bytes that differ", float(begins != "10f1e7e4d13b5915"), 0.0),
        Check("words that differ between device and CPU", float(differing), 0.0),
    ]


def _arithmetic(device: torch.device) -> list[Check]:
    """Every operation that the kernels use is correctly rounded: the same bits as the CPU's."""
    import torch

    rng, count = np.random.default_rng(), 1 << 20
    left, right = (np.exp(rng.uniform(-40.0, 40.0, count)) for _ in range(2))
    whole = rng.integers(0, 2**64, count, dtype=np.uint64) >> rng.integers(0, 32, count).astype(np.uint64)
    expected = np.concatenate([left / right, np.sqrt(left), left * right, left + right, whole.astype(np.float64)])
    found = torch.from_numpy(expected.copy()).to(device)
    if has_kernels(device):
        found.zero_()
        given = [torch.from_numpy(each).to(device) for each in (left, right, whole.view(np.int64))]
        loaded_kernels().operations[(count // 1024,)](*given, found, count)
    differs = (found.cpu().numpy() != expected).reshape(5, count).sum(axis=1)
    names = ("quotients", "square roots", "products", "sums", "conversions")
    return [Check(f"{name} rounded wrongly, of {count}", float(n), 0.0) for name, n in zip(names, differs, strict=True)]


def _bits(device: torch.device) -> list[Check]:
    """The same key gives the same bits, on coarse and on fine grids."""
    import torch

    checks = []
    for name, form in FORMS.items():
        for dtype, bits in ((torch.float32, 8), (torch.float64, 8), (torch.bfloat16, 8), (torch.float64, _FINE)):
            if bits == _FINE and isinstance(form, Isotropic):
                continue  # the factor is not known well enough there
            size = 100_003 if device.type == "cuda" else 10_003
            value = torch.linspace(-3.0, 3.0, size, dtype=torch.float64, device=device).to(dtype)
            value = torch.zeros_like(value) if bits == _FINE else value
            seed = np.random.default_rng().integers(1 << 62)
            runs = [
                add_noise_on_device(form, value, ChaChaStream.of(np.random.default_rng(seed)), path=path, bits=bits)
                for path in ("auto", "twin")
            ]
            label = f"{name}, {str(dtype).removeprefix('torch.')}{', fine grid' if bits == _FINE else ''}"
            checks.append(Check(f"{label}: values that differ", float((runs[0] != runs[1]).sum()), 0.0))
    return checks


def _moments(device: torch.device, seconds: float) -> list[Check]:
    """Drawn and added up on the device, for some seconds."""
    import torch

    form = Independent(ziggurat.normal(), Real.exactly(1.0))
    zeros = torch.zeros(_PART if device.type == "cuda" else _PART >> 6, dtype=torch.float64, device=device)
    sums, tails, n, end = np.zeros(5), np.zeros(6, dtype=np.int64), 0, time.perf_counter() + seconds
    while True:
        x = add_noise_on_device(form, zeros, ChaChaStream.secure(), bits=20)
        square = x * x
        terms = (x.sum(), square.sum(), (square * x).sum(), (square * square).sum(), (x[1:] * x[:-1]).sum())
        sums += np.array([float(term) for term in terms])
        tails += np.array([int((square > t * t).sum()) for t in range(1, 7)])
        n += x.numel()
        if time.perf_counter() > end or n >= 1 << 35:
            return moment_checks(n, sums, tails)


def _released(device: torch.device) -> list[Check]:
    """Outputs: on the grid, every low digit as often as any other, and distributed as they should be."""
    import torch

    sigma, start = 1.7, 1.0 / 3.0
    value = torch.full((1 << 20,), start, dtype=torch.float64, device=device)
    y = add_noise_on_device(Independent(ziggurat.normal(), Real.exactly(sigma)), value, ChaChaStream.secure())
    return released_checks(y.cpu().numpy(), start, sigma)


def _samples(device: torch.device) -> list[Check]:
    """Sizes of Poisson samples, and that the CPU draws the same ones."""
    import torch

    stream, records, rate = ChaChaStream.secure().claim(), 1 << 20, 0.01
    drawn = [poisson_sample(stream, records, rate, step, device) for step in range(8)]
    expected = 8 * records * rate
    size = sum(len(each) for each in drawn)
    same = torch.equal(drawn[0].cpu(), poisson_sample(stream, records, rate, 0, torch.device("cpu")))
    return [
        Check("sizes of samples", (size - expected) / math.sqrt(expected), 6.5),
        Check("a sample that differs between device and CPU", float(not same), 0.0),
    ]
