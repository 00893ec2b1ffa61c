"""Speed of the ledger: opening one with 100,000 records and spending once more.

Run ``python benchmarks/ledger.py``. The first row is the cost of SQLite alone, one synced insert into the same file;
the others are ratios to it as well as seconds.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lessnoise as ln
from lessnoise.ledger import database

RECORDS = 100_000
KINDS = {
    "Gaussian, one kind": [ln.analytic_gaussian(epsilon=0.01, delta=1e-9, sensitivity=1, shape=10)],
    "Gaussian, 100 kinds": [
        ln.analytic_gaussian(epsilon=0.01 + 1e-4 * k, delta=1e-9, sensitivity=1, shape=10) for k in range(100)
    ],
    "l2, one kind": [ln.l2_mechanism(epsilon=0.01, delta=1e-9, sensitivity=1, shape=10)],
    "l2, Laplace and Gaussian": [
        ln.l2_mechanism(epsilon=0.01, delta=1e-9, sensitivity=1, shape=10),
        ln.laplace(epsilon=0.01, sensitivity=1, shape=10),
        ln.analytic_gaussian(epsilon=0.01, delta=1e-9, sensitivity=1, shape=10),
    ],
}
# In a process of its own, so that nothing is kept from before; import time is not counted.
ONE_MORE = """
import sys, time
import lessnoise as ln
import scipy.fft, scipy.special
from lessnoise.composition import Composition
start = time.perf_counter()
ledger = ln.Ledger.open(sys.argv[1])
opened = time.perf_counter()
ledger.spend(Composition.from_json(sys.argv[2]))
print(opened - start, time.perf_counter() - opened)
"""


def filled(path: Path, mechanisms: list[ln.Mechanism], nearly_full: bool) -> None:
    """A ledger with RECORDS records, written in one go; a nearly full one takes a closer look to decide."""
    everything = ln.compose(*(mechanism.repeat(RECORDS // len(mechanisms)) for mechanism in mechanisms))
    epsilon = everything.epsilon(1e-6).upper * (1.002 if nearly_full else 2.0)
    ledger = ln.Ledger.open(path, epsilon=epsilon, delta=1e-6)
    with database.FileStore(ledger.path).writing() as tables:
        descriptions = [ln.compose(mechanism).to_json() for mechanism in mechanisms]
        for number in range(RECORDS):
            tables.add(descriptions[number % len(descriptions)])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'ledger of 100,000 records':38} {'open s':>8} {'spend s':>8} {'ratio to one insert':>20}")
        for (name, mechanisms), nearly_full in itertools.product(KINDS.items(), (False, True)):
            path = Path(folder) / "bench.ledger"
            path.unlink(missing_ok=True)
            filled(path, mechanisms, nearly_full)
            start = time.perf_counter()
            with database.FileStore(path).writing() as tables:
                tables.connection.execute("UPDATE budget SET created = created + 1")
            insert = time.perf_counter() - start
            command = [sys.executable, "-c", ONE_MORE, str(path), ln.compose(mechanisms[0]).to_json()]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            opened, spent = (float(part) for part in output.split())
            label = name + (", nearly full" if nearly_full else "")
            print(f"{label:38} {opened:8.3f} {spent:8.3f} {(opened + spent) / insert:20.0f}")


if __name__ == "__main__":
    main()
