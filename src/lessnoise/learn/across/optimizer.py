"""The optimizer of a training with noise across steps. A past step's noise is drawn again, never kept.

Whoever had two sums with the same fresh noise would know their difference exactly. So the number of a step moves on
before its noise is drawn and never comes back, and a step that broke off in between ends the training.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lessnoise.errors import InvalidInput
from lessnoise.learn.across.loader import AcrossLoader, GroupSampler
from lessnoise.learn.across.plan import AcrossPlan
from lessnoise.learn.optimizer import MechanismOptimizer
from lessnoise.noise import AcrossSteps, ChaChaStream, Real, prepare_noise_on_device

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.learn.across.factorisation import Row


class AcrossOptimizer(MechanismOptimizer):
    """Adds to step t the noise of its row of C^-1, under one key for the whole training."""

    def __init__(self, optimizer: torch.optim.Optimizer, **options: Any) -> None:  # noqa: ANN401
        super().__init__(optimizer, **options)
        plan = self.accountant.plan
        assert isinstance(plan, AcrossPlan)
        assert isinstance(self.sampler, GroupSampler)
        self.plan = plan
        self.sampler.next_step = lambda: self.accountant.taken
        self._steps = itertools.count()  # moves on by one at a time, whoever asks
        self._source = EngineNormals() if self.secure_noise else SeededNormals(self.generator)

    def clip_and_accumulate(self) -> None:
        """Refuse a batch that is for another step; then as ever."""
        now, loader = self.watch._now, self.watch.loader
        assert isinstance(loader, AcrossLoader)
        if now is not None and loader.steps_of.get(now.token) != self.accountant.taken:
            raise InvalidInput(
                f"step={self.accountant.taken + 1} is not for this batch of the loader: records have their places "
                "among the steps, so step on every batch in its turn, and after a break start a new pass over it."
            )
        super().clip_and_accumulate()

    def _noisy_sum(self, flat: torch.Tensor) -> torch.Tensor:
        counted = self.accountant.taken - 1  # a step is counted before its noise is drawn
        scale, row = self.plan.noise_multiplier * self.plan.clip_norm, self.plan.factorisation.row(max(counted, 0))
        draw = self._source.prepared(flat, scale, row)
        if next(self._steps) != counted:
            raise InvalidInput(
                f"step={counted + 1} is not the one whose noise is next, and two sums with the same noise would tell "
                "both: this training broke off and cannot go on; start a new one, and add up what both cost."
            )
        return draw()


class EngineNormals:
    """Normals of any step by the engine: cryptographic, and their weighted sum is rounded exactly."""

    def __init__(self) -> None:
        self._stream = ChaChaStream.secure().claim()

    def prepared(self, flat: torch.Tensor, scale: float, row: Row) -> Callable[[], torch.Tensor]:
        """Check the sum; the function returned adds scale times the row's coefficients with their steps' normals."""
        return prepare_noise_on_device(AcrossSteps(Real.exactly(scale), row), flat, self._stream)


class SeededNormals:
    """Normals of any step, by torch's generator: for experiments, since whoever has the seed knows the noise."""

    def __init__(self, generator: torch.Generator | None) -> None:
        device = "cpu" if generator is None else generator.device
        self._seed = int(torch.randint(0, 2**62, (1,), generator=generator, device=device))

    def prepared(self, flat: torch.Tensor, scale: float, row: Row) -> Callable[[], torch.Tensor]:
        """As that of the engine, in floats."""
        return functools.partial(self._noisy, flat, scale, row)

    def _noisy(self, flat: torch.Tensor, scale: float, row: Row) -> torch.Tensor:
        total = torch.zeros_like(flat, dtype=torch.float32)
        for step, coefficient in row:
            total.add_(self._normals(step, flat.numel(), flat.device), alpha=coefficient)
        return flat + total.mul_(scale)

    def _normals(self, step: int, count: int, device: torch.device) -> torch.Tensor:
        seed = int(np.random.SeedSequence([self._seed, step]).generate_state(1, np.uint64)[0])
        generator = torch.Generator(device).manual_seed(seed % 2**63)
        return torch.randn(count, device=device, generator=generator)
