"""Trials of the ledger by force: processes that race for a budget, that are killed, that fork while they spend.

Run ``python benchmarks/ledger_trials.py race 200``, ``... kill 200``, ``... storm 200`` or ``... fork 200``; for a
ledger on a PostgreSQL server ``... team-race 20``, ``... team-kill 200``, ``... server-kill 20`` and ``... cut 200``.
Prints one JSON line; exit code 1 if anything was lost, unrecorded, counted twice or overspent. The test suite runs a
few rounds of each.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from postgres_server import Cutter, Server

import lessnoise as ln

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Place = Path | str
RACERS, TEAM = 8, 16
PROCESSES, THREADS = 4, 4
MECHANISM = ln.analytic_gaussian(epsilon=0.3, delta=1e-8, sensitivity=1, shape=3)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def admitted() -> int:
    """How many releases the budget admits, from the composition itself."""
    count = 0
    while MECHANISM.repeat(count + 1).delta(BUDGET["epsilon"]).upper <= BUDGET["delta"]:
        count += 1
    return count


def racer(path: Place) -> int:
    """Release until the budget is spent; the number that succeeded."""
    ledger = ln.Ledger.open(path, **BUDGET)  # all racers may create it at once
    for count in range(1000):
        try:
            MECHANISM.release(np.zeros(3), ledger=ledger)
        except ln.BudgetExceeded:
            return count
    return 255


def race(rounds: int, folder: Path) -> dict[str, object]:
    return race_at(rounds, RACERS, lambda name: folder / f"{name}.ledger")


def race_at(rounds: int, racers: int, place: Callable[[str], Place]) -> dict[str, object]:
    expected = admitted()
    failures = []
    for number in range(rounds):
        path = place(f"race-{number}")
        children = []
        for _ in range(racers):
            child = os.fork()
            if child == 0:
                os._exit(racer(path))
            children.append(child)
        won = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if sum(won) != expected or ln.Ledger.open(path).count() != expected:
            failures.append({"round": number, "won": won})
    return {"trial": "race", "rounds": rounds, "processes": racers, "admitted": expected, "failures": failures}


def victim(path: Place, pipe: int) -> None:
    """Release for ever, and tell the outside world of each release once it is made."""
    ledger = ln.Ledger.open(path, epsilon=1e4, delta=1e-6)
    while True:
        receipt = MECHANISM.release(np.zeros(3), ledger=ledger).receipt
        os.write(pipe, f"{receipt.id}\n".encode())


def kill(rounds: int, folder: Path) -> dict[str, object]:
    return kill_at(rounds, folder / "kill.ledger")


def kill_at(rounds: int, path: Place, longest: float = 0.1) -> dict[str, object]:
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
        time.sleep(rng.uniform(0.0, longest))
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


def customer(path: Place, log: Path, shared: ln.Ledger | None, stop: threading.Event) -> None:
    """Spend until told to stop, with one handle or a new one each time; each receipt goes to a log, synced."""
    choose = random.Random(log.name)
    with log.open("ab", buffering=0) as kept:
        while not stop.is_set():
            try:
                ledger = shared or ln.Ledger.open(path, epsilon=1e4, delta=1e-6)
                if choose.random() < 0.05:
                    ledger.verify()
                receipt = ledger.spend(MECHANISM, partition=choose.choice((None, "north", "south")))
            except ln.LessnoiseError as error:
                kept.write(f"error {error}\n".encode())
                return
            kept.write(f"{receipt.id}\n".encode())
            os.fsync(kept.fileno())


def crowd(path: Place, folder: Path, number: int, stop: threading.Event, handles: int = 2) -> list[threading.Thread]:
    """Threads that spend: one in ``handles`` opens the ledger each time, the others share a handle; all, if it is 0."""
    shared = ln.Ledger.open(path, epsilon=1e4, delta=1e-6)
    logs = {folder / f"{number}-{k}.log": None if handles and k % handles == 0 else shared for k in range(THREADS)}
    threads = [threading.Thread(target=customer, args=(path, log, handle, stop)) for log, handle in logs.items()]
    for thread in threads:
        thread.start()
    return threads


def settled(path: Place, folder: Path, unseen: int) -> dict[str, object]:
    """The logs of all customers against the records; at most ``unseen`` records may lack a receipt."""
    lines = [line for log in folder.glob("*.log") for line in log.read_text().splitlines()]
    failures: list[object] = [line for line in lines if line.startswith("error")]
    receipts = Counter(int(line) for line in lines if line.isdigit())
    try:
        ledger = ln.Ledger.open(path)
        ledger.verify()
        recorded = {record.id for record in ledger.records()}
    except ln.LessnoiseError as error:
        return {"receipts": receipts.total(), "failures": [*failures, str(error)]}
    lost, twice = set(receipts) - recorded, [number for number, count in receipts.items() if count > 1]
    if lost or twice or len(recorded - set(receipts)) > unseen:
        failures.append({"lost": sorted(lost), "twice": twice, "unseen": len(recorded - set(receipts))})
    return {"receipts": receipts.total(), "records": len(recorded), "failures": failures}


def storm(rounds: int, folder: Path) -> dict[str, object]:
    """Processes with threads that open and spend; in each round one of them is killed and another one started."""
    path, rng = folder / "storm.ledger", random.Random(21)
    children: list[int] = []
    release, told = os.pipe()

    def start(number: int) -> None:
        child = os.fork()
        if child == 0:
            os.close(told)
            stop = threading.Event()
            threads = crowd(path, folder, number, stop)
            os.read(release, 1)  # until the parent closes its end
            stop.set()
            for thread in threads:
                thread.join()
            os._exit(0)
        children.append(child)

    for number in range(PROCESSES):
        start(number)
    for number in range(rounds):
        time.sleep(rng.uniform(0.05, 0.4))
        child = children.pop(rng.randrange(len(children)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        start(PROCESSES + number)
    time.sleep(0.5)
    os.close(told)
    for child in children:
        os.waitpid(child, 0)
    found = settled(path, folder, unseen=rounds * THREADS)
    return {"trial": "storm", "rounds": rounds, "processes": PROCESSES, "threads": THREADS, **found}


def fork(rounds: int, folder: Path) -> dict[str, object]:
    """A process forks while its threads spend; each child spends too."""
    path, stop = folder / "fork.ledger", threading.Event()
    threads = crowd(path, folder, 0, stop)
    mine = ln.Ledger.open(path)
    failures = []
    for number in range(rounds):
        child = os.fork()
        if child == 0:
            with (folder / f"child-{number}.log").open("ab", buffering=0) as kept:
                kept.write(f"{mine.spend(MECHANISM).id}\n".encode())
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            failures.append({"round": number})
    stop.set()
    for thread in threads:
        thread.join()
    found = settled(path, folder, unseen=0)
    failures.extend(found.pop("failures"))
    return {"trial": "fork", "rounds": rounds, "threads": THREADS, **found, "failures": failures}


# On a server.


@contextlib.contextmanager
def served() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="lessnoise-trial-") as folder:
        server = Server(Path(folder))
        try:
            yield server
        finally:
            server.stop()


def team_race(rounds: int, _: Path) -> dict[str, object]:
    with served() as server:
        ln.Ledger.open(server.address("first"), **BUDGET)  # and with it the tables, which only one may create
        return race_at(rounds, TEAM, server.address) | {"trial": "team-race"}


def team_kill(rounds: int, _: Path) -> dict[str, object]:
    with served() as server:
        return kill_at(rounds, server.address("kill"), longest=0.4) | {"trial": "team-kill"}


def server_kill(rounds: int, folder: Path) -> dict[str, object]:
    """The server is killed and started again while threads spend; they wait for it, and lose or repeat nothing."""
    with served() as server:
        path, stop, rng = server.address("killed"), threading.Event(), random.Random(22)
        ln.Ledger.open(path, epsilon=1e4, delta=1e-6)
        crowds = [crowd(path, folder, number, stop, handles=0) for number in range(1, 3)]
        slowest = 0.0
        try:
            for _ in range(rounds):
                time.sleep(rng.uniform(0.2, 0.8))
                server.kill()
                start = time.monotonic()
                server.start()
                slowest = max(slowest, time.monotonic() - start)
            time.sleep(0.5)
        finally:
            stop.set()
            for thread in (thread for threads in crowds for thread in threads):
                thread.join()
        found = settled(path, folder, unseen=0)
    return {"trial": "server-kill", "rounds": rounds, "threads": 2 * THREADS, "slowest_restart_s": slowest, **found}


def cut(rounds: int, folder: Path) -> dict[str, object]:
    """Each spend loses its connection at COMMIT, before the server hears of it or before its answer arrives."""
    failures, rng = [], random.Random(23)
    with served() as server:
        between = Cutter(server, folder)
        ledger = ln.Ledger.open(server.address("cut", folder=folder), epsilon=1e4, delta=1e-6)
        for number in range(1, rounds + 1):
            between.cuts = ["pass", *rng.choices(["answer", "question"], k=rng.choice([1, 1, 2, 3]))]
            receipt = ledger.spend(MECHANISM)
            if between.cuts or receipt.id != number or ledger.count() != number:
                failures.append({"round": number, "id": receipt.id, "left": between.cuts})
        ledger.verify()
        between.close()
    return {"trial": "cut", "rounds": rounds, "records": number, "failures": failures}


TRIALS = {
    "race": race,
    "kill": kill,
    "storm": storm,
    "fork": fork,
    "team-race": team_race,
    "team-kill": team_kill,
    "server-kill": server_kill,
    "cut": cut,
}


def main() -> int:
    trial, rounds = TRIALS[sys.argv[1]], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        result = trial(rounds, Path(folder))
    print(json.dumps(result))
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
