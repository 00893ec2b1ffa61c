"""``make_private``: a model, an optimizer and a loader become private ones."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from lessnoise import noise, validation
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.learn.across import KINDS, AcrossPlan, Factorisation, plan_across_steps
from lessnoise.learn.plan import PUBLISHED, TrainingPlan, plan_training
from lessnoise.text import down

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch

    from lessnoise.learn.loader import PoissonLoader
    from lessnoise.learn.opacus_accountant import ExactAccountant
    from lessnoise.ledger import Ledger
    from lessnoise.mechanism import Mechanism

CIPHERS = ("AES-256-CTR", "ChaCha20")  # of the CPU's engine; of a GPU's, and of noise across steps


class Private(NamedTuple):
    """What to train with, in place of yours; ``privacy`` answers what the training has cost so far."""

    model: Any
    optimizer: Any
    data_loader: Any
    privacy: ExactAccountant
    loss: Any

    def virtual(self, max_rows: int) -> PoissonLoader:
        """The loader's batches in parts of at most so many records, for as much memory as there is.

        The loop is the same: ``zero_grad``, loss, ``backward``, ``step`` on every part. The sum of a batch grows part
        by part, and its last part adds the noise and steps.
        """
        return self.data_loader.in_parts(validation.whole_number("max_rows", max_rows))  # type: ignore[no-any-return]


def make_private(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    data_loader: torch.utils.data.DataLoader[Any],
    *,
    loss: Callable[..., Any] | None = None,
    records: int | None = None,
    mechanism: str | Mechanism | Factorisation = "gaussian",
    bands: int | None = None,
    clip_norm: float,
    epsilon: float | None = None,
    delta: float | None = None,
    epochs: int,
    secure_mode: bool = True,
    generator: torch.Generator | None = None,
    ledger: Ledger | None = None,
    partition: str | None = None,
    resume: Mapping[str, Any] | None = None,
    loss_reduction: str = "mean",
    grad_sample_mode: str = "hooks",
) -> Private:
    """Train with differential privacy: (model, optimizer, data_loader, privacy, loss), to use in place of yours.

    ``loss(outputs, *targets)`` is a function or module that returns one number; the returned one applies it to each
    record by itself. ``records`` is the public number of records, or a public bound: rate, steps and noise follow from
    it and from the loader's batch size, never from the data set, which may have more or fewer.

    The noise is the least of its kind (``mechanism``, see :func:`~lessnoise.learn.plan_training`) that keeps
    (``epsilon``, ``delta``) over ``epochs`` passes of the loader, or a description as it is, without ``epsilon``.
    With "banded-inverse" or "banded" the noise of a step takes back a part of that of the ``bands`` (16) or all steps
    before it: see :func:`~lessnoise.learn.compare_noise` for when this pays.
    Opacus computes the gradients; batches become Poisson samples; noise goes on the sum of all parameters' clipped
    gradients as one vector. A step beyond the planned ones is refused, and so is one on anything but a drawn batch.

    ``secure_mode`` draws samples and noise by lessnoise's engine, exact and cryptographic, where the model is: on a GPU
    by kernels, else on the CPU. Without it torch's generator draws them, and ``privacy.private`` is False.

    ``grad_sample_mode`` is how the records' gradients are computed: by Opacus's "hooks", "functorch" or "ew" for a
    whole batch at once, or with "ghost" one layer and a few records at a time, for large models: the same sums from a
    fraction of the memory. ``virtual`` of what is returned splits large batches.

    A ``ledger`` pays for all planned steps before the first. ``resume`` takes ``privacy.state_dict()`` of a checkpoint;
    the ledger then pays for the steps that are left, since nobody knows what was done after the checkpoint.
    """
    _require_extra()
    from lessnoise.learn.loader import batches_an_epoch, check_loader
    from lessnoise.learn.opacus_accountant import ExactAccountant
    from lessnoise.learn.privacy_engine import ExactPrivacyEngine

    check_loader(data_loader)
    _check_model(model, optimizer)
    criterion = _checked_loss(loss)
    _check_randomness(secure_mode, generator, ledger, partition)
    validation.choice("loss_reduction", loss_reduction, ("mean", "sum"))
    validation.choice("grad_sample_mode", grad_sample_mode, ("hooks", "functorch", "ew", "ghost"))
    if records is None:
        raise InvalidInput(
            "records=None: pass the number of records, or a bound on it, as you would publish it; it decides about "
            "steps and noise, so it is never read from the private data."
        )
    count = validation.whole_number("records", records)
    batches = batches_an_epoch(data_loader, count)
    plan = _plan(
        mechanism,
        optimizer,
        batches,
        bands,
        clip_norm=clip_norm,
        steps=validation.whole_number("epochs", epochs) * batches,
        records=count,
        epsilon=epsilon,
        delta=delta,
    )
    reported = None if delta is None else validation.delta(delta)
    randomness = _ciphers(model, plan) if secure_mode else "torch's generator, which is not cryptographic"
    privacy = ExactAccountant(plan, delta=reported, private=secure_mode, randomness=randomness)
    if resume is not None:
        privacy.load_state_dict(resume)
    _warn_of_claim(plan)
    engine = ExactPrivacyEngine(privacy, batches=batches, secure=secure_mode, generator=generator)
    watched = engine.watched(
        criterion,
        module=model,
        optimizer=optimizer,
        data_loader=data_loader,
        noise_multiplier=plan.mechanism.standard_deviation / plan.mechanism.sensitivity,
        max_grad_norm=plan.mechanism.sensitivity,
        loss_reduction=loss_reduction,
        grad_sample_mode=grad_sample_mode,
    )
    remaining = plan.steps - privacy.taken

    def pay() -> None:
        if ledger is not None and remaining:
            ledger.spend(plan.composition(remaining), partition=partition, note=f"training, {remaining} steps")

    try:  # last of all, when nothing else can fail
        engine.pay(pay, has_ledger=ledger is not None)
    except BaseException:
        engine.undo(watched[0])
        raise
    return Private(*watched[:3], privacy, watched[3].loss)


def _plan(
    mechanism: str | Mechanism | Factorisation,
    optimizer: torch.optim.Optimizer,
    batches: int,
    bands: int | None,
    **asked: Any,  # noqa: ANN401
) -> TrainingPlan | AcrossPlan:
    """Of steps with noise of their own, or with noise across them."""
    asked["parameters"] = sum(p.numel() for group in optimizer.param_groups for p in group["params"] if p.requires_grad)
    if isinstance(mechanism, Factorisation) or (isinstance(mechanism, str) and mechanism in KINDS):
        momentum = max(float(group.get("momentum", 0.0)) for group in optimizer.param_groups)
        return plan_across_steps(mechanism, bands=bands, batches=batches, momentum=min(momentum, 0.999), **asked)
    if bands is not None:
        raise InvalidInput(
            f'bands={bands!r} is of no use with this mechanism: leave it out, or pass mechanism="banded-inverse".'
        )
    return plan_training(mechanism, rate=1.0 / batches, **asked)


def _ciphers(model: torch.nn.Module, plan: TrainingPlan | AcrossPlan) -> str:
    on_device = noise.has_kernels(next(model.parameters()).device)
    words = f"{CIPHERS[on_device or isinstance(plan, AcrossPlan)]} for noise, {CIPHERS[on_device]} for samples"
    return f"{words}, keyed by the operating system"


def fit(private: Private, *, epochs: int, max_rows: int | None = None, report: Callable[[str], object] = print) -> None:
    """A plain training loop over (inputs, labels): one line after each epoch, with the exact epsilon so far.

    ``max_rows`` computes large batches in parts of at most so many records.
    """
    device = next(private.model.parameters()).device
    loader = private.data_loader if max_rows is None else private.virtual(max_rows)
    for epoch in range(1, validation.whole_number("epochs", epochs) + 1):
        with warnings.catch_warnings():  # PyTorch warns of hooks on a model whose inputs need no gradient: none is lost
            warnings.filterwarnings("ignore", message="Full backward hook is firing", category=UserWarning)
            for inputs, labels in loader:
                private.optimizer.zero_grad()
                private.loss(private.model(inputs.to(device)), labels.to(device)).backward()
                private.optimizer.step()
        report(f"epoch {epoch}, {private.privacy}")


def _require_extra() -> None:
    try:
        import opacus  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"lessnoise.learn needs {error.name}: install the extra with pip install 'lessnoise[learn]'."
        ) from error


def _check_model(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    import torch
    from opacus import GradSampleModule
    from opacus.validators import ModuleValidator

    if not isinstance(model, torch.nn.Module):
        raise InvalidInput(f"model={type(model).__name__} is not a torch.nn.Module: pass the network to train.")
    if hasattr(optimizer, "original_optimizer") or hasattr(model, "forbid_grad_accumulation"):
        raise InvalidInput("model and optimizer are private already: pass the ones that you built yourself.")
    mixing = [
        f"{name or 'model'}: {type(module).__name__}"
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    ]
    if mixing:
        raise InvalidInput(
            f"model has {', '.join(mixing)}, which mixes the records of a batch, so that no gradient belongs to one "
            "record: use GroupNorm, or opacus.validators.ModuleValidator.fix(model) before the optimizer is made."
        )
    model.train()
    problems = [*ModuleValidator.validate(model), *GradSampleModule.validate(model)]
    if problems:
        raise InvalidInput(f"model={type(model).__name__} cannot be trained privately: {problems[0]}")
    known = set(model.parameters())
    chosen = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if not chosen or {p for p in known if p.requires_grad} != set(chosen):
        raise InvalidInput(
            "optimizer.params differ from the model's parameters: make one optimizer from model.parameters(), and "
            "freeze by requires_grad_(False) what is not to be trained."
        )


def _checked_loss(loss: Callable[..., Any] | None) -> Callable[..., Any]:
    import torch

    if not callable(loss):
        raise InvalidInput(
            f"loss={loss!r} is not a function: pass the loss, such as torch.nn.functional.cross_entropy, and train "
            "with private.loss, which applies it to each record by itself."
        )
    if (
        isinstance(loss, torch.nn.CrossEntropyLoss | torch.nn.NLLLoss)
        and loss.weight is not None
        and loss.reduction == "mean"
    ):
        raise InvalidInput(
            f'loss={type(loss).__name__}(weight=..., reduction="mean") divides by the weights of the batch: take '
            'reduction="sum", which here is applied to one record at a time.'
        )
    return loss


def _check_randomness(secure_mode: bool, generator: object, ledger: object, partition: object) -> None:
    if not isinstance(secure_mode, bool):
        raise InvalidInput(f"secure_mode={secure_mode!r} is neither True nor False: pass one of them.")
    if secure_mode and generator is not None:
        raise InvalidInput(
            "generator= and secure_mode=True do not go together: a seeded generator is for experiments, so leave it "
            "out or pass secure_mode=False."
        )
    if ledger is not None and not secure_mode:
        raise InvalidInput(
            "ledger= and secure_mode=False do not go together: torch's generator is not secure, so leave one out."
        )
    if ledger is None and partition is not None:
        raise InvalidInput(f"partition={partition!r} is of no use without a ledger: pass ledger= too, or leave it out.")


def _warn_of_claim(plan: TrainingPlan | AcrossPlan) -> None:
    if not plan.mechanism.name.startswith(PUBLISHED) or plan.claim is None:
        return
    verdict = plan.check()
    if not verdict.holds:
        warnings.warn(
            f"the claim {plan.claim} for {plan.steps} steps of {plan.mechanism.name} does not hold: composed exactly, "
            f"delta is at least {down(verdict.exact.lower)} at that epsilon.",
            ClaimWarning,
            stacklevel=3,
        )
