"""Trials of the ledger by force: processes that race for a budget, and processes that are killed.

Run ``python benchmarks/ledger_trials.py race 200`` or ``... kill 200``. Prints one JSON line; exit code 1 if anything
was lost, unrecorded or overspent. The test suite runs a few rounds of each.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import lessnoise as ln

RACERS = 8
MECHANISM = ln.analytic_gaussian(epsilon=0.3, delta=1e-8, sensitivity=1, shape=3)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def admitted() -> int:
    """How many releases the budget admits, from the composition itself."""
    count = 0
    while MECHANISM.repeat(count + 1).delta(BUDGET["epsilon"]).upper <= BUDGET["delta"]:
        count += 1
    return count


def racer(path: Path) -> int:
    """Release until the budget is spent; the number that succeeded."""
    ledger = ln.Ledger.open(path, **BUDGET)  # all racers may create it at once
    for count in range(1000):
        try:
            MECHANISM.release(np.zeros(3), ledger=ledger)
        except ln.BudgetExceeded:
            return count
    return 255


def race(rounds: int, folder: Path) -> dict[str, object]:
    expected = admitted()
    failures = []
    for number in range(rounds):
        path = folder / f"race-{number}.ledger"
        children = []
        for _ in range(RACERS):
            child = os.fork()
            if child == 0:
                os._exit(racer(path))
            children.append(child)
        won = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if sum(won) != expected or ln.Ledger.open(path).count() != expected:
            failures.append({"round": number, "won": won})
    return {"trial": "race", "rounds": rounds, "processes": RACERS, "admitted": expected, "failures": failures}


def victim(path: Path, pipe: int) -> None:
    """Release for ever, and tell the outside world of each release once it is made."""
    ledger = ln.Ledger.open(path, epsilon=1e4, delta=1e-6)
    while True:
        receipt = MECHANISM.release(np.zeros(3), ledger=ledger).receipt
        os.write(pipe, f"{receipt.id}\n".encode())


def kill(rounds: int, folder: Path) -> dict[str, object]:
    path = folder / "kill.ledger"
    MECHANISM.release(np.zeros(3))  # so that children start with everything imported
    ln.Ledger.open(path, epsilon=1e4, delta=1e-6)
    rng = random.Random(20)
    failures, seen = [], set()
    for number in range(rounds):
        ends = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ends[0])
            victim(path, ends[1])
        os.close(ends[1])
        first = b"" if seen else os.read(ends[0], 64)  # on a slow machine too, something is seen before a kill
        time.sleep(rng.uniform(0.0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(ends[0], "rb") as pipe:
            told = {int(line) for line in (first + pipe.read()).split()}
        seen |= told
        ledger = ln.Ledger.open(path)  # checks the file, and its totals against its records
        recorded = {record.id for record in ledger.records()}
        # Every release that was seen is recorded; each kill leaves at most one that was recorded but not yet seen.
        if not seen <= recorded or len(recorded - seen) > number + 1:
            failures.append({"round": number, "unrecorded": sorted(seen - recorded), "extra": len(recorded - seen)})
    total = ln.Ledger.open(path).count()
    return {"trial": "kill", "rounds": rounds, "releases": len(seen), "records": total, "failures": failures}


def main() -> int:
    trial, rounds = {"race": race, "kill": kill}[sys.argv[1]], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        result = trial(rounds, Path(folder))
    print(json.dumps(result))
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
