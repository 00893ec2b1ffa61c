"""A budget that many releases share: one file, every spend recorded before its noise is drawn."""

from lessnoise.ledger.history import history
from lessnoise.ledger.ledger import Ledger, Receipt, Record
from lessnoise.ledger.picture import check_picture_format, draw_spending, draw_spending_on, spending_lines

__all__ = [
    "Ledger",
    "Receipt",
    "Record",
    "check_picture_format",
    "draw_spending",
    "draw_spending_on",
    "history",
    "spending_lines",
]
