"""Scattering features of images: wavelet transforms and absolute values, with nothing learnt from any data.

Two scales and eight directions of Morlet wavelets, two layers (Bruna & Mallat 2013; Oyallon & Mallat 2015): 81 maps for
each colour, at a quarter of the resolution. Tramer & Boneh (2021) found that they help linear classifiers that learn
privately.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
from torch.nn import functional

SCALES, DIRECTIONS = 2, 8
MAPS = 1 + SCALES * DIRECTIONS + DIRECTIONS**2
_MARGIN = 2**SCALES
_OPPONENT = ((0.299, 0.587, 0.114), (0.5, -0.5, 0.0), (0.25, 0.25, -0.5))


def scattering(images: torch.Tensor) -> torch.Tensor:
    """Features (images, colours * 81, height/4, width/4) of images (images, colours, height, width).

    >>> scattering(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2, 81, 7, 7])
    """
    size = images.shape[-1] + 2 * _MARGIN
    wavelets, low = (part.to(images.device) for part in _filters(size))
    padded = functional.pad(images.float(), (_MARGIN,) * 4, mode="reflect")
    spectrum = torch.fft.fft2(padded)
    first = torch.fft.fft2(torch.fft.ifft2(spectrum[:, :, None] * wavelets).abs())  # 16 maps, finest scale first
    finest = first[:, :, :DIRECTIONS, None]
    second = torch.fft.fft2(torch.fft.ifft2(finest * wavelets[DIRECTIONS:]).abs()).flatten(2, 3)
    maps = torch.cat([_averaged(spectrum[:, :, None], low), _averaged(first, low), _averaged(second, low)], dim=2)
    return maps.flatten(1, 2)


def opponent_colours(images: torch.Tensor) -> torch.Tensor:
    """Brightness, red against green, yellow against blue: what the three colours share is not told three times."""
    return torch.einsum("ij,bjhw->bihw", torch.tensor(_OPPONENT, device=images.device), images)


def softened(features: torch.Tensor) -> torch.Tensor:
    """Square roots of the wavelets' maps, so that a few strong edges do not outweigh the rest."""
    maps = features.unflatten(1, (-1, MAPS))
    return torch.cat([maps[:, :, :1], maps[:, :, 1:].clamp(min=0.0).sqrt()], dim=2).flatten(1, 2)


def normalised(features: torch.Tensor, groups: int) -> torch.Tensor:
    """Each image's maps to mean 0 and variance 1 in groups: a function of one record, so it costs no privacy."""
    return functional.group_norm(features, groups)


def _averaged(spectrum: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    """Smoothed and sampled at every fourth point, without the margin."""
    smooth = spectrum * low
    small = smooth.shape[-1] // 4
    folded = smooth.view(*smooth.shape[:-2], 4, small, 4, small).mean((-4, -2))  # sampling folds the spectrum
    return torch.fft.ifft2(folded).real[..., 1:-1, 1:-1]


@functools.lru_cache(maxsize=4)
def _filters(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Spectra of the wavelets (16, size, size) and of the smoothing filter."""
    waves = []
    for scale in range(SCALES):
        for direction in range(DIRECTIONS):
            angle = math.pi * direction / DIRECTIONS
            waves.append(_morlet(size, 0.8 * 2**scale, angle, 0.75 * math.pi / 2**scale, 4.0 / DIRECTIONS))
    low = np.fft.fft2(_gabor(size, 0.8 * 2 ** (SCALES - 1), 0.0, 0.0, 1.0)).real
    return (
        torch.from_numpy(np.stack(waves).astype(np.float32)),
        torch.from_numpy(low.astype(np.float32)),
    )


def _morlet(size: int, width: float, angle: float, frequency: float, slant: float) -> np.ndarray:
    """A wave under a Gaussian, with its mean taken out; its spectrum is real."""
    wave = _gabor(size, width, angle, frequency, slant)
    envelope = _gabor(size, width, angle, 0.0, slant)
    result: np.ndarray = np.fft.fft2(wave - envelope * (wave.sum() / envelope.sum())).real
    return result


def _gabor(size: int, width: float, angle: float, frequency: float, slant: float) -> np.ndarray:
    """exp(-(u^2 + slant^2 v^2)/(2 width^2) + i frequency u) along the angle, periodic in the picture."""
    place = np.arange(-2 * size, 3 * size)
    x, y = np.meshgrid(place, place, indexing="ij")
    u, v = x * math.cos(angle) + y * math.sin(angle), -x * math.sin(angle) + y * math.cos(angle)
    values = np.exp(-(u**2 + (slant * v) ** 2) / (2.0 * width**2) + 1j * frequency * u)
    folded = values.reshape(5, size, 5, size).sum((0, 2))
    result: np.ndarray = folded * (slant / (2.0 * math.pi * width**2))
    return result
