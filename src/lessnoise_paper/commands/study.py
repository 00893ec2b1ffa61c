"""``lessnoise study``: the case studies, each with one command."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lessnoise import text, validation
from lessnoise.cli import AsJson, Force, console
from lessnoise.errors import InvalidInput
from lessnoise_paper import sections
from lessnoise_paper.commands.page import Seed, check_page, print_table, verdict_mark, write_page
from lessnoise_paper.experiments.components import SWEEPS
from lessnoise_paper.experiments.components_result import PARTS, PcaStudy
from lessnoise_paper.experiments.counts import parts
from lessnoise_paper.experiments.pca import ADDED
from lessnoise_paper.experiments.uber import SYNTHETIC
from lessnoise_paper.formulas import plain
from lessnoise_paper.model import Settings
from lessnoise_paper.registry import COMPONENTS, COUNTS, TRAINING, TRAINING_ATTACKED
from lessnoise_paper.sections.wording import verdict_of
from lessnoise_paper.training.run import run_study

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers

_QUICK_REPETITIONS, _QUICK_RELEASES, _RELEASES = 5, 200, 10_000

study = typer.Typer(
    no_args_is_help=True, help="Repeat a case study of the R1SMG paper, as published and at equal privacy."
)


@study.callback()
def studies() -> None:
    """Repeat a case study of the R1SMG paper, as published and at equal exact privacy."""


# Case study I.


@study.command()
def uber(
    data: Annotated[
        str | None,
        typer.Option(
            help="Folder with the Uber file, or 'synthetic' for a made-up city. Default: the folder that "
            "$LESSNOISE_DATA names, or else a download from the public source.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page, the pictures, the table and the numbers.")] = Path(
        "lessnoise-uber"
    ),
    repetitions: Annotated[
        int, typer.Option(help="Number of releases of each mechanism whose loss is measured.")
    ] = 100,
    quick: Annotated[bool, typer.Option("--quick", help="Make only a few repetitions, for a first look.")] = False,
    seed: Seed = 0,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Case study I of the R1SMG paper: pickup counts of New York City, released by every mechanism.

    The study shows the paper's maps and losses at its settings, with the exact privacy beside each. Then it compares
    all mechanisms at one exact guarantee, and counts how often a release, once rounded, is the raw table.

    Example: [bold]lessnoise study uber --data synthetic --out uber[/bold]
    """
    synthetic = data == SYNTHETIC
    options = {
        "data": SYNTHETIC if synthetic else "uber",
        "repetitions": min(repetitions, _QUICK_REPETITIONS) if quick else repetitions,
        "attack_releases": _QUICK_RELEASES if quick else _RELEASES,
        "seed": seed,
    }
    settings = Settings(data=None if synthetic else data, options={"counts": options})
    write_page(COUNTS, settings, out, _print_counts, force=force, json_only=json)


def _print_counts(numbers: Numbers) -> None:
    for part, setting in parts(numbers).items():
        rows = []
        for row in numbers[part]:
            losses, verdict, paper = row["losses"], verdict_of(row), row["paper_mean_valid"]
            cells = (losses["mean_valid"], losses["expected_valid"], paper, losses["mean_whole"])
            rows.append(
                [
                    row["label"],
                    text.pair_up(verdict.claimed) + (" *" if verdict.claimed.neighbours.value == "add/remove" else ""),
                    text.exact_delta(verdict),
                    *("" if cell is None else text.number(cell) for cell in cells),
                    verdict_mark(verdict.word),
                ]
            )
        middle = ("claim", "exact delta", "mean loss, occupied cells", "expected", "the paper", "all cells")
        print_table(f"{numbers['data']}: {setting}", ["mechanism", *middle, "verdict"], rows, left=True)
    console().print("* for one pickup added or removed; all others for one pickup replaced. Seeded, so not private.")
    console().print(plain(COUNTS.sections[-1].write(numbers).ours))


# Case study II.


