"""Colours that can be told from their background (WCAG 2.2, section 1.4.11: a contrast of at least 3)."""

from __future__ import annotations

_ENOUGH = 3.1


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, from 1 to 21.

    >>> round(contrast("#ffffff", "#000000"), 6)
    21.0
    """
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def legible(colour: str, background: str) -> str:
    """The colour, mixed with as little black or white as makes it stand out from the background.

    >>> legible("#0077bb", "#ffffff")
    '#0077bb'
    >>> contrast(legible("#222222", "#1f2024"), "#1f2024") >= 3
    True
    """
    pole = 0 if _luminance(background) > 0.18 else 255
    for step in range(101):
        mixed = [round(channel + (pole - channel) * step / 100) for channel in _channels(colour)]
        found = "#" + "".join(f"{channel:02x}" for channel in mixed)
        if contrast(found, background) >= _ENOUGH:
            return found
    raise AssertionError("black and white stand out from every background")  # pragma: no cover


def _channels(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def _luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour."""
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
