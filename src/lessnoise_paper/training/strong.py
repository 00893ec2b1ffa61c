"""The strong recipe: what honestly raises accuracy at the same exact privacy.

Scattering features of opponent colours, softened and normalised record by record; views of a record (its mirror image)
share one clipped gradient; large Poisson batches, few steps, momentum, and the mean of the weights of the later steps.
All but the noisy sums is post-processing or a function of single records, so that the accounting is that of the steps
alone.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from lessnoise import files
from lessnoise_paper.training import settings
from lessnoise_paper.training.data import load
from lessnoise_paper.training.features import normalised, opponent_colours, scattering, softened
from lessnoise_paper.training.trainer import origin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray


def features_of(
    pixels: NDArray[Any], groups: int, device: torch.device, *, mirrored: bool, chunk: int = 256
) -> torch.Tensor:
    """Features (views, images, entries) of pixels (images, height, width, colours)."""
    views: list[torch.Tensor] = []
    for flip in (False, True) if mirrored else (False,):
        parts = []
        for start in range(0, len(pixels), chunk):
            images = (
                torch.from_numpy(pixels[start : start + chunk].copy()).to(device).permute(0, 3, 1, 2).float() / 255.0
            )
            images = images.flip(3) if flip else images
            images = opponent_colours(images) if images.shape[1] == 3 else images
            parts.append(normalised(softened(scattering(images)), groups).flatten(1))
        views.append(torch.cat(parts))
    return torch.stack(views)


def grams_of(features: torch.Tensor, chunk: int = 4096) -> torch.Tensor:
    """a.a' + 1 of every pair of views of a record: (records, views, views)."""
    parts = [features[:, start : start + chunk].transpose(0, 1) for start in range(0, features.shape[1], chunk)]
    return torch.cat([torch.bmm(part, part.transpose(1, 2)) for part in parts]) + 1.0


def clipped_sum(
    features: torch.Tensor,
    grams: torch.Tensor,
    labels: torch.Tensor,
    weights: torch.Tensor,
    bias: torch.Tensor,
    clip: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum over records of the clipped gradient of the mean loss over their views, for weights and for biases.

    The gradient of a view is the outer product of its features a and errors e, so the squared norm of their mean is
    the mean over pairs of views of (a.a' + 1)(e.e').
    """
    views = len(features)
    errors = functional.softmax(features @ weights + bias, dim=2)
    errors = (errors - functional.one_hot(labels, weights.shape[1]).to(errors.dtype)) / views
    by_record = errors.transpose(0, 1)
    squares = (grams * torch.bmm(by_record, by_record.transpose(1, 2))).sum((1, 2))
    factors = (clip / (squares.clamp(min=0.0).sqrt() + 1e-6)).clamp(max=1.0)
    scaled = errors * factors[:, None]
    return features.flatten(0, 1).T @ scaled.flatten(0, 1), scaled.sum((0, 1))


def train(
    recipe: settings.StrongRecipe,
    deviation: float,
    features: torch.Tensor,
    labels: torch.Tensor,
    seed: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Averaged weights and biases; ``deviation`` is that of the Gaussian noise on the sum."""
    device = features.device
    generator = torch.Generator(device=device).manual_seed(7000 + seed)
    weights = torch.zeros(features.shape[2], 10, device=device)
    bias = torch.zeros(10, device=device)
    speeds = [torch.zeros_like(weights), torch.zeros_like(bias)]
    means, averaged = [torch.zeros_like(weights), torch.zeros_like(bias)], 0
    grams = grams_of(features)
    rate = recipe.batch / recipe.records
    expected = rate * len(labels)
    for step in range(recipe.steps):
        chosen = (torch.rand(len(labels), device=device, generator=generator) < rate).nonzero()[:, 0]
        sums = clipped_sum(features[:, chosen], grams[chosen], labels[chosen], weights, bias, recipe.clip_norm)
        for parameter, speed, total in zip((weights, bias), speeds, sums, strict=True):
            noise = torch.randn(total.shape, device=device, generator=generator) * deviation
            speed.mul_(recipe.momentum).add_((total + noise) / expected)
            parameter -= recipe.learning_rate * speed
        if step >= recipe.average_from * recipe.steps:
            averaged += 1
            for mean, parameter in zip(means, (weights, bias), strict=True):
                mean += (parameter - mean) / averaged
    return means[0], means[1]


def accuracy(features: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> float:
    """Share of right answers, by the mean score over views."""
    scores = (features @ weights + bias).mean(0)
    return float((scores.argmax(1) == labels).double().mean())


def sweep(
    data: Path,
    device: str,
    *,
    rates: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0),
    held_out: int = 5000,
    only: tuple[str, ...] = ("mnist", "cifar10"),
    report: Callable[[str], object] = print,
) -> None:
    """How learning rates do on training records that are held out. The choice itself is not private."""
    place = torch.device(device)
    torch.backends.cuda.matmul.allow_tf32 = False
    for key in only:
        recipe = settings.STRONG[key]
        deviation = settings.stored_plan(key, "strong", recipe.epsilon).mechanism.standard_deviation
        images = load(key, data)
        features = features_of(images.train, recipe.groups, place, mirrored=key == "cifar10")
        labels = torch.from_numpy(images.train_labels.copy()).long().to(place)
        for rate in rates:
            tried = replace(recipe, learning_rate=rate)
            weights, bias = train(tried, deviation, features[:, :-held_out], labels[:-held_out], 0)
            share = accuracy(features[:, -held_out:], labels[-held_out:], weights, bias)
            report(f"{key} learning rate {rate:g}: {share:.4f} of the held-out records")


def run_strong(
    *,
    data: Path | None,
    out: Path,
    seeds: int,
    device: str,
    command: str,
    records: int | None = None,
    only: tuple[str, ...] = ("mnist", "cifar10"),
    report: Callable[[str], object] = print,
) -> dict[str, Any]:
    """Train the recipe for each data set and seed; the results go to ``out``/strong.json."""
    place = torch.device(device)
    torch.backends.cuda.matmul.allow_tf32 = False  # norms and sums decide the sensitivity
    result: dict[str, Any] = {**origin(device, command), "runs": []}
    for key in only:
        recipe = settings.STRONG[key]
        plan = settings.stored_plan(key, "strong", recipe.epsilon)
        deviation = plan.mechanism.standard_deviation
        started = time.perf_counter()
        images = load(key, data)
        mirrored = key == "cifar10"
        train_features = features_of(images.train[:records], recipe.groups, place, mirrored=mirrored)
        test_features = features_of(images.test, recipe.groups, place, mirrored=mirrored)
        labels, test_labels = (
            torch.from_numpy(part.copy()).long().to(place)
            for part in (images.train_labels[:records], images.test_labels)
        )
        report(f"{key}: features {tuple(train_features.shape)} in {time.perf_counter() - started:.1f} s")
        for seed in range(seeds):
            started = time.perf_counter()
            weights, bias = train(recipe, deviation, train_features, labels, seed)
            line = {
                "data": key,
                "epsilon": recipe.epsilon,
                "seed": seed,
                "train": round(accuracy(train_features[:, :10000], labels[:10000], weights, bias), 5),
                "test": round(accuracy(test_features, test_labels, weights, bias), 5),
                "seconds": round(time.perf_counter() - started, 2),
            }
            result["runs"].append(line)
            report(f"{key} strong, seed {seed}: test accuracy {line['test']:.4f} in {line['seconds']} s")
        del train_features, test_features
    text = json.dumps(result, indent=1) + "\n"
    files.write_together({out / "strong.json": lambda file: file.write(text.encode())}, force=True)
    return result
