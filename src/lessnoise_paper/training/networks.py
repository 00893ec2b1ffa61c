"""The two tutorial networks, described once and built twice: as modules, and as many copies that train side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

from lessnoise import validation


@dataclass(frozen=True)
class Conv:
    """Convolution, then ReLU."""

    channels: int
    kernel: int
    stride: int = 1
    padding: int = 0


@dataclass(frozen=True)
class Pool:
    """Maximum over windows of 2 x 2."""

    stride: int


@dataclass(frozen=True)
class Dense:
    """Affine map of all that came before; ReLU unless it is the last."""

    units: int
    last: bool = False


@dataclass(frozen=True)
class Network:
    """A stack of layers for images of height, width and channels."""

    image: tuple[int, int, int]
    layers: tuple[Conv | Pool | Dense, ...]

    def weights(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of each layer with weights."""
        height, width, depth = self.image
        found = []
        for layer in self.layers:
            if isinstance(layer, Conv):
                found.append((depth * layer.kernel**2, layer.channels))
                height, width = (_size(n, layer.kernel, layer.stride, layer.padding) for n in (height, width))
                depth = layer.channels
            elif isinstance(layer, Pool):
                height, width = (_size(n, 2, layer.stride, 0) for n in (height, width))
            else:
                found.append((height * width * depth, layer.units))
                height, width, depth = 1, 1, layer.units
        return found

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return sum(inputs * outputs + outputs for inputs, outputs in self.weights())


NETWORKS = {
    # TensorFlow Privacy's DP-SGD tutorial: "same" padding of an 8 x 8 kernel of stride 2 is 3 on each side.
    "mnist": Network(
        (28, 28, 1), (Conv(16, 8, 2, 3), Pool(1), Conv(32, 4, 2), Pool(1), Dense(32), Dense(10, last=True))
    ),
    # TensorFlow's CNN tutorial.
    "cifar10": Network(
        (32, 32, 3), (Conv(32, 3), Pool(2), Conv(64, 3), Pool(2), Conv(64, 3), Dense(64), Dense(10, last=True))
    ),
}


def network(data: str) -> Network:
    """The tutorial's network for a data set.

    >>> network("mnist").parameters, network("cifar10").parameters
    (26010, 122570)
    """
    validation.choice("data", data, list(NETWORKS))
    return NETWORKS[data]


def module(net: Network, generator: torch.Generator | None = None) -> nn.Sequential:
    """As a module for images (batch, channels, height, width), with Glorot's uniform weights and zero biases.

    >>> sum(p.numel() for p in module(network("mnist")).parameters())
    26010
    """
    parts: list[nn.Module] = []
    depth, flat = net.image[2], False
    sizes = iter(net.weights())
    for layer in net.layers:
        if isinstance(layer, Conv):
            parts += [nn.Conv2d(depth, layer.channels, layer.kernel, layer.stride, layer.padding), nn.ReLU()]
            depth = layer.channels
            next(sizes)
        elif isinstance(layer, Pool):
            parts.append(nn.MaxPool2d(2, layer.stride))
        else:
            parts += [] if flat else [nn.Flatten()]
            parts += [nn.Linear(*next(sizes))] + ([] if layer.last else [nn.ReLU()])
            flat = True
    built = nn.Sequential(*parts)
    with torch.no_grad():
        for part in built:
            if isinstance(part, nn.Conv2d | nn.Linear):
                weight = part.weight
                area = weight[0, 0].numel() if weight.dim() == 4 else 1
                limit = math.sqrt(6.0 / (area * (weight.shape[0] + weight.shape[1])))
                weight.copy_((2.0 * torch.rand(weight.shape, generator=generator) - 1.0) * limit)
                part.bias.zero_()
    return built


def _size(n: int, kernel: int, stride: int, padding: int) -> int:
    return (n + 2 * padding - kernel) // stride + 1
