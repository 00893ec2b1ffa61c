"""Many private trainings side by side on one device: each has its own weights, samples, clipping and noise.

All runs take the same step at the same time, as one batch of matrix products. Per-record gradients of a layer are
products of its inputs and of the gradients of its outputs, so that their norms and clipped sums need no gradient per
record to be kept (Goodfellow 2015; Bu et al. 2023); the tests compare with Opacus. Convolutions are matrix products
over patches.

Norms and clipped sums are computed in full single precision: they decide the sensitivity. The rest may use TF32.
Noise and samples come from torch's generator: these are experiments, not releases.
"""

from __future__ import annotations

import contextlib
import math
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from lessnoise_paper.training.networks import Conv, Dense, Network, Pool, module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lessnoise.mechanism import Radial

OPTIMIZERS: dict[str, Callable[[list[torch.Tensor]], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters),
    "momentum": lambda parameters: torch.optim.SGD(parameters, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters),
}
"""How a step follows from a noisy gradient: post-processing, so privacy does not depend on it."""


@dataclass(frozen=True)
class Run:
    """One training: a seed for the first weights, and the noise of each step; without noise it is plain SGD."""

    method: str
    epsilon: float | None
    seed: int
    law: Radial | None = None
    clip_norm: float = math.inf


class Ensemble:
    """The weights of all runs: for each layer (runs, inputs, outputs) and (runs, 1, outputs)."""

    def __init__(self, net: Network, runs: list[Run], device: torch.device, optimizer: str = "sgd") -> None:
        self.net, self.runs, self.device = net, runs, device
        modules = [module(net, torch.Generator().manual_seed(1000 + run.seed)) for run in runs]
        layers = [[part for part in built if isinstance(part, torch.nn.Conv2d | torch.nn.Linear)] for built in modules]
        self.weights = [
            torch.stack([own[i].weight.detach().flatten(1).T for own in layers]).to(device)
            for i in range(len(layers[0]))
        ]
        self.biases = [torch.zeros(len(runs), 1, weight.shape[2], device=device) for weight in self.weights]
        self.clips = torch.tensor([run.clip_norm for run in runs], device=device)
        self._noise = Noise(runs, net.parameters, device)
        # Every optimizer here works entry by entry, so that runs side by side do not touch each other.
        self._optimizer = OPTIMIZERS[optimizer]([*self.weights, *self.biases])

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
        """Scores (runs, batch, 10) of images (runs, batch, height, width, channels); each layer's (input, output)."""
        x, trace, sizes = images, [], iter(zip(self.weights, self.biases, strict=True))
        for layer in self.net.layers:
            if isinstance(layer, Pool):
                x = _pooled(x, layer.stride)
                continue
            weight, bias = next(sizes)
            if isinstance(layer, Conv):
                patches, shape = _patches(x, layer)
            else:
                patches = x.permute(0, 1, 4, 2, 3).flatten(2) if x.dim() == 5 else x
                shape = patches.shape[:2]
            z = torch.baddbmm(bias, patches.reshape(len(self.runs), -1, weight.shape[1]), weight)
            z = z.view(*shape, weight.shape[2])
            trace.append((patches, z))
            x = z if isinstance(layer, Dense) and layer.last else functional.relu(z)
        return x, trace

    def clipped_sums(
        self, images: torch.Tensor, labels: torch.Tensor, taking_part: torch.Tensor
    ) -> tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor]:
        """Sums of clipped gradients of weights and of biases over the records that take part; the norms before."""
        with torch.enable_grad():
            scores, trace = self._differentiable(images)
            losses = functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none")
            loss = (losses * taking_part.flatten()).sum()
            outputs = [z for _, z in trace]
            gradients = torch.autograd.grad(loss, outputs)
        with torch.no_grad(), _full_precision():
            squares = sum(_squared_norms(p.detach(), g) for (p, _), g in zip(trace, gradients, strict=True))
            norms = torch.sqrt(squares)
            factors = (self.clips[:, None] / (norms + 1e-6)).clamp(max=1.0)
            weights, biases = [], []
            for (patches, _), gradient in zip(trace, gradients, strict=True):
                scaled = gradient * factors.reshape(*factors.shape, *(1,) * (gradient.dim() - 2))
                flat = scaled.reshape(len(self.runs), -1, gradient.shape[-1])
                weights.append(torch.bmm(patches.detach().reshape(*flat.shape[:2], -1).transpose(1, 2), flat))
                biases.append(flat.sum(1, keepdim=True))
        return weights, biases, norms

    def _differentiable(self, images: torch.Tensor) -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
        """A forward pass whose layer outputs can be differentiated by: the first bias asks for it, and is unused."""
        bias = self.biases[0]
        self.biases[0] = bias.detach().requires_grad_()
        try:
            return self.forward(images)
        finally:
            self.biases[0] = bias

    def step(
        self,
        images: torch.Tensor,
        labels: torch.Tensor,
        taking_part: torch.Tensor,
        *,
        rate: float,
        batch: float,
        generator: torch.Generator,
    ) -> None:
        """One step of every run along (clipped sum + noise)/batch; plain SGD: w -= rate/batch (clipped sum + noise)."""
        weights, biases, _ = self.clipped_sums(images, labels, taking_part)
        noise = self._noise.draw(generator)
        start = 0
        for own, sums in ((self.weights, weights), (self.biases, biases)):
            for parameter, total in zip(own, sums, strict=True):
                size = total[0].numel()
                part = noise[:, start : start + size].view_as(total)
                parameter.grad = (total + part) / batch
                start += size
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def accuracy(self, images: torch.Tensor, labels: torch.Tensor, chunk: int = 2500) -> list[float]:
        """Share of right answers of every run, on images that all of them see."""
        right = torch.zeros(len(self.runs), device=self.device)
        for start in range(0, len(labels), chunk):
            part = as_floats(images[start : start + chunk])
            scores, _ = self.forward(part.expand(len(self.runs), *part.shape))
            right += (scores.argmax(2) == labels[start : start + chunk]).sum(1)
        return [float(share) for share in (right / len(labels)).cpu()]

    def state(self) -> dict[str, Any]:
        """For checkpoints."""
        parts = {"weights": [w.cpu() for w in self.weights], "biases": [b.cpu() for b in self.biases]}
        return {**parts, "optimizer": self._optimizer.state_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state`."""
        for own, kept in ((self.weights, state["weights"]), (self.biases, state["biases"])):
            for parameter, value in zip(own, kept, strict=True):
                parameter.copy_(value)
        self._optimizer.load_state_dict(state["optimizer"])


class Noise:
    """A row of noise for each run: isotropic, with the radius of the run's law."""

    def __init__(self, runs: list[Run], dimension: int, device: torch.device) -> None:
        self._shape = (len(runs), dimension)
        self._device = device
        laws = [run.law for run in runs]

        def column(values: list[float]) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.float64, device=device)

        # Gaussian rows keep the length of a normal vector; others get R = scale Gamma(k/p)^(1/p).
        self._normal = torch.tensor(
            [law is None or law.is_gaussian(dimension) for law in laws], dtype=torch.bool, device=device
        )
        self._deviation = column([0.0 if law is None else law.scale / math.sqrt(2.0) for law in laws])
        self._scale = column([0.0 if law is None else law.scale for law in laws])
        self._shape_parameter = column([1.0 if law is None else law.k / law.p for law in laws])
        self._power = column([1.0 if law is None else 1.0 / law.p for law in laws])

    def draw(self, generator: torch.Generator) -> torch.Tensor:
        """Noise (runs, entries)."""
        rows = torch.randn(self._shape, device=self._device, generator=generator)
        radii = self._scale * torch._standard_gamma(self._shape_parameter, generator=generator) ** self._power
        lengths = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
        factors = torch.where(self._normal, self._deviation, radii / lengths)
        return rows.mul_(factors.float()[:, None])


def poisson_batches(
    runs: int, records: int, rate: float, steps: int, generator: torch.Generator, device: torch.device, ahead: int = 32
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """For each step (indices, who takes part), both (runs, longest batch): Poisson samples, filled up with nobody."""
    done = 0
    while done < steps:
        count = min(ahead, steps - done)
        chosen = torch.rand(count * runs, records, generator=generator, device=device) < rate
        sizes = chosen.sum(1)
        widths = [max(int(width), 1) for width in sizes.view(count, runs).amax(1).tolist()]
        longest = max(widths)
        row, record = chosen.nonzero(as_tuple=True)  # row by row
        place = torch.arange(len(row), device=device) - (sizes.cumsum(0) - sizes)[row]
        indices = torch.zeros(count * runs, longest, dtype=torch.long, device=device)
        indices[row, place] = record
        taking_part = (torch.arange(longest, device=device) < sizes[:, None]).float()
        for i in range(count):
            part = slice(i * runs, (i + 1) * runs)
            yield indices[part, : widths[i]], taking_part[part, : widths[i]]
        done += count


def origin(device: str, command: str) -> dict[str, str]:
    """Where, with what, how and when a result is made."""
    name = torch.cuda.get_device_name() if device.startswith("cuda") else platform.processor() or platform.machine()
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    return {"device": name, "torch": torch.__version__, "command": command, "date": today}


def as_floats(images: torch.Tensor) -> torch.Tensor:
    """Pixels of 0..255 as numbers of [0, 1]."""
    return images.float() / 255.0


def _pooled(x: torch.Tensor, stride: int) -> torch.Tensor:
    runs, batch = x.shape[:2]
    y = functional.max_pool2d(x.flatten(0, 1).permute(0, 3, 1, 2), 2, stride).permute(0, 2, 3, 1)
    return y.reshape(runs, batch, *y.shape[1:])


def _patches(x: torch.Tensor, layer: Conv) -> tuple[torch.Tensor, torch.Size]:
    """(runs, batch, height, width, channels * kernel^2), and the shape before the last axis."""
    if layer.padding:
        x = functional.pad(x, (0, 0, layer.padding, layer.padding, layer.padding, layer.padding))
    windows = x.unfold(2, layer.kernel, layer.stride).unfold(3, layer.kernel, layer.stride)
    flat = windows.flatten(4)
    return flat, flat.shape[:4]


def _squared_norms(patches: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Squared norms (runs, batch) of per-record gradients of a layer's weights and biases together."""
    runs, batch, outputs = gradient.shape[0], gradient.shape[1], gradient.shape[-1]
    if gradient.dim() == 3:  # a dense layer: an outer product
        return (gradient**2).sum(2) * ((patches**2).sum(2) + 1.0)
    inputs = patches.shape[-1]
    g, u = gradient.reshape(runs * batch, -1, outputs), patches.reshape(runs * batch, -1, inputs)
    places = g.shape[1]
    if places * (inputs + outputs) < inputs * outputs:
        squares = ((torch.bmm(u, u.transpose(1, 2)) + 1.0) * torch.bmm(g, g.transpose(1, 2))).sum((1, 2))
    else:
        squares = (torch.bmm(g.transpose(1, 2), u) ** 2).sum((1, 2)) + (g.sum(1) ** 2).sum(1)
    return squares.clamp(min=0.0).view(runs, batch)


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
