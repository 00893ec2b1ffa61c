"""The noise engine: exactly rounded noise from a cryptographic stream, for every mechanism.

Design, proof and measurements are in ``docs/theory/noise-engine.md``. A :class:`~lessnoise.noise.forms.Form` says what
noise; :func:`add_noise` adds it, with the words of a :class:`~lessnoise.noise.stream.Stream` that serves one release.
"""

from lessnoise.noise.bodies import UniformBody
from lessnoise.noise.compiled import KERNELS_LOADING, compiled_kernels
from lessnoise.noise.core import (
    add_noise,
    check_out,
    output_array,
    prepare_noise,
    prepare_streamed,
    prepare_streamed_integers,
)
from lessnoise.noise.device import (
    LONGEST_TABLE,
    TABLE_BITS,
    AcrossSteps,
    ChaChaStream,
    DeviceForm,
    IntegerTable,
    add_noise_on_device,
    add_noise_to_array,
    has_kernels,
    is_drawn_on_devices,
    on_device_of,
    poisson_sample,
    prepare_noise_on_device,
    run_device_selftest,
)
from lessnoise.noise.exact_arithmetic import Real, Word, word_levels
from lessnoise.noise.forms import CorrelatedIsotropic, Form, Independent, Integers, Isotropic
from lessnoise.noise.grid import Grid
from lessnoise.noise.job import Behind
from lessnoise.noise.machine import (
    can_keep,
    delta_numeric,
    epsilon_with_machine,
    machine_delta,
    machine_distance,
    reserved,
    total_delta,
    with_machine,
)
from lessnoise.noise.matrix import Matrix, WishartForm
from lessnoise.noise.radius import GammaRadius, ListedRadius, NormalRadius, ShellRadius
from lessnoise.noise.selftest import run_selftest
from lessnoise.noise.staircase import StepRadius
from lessnoise.noise.stream import Sequence, Stream
from lessnoise.noise.unit_vector import Bingham, Normals
from lessnoise.noise.ziggurat import laplace, normal, power, uniform

__all__ = [
    "KERNELS_LOADING",
    "LONGEST_TABLE",
    "TABLE_BITS",
    "AcrossSteps",
    "Behind",
    "Bingham",
    "ChaChaStream",
    "CorrelatedIsotropic",
    "DeviceForm",
    "Form",
    "GammaRadius",
    "Grid",
    "Independent",
    "IntegerTable",
    "Integers",
    "Isotropic",
    "ListedRadius",
    "Matrix",
    "NormalRadius",
    "Normals",
    "Real",
    "Sequence",
    "ShellRadius",
    "StepRadius",
    "Stream",
    "UniformBody",
    "WishartForm",
    "Word",
    "add_noise",
    "add_noise_on_device",
    "add_noise_to_array",
    "can_keep",
    "check_out",
    "compiled_kernels",
    "delta_numeric",
    "epsilon_with_machine",
    "has_kernels",
    "is_drawn_on_devices",
    "laplace",
    "machine_delta",
    "machine_distance",
    "normal",
    "on_device_of",
    "output_array",
    "poisson_sample",
    "power",
    "prepare_noise",
    "prepare_noise_on_device",
    "prepare_streamed",
    "prepare_streamed_integers",
    "reserved",
    "run_device_selftest",
    "run_selftest",
    "total_delta",
    "uniform",
    "with_machine",
    "word_levels",
]
