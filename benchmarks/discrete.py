"""Speed of exact discrete Gaussian noise, beside OpenDP's in the same run.

    pip install -e . && pip install opendp
    python benchmarks/discrete.py

Both samplers are exact and both use cryptographic randomness. OpenDP's vector mechanism is called on a list of
zeros, as its users call it; without OpenDP only our figures are printed. Figures are medians, on whatever machine
runs this.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from clock import median_seconds

from lessnoise.mechanism.curve import delta_of
from lessnoise.mechanism.families.block_sampler import BlockSampler
from lessnoise.mechanism.families.discrete_gaussian import DiscreteGaussian, discrete_gaussian
from lessnoise.mechanism.families.discrete_sampler import blocks_of
from lessnoise.mechanism.sampling import draw_noise

if TYPE_CHECKING:
    from collections.abc import Callable

OURS, THEIRS = 1_000_000, 20_000
GOAL = 20.0


def opendp_mechanism(sigma: float) -> Callable[[list[int]], object] | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    return dp.m.make_gaussian(*space, scale=sigma)


def main() -> None:
    peer = opendp_mechanism(1.0) is not None
    if not peer:
        print("opendp is not installed: left out")
    print(f"{'sigma':>10s} {'table ms':>9s} {'ns/value':>9s} {'opendp':>9s} {'ratio':>7s}   goal: ratio >= {GOAL:g}")
    for sigma in (0.3, 1.0, 4.0, 100.0, 1000.0, 1e6, 1e9):
        variance = Fraction(sigma) ** 2
        law = DiscreteGaussian(variance.numerator, variance.denominator)
        table = median_seconds(lambda law=law: BlockSampler.of(blocks_of(law)))
        ours = median_seconds(lambda law=law: draw_noise(law, (OURS,))) / OURS
        line = f"{sigma:10g} {1e3 * table:9.1f} {1e9 * ours:9.1f}"
        if peer:
            mechanism, zeros = opendp_mechanism(sigma), [0] * THEIRS
            theirs = median_seconds(lambda mechanism=mechanism, zeros=zeros: mechanism(zeros), 3) / THEIRS
            line += f" {1e9 * theirs:9.0f} {theirs / ours:7.0f}"
        print(line)

    def curve(sigma: int) -> object:
        delta_of.cache_clear()
        return delta_of(DiscreteGaussian(sigma * sigma, 1), 1, 1.0, 1.0 / sigma)

    def calibration(sensitivity: float, shape: int) -> object:
        delta_of.cache_clear()
        return discrete_gaussian(epsilon=0.5, delta=1e-7, sensitivity=sensitivity, shape=shape)

    print(f"\n{'task':48s} {'ms':>9s}")
    for name, task in (
        ("one exact delta, sigma = 100", lambda: curve(100)),
        ("one exact delta, sigma = 1e9", lambda: curve(10**9)),
        ("one calibration, histogram, sensitivity 1", lambda: calibration(1.0, 7921)),
        ("one calibration, histogram, sensitivity sqrt 2", lambda: calibration(2**0.5, 7921)),
    ):
        print(f"{name:48s} {1e3 * median_seconds(task):9.2f}")


if __name__ == "__main__":
    main()
