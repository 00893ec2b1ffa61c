"""Opacus's optimizer with exact sums, and with the noise of any lessnoise mechanism over the whole gradient."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import torch
from opacus.optimizers import DistributedDPOptimizer, DPOptimizer

from lessnoise.errors import InvalidInput
from lessnoise.learn.answers import on_its_way
from lessnoise.learn.ghost import by_parameter
from lessnoise.learn.gradients import MOST_SUMMED, clipped_sums, draw
from lessnoise.mechanism import device_form, noise_form, prepare_noise
from lessnoise.noise import (
    KERNELS_LOADING,
    ChaChaStream,
    Integers,
    Stream,
    compiled_kernels,
    has_kernels,
    prepare_noise_on_device,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.learn.loader import PoissonSampler
    from lessnoise.learn.opacus_accountant import ExactAccountant
    from lessnoise.learn.watch import Watch


class MechanismOptimizer(DPOptimizer):
    """Clips and sums the gradients of a watched batch; then adds the mechanism's noise to the flattened sum."""

    watch: Watch

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
        self._noisy = False
        self._one_at_a_time = threading.Lock()
        self._gathered = False  # whether parts of a Poisson sample were summed that await its last one
        self.hook = optimizer.register_step_pre_hook(self._check_noisy)
        sampler.on_start = self._start
        plan = accountant.plan
        if secure_noise and plan.steps * plan.mechanism.dimension >= KERNELS_LOADING:
            # So many draws: compile before the first.
            form = noise_form(plan.mechanism.law, plan.mechanism.shape)
            if not isinstance(form, Integers):
                compiled_kernels(form.kernels)

    def _check_noisy(self, *_: object) -> None:
        """The optimizer that was passed in is not to be stepped by itself, on gradients without noise."""
        if not self._noisy:
            raise InvalidInput(
                "optimizer.step() is that of the optimizer without noise: call step() of the one that make_private "
                "returned."
            )
        self._noisy = False

    def _start(self) -> None:
        """A new pass: forget the parts of a sample that an abandoned one has left behind."""
        self._gathered = False
        self.watch.restart()

    def signal_skip_step(self, do_skip: bool = True) -> None:
        """Opacus's BatchMemoryManager says only that there are parts, not which part a step is for."""
        raise InvalidInput(
            f"signal_skip_step(do_skip={do_skip}) is Opacus's way to split batches, which does not notice a part that "
            "is left out or used twice: iterate over private.virtual(max_rows=...) instead."
        )

    @property
    def accumulated_iterations(self) -> int:
        """One batch a step, however many parts it has."""
        return 1

    def clip_and_accumulate(self) -> None:
        """Refuse what was not accounted for; then clip, and add to the sum of the parts before."""
        accountant, mechanism = self.accountant, self.accountant.plan.mechanism
        accountant.check_room()
        if self.max_grad_norm != mechanism.sensitivity:
            raise InvalidInput(
                f"max_grad_norm={self.max_grad_norm} was changed from clip_norm={mechanism.sensitivity:g}, which the "
                "noise was chosen for: call make_private again for another one."
            )
        if sum(p.numel() for p in self.params) != mechanism.dimension:
            raise InvalidInput(
                f"parameters={sum(p.numel() for p in self.params)} are trained, and the noise was chosen for "
                f"{mechanism.dimension}: freeze and unfreeze before make_private."
            )
        finite = finite_weights(self.params)
        with self._one_at_a_time:
            gradients = self.watch.gradients(self.params)
            sums = by_parameter(gradients, clipped_sums(gradients, self.max_grad_norm), self.params)
            self.watch.check_factor()
            if not finite():
                raise InvalidInput(
                    "weight=nan or infinite after the last step: no noise was drawn and nothing was released; take a "
                    "smaller learning rate."
                )
            for p, total in zip(self.params, sums, strict=True):
                p.summed_grad = p.summed_grad + total if self._gathered else total
                p.grad_sample = p.grad = None  # of no more use, and private
            self._gathered = not self.watch.close()

    def pre_step(self, closure: object = None) -> bool:
        """All but the step itself, which a part of a sample does not have.

        The step is counted before its noise is drawn: whatever happens then, it has been paid for.
        """
        self.clip_and_accumulate()
        self._is_last_step_skipped = self._gathered
        if self._gathered:
            return False
        self.step_hook(self)
        try:
            self.add_noise()
            self.scale_grad()
        except BaseException:  # nothing half done is left for a step
            self._noisy = False
            for p in self.params:
                p.grad = p.summed_grad = None
            raise
        return True

    def add_noise(self) -> None:
        """The noisy sum, into ``p.grad``."""
        noisy = self._noisy_sum(torch.cat([p.summed_grad.reshape(-1) for p in self.params]))
        if len({(p.dtype, p.device) for p in self.params}) == 1:
            noisy = noisy.to(self.params[0].device, self.params[0].dtype)  # all at once
        for p, part in zip(self.params, noisy.split([p.numel() for p in self.params]), strict=True):
            p.grad = part.view_as(p).to(p.device, p.dtype)
        self._noisy = True

    def scale_grad(self) -> None:
        """From the sum to the mean of a batch of the expected size, all parameters at once."""
        if self.loss_reduction == "mean":
            torch._foreach_div_([p.grad for p in self.params], self.expected_batch_size)

    def _noisy_sum(self, flat: torch.Tensor) -> torch.Tensor:
        return self._secure(flat) if self.secure_noise else self._on_device(flat)

    def _secure(self, flat: torch.Tensor) -> torch.Tensor:
        """By the engine: exact, cryptographic, where the model is if its device has kernels for it, else on the CPU."""
        mechanism = self.accountant.plan.mechanism
        form = device_form(mechanism.law, mechanism.shape) if has_kernels(flat.device) else None
        if form is not None:
            bound = MOST_SUMMED * self.max_grad_norm
            return prepare_noise_on_device(form, flat, ChaChaStream.secure(), out=flat, bound=bound)()
        value = flat.detach().to("cpu", torch.float64).numpy().reshape(mechanism.shape)
        noisy = prepare_noise(mechanism.law, value, Stream.secure())()
        return torch.from_numpy(noisy.reshape(-1)).to(flat.device)

    def _on_device(self, flat: torch.Tensor) -> torch.Tensor:
        return flat + draw(self.accountant.plan.mechanism.law, flat.numel(), flat.device, self.generator)


def finite_weights(parameters: list[torch.nn.Parameter]) -> Callable[[], bool]:
    """Whether all weights are finite, by the largest ones, to which a NaN spreads."""
    devices: dict[torch.device, list[torch.Tensor]] = {}
    for p in parameters:
        if p.numel():
            devices.setdefault(p.device, []).append(p.detach())
    norms = (torch.stack(torch._foreach_norm(weights, math.inf)) for weights in devices.values())
    answers = [on_its_way(largest.isfinite().all()) for largest in norms]
    return lambda: all(answer() for answer in answers)


class DistributedMechanismOptimizer(DistributedDPOptimizer, MechanismOptimizer):
    """The sums of all processes are added first, exactly; one noise goes on their sum, which all then have."""

    add_noise = MechanismOptimizer.add_noise

    def _noisy_sum(self, flat: torch.Tensor) -> torch.Tensor:
        torch.distributed.all_reduce(flat)
        noisy = super()._noisy_sum(flat) if self.rank == 0 else torch.empty_like(flat)
        torch.distributed.broadcast(noisy, src=0)
        return noisy

    def reduce_gradients(self) -> None:
        """They are those of all processes already."""