@study.command()
def pca(
    table: Annotated[
        str, typer.Option(help="Name of the table: digits (comes with scikit-learn), enron, mnist or swarm.")
    ] = "digits",
    data: Annotated[
        Path | None, typer.Option(help="Folder with the table's file. Default: $LESSNOISE_DATA.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the pictures and the numbers.")] = Path("lessnoise-pca"),
    repetitions: Annotated[
        int | None,
        typer.Option(help="Number of releases of each mechanism at each epsilon. Default: 10."),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            help="An epsilon. May be given several times. Default: 0.2, 0.4 and so on up to 1.6."
            " Above 1,000 features: 0.2 and 1.6."
        ),
    ] = None,
    components: Annotated[int, typer.Option(help="Number of components that the classifier gets.")] = 20,
    delta: Annotated[float, typer.Option(help="Delta of the guarantee.")] = 1e-7,
    clip_norm: Annotated[
        float | None, typer.Option(help="Norm that rows are clipped to. Default: a norm chosen for each table.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Take two epsilons and a shorter chain of PPCA, for a first look.")
    ] = False,
    seed: Seed = 0,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Case study II of the R1SMG paper: private principal components and what they are good for.

    The study compares the mechanisms three times. First it follows the paper, where the epsilon of R1SMG is 1e-7 times
    the epsilon of the others. Then all mechanisms have R1SMG's epsilon. Then all keep one exact guarantee, once with
    the paper's bounds on the entries, and once with rows that are clipped to a norm.

    Example: [bold]lessnoise study pca --quick --out components[/bold]
    """
    if importlib.util.find_spec("sklearn") is None:
        raise InvalidInput("scikit-learn is not installed, but this study needs it: pip install 'lessnoise[sklearn]'.")
    options = {
        "table": table,
        "epsilons": [0.2, 1.6] if quick else epsilon or None,
        "repetitions": repetitions,
        "sweeps": 5 if quick else SWEEPS,
        "components": components,
        "delta": delta,
        "clip_norm": clip_norm,
        "seed": seed,
    }
    settings = Settings(data=None if data is None else str(data), options={"pca": options})
    write_page(COMPONENTS, settings, out, _print_components, force=force, json_only=json)


def _print_components(numbers: Numbers) -> None:
    result = PcaStudy.from_dict({name: value for name, value in numbers.items() if name not in ADDED})
    ends = sorted({point.axis for point in result.points})
    shown = [ends[0], ends[-1]] if len(ends) > 1 else ends
    head = [f"{name} at {epsilon:g}" for epsilon in shown for name in ("deviation", "accuracy", "exact delta")]
    for part, title in PARTS.items():
        rows = []
        for points in result.of(part).values():
            cells = []
            for point in (point for point in points if point.axis in shown):
                cells.append(_with_spread(point.deviation, point.deviation_spread, len(point.deviations)))
                accuracies = 100.0 * point.accuracy, 100.0 * point.accuracy_spread, len(point.accuracies)
                cells.append(f"{_with_spread(*accuracies)}%")
                cells.append("unknown" if point.exact is None else text.exact(point.exact))
            rows.append([points[0].label, *cells, verdict_mark(points[-1].verdict_word)])
        print_table(f"{result.title}: {title}", ["mechanism", *head, "claim"], rows, left=True)
    console().print(
        "Numbers are means over the releases, and after ± the standard deviation of one release. "
        f"Without noise: deviation 0, accuracy {result.baseline:.1%}. Exact delta is at the epsilon that each "
        "mechanism was given. Releases are seeded, so they are not private."
    )


def _with_spread(mean: float, spread: float, releases: int) -> str:
    """A mean and a standard deviation, which one release does not have."""
    return text.number(mean, 3) + (f" ± {text.number(spread, 2)}" if releases > 1 else "")


# Case study III.


@study.command()
def learning(
    rerun: Annotated[bool, typer.Option("--rerun", help="Train again instead of reading the stored results.")] = False,
    recipe: Annotated[
        str,
        typer.Option(
            help="What to train again: tutorial (the models of the paper) or strong (the best recipe we know)."
        ),
    ] = "tutorial",
    only: Annotated[list[str] | None, typer.Option(help="mnist or cifar10. May be given twice. Default: both.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Number of epochs to train again. Default: as many as in the paper.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds to train again with.")] = 3,
    records: Annotated[
        int | None, typer.Option(help="For a trial: train again with this many records only, the first ones.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cuda or cpu. Default: cuda, if there is a GPU.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with MNIST and CIFAR-10. Default: the folder that $LESSNOISE_DATA names, or else a "
            "download from the public sources.",
            show_default=False,
        ),
    ] = None,
    membership: Annotated[
        bool, typer.Option("--membership", help="Also attack one step of each kind: was the record in the batch?")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the page, the pictures and the numbers.")] = Path(
        "lessnoise-learning"
    ),
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Case study III of the R1SMG paper: MNIST and CIFAR-10 networks trained with DP-SGD and with R1SMG.

    The command reads the results of full runs, which come with the library, or trains again. It shows the exact privacy
    of every training beside its accuracy.

    Example: [bold]lessnoise study learning --out learning[/bold]
    """
    validation.choice("recipe", recipe, ("tutorial", "strong"))
    chosen = only or ["mnist", "cifar10"]
    for name in chosen:
        validation.choice("only", name, ("mnist", "cifar10"))
    force = check_page(out, force)
    if rerun:
        given = {"epochs": epochs, "records": records}
        limits = {name: validation.whole_number(name, value) for name, value in given.items() if value is not None}
        _train_again(recipe, chosen, limits, seeds, {"device": device, "data": data, "out": out}, quiet=json)
    options = {"seed": 0, "samples": 4000 if membership else 0, "results_folder": str(out) if rerun else None}
    selection = TRAINING_ATTACKED if membership else TRAINING
    write_page(selection, Settings(options={"learning": options}), out, _print_training, force=force, json_only=json)


