"""A budget that many releases share: one file, every spend recorded before its noise is drawn."""

from lessnoise.ledger.ledger import Ledger
from lessnoise.ledger.record import Receipt, Record
from lessnoise.ledger.spending import check_picture_format, draw_spending, draw_spending_on, history, spending_lines

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
