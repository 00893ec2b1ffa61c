"""Several processes that train one model: they are to agree on the training, and one of them pays for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.learn.across import AcrossPlan
    from lessnoise.learn.plan import TrainingPlan


def local_only(model: torch.nn.Module) -> None:
    """Torch's own wrapper is not to add up gradients by itself, before they are clipped."""
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        model.require_backward_grad_sync = False
        model.require_forward_param_sync = False


def check_agreement(plan: TrainingPlan | AcrossPlan, **settings: object) -> None:
    """All processes are to train by one plan, each on its share of one data set."""
    own = json.loads(json.dumps(plan.to_dict())) | settings
    everyone: list[dict[str, object]] = [{}] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everyone, own)
    for name, value in everyone[0].items():
        for rank, theirs in enumerate(everyone):
            if theirs.get(name) != value:
                raise InvalidInput(
                    f"{name} of process rank={rank} differs from that of rank=0: call make_private with the same "
                    "settings and data set in every process, which takes its own share of the records."
                )


def pay_once(pay: Callable[[], object]) -> None:
    """The first process pays for all, and the others go on only if it could."""
    failure: BaseException | None = None
    if torch.distributed.get_rank() == 0:
        try:
            pay()
        except BaseException as error:  # told to the others first
            failure = error
    told = [failure is None]
    torch.distributed.broadcast_object_list(told, src=0)
    if failure is not None:
        raise failure
    if not told[0]:
        raise InvalidInput("ledger= could not be paid by process rank=0, which says why: nothing was trained.")
