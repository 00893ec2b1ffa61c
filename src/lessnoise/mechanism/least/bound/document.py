"""A lower bound on the noise, with all that proves it, as a file for the verifier."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise._later import offers
from lessnoise._version import CERTIFICATE_SCHEMA
from lessnoise.doubles import encoded
from lessnoise.errors import InvalidInput
from lessnoise.mechanism.least.bound.line import rearrangement_bound
from lessnoise.mechanism.least.bound.lower import line_reach
from lessnoise.mechanism.least.bound.scalar import entries_bound, scalar_bound, scalar_steps
from lessnoise.mechanism.least.builder import bound_with_proof
from lessnoise.mechanism.least.objective import Goal, Problem
from lessnoise.mechanism.least.search import find

if TYPE_CHECKING:
    from lessnoise.mechanism.least.bound.proof import LowerBound
    from lessnoise.mechanism.mechanism import Mechanism

SLACK = 1e-5
"""Share by which caps state less than what floating point proves: ball arithmetic then needs fewer radii."""

_ROUNDED = 1e-6  # the same for bounds that are quick to check
_MOST = 1000  # dimensions of tests; beyond, a bound for so many serves
_CELLS = 20_000
_WIDE = 0.4  # epsilon below which the scalar bound is the best on the line


@offers("bound proof")
def bound_document(mechanism: Mechanism, slack: float = SLACK) -> dict[str, Any]:
    """A bound on E||n||^2 of all additive noise with the claim of a mechanism, for ``lessnoise_verify``.

    Against an l2 ball inside what one individual can change; where there is none, against changes of single entries.
    """
    claim, changes, dimension = mechanism.claim, mechanism.changes, mechanism.dimension
    if claim is None or not (claim.epsilon > 0.0 and claim.delta > 0.0):
        raise InvalidInput(f"claim={claim}: a bound is proved for a target (epsilon > 0, delta > 0).")
    if changes is None and (mechanism.law.integer or mechanism.law.norm != "l2"):
        raise InvalidInput(f"mechanism={mechanism.name!r} has no l2 sensitivity and names no set of changes.")
    radius = mechanism.sensitivity if changes is None else changes.inner_radius(dimension)
    alone = 0.0 if changes is None else changes.single(dimension)
    if radius == 0.0 and alone == 0.0:
        raise InvalidInput(f"mechanism={mechanism.name!r}: no entry can change alone, so that no bound is known.")
    if radius > 0.0:
        method, fewer, times, unit, proof = _of_ball(dimension, claim.epsilon, claim.delta, slack)
    else:
        method, fewer, times, unit, proof = _scalar(claim.epsilon, claim.delta)
    sensitivity = radius or alone
    return {
        "schema": CERTIFICATE_SCHEMA,
        "kind": "lower-bound",
        "dimension": dimension,
        "epsilon": claim.epsilon,
        "delta": claim.delta,
        "sensitivity": sensitivity,
        "order": 2,
        "value": float(unit * (dimension / fewer) * sensitivity**2 * (1.0 - 1e-14)),
        "against": "ball" if radius > 0.0 else "entry",
        "method": method,
        "fewer": fewer,
        "times": times,
        "proof": proof,
    }


_Found = tuple[str, int, int, float, dict[str, Any]]  # method, fewer, times, value for shifts of length 1, its proof


def _scalar(epsilon: float, delta: float) -> _Found:
    value = scalar_bound(epsilon, delta) * (1.0 - _ROUNDED)
    return "scalar", 1, 1, value, {"steps": scalar_steps(epsilon, delta)}


def _of_ball(dimension: int, epsilon: float, delta: float, slack: float) -> _Found:
    """The best bound that the verifier can check."""
    goal, part = Goal.of("squared"), min(dimension, _MOST)
    law, problem = find(part, epsilon, delta, 1.0, goal).law, Problem(part, epsilon, delta, goal.power)
    expected, simple = math.exp(2.0 * goal.log_size(law, part)), _scalar(epsilon, delta)
    if entries_bound(problem) > (1.0 - slack) * expected or (part == 1 and epsilon < _WIDE):
        return simple
    with np.errstate(all="ignore"):
        if part == 1:
            found: _Found | None = _rearranged(problem, expected)
        else:
            found = _caps(bound_with_proof(problem, goal, expected, law), part, slack)
    return simple if found is None or found[3] < part * simple[3] else found


def _rearranged(problem: Problem, expected: float) -> _Found:
    reach = line_reach(problem.epsilon, problem.target)
    found = rearrangement_bound(problem, expected, reach, cells=_CELLS)
    per_unit = int(min(max(_CELLS / (1.6 * reach + 6.0), 4.0), 2000.0))
    proof = {"scale": expected, "per_unit": per_unit, "multiplier": found.multipliers[0] / expected}
    return "rearranged", 1, 1, found.value * (1.0 - _ROUNDED), proof


def _caps(found: LowerBound, dimension: int, slack: float) -> _Found | None:
    if found.proof is None:
        return None
    kept = found.proof.to_dict()
    order = np.argsort(kept["levels"])
    tests = [{"shift": one["shift"], "values": encoded(np.array(one["values"])[:, order])} for one in kept["tests"]]
    nodes, levels = encoded(np.array(kept["nodes"])), encoded(np.array(kept["levels"])[order])
    proof = {"scale": kept["scale"], "nodes": nodes, "levels": levels, "tests": tests}
    return "caps", dimension, found.count, found.value * (1.0 - slack), proof
