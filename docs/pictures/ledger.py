"""Draw ledger.png: what ``lessnoise ledger show --plot`` draws, for a small ledger.

Run ``python docs/pictures/ledger.py``; the picture appears beside this file.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import lessnoise as ln
from lessnoise.ledger import draw_spending, history

START = 1.8e9  # so that the picture does not depend on the day it is made


def main() -> None:
    """Spend, then draw."""
    daily = ln.analytic_gaussian(epsilon=0.3, delta=1e-8, sensitivity=1, shape=(8, 8))
    survey = ln.laplace(epsilon=0.2, sensitivity=1, shape=5)
    with tempfile.TemporaryDirectory() as folder:
        ledger = ln.Ledger.open(Path(folder) / "city.ledger", epsilon=1.2, delta=1e-6)
        for day in range(14):
            ledger.spend(daily)
            if day == 7:
                ledger.spend(survey)
        with Path(__file__).with_name("ledger.png").open("wb") as file:
            moments = [replace(m, time=START + 86400.0 * m.records) for m in history(ledger, points=100)]
            draw_spending(moments, ledger.budget, file, ".png")


if __name__ == "__main__":
    main()
