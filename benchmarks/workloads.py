"""Errors of workloads beside what else there is, and times. Run ``python -P benchmarks/workloads.py [large]``.

Squared error of an answer, averaged over the workload, one row added or removed. "Cells" sums the least noise on every
cell; H_b is the tree with Laplace noise and the best branching. Bounds are proved: of all Gaussian noise, and of all.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import lessnoise as ln
from lessnoise.strategy import tree

TARGET = {"epsilon": 1.0, "delta": 1e-6}
W = ln.workload


def tree_error(workload: ln.workload.Workload) -> float:
    """Of H_b with the best branching: a row is in one node of each of h levels, so that the variance is 2 h^2."""
    found = []
    for branching in range(2, min(workload.cells, 64) + 1):
        strategy = tree(workload.cells, branching)
        found.append(2.0 * strategy.norm(1) ** 2 * strategy.trace(workload) / workload.queries)
    return min(found)


def row(name: str, workload: ln.workload.Workload) -> list[str]:
    """One line of the table."""
    start = time.perf_counter()
    mechanism = ln.workload_mechanism(workload, **TARGET)
    built = time.perf_counter() - start
    cells = ln.least_noise(**TARGET, shape=workload.shape, changes=ln.changes.counts())
    alone = cells.query_error * float(workload.diagonal().sum()) / workload.queries
    table = np.ones(workload.shape, dtype=np.int64)
    mechanism.release(table)
    start = time.perf_counter()
    mechanism.release(table)
    released = time.perf_counter() - start
    bounds = [ln.loss_lower_bound(workload=workload, noise=noise, **TARGET) for noise in ("gaussian", "any")]
    small = len(workload.shape) == 1 and workload.queries < 2**20
    tree = f"{tree_error(workload):,.0f}" if small else ""
    words = mechanism.design.choice if mechanism.design is not None else ""
    numbers = [f"{alone:,.1f}", tree, f"**{mechanism.query_error:,.2f}**", *(f"{bound:,.2f}" for bound in bounds)]
    return [name, *numbers, f"{built:.1f} s", f"{released:.2f} s", words if len(words) < 70 else words[:67] + "..."]


def main() -> None:
    """The table, in Markdown."""
    asked = {f"prefix sums, {n:,} cells": W.prefixes(n) for n in (64, 100, 256, 300, 777, 1024)}
    asked |= {f"all ranges, {n:,} cells": W.ranges(n) for n in (64, 100, 256, 777, 1024)}
    asked |= {
        "10 attributes of 4 values, all pairs": W.marginals([4] * 10, order=2),
        "10 binary attributes, all triples": W.marginals([2] * 10, order=3),
        "20 binary attributes, all pairs": W.marginals([2] * 20, order=2),
        "all rectangles, 32 x 32": W.ranges((32, 32)),
    }
    if "large" in sys.argv[1:]:
        asked |= {
            "prefix sums, 10,000 cells": W.prefixes(10**4),
            "prefix sums, 100,000 cells": W.prefixes(10**5),
            "prefix sums, 1,000,000 cells": W.prefixes(10**6),
            "all rectangles, 512 x 512": W.ranges((512, 512)),
            "all rectangles, 1,000 x 1,000": W.ranges((1000, 1000)),
        }
    bounds = ["best Gaussian, bound", "any noise, bound"]
    head = ["workload", "cells", "H_b", "chosen", *bounds, "built", "release", "what"]
    print("|", " | ".join(head), "|\n|" + "---|" * len(head))
    for name, workload in asked.items():
        print("|", " | ".join(row(name, workload)), "|", flush=True)


if __name__ == "__main__":
    main()
