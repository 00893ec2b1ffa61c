"""Tensors of PyTorch: released where they lie, by kernels where a device has them, else by way of the CPU."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from lessnoise import noise, validation
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import device_form

if TYPE_CHECKING:
    import torch

    from lessnoise.mechanism import Mechanism
    from lessnoise.noise import DeviceForm


def is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    """Whether it is a tensor of PyTorch, which is not loaded for this question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def checked_tensor(value: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """A plain tensor of the mechanism's shape, apart from any graph of gradients."""
    import torch

    if value.layout != torch.strided or value.is_quantized or value.is_complex() or value.is_meta:
        raise InvalidInput(
            f"value.dtype={value.dtype}, layout={value.layout} is not a dense tensor of real numbers: pass "
            "value.to_dense(), or its parts."
        )
    if value.is_floating_point() and value.element_size() < 2:
        raise InvalidInput(f"value.dtype={value.dtype} cannot be computed with: pass value.float().")
    validation.fitting(value, shape)
    return value.detach()


def form_there(mechanism: Mechanism, value: torch.Tensor) -> DeviceForm | None:
    """What kernels of the tensor's device draw, or None where the CPU does it."""
    if not noise.has_kernels(value.device) or value.is_floating_point() == mechanism.law.integer:
        return None
    return device_form(mechanism.law, mechanism.shape)


def grid_type(value: torch.Tensor) -> np.dtype[Any]:
    """The type whose grid the noisy value is on: a half-precision one is rounded from it."""
    import torch

    return np.dtype(np.float64 if value.dtype == torch.float64 else np.float32)


def as_array(value: torch.Tensor) -> np.ndarray[Any, Any]:
    """A copy on the CPU, or its own memory; half precision becomes float32, which holds it exactly."""
    import torch

    narrow = value.dtype in (torch.bfloat16, torch.float16)
    result: np.ndarray[Any, Any] = (value.float() if narrow else value).cpu().numpy()
    return result


def like(noisy: np.ndarray[Any, Any], value: torch.Tensor) -> torch.Tensor:
    """The noisy value as a tensor on the value's device; a half-precision one is rounded to its type."""
    import torch

    tensor = torch.from_numpy(noisy)
    narrow = value.dtype in (torch.bfloat16, torch.float16)
    return tensor.to(value.device, value.dtype if narrow else tensor.dtype)
