"""The verifier beside the library's curves, and certificates that were changed. ``python -P benchmarks/verifier.py``.

``curves N SEED``: N random mechanisms of every kind, extreme ones included. ``mutants N SEED``: N changed certificates,
each of which is called proved only if it is true by the library's own curves. Run from the root of the repository.
"""

from __future__ import annotations

import collections
import json
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np

import lessnoise_verify as verifier
from lessnoise.audit import Comparison, compare_curves, curves_summary

sys.path.insert(0, str(Path(__file__).parents[1]))
LONGEST = 60


def curves(count: int, seed: int) -> None:
    """One row a kind of noise, in Markdown, and every mechanism whose enclosure is not inside."""
    found = compare_curves(count, np.random.default_rng(seed), progress=_tell)
    print("| noise | mechanisms | covered | inside our bracket | contradictions | median | slowest |")
    print("|---|---|---|---|---|---|---|")
    for row in curves_summary(found):
        counts = " | ".join(str(row[name]) for name in ("mechanisms", "covered", "inside", "missed"))
        print(f"| {row['kind']} | {counts} | {row['median_seconds']:.3f} s | {row['slowest_seconds']:.2f} s |")
    times = np.sort([each.seconds for each in found])
    covered = sum(each.proved is not None for each in found)
    words = f"{covered} covered, {sum(each.inside for each in found)} inside, "
    words += f"{sum(not each.meets for each in found)} contradictions"
    print(
        f"\nAll {count}: {words}; median {times[len(times) // 2]:.3f} s, 95% below {np.quantile(times, 0.95):.2f} s, "
    )
    print(f"slowest {times[-1]:.1f} s.")


def _tell(one: Comparison) -> None:
    if not one.meets or not one.inside or one.seconds > 10.0:
        print(one.kind, one.reason, one.ours, one.proved, f"{one.seconds:.1f} s", file=sys.stderr)
        print(json.dumps(one.description)[:600], one.epsilon, file=sys.stderr)


def _too_long(*_: object) -> None:
    raise TimeoutError


def mutants(count: int, seed: int) -> None:
    """How many are proved, refuted, unreadable and not covered; each that is proved and false, or crashes, is told."""
    from tests.helpers.certificates import examples, is_true
    from tests.helpers.mutants import mutated

    originals, rng, words = examples(seed, 2), np.random.default_rng(seed), collections.Counter[str]()
    signal.signal(signal.SIGALRM, _too_long)
    names, times = list(originals), []
    for index in range(count):
        name = names[index % len(names)]
        content, change = mutated(originals[name], rng)
        begun = time.perf_counter()
        signal.alarm(LONGEST)
        try:
            word = verifier.verify(content).word
        except TimeoutError:
            word = "beyond a minute"  # as the command line's guard ends it: not covered
        except Exception as error:
            word = "CRASH"
            print(name, change, repr(error)[:200], file=sys.stderr)
        signal.alarm(0)
        times.append(time.perf_counter() - begun)
        if word == "proved":
            true = is_true(json.loads(content))
            word = {True: "proved", None: "proved, and refused by the library's reader", False: "FALSE PROOF"}[true]
        if word in ("FALSE PROOF", "beyond a minute") or "refused" in word:
            print(word, name, change, content[:400], file=sys.stderr)
        words[word] += 1
    print(", ".join(f"{word}: {number}" for word, number in words.most_common()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    longest = f"95% below {np.quantile(times, 0.95):.2f} s, slowest {max(times):.1f} s"
    print(f"{longest}, {peak:.0f} MB with the library")


if __name__ == "__main__":
    {"curves": curves, "mutants": mutants}[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
