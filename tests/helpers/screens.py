"""Whether a page fits a screen, as Chromium lays it out: nothing sticks out, and on a desk no table is cut."""

PHONE, DESK = 390, 1400

_STICKS_OUT = """(() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = e => e && e !== document.body
    && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
  return [...document.querySelectorAll("body *")]
    .filter(e => e.getBoundingClientRect().right > wide + 1 && !scrolls(e.parentElement))
    .map(e => e.tagName + "." + e.className).slice(0, 5);
})()"""
_CUT = """[...document.querySelectorAll("table, .scroll, .card, .lnx-scroll")]
    .filter(e => e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1)
    .map(e => e.tagName + ": " + (e.getAttribute("aria-label") || e.textContent.slice(0, 40)))"""


def assert_fits(tab, address, widths=(PHONE, DESK)):
    """A page is as wide as the screen and no wider; tables and pictures that scroll on a phone are whole on a desk."""
    for width in widths:
        tab.resize(width, 900)
        tab.open(address)
        assert tab.run("innerWidth") == width
        assert tab.run(_STICKS_OUT) == [], f"{address} at {width} pixels"
        assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        if width >= 1200:
            assert tab.run(_CUT) == [], f"tables and pictures fit a desk of {width} pixels"
