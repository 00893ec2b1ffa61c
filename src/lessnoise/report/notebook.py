"""Objects as small tables for notebooks: claim beside exact, rounded to the safe side, on light and dark pages."""

from __future__ import annotations

import datetime
from html import escape
from typing import TYPE_CHECKING

from lessnoise._display import Listed, to_html
from lessnoise.audit import AuditReport, percent
from lessnoise.composition import Composition
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Claim, Guarantee, Verdict
from lessnoise.ledger import Ledger
from lessnoise.mechanism import Mechanism, changes_words
from lessnoise.planning import ReleasePlan
from lessnoise.query import Answer
from lessnoise.release import Certificate, Release
from lessnoise.table import STATISTIC, TableAnswer
from lessnoise.tasks import HistogramRelease
from lessnoise.text import down, up

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

_BOX = "border-left:4px solid {edge};padding:0.2em 0 0.2em 0.9em;margin:0.4em 0;overflow-x:auto"
_GOOD, _BAD, _PLAIN = "#2f9e5f", "#d9480f", "#868e96"  # edges only: words carry the meaning
_CELL = "text-align:left;vertical-align:top;padding:0.15em 1.2em 0.15em 0;background:transparent"
_NAME = _CELL + ";font-weight:normal;opacity:0.75"
_TABLE = '<table style="border-collapse:collapse;margin:0.3em 0">'
_RULE = ";border-bottom:1px solid currentColor"
_NUMBER = _CELL.replace("left", "right", 1)
_MOST_ROWS, _MOST_COLUMNS, _MOST_RECORDS, _MOST_GROUPS = 6, 8, 5, 30
_USUAL_DELTA = 1e-6

Cell = tuple[str, str]
"""A name and a value, in plain text."""


@to_html.register(Listed)
def _(shown: Listed) -> str:
    title, rows, head, lines, good = shown._facts()
    cut = [*lines[:_MOST_GROUPS], *([("…",) * len(head)] if len(lines) > _MOST_GROUPS else [])]
    edge = _PLAIN if good is None else _GOOD if good else _BAD
    return _box(title, rows, _grid(head, cut) if head else "", edge=edge)


@to_html.register(HistogramRelease)
def _(shown: HistogramRelease) -> str:
    rows = [
        *_certificate_rows(shown.certificate),
        ("afterwards", ", ".join(shown.postprocess) or "nothing was done to the counts"),
        ("engine", shown.engine),
    ]
    if shown.release.receipt is not None:
        rows.append(("paid", f"record {shown.release.receipt.id} of the ledger"))
    title = f"Private counts, {_sizes(shown.value.shape)}"
    return _box(title, rows, _corner(shown.value), edge=_private_edge(shown.certificate))


@to_html.register(Bracket)
def _(shown: Bracket) -> str:
    return _box("Proved interval", [("at least", down(shown.lower)), ("at most", up(shown.upper))])


@to_html.register(Guarantee)
def _(shown: Guarantee) -> str:
    rows = [("epsilon", up(shown.epsilon, 5)), ("delta", up(shown.delta, 5)), ("neighbours", shown.neighbours.value)]
    if isinstance(shown, Claim):
        return _box("Claim (what a source says; not a guarantee)", [*rows, ("source", shown.source or "not named")])
    return _box("Guarantee", rows)


@to_html.register(Verdict)
def _(shown: Verdict) -> str:
    return _box(f"The claim {_word(shown)}", _claim_rows(shown), edge=_edge(shown))


@to_html.register(Mechanism)
def _(shown: Mechanism) -> str:
    title = shown.name if shown.design is None else f"{shown.name} ({shown.design.choice})"
    if shown.claim is None:
        rows = [*_facts(shown), ("exact delta at epsilon = 1", str(shown.delta(1.0))), ("claim", "none")]
        return _box(title, rows)
    verdict = shown.check()
    return _box(title, [*_facts(shown), *_claim_rows(verdict), ("the claim", _word(verdict))], edge=_edge(verdict))


@to_html.register(Certificate)
def _(shown: Certificate) -> str:
    return _box("Certificate", _certificate_rows(shown), edge=_private_edge(shown))


