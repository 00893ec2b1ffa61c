"""``lessnoise plan``: what every mechanism would cost for one target; or what noise each of many releases needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lessnoise.cli.options import AsJson, Force, MechanismOrBest, takes_request
from lessnoise.cli.output import console, new_table, print_json
from lessnoise.cli.schedule import plan_many, read_items, target_of, tell_how_often
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Guarantee
from lessnoise.harmless import shown
from lessnoise.mechanism import BEST, LEAST_NOISE, Request, build_all
from lessnoise.text import up

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.mechanism import Mechanism

QUANTILES = (0.05, 0.5, 0.95)


@takes_request(optional=True)
def plan(
    request: Request | None,
    times: Annotated[
        int | None, typer.Option(help="Plan this many releases. Epsilon and delta are for all of them together.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="With --times or --how-often: each release sees a random (Poisson) sample with this rate."),
    ] = None,
    mechanism: MechanismOrBest = BEST,
    schedule: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plan the releases listed in a .json or .toml file, with --within."),
    ] = None,
    how_often: Annotated[
        bool, typer.Option("--how-often", help="Say how many such releases fit into the budget of --within.")
    ] = False,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON,DELTA",
            help="With --schedule or --how-often: epsilon and delta of all releases together, as in 1,1e-6.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Write the plan to this file, so that a ledger can reserve it."),
    ] = None,
    force: Force = False,
    optimality: Annotated[
        bool, typer.Option("--optimality", help="Also prove how far least-noise is from the least possible loss.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Compare the noise, the loss and the exact guarantee of all mechanisms at one epsilon and delta.

    The loss is the squared error, summed over the array. Mechanisms that keep the guarantee come first, those with the
    least expected loss on top. A mechanism that does not keep what is claimed of it comes below them, with its exact
    delta. With --times, --schedule or --how-often the command plans many releases instead: it finds the kind of noise
    and the least scale for which all releases together keep the guarantee.

    Example: [bold]lessnoise plan --shape 89x89 --changes counts --epsilon 0.5 --delta 1e-7[/bold]
    """
    if schedule is not None:
        _check_alone(schedule, request, times)
        _refuse(
            "with --schedule, each item says its own", mechanism=mechanism, how_often=how_often, optimality=optimality
        )
        target = _within(within, "add/remove")
        plan_many(read_items(schedule, target), target, times=None, rate=rate, mechanism=mechanism, out=out,
                  force=force, json=json)  # fmt: skip
        return
    if request is None:
        raise InvalidInput(
            "--shape is missing: lessnoise plan needs --shape, --sensitivity (or --changes), --epsilon and --delta, or "
            "--schedule; see 'lessnoise plan --help'."
        )
    if how_often:
        _refuse("with --how-often there is no plan to make", times=times, out=out, optimality=optimality)
        tell_how_often(request, _within(within, request.neighbours.value), rate, mechanism, json)
        return
    if times is not None:
        _refuse("with --times the target is --epsilon and --delta", within=within, optimality=optimality)
        target = target_of(request.epsilon, request.delta, request.neighbours.value)
        plan_many(request, target, times=times, rate=rate, mechanism=mechanism, out=out, force=force, json=json)
        return
    for name, value in (("rate", rate), ("within", within), ("out", out), ("mechanism", mechanism)):
        if value not in (None, BEST):
            raise InvalidInput(f"{name}={value} is for plans of many releases: add --times, or leave it out.")
    mechanisms = build_all(request)
    ratio = next(m for m in mechanisms if m.name == LEAST_NOISE).optimality if optimality else None
    if json:
        asked = {"epsilon": request.epsilon, "delta": request.delta, "neighbours": request.neighbours.value}
        setting = {"target": asked, "shape": list(request.shape), "sensitivity": request.sensitivity}
        if request.changes is not None:
            setting["changes"] = request.changes.to_dict()
        rows = [describe(mechanism) for mechanism in mechanisms]
        print_json({**setting, "mechanisms": rows, **({} if ratio is None else {"optimality": ratio})})
        return
    _print_table(mechanisms, request)
    if ratio is not None:
        console().print(
            f"{LEAST_NOISE}: no noise that is drawn independently of the data can keep this target with less than "
            f"1/{up(ratio, 5)} of its loss (proved)."
        )


