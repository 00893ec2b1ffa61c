"""Yes or no from a device: asked early, and waited for when it is needed, so that the device never stands still."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def on_its_way(answer: torch.Tensor) -> Callable[[], bool]:
    """One truth, which is copied to the host while the device goes on; the function returned waits for it.

    >>> on_its_way(torch.tensor(True))()
    True
    """
    if not answer.is_cuda:
        return functools.partial(bool, answer)
    with torch.cuda.device(answer.device):
        there = torch.empty((), dtype=torch.bool, pin_memory=True)
        there.copy_(answer, non_blocking=True)
        event = torch.cuda.Event()
        event.record()

    def arrived() -> bool:
        event.synchronize()
        return bool(there)

    return arrived
