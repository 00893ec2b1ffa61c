"""Words of case study II: figures 6 and 11, and the comparison at equal exact privacy."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING

from lessnoise import text
from lessnoise.guarantees import Bracket
from lessnoise_paper.sections.wording import Wording, chip, rows_table, titled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise_paper.model import Numbers, Settings, Words

_PUBLISHED = "r1smg-published"


def introduce(settings: Settings, found: Mapping[str, Numbers | None]) -> tuple[str, str]:
    """The first paragraphs of case study II."""
    numbers = found["pca"]
    assert numbers is not None
    say = Wording("pca", "introduce", numbers, about=_data(numbers))
    return say("lede"), say("mark")


def figure_6(numbers: Numbers) -> Words:
    """The paper's settings."""
    points = _part(numbers, "published")
    found = _right_end(numbers)
    does = "does-well" if sum(found) / len(found) < 0.5 * _random_deviation(numbers) else "does-not"
    say = Wording(
        "pca",
        "fig-6",
        numbers,
        **_shown(points, numbers),
        best=_best([row for row in _lasts(points) if row["key"] != _PUBLISHED]),
        well=Wording("pca", "pieces", random=_random_deviation(numbers))(does),
        features=numbers["shape"][1],
    )
    return say.words(fails=True, tables=[_table(points)], facts=say.facts("fact"))


def figure_11(numbers: Numbers) -> Words:
    """All at R1SMG's epsilon."""
    points = _part(numbers, "small")
    say = Wording(
        "pca",
        "fig-11",
        numbers,
        **_shown(points, numbers),
        best=_best([row for row in _lasts(points) if row["key"] != _PUBLISHED and row["verdict"] == "holds"]),
        random=_random_deviation(numbers),
    )
    return say.words(fails=True, tables=[_table(points)])


def equal(numbers: Numbers) -> Words:
    """The comparison at equal exact privacy."""
    bounds, clip = _part(numbers, "equal-bounds"), _part(numbers, "equal-clip")
    least = _last(bounds, "least-noise")
    say = Wording(
        "pca",
        "equal-pca",
        numbers,
        about=_data(numbers),
        least=least,
        clipped=_last(clip, "least-noise"),
        r1smg=_last(bounds, "r1smg"),
        epsilon=least["axis_epsilon"],
        random=_random_deviation(numbers),
        easy=_easy(numbers),
    )
    tables = (
        titled("Entries in [-1, 1]", _table(bounds)),
        titled(f"Rows clipped to norm {text.number(numbers['clip_norm'])}", _table(clip)),
    )
    return say.words(tables=tables, without={"pca-components.svg"} - set(numbers["pictures"]))


# Pieces.


def _shown(points: list[Numbers], numbers: Numbers) -> Numbers:
    """What figures 6 and 11 both say."""
    axis, found = _axis(numbers["points"]), _right_end(numbers)
    say = Wording("pca", "pieces", count=len(found), low=found[0], high=found[-1])
    return {
        "about": _data(numbers),
        "range": f"{text.number(axis[0])} to {text.number(axis[-1])}",
        "published": _last(points, _PUBLISHED),
        "spread": say("spread"),
        "claims": say.each("privacy", _lasts(points)),
        "easy": _easy(numbers),
    }


def _part(numbers: Numbers, part: str) -> list[Numbers]:
    """The points of a part, with means, and with the exact delta in words."""
    return [
        {
            **point,
            "deviation": fmean(point["deviations"]),
            "accuracy": fmean(point["accuracies"]),
            "spread": {name: _spread(point[name]) for name in ("deviations", "accuracies")},
            "known": "unknown"
            if point["exact_delta"] is None
            else text.exact(Bracket.from_dict(point["exact_delta"]), 3),
        }
        for point in numbers["points"]
        if point["part"] == part
    ]


def _spread(values: list[float]) -> float | None:
    """The standard deviation over the releases; None for one release."""
    return stdev(values) if len(values) > 1 else None


def _last(points: list[Numbers], key: str) -> Numbers:
    return max((point for point in points if point["key"] == key), key=lambda point: point["axis_epsilon"])


def _lasts(points: list[Numbers]) -> list[Numbers]:
    return [_last(points, key) for key in dict.fromkeys(point["key"] for point in points)]


def _best(points: list[Numbers]) -> Numbers:
    return min(points, key=lambda point: point["deviation"])


def _right_end(numbers: Numbers) -> list[float]:
    """Deviations of all releases of published R1SMG at the right end: figures 6 and 11 have the same epsilon there."""
    found = [_last(_part(numbers, part), _PUBLISHED) for part in ("published", "small")]
    return sorted(deviation for point in found for deviation in point["deviations"])


def _easy(numbers: Numbers) -> str:
    """Where accuracy says little: components that are next to random do nearly as well as those without noise."""
    safe = [point for point in _part(numbers, "small") if point["verdict"] == "holds"]
    mean = fmean(accuracy for point in safe for accuracy in point["accuracies"]) if safe else 0.0
    if mean < 0.9 * numbers["accuracy_without_noise"]:
        return ""
    return Wording("pca", "pieces", numbers, features=numbers["shape"][1], accuracy=mean)("easy")


def _random_deviation(numbers: Numbers) -> float:
    """The total deviation if every component had the mean variance: the sum of |lambda_i - mean|."""
    spectrum = numbers["spectrum"]
    mean = numbers["trace"] / numbers["shape"][1]
    return float(sum(abs(value - mean) for value in spectrum))


def _axis(points: list[Numbers]) -> list[float]:
    return sorted({point["axis_epsilon"] for point in points})


def _data(numbers: Numbers) -> str:
    rows, features = numbers["shape"]
    releases = "releases" if numbers["repetitions"] > 1 else "release"
    return Wording("pca", "pieces", numbers, rows=rows, features=features, releases=releases)("data")


def _table(points: list[Numbers]) -> str:
    axis = [
        min((p["epsilon"] for p in points if p["axis_epsilon"] == e), key=lambda one: abs(one - e))
        for e in _axis(points)
    ]
    head = [f"{what} at {text.number(epsilon)}" for what in ("Deviation", "Accuracy") for epsilon in axis]
    lines = []
    for key in dict.fromkeys(point["key"] for point in points):
        found = sorted((point for point in points if point["key"] == key), key=lambda point: point["axis_epsilon"])
        cells = [_with_spread(point["deviation"], point["spread"]["deviations"], 3) for point in found]
        cells += [
            _with_spread(100.0 * point["accuracy"], point["spread"]["accuracies"], 3, "%", 100.0) for point in found
        ]
        factor = found[-1]["epsilon"] / axis[-1]
        label = found[0]["label"] + ("" if 0.5 < factor < 2.0 else f", at {text.number(factor, 1)} of it")
        lines.append((label, None, [*cells, found[-1]["known"], chip(found[-1]["verdict"])]))
    last = (f"Exact δ at {text.number(axis[-1])}", "Claim")
    return rows_table(["Mechanism", *head, *last], lines, "Deviation and accuracy")


def _with_spread(mean: float, spread: float | None, digits: int, unit: str = "", factor: float = 1.0) -> str:
    """A mean and a standard deviation, such as 23.2 ± 0.41."""
    around = "" if spread is None else f" ± {text.number(factor * spread, 2)}"
    return f"{text.number(mean, digits)}{around}{unit}"
