"""Pieces of self-contained HTML pages: prose, pictures, tables, the document around them and its look."""

from __future__ import annotations

import base64
import re
from html import escape
from typing import TYPE_CHECKING

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
        f"<title>{escape(title)} - lessnoise</title>\n<style>{_CSS}{css}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def prose(words: str) -> str:
    """Escaped text whose (epsilon, delta) pairs, exponents and equations with a letter stay on one line."""
    pattern = r"\([\d.e-]+, [\d.e-]+\)|\b(?:[εδM]|epsilon|delta) = [\d.,e-]*\d|\d[\d.]*e-\d+"
    return re.sub(pattern, r'<span class="whole">\g<0></span>', escape(words, quote=False))


def embedded(image: bytes, kind: str, alt: str) -> str:
    """A picture inside the page itself."""
    data = base64.b64encode(image).decode()
    return f'<img src="data:image/{kind};base64,{data}" alt="{escape(alt, quote=True)}">'


def count_word(count: int) -> str:
    """Small numbers in words."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[count] if count < len(words) else str(count)


# Light and dark, from phone to desk, with nothing fetched from anywhere.
_CSS = """
:root { color-scheme: light dark; --back: #fbfaf8; --ink: #1d1d1f; --soft: #5b5b62; --line: #dddad4;
  --panel: #ffffff; --card: #ffffff; --good: #005a93; --bad: #b02a0c; --good-back: #e3f0f9; --bad-back: #fbe7e1; }
@media (prefers-color-scheme: dark) {
  :root { --back: #17181b; --ink: #ececee; --soft: #a9a9b2; --line: #36373d; --panel: #1f2024; --card: #ffffff;
    --good: #7cc4f2; --bad: #ff9c83; --good-back: #12324a; --bad-back: #4a2017; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); overflow-wrap: break-word;
  font: 1.0625rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
header, main, footer { max-width: 74rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3rem; }
h1 { font-size: clamp(1.7rem, 4.5vw, 2.6rem); line-height: 1.15; letter-spacing: -0.02em; margin: 0 0 1rem;
  text-wrap: balance; }
h2 { font-size: 1.45rem; line-height: 1.25; letter-spacing: -0.01em; margin: 3rem 0 0.5rem; }
p, li { max-width: 44rem; }
.lede { font-size: 1.125rem; }
.mark { color: var(--soft); font-size: 0.95rem; border-left: 3px solid var(--line); padding-left: 0.9rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 10px; background: var(--panel);
  margin: 1rem 0 0.5rem; }
.scroll:focus-visible { outline: 3px solid var(--good); }
table { border-collapse: collapse; width: 100%; font-size: 0.86rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.55rem 0.5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { vertical-align: bottom; font-weight: 600; color: var(--soft); line-height: 1.3; white-space: normal; }
th:first-child, td:first-child { text-align: left; padding-left: 0.9rem; }
th:last-child, td:last-child { padding-right: 0.9rem; }
tbody th { font-weight: 600; }
tbody tr:last-child > * { border-bottom: 0; }
.text { text-align: left; }
.value:hover { stroke: currentColor; stroke-width: 1.5px; }
.verdict { display: inline-block; padding: 0.05rem 0.6rem; border-radius: 99px; font-weight: 600; }
.holds { color: var(--good); background: var(--good-back); }
.fails { color: var(--bad); background: var(--bad-back); }
.dot { display: inline-block; width: 0.7em; height: 0.7em; border-radius: 50%; margin-right: 0.5em;
  box-shadow: 0 0 0 1.5px var(--card); }
.whole { white-space: nowrap; }
figure { margin: 1.25rem 0; }
figcaption { color: var(--soft); font-size: 0.92rem; line-height: 1.45; margin-top: 0.5rem; max-width: 44rem; }
figcaption strong { color: var(--ink); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 0.75rem;
  overflow-x: auto; }
.card img { display: block; width: 100%; max-width: 54rem; min-width: 34rem; height: auto; margin: 0 auto; }
.maps { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); gap: 1.5rem 1.25rem;
  margin-top: 1.25rem; }
.maps figure { margin: 0; }
.maps img { display: block; width: 100%; height: auto; border-radius: 6px; image-rendering: pixelated; }
.maps .bad img { outline: 3px solid var(--bad); outline-offset: 2px; }
footer { margin-top: 3rem; padding-top: 1.25rem; padding-bottom: 3rem; color: var(--soft); font-size: 0.92rem;
  border-top: 1px solid var(--line); }
@media (max-width: 34rem) { header { padding-top: 1.75rem; } h2 { margin-top: 2.25rem; }
  tbody th { white-space: normal; min-width: 8.5rem; }
  .maps { grid-template-columns: 1fr 1fr; gap: 1.25rem 0.75rem; } .maps figcaption { font-size: 0.82rem; } }
@media print { .card, .scroll { overflow: visible; } .maps figure { break-inside: avoid; } }
"""
