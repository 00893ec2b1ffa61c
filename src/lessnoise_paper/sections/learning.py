"""Words of case study III: figures 7 and 8, every line of a run, and attacks on one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise_paper.model import Fact, Picture, Words
from lessnoise_paper.sections.common import chip, listed, percent, rows_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise_paper.model import Numbers, Settings

_TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
_PUBLISHED = "r1smg-published"
_DELTA = "1e-5"
PAPER = {
    "mnist": "it reaches high training and testing accuracy in just a few epochs",
    "cifar10": "it reaches more than 80% training accuracy in much fewer epochs than DP-SGD",
}
"""Section 7.3; the epochs that it reports are with the study."""


def figure_7(numbers: Numbers) -> Words:
    """MNIST."""
    return _figure(numbers, "mnist")


def figure_8(numbers: Numbers) -> Words:
    """CIFAR-10."""
    return _figure(numbers, "cifar10")


def lines(numbers: Numbers) -> Words:
    """Every line of every result there is."""
    rows = numbers["rows"]
    failing = [row for row in rows if row["claimed_epsilon"] is not None and _verdict(numbers, row) == "fails"]
    made = "; ".join(
        f"{name}: {run.get('device', 'unknown device')}, {run.get('date', 'no date')}, {run.get('command', '')}"
        for name, run in numbers["runs"].items()
    )
    shown = [name for name in _TITLES if any(row["data"] == name and row["method"] != "strong" for row in rows)]
    return Words(
        setting=f"Runs: {made}." if made else "There are no results yet: train with --rerun.",
        paper="".join(_checkpoints(numbers, data) for data in _TITLES).strip(),
        ours=" ".join(_arrival(one, numbers) for one in numbers["first_epochs_at_95"]) or f"{len(rows)} lines.",
        privacy="Under exact, the exact privacy of each line over all its steps, with sampling; delta is 1e-5.",
        fails=bool(failing),
        shows="Beside every accuracy stands what the line really guarantees over all steps.",
        pictures=tuple(
            Picture(
                f"learning-{data}.svg",
                f"Accuracy against epochs on {_TITLES[data]}, at claimed epsilons "
                + listed(sorted({f"{row['claimed_epsilon']:g}" for row in rows if _private(row, data)})),
                "Accuracy after each epoch: mean over seeds, and a band from the least to the greatest.",
            )
            for data in shown
        ),
        tables=(_table(rows, numbers, with_data=True),),
    )


def _private(row: Numbers, data: str) -> bool:
    return bool(row["data"] == data and row["claimed_epsilon"] is not None)


def _arrival(one: Numbers, numbers: Numbers) -> str:
    """When a line reaches 95%, ours and the paper's."""
    ours = "never" if one["mean_curve"] is None else f"in epoch {one['mean_curve']}"
    return (
        f"{numbers['names'][one['method']]}, {_TITLES[one['data']]} at epsilon = {one['claimed_epsilon']:g}: "
        f"95% test accuracy {ours}; the paper says about {one['paper']}."
    )


def membership(numbers: Numbers) -> Words:
    """Attacks on one step, which guess whether a record was in the batch."""
    found = numbers["membership"]
    published = next(row for row in found if row["method"] == _PUBLISHED)
    gaussian = next(row for row in found if row["method"] != _PUBLISHED)
    proved = f"{text.at_least(100.0 * published['right_guesses_proved'], 3)}%"
    head = ("Step of", "Training's claimed ε", "Right guesses, proved ≥", "The claim allows ≤", "No attack exceeds")
    lines = [
        (
            numbers["names"][row["method"]],
            None,
            (
                "" if row["training_claimed_epsilon"] is None else text.number(row["training_claimed_epsilon"], 5),
                f"{text.at_least(100.0 * row['right_guesses_proved'], 4)}%",
                "" if row["right_guesses_claimed"] is None else _most(row["right_guesses_claimed"]),
                _most(row["right_guesses_limit"]),
            ),
        )
        for row in found
    ]
    return Words(
        setting=(
            "Not in the paper: one step of a training. The attacker knows the record and all others, sees the noisy "
            f"sum, and guesses whether the record was in the batch ({percent(published['audit']['confidence'])} "
            "confidence)."
        ),
        paper="",
        ours=(
            f"Of one step of published R1SMG an attack guesses at least {proved} right, where the claim of the step "
            f"allows {_most(published['right_guesses_claimed'])}."
        ),
        privacy=(
            f"By the exact delta at epsilon = 0 no attack can exceed {_most(gaussian['right_guesses_limit'])} right "
            f"guesses of DP-SGD's step, and {_most(published['right_guesses_limit'])} of R1SMG's."
        ),
        fails=True,
        shows="Where the noise is short along the record's gradient, the two cases separate, and the record is seen.",
        pictures=(
            Picture(
                "learning-membership.svg",
                "Where the noisy sum of one step lies along the record's gradient: R1SMG as published separates the "
                f"two cases, {proved} of the guesses are proved right.",
                "One step, with and without a record, along that record's gradient; above each panel the share of "
                f"right guesses that is proved and that is possible. R1SMG as published: at least {proved} proved.",
            ),
        ),
        tables=(rows_table(head, lines, "Right guesses"),),
    )


