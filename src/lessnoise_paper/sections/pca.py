"""Words of case study II: figures 6 and 11, and the comparison at equal exact privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise.guarantees import Bracket
from lessnoise_paper.model import Fact, Picture, Words
from lessnoise_paper.sections.common import chip, percent, rows_table, titled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise_paper.model import Numbers, Settings

_PUBLISHED = "r1smg-published"
PAPER_BASELINE = "96.89%"
"""Accuracy without noise (section 7.2)."""

PAPER_R1SMG_DEVIATION, PAPER_OTHERS_SMALL = "around 50", "of the order of 10³"
"""Total deviations on the paper's data (appendix D, "Case Study II")."""


def introduce(settings: Settings, found: Mapping[str, Numbers | None]) -> tuple[str, str]:
    """The first paragraphs of case study II."""
    numbers = found["pca"]
    assert numbers is not None
    lede = (
        f"Principal components of {_data(numbers)} are released with noise by every mechanism. First as published, "
        "with R1SMG at a ten-millionth of the epsilon of the others; then all at that small epsilon; then all at one "
        "exact guarantee, with the paper's bounds on entries and with clipped rows."
    )
    return lede, f"The releases use seed {numbers['seed']}. Seeded releases are not private."


def figure_6(numbers: Numbers) -> Words:
    """The paper's settings."""
    points = _part(numbers, "published")
    published = _last(points, _PUBLISHED)
    others = [row for row in _lasts(points) if row["key"] != _PUBLISHED]
    return Words(
        setting=(
            f"{_data(numbers)}. Total deviation Δ of the components, and accuracy of a linear classifier on the first "
            f"{numbers['components']}; δ = {text.number(numbers['delta'])}, ε from {_range(numbers)} on the axis, "
            "R1SMG at 1e-7 of it, as in the paper."
        ),
        paper=(
            "On Swarm Behaviour (24,016 x 2,400) R1SMG has high utility at ε below 1e-7, with a deviation "
            f"{PAPER_R1SMG_DEVIATION}, close to the baseline of {PAPER_BASELINE} accuracy."
        ),
        ours=(
            f"At the right end R1SMG has a deviation of {_mean(published, 'deviations')} and an accuracy of "
            f"{_accuracy(published)}; the best of the others is {_best(others)['label']} with "
            f"{_mean(_best(others), 'deviations')} and {_accuracy(_best(others))}. Without noise: 0 and "
            f"{percent(numbers['accuracy_without_noise'])}. {_spread(numbers)}"
        ),
        privacy=_privacy(points),
        shows=(
            f"{_published_words(numbers)} Two of the mechanisms made for this task are no safe comparison "
            "either: the Wishart mechanism fails its claim, and nothing is proved of PPCA's sampler for several "
            f"components. MOD-SULQ keeps its claim with far more noise than it needs. "
            f"{_easy(numbers)} {_left_out(numbers)}"
        ).strip(),
        pictures=(_picture(numbers, "pca-published.svg", "as published", published),),
        tables=(_table(points, numbers),),
        facts=(
            Fact(
                f"R1SMG, covariance of {numbers['shape'][1]:,} features",
                f"({text.number(published['epsilon'])}, {text.number(numbers['delta'])})",
                f"delta {_exact(published)}",
                published["verdict"],
            ),
        ),
        fails=True,
    )


def figure_11(numbers: Numbers) -> Words:
    """All at R1SMG's epsilon."""
    points = _part(numbers, "small")
    published = _last(points, _PUBLISHED)
    others = [row for row in _lasts(points) if row["key"] != _PUBLISHED]
    safe = [row for row in others if row["verdict"] == "holds"]
    return Words(
        setting=(
            f"Figure 11 (appendix D): all mechanisms at 1e-7 of the epsilon, from {_range(numbers)}. {_data(numbers)}."
        ),
        paper=(
            f"The others have a deviation {PAPER_OTHERS_SMALL} and accuracy near random guessing; R1SMG has "
            f"{PAPER_R1SMG_DEVIATION}."
        ),
        ours=(
            f"R1SMG: {_mean(published, 'deviations')}. Of the mechanisms that keep their claim the best has "
            f"{_mean(_best(safe), 'deviations')} ({_best(safe)['label']}). {_spread(numbers)}"
        ),
        privacy=_privacy(points),
        shows=(
            "At ε of the order of 1e-7 a covariance cannot be told from that of its neighbour, and so hardly "
            "anything can be learnt of it. Mechanisms that keep the promise end near random directions, whose "
            f"deviation is about {_random(numbers)}. That is what the promise says. {_easy(numbers)}"
        ),
        fails=True,
        pictures=(_picture(numbers, "pca-small.svg", "all at 1e-7 of the epsilon", published),),
        tables=(_table(points, numbers),),
    )