def _train_again(
    recipe: str, chosen: list[str], limits: dict[str, Any], seeds: int, where: Numbers, quiet: bool
) -> None:
    """Train what is chosen, up to some limits, on a device and with folders that ``where`` has."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise InvalidInput("--rerun needs PyTorch: install it with pip install 'lessnoise[learn]'.") from None

    options = "".join(f" --only {name}" for name in chosen) + "".join(f" --{n} {value}" for n, value in limits.items())
    run_study(
        ["strong"] if recipe == "strong" else chosen,
        **where,
        **limits,
        seeds=validation.whole_number("seeds", seeds),
        strong=tuple(chosen),
        command=f"lessnoise study learning --rerun --recipe {recipe}{options} --seeds {seeds}",
        report=(lambda line: None) if quiet else typer.echo,
    )


def _print_training(numbers: Numbers) -> None:
    rows = []
    for row in numbers["rows"]:
        low, high = row["test_accuracy_over_seeds"]
        rows.append(
            [
                row["data"],
                "" if row["claimed_epsilon"] is None else f"{row['claimed_epsilon']:g}",
                numbers["names"][row["method"]],
                row["guarantee"],
                f"{row['test_accuracy']:.2%}",
                f"{low:.2%} to {high:.2%}",
                f"{row['train_accuracy']:.2%}",
                "" if row["first_epoch_at_95"] is None else f"{row['first_epoch_at_95']}",
            ]
        )
    if rows:
        head = ["data", "claimed epsilon", "method", "exact guarantee", "test", "over seeds", "train", "95% at epoch"]
        print_table("Accuracy after the last epoch, and what each line really guarantees", head, rows, numbers=False)
    else:
        console().print("There are no results yet: train with --rerun.")
    if numbers["membership"]:
        said = sections.learning.membership(numbers)
        console().print(plain(f"{said.ours} {said.privacy}"))
