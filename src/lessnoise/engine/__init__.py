"""The noise engine: exactly rounded noise from a cryptographic stream, for every mechanism.

Design, proof and measurements are in ``docs/noise-engine.md``. A :class:`~lessnoise.engine.forms.Form` says what
noise; :func:`add_noise` adds it, with the words of a :class:`~lessnoise.engine.stream.Stream` that serves one release.
"""

from lessnoise.engine.compiled import compiled_kernels
from lessnoise.engine.core import add_noise, prepare_noise
from lessnoise.engine.exact import Real
from lessnoise.engine.forms import Form, Independent, Integers, Isotropic
from lessnoise.engine.grid import Grid, delta_numeric, reserved, total_delta
from lessnoise.engine.matrix import Matrix
from lessnoise.engine.radius import GammaRadius, NormalRadius, ShellRadius
from lessnoise.engine.stream import Sequence, Stream
from lessnoise.engine.ziggurat import laplace, normal, power

__all__ = [
    "Form",
    "GammaRadius",
    "Grid",
    "Independent",
    "Integers",
    "Isotropic",
    "Matrix",
    "NormalRadius",
    "Real",
    "Sequence",
    "ShellRadius",
    "Stream",
    "add_noise",
    "compiled_kernels",
    "delta_numeric",
    "laplace",
    "normal",
    "power",
    "prepare_noise",
    "reserved",
    "total_delta",
]
