"""Time and memory of exact composition, beside dp_accounting's own accountant in the same run.

    pip install -e . dp-accounting
    python benchmarks/composition.py

Each line is a fresh process, imports not counted, memory at its peak. The ratio is to dp_accounting composing a
Gaussian of the same epsilon as often, on its default lattice; it returns an upper bound only.
"""

from __future__ import annotations

import json
import subprocess
import sys

MECHANISMS = {
    "Gaussian": "ln.analytic_gaussian(epsilon={e}, delta=1e-6, sensitivity=1, shape=10)",
    "l2": "ln.l2_mechanism(epsilon={e}, delta=1e-6, sensitivity=1, shape=10)",
    "Laplace": "ln.laplace(epsilon={e}, sensitivity=1, shape=10)",
    "radial k=8 p=1.5": "ln.radial(epsilon={e}, delta=1e-6, sensitivity=1, shape=10, k=8, p=1.5)",
}
OURS = """
import json, resource, time
import lessnoise as ln, scipy.fft, scipy.special, scipy.optimize
release = {build}{sample}
release.delta(1.0)
from lessnoise.mechanism.curve import delta_of
delta_of.cache_clear()
start = time.perf_counter()
found = release.repeat({n}).epsilon(1e-6)
seconds = time.perf_counter() - start
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(json.dumps([seconds, memory, found.lower, found.upper]))
"""
THEIRS = """
import json, resource, time
import lessnoise as ln
from dp_accounting.pld import privacy_loss_distribution
sigma = {build}.standard_deviation
start = time.perf_counter()
pld = privacy_loss_distribution.from_gaussian_mechanism(sigma, sampling_prob={q}, value_discretization_interval=1e-4)
found = pld.self_compose({n}).get_epsilon_for_delta(1e-6)
seconds = time.perf_counter() - start
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 0.0, found]))
"""


def run(code: str) -> list[float]:
    finished = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return list(json.loads(finished.stdout))


def main() -> None:
    print(f"{'1,000-fold composition':36} {'seconds':>8} {'MB':>6} {'ratio':>7}   epsilon at delta = 1e-6")
    for epsilon in (0.01, 1, 10):
        for rate in (1.0, 0.01):
            build = MECHANISMS["Gaussian"].format(e=epsilon)
            peer = run(THEIRS.format(build=build, q=rate, n=1000))
            head = f"epsilon {epsilon}" + ("" if rate == 1.0 else f", rate {rate:g}")
            print(f"{'dp_accounting, Gaussian, ' + head:36} {peer[0]:8.2f} {peer[1]:6.0f} {1:7.2f}   {peer[3]:.5g}")
            for name, template in MECHANISMS.items():
                sample = "" if rate == 1.0 else f".subsample({rate})"
                seconds, memory, low, high = run(OURS.format(build=template.format(e=epsilon), sample=sample, n=1000))
                line = f"{name + ', ' + head:36} {seconds:8.2f} {memory:6.0f} {seconds / peer[0]:7.2f}"
                print(f"{line}   {low:.5g} to {high:.5g}")


if __name__ == "__main__":
    main()