def equal(numbers: Numbers) -> Words:
    """The comparison at equal exact privacy."""
    bounds, clip = _part(numbers, "equal-bounds"), _part(numbers, "equal-clip")
    least, clipped, r1smg = _last(bounds, "least-noise"), _last(clip, "least-noise"), _last(bounds, "r1smg")
    epsilon = text.number(least["axis_epsilon"])
    pair = f"({epsilon}, {text.number(numbers['delta'])})"
    pictures = [
        Picture(
            "pca-equal.svg",
            f"Deviation and accuracy at equal exact privacy; at epsilon {epsilon} least noise has a deviation of "
            f"{_mean(least, 'deviations')}, R1SMG {_mean(r1smg, 'deviations')}.",
            f"All exactly at (ε, {text.number(numbers['delta'])}): entries in [-1, 1] above, rows clipped to norm "
            f"{text.number(numbers['clip_norm'])} below.",
        ),
        Picture(
            "pca-scree.svg",
            f"Eigenvalues with and without noise at exactly {pair}.",
            f"Spectra of one least-noise release at exactly {pair}, and the floor below which eigenvalues are noise.",
        ),
    ]
    if "pca-components.svg" in numbers["pictures"]:
        words = (
            f"First components: without noise, and of one release at exactly {pair} with entry bounds and with "
            "clipped rows."
        )
        pictures.append(Picture("pca-components.svg", words, words))
    return Words(
        setting=(
            f"Not in the paper: the same covariance, every mechanism exactly at (ε, {text.number(numbers['delta'])}). "
            f"{_data(numbers)}."
        ),
        paper="",
        ours=(
            f"At ε = {epsilon} with the paper's entry bounds: least noise has a deviation of "
            f"{_mean(least, 'deviations')} and an accuracy of {_accuracy(least)}, R1SMG {_mean(r1smg, 'deviations')} "
            f"and {_accuracy(r1smg)}. With rows clipped to norm {text.number(numbers['clip_norm'])}, least noise has "
            f"{_mean(clipped, 'deviations')} and {_accuracy(clipped)}."
        ),
        privacy=(
            f"Every point of the picture is exactly (ε, {text.number(numbers['delta'])})-private for one row "
            "replaced, by its own curve."
        ),
        shows=(
            f"Random directions have a deviation of about {_random(numbers)}; on equal terms R1SMG has "
            f"{_mean(r1smg, 'deviations')}. What helps is to bound rows well: clipping them to a norm takes least "
            f"noise from {_mean(least, 'deviations')} to {_mean(clipped, 'deviations')} at the same exact privacy. "
            f"{_easy(numbers)}"
        ),
        pictures=tuple(pictures),
        tables=(
            titled("Entries in [-1, 1]", _table(bounds, numbers)),
            titled(f"Rows clipped to norm {text.number(numbers['clip_norm'])}", _table(clip, numbers)),
        ),
    )


# Pieces.


def _part(numbers: Numbers, part: str) -> list[Numbers]:
    return [point for point in numbers["points"] if point["part"] == part]


def _last(points: list[Numbers], key: str) -> Numbers:
    return max((point for point in points if point["key"] == key), key=lambda point: point["axis_epsilon"])


def _lasts(points: list[Numbers]) -> list[Numbers]:
    return [_last(points, key) for key in dict.fromkeys(point["key"] for point in points)]


def _best(points: list[Numbers]) -> Numbers:
    return min(points, key=lambda point: sum(point["deviations"]) / len(point["deviations"]))


def _mean(point: Numbers, what: str) -> str:
    return text.number(sum(point[what]) / len(point[what]), 3)


def _accuracy(point: Numbers) -> str:
    return percent(sum(point["accuracies"]) / len(point["accuracies"]))


def _exact(point: Numbers) -> str:
    return "unknown" if point["exact_delta"] is None else text.exact(Bracket.from_dict(point["exact_delta"]), 3)


def _privacy(points: list[Numbers]) -> str:
    """Every mechanism at the right end of the axis."""
    parts = [
        f"{row['label']} at ε = {text.number(row['epsilon'])}: exact delta {_exact(row)} ({row['verdict']})"
        for row in _lasts(points)
    ]
    return "; ".join(parts) + "."


