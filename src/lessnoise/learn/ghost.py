"""Large models: the records' gradients a few records and one layer at a time, never all of them at once.

The backward pass keeps of each layer its inputs and the gradients of its outputs, from which any record's gradient
follows (the book-keeping of Bu, Wang, Zha and Karypis 2023, arXiv:2210.00038). Each gradient is computed from them
twice: once for its norm, once to be clipped, cut to whole numbers and summed as in ``gradients.py``. So sums are as
exact as in the other modes. Ghost norms (Goodfellow 2015, arXiv:1510.01799; Li et al. 2022, arXiv:2110.05679) with a
second backward pass would take less time and prove less: a norm of float32 products can come out far too small where
they cancel, and the floating-point sum of a whole batch rounds differently for everyone if one record is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from opacus.grad_sample import GradSampleModule
from opacus.grad_sample.functorch import ft_compute_per_sample_gradient
from opacus.utils.module_utils import trainable_parameters

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Use:
    """One call of a layer in the forward pass, with what came back to it."""

    layer: torch.nn.Module
    inputs: list[torch.Tensor]
    backprops: torch.Tensor
    rows: int  # records of the pass; in a packed sequence some calls are for fewer


@dataclass(slots=True)
class Layer:
    """The gradients of some parameters, a row a record, computed when a slice of the records is asked for."""

    parameters: list[torch.nn.Parameter]
    uses: list[Use] = field(default_factory=list)
    samplers: dict[type, Any] = field(default_factory=dict)
    rows: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Records, and entries of the parameters together."""
        return self.rows, sum(p.numel() for p in self.parameters)

    @property
    def device(self) -> torch.device:
        """Where the gradients are computed."""
        return self.parameters[0].device

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, part: slice) -> torch.Tensor:
        """The gradients of these records."""
        start, stop, _ = part.indices(self.rows)
        found: dict[torch.nn.Parameter, torch.Tensor] = {}
        for use in self.uses:
            backprops = use.backprops[start:stop]
            if not len(backprops):
                continue
            sampler = self.samplers.get(type(use.layer), ft_compute_per_sample_gradient)
            inputs = [one[start:stop] for one in use.inputs]
            for p, gradient in sampler(use.layer, inputs, backprops).items():
                if p not in found:
                    found[p] = gradient.new_zeros(stop - start, p.numel())
                found[p][: len(gradient)] += gradient.reshape(len(gradient), -1)
        return torch.cat([found[p] for p in self.parameters], dim=1)


class GhostModule(GradSampleModule):
    """Opacus's module with its hooks, which here keep what gradients follow from instead of the gradients."""

    def __init__(self, *options: Any, **named: Any) -> None:  # noqa: ANN401
        super().__init__(*options, **named)
        self.uses: list[Use] = []

    def capture_backprops_hook(
        self,
        module: torch.nn.Module,
        _forward_input: object,
        forward_output: Sequence[torch.Tensor],
        loss_reduction: str,
        batch_first: bool,
    ) -> None:
        """Called by autograd when the gradient of a layer's output is known."""
        if not self.hooks_enabled:
            return
        inputs, backprops = self.rearrange_grad_samples(
            module=module,
            backprops=forward_output[0].detach(),
            loss_reduction=loss_reduction,
            batch_first=batch_first,
        )
        self.uses.append(Use(module, inputs, backprops, module.max_batch_len))
        for _, p in trainable_parameters(module):
            p._forward_counter -= 1
        if not module.activations:
            del module.max_batch_len

    def layers(self, parameters: Sequence[torch.nn.Parameter], rows: int) -> list[Layer]:
        """What was kept, sorted by parameters: those that share a layer are together."""
        order = {p: place for place, p in enumerate(parameters)}
        home: dict[torch.nn.Parameter, Layer] = {}
        for use in self.uses:
            own = [p for _, p in trainable_parameters(use.layer) if p in order]
            joined = Layer([], [], self.GRAD_SAMPLERS, rows)
            for old in {id(home[p]): home[p] for p in own if p in home}.values():
                joined.parameters += old.parameters
                joined.uses += old.uses
            joined.uses.append(use)
            joined.parameters = sorted({*joined.parameters, *own}, key=order.__getitem__)
            home.update(dict.fromkeys(joined.parameters, joined))
        if len(home) != len(order) or any(use.rows != max(rows, 1) for use in self.uses):
            return []  # some parameter has none, or some layer has other rows than records
        return list({id(layer): layer for layer in home.values()}.values())

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Forget gradients, and what they follow from."""
        self.uses = []
        super().zero_grad(set_to_none)


def kept_gradients(
    module: torch.nn.Module, parameters: Sequence[torch.nn.Parameter], rows: int
) -> list[torch.Tensor | Layer]:
    """The gradients that the last backward pass left, a row a record, for each parameter or for each layer."""
    found: list[torch.Tensor | Layer] = []
    if isinstance(module, GhostModule):
        found += module.layers(parameters, rows)
    elif all(isinstance(p.grad_sample, torch.Tensor) and len(p.grad_sample) == max(rows, 1) for p in parameters):
        found += [p.grad_sample[:rows] for p in parameters]
    if not found:
        raise InvalidInput(
            "gradients are not those of this batch alone: call zero_grad() and loss.backward() once for each batch, "
            "freeze parameters that the model does not use, and use others only in their own layers."
        )
    return found


def by_parameter(
    gradients: Sequence[torch.Tensor | Layer], values: Sequence[torch.Tensor], parameters: Sequence[torch.nn.Parameter]
) -> list[torch.Tensor]:
    """One value a parameter, of one a parameter or one a layer."""
    if not any(isinstance(gradient, Layer) for gradient in gradients):
        return list(values)
    found: dict[torch.nn.Parameter, torch.Tensor] = {}
    for place, (gradient, value) in enumerate(zip(gradients, values, strict=True)):
        own = gradient.parameters if isinstance(gradient, Layer) else [parameters[place]]
        parts = value.reshape(-1).split([p.numel() for p in own])
        found.update((p, part.view(p.shape)) for p, part in zip(own, parts, strict=True))
    return [found[p] for p in parameters]