@to_html.register(Answer)
def _(shown: Answer) -> str:
    rows = [
        ("query", str(shown.asked)),
        ("shape", _sizes(shown.shape)),
        ("protects", str(shown.unit)),
        ("what one unit can change", shown.changes_words),
        ("value", "not shown, because it is the true value: release it"),
    ]
    return _box("Answer (do not publish it)", rows)


@to_html.register(Release)
def _(shown: Release) -> str:
    rows = _certificate_rows(shown.certificate)
    if shown.receipt is not None:
        rows.append(("paid", f"record {shown.receipt.id} of the ledger"))
    sizes = _sizes(shown.value.shape)
    return _box(f"Noisy value, {sizes}", rows, _corner(shown.value), edge=_private_edge(shown.certificate))


@to_html.register(TableAnswer)
def _(shown: TableAnswer) -> str:
    rows = [
        ("guarantee, computed", str(shown.guarantee)),
        ("protects", shown.protects),
        ("intervals", f"each contains the true value with probability {shown.level:g}"),
        ("private", "yes" if shown.private else "NO: the noise came from a seeded generator"),
        *(("rule", rule) for rule in shown.description["rules"]),
    ]
    if shown.receipt is not None:
        rows.append(("paid", f"record {shown.receipt.id} of the ledger"))
    labels = [name for name in shown.columns if name not in STATISTIC]
    lines = [
        (*(str(row[name]) for name in (*labels, "statistic")), *(f"{row[name]:.6g}" for name in STATISTIC[1:]))
        for row in shown.rows[:_MOST_GROUPS]
    ]
    if len(shown.rows) > _MOST_GROUPS:
        lines.append(("…",) * len(shown.columns))
    edge = _GOOD if shown.private and all(one.claim_holds is not False for one in shown.certificates) else _BAD
    return _box("Private statistics", rows, _grid((*labels, *STATISTIC), lines), edge=edge)


@to_html.register(Composition)
def _(shown: Composition) -> str:
    parts = _grid(
        ("mechanism", "releases", "sampling rate"),
        ((part.mechanism.name, f"{part.count:,}", f"{part.rate:g}") for part in shown.parts),
    )
    rows = [
        (f"exact epsilon at delta = {_USUAL_DELTA:g}", str(shown.epsilon(_USUAL_DELTA))),
        ("neighbours", shown.neighbours.value),
    ]
    return _box(f"{shown.count:,} releases together", rows, parts)


@to_html.register(ReleasePlan)
def _(shown: ReleasePlan) -> str:
    verdict = shown.check()
    items = _grid(("item", "times", "rate", "share", "mechanism", "noise sd", "loss"), map(tuple, shown.rows()))
    rows = [
        ("target", str(shown.target)),
        (f"exact delta at epsilon = {up(shown.target.epsilon)}", str(verdict.exact)),
        ("the target", "is kept" if verdict.holds else "is NOT proved to be kept"),
    ]
    return _box(f"A plan of {shown.times:,} releases", rows, items, edge=_edge(verdict))


@to_html.register(Ledger)
def _(shown: Ledger) -> str:
    budget, records = shown.budget, shown.records()
    rows = [
        ("budget", str(budget)),
        (f"spent epsilon at delta = {up(budget.delta)}", str(shown.spent())),
        ("remaining epsilon", f"at least {down(shown.remaining(), 4)}"),
        ("records", f"{len(records):,}"),
    ]
    last = _grid(
        ("record", "time", "releases", "mechanism", "partition", "note"),
        (
            (
                str(record.id),
                datetime.datetime.fromtimestamp(record.time).strftime("%Y-%m-%d %H:%M"),
                f"{record.composition.count:,}",
                ", ".join(part.mechanism.name for part in record.composition.parts),
                record.partition or "",
                record.note,
            )
            for record in records[-_MOST_RECORDS:]
        ),
    )
    return _box("Ledger", rows, last if records else "")


@to_html.register(AuditReport)
def _(shown: AuditReport) -> str:
    claim = shown.claim
    rows = [
        ("claimed", f"({up(claim.epsilon)}, {up(claim.delta)})"),
        (f"delta, with {percent(shown.confidence)} confidence", f"≥ {down(shown.delta, 3)}"),
        ("epsilon at the claimed delta", f"≥ {down(shown.epsilon, 3)}"),
        ("the claim", "is REFUTED" if shown.refuted else "is not refuted (this does not prove that it holds)"),
        *((f"not run: {name}", reason) for name, reason in shown.skipped),
    ]
    attacks = _grid(
        ("attack", "delta ≥", "epsilon ≥"),
        ((one.name, down(one.delta.bound, 3), down(one.epsilon.bound, 3)) for one in shown.attacks),
    )
    return _box(f"Audit of {shown.mechanism}", rows, attacks, edge=_BAD if shown.refuted else _PLAIN)


