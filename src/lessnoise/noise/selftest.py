"""Statistical tests of the live generator, with a verdict.

Each test of a correct generator fails by chance with probability below 10^-9, so all of them with less than 10^-7.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise import reference, ziggurat
from lessnoise.noise.bodies import UniformBody
from lessnoise.noise.compiled import compiled_kernels
from lessnoise.noise.core import add_noise
from lessnoise.noise.exact_arithmetic import Real
from lessnoise.noise.forms import CorrelatedIsotropic, Form, Independent, Isotropic
from lessnoise.noise.grid import BLOCK, Grid, reserve
from lessnoise.noise.job import Worker
from lessnoise.noise.radius import GammaRadius
from lessnoise.noise.staircase import StepRadius
from lessnoise.noise.stream import Stream
from lessnoise.noise.ziggurat import MARGIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise._common import Array

    Fault = Callable[[Array], Array]

LEVEL = 1e-10
_Z = 6.5  # two-sided level 1e-10
_KEPT = 64  # blocks a thread keeps for the tests of independence


@dataclass(frozen=True)
class Check:
    """One test: what was seen, what is allowed."""

    name: str
    seen: float
    allowed: float

    @property
    def passed(self) -> bool:
        """Within what is allowed."""
        return bool(abs(self.seen) <= self.allowed)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"name": self.name, "seen": self.seen, "allowed": self.allowed, "passed": self.passed}


def run_selftest(
    seconds: float = 6.0,
    values: int = 1 << 29,
    *,
    fault: Fault | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> list[Check]:
    """All tests; the long one stops after ``seconds`` or ``values``. ``fault`` spoils the normals, to see it found.

    >>> all(check.passed for check in run_selftest(seconds=0.1))
    True
    """
    checks: list[Check] = []
    stages: list[tuple[str, Callable[[], list[Check]]]] = [
        ("mathematical library", _library),
        ("cipher", _words),
        ("compiled, NumPy and exact paths", _paths),
        ("moments, tails, independence", lambda: _normals(seconds, values, fault)),
        ("released values", lambda: _released(fault)),
    ]
    for stage, test in stages:
        progress(stage)
        checks += test()
    return checks


def _library() -> list[Check]:
    """Logarithm, exponential and power against ``decimal``, in units of the last place; the proof assumes 4."""
    rng = np.random.default_rng(0)
    worst = dict.fromkeys(("log", "exp", "pow"), 0.0)
    for x in np.concatenate([2.0 ** rng.uniform(-14, 0, 100), rng.uniform(1.0, 11000.0, 100)]):
        true = _middle(exact.ln((Fraction(float(x)),) * 2, 1))
        worst["log"] = max(worst["log"], _ulps(math.log(x), true), _ulps(float(np.log(x)), true))
    for x in rng.uniform(-3.0, 0.0, 100):
        true = _middle(exact.exp((Fraction(float(x)),) * 2, 1))
        worst["exp"] = max(worst["exp"], _ulps(math.exp(x), true), _ulps(float(np.exp(x)), true))
    for x, p in zip(rng.uniform(0.03, 12.0, 100), rng.uniform(1.0, 3.0, 100), strict=True):
        true = _middle(exact.power((Fraction(float(x)),) * 2, float(p), 1))
        worst["pow"] = max(worst["pow"], _ulps(float(x) ** float(p), true), _ulps(float(np.power(x, p)), true))
    return [Check(f"{name}, units of the last place", seen, 4.0) for name, seen in worst.items()]


def _middle(interval: tuple[Fraction, Fraction]) -> Fraction:
    return (interval[0] + interval[1]) / 2


def _ulps(found: float, true: Fraction) -> float:
    return float(abs(Fraction(found) - true) / Fraction(math.ulp(found)))


def _words() -> list[Check]:
    """Bytes of the cipher, and that no two streams agree."""
    size = 1 << 17
    words, other = (Stream.secure().claim().reader().words(0, 0, 0, size)[:size] for _ in range(2))
    counts = np.bincount(words.view(np.uint8), minlength=256)
    expected = words.size * 8 / 256
    chi = float(((counts - expected) ** 2 / expected).sum())
    bits = float(np.unpackbits((words ^ other).view(np.uint8)).mean())
    return [
        Check("bytes, chi-square", (chi - 255.0) / math.sqrt(510.0), 8.2),
        Check("two streams, differing bits", (bits - 0.5) * 2.0 * math.sqrt(words.size * 64), _Z),
        Check("equal words", float(words.size - np.unique(words).size), 0.0),
    ]


def _paths() -> list[Check]:
    """Compiled code, NumPy and exact arithmetic give the same bits."""
    value = np.linspace(-3.0, 3.0, 300)
    seed = int(Stream.secure().claim().reader().word(0, 0, 0))
    forms: dict[str, Form] = {
        "Gaussian": Independent(ziggurat.normal(), Real.root(Fraction(3))),
        "Laplace": Independent(ziggurat.laplace(), Real.exactly(1.5)),
        "l2": Isotropic(GammaRadius(300.0, 1.0, 0.7)),
        "l2, correlated": CorrelatedIsotropic(GammaRadius(300.0, 1.0, 0.7), Real.exactly(1.0), Real.exactly(0.1)),
        "cube": UniformBody(GammaRadius(301.0, 1.0, 0.01)),
        "corner": UniformBody(StepRadius(1.0, 0.4, 0.01, 300), corner=True),
    }
    checks = []
    for name, form in forms.items():
        runs = [
            add_noise(form, value, Stream.of(np.random.default_rng(seed)), path=path, margin=margin)
            for path, margin in (("numba", MARGIN), ("numpy", MARGIN), ("numpy", math.inf))
        ]
        differing = sum(np.count_nonzero(runs[0] != other) for other in runs[1:])
        checks.append(Check(f"{name}, values that differ between paths", float(differing), 0.0))
    return checks


class _Half:
    """What one thread draws: every second block of a stream."""

    def __init__(self, stream: Stream, half: int) -> None:
        self.worker, self.half = Worker(stream), half
        self.sums, self.tails, self.done = np.zeros(5), np.zeros(6, np.int64), 0
        self.kept: list[Array] = []

    def draw(self, end: float, limit: int, fault: Fault | None) -> None:
        kernels, density = compiled_kernels("selftest"), ziggurat.normal()
        size = BLOCK + reserve(BLOCK)
        while self.done < limit and (self.done < 1 or time.perf_counter() < end):
            block, x = 2 * self.done + self.half, self.worker.scratch[0]
            status = 1
            if kernels is not None:
                words = self.worker.reader.words(0, block, 0, size)
                status, _, _ = kernels.standard(words, size, BLOCK, self.worker.scratch, density.tables, x, 0)
            if status != 0:
                x = reference.sample(density, self.worker.reader, block, BLOCK).x
            seen = x if fault is None else np.ascontiguousarray(fault(x))
            (_tally if kernels is None else kernels.tally)(seen, BLOCK, self.sums, self.tails)
            if len(self.kept) < _KEPT:
                self.kept.append(seen.copy())
            self.done += 1


def _tally(x: Array, count: int, sums: Array, tails: NDArray[np.int64]) -> None:
    """The kernel of that name, in NumPy."""
    sums += [x.sum(), (x**2).sum(), (x**3).sum(), (x**4).sum(), float(x[1:] @ x[:-1])]
    tails += [np.count_nonzero(np.abs(x) > t) for t in range(1, 7)]


def _normals(seconds: float, values: int, fault: Fault | None) -> list[Check]:
    """Two threads draw blocks of one stream in turn."""
    stream, end = Stream.secure().claim(), time.perf_counter() + seconds
    limit = max(values // BLOCK // 2, 1)
    halves = [_Half(stream, half) for half in (0, 1)]
    threads = [threading.Thread(target=half.draw, args=(end, limit, fault)) for half in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    n = sum(half.done for half in halves) * BLOCK
    sums, tails = halves[0].sums + halves[1].sums, halves[0].tails + halves[1].tails
    checks = moment_checks(n, sums, tails)
    pairs = list(zip(halves[0].kept, halves[1].kept, strict=False))
    a, b = np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])
    return checks + _independence(a, b)


def moment_checks(n: int, sums: Array, tails: NDArray[np.int64]) -> list[Check]:
    """Of n normals: sums of powers 1 to 4 and of products of neighbours, and how many |x| exceed 1, 2, ..., 6."""
    root = math.sqrt(n)
    checks = [
        Check(f"moment {power}", float(sums[power - 1] / n - mean) / math.sqrt(variance) * root, _Z)
        for power, mean, variance in ((1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0))
    ]
    checks.append(Check("neighbouring coordinates", float(sums[4]) / root, _Z))
    for i, seen in enumerate(tails):
        expected = n * math.erfc((i + 1) / math.sqrt(2.0))
        name = f"P(|x| > {i + 1}): {seen} of {n} seen, {expected:.1f} expected"
        checks.append(Check(name, _deviate(int(seen), expected), _Z))
    return checks


def _independence(a: Array, b: Array) -> list[Check]:
    """Of the same places in blocks that two threads drew, and of coordinates apart."""
    root, squares = math.sqrt(a.size), a * a - 1.0
    return [
        Check("threads, correlation", float(a @ b) / root, _Z),
        Check("threads, correlation of squares", float(squares @ (b * b - 1.0)) / 2.0 / root, _Z),
        *(Check(f"coordinates {lag} apart", float(a[:-lag] @ a[lag:]) / root, _Z) for lag in (2, 3, 8, 1024)),
        Check("squares of neighbours", float(squares[:-1] @ squares[1:]) / 2.0 / root, _Z),
    ]


def _deviate(seen: int, expected: float) -> float:
    """A Poisson count (a binomial one is narrower) as a normal deviate: exactly for few."""
    if expected > 400.0:
        return (seen - expected) / math.sqrt(expected)
    last = max(int(expected + 40.0 * math.sqrt(expected) + 40.0), seen + 40)
    terms = [math.exp(k * math.log(expected) - expected - math.lgamma(k + 1.0)) for k in range(last)]
    tail = min(math.fsum(terms[seen:]), math.fsum(terms[: seen + 1]))
    return math.copysign(math.sqrt(max(0.0, -2.0 * math.log(max(tail, 1e-300)))) * 0.93, seen - expected)


def _released(fault: Fault | None) -> list[Check]:
    """Outputs: on the grid, every low digit as often as any other, and distributed as they should be."""
    sigma, n, start = 1.7, 1 << 20, 1.0 / 3.0
    y = add_noise(Independent(ziggurat.normal(), Real.exactly(sigma)), np.full(n, start), Stream.secure())
    if fault is not None:
        y = start + sigma * fault((y - start) / sigma)
    return released_checks(y, start, sigma)


def released_checks(y: Array, start: float, sigma: float) -> list[Check]:
    """The same of given outputs: ``start`` plus normal noise of deviation ``sigma``."""
    n, step = y.size, Grid.of(sigma).step
    cells = y / step
    off = float(np.count_nonzero(cells != np.rint(cells)))
    whole = np.rint(cells).astype(np.int64)
    counts = np.bincount(np.mod(whole, 128), minlength=128)
    chi = float(((counts - n / 128) ** 2 / (n / 128)).sum())
    low = whole.min()
    histogram = np.bincount(whole - low)
    # The distribution function at the upper edge of each cell, exactly that of the rounded law.
    edges = (np.arange(low, low + histogram.size) + 0.5) * step
    ideal = np.array([0.5 * math.erfc(-(edge - start) / sigma / math.sqrt(2.0)) for edge in edges])
    distance = float(np.abs(np.cumsum(histogram) / n - ideal).max())
    return [
        Check("outputs off the grid", off, 0.0),
        Check("grid occupancy, chi-square of the low digits", (chi - 127.0) / math.sqrt(254.0), 8.2),
        Check("Kolmogorov-Smirnov", distance * math.sqrt(n), math.sqrt(0.5 * math.log(2.0 / LEVEL))),
    ]
