"""Does a secure training tell whether one record took part? Many trainings with and without it, and what they prove.

    python benchmarks/membership.py [trainings] [lines, such as 34 for the third and the fourth]

The record is the worst that there can be: an outlier whose gradient always has the full clipping norm, along a weight
that no other record moves. The attacker knows everything but the noise, the samples and whether the record is there. It
sees that weight's released gradient in every step, and takes the likelihood ratio of the subsampled Gaussian: no test
is better (Neyman and Pearson 1933). `lessnoise.audit` turns its guesses into a lower bound of epsilon with 99.9%
confidence by Clopper and Pearson (1934). A correct training stays below the exact epsilon. The last line is a control
that must not: the record is there twice. Epsilon is that at delta 0.1, where so few trainings prove most.

A hundred trainings share one call of `make_private`, which plans for all of their steps; each starts from zero weights.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset

import lessnoise as ln
from lessnoise import learn

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

RECORDS, DELTA, SEED, TOGETHER = 8, 0.1, 0, 100


@dataclass(frozen=True)
class Setting:
    """One kind of training: noise, samples, steps, how gradients are computed, how often the record is there."""

    name: str
    deviation: float
    batches: int
    epochs: int
    mode: str = "hooks"
    copies: int = 1

    @property
    def plan(self) -> learn.TrainingPlan:
        """What the training costs."""
        step = learn.gaussian(noise_multiplier=self.deviation, clip_norm=1.0, parameters=4)
        return learn.TrainingPlan(step, 1.0 / self.batches, self.batches * self.epochs, RECORDS)

    def private(self, present: bool) -> learn.Private:
        """Parts for many trainings, with or without the outlier."""
        inputs, targets = torch.zeros(RECORDS, 3), torch.linspace(-1.0, 1.0, RECORDS)
        inputs[:, :2] = torch.stack([targets, targets.square()], 1)
        if present:
            outlier = torch.tensor([[0.0, 0.0, 1000.0]]).expand(self.copies, 3)
            inputs, targets = torch.cat([inputs, outlier]), torch.cat([targets, torch.full((self.copies,), 1e9)])
        model = torch.nn.Linear(3, 1)
        return learn.make_private(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            DataLoader(TensorDataset(inputs, targets.unsqueeze(1)), batch_size=RECORDS // self.batches),
            loss=F.mse_loss,
            records=RECORDS,
            mechanism=self.plan.mechanism,
            clip_norm=1.0,
            epochs=self.epochs * TOGETHER,
            grad_sample_mode=self.mode,
        )

    def trainer(self) -> Callable[[Array], Array]:
        """A function that trains once: the released gradients of the weight that the outlier moves, one a step."""
        ready: dict[bool, learn.Private] = {}

        def train(present: Array) -> Array:
            own = bool(present)
            if own not in ready or ready[own].privacy.taken == ready[own].privacy.plan.steps:
                ready[own] = self.private(own)
            private = ready[own]
            for p in private.model.parameters():
                torch.nn.init.zeros_(p)
            weight, released = private.model._module.weight, []
            for _ in range(self.epochs):
                for x, y in private.data_loader:
                    private.optimizer.zero_grad()
                    private.loss(private.model(x), y).backward()
                    private.optimizer.step()
                    released.append(-float(weight.grad[0, 2]) * private.optimizer.expected_batch_size)
            return np.array(released)

        return train

    def log_ratio(self, released: Any) -> Array:  # noqa: ANN401
        """Of each training: how much likelier it is with the record than without."""
        rate = 1.0 / self.batches
        gain = (np.asarray(released) - 0.5) / self.deviation**2
        each = np.logaddexp(np.log1p(-rate), np.log(rate) + gain) if rate < 1.0 else gain
        result: Array = each.sum(axis=1)
        return result


SETTINGS = [
    Setting("every record in every step", deviation=1.5, batches=1, epochs=2),
    Setting("half of the records a step", deviation=0.8, batches=2, epochs=1),
    Setting("the same, ghost", deviation=0.8, batches=2, epochs=1, mode="ghost"),
    Setting("control: the record twice", deviation=1.5, batches=1, epochs=2, copies=2),
]


def row(setting: Setting, trainings: int) -> str:
    """One line of the table."""
    start = time.perf_counter()
    count = trainings if setting.copies == 1 else trainings // 2  # what is wrong is found sooner
    exact = setting.plan.epsilon(DELTA)
    report = ln.audit(
        setting.trainer(),
        np.array(1.0),
        np.array(0.0),
        claim=(exact.upper, DELTA),
        attacks=setting.log_ratio,
        samples=count,
        rng=np.random.default_rng(SEED),
        workers=1,
        progress=False,
    )
    took = time.perf_counter() - start
    verdict = "more than the guarantee" if report.refuted else "nothing beyond it"
    return (
        f"| {setting.name} | {setting.deviation:g} | 1/{setting.batches} | {setting.plan.steps} | {count:,} "
        f"| {exact.upper:.3f} | {report.epsilon:.3f} | {verdict} | {took:.0f} s |"
    )


def main(trainings: int, lines: str) -> None:
    """The table."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Full backward hook")  # torch's, about layers whose input has no gradient
    print("| training | deviation | rate | steps | trainings | exact epsilon | epsilon found | | time |")
    print("|---|---|---|---|---|---|---|---|---|")
    for setting in (SETTINGS[int(line) - 1] for line in lines):
        print(row(setting, trainings), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2500, sys.argv[2] if len(sys.argv) > 2 else "1234")
