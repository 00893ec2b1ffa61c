"""The kernels: interpreted, bit by bit against the twin; compiled, that all their operations are correctly rounded."""

import os
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("opacus", reason="needs Opacus")
pytest.importorskip("triton", reason="needs Triton, which comes with PyTorch for GPUs")

INTERPRETED = """
import numpy as np, torch
from fractions import Fraction
import lessnoise as ln
from lessnoise.mechanism import device_form
from lessnoise.noise import GammaRadius, Independent, Isotropic, Real, laplace, normal
from lessnoise.noise.device import AcrossSteps, ChaChaStream, add_noise_on_device, engine
from lessnoise.noise.device.stream import claimed

def seeded(seed=5):
    return ChaChaStream.of(np.random.default_rng(seed))

stream = claimed(bytes(range(32)))
words = torch.empty(2048, dtype=torch.int64)
address = (0x09000000, 0x4A000000, 0)
engine.loaded_kernels().words[(1,)](words, 2048, *stream.kernel_key(), *address)
tile = stream.tiles(0, 1, level=address[0], step=address[1], purpose=address[2])
assert (words.numpy().view(np.uint64).reshape(1, 8, 256) == tile).all(), "RFC 8439, section 2.3.2, is in this tile"
assert stream.blocks(1, 1, level=address[0], step=address[1]).tobytes().hex().startswith("10f1e7e4d13b5915")

FORMS = {
    "gaussian": (Independent(normal(), Real.root(Fraction(3))), torch.float32),
    "laplace": (Independent(laplace(), Real.exactly(1.5)), torch.float64),
    "common": (Independent(normal(), Real.exactly(1.5), Real.exactly(0.7)), torch.float32),
    "l2": (Isotropic(GammaRadius(300.0, 1.0, 0.7)), torch.bfloat16),
    "across": (AcrossSteps(Real.exactly(2.0), ((7, 1.0), (6, -0.5), (2**32 - 1, 0.25))), torch.float64),
}
for name, (form, dtype) in FORMS.items():
    value = torch.linspace(-3, 3, 2500 if name in ("gaussian", "l2") else 600).to(dtype)
    kept = value.clone()
    one, other = (add_noise_on_device(form, value, seeded(), path=path) for path in ("kernels", "twin"))
    assert one.dtype == dtype and torch.equal(one, other), name
    assert torch.equal(value, kept)
# A grid of 2^-30 deviations: an error of a variable beyond 2^-31 would show.
for name in ("gaussian", "across"):
    form, zeros = FORMS[name][0], torch.zeros(2000, dtype=torch.float64)
    one, other = (add_noise_on_device(form, zeros, seeded(), path=path, bits=30) for path in ("kernels", "twin"))
    assert torch.equal(one, other), name
# In place, and a tile that is left as it was: the doubts of a huge factor.
value = torch.zeros(600)
noisy = add_noise_on_device(FORMS["gaussian"][0], value, seeded(), path="kernels", out=value)
assert noisy.data_ptr() == value.data_ptr()
form = Independent(normal(), Real.exactly(1.0))
zeros = torch.zeros(300, dtype=torch.float64)
outs = [add_noise_on_device(form, zeros, seeded(), path=path, bits=41) for path in ("kernels", "twin")]
assert torch.equal(*outs), "all of it is answered exactly"
for law in (ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=3, shape=600).law, ln.Geometric(0.4)):
    form = device_form(law, (600,))
    one, other = (add_noise_on_device(form, torch.arange(600), seeded(), path=path) for path in ("kernels", "twin"))
    assert one.dtype == torch.int64 and torch.equal(one, other) and not torch.equal(one, torch.arange(600))
chosen = torch.empty(3000, dtype=torch.int8)
stream = seeded().claim()
engine.loaded_kernels().sample[(2,)](chosen, 3000, *stream.kernel_key(), 4, 1, 1 << 61)
expected = engine.poisson_sample(stream, 3000, 0.25, 4, torch.device("cpu"))
assert torch.equal(chosen.nonzero().reshape(-1), expected) and 500 < len(expected) < 1000
# Clipped sums of gradients.
from lessnoise.learn import gradients

rows = torch.randn(70, 300).T[:50].T  # strides of its own
rows[3, 7], rows[9, 0] = torch.inf, torch.nan
norms = gradients.norms_by_kernel(rows)
assert torch.allclose(norms, torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64), rtol=1e-14, equal_nan=True)
finite = norms.isfinite()
factors = (1000.0 / norms).where(finite, 0.0).float()
whole = (rows * factors.unsqueeze(1)).where(finite.unsqueeze(1), 0.0).to(torch.int32).sum(0)
assert torch.equal(gradients.summed_by_kernel(rows, factors, finite), whole.double())
print("same bits")
"""


@pytest.mark.slow
def test_interpreted_kernels_give_the_bits_of_the_twin():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-W", "ignore", "-c", INTERPRETED]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.stdout == "same bits\n", done.stderr


COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from lessnoise.noise.device import kernels

KEY = {f"k{i}": "i32" for i in range(8)}
LINE = dict.fromkeys(kernels._LINE, "i64")
ADDED = {"flags": "*i8", "step": "i32"}
ROWS = {"steps": "*i32", "weights": "*fp64", "rows": "i32"}
for function, types, fixed in (
    (kernels.add, {"value": "*fp32", "out": "*fp32", **ADDED, **LINE, **ROWS}, {"kind": 0, "across": True}),
    (kernels.add, {"value": "*fp64", "out": "*fp64", **ADDED, **LINE, **ROWS}, {"kind": 1, "across": False}),
    (kernels.squares, {"sums": "*i64", "marks": "*i64"}, {}),
):
    signature = {"count": "i32", **KEY, **types, **dict.fromkeys(fixed, "constexpr")}
    signature = {name: signature[name] for name in function.arg_names}
    source = ASTSource(fn=function, signature=signature, constexprs=fixed)
    print(triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"])
"""


@pytest.mark.slow
def test_compiled_kernels_hold_correctly_rounded_operations_alone():
    """Machine code for a GPU, made without one: every operation on doubles is rounded to nearest, none approximate."""
    command = [sys.executable, "-W", "ignore", "-c", COMPILED]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    operations = set(
        re.findall(r"^\s*(?:@\S+\s+)?([a-z0-9_.]+\.f(?:64|32)[a-z0-9_.]*)", done.stdout, flags=re.MULTILINE)
    )
    arithmetic = {one for one in operations if re.match(r"(add|sub|mul|div|fma|sqrt|rcp|ex2|lg2|sin|cos|rsqrt)", one)}
    correct = {"add.f64", "sub.f64", "mul.f64", "add.rn.f64", "sub.rn.f64", "mul.rn.f64"}
    assert arithmetic <= correct | {"div.rn.f64", "fma.rn.f64", "sqrt.rn.f64"}
    assert {"div.rn.f64", "fma.rn.f64", "sqrt.rn.f64"} <= arithmetic
    assert not any("approx" in one or "ftz" in one for one in operations)
