"""Whether a mechanism hides all that one unit can change of an answer; what it cannot hide is refused."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.mechanism import Hierarchy, changes_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.mechanism import Mechanism
    from lessnoise.query import Asked


def check_covers(mechanism: Mechanism, asked: Asked) -> None:
    """Raise InvalidInput, in words that no value of the data enters, unless the mechanism is one for the answer."""
    if mechanism.shape != asked.query.shape:
        raise InvalidInput(
            f"shape={mechanism.shape} of the mechanism is not that of the answer, {asked.query.shape}: build it for "
            "answer.shape."
        )
    if mechanism.neighbours is not asked.neighbours:
        raise InvalidInput(
            f"neighbours={mechanism.neighbours.value!r} of the mechanism is not that of the answer, "
            f"{asked.neighbours.value!r}: state both for one relation."
        )
    if mechanism.law.integer and not asked.query.integer:
        raise InvalidInput(
            f"mechanism={shown(mechanism.name)} adds integers, but the answer ({asked}) need not be whole: use noise "
            "for real values, such as least-noise."
        )
    if not covers(mechanism, asked):
        raise InvalidInput(
            f"the mechanism hides changes of {changes_words(mechanism)}, which do not cover those of {asked.unit} "
            f"({asked.changes}): build it from answer.request(epsilon, delta), or call answer.release."
        )


def covers(mechanism: Mechanism, asked: Asked) -> bool:
    """Whether every change of the answer is one that the mechanism's curve holds for: shape and relation are checked.

    Either both sets are the same; or the worst change of the answer's set is below that of the mechanism's own, of
    which the curve is computed; or, if the mechanism states a sensitivity alone, no change exceeds it in its norm.
    """
    if mechanism.changes is not None and mechanism.changes == asked.changes:
        return True
    law, query = mechanism.law, asked.query
    if isinstance(law, Hierarchy) and law.change == "moved":  # half of its sensitivity is taken away, half added
        return query.counts and 2 * asked.unit.rows <= mechanism.sensitivity
    if mechanism.changes is None and law.norm in ("l1", "l2"):
        norms, order = query.norms(asked.neighbours, asked.unit), {"l1": 1, "l2": 2}[law.norm]
        known = min(getattr(norms, law.norm), asked.changes.norm(order, mechanism.dimension))
        return bool(known <= mechanism.sensitivity)
    try:
        against = mechanism.against(asked.changes)
    except InvalidInput:  # the law has no curve for the set
        return False
    if mechanism.changes is None:
        return against.sensitivity <= mechanism.sensitivity
    worst, stated = against.shift, mechanism.shift
    if isinstance(worst, Moves) or isinstance(stated, Moves):
        return _entries(stated).dominates(_entries(worst))
    return worst <= stated


def _entries(shift: float | Moves) -> Moves:
    """The sizes of the entries of a change; one size alone is that of one entry, for a law of independent entries."""
    return shift if isinstance(shift, Moves) else Moves(((shift, 1),))


@contextlib.contextmanager
def unquoted(asked: Asked | None) -> Iterator[None]:
    """Around what may refuse a value and quote it: of an answer nothing is quoted."""
    try:
        yield
    except InvalidInput as error:
        if asked is None or str(error).startswith("out"):  # of the caller's array for the output
            raise
        raise InvalidInput(
            f"the answer ({asked}) has an entry that this noise cannot be added to, as it is too large for the noise's "
            "grid: use a smaller epsilon, or a mechanism of more noise."
        ) from None
