"""What watches over a private training: that each step is for a drawn batch, and each gradient for one record.

The loss of a batch is computed record by record, so that it cannot normalise over the batch. Before the first step the
model's outputs and gradients for records in their batch are compared with those for the same records alone.
"""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from lessnoise.errors import InvalidInput
from lessnoise.learn.answers import on_its_way
from lessnoise.learn.batch import Drawn, close, mapped, plain, tagged
from lessnoise.learn.comparison import Pass, agreement, check_buffers, check_leaves, check_records, trained
from lessnoise.learn.ghost import GhostModule, kept_gradients

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.learn.ghost import Layer
    from lessnoise.learn.loader import PoissonLoader
    from lessnoise.learn.opacus_accountant import ExactAccountant


class _Mean(torch.autograd.Function):
    """The mean of the records' losses, for people. Gradients are those of the sum, which no size of batch rounds."""

    @staticmethod
    def forward(ctx: Any, losses: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
        ctx.rows = len(losses)
        return losses.sum() / max(len(losses), 1)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
        return gradient.expand(ctx.rows)


class Watch:
    """The checks of one training. ``loss`` is to be used in place of the function that it was made from."""

    def __init__(
        self,
        module: torch.nn.Module,
        loss: Callable[..., torch.Tensor],
        accountant: ExactAccountant,
        loader: PoissonLoader,
        *,
        mean: bool,
    ) -> None:
        self.module, self.accountant, self.loader = module, accountant, loader
        self.proved = False
        self._loss, self._mean = loss, mean
        self._vmapped = True
        self._now: Pass | None = None
        self._used: set[str] = set()
        self._inside = self._comparing = False
        self._buffers: dict[str, torch.Tensor] = {}
        module.register_forward_pre_hook(self._enter, with_kwargs=True)
        module.register_forward_hook(self._leave, always_call=True)
        self.hooks = [
            part.register_forward_pre_hook(self._enter_part)
            for part in module._module.modules()
            if any(p.requires_grad for p in part.parameters(recurse=False))
        ]

    # What the model and the loss are given.

    @property
    def _training(self) -> bool:
        return self.module._module.training and torch.is_grad_enabled() and not self._comparing

    def _enter(self, module: object, args: Any, kwargs: Any) -> tuple[Any, Any] | None:  # noqa: ANN401
        """Let in records of one drawn batch that was not used before."""
        if not self._training:
            self._inside = True
            return None
        drawn = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Drawn)]
        if not drawn:
            raise self._refusal("the model's input is not what that loader yielded, or was made from")
        token = _token(drawn, "the model's input")
        if not self.loader.collate_fn.made(token):
            raise self._refusal("the model's input is of another loader")
        if token in self._used:
            raise self._refusal("this batch was used for a step already")
        if self._now is not None:
            raise InvalidInput(
                "model was called twice before a step: call it once for each batch, and use torch.no_grad() for every "
                "other call; after a pass that broke off, start a new pass over the loader."
            )
        rows = len(drawn[0])
        inputs = tree_map(plain if rows else _filled, (args, kwargs))
        self._now = Pass(token, rows, inputs)
        if not self.proved:
            self._buffers = {name: value.clone() for name, value in self.module.named_buffers()}
        self._inside = True
        return inputs  # type: ignore[no-any-return]

    def _enter_part(self, part: torch.nn.Module, args: object) -> None:
        if part.training and torch.is_grad_enabled() and not self._inside:
            raise InvalidInput(
                f"{type(part).__name__} of the model was called by itself: call private.model, whose gradients are "
                "watched, or use torch.no_grad()."
            )

    def _leave(self, module: object, args: object, outputs: Any) -> Any:  # noqa: ANN401
        """Mark the outputs, and note which gradients come back to them."""
        self._inside = False
        now = self._now
        if now is None or outputs is None or not self._training:  # no outputs: the model has failed
            return None
        now.outputs = trained(outputs)
        if not now.outputs or any(not leaf.dim() or len(leaf) != max(now.rows, 1) for leaf in now.outputs):
            raise InvalidInput(
                "model returns something else than a tensor with a row for each record (or a tuple or dict of such): "
                "return these, and leave the loss to private.loss."
            )
        if not self.proved:
            for place, leaf in enumerate(now.outputs):
                leaf.register_hook(lambda gradient, place=place: now.arrived.__setitem__(place, gradient))
        return tagged(outputs if now.rows else mapped(outputs, lambda leaf: leaf[:0]), now.token, now.rows)

    def loss(self, outputs: Any, *targets: Any) -> torch.Tensor:  # noqa: ANN401
        """The mean (or the sum) of the records' losses, each computed from this record's output and targets alone."""
        if not torch.is_grad_enabled():
            outputs, targets = tree_map(plain, (outputs, targets))
            return self._loss(outputs, *targets)
        now = self._now
        given = [leaf for leaf in tree_leaves((outputs, targets)) if isinstance(leaf, torch.Tensor) and leaf.dim()]
        if now is None or any(not isinstance(leaf, Drawn) for leaf in given):
            raise self._refusal(
                "private.loss takes outputs of private.model and targets from the same batch, and constants belong "
                "into the function that was passed as loss="
            )
        if _token(given, "what private.loss was given") != now.token:
            raise self._refusal("private.loss was given outputs or targets of another batch")
        if now.has_loss:
            raise InvalidInput("private.loss was called twice on one batch: put all terms into one function.")
        now.has_loss = True
        outputs, targets = tree_map(plain, (outputs, targets))
        losses = self._each(outputs, targets, now.rows)
        value = _Mean.apply(losses) if self._mean else losses.sum()
        if not self.proved and now.rows > 1:
            check_leaves(value, now.outputs)
            self._check_loss(losses.detach().double(), outputs, targets)
            now.expected = torch.autograd.grad(
                value, now.outputs, retain_graph=True, allow_unused=True, materialize_grads=True
            )
        value.register_hook(functools.partial(_check_backward, now))
        return value

    def _each(self, outputs: Any, targets: Any, rows: int) -> torch.Tensor:  # noqa: ANN401
        """The loss of each record: by vmap, or one after the other where the function does not allow it."""
        leaves, form = tree_flatten((outputs, targets))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.dim()]

        def alone(*record: torch.Tensor) -> torch.Tensor:
            filled = list(leaves)
            for place, value in zip(places, record, strict=True):
                filled[place] = value.unsqueeze(0)
            output, target = tree_unflatten(filled, form)
            value = self._loss(output, *target)
            if not isinstance(value, torch.Tensor) or value.numel() != 1:
                raise InvalidInput(
                    f"loss={_name(self._loss)} returns more than one number for one record: give it "
                    'reduction="mean" or "sum".'
                )
            return value.reshape(())

        records = [leaves[place] for place in places]
        quick = _by_entry(self._loss, outputs, targets)
        if quick is not None:
            return quick
        if self._vmapped:
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "There is a performance drop")  # still faster than one by one
                    return torch.func.vmap(alone, randomness="different")(*records)  # type: ignore[no-any-return]
            except InvalidInput:
                raise
            except (RuntimeError, ValueError, TypeError):
                self._vmapped = False
        if not rows:
            return torch.cat([leaf.reshape(-1) for leaf in records if leaf.requires_grad])  # empty, with a gradient
        return torch.stack([alone(*(leaf[row] for leaf in records)) for row in range(rows)])

    def _check_loss(self, losses: torch.Tensor, outputs: Any, targets: Any) -> None:  # noqa: ANN401
        """The loss of the batch is to be the mean or the sum of its records' losses, and the same when asked again."""
        name = _name(self._loss)
        devices = sorted({loss.get_device() for loss in (losses,) if loss.is_cuda})
        with torch.no_grad():
            try:
                whole = self._loss(outputs, *targets)
                again = []
                for _ in range(2):
                    with torch.random.fork_rng(devices):
                        torch.manual_seed(0)
                        again.append(self._each(outputs, targets, len(losses)))
            except RuntimeError as error:
                raise InvalidInput(
                    f"loss={name} could be computed for one record at a time, and then not for all of a batch: it is "
                    "to keep nothing of the records that it has seen, and to take batches of every size."
                ) from error
        if not close(again[0], again[1], 1e-6):
            raise InvalidInput(
                f"loss={name} of the same records is another one when computed again: it keeps something of the "
                "records that it has seen, which would be published without noise."
            )
        if whole.numel() != 1 or not whole.isfinite():
            return
        share = agreement(whole, otherwise=1e-2)
        if not any(close(whole.reshape(()), own, share) for own in (losses.mean(), losses.sum())):
            raise InvalidInput(
                f"loss={name} of a batch is neither the mean nor the sum of its records' losses: it mixes records, or "
                "divides by something of the batch, as class weights and ignore_index do with "
                'reduction="mean": take reduction="sum", which here is applied to one record at a time.'
            )

    # Before the gradients are summed.

    def gradients(self, parameters: list[torch.nn.Parameter]) -> list[torch.Tensor | Layer]:
        """The records' gradients, by parameter or layer; refused if they are not those of one pass of a drawn batch."""
        now = self._now
        if now is None:
            raise self._refusal("no batch of that loader has gone through the model since the last step")
        if not now.has_loss:
            raise self._refusal("its loss was not computed by private.loss, which keeps records apart")
        place = self.loader.places.get(now.token)
        if place is None:
            raise self._refusal("this batch is not of the present pass over the loader")
        if place.before is not None and place.before not in self._used:
            raise self._refusal("the batch before was left out, and the accounting counts on every one, even if empty")
        found = kept_gradients(self.module, parameters, now.rows)
        if not self.proved and now.rows > 1:
            self._check_records(now, parameters, found)
            self.proved = True
        return found

    def check_factor(self) -> None:
        """Refuse gradients of a loss that was multiplied; to be called before they are released."""
        assert self._now is not None
        _check_factor(self._now)

    def close(self) -> bool:
        """The batch has been summed; True if its Poisson sample ends with it."""
        assert self._now is not None
        token = self._now.token
        self._used.add(token)
        self._forget()
        return self.loader.places[token].last

    def restart(self) -> None:
        """Forget a batch that was left halfway, and what Opacus has kept of it."""
        self._forget()
        for part in self.module.modules():
            part.__dict__.pop("activations", None)
            part.__dict__.pop("max_batch_len", None)
        for p in self.module.parameters():
            p.grad_sample, p._forward_counter = None, 0
            p.__dict__.pop("_current_grad_sample", None)

    def _forget(self) -> None:
        self._now = None
        if isinstance(self.module, GhostModule):
            self.module.uses = []

    def _check_records(
        self, now: Pass, parameters: list[torch.nn.Parameter], found: list[torch.Tensor | Layer]
    ) -> None:
        """Compare the first pass with records on their own; what can be compared before the first step."""
        check_buffers(self.module, self._buffers)
        saved = [(p.grad_sample, p.grad) for p in parameters]
        self._comparing = True
        try:
            check_records(self.module, now, parameters, found, 1e-6 * self.accountant.plan.mechanism.sensitivity)
        finally:
            self._comparing = False
            for p, (sample, gradient) in zip(parameters, saved, strict=True):
                p.grad_sample, p.grad = sample, gradient

    def _refusal(self, reason: str) -> InvalidInput:
        return InvalidInput(
            f"step={self.accountant.taken + 1} is not for a batch of the Poisson loader, so the accounting would be "
            f"wrong: {reason}. Iterate over the data_loader that make_private returned, step once on every batch, and "
            "prepare records in the data set, its collate_fn or the model."
        )