def _most(share: float) -> str:
    return f"{text.at_most(100.0 * share, 3)}%"


def introduce(settings: Settings, found: Mapping[str, Numbers | None]) -> tuple[str, str]:
    """The first paragraphs of case study III."""
    lede = (
        "The R1SMG paper trains two networks with its noise on the gradients, and reports better models than DP-SGD at "
        "the same privacy. We train them again with its settings. Beside every accuracy stands what the line really "
        "guarantees over all steps."
    )
    return lede, "These runs are seeded, so that they can be repeated. Seeded releases are not private."


def _figure(numbers: Numbers, data: str) -> Words:
    rows = [row for row in numbers["rows"] if row["data"] == data]
    case, origin = numbers["cases"][data], numbers["runs"][data]
    budgets = sorted({row["claimed_epsilon"] for row in rows if row["method"] == _PUBLISHED})
    published = [_row(rows, _PUBLISHED, epsilon) for epsilon in budgets]
    plan = _plan(numbers, data, _PUBLISHED, budgets[0])
    delta = text.at_least(plan["delta"][0], 6)
    claims = " and ".join(f"({text.number(epsilon, 5)}, {_DELTA})" for epsilon in budgets)
    return Words(
        setting=(
            f"{_TITLES[data]}, the tutorial's network with {case['parameters']:,} parameters, batches of "
            f"{case['batch']}, {case['epochs']} epochs, {case['records']:,} records, claimed {claims}. Full runs of "
            f"{origin['seeds']} seeds on an {origin['device']} ({origin['date']}); their results come with the "
            "library."
        ),
        paper=f"R1SMG outperforms DP-SGD: {PAPER[data]}.{_checkpoints(numbers, data)}",
        ours="; ".join(_accuracy_words(rows, epsilon, numbers) for epsilon in budgets) + ".",
        privacy=" ".join(_privacy(numbers, rows, epsilon) for epsilon in budgets)
        + " These are exact compositions of all steps, with sampling.",
        shows=(
            f"Over a whole training the published R1SMG has a delta above {delta}: it gives no privacy at all. It "
            f"hardly differs from DP-SGD in accuracy, {_gap(rows, budgets)}, although its noise is far shorter: at "
            "these settings noise is not what limits either of them. With noise that keeps the claim R1SMG learns "
            f"nothing. {_failing_gaussian(numbers, rows, budgets)}{_strong(rows)}"
        ).strip(),
        fails=True,
        pictures=(
            Picture(
                f"learning-{data}.svg",
                "Accuracy against epochs at the two budgets. R1SMG as published ends at "
                f"{percent(published[0]['test_accuracy'])} with an exact delta above {delta}.",
                "Accuracy on the test set (above) and on training records (below): means, and bands from the least "
                f"to the greatest of all seeds. R1SMG as published has an exact delta above {delta} where {_DELTA} is "
                "claimed; the table has the exact privacy of every line.",
            ),
        ),
        tables=(_table(rows, numbers),),
        facts=tuple(
            Fact(
                f"R1SMG, training on {_TITLES[data]}",
                f"({text.number(epsilon, 5)}, {_DELTA})",
                f"delta above {text.at_least(_plan(numbers, data, _PUBLISHED, epsilon)['delta'][0], 6)}",
                "fails",
            )
            for epsilon in budgets
        ),
        headline=(
            f"Training {_TITLES[data]} with R1SMG as published is claimed to be ({text.number(budgets[0], 5)}, "
            f"{_DELTA})-private; its exact delta is above {delta}. Calibrated exactly it ends at "
            f"{percent(_row(rows, 'r1smg', budgets[0])['test_accuracy'])} accuracy, exact DP-SGD at "
            f"{percent(_row(rows, 'dpsgd-exact', budgets[0])['test_accuracy'])}."
        )
        if data == "mnist"
        else "",
    )


