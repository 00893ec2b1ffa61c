"""Words of case study III: figures 7 and 8, every line of a run, and attacks on one step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise_paper.sections.wording import Wording, chip, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise_paper.model import Numbers, Settings, Words

_TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
_PUBLISHED, _DELTA = "r1smg-published", 1e-5
_BOTH = ("published", "dpsgd")
_AHEAD = 0.01  # accuracy from which one line is called ahead of the other
PAPER = {
    "mnist": "our method achieves 95% accuracy on the testing dataset using 5 epochs, whereas DPSGD requires 14 epochs",
    "cifar10": "R1SMG-based DPSGD improve the training efficiency by achieving a higher training accuracy (e.g., >80%) "
    "in much fewer epochs compared with the original DPSGD",
}
"""Its words on the two trainings."""


def introduce(settings: Settings, found: Mapping[str, Numbers | None]) -> tuple[str, str]:
    """The first paragraphs of case study III."""
    say = Wording("learning", "introduce")
    return say("lede"), say("mark")


def figure_7(numbers: Numbers) -> Words:
    """MNIST."""
    return _figure(numbers, "mnist")


def figure_8(numbers: Numbers) -> Words:
    """CIFAR-10."""
    return _figure(numbers, "cifar10")


def lines(numbers: Numbers) -> Words:
    """Every line of every result there is."""
    rows = numbers["rows"]
    failing = any(row["claimed_epsilon"] is not None and _verdict(numbers, row) == "fails" for row in rows)
    made = "; ".join(
        f"{name}: {run.get('device', 'unknown device')}, {run.get('date', 'no date')}, {run.get('command', '')}"
        for name, run in numbers["runs"].items()
    )
    arrivals = [
        {
            **_named(one, numbers),
            "title": _TITLES[one["data"]],
            "when": "never" if one["mean_curve"] is None else f"in epoch {one['mean_curve']}",
        }
        for one in numbers["first_epochs_at_95"]
    ]
    say = Wording(
        "learning",
        "lines",
        made=f"Runs: {made}." if made else "There are no results yet: train with --rerun.",
        checkpoints=" ".join(_checkpoints(numbers, data) for data in _TITLES),
        arrivals=Wording("learning", "pieces").each("arrival", arrivals, " ") or f"{len(rows)} lines.",
    )
    shown = []
    for data in _TITLES:
        own = [row for row in rows if row["data"] == data]
        epsilons = sorted({f"{row['claimed_epsilon']:g}" for row in own if row["claimed_epsilon"] is not None})
        if any(row["method"] != "strong" for row in own):
            shown.append({"key": data, "title": _TITLES[data], "epsilons": listed(epsilons)})
    pictures = say.pictures("picture", shown, lambda data: f"learning-{data}.svg")
    return say.words(fails=failing, pictures=pictures, tables=[_table(rows, numbers, with_data=True)])


def membership(numbers: Numbers) -> Words:
    """Attacks on one step, which guess whether a record was in the batch."""
    found = [_named(row, numbers) for row in numbers["membership"]]
    published = next(row for row in found if row["method"] == _PUBLISHED)
    gaussian = next(row for row in found if row["method"] != _PUBLISHED)
    say = Wording("learning", "membership", published=published, gaussian=gaussian)
    return say.words(fails=True, tables=[say.table("table", found)])


def inside(numbers: Numbers) -> Words:
    """Training whose steps are inside the range of Remark 1."""
    rows = []
    for row in numbers["inside"]:
        long, short = row["gaussian_lengths"]
        rows.append({**row, "title": _TITLES[row["data"]], "gaussian_long": long, "gaussian_short": short})
    mnist, cifar10 = ([row for row in rows if row["data"] == data] for data in _TITLES)
    plain = Wording("learning", "inside")
    trained, tables = "", [plain.table("table", rows)]
    lines = [_named(row, numbers) for row in numbers["inside_trained"]]
    if lines:
        own = next(row for row in lines if row["method"] == "r1smg-inside")
        wide, narrow = (row for row in lines if row["method"] == "dpsgd")
        say = Wording("learning", "inside", epochs=own["epochs"], seeds=own["seeds"])
        tables.append(say.table("runs", lines))
        trained = say("trained", inside=own, wide=wide, narrow=narrow, made=_made(numbers["runs"]["inside"]))
    say = Wording("learning", "inside", first=mnist[0], last=mnist[-1], second=cifar10[0], trained=trained)
    return say.words(fails=True, tables=tables, facts=plain.facts("fact", [mnist[0], cifar10[0]]))


def rates(numbers: Numbers) -> Words:
    """Other learning rates, clipping norms and optimizers."""
    if not numbers["compared"]:
        return Wording("learning", "no-rates").words()
    ways = [
        {**way, "name": numbers["optimizers"][way["optimizer"]], **{one: _arrival(way, one) for one in _BOTH}}
        for way in numbers["compared"]
    ]
    epochs, epsilons = ways[0]["epochs"], sorted({way["claimed_epsilon"] for way in ways}, reverse=True)
    at = {epsilon: [way for way in ways if way["claimed_epsilon"] == epsilon] for epsilon in epsilons}
    say = Wording("learning", "rates", epochs=epochs)
    plain_sgd = [way for way in ways if (way["optimizer"], way["clip_norm"]) == ("sgd", 1.0)]
    widest = [max(own, key=lambda way: abs(way["gap"])) for own in at.values()]
    ahead = sum(way["gap"] > _AHEAD for way in ways)
    reported = {"published": numbers["paper_epochs"][_PUBLISHED], "dpsgd": numbers["paper_epochs"]["dpsgd"]}
    count = sum(way["as_the_paper"] is True for way in ways)
    full = Wording(
        "learning",
        "rates",
        epochs=epochs,
        said=PAPER["mnist"],
        study=numbers["runs"]["mnist"],
        made=_made(numbers["runs"]["sweep"]),
        ways=say.each("arrived", plain_sgd, " "),
        gaps=say.each("gap", widest, " "),
        guarantees=say.each("guarantee", [own[0] for own in at.values()]),
        ahead=say("ahead", count=ahead, ways=len(ways)) if ahead else "",
        matching=say("some" if count else "none", count=count, **reported),
        worst=ways[0]["published"]["guarantee"],
    )
    shown = full.pictures("learning-sweep.svg", [{"count": len(ways), **reported}])
    tables = [say.table("table", ways)]
    return full.words(fails=True, pictures=shown, tables=tables, without=("learning-sweep.svg",))


def _arrival(way: Numbers, method: str) -> Numbers:
    """One method of one way, with the epoch of 95% in words."""
    found: Numbers = way[method]
    there = found["arrival"]
    return {**found, "when": f"in epoch {there}" if there else f"not within {way['trained']} epochs"}


def _made(run: Numbers) -> str:
    """Where, when and with which command."""
    return Wording("learning", "pieces")("made", **run)


def _figure(numbers: Numbers, data: str) -> Words:
    rows = [_named(row, numbers) for row in numbers["rows"] if row["data"] == data]
    epsilons = sorted({row["claimed_epsilon"] for row in rows if row["method"] == _PUBLISHED})
    budgets = [_budget(rows, epsilon, numbers, data) for epsilon in epsilons]
    strong = next((row for row in rows if row["method"] == "strong"), None)
    plain = Wording("learning", "figure")
    weak = [budget["dpsgd"] for budget in budgets if _verdict(numbers, budget["dpsgd"]) == "fails"]
    pairs = [f"{row['guarantee']} at claimed ε = {text.number(row['claimed_epsilon'], 5)}" for row in weak]
    say = Wording(
        "learning",
        "figure",
        data=data,
        title=_TITLES[data],
        case=numbers["cases"][data],
        origin=numbers["runs"][data],
        claims=" and ".join(f"({text.number(epsilon, 5)}, 1e-5)" for epsilon in epsilons),
        said=PAPER[data],
        rate=numbers["runs"][data]["learning_rate"],
        limit=1.0 / numbers["cases"][data]["parameters"],
        smallest=epsilons[0],
        accuracies=plain.each("accuracy", [{**one, "lines": one["accuracies"]} for one in budgets]),
        privacy=plain.each("guarantees", [{**one, "lines": one["guarantees"]} for one in budgets], " "),
        delta=budgets[0]["delta"],
        published=budgets[0]["published"],
        gaps=plain.each("gap", budgets, " and "),
        failing=plain("failing", pairs=listed(pairs)) if weak else "",
        training=plain("training", **numbers["training_accuracy"][data]) if data == "cifar10" else "",
        strong="" if strong is None else plain("strong", **strong),
    )
    steps = say.table("budgets", [one for one in numbers["step_budgets"] if one["data"] == data])
    words = say.words(fails=True, tables=[steps, _table(rows, numbers)], facts=say.facts("fact", budgets))
    exact = {name: _row(rows, method, epsilons[0]) for name, method in (("r1smg", "r1smg"), ("dpsgd", "dpsgd-exact"))}
    return replace(words, headline=say(f"{data}-headline", epsilon=epsilons[0], **exact))


def _budget(rows: list[Numbers], epsilon: float, numbers: Numbers, data: str) -> Numbers:
    """All lines at one claimed epsilon."""
    say = Wording("learning", "figure")
    shown = [
        {**row, "arrival": f" (95% from epoch {row['first_epoch_at_95']})" if row["first_epoch_at_95"] else ""}
        for row in rows
        if row["claimed_epsilon"] in (None, epsilon)
    ]
    return {
        "epsilon": epsilon,
        "delta": _plan(numbers, data, _PUBLISHED, epsilon)["delta"][0],
        "published": _row(rows, _PUBLISHED, epsilon),
        "dpsgd": _row(rows, "dpsgd", epsilon),
        "accuracies": say.each("line", shown, ", "),
        "guarantees": say.each("guarantee", [row for row in shown if row["claimed_epsilon"] == epsilon]),
    }


def _named(row: Numbers, numbers: Numbers) -> Numbers:
    return {**row, "name": numbers["names"][row["method"]]}


def _plan(numbers: Numbers, data: str, method: str, epsilon: float) -> Numbers:
    plan: Numbers = numbers["plans"][f"{data} {method} {epsilon:g}"]
    return plan


def _row(rows: list[Numbers], method: str, epsilon: float) -> Numbers:
    return next(row for row in rows if row["method"] == method and row["claimed_epsilon"] == epsilon)


def _checkpoints(numbers: Numbers, data: str) -> str:
    """The epochs to 95% that the paper reports."""
    rows = [row for row in numbers["first_epochs_at_95"] if row["data"] == data]
    parts = ", ".join(f"{row['paper']} for {numbers['names'][row['method']]}" for row in rows)
    return Wording("learning", "pieces", epsilon=rows[0]["claimed_epsilon"], parts=parts)("checkpoints") if rows else ""


def _table(rows: list[Numbers], numbers: Numbers, *, with_data: bool = False) -> str:
    lines = []
    for row in rows:
        low, high = row["test_accuracy_over_seeds"]
        shown = numbers["names"][row["method"]] + (f", {_TITLES[row['data']]}" if with_data else "")
        claim = "" if row["claimed_epsilon"] is None else chip(_verdict(numbers, row))
        lines.append({**row, "shown": shown, "low": low, "high": high, "claim": claim})
    return Wording("learning", "pieces").table("table", lines)


def _verdict(numbers: Numbers, row: Numbers) -> str:
    """Whether the exact delta at the claimed epsilon is at most 1e-5."""
    low, high = _plan(numbers, row["data"], row["method"], row["claimed_epsilon"])["delta"]
    return "holds" if high <= _DELTA else "fails" if low > _DELTA else "not proved"
