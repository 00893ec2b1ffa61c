"""Before the first step a record is computed alone: its output and gradient are to be those that it has in a batch."""

from __future__ import annotations

import contextlib
import functools
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from lessnoise.errors import InvalidInput
from lessnoise.learn.batch import close
from lessnoise.learn.ghost import GhostModule, Layer, by_parameter, kept_gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_AGREE = {torch.float16: 0.05, torch.bfloat16: 0.05}  # shares of a gradient's length within which two are the same
_ALONE = 3  # records of the first batch that are computed alone
_EXACTLY = 1e-6  # share within which two runs of the same are the same


@dataclass
class Pass:
    """One batch on its way through the model: the inputs, the outputs, and the gradients that come back to them."""

    token: str
    rows: int
    inputs: tuple[Any, Any]
    outputs: list[torch.Tensor] = field(default_factory=list)
    expected: list[torch.Tensor] | None = None  # gradients of the loss by the outputs
    arrived: dict[int, torch.Tensor] = field(default_factory=dict)
    has_loss: bool = False
    has_gradient: bool = False
    has_own_factor: Callable[[], bool] = lambda: True  # whether the loss went back as it was


def agreement(*values: torch.Tensor, otherwise: float = 1e-3) -> float:
    """The share within which numbers of these types are the same."""
    return max(_AGREE.get(value.dtype, otherwise) for value in values)


def check_buffers(module: torch.nn.Module, before: Mapping[str, torch.Tensor]) -> None:
    """No buffer may follow the data."""
    for name, value in module.named_buffers():
        old = before.get(name)
        if old is not None and old.shape == value.shape and not torch.equal(old, value):
            raise InvalidInput(
                f"buffer={name} of the model changes with the batches, and would be published without noise: leave it "
                "out."
            )


def check_leaves(loss: torch.Tensor, outputs: list[torch.Tensor]) -> None:
    """A loss may have gradients by the model's outputs alone: others are neither clipped nor noisy."""
    seen = {leaf.grad_fn for leaf in outputs}
    waiting = [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):  # where autograd collects the gradient of a leaf
            raise InvalidInput(
                f"loss= has a gradient by a tensor of shape={tuple(node.variable.shape)} that is not an output of the "
                "model, and which would not be private: make parameters of the loss those of a layer of the model, and "
                "leave penalties on weights to the optimizer's weight_decay."
            )
        waiting += [following for following, _ in node.next_functions]


def check_records(
    module: torch.nn.Module,
    now: Pass,
    parameters: list[torch.nn.Parameter],
    found: list[torch.Tensor | Layer],
    floor: float,
) -> None:
    """Some records of the first batch alone; ``found`` has their gradients in the batch, ``floor`` is negligible."""
    assert now.expected is not None
    gradients = [now.arrived.get(place, torch.zeros_like(leaf)) for place, leaf in enumerate(now.outputs)]
    if not all(close(one, two, 1e-3) for one, two in zip(gradients, now.expected, strict=True)):
        raise InvalidInput(
            "a gradient reached the model's output past private.loss: put all terms of the loss into the function "
            "that is passed as loss=."
        )
    for row in sorted({0, now.rows // 2, now.rows - 1})[:_ALONE]:
        _compare(module, now, gradients, row, parameters, found, floor)


def _compare(
    module: torch.nn.Module,
    now: Pass,
    gradients: list[torch.Tensor],
    row: int,
    parameters: list[torch.nn.Parameter],
    found: list[torch.Tensor | Layer],
    floor: float,
) -> None:
    again = functools.partial(_again, module, now, gradients, parameters)
    samples = [gradient[row : row + 1] for gradient in found]
    share = agreement(*parameters, *samples, *now.outputs)

    def same(one: tuple[Any, Any], other: tuple[Any, Any], share: float) -> bool:
        return close(one[0], other[0], share) and close(one[1], other[1], share, floor)

    everyone = list(range(now.rows))
    other = again([row], 0)
    again(everyone, 0, row)
    if not same(other, again([row], 0), _EXACTLY):
        raise InvalidInput(
            "the output or gradient of a record is another one after other records have passed: the model keeps "
            "something of the records that it has seen, which would be published without noise."
        )
    if same(other, again([row], 1), _EXACTLY):
        batch = _row([leaf.detach() for leaf in now.outputs], row), _joined(by_parameter(found, samples, parameters))
    else:  # a random model: without dropout, and then by the same random numbers beside copies of the record
        with _without_dropout(module):
            batch, other = again(everyone, 0, row), again([row], 0)
            if not same(other, again([row], 1), _EXACTLY):
                other = again([row] * now.rows, 0, row)
    if not same(batch, other, share):
        raise InvalidInput(
            "the output or gradient of a record alone is not that of the same record in its batch: a layer mixes "
            "the records of a batch (statistics or attention over them), uses parameters of another layer, or is "
            "computed wrongly by Opacus (images with permuted strides, say), so that no gradient belongs to one "
            "record."
        )


def _again(
    module: torch.nn.Module,
    now: Pass,
    gradients: list[torch.Tensor],
    parameters: list[torch.nn.Parameter],
    rows: list[int],
    seed: int,
    row: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and gradient of one of these records of the batch; that of a single one by plain autograd."""

    def chosen(leaf: Any) -> Any:  # noqa: ANN401
        if isinstance(leaf, torch.Tensor) and leaf.dim() and len(leaf) == now.rows:
            return leaf.detach()[torch.tensor(rows, device=leaf.device)]
        return leaf

    for p in parameters:
        p.grad_sample = p.grad = None
    if isinstance(module, GhostModule):
        module.uses = []
    devices = sorted({p.get_device() for p in parameters if p.is_cuda})
    with torch.random.fork_rng(devices), torch.enable_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Full backward hook")  # it is about a first layer, and nothing is amiss
        torch.manual_seed(seed)
        args, kwargs = tree_map(chosen, now.inputs)
        try:
            outputs = trained(module(*args, **kwargs))
        except (RuntimeError, ValueError) as error:
            raise InvalidInput(
                f"the model cannot compute {len(rows)} of the {now.rows} records of a batch: each is to be computed by "
                "itself, whatever the others are, so leave out what needs several (F.batch_norm, say)."
            ) from error
        torch.autograd.backward(
            outputs, [chosen(one).to(leaf.dtype) for one, leaf in zip(gradients, outputs, strict=True)]
        )
    output = _row([leaf.detach() for leaf in outputs], row)
    if len(rows) == 1 and all(p.grad is not None for p in parameters):
        return output, _joined([p.grad for p in parameters])
    found = kept_gradients(module, parameters, len(rows))
    return output, _joined(by_parameter(found, [gradient[row : row + 1] for gradient in found], parameters))


@contextlib.contextmanager
def _without_dropout(module: torch.nn.Module) -> Iterator[None]:
    """All layers that train nothing behave as in evaluation."""
    quiet = [part for part in module.modules() if part.training and not list(part.parameters(recurse=False))]
    for part in quiet:
        part.training = False
    try:
        yield
    finally:
        for part in quiet:
            part.training = True


def trained(tree: Any) -> list[torch.Tensor]:  # noqa: ANN401
    """The tensors that have a gradient."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def _row(leaves: list[torch.Tensor], row: int) -> torch.Tensor:
    return _joined([leaf[row] for leaf in leaves])


def _joined(leaves: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([leaf.reshape(-1).double() for leaf in leaves])
