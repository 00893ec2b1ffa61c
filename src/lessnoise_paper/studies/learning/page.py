"""Case study III as files: one self-contained page, the pictures by themselves, and the numbers."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from lessnoise import __version__
from lessnoise.report.canvas import svg
from lessnoise.report.html import document, figure, prose, table
from lessnoise.rounding import down, up
from lessnoise_paper.demo.page import PAPER
from lessnoise_paper.studies.learning import pictures, results, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lessnoise_paper.studies.learning.membership import Membership
    from lessnoise_paper.studies.learning.results import Row

    Reader = Callable[[str], dict[str, Any] | None]

NAMES = ("index.html", "numbers.json", "mnist.svg", "cifar10.svg", "membership.svg")
_CAPTIONS = {
    "mnist": "Accuracy after each epoch: mean over seeds, and a band from the least to the greatest. The inner panel "
    "enlarges the upper part; its line is at 95%.",
    "cifar10": "Accuracy after each epoch: mean over seeds, and a band from the least to the greatest.",
    "membership": "Noisy sums of one step, with and without one record. The attacker knows the record and all others.",
}


def numbers(read_result: Reader = results.read, found: Sequence[Membership] = ()) -> dict[str, Any]:
    """All that the study has to say, as plain values."""
    stored = {name: read_result(name) for name in (*settings.CASES, "strong")}
    return {
        "rows": [row.to_dict() for row in results.table(read_result)],
        "first_epochs_at_95": results.checkpoints(read_result),
        "runs": {
            name: {key: value for key, value in result.items() if key != "runs"}
            for name, result in stored.items()
            if result is not None
        },
        "membership": [one.to_dict() for one in found],
    }


def learning_files(read_result: Reader = results.read, found: Sequence[Membership] = ()) -> dict[str, bytes]:
    """The files of the study by name; pictures without results are left out."""
    drawn = {name: svg(picture) for name, picture in pictures.figures(read_result, found).items()}
    said = numbers(read_result, found)
    return {
        "index.html": page_html(said, results.table(read_result), drawn, found).encode(),
        "numbers.json": (json.dumps(said, indent=1) + "\n").encode(),
        **{f"{name}.svg": picture for name, picture in drawn.items()},
    }


def page_html(
    said: dict[str, Any], rows: Sequence[Row], drawn: dict[str, bytes], found: Sequence[Membership] = ()
) -> str:
    """The whole page as text."""
    title = "Private learning: as published, and on equal terms"
    words = (
        "The R1SMG paper trains two networks with its noise on the gradients, and reports better models than DP-SGD at "
        "the same privacy. We train them again with its settings. Beside every accuracy stands what the line really "
        "guarantees over all steps."
    )
    cards = "".join(
        figure(drawn[name], pictures.TITLES[name], _CAPTIONS[name]) for name in settings.CASES if name in drawn
    )
    parts = [
        f'<header>\n<h1>{escape(title)}</h1>\n<p class="lede">{prose(words)}</p>\n</header>\n<main>',
        f"<section>\n<h2>Accuracy and exact guarantees</h2>\n{_table(rows)}{_checkpoint_words(said)}{cards}</section>",
        _membership(found, drawn) if found else "",
        f"</main>\n<footer>\n<p>{escape(_origin(said))}</p>\n</footer>",
    ]
    return document(title, "\n".join(parts))


def _table(rows: Sequence[Row]) -> str:
    head = ("Line", "Data", "Claimed epsilon", "Exact guarantee", "Test accuracy", "Over seeds", "Training accuracy")
    lines = []
    for row in rows:
        dot = f'<span class="dot" style="background:{pictures.METHOD_COLOURS[row.method]}"></span>'
        cells = (
            pictures.TITLES[row.data],
            "" if row.epsilon is None else f"{row.epsilon:g}",
            escape(row.guarantee),
            f"{row.accuracy:.2%}",
            f"{row.spread[0]:.2%} to {row.spread[1]:.2%}",
            f"{row.train_accuracy:.2%}",
        )
        name = f'<th scope="row">{dot}{escape(results.NAMES[row.method])}</th>'
        lines.append(f"<tr>{name}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return table(head, lines, "Accuracy after the last epoch")


def _checkpoint_words(said: dict[str, Any]) -> str:
    lines = []
    for one in said["first_epochs_at_95"]:
        ours = "never" if one["mean_curve"] is None else f"in epoch {one['mean_curve']}"
        lines.append(
            f"{results.NAMES[one['method']]}, {pictures.TITLES[one['data']]} at epsilon = {one['claimed_epsilon']:g}: "
            f"95% test accuracy {ours}; the paper says about {one['paper']}."
        )
    return "".join(f"<p>{prose(line)}</p>\n" for line in lines)


def _membership(found: Sequence[Membership], drawn: dict[str, bytes]) -> str:
    lines = "".join(f"<p>{prose(membership_words(one))}</p>\n" for one in found)
    picture = figure(drawn["membership"], "Noisy sums with and without a record", _CAPTIONS["membership"])
    return f"<section>\n<h2>Was the record in the batch?</h2>\n{lines}{picture}</section>"


def membership_words(one: Membership) -> str:
    """What the attack found, in one sentence."""
    budget = "" if one.epsilon is None else f" for epsilon = {one.epsilon:g}"
    return (
        f"One step of {results.NAMES[one.method]}{budget}: the attack guesses right at least "
        f"{down(100 * one.right_proved, 4)}% of the time, with 99.9% confidence; no attack can exceed "
        f"{up(100 * one.right_limit, 4)}%."
    )


def _origin(said: dict[str, Any]) -> str:
    runs = "; ".join(
        f"{name}: {run.get('device', 'unknown device')}, {run.get('date', 'no date')}, {run.get('command', '')}"
        for name, run in said["runs"].items()
    )
    return f"Made by lessnoise {__version__} from stored runs ({runs}). The study follows {PAPER}."
