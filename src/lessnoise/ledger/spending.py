"""How a ledger's budget was spent over time: computed, in lines of text, and drawn."""

from __future__ import annotations

import datetime
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from lessnoise.errors import InvalidInput
from lessnoise.ledger import total
from lessnoise.text import up

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from lessnoise.composition import Composition
    from lessnoise.guarantees import Guarantee
    from lessnoise.ledger.ledger import Ledger
    from lessnoise.ledger.record import Record

FORMATS = (".png", ".svg", ".pdf")
_WIDTH = 48
_INK, _SOFT, _GRID, _SPENT, _LIMIT = "#222222", "#5F5F66", "#DDDDDD", "#0072B2", "#D55E00"


@dataclass(frozen=True)
class Moment:
    """The total after a number of records: epsilon at the ledger's delta, rounded up."""

    time: float
    records: int
    epsilon: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def history(ledger: Ledger, points: int = 16, records: Sequence[Record] | None = None) -> list[Moment]:
    """The exact total at up to ``points`` moments, evenly spread over the records; the last one is now."""
    every = ledger.records() if records is None else records
    if not every:
        return []
    marks = sorted({round((k + 1) * len(every) / points) for k in range(points)} - {0})
    totals: total.Totals = {}
    known: dict[Composition, int] = {}
    moments = []
    for number, record in enumerate(every, start=1):
        counts = totals.setdefault(record.partition or total.EVERYWHERE, {})
        key = known.setdefault(record.composition, len(known))
        counts[key] = counts.get(key, 0) + 1
        if number in marks:
            compositions = list(known)
            together = total.touched(ledger.budget.neighbours)
            candidates = total.worst_compositions(totals, together, compositions.__getitem__)
            distance = total.machine_distance(totals, together, compositions.__getitem__)
            spent = total.epsilon_spent(candidates, ledger.budget.delta, distance)
            moments.append(Moment(record.time, number, spent.upper))
    return moments


def spending_lines(moments: Sequence[Moment], budget: Guarantee) -> list[str]:
    """One bar a moment, as long as the share of the budget's epsilon that was spent by then."""
    lines = []
    for moment in moments:
        share = min(moment.epsilon / budget.epsilon, 1.0)
        filled = round(share * _WIDTH)
        bar = "█" * filled + "░" * (_WIDTH - filled)
        when = datetime.datetime.fromtimestamp(moment.time).strftime("%Y-%m-%d %H:%M:%S")
        lines.append(f"{when}  {moment.records:>7} releases  {bar}  {up(moment.epsilon, 4)} of {up(budget.epsilon, 4)}")
    return lines


def _releases(moments: Sequence[Moment]) -> str:
    if not moments:
        return "releases"
    first, last = (
        datetime.datetime.fromtimestamp(moment.time).date().isoformat() for moment in (moments[0], moments[-1])
    )
    return f"releases, {first}" + ("" if first == last else f" to {last}")


def check_picture_format(path: Path) -> None:
    """Refuse early what cannot be drawn."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidInput(f"plot={path} has no known ending: use one of {', '.join(FORMATS)}.")


def draw_spending(moments: Sequence[Moment], budget: Guarantee, file: BinaryIO, ending: str) -> None:
    """The picture as a file."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "lessnoise", "font.size": 11}):
        figure = Figure(figsize=(8.0, 4.2), layout="constrained")
        draw_spending_on(figure.subplots(), moments, budget)
        figure.savefig(file, format=ending.lstrip("."), dpi=150, metadata={"Date": None} if ending == ".svg" else None)


def draw_spending_on(axes: Axes, moments: Sequence[Moment], budget: Guarantee) -> None:
    """Steps of epsilon over the releases, below the line of the budget."""
    counts = [0, *(moment.records for moment in moments)]
    epsilons = [0.0, *(moment.epsilon for moment in moments)]
    axes.fill_between(counts, epsilons, color=_SPENT, alpha=0.15, linewidth=0)
    axes.plot(counts, epsilons, color=_SPENT, linewidth=2.0)
    axes.axhline(budget.epsilon, color=_LIMIT, linewidth=1.5, linestyle=(0, (6, 2)))
    axes.annotate("budget", (0, budget.epsilon), xytext=(4, -4), textcoords="offset points", color=_LIMIT, va="top")
    if moments:
        last = f"{up(moments[-1].epsilon, 4)} spent"
        axes.annotate(last, (counts[-1], epsilons[-1]), xytext=(-6, -34), textcoords="offset points", color=_SPENT,
                      ha="right")  # fmt: skip
    axes.set_xlim(0, max(counts[-1], 1))
    axes.locator_params(axis="x", integer=True)
    axes.set_ylim(0, 1.08 * max(budget.epsilon, epsilons[-1]))
    axes.set_xlabel(_releases(moments), color=_SOFT)
    axes.set_ylabel(f"exact ε at δ = {up(budget.delta)}", color=_SOFT)
    axes.grid(color=_GRID, linewidth=0.6)
    axes.tick_params(colors=_INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
