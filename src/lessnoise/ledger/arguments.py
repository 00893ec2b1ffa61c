"""What callers say of a ledger and of a spend, checked before anything is opened."""

from __future__ import annotations

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.ledger import total

_MOST_TEXT, _MOST_NAME = 100_000, 200


def stated_budget(
    epsilon: float | None, delta: float | None, neighbours: Neighbours | str | None, adaptive: bool | None
) -> dict[str, object]:
    """What the caller says of the budget, checked."""
    stated: dict[str, object] = {}
    if epsilon is not None:
        stated["epsilon"] = validation.epsilon(epsilon)
    if delta is not None:
        stated["delta"] = 0.0 if validation.delta_or_zero(delta) == 0.0 else validation.delta(delta)
    if neighbours is not None:
        stated["neighbours"] = Neighbours.of(neighbours).value
    if adaptive is not None:
        if not isinstance(adaptive, bool):
            raise InvalidInput(f"adaptive={adaptive!r} is neither True nor False: pass one of them.")
        stated["adaptive"] = adaptive
    return stated


def partition_key(value: str | None) -> str:
    """The key of a partition as it is stored."""
    if value is None:
        return total.EVERYWHERE
    if value == "":
        raise InvalidInput("partition='' names nobody: pass a key such as 'north', or None for everybody.")
    return checked_text("partition", value)


def plan_name(value: object) -> str:
    """The name of a plan in a ledger."""
    if value == "":
        raise InvalidInput("name='' names no plan: pass one such as 'monthly'.")
    return checked_text("name", value, most=_MOST_NAME)


def record_key(value: object) -> str:
    """The name of one record, by which it is known again."""
    if value == "":
        raise InvalidInput("key='' names nothing: pass a name such as 'daily-2026-11-16', or None.")
    return checked_text("key", value, most=_MOST_NAME)


def checked_text(name: str, value: object, most: int = _MOST_TEXT) -> str:
    """A text that can be kept."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name}={value!r} is not text: pass a str.")
    if len(value) > most:
        raise InvalidInput(f"{name}={value[:20]!r}... has {len(value)} letters: pass at most {most}.")
    if not validation.is_unicode(value):
        raise InvalidInput(f"{name}={value!r} has letters that cannot be stored: pass text without them.")
    return value
