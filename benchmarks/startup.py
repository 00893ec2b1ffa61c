"""How long it takes to start, beside Python and NumPy in the same run. Run ``python benchmarks/startup.py [times]``."""

from __future__ import annotations

import subprocess
import sys
import time

STARTS = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import lessnoise": ["-c", "import lessnoise"],
    "lessnoise --version": ["-m", "lessnoise", "--version"],
    "lessnoise --help": ["-m", "lessnoise", "--help"],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main(times: int) -> None:
    best = dict.fromkeys(STARTS, float("inf"))
    for _ in range(times):  # in turns, so that a busy moment falls on all alike
        for name, arguments in STARTS.items():
            best[name] = min(best[name], seconds(arguments))
    for name, taken in best.items():
        print(f"{name:20} {taken:.3f} s, {taken / best['import numpy']:.1f} times import numpy")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
