"""Opacus's optimizer with the noise of any lessnoise mechanism, over the whole gradient as one vector."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from opacus.optimizers import DistributedDPOptimizer, DPOptimizer
from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed

from lessnoise.errors import InvalidInput
from lessnoise.learn import noise
from lessnoise.mechanism.sampling import noise_form, prepare_noise
from lessnoise.noise import Integers, Stream, compiled_kernels
from lessnoise.noise.compiled import LOADING

if TYPE_CHECKING:
    from lessnoise.learn.accountant import ExactAccountant
    from lessnoise.learn.loader import PoissonSampler


class MechanismOptimizer(DPOptimizer):
    """Clips and sums as Opacus does; then adds the mechanism's noise to the flattened sum."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        accountant: ExactAccountant,
        sampler: PoissonSampler,
        secure_noise: bool,
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(optimizer, **options)
        self.accountant = accountant
        self.sampler = sampler
        self.secure_noise = secure_noise
        self._taken_before: int | None = None
        plan = accountant.plan
        if secure_noise and plan.steps * plan.mechanism.dimension >= LOADING:  # so many draws: compile before the first
            form = noise_form(plan.mechanism.law, plan.mechanism.shape)
            if not isinstance(form, Integers):
                compiled_kernels(form.kernels)

    def clip_and_accumulate(self) -> None:
        """Refuse what was not accounted for, then let Opacus clip, then refuse what is not finite."""
        accountant, mechanism = self.accountant, self.accountant.plan.mechanism
        accountant.check_room()
        if self.max_grad_norm != mechanism.sensitivity:
            raise InvalidInput(
                f"max_grad_norm={self.max_grad_norm} was changed from clip_norm={mechanism.sensitivity:g}, which the "
                "noise was chosen for: call make_private again for another one."
            )
        self._check_sampler()
        super().clip_and_accumulate()
        # Clipped gradients do not overflow in a sum, so that it is finite if and only if all of them are.
        if not math.isfinite(torch.cat([p.summed_grad.reshape(-1) for p in self.params]).sum().item()):
            for p in self.params:
                p.summed_grad = None
            raise InvalidInput(
                "gradient=nan or infinite: no noise was drawn and nothing was released; look for a division by zero in "
                "the loss, too large inputs or too large a learning rate."
            )

    def _check_sampler(self) -> None:
        """Every step uses up one batch of the Poisson loader; batches from elsewhere would not be accounted for."""
        if self._taken_before is None:  # a resumed training has steps behind it
            self._taken_before = self.accountant.taken
        if self.sampler.issued <= self.accountant.taken - self._taken_before:
            raise InvalidInput(
                f"step={self.accountant.taken + 1} is not for a batch of the Poisson loader, so the accounting would "
                "be wrong: iterate over the data_loader that make_private returned, and step once a batch."
            )

    def add_noise(self) -> None:
        """The noisy sum, into ``p.grad``."""
        for p in self.params:
            _check_processed_flag(p.summed_grad)
        flat = torch.cat([p.summed_grad.reshape(-1) for p in self.params])
        noisy = self._secure(flat) if self.secure_noise else self._on_device(flat)
        for p, part in zip(self.params, noisy.split([p.numel() for p in self.params]), strict=True):
            p.grad = part.view_as(p).to(p.dtype)
            _mark_as_processed(p.summed_grad)

    def _secure(self, flat: torch.Tensor) -> torch.Tensor:
        """By the engine: exact, cryptographic, on the CPU."""
        mechanism = self.accountant.plan.mechanism
        value = flat.detach().to("cpu", torch.float64).numpy().reshape(mechanism.shape)
        noisy = prepare_noise(mechanism.law, value, Stream.secure())()
        return torch.from_numpy(noisy.reshape(-1)).to(flat.device, flat.dtype)

    def _on_device(self, flat: torch.Tensor) -> torch.Tensor:
        drawn = noise.draw(self.accountant.plan.mechanism.law, flat.numel(), flat.device, self.generator)
        return flat + drawn.to(flat.dtype)


class DistributedMechanismOptimizer(DistributedDPOptimizer, MechanismOptimizer):
    """Opacus's distributed step (the first rank adds the noise, then sums are shared) with our noise."""
