"""A budget that many releases share: one file, every spend recorded before its noise is drawn."""

from lessnoise.ledger.ledger import Ledger, Receipt, Record

__all__ = ["Ledger", "Receipt", "Record"]
