"""Results made visible: numbers as words, pictures, pages, and how objects show themselves."""

from lessnoise.report import answers, charts, counts, curves, notebook  # each registers what it makes  # noqa: F401
from lessnoise.report.canvas import COLOURS, GRID, INK, LINES, MORE_COLOURS, Drawing, blank, png, style, svg
from lessnoise.report.html import count_word, document, embedded, is_ours, prose
from lessnoise.report.inline import colour, colour_rules, inline_svg
from lessnoise.report.savings import DIMENSIONS, EPSILONS, FrontierPoint, frontier, frontier_svg

__all__ = [
    "COLOURS",
    "DIMENSIONS",
    "EPSILONS",
    "GRID",
    "INK",
    "LINES",
    "MORE_COLOURS",
    "Drawing",
    "FrontierPoint",
    "blank",
    "colour",
    "colour_rules",
    "count_word",
    "document",
    "embedded",
    "frontier",
    "frontier_svg",
    "inline_svg",
    "is_ours",
    "png",
    "prose",
    "style",
    "svg",
]
