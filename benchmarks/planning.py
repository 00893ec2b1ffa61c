"""Plans of 12 to 10,000 releases within (1, 1e-6): how long they take, and how near the scale is to the smallest.

Run ``python benchmarks/planning.py``; it writes ``results/planning.md``. The gap is proved: with so much less noise the
lower end of the exact composed curve is above the target. Times are of the processor, in a fresh cache of curves.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import lessnoise as ln
from lessnoise.composition import SHARP, delta_of_steps
from lessnoise.mechanism import delta_of, with_noise

TIMES = (12, 52, 365, 10_000)
GAPS = (1e-8, 2e-4, 4e-4, 6e-4, 8e-4, 1e-3, 2e-3, 1e-2)
COUNT = ln.Request(1, 1e-6, None, 1, changes=ln.changes.counts())
NUMBER = ln.Request(1, 1e-6, 1.0, 1)
KINDS = {
    "one count, best": (COUNT, "best"),
    "one number, best": (NUMBER, "best"),
    "three numbers, best": (replace(NUMBER, shape=3), "best"),
    "100 numbers, best": (replace(NUMBER, shape=100), "best"),
    "Laplace": (NUMBER, "laplace"),
    "geometric": (COUNT, "geometric"),
    "discrete Gaussian": (COUNT, "discrete-gaussian"),
    "l2, 10 entries": (replace(NUMBER, shape=10), "l2"),
    "Gaussian on samples of 1%": (NUMBER, "analytic-gaussian"),
}


def gap(plan: ln.ReleasePlan) -> float:
    """The least of GAPS by which the noise is proved not to be too large; infinite if none is."""
    for share in GAPS:
        less = with_noise(plan.mechanism, 1.0 - share)
        part = replace(plan.items[0].part, mechanism=less)
        if delta_of_steps(ln.Composition((part,)).steps, 1.0, SHARP).lower > 1e-6:
            return share
    return float("inf")


def rows() -> list[str]:
    lines = ["| releases | " + " | ".join(f"{times:,}" for times in TIMES) + " |", "|---|" + "---|" * len(TIMES)]
    for name, (request, mechanism) in KINDS.items():
        cells = []
        for times in TIMES:
            delta_of.cache_clear()
            delta_of_steps.cache_clear()
            start = time.process_time()
            rate = 0.01 if "samples" in name else None
            plan = ln.plan_releases(request, times=times, rate=rate, mechanism=mechanism)
            seconds = time.process_time() - start
            cells.append(f"{plan.mechanism.law.kind}, {seconds:.1f} s, gap ≤ {gap(plan):.2%}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    text = f"# Plans within (1, 1e-6)\n\n{(__doc__ or '').split('. ', 1)[1].strip()}\n\n" + "\n".join(rows()) + "\n"
    (Path(__file__).parent / "results" / "planning.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
