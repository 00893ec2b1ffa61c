"""Speed of the ledger: opening one with 100,000 records and spending once more, in a file and on a server.

Run ``python benchmarks/ledger.py`` or ``python benchmarks/ledger.py server``. Ratios are to one synced insert into the
same file; on the server a bare INSERT with its commit is beside them.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from postgres_server import Server

import lessnoise as ln
from lessnoise.ledger import database
from lessnoise.ledger.chain import RecordRow, linked
from lessnoise.ledger.file_tables import FileTables
from lessnoise.ledger.opening import store_of
from lessnoise.ledger.tables import Tables, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable

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


def filled(path: Path | str, mechanisms: list[ln.Mechanism], nearly_full: bool) -> None:
    """A ledger with RECORDS records, written in one go; a nearly full one takes a closer look to decide."""
    everything = ln.compose(*(mechanism.repeat(RECORDS // len(mechanisms)) for mechanism in mechanisms))
    epsilon = everything.epsilon(1e-6).upper * (1.002 if nearly_full else 2.0)
    ledger = ln.Ledger.open(path, epsilon=epsilon, delta=1e-6)
    store_of(path).write(lambda tables: fill(tables, [ln.compose(mechanism).to_json() for mechanism in mechanisms]))
    assert ledger.count() == RECORDS


def fill(tables: Tables, descriptions: list[str]) -> None:
    numbers = [tables.description_id(json) for json in descriptions]
    digests = [digest_of(json) for json in descriptions]
    rows, previous = [], tables.genesis()
    for number in range(RECORDS):
        which = number % len(numbers)
        key = "" if isinstance(tables, FileTables) else f"auto-{number:032x}"  # as a spend has it
        row = RecordRow(number + 1, "spend", 1.7e9 + number, tables.who(), "", numbers[which], "", key, b"")
        previous = linked(previous, row, digests[which])
        rows.append(row._replace(hash=previous))
    for start in range(0, RECORDS, 10_000):
        tables.insert_records(rows[start : start + 10_000])


def timed(action: Callable[[], object], times: int = 100) -> tuple[float, float]:
    """Median and largest of several runs, in milliseconds."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds), 1e3 * max(seconds)


def server() -> None:
    import psycopg

    with tempfile.TemporaryDirectory(prefix="lessnoise-bench-") as folder:
        running = Server(Path(folder))
        try:
            mechanism = ln.analytic_gaussian(epsilon=0.01, delta=1e-9, sensitivity=1, shape=10)
            small = ln.Ledger.open(running.address("small"), epsilon=1, delta=1e-6)
            local = ln.Ledger.open(Path(folder) / "small.ledger", epsilon=1, delta=1e-6)
            with psycopg.connect(running.address(), autocommit=True) as connection:
                connection.execute("CREATE TABLE bare (x text)")
                for ledger in (small, local):
                    ledger.spend(mechanism)
                print(f"{'':38} {'median ms':>10} {'largest ms':>10}")
                for name, action in {
                    "bare INSERT with its commit": lambda: connection.execute("INSERT INTO bare VALUES ('x')"),
                    "spend, server": lambda: small.spend(mechanism),
                    "spend, file": lambda: local.spend(mechanism),
                }.items():
                    print(f"{name:38} {timed(action)[0]:10.2f} {timed(action)[1]:10.2f}")
            filled(running.address("large"), [mechanism], nearly_full=False)
            command = [sys.executable, "-c", ONE_MORE, running.address("large"), ln.compose(mechanism).to_json()]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            opened, spent = (float(part) for part in output.split())
            large = ln.Ledger.open(running.address("large"))
            start = time.perf_counter()
            large.verify()
            verified = time.perf_counter() - start
            print(f"100,000 records: open {opened:.2f} s, first spend {spent:.3f} s, verify {verified:.2f} s")
        finally:
            running.stop()


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
    server() if sys.argv[1:] == ["server"] else main()