def _plan(numbers: Numbers, data: str, method: str, epsilon: float) -> Numbers:
    plan: Numbers = numbers["plans"][f"{data} {method} {epsilon:g}"]
    return plan


def _row(rows: list[Numbers], method: str, epsilon: float) -> Numbers:
    return next(row for row in rows if row["method"] == method and row["claimed_epsilon"] == epsilon)


def _accuracy_words(rows: list[Numbers], epsilon: float, numbers: Numbers) -> str:
    parts = [
        f"{numbers['names'][row['method']]} {percent(row['test_accuracy'])}"
        + (f" (95% from epoch {row['first_epoch_at_95']})" if row["first_epoch_at_95"] else "")
        for row in rows
        if row["claimed_epsilon"] in (None, epsilon)
    ]
    return f"Test accuracy at claimed ε = {text.number(epsilon, 5)}: {', '.join(parts)}"


def _gap(rows: list[Numbers], budgets: list[float]) -> str:
    """R1SMG as published beside DP-SGD, at each budget."""
    pairs = [(_row(rows, _PUBLISHED, epsilon), _row(rows, "dpsgd", epsilon)) for epsilon in budgets]
    return " and ".join(
        f"{percent(ours['test_accuracy'])} against {percent(theirs['test_accuracy'])} at claimed ε = "
        f"{text.number(ours['claimed_epsilon'], 5)}"
        for ours, theirs in pairs
    )


def _failing_gaussian(numbers: Numbers, rows: list[Numbers], budgets: list[float]) -> str:
    """The paper's DP-SGD where its stated epsilon does not follow from its noise."""
    found = [_row(rows, "dpsgd", epsilon) for epsilon in budgets]
    failing = [row for row in found if _verdict(numbers, row) == "fails"]
    if not failing:
        return ""
    pairs = listed([f"{row['guarantee']} at claimed ε = {text.number(row['claimed_epsilon'], 5)}" for row in failing])
    return f"The paper's noise for DP-SGD is too small for its claim too: it gives {pairs}. "


def _strong(rows: list[Numbers]) -> str:
    """What the strong recipe is."""
    found = next((row for row in rows if row["method"] == "strong"), None)
    if found is None:
        return ""
    return (
        "The strong recipe shows what the smaller budget allows at exact privacy: a linear classifier on fixed wavelet "
        f"features reaches {percent(found['test_accuracy'])}. "
    )


def _privacy(numbers: Numbers, rows: list[Numbers], epsilon: float) -> str:
    """The exact guarantees of all lines at one claimed budget."""
    parts = [
        f"{numbers['names'][row['method']]} {row['guarantee']}" for row in rows if row["claimed_epsilon"] == epsilon
    ]
    return f"Claimed ({text.number(epsilon, 5)}, {_DELTA}): {'; '.join(parts)}."


def _checkpoints(numbers: Numbers, data: str) -> str:
    """The epochs to 95% that the paper reports."""
    rows = [row for row in numbers["first_epochs_at_95"] if row["data"] == data]
    parts = [f"about {row['paper']} for {numbers['names'][row['method']]}" for row in rows]
    if not parts:
        return ""
    return (
        f" Epochs to 95% test accuracy at claimed ε = {text.number(rows[0]['claimed_epsilon'], 5)}: {', '.join(parts)}."
    )


def _table(rows: list[Numbers], numbers: Numbers, *, with_data: bool = False) -> str:
    head = ("Line", "Claimed ε", "Exact", "Test accuracy", "Over seeds", "Training accuracy", "95% from epoch", "Claim")
    lines = []
    for row in rows:
        low, high = row["test_accuracy_over_seeds"]
        epsilon = row["claimed_epsilon"]
        cells = (
            "" if epsilon is None else text.number(epsilon, 5),
            row["guarantee"],
            f"{row['test_accuracy']:.2%}",
            f"{low:.2%} to {high:.2%}",
            f"{row['train_accuracy']:.2%}",
            "" if row["first_epoch_at_95"] is None else str(row["first_epoch_at_95"]),
            "" if epsilon is None else chip(_verdict(numbers, row)),
        )
        name = numbers["names"][row["method"]]
        lines.append((f"{name}, {_TITLES[row['data']]}" if with_data else name, None, cells))
    return rows_table(head, lines, "Accuracy and exact privacy of every line")


def _verdict(numbers: Numbers, row: Numbers) -> str:
    """Whether the exact delta at the claimed epsilon is at most 1e-5."""
    low, high = _plan(numbers, row["data"], row["method"], row["claimed_epsilon"])["delta"]
    return "holds" if high <= float(_DELTA) else "fails" if low > float(_DELTA) else "not proved"
