"""Noise on a device: exactly rounded, from a ChaCha20 stream, with the same bits on CPU and GPU.

Design and proof: ``docs/theory/device-engine.md``. Kernels do the work on a GPU; a twin in NumPy is their meaning, and
answers exactly where they leave a doubt.
"""

from lessnoise.noise.device.engine import (
    add_noise_on_device,
    add_noise_to_array,
    has_kernels,
    on_device_of,
    poisson_sample,
    prepare_noise_on_device,
)
from lessnoise.noise.device.forms import AcrossSteps, DeviceForm, is_drawn_on_devices
from lessnoise.noise.device.selftest import run_device_selftest
from lessnoise.noise.device.stream import ChaChaStream
from lessnoise.noise.device.tables import LONGEST_TABLE, TABLE_BITS, IntegerTable

__all__ = [
    "LONGEST_TABLE",
    "TABLE_BITS",
    "AcrossSteps",
    "ChaChaStream",
    "DeviceForm",
    "IntegerTable",
    "add_noise_on_device",
    "add_noise_to_array",
    "has_kernels",
    "is_drawn_on_devices",
    "on_device_of",
    "poisson_sample",
    "prepare_noise_on_device",
    "run_device_selftest",
]