def _published_words(numbers: Numbers) -> str:
    """What R1SMG's deviation as published means on this table."""
    found = _right_end(numbers)
    deviation = sum(found) / len(found)
    if deviation < 0.5 * _random_deviation(numbers):
        return (
            "R1SMG does well at an epsilon ten million times smaller because its noise is short, and the exact delta "
            "says what that is worth."
        )
    return (
        "On this table R1SMG does not do well even as published: random directions have a deviation of about "
        f"{_random(numbers)}. The paper's table has a covariance that must stand out more from noise of this kind. "
        "Its privacy is no better for that, as the record of claims shows at the paper's size."
    )


def _right_end(numbers: Numbers) -> list[float]:
    """Deviations of all releases of published R1SMG at the right end: figures 6 and 11 have the same epsilon there."""
    found = [_last(_part(numbers, part), _PUBLISHED) for part in ("published", "small")]
    return sorted(deviation for point in found for deviation in point["deviations"])


def _spread(numbers: Numbers) -> str:
    found = _right_end(numbers)
    return (
        "R1SMG's noise has one random length, so its releases differ much: at the right end the deviations of "
        f"{len(found)} releases, those of figures 6 and 11, lie between {text.number(found[0], 3)} and "
        f"{text.number(found[-1], 3)}."
    )


def _easy(numbers: Numbers) -> str:
    """Where accuracy says little: components that are next to random do nearly as well as those without noise."""
    safe = [point for point in _part(numbers, "small") if point["verdict"] == "holds"]
    accuracies = [accuracy for point in safe for accuracy in point["accuracies"]]
    mean = sum(accuracies) / len(accuracies) if accuracies else 0.0
    if mean < 0.9 * numbers["accuracy_without_noise"]:
        return ""
    return (
        f"Accuracy says little on this table: {numbers['components']} random directions of {numbers['shape'][1]:,} "
        f"keep most of its rows apart, and give about {percent(mean, 2)}. The deviation is what tells mechanisms apart."
    )


def _random_deviation(numbers: Numbers) -> float:
    """The total deviation if every component had the mean variance: the sum of |lambda_i - mean|."""
    spectrum = numbers["spectrum"]
    mean = numbers["trace"] / numbers["shape"][1]
    return float(sum(abs(value - mean) for value in spectrum[: numbers["components_measured"]]))


def _random(numbers: Numbers) -> str:
    return text.number(_random_deviation(numbers), 3)


def _axis(points: list[Numbers]) -> list[float]:
    return sorted({point["axis_epsilon"] for point in points})


def _range(numbers: Numbers) -> str:
    axis = _axis(numbers["points"])
    return f"{text.number(axis[0])} to {text.number(axis[-1])}"


def _data(numbers: Numbers) -> str:
    rows, features = numbers["shape"]
    many = numbers["repetitions"]
    return (
        f"{numbers['data']}, {rows:,} x {features:,}, {many} release{'s' if many > 1 else ''} of each mechanism at "
        "each epsilon"
    )


def _left_out(numbers: Numbers) -> str:
    return f"Left out: {' '.join(numbers['left_out'])}" if numbers["left_out"] else ""


def _picture(numbers: Numbers, file: str, words: str, published: Numbers) -> Picture:
    return Picture(
        file,
        f"Deviation and accuracy against epsilon, {words}. R1SMG: deviation {_mean(published, 'deviations')} at the "
        f"right end, exact delta {_exact(published)}.",
        f"Total deviation and accuracy, {words}; the legend says which claims fail. R1SMG's exact delta at the "
        f"right end is {_exact(published)}, where {text.number(numbers['delta'])} is claimed.",
    )


def _table(points: list[Numbers], numbers: Numbers) -> str:
    axis = [
        min((p["epsilon"] for p in points if p["axis_epsilon"] == e), key=lambda one: abs(one - e))
        for e in _axis(points)
    ]
    head = [
        "Mechanism",
        *(f"Deviation at {text.number(e)}" for e in axis),
        *(f"Accuracy at {text.number(e)}" for e in axis),
    ]
    lines = []
    for key in dict.fromkeys(point["key"] for point in points):
        found = sorted((point for point in points if point["key"] == key), key=lambda point: point["axis_epsilon"])
        cells = [*(_mean(point, "deviations") for point in found), *(map(_accuracy, found))]
        factor = found[-1]["epsilon"] / axis[-1]
        label = found[0]["label"] + ("" if 0.5 < factor < 2.0 else f", at {text.number(factor, 1)} of it")
        lines.append((label, None, [*cells, _exact(found[-1]), chip(found[-1]["verdict"])]))
    return rows_table([*head, f"Exact δ at {text.number(axis[-1])}", "Claim"], lines, "Deviation and accuracy")
