"""Pictures inside a page: their colours are the page's, and their ids their own."""

import pytest

from lessnoise.report.canvas import COLOURS, INK
from lessnoise.report.inline import colour_rules, inline_svg, night
from tests.helpers.colours import contrast


@pytest.mark.parametrize("colour", [INK, "#444444", *COLOURS.values()])
def test_colours_follow_the_page_and_stay_readable(colour):
    assert contrast(night(colour), night("#ffffff")) > 4.5


def test_an_inline_picture_keeps_its_ids_to_itself_and_its_colours_to_the_page():
    image = (
        b'<?xml version="1.0"?><svg viewBox="0 0 9 9" width="9pt"><metadata>x</metadata>'
        b'<defs><path id="p" d="M0 0"/></defs><g clip-path="url(#p)">'
        b'<use xlink:href="#p" style="fill: #CC6677"/></g></svg>'
    )
    shown = inline_svg(image, "a", "Three < four")
    assert 'id="a-p"' in shown
    assert 'xlink:href="#a-p"' in shown
    assert "url(#a-p)" in shown
    assert "fill: var(--c-cc6677)" in shown
    assert "metadata" not in shown
    assert 'aria-label="Three &lt; four"' in shown
    rules = colour_rules(shown)
    assert "--c-cc6677:#cc6677;" in rules
    assert f"--c-cc6677:{night('#cc6677')};" in rules
