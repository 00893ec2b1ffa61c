"""``lessnoise plan --times 12``, ``--schedule FILE`` and ``--how-often``: what many releases need, and how many fit."""

from __future__ import annotations

import json as json_format
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessnoise.cli.output import console, new_table, print_json, progress_bar, tell
from lessnoise.errors import InvalidInput
from lessnoise.files import check_free, write_together
from lessnoise.guarantees import Guarantee, Neighbours
from lessnoise.mechanism import BEST, Request, choose_mechanism
from lessnoise.planning import ReleasePlan, most_releases, plan_releases, read_schedule

if TYPE_CHECKING:
    from lessnoise.planning import Planned

_MOST_BYTES = 10_000_000


def plan_many(
    schedule: Request | list[Planned], target: Guarantee, *, times: int | None, rate: float | None, mechanism: str,
    out: Path | None, force: bool, json: bool,
) -> None:  # fmt: skip
    """Plan, print the table or JSON, and write the plan to a file if one is named."""
    check_free([] if out is None else [out], force)
    with progress_bar(json) as report:
        plan = plan_releases(
            schedule,
            times=times,
            rate=rate,
            mechanism=None if times is None else mechanism,
            epsilon=target.epsilon,
            delta=target.delta,
            progress=report,
        )
    if out is not None:
        write_together({out: lambda file: file.write((plan.to_json() + "\n").encode())}, force)
    if json:
        print_json(plan.to_dict() | {"exact_delta": plan.exact_delta.to_dict()})
        return
    _print(plan)
    if out is not None:
        console().print(f"wrote {out}", soft_wrap=True, markup=False)


def _print(plan: ReleasePlan) -> None:
    table = new_table("The noise of each release", ["item"], ["times", "rate", "share"], ["mechanism"])
    for name in ("noise sd per entry", "expected loss"):
        table.add_column(name, justify="right")
    for row in plan.rows():
        table.add_row(*row)
    out = console()
    out.print(table)
    out.print(plan.total(), soft_wrap=True, markup=False)


def tell_how_often(request: Request, within: Guarantee, rate: float | None, mechanism: str, json: bool) -> None:
    """How many times the mechanism for the request fits into a budget."""
    built = choose_mechanism(mechanism, request)
    found = most_releases(built, epsilon=within.epsilon, delta=within.delta, rate=rate)
    values = {
        "times": found.times,
        "mechanism": built.to_dict(),
        "target": within.to_dict(),
        "exact_delta": found.exact.to_dict(),
        "one_more": None if found.one_more is None else found.one_more.to_dict(),
        "one_more_is_proved_not_to_fit": found.is_proved,
    }
    tell(json, values, f"{built.name}: {found}.")


def read_file(path: Path) -> dict[str, Any]:
    """A JSON or TOML file."""
    text = _text(path)
    try:
        values = tomllib.loads(text) if path.suffix.lower() == ".toml" else json_format.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"file={path} is neither JSON nor TOML ({error}): see lessnoise plan --help.") from None
    if not isinstance(values, dict):
        raise InvalidInput(f"file={path} is not a JSON object or a TOML table: write one with a list named items.")
    return values


def read_plan(path: Path) -> ReleasePlan:
    """A plan that ``lessnoise plan --out`` wrote."""
    return ReleasePlan.from_json(_text(path))


def read_items(path: Path, target: Guarantee) -> list[Planned]:
    """The items of a schedule file."""
    return read_schedule(read_file(path), target)


def target_of(epsilon: float | None, delta: float | None, neighbours: str) -> Guarantee:
    """What all releases together may cost."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value is None:
            raise InvalidInput(f"{name}=None: pass --{name}, the {name} that all releases together may cost.")
    assert epsilon is not None
    assert delta is not None
    return Guarantee(epsilon, delta, Neighbours.of(neighbours))


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidInput(f"file={path} has more than {_MOST_BYTES} bytes: pass a schedule or a plan.")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"file={path} is not a text file: pass a JSON or TOML file.") from None


__all__ = ["BEST", "plan_many", "read_items", "read_plan", "target_of", "tell_how_often"]
