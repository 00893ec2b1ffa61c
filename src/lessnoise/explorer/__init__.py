"""The exact-curve explorer: a page with its own program, and local servers: for it, and for a ledger."""

from lessnoise.explorer.html_page import fragment, page
from lessnoise.explorer.ledger_page import LedgerServer, ledger_page
from lessnoise.explorer.server import ExplorerServer, LocalServer

__all__ = ["ExplorerServer", "LedgerServer", "LocalServer", "fragment", "ledger_page", "page"]
