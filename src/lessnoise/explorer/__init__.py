"""The exact-curve explorer: a page with its own program, and a local server that adds what the library certifies."""

from lessnoise.explorer.html_page import fragment, page
from lessnoise.explorer.server import ExplorerServer

__all__ = ["ExplorerServer", "fragment", "page"]
