"""Opacus's engine with our loader, optimizer and accountant in their places; all else is Opacus's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opacus import PrivacyEngine

from lessnoise.errors import InvalidInput
from lessnoise.learn.across import AcrossPlan
from lessnoise.learn.across.loader import across_loader
from lessnoise.learn.across.optimizer import AcrossOptimizer
from lessnoise.learn.ghost import GhostModule
from lessnoise.learn.loader import PoissonLoader, poisson_loader
from lessnoise.learn.optimizer import DistributedMechanismOptimizer, MechanismOptimizer
from lessnoise.learn.processes import check_agreement, local_only, pay_once
from lessnoise.learn.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from lessnoise.learn.opacus_accountant import ExactAccountant


class ExactPrivacyEngine(PrivacyEngine):
    """Poisson samples, sums, noise and checks by lessnoise; the records' gradients by Opacus."""

    def __init__(
        self, accountant: ExactAccountant, *, batches: int, secure: bool, generator: torch.Generator | None
    ) -> None:
        # Opacus's own secure_mode is another package's generator; ours is the engine, so theirs stays off.
        self.accountant = accountant
        self.secure_mode = False
        self.secure_rng = None
        self.dataset = None
        self._batches, self._secure, self._generator = batches, secure, generator

    def watched(
        self,
        loss: Callable[..., torch.Tensor],
        **options: Any,  # noqa: ANN401
    ) -> tuple[Any, MechanismOptimizer, PoissonLoader, Watch]:
        """Opacus's ``make_private``, and what watches over its parts."""
        model, optimizer, *_, loader = self.make_private(**options)
        loader.batch_sampler.device = next(options["module"].parameters()).device
        watch = Watch(model, loss, self.accountant, loader, mean=options["loss_reduction"] == "mean")
        optimizer.watch = watch
        self._hooks = [*watch.hooks, optimizer.hook]
        local_only(options["module"])
        self._distributed = isinstance(optimizer, DistributedMechanismOptimizer)
        return model, optimizer, loader, watch

    def pay(self, pay: Callable[[], object], *, has_ledger: bool) -> None:
        """Once for all processes, if these agree."""
        if not self._distributed:
            pay()
            return
        accountant = self.accountant
        check_agreement(
            accountant.plan,
            records_in_data_set=len(self.dataset),  # type: ignore[arg-type]
            secure_mode=self._secure,
            ledger=has_ledger,
            taken=accountant.taken,
        )
        pay_once(pay)

    def undo(self, model: Any) -> None:  # noqa: ANN401
        """Leave the model and the optimizer as they were."""
        model.to_standard_module()
        for hook in self._hooks:
            hook.remove()

    def _prepare_model(self, module: Any, **options: Any) -> Any:  # noqa: ANN401
        """Opacus's wrapper, or ours; the watched loss has the gradients of a sum."""
        if options["grad_sample_mode"] == "ghost":
            return GhostModule(module, loss_reduction="sum")
        return super()._prepare_model(module, **options | {"loss_reduction": "sum"})

    def _prepare_criterion(self, **_: object) -> None:
        """The loss is the watched one; ghost norms and their second backward pass are not used."""

    def _prepare_data_loader(self, data_loader: Any, *, distributed: bool, **_: object) -> Any:  # noqa: ANN401
        self.dataset = data_loader.dataset
        randomness: dict[str, Any] = {"secure": self._secure, "generator": _on_cpu(self._generator)}
        plan = self.accountant.plan
        if isinstance(plan, AcrossPlan):
            if distributed:
                raise InvalidInput(
                    f"mechanism={plan.factorisation.kind!r} with DistributedDataParallel is not supported: train in "
                    'one process, or take mechanism="gaussian".'
                )
            loader: PoissonLoader = across_loader(data_loader, plan, **randomness)
        else:
            loader = poisson_loader(data_loader, self._batches, distributed=distributed, **randomness)
        self._sampler = loader.batch_sampler
        return loader

    def _prepare_optimizer(
        self,
        *,
        optimizer: torch.optim.Optimizer,
        noise_multiplier: float,
        max_grad_norm: float,
        loss_reduction: str = "mean",
        distributed: bool = False,
        **_: object,
    ) -> MechanismOptimizer:
        kind = DistributedMechanismOptimizer if distributed else MechanismOptimizer
        if isinstance(self.accountant.plan, AcrossPlan):
            kind = AcrossOptimizer
        return kind(
            optimizer,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            expected_batch_size=self.accountant.plan.records / self._batches,  # Opacus would count the records
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
