"""The certificate of a table: several releases about the same individuals, and what they guarantee together."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from lessnoise_verify.balls import ends, refined
from lessnoise_verify.certificate import (
    ASSUMED,
    STATED,
    Mechanism,
    Proof,
    Stated,
    check_release,
    check_total,
    decide,
    read_bracket,
    stated_words,
)
from lessnoise_verify.changes import RELATIONS
from lessnoise_verify.compositions import Part, composed_delta
from lessnoise_verify.document import Fields, NotCovered, Refuted, Unreadable
from lessnoise_verify.queries import Unit, check_covers, read_grouped, texts

if TYPE_CHECKING:
    from lessnoise_verify.queries import Measure

_MOST: Final = 100  # releases
OF_TABLE: Final = (
    "The values are the stated measures of each group, and one individual is one unit as the query defines it."
)
PRIVATE_KEYS: Final = (
    "A group is shown only if its noisy number of units is larger than noise can make that of a group without units."
)
_Done = list[tuple[Mechanism, Stated]]


def check_table(given: Fields, proof: Proof) -> None:
    """Every release on its own, that its changes follow from the query, and the guarantee of all of them."""
    if not given.truth("private"):
        raise Refuted("the noise came from a seeded generator, as the certificate says itself: nothing is guaranteed.")
    stated, relation = Stated.read(given.fields("guarantee")), given.choice("neighbours", *RELATIONS)
    unit, query = Unit.read(given.fields("unit")), given.fields("query")
    query.choice("query", "grouped")
    groups, measures = read_grouped(query)
    query.end()
    texts(given, "rules")
    given.number("level", 0.0, 1.0)
    for name in ("lessnoise", "engine", "sensitivity", "aggregates", "marginals"):
        given.take(name, None)  # said for people: nothing rests on it
    done: _Done = []
    for place, release in enumerate(given.objects("releases", _MOST)):
        own = Proof()
        if release.whole("schema", 1, 2) == 2:
            release.choice("kind", "release")
        mechanism = check_release(release, own, None)
        release.end()
        done.append((mechanism, Stated.read(release.fields("guarantee"))))
        proof.proved += [f"release {place + 1}: {statement}" for statement in own.proved]
        proof.skipped += [f"release {place + 1}: {statement}" for statement in own.skipped]
        proof.assumed += [statement for statement in own.assumed if statement != STATED]
    if not done:
        raise Unreadable(f"{given.name}.releases is empty.")
    if {relation} != {stated.relation, *(mechanism.case.relation for mechanism, _ in done)}:
        raise Refuted(f"the table is for {relation}, but its guarantee or one of its releases is not.")
    try:
        _check_changes([mechanism for mechanism, _ in done], measures, groups, unit)
        proof.proved.append("the guarantee of each release covers every change that one unit can make to the measures")
        proof.assumed += [OF_TABLE] if groups else [OF_TABLE, PRIVATE_KEYS]
    except NotCovered:
        proof.assumed.append(f"{STATED} This is assumed for each release of the table.")
    _check_total(done, stated, proof)


def check_composition(given: Fields, proof: Proof) -> None:
    """Several releases about the same individuals, each some number of times, on Poisson samples."""
    given.text("lessnoise")
    stated, parts, machine = Stated.read(given.fields("guarantee")), [], Fraction(0)
    for each in given.objects("parts", _MOST):
        mechanism = Mechanism.read(each.fields("mechanism"))
        part = Part(mechanism.noise, mechanism.case, each.positive("rate", 1.0), each.whole("count", 1, 10**12))
        each.end()
        if mechanism.case.relation != stated.relation or (part.rate < 1 and stated.relation != "add/remove"):
            raise Refuted("the parts are not for the relation of the guarantee, or samples are not for add/remove.")
        machine += part.count * _machine(mechanism, stated.epsilon)
        proof.assumed += stated_words(mechanism)
        parts.append(part)
    if not parts:
        raise Unreadable(f"{given.name}.parts is empty.")
    low, high, numeric = read_bracket(given)
    words = f"delta of all releases at epsilon = {float(stated.epsilon):.12g}"
    found = decide(proof, words, lambda bits: composed_delta(parts, stated.epsilon, bits), low, high)
    for part in parts:
        part.noise.end()
    check_total(stated, ends(found)[1], high, machine, numeric)
    proof.proved.append(f"all releases together are {stated}, with what a real machine adds to delta")
    proof.assumed += ASSUMED[:2]


def _check_changes(mechanisms: list[Mechanism], measures: list[Measure], groups: int, unit: Unit) -> None:
    """Each measure has one release, in order; quantiles are chosen first, and rows are counted around them after that.

    With private keys (no groups) a release says itself for how many groups it is, and units that count once in a group
    get noise that ends.
    """
    left, ended, undecided = list(mechanisms), groups > 0, None
    for measure in measures:
        widths = [measure.width]
        if measure.kind == "cells" and left and left[0].noise.text("kind") == "quantile-choice":
            widths.append(0)  # other cells, as many as there are numbers
        for given in widths:
            if not left:
                raise Refuted("there are fewer releases than the measures of the query need.")
            mechanism = left.pop(0)
            size = mechanism.case.dimension
            width = given or max(size // max(groups, 1), 1)
            if size % width or (groups and size != groups * width):
                raise Refuted(f"a release of {size} numbers does not have {width} numbers for each group.")
            effect = replace(measure, width=width).effect(size // width, unit, mechanism.case.relation)
            try:
                check_covers(mechanism.noise, mechanism.case, effect)
            except NotCovered as error:  # others may still be refuted
                undecided = error
            once = effect.changes.whole and effect.changes.squared_norm(math.inf) == 1
            ends_there = mechanism.noise.text("kind") == "geometric" and mechanism.noise.number("tail", 0.0) > 0
            ended |= once and ends_there
    if left:
        raise Refuted("there are more releases than the measures of the query need.")
    if undecided is not None:
        raise undecided
    if not ended:
        raise NotCovered("keys are private, but no number of units has noise that ends.")


def _check_total(done: _Done, stated: Stated, proof: Proof) -> None:
    """Basic composition with the stated epsilons, or with others of the same proportions; or the exact composition.

    Releases are (e_1 + e_2 + ..., d_1 + d_2 + ...)-private together for all epsilons e_i whose deltas are d_i.
    """
    used = sum((own.epsilon for _, own in done), Fraction(0))
    if used <= stated.epsilon and sum(own.delta for _, own in done) <= stated.delta:
        proof.proved.append(f"the epsilons and deltas of the releases add up: together the releases are {stated}")
        return
    share = stated.epsilon / used if used else Fraction(1)
    shares = [(mechanism, own.epsilon * share) for mechanism, own in done]
    if sum(ends(each.delta(eps))[1] + _machine(each, eps) for each, eps in shares) <= stated.delta:
        proof.proved.append(
            "the deltas of the releases, at epsilons that add up to the total, add up to at most the total delta: "
            f"together the releases are {stated}"
        )
        return
    parts = [Part(mechanism.noise, mechanism.case, Fraction(1), 1) for mechanism, _ in done]
    machine = sum((_machine(mechanism, stated.epsilon) for mechanism, _ in done), Fraction(0))
    below, above = ends(composed_delta(parts, stated.epsilon, 60))
    if below > stated.delta:
        raise Refuted(f"delta of all releases together is proved to be at least {float(below):.12g}, not {stated}.")
    if above + machine > stated.delta:
        raise NotCovered(
            f"delta of all releases together is at most {float(above + machine):.12g}, which does not decide whether "
            f"they are {stated}."
        )
    proof.proved.append(
        f"delta of all releases together is at most {float(above + machine):.12g}: together they are {stated}"
    )


def _machine(mechanism: Mechanism, epsilon: Fraction) -> Fraction:
    return ends(refined(lambda: mechanism.machine_share(epsilon), 80))[1]
