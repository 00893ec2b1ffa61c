"""The report: one self-contained page. Its numbers come from the stored results, through the words of each section."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from lessnoise.report.html import count_word, document, embedded, prose, table
from lessnoise.report.inline import colour_rules, inline_svg
from lessnoise_paper import store
from lessnoise_paper.demo.page import PAPER
from lessnoise_paper.render_style import CSS
from lessnoise_paper.sections.common import chip

if TYPE_CHECKING:
    from lessnoise_paper.model import Fact, Picture, Section, Words
    from lessnoise_paper.run import Outcome, Run

_REMEDIES = {
    "left out": "It is left out because data or a library is missing",
    "failed": "Its computation ended with an error, which is a defect of lessnoise or of this machine",
}


def report_html(run: Run) -> str:
    """The whole page as text."""
    title = "Less is more? Every figure and table, with its exact privacy"
    words = {section.name: _words(section, run) for section in run.sections}
    body = "\n".join(
        [
            '<a class="skip" href="#main">Skip the contents</a>',
            f"<header>\n<h1>{escape(title)}</h1>\n{_introduction(run)}\n{_summary(words)}\n</header>",
            '<div class="frame">',
            _contents(run, words),
            '<main id="main">',
            _part("The paper's figures and tables", [s for s in run.sections if not s.ours], run, words),
            _part("Ours", [s for s in run.sections if s.ours], run, words),
            _explorer(run),
            "</main>",
            "</div>",
            _footer(run),
        ]
    )
    page = document(title, body, CSS).replace("<body>", '<body class="report">', 1)
    return page.replace("</style>", f"{colour_rules(page)}</style>", 1)


def _words(section: Section, run: Run) -> Words | None:
    numbers = run.outcomes[section.work].numbers
    return None if numbers is None else section.write(numbers)


# The top.


def _introduction(run: Run) -> str:
    lede = (
        "Ji and Li's paper “Less is More” proposes R1SMG, Gaussian noise along one random direction, and reports "
        "that it protects data with far less noise than other mechanisms. This page repeats every figure and table "
        "of the paper, and puts beside each the exact privacy of what is shown, computed rather than trusted. Then "
        "come comparisons at equal exact privacy, and what less noise can really achieve."
    )
    data = (
        "This is a quick run: it uses embedded data only, a synthetic city and scikit-learn's digits instead of the "
        "paper's, and fewer repetitions."
        if run.settings.quick
        else "This is a full run on public data."
    )
    mark = (
        f"{data} The releases on this page are demonstrations drawn with seed {run.settings.seed}, so that you can "
        "repeat them. Seeded releases are not private, whatever their mechanism guarantees."
    )
    return f'<p class="lede">{prose(lede)}</p>\n<p class="mark">{prose(mark)}</p>'


def _summary(words: dict[str, Words | None]) -> str:
    """What the paper says and what is true: a few sentences, and claims beside exact values."""
    found = [one for one in words.values() if one is not None]
    headlines = [f"<li>{prose(one.headline)}</li>" for one in found if one.headline]
    facts = [fact for one in found for fact in one.facts]
    if not headlines and not facts:
        return ""
    lines = "<ul>\n" + "\n".join(headlines) + "\n</ul>\n" if headlines else ""
    return (
        '<section class="summary" aria-labelledby="summary">\n<h2 id="summary">What is claimed, and what is true</h2>\n'
        + lines
        + (_facts(facts) if facts else "")
        + "</section>"
    )


def _facts(facts: list[Fact]) -> str:
    head = ("What", "Claimed (epsilon, delta)", "Exact, at that epsilon", "Claim")
    rows = [
        f'<tr><th scope="row">{prose(fact.what)}</th><td>{prose(fact.claimed)}</td><td>{prose(fact.exact)}</td>'
        f"<td>{chip(fact.verdict)}</td></tr>"
        for fact in dict.fromkeys(facts)
    ]
    return table(head, rows, "Claimed and exact privacy")


def _contents(run: Run, words: dict[str, Words | None]) -> str:
    groups = [
        ("The paper", [section for section in run.sections if not section.ours]),
        ("Ours", [section for section in run.sections if section.ours]),
    ]
    parts = []
    for title, sections in groups:
        if sections:
            items = "\n".join(_link(section, words[section.name] is None) for section in sections)
            if title == "Ours" and _has_explorer(run):
                items += '\n<li><a href="#explorer">Explore the exact curves</a></li>'
            parts.append(f"<h2>{title}</h2>\n<ul>\n{items}\n</ul>")
    return '<nav aria-label="Contents">\n' + "\n".join(parts) + "\n</nav>"


def _link(section: Section, missing: bool) -> str:
    opening = '<li class="missing">' if missing else "<li>"
    if section.ours:
        return f'{opening}<a href="#{section.name}">{escape(section.title)}</a></li>'
    words = f'<span class="short">{section.place}</span><span class="long"> {escape(section.title)}</span>'
    return f'{opening}<a href="#{section.name}">{words}</a></li>'


# Sections.


def _part(title: str, sections: list[Section], run: Run, words: dict[str, Words | None]) -> str:
    if not sections:
        return ""
    parts = [f'<p class="part" role="heading" aria-level="2">{escape(title)}</p>']
    for section in sections:
        found = words[section.name]
        outcome = run.outcomes[section.work]
        parts.append(_absent(section, outcome) if found is None else _section(section, found, outcome, run))
    return "\n".join(parts)


def _heading(section: Section) -> str:
    place = f'<span class="place">{escape(section.place)}</span>' if section.place else ""
    return f'<h2 id="{section.name}-title">{place}{escape(section.title)}</h2>'


def _section(section: Section, words: Words, outcome: Outcome, run: Run) -> str:
    terms = [
        ("The setting", words.setting, ""),
        ("The paper says", words.paper, ""),
        ("We find", words.ours, ""),
        ("Exact privacy", words.privacy, ' class="exact failing"' if words.fails else ' class="exact"'),
    ]
    entries = "\n".join(f"<dt>{name}</dt><dd{kind}>{prose(said)}</dd>" for name, said, kind in terms if said)
    large = [_figure(picture, section, run) for picture in words.pictures if not picture.small]
    small = [_figure(picture, section, run) for picture in words.pictures if picture.small]
    maps = '<div class="maps">\n' + "\n".join(small) + "\n</div>" if small else ""
    files = f"Numbers: {store.DATA}/{outcome.work}.json, beside this page; computed in {outcome.seconds:.0f} s."
    return "\n".join(
        [
            f'<section id="{section.name}" aria-labelledby="{section.name}-title">',
            _heading(section),
            f"<dl>\n{entries}\n</dl>",
            *large,
            maps,
            f'<p class="shows">{prose(words.shows)}</p>',
            *words.tables,
            f'<p class="files">{escape(files)}</p>',
            "</section>",
        ]
    )


def _figure(picture: Picture, section: Section, run: Run) -> str:
    content = (run.out / store.FIGURES / picture.file).read_bytes()
    title = f"<strong>{prose(picture.title)}</strong>, " if picture.title else ""
    caption = f"<figcaption>{title}{prose(picture.caption)}</figcaption>"
    if picture.file.endswith(".svg"):
        name = re.sub(r"\W", "-", f"{section.name}-{picture.file[:-4]}")
        inside = inline_svg(content, name, picture.alt)
        region = (
            f'<div class="card" role="region" tabindex="0" aria-label="{escape(picture.file[:-4])}, scrolls sideways">'
        )
        return f"<figure>{region}{inside}</div>{caption}</figure>"
    opening = '<figure class="bad">' if picture.failing else "<figure>"
    return f"{opening}{embedded(content, 'png', picture.alt)}{caption}</figure>"


def _absent(section: Section, outcome: Outcome) -> str:
    words = f"{_REMEDIES[outcome.status]}: {outcome.reason}"
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">\n{_heading(section)}\n'
        f'<p class="absent"><strong>Not in this report.</strong> {escape(words)}</p>\n</section>'
    )


def _has_explorer(run: Run) -> bool:
    """Whether the exact curves, which the explorer belongs to, are part of the report."""
    return any(section.name == "curves" for section in run.sections)


def _explorer(run: Run) -> str:
    """The exact-curve explorer, computed in the page."""
    if not _has_explorer(run):
        return ""
    from lessnoise.report.explorer import fragment

    return (
        '<section id="explorer" aria-labelledby="explorer-title">\n'
        '<h2 id="explorer-title">Explore the exact curves</h2>\n'
        "<p>Move the sliders: every mechanism is calibrated for the target, as its source says or on its exact "
        "curve, and its exact privacy and expected loss are drawn, computed in this page. Deltas here are "
        "rounded up.</p>\n"
        f'<div class="explorer">{fragment()}</div>\n</section>'
    )


def _footer(run: Run) -> str:
    missing = run.missing
    state = (
        ""
        if not missing
        else f" {count_word(len(missing)).capitalize()} of {len(run.outcomes)} computations are missing."
    )
    versions = ", ".join(f"{name} {version}" for name, version in store.versions().items())
    words = (
        f"Made by {versions}.{state} The file manifest.json has the versions, seeds, settings and times of this run, "
        "and the sha256 of every file. Exact privacy is that of real-valued noise, as a bracket with both ends "
        f"proved; where one number is shown, both ends round to it. The paper: {PAPER}; figure numbers are those of "
        "its full version."
    )
    return f"<footer>\n<p>{escape(words)}</p>\n</footer>"