def _filled(leaf: Any) -> Any:  # noqa: ANN401
    """Not every layer can handle no records: for an empty batch it is given one of zeros, which is then left out."""
    return plain(leaf).new_zeros(1, *leaf.shape[1:]) if isinstance(leaf, Drawn) else leaf


def _token(drawn: list[Drawn], what: str) -> str:
    tokens = {leaf.token for leaf in drawn}
    if len(tokens) > 1 or None in tokens:
        raise InvalidInput(
            f"{what} was computed across the records of a batch (or of several): prepare each record by itself, with "
            "the records along the first axis, or do it in the data set, its collate_fn or the model."
        )
    return tokens.pop()  # type: ignore[return-value]


def _check_backward(now: Pass, gradient: torch.Tensor) -> None:
    now.has_own_factor = on_its_way(gradient == 1.0)
    if not gradient.is_cuda:  # else the answer is awaited before the step
        _check_factor(now)
    if now.has_gradient:
        raise InvalidInput("loss.backward() was called twice on one batch: call it once, and then step().")
    now.has_gradient = True


def _check_factor(now: Pass) -> None:
    if not now.has_own_factor():
        raise InvalidInput(
            "private.loss was multiplied before backward(), and a factor that depends on the batch would not be "
            "private: put factors into the function that is passed as loss=."
        )


def _by_entry(loss: Any, outputs: Any, targets: Any) -> torch.Tensor | None:  # noqa: ANN401
    """The records' losses by torch's own function, where that is known to be one entry a record."""
    plain_one = loss is torch.nn.functional.cross_entropy or (
        type(loss) is torch.nn.CrossEntropyLoss and loss.weight is None and loss.label_smoothing == 0.0
    )
    ignored = getattr(loss, "ignore_index", -100)
    if not plain_one or getattr(loss, "reduction", "mean") == "none" or len(targets) != 1:
        return None
    (labels,) = targets
    if not all(isinstance(leaf, torch.Tensor) for leaf in (outputs, labels)):
        return None
    if outputs.dim() != 2 or labels.dim() != 1 or labels.is_floating_point() or len(outputs) != len(labels):
        return None
    return torch.nn.functional.cross_entropy(outputs, labels, reduction="none", ignore_index=ignored)


def _name(loss: object) -> str:
    return getattr(loss, "__name__", type(loss).__name__)
