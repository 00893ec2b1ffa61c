"""Which noise pays: plain DP-SGD on Poisson samples beside noise across steps, at the same guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise._display import Charted, Facts, Lines, Listed
from lessnoise.errors import InvalidInput
from lessnoise.learn.across.factorisation import Banded, BandedInverse
from lessnoise.learn.across.fit import spread
from lessnoise.learn.across.plan import plan_across_steps
from lessnoise.learn.plan import plan_training
from lessnoise.text import up

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAIN = "gaussian"


@dataclass(frozen=True)
class NoiseRow(Listed):
    """One choice. ``every`` and ``last`` are root mean squares of the noise on an entry of the weights.

    They are over all steps, and of the last one, for clipping norm 1 and sums that are not divided by the batch size:
    multiply by clip_norm/batch size. ``drawn`` is how many vectors of normals the last step draws.
    """

    mechanism: str
    bands: int
    groups: int
    noise_multiplier: float
    every: float
    last: float
    drawn: int

    def _facts(self) -> Facts:
        rows = [("bands", str(self.bands)), ("noise multiplier", f"{self.noise_multiplier:.4g}")]
        rows += [("noise on the weights, all steps", f"{self.every:.4g}"), ("last step", f"{self.last:.4g}")]
        return Facts(self.mechanism, rows)


@dataclass(frozen=True)
class NoiseComparison(Listed, Charted):
    """The rows of :func:`compare_noise`, the first of which is plain DP-SGD; printed, it is a table."""

    epsilon: float
    delta: float
    batches: int
    epochs: int
    rows: tuple[NoiseRow, ...]

    @property
    def best(self) -> NoiseRow:
        """The row with the least error over all steps."""
        return min(self.rows, key=lambda row: row.every)

    def __str__(self) -> str:
        plain = self.rows[0]
        lines = [
            f"{self.epochs} epochs of {self.batches} batches at ({up(self.epsilon)}, {up(self.delta)}): noise on the "
            "weights, in clipping norms",
            f"{'mechanism':<15} {'bands':>5} {'sigma':>9} {'all steps':>10} {'last':>10} {'of plain':>9} {'drawn':>6}",
        ]
        lines += [
            f"{row.mechanism:<15} {row.bands:>5} {row.noise_multiplier:>#9.3g} {row.every:>#10.3g} {row.last:>#10.3g} "
            f"{row.every / plain.every:>9.2f} {row.drawn:>6}"
            for row in self.rows
        ]
        return "\n".join(lines)

    def _facts(self) -> Facts:
        lines = [
            (row.mechanism, str(row.bands), f"{row.noise_multiplier:.3g}", f"{row.every:.3g}", f"{row.last:.3g}")
            for row in self.rows
        ]
        rows = [("guarantee", f"({up(self.epsilon)}, {up(self.delta)})"), ("least over all steps", self.best.mechanism)]
        head = ("mechanism", "bands", "sigma", "noise, all steps", "noise, last step")
        return Facts(f"{self.epochs} epochs of {self.batches} batches", rows, head, lines)

    def _chart(self) -> Lines:
        lines = []
        for kind in (BandedInverse.kind, Banded.kind):
            found = [row for row in self.rows if row.mechanism == kind]
            if found:
                lines.append((kind, [float(row.bands) for row in found], [row.every for row in found]))
        title = f"{self.epochs} epochs of {self.batches} batches at ε = {up(self.epsilon)}, δ = {up(self.delta)}"
        mark = "plain DP-SGD, Poisson samples", self.rows[0].every
        return Lines(title, "bands", "noise on the weights, in clipping norms", lines, mark, logarithmic=True)


def compare_noise(
    *,
    epochs: int,
    batches: int,
    epsilon: float,
    delta: float,
    records: int,
    bands: Sequence[int] = (4, 16, 64),
    momentum: float = 0.0,
    learning_rate: float = 1.0,
) -> NoiseComparison:
    """The noise on the weights of plain DP-SGD, and of both kinds of noise across steps, at the same (epsilon, delta).

    ``batches`` are the steps of an epoch. The weights are those of SGD with this ``momentum`` and ``learning_rate``; as
    they are, prefix sums of the gradients. The smaller the noise the better, but noise is not all: a banded C takes
    each record at one of several steps only, and what a training makes of its noise is its own affair.

    >>> found = compare_noise(epochs=2, batches=20, epsilon=8, delta=1e-5, records=1000, bands=[4])
    >>> [row.mechanism for row in found.rows], found.best.mechanism
    (['gaussian', 'banded-inverse', 'banded'], 'banded-inverse')
    """
    epochs, batches = validation.whole_number("epochs", epochs), validation.whole_number("batches", batches)
    rate, steps = validation.positive("learning_rate", learning_rate), epochs * batches
    if isinstance(bands, int | str) or not len(bands):
        raise InvalidInput(f"bands={bands!r} is not a list: pass those to compare, such as [4, 16, 64].")
    plain = plan_training(
        PLAIN,
        clip_norm=1.0,
        parameters=1,
        rate=1.0 / batches,
        steps=steps,
        records=records,
        epsilon=epsilon,
        delta=delta,
    )
    independent = np.zeros(steps)
    independent[0] = 1.0
    sigma, own = plain.mechanism.standard_deviation, spread(independent, momentum)
    rows = [NoiseRow(PLAIN, 1, 1, sigma, rate * sigma * own.every, rate * sigma * own.last, 1)]
    for kind in (BandedInverse.kind, Banded.kind):
        for count in bands:
            plan = plan_across_steps(
                kind,
                bands=count,
                clip_norm=1.0,
                parameters=1,
                batches=batches,
                steps=steps,
                records=records,
                epsilon=epsilon,
                delta=delta,
                momentum=momentum,
            )
            made, sigma = plan.factorisation, plan.noise_multiplier
            own = spread(made.inverse(steps), momentum)
            errors = rate * sigma * own.every, rate * sigma * own.last
            rows.append(NoiseRow(kind, made.bands, plan.groups or batches, sigma, *errors, len(made.row(steps - 1))))
    return NoiseComparison(epsilon, delta, batches, epochs, tuple(rows))
