"""A budget that many releases share: in a file or on a server, every spend recorded before its noise is drawn."""

from lessnoise.ledger.address import is_on_server, parse_address
from lessnoise.ledger.ledger import Ledger
from lessnoise.ledger.opening import migrate_ledgers
from lessnoise.ledger.record import Receipt, Record
from lessnoise.ledger.reservations import Reservation, ReservedItem, words_of
from lessnoise.ledger.roles import roles_script
from lessnoise.ledger.spending import check_picture_format, draw_spending, draw_spending_on, history, spending_lines
from lessnoise.ledger.transfer import export_ledger, import_ledger

__all__ = [
    "Ledger",
    "Receipt",
    "Record",
    "Reservation",
    "ReservedItem",
    "check_picture_format",
    "draw_spending",
    "draw_spending_on",
    "export_ledger",
    "history",
    "import_ledger",
    "is_on_server",
    "migrate_ledgers",
    "parse_address",
    "roles_script",
    "spending_lines",
    "words_of",
]
