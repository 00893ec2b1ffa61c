"""Pieces of self-contained HTML pages: prose, pictures, and the document around them."""

from __future__ import annotations

import base64
import re
from html import escape
from typing import TYPE_CHECKING

from lessnoise.report.css import CSS

if TYPE_CHECKING:
    from pathlib import Path


MARK = '<meta name="generator" content="lessnoise">'


def is_ours(page: Path) -> bool:
    """Whether a file is a page of ours, which a newer one may replace."""
    return page.is_file() and MARK.encode() in page.read_bytes()[:500]


def document(title: str, body: str, css: str = "") -> str:
    """A whole page, with the page's own rules after the common ones; nothing is fetched from anywhere."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"{MARK}\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} - lessnoise</title>\n<style>{CSS}{css}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def prose(words: str) -> str:
    """Escaped text whose (epsilon, delta) pairs and exponents stay on one line."""
    pattern = r"\([\d.e-]+, [\d.e-]+\)|\d[\d.]*e-\d+"
    return re.sub(pattern, r'<span class="whole">\g<0></span>', escape(words, quote=False))


def map_figure(image: bytes, alt: str, caption: str, *, bad: bool = False) -> str:
    """A map with its caption; a red frame where the mechanism does not protect what it claims to."""
    opening = '<figure class="bad">' if bad else "<figure>"
    return f"{opening}{embedded(image, 'png', alt)}<figcaption>{caption}</figcaption></figure>"


def figure(image: bytes, alt: str, caption: str, kind: str = "svg+xml") -> str:
    """A picture on a card, with its caption."""
    return (
        f'<figure><div class="card">{embedded(image, kind, alt)}</div>'
        f"<figcaption>{prose(caption)}</figcaption></figure>"
    )


def embedded(image: bytes, kind: str, alt: str) -> str:
    """A picture inside the page itself."""
    data = base64.b64encode(image).decode()
    return f'<img src="data:image/{kind};base64,{data}" alt="{escape(alt, quote=True)}">'


def html_table(head: tuple[str, ...], rows: list[str], label: str) -> str:
    """A table that scrolls sideways on narrow screens; ``rows`` are ready <tr> elements."""
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label, quote=True)}">\n'
        f"<table>\n<thead><tr>{columns}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody>\n</table>\n</div>\n"
    )


def count_word(count: int) -> str:
    """Small numbers in words."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[count] if count < len(words) else str(count)
