"""Opacus's engine with our loader, optimizer and accountant in their places; all else is Opacus's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opacus import PrivacyEngine

from lessnoise.learn.loader import poisson_loader
from lessnoise.learn.optimizer import DistributedMechanismOptimizer, MechanismOptimizer

if TYPE_CHECKING:
    import torch

    from lessnoise.learn.accountant import ExactAccountant


class ExactPrivacyEngine(PrivacyEngine):
    """Poisson samples and noise by lessnoise; gradients, clipping and all checks of models by Opacus."""

    def __init__(self, accountant: ExactAccountant, *, secure: bool, generator: torch.Generator | None) -> None:
        # Opacus's own secure_mode is another package's generator; ours is the engine, so theirs stays off.
        self.accountant = accountant
        self.secure_mode = False
        self.secure_rng = None
        self.dataset = None
        self._secure, self._generator = secure, generator

    def _prepare_data_loader(self, data_loader: Any, *, distributed: bool, **_: object) -> Any:  # noqa: ANN401
        self.dataset = data_loader.dataset
        loader = poisson_loader(
            data_loader, secure=self._secure, generator=_on_cpu(self._generator), distributed=distributed
        )
        self._sampler = loader.batch_sampler
        return loader

    def _prepare_optimizer(
        self,
        *,
        optimizer: torch.optim.Optimizer,
        noise_multiplier: float,
        max_grad_norm: float,
        expected_batch_size: float,
        loss_reduction: str = "mean",
        distributed: bool = False,
        **_: object,
    ) -> MechanismOptimizer:
        kind = DistributedMechanismOptimizer if distributed else MechanismOptimizer
        return kind(
            optimizer,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            expected_batch_size=expected_batch_size,
            loss_reduction=loss_reduction,
            generator=self._generator,
            accountant=self.accountant,
            sampler=self._sampler,
            secure_noise=self._secure,
        )


def _on_cpu(generator: torch.Generator | None) -> torch.Generator | None:
    """Samples are drawn on the CPU: for a generator of another device, one that it seeds."""
    import torch

    if generator is None or generator.device.type == "cpu":
        return generator
    seed = torch.randint(0, 2**62, (1,), generator=generator, device=generator.device)
    return torch.Generator().manual_seed(int(seed))
