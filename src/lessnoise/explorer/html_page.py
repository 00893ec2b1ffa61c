"""The exact-curve explorer: one HTML fragment with its own style and program, for reports, pages and the local server.

The program is a handful of small JavaScript modules beside this file. They compute the curves of radial mechanisms in
the page, by the formulas of ``docs/theory/exact-curves.md``; what is certified comes from the library.
"""

from __future__ import annotations

import functools
import re
from html import escape
from importlib import resources

from lessnoise.mechanism import CATALOGUE
from lessnoise.report import COLOURS, INK, LINES, document

# In the order of their imports: each module uses only those before it.
_MODULES = (
    *("special", "lune", "quadrature", "curves", "changes", "geometric", "mechanisms"),
    *("words", "controls", "plot", "tables", "server", "page"),
)
_LIGHT_PANEL, _DARK_PANEL = "#ffffff", "#1f2024"
_ENOUGH = 3.1  # contrast with the background; WCAG 2.2, section 1.4.11, asks for 3
_DASHES = {"-": "none", "-.": "7 3 2 3", ":": "2 3"}
_FIELDS = (
    ("dimension", "Entries M", "numbers in the released array"),
    ("epsilon", "Epsilon ε", "privacy loss"),
    ("delta", "Delta δ", "probability beyond ε"),
    ("sensitivity", "Sensitivity", "any change up to this length: the l2 ball"),
)
# The sets of changes.js, in words.
_CHANGES = {
    "ball": "any change up to a length (l2)",
    "counts": "one count by 1 (a histogram)",
    "moved": "a table of counts, one row replaced",
    "entries": "every entry up to a bound (means)",
    "corner": "sums of entries from 0 to a bound",
}
_CURVES = {
    "least-noise": "Least noise",
    "analytic-gaussian": "Analytic Gaussian",
    "l2": "l2",
    "laplace": "Laplace",
    "least-count-noise": "Least count noise",
    "geometric": "Geometric",
    "zhao-gaussian-1": "Zhao",
    "classic-gaussian": "Classic",
    "r1smg": "R1SMG, exact",
    "r1smg-published": "R1SMG, published",
}


def fragment(*, heading: int = 3, endpoint: str = "") -> str:
    """The explorer as a piece of HTML: its ids and classes begin with ``lnx``, and nothing is fetched from anywhere.

    ``heading`` is the level of its headings. With an ``endpoint``, the address of a :mod:`server
    <lessnoise.explorer.server>`, the page also shows certified brackets and the least noise.

    >>> html = fragment()
    >>> html.count("<section"), "http" in html.replace("http://www.w3.org/2000/svg", "")
    (1, False)
    """
    body = _text("explorer.html")
    pieces = {
        "endpoint": f' data-endpoint="{escape(endpoint, quote=True)}"' if endpoint else "",
        "h": f"h{heading}",
        "fields": "\n".join([*(_field(*field) for field in _FIELDS[:-1]), _sets(), _field(*_FIELDS[-1])]),
        "legend": "\n".join(_legend(name, label) for name, label in _CURVES.items()),
        "choices": "\n".join(_choice(name) for name in reversed(_CURVES)),
    }
    for name, piece in pieces.items():
        body = body.replace(f"@{name}@", piece)
    return f"<style>\n{style()}{_colours()}</style>\n{body}<script>\n{program()}</script>\n"


def style() -> str:
    """The rules by which the explorer looks as it does, for pages that shall look the same."""
    return _text("explorer.css")


def page(*, endpoint: str = "") -> str:
    """The explorer as a page of its own."""
    lede = (
        "Move the sliders: every mechanism is calibrated for the target (epsilon, delta), as its source says or on its "
        "exact curve, and its exact privacy and expected loss are drawn. The link in the address bar holds the setting."
    )
    body = (
        f'<header>\n<h1>What each mechanism gives, and what it costs</h1>\n<p class="lede">{lede}</p>\n</header>\n'
        f"<main>\n{fragment(heading=2, endpoint=endpoint)}</main>\n<footer><p>lessnoise: noise that provably keeps the "
        "promise.</p></footer>"
    )
    return document("Exact-curve explorer", body)


_START = 'document.querySelectorAll("section.lnx").forEach(start);'


@functools.cache
def program(entry: str = _START) -> str:
    """All modules as one script of its own scope: imports are dropped, the order provides the names.

    ``entry`` is what runs at the end; tests put their own there.

    >>> "import " in program(), "export " in program()
    (False, False)
    """
    joined = "\n".join(_text(f"{name}.js") for name in _MODULES)
    joined = re.sub(r"^import \{[^}]*\} from \"[^\"]*\";\n", "", joined, flags=re.MULTILINE)
    joined = re.sub(r"^export \{[^}]*\};\n", "", joined, flags=re.MULTILINE)
    joined = re.sub(r"^export ", "", joined, flags=re.MULTILINE)
    return f'(() => {{\n"use strict";\n{joined}\n{entry}\n}})();\n'


def _text(name: str) -> str:
    return resources.files("lessnoise.explorer").joinpath(name).read_text(encoding="utf-8")


def _field(name: str, label: str, remark: str) -> str:
    return (
        f'<div class="lnx-field"><label for="lnx-{name}">{escape(label)}<small>{escape(remark)}</small></label>'
        f'<input type="text" inputmode="decimal" autocomplete="off" id="lnx-{name}" data-box="{name}">'
        f'<input type="range" min="0" max="100" step="1" data-slider="{name}" aria-label="{escape(label)}"></div>'
    )


def _sets() -> str:
    """The choice of a set of changes."""
    options = "".join(f'<option value="{name}">{escape(words)}</option>' for name, words in _CHANGES.items())
    label = '<label for="lnx-changes">What one individual changes</label>'
    return f'<div class="lnx-field">{label}<select id="lnx-changes" data-changes>{options}</select></div>'


def _legend(name: str, label: str) -> str:
    line = '<svg viewBox="0 0 30 10" aria-hidden="true"><path class="lnx-curve" d="M0,5H30"/></svg>'
    return f'<button type="button" data-m="{name}" aria-pressed="true">{line}{escape(label)}</button>'


def _choice(name: str) -> str:
    return f'<option value="{name}">{escape(CATALOGUE[name].label)}</option>'


def _colours() -> str:
    """One colour and one dash pattern a mechanism, as in all pictures, shifted just enough to be seen on the panel."""

    def rules(panel: str) -> str:
        # What is drawn in ink takes the ink of the panel.
        colours = {n: "var(--lnx-ink)" if colour == INK else legible(colour, panel) for n, colour in COLOURS.items()}
        return "\n".join(f'.lnx [data-m="{name}"] {{ --lnx-colour: {colour}; }}' for name, colour in colours.items())

    dashes = "\n".join(f'.lnx [data-m="{name}"] {{ --lnx-dash: {_dash(line)}; }}' for name, line in LINES.items())
    return f"{rules(_LIGHT_PANEL)}\n@media (prefers-color-scheme: dark) {{\n{rules(_DARK_PANEL)}\n}}\n{dashes}\n"


def _dash(line: object) -> str:
    """A matplotlib line style as an SVG dash pattern."""
    if isinstance(line, tuple):
        return " ".join(f"{1.6 * length:g}" for length in line[1])
    return _DASHES[str(line)]


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