def _check_alone(schedule: Path, request: Request | None, times: int | None) -> None:
    if request is not None or times is not None:
        raise InvalidInput(f"schedule={schedule} says what is released and how often: leave --times and --shape out.")


def _refuse(why: str, **given: object) -> None:
    """What would be ignored."""
    for name, value in given.items():
        if value not in (None, False, BEST):
            option = name.replace("_", "-")
            raise InvalidInput(f"{name}={value} is not used here ({why}): leave out --{option}.")


def _within(text: str | None, neighbours: str) -> Guarantee:
    if text is None:
        raise InvalidInput("within=None: pass --within EPSILON,DELTA, what all releases together may cost.")
    try:
        epsilon, delta = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput(f"within={shown(text)} is not understood: write epsilon and delta as in 1,1e-6.") from None
    return target_of(epsilon, delta, neighbours)


def describe(mechanism: Mechanism) -> dict[str, Any]:
    """One row of the plan, as plain values."""
    verdict = mechanism.check()
    return {
        "name": mechanism.name,
        "standard_deviation": _known(lambda: mechanism.standard_deviation),
        "noise": mechanism.law.to_dict(),
        "expected_loss": _known(lambda: mechanism.expected_loss),
        "loss_quantiles": {str(q): value for q, value in zip(QUANTILES, _quantiles(mechanism), strict=True)},
        "claim": None if mechanism.claim is None else mechanism.claim.to_dict(),
        "exact_delta": verdict.exact.to_dict(),
        "holds": verdict.holds,
        **({} if mechanism.design is None else {"design": mechanism.design.to_dict()}),
    }


def _known(compute: Callable[[], float]) -> float | None:
    """A number, or None where the noise depends on the data or the number is not computed."""
    try:
        return compute()
    except InvalidInput:
        return None


def _quantiles(mechanism: Mechanism) -> list[float | None]:
    return [_known(lambda q=q: mechanism.loss_quantile(q)) for q in QUANTILES]  # type: ignore[misc]


def _text(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _print_table(mechanisms: list[Mechanism], request: Request) -> None:
    numbers = ["noise sd per entry", "expected loss", *(f"loss, {q:.0%}" for q in QUANTILES), "exact delta ≤"]
    table = new_table("All mechanisms at this target, the least loss first", ["mechanism"], numbers, ["claim"])
    for mechanism in mechanisms:
        verdict, row = mechanism.check(), describe(mechanism)
        mark = "[green]holds[/green]" if verdict.holds else "[red]fails[/red]"
        table.add_row(
            mechanism.name if mechanism.design is None else f"{mechanism.name} ({mechanism.design.choice})",
            _text(row["standard_deviation"], 5),
            _text(row["expected_loss"], 5),
            *(_text(value, 4) for value in row["loss_quantiles"].values()),
            up(verdict.exact.upper, 4),
            f"{mark}: ({verdict.claimed.epsilon:g}, {verdict.claimed.delta:g})",
        )
    out = console()
    out.print(table)
    out.print(
        "The loss is the squared noise, summed over the array. Every delta is computed at the claimed epsilon and "
        "rounded up."
    )
    if any(mechanism.law.data_dependent for mechanism in mechanisms):
        out.print("Where a row has no loss, the noise depends on the data, or the loss is not computed.")
    if request.changes is not None:
        out.print(f"What one individual can change: {request.changes}.")
        return
    out.print(
        f"One individual can move the array by an l2 distance of at most {up(request.sensitivity)}, in any direction. "
        "Most questions allow less than that, and then need less noise: try --changes counts, or --changes corner:1 "
        "for sums of entries from 0 to 1."
    )
    if request.l1_sensitivity is None:
        out.print(
            "Laplace noise is for an l1 sensitivity of √M times the l2 sensitivity; if yours is less, say "
            "--l1-sensitivity."
        )
