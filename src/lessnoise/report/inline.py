"""SVG pictures inside a page: their colours follow the page from light to dark, and their ids never clash."""

from __future__ import annotations

import colorsys
import re
from html import escape

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_GREY = 0.12  # saturation below which a colour is ink or paper, and is turned round in the dark
_LIGHTEST = 0.7  # lightness that other colours have at least in the dark


def inline_svg(image: bytes, name: str, alt: str) -> str:
    """The picture as an element of the page. ``name`` makes its ids its own."""
    text = image.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
    head, body = text.split(">", 1)
    size = re.search(r'viewBox="[^"]+"', head)
    box = size.group(0) if size else ""
    body = re.sub(r'style="[^"]*"', lambda style: _COLOUR.sub(lambda c: _variable(c.group(0)), style.group(0)), body)
    label = escape(alt, quote=True)
    opening = f'<svg {box} role="img" aria-label="{label}">'
    return f"{opening}<title>{escape(alt)}</title>{body}"


def colour_rules(page: str) -> str:
    """CSS that gives every colour variable in a page its value, by day and by night."""
    names = sorted(set(re.findall(r"var\(--c-([0-9a-f]{6})\)", page)))
    light = "".join(f"--c-{name}:#{name};" for name in names)
    dark = "".join(f"--c-{name}:{night(f'#{name}')};" for name in names)
    return (
        f":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n@media print{{:root{{{light}}}}}\n"
    )


def night(colour: str) -> str:
    """The colour that takes another's place on a dark page: greys are turned round, the rest made light enough.

    >>> night("#ffffff"), night("#222222"), night("#332288")
    ('#1f1f1f', '#d2d2d2', '#8f7de8')
    """
    red, green, blue = (int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    if saturation < _GREY or lightness in (0.0, 1.0):
        parts = colorsys.hls_to_rgb(hue, 0.93 - 0.81 * lightness, saturation)
    else:  # dark colours become vivid ones, so that they still differ from lighter neighbours of their hue
        vivid = min(1.0, saturation + 0.8 * max(0.0, 0.45 - lightness))
        parts = colorsys.hls_to_rgb(hue, max(lightness, _LIGHTEST), vivid)
    return "#" + "".join(f"{round(255.0 * part):02x}" for part in parts)


def colour(value: str) -> str:
    """A colour in a page's own styles that follows light and dark.

    >>> colour("#CC6677")
    'var(--c-cc6677)'
    """
    return _variable(value)


def _variable(value: str) -> str:
    return f"var(--c-{value[1:].lower()})"