# Rows.


def _facts(mechanism: Mechanism) -> list[Cell]:
    try:
        noise = f"{mechanism.standard_deviation:.5g} (standard deviation of an entry)"
        loss = f"{mechanism.expected_loss:.5g} over the whole array"
    except InvalidInput:
        noise, loss = "depends on the data", "depends on the data"
    return [
        ("shape", f"{_sizes(mechanism.shape)}, M = {mechanism.dimension:,}"),
        ("what one individual can change", changes_words(mechanism)),
        ("noise", noise),
        ("expected squared loss", loss),
    ]


def _sizes(shape: tuple[int, ...]) -> str:
    return " by ".join(map(str, shape)) or "one number"


def _claim_rows(verdict: Verdict) -> list[Cell]:
    claimed, source = verdict.claimed, getattr(verdict.claimed, "source", "")
    at = f"delta at epsilon = {claimed.epsilon:g}"
    return [
        (f"claimed {at}", f"{claimed.delta:g}" + (f" ({source})" if source else "")),
        (f"exact {at}", str(verdict.exact)),
    ]


def _certificate_rows(certificate: Certificate) -> list[Cell]:
    mechanism = certificate.mechanism
    holds = {True: "holds", False: "FAILS", None: "none"}[certificate.claim_holds]
    rows = [
        ("guarantee, computed", str(certificate.guarantee)),
        ("mechanism", mechanism.name),
        ("claim", f"{mechanism.claim}: {holds}" if mechanism.claim is not None else holds),
        ("private", "yes" if certificate.private else "NO: the noise came from a seeded generator"),
        ("randomness", certificate.randomness),
    ]
    if certificate.asked is not None:
        rows[1:1] = [("query", str(certificate.asked)), ("protects", str(certificate.asked.unit))]
    if not mechanism.law.data_dependent:
        rows.insert(len(rows) - 3, ("noise", f"{mechanism.standard_deviation:.5g} (standard deviation of an entry)"))
    if certificate.grid is not None:
        rows.append(("grid", f"multiples of {certificate.grid:g}"))
    return rows


def _word(verdict: Verdict) -> str:
    return "holds" if verdict.holds else "FAILS" if verdict.refuted else "is not proved"


def _edge(verdict: Verdict) -> str:
    return _GOOD if verdict.holds else _BAD


def _private_edge(certificate: Certificate) -> str:
    return _GOOD if certificate.private and certificate.claim_holds is not False else _BAD


# Elements.


def _box(title: str, rows: Iterable[Cell], more: str = "", edge: str = _PLAIN) -> str:
    body = "".join(
        f'<tr style="background:transparent"><th scope="row" style="{_NAME}">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return (
        f'<div class="lessnoise" style="{_BOX.format(edge=edge)}"><strong>{escape(title)}</strong>'
        f"{_TABLE}{body}</table>{more}</div>"
    )


def _grid(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table with a head; texts to the left, numbers to the right."""
    titles = "".join(f'<th scope="col" style="{_NUMBER}{_RULE}">{escape(name)}</th>' for name in head)
    lines = "".join(
        '<tr style="background:transparent">'
        + "".join(f'<td style="{_NUMBER};font-variant-numeric:tabular-nums">{escape(cell)}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return f"{_TABLE}<thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"


def _corner(value: NDArray[np.generic]) -> str:
    """The first numbers of the noisy value, along its first two axes."""
    import numpy as np

    shown = np.atleast_2d(value) if value.ndim < 2 else value.reshape(*value.shape[:2], -1)[:, :, 0]
    rows, columns = shown.shape
    cut = shown[:_MOST_ROWS, :_MOST_COLUMNS]
    dots = ("…",) if columns > _MOST_COLUMNS else ()
    head = (*map(str, range(cut.shape[1])), *dots)
    lines = [(*(f"{number:.6g}" for number in row), *dots) for row in cut.tolist()]
    if rows > _MOST_ROWS:
        lines.append(("…",) * len(head))
    return _grid(head, lines)
