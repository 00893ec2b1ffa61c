"""The noise engine: exactly rounded noise from a cryptographic stream, for every mechanism.

Design, proof and measurements are in ``docs/theory/noise-engine.md``. A :class:`~lessnoise.noise.forms.Form` says what
noise; :func:`add_noise` adds it, with the words of a :class:`~lessnoise.noise.stream.Stream` that serves one release.
"""

from lessnoise.noise.compiled import compiled_kernels
from lessnoise.noise.core import add_noise, prepare_noise
from lessnoise.noise.exact import Real
from lessnoise.noise.forms import Form, Independent, Integers, Isotropic
from lessnoise.noise.grid import Grid, can_keep, delta_numeric, reserved, total_delta
from lessnoise.noise.job import Behind
from lessnoise.noise.matrix import Matrix
from lessnoise.noise.radius import GammaRadius, NormalRadius, ShellRadius
from lessnoise.noise.stream import Sequence, Stream
from lessnoise.noise.streamed import prepare_streamed, prepare_streamed_integers
from lessnoise.noise.wishart import Wishart
from lessnoise.noise.ziggurat import laplace, normal, power

__all__ = [
    "Behind",
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
    "Wishart",
    "add_noise",
    "can_keep",
    "compiled_kernels",
    "delta_numeric",
    "laplace",
    "normal",
    "power",
    "prepare_noise",
    "prepare_streamed",
    "prepare_streamed_integers",
    "reserved",
    "total_delta",
]
