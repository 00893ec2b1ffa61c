"""Pages: each one self-contained. Numbers come from the results, through the words of each section."""

from __future__ import annotations

import re
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from lessnoise.explorer import fragment
from lessnoise.report import colour_rules, count_word, document, embedded, inline_svg
from lessnoise_paper import store
from lessnoise_paper.formulas import plain, typeset
from lessnoise_paper.sections.wording import chip
from lessnoise_paper.tables import html_table

if TYPE_CHECKING:
    from lessnoise_paper.model import Fact, Outcome, Page, Picture, Section, Words

PAPER = "Ji & Li, Less is More: Revisiting the Gaussian Mechanism for Differential Privacy, USENIX Security 2024"
PAPER_PAGE = "https://www.usenix.org/conference/usenixsecurity24/presentation/ji"
PAPER_FULL = "https://arxiv.org/abs/2306.02256"
_REMEDIES = {
    "left out": "It is left out because data or a library is missing",
    "failed": "Its computation ended with an error, which is a defect of lessnoise or of this machine",
}


def page_html(shown: Page) -> str:
    """The whole page as text."""
    title = shown.selection.title
    words = {section.name: _words(section, shown) for section in shown.sections}
    body = "\n".join(
        [
            '<a class="skip" href="#main">Skip the contents</a>',
            f"<header>\n<h1>{escape(title)}</h1>\n{_introduction(shown)}\n{_links(shown)}\n{_summary(words)}\n</header>",
            '<div class="frame">',
            _contents(shown, words),
            '<main id="main">',
            _part("The paper's figures and tables", [s for s in shown.sections if not s.ours], shown, words),
            _part("Ours", [s for s in shown.sections if s.ours], shown, words),
            _explorer(shown),
            "</main>",
            "</div>",
            _footer(shown),
        ]
    )
    css = (resources.files(__package__) / "page.css").read_text(encoding="utf-8")
    page = document(title, body, css).replace("<body>", '<body class="report">', 1)
    return page.replace("</style>", f"{colour_rules(page)}</style>", 1)


def _words(section: Section, shown: Page) -> Words | None:
    numbers = shown.outcomes[section.experiment].numbers
    return None if numbers is None else section.write(numbers)


# The top.


def _introduction(shown: Page) -> str:
    numbers = {name: outcome.numbers for name, outcome in shown.outcomes.items()}
    lede, mark = shown.selection.introduce(shown.settings, numbers)
    return f'<p class="lede">{typeset(lede)}</p>\n<p class="mark">{typeset(mark)}</p>'


def _links(shown: Page) -> str:
    """Where the paper is, and what lies beside this page."""
    beside = [("how this page was made", shown.manifest)] if shown.manifest else []
    links = [("The paper (USENIX Security 2024)", PAPER_PAGE), ("its full version (arXiv)", PAPER_FULL), *beside]
    return '<p class="links">' + " · ".join(_to(address, words) for words, address in links) + "</p>"


def _to(address: str, words: str) -> str:
    return f'<a href="{escape(address)}">{escape(words)}</a>'


def _summary(words: dict[str, Words | None]) -> str:
    """What the paper says and what is true: a few sentences, and claims beside exact values."""
    found = [one for one in words.values() if one is not None]
    headlines = [f"<li>{typeset(one.headline)}</li>" for one in found if one.headline]
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
    rows = [(fact.what, fact.claimed, fact.exact, chip(fact.verdict)) for fact in dict.fromkeys(facts)]
    return html_table(head, rows, "Claimed and exact privacy")


def _contents(shown: Page, words: dict[str, Words | None]) -> str:
    groups = [
        ("The paper", [section for section in shown.sections if not section.ours]),
        ("Ours", [section for section in shown.sections if section.ours]),
    ]
    parts = []
    for title, sections in groups:
        if sections:
            items = "\n".join(_link(section, words[section.name] is None) for section in sections)
            if title == "Ours" and _has_explorer(shown):
                items += '\n<li><a href="#explorer">Explore the exact curves</a></li>'
            heading = title if shown.manifest or all(found for _, found in groups) else "On this page"
            parts.append(f"<h2>{heading}</h2>\n<ul>\n{items}\n</ul>")
    return '<nav aria-label="Contents">\n' + "\n".join(parts) + "\n</nav>"


def _link(section: Section, missing: bool) -> str:
    opening = '<li class="missing">' if missing else "<li>"
    if section.ours:
        return f'{opening}<a href="#{section.name}">{typeset(section.title)}</a></li>'
    words = f'<span class="short">{section.place}</span><span class="long"> {typeset(section.title)}</span>'
    return f'{opening}<a href="#{section.name}">{words}</a></li>'


# Sections.


def _part(title: str, sections: list[Section], shown: Page, words: dict[str, Words | None]) -> str:
    if not sections:
        return ""
    parts = [f'<p class="part" role="heading" aria-level="2">{escape(title)}</p>'] if shown.manifest else []
    for section in sections:
        found = words[section.name]
        outcome = shown.outcomes[section.experiment]
        parts.append(_absent(section, outcome) if found is None else _section(section, found, outcome, shown))
    return "\n".join(parts)


def _heading(section: Section) -> str:
    place = f'<span class="place">{escape(section.place)}</span>' if section.place else ""
    return f'<h2 id="{section.name}-title">{place}{typeset(section.title)}</h2>'


def _section(section: Section, words: Words, outcome: Outcome, shown: Page) -> str:
    terms = [
        ("The setting", words.setting, ""),
        ("The paper says", words.paper, ""),
        ("We find", words.ours, ""),
        ("Exact privacy", words.privacy, ' class="exact failing"' if words.fails else ' class="exact"'),
    ]
    entries = "\n".join(f"<dt>{name}</dt><dd{kind}>{typeset(said)}</dd>" for name, said, kind in terms if said)
    large = [_figure(picture, section, shown) for picture in words.pictures if not picture.small]
    small = [_figure(picture, section, shown) for picture in words.pictures if picture.small]
    maps = '<div class="maps">\n' + "\n".join(small) + "\n</div>" if small else ""
    place = shown.numbers_file.format(outcome.experiment)
    files = f"All numbers of this section are in {_to(place, place)}; computed in {outcome.seconds:.0f} s."
    return "\n".join(
        [
            f'<section id="{section.name}" aria-labelledby="{section.name}-title">',
            _heading(section),
            f"<dl>\n{entries}\n</dl>",
            *large,
            maps,
            f'<p class="shows">{typeset(words.shows)}</p>',
            *words.tables,
            f'<p class="files">{files}</p>',
            "</section>",
        ]
    )


def _figure(picture: Picture, section: Section, shown: Page) -> str:
    content = shown.file(picture.file)
    title = f"<strong>{typeset(picture.title)}</strong>, " if picture.title else ""
    caption = f"<figcaption>{title}{typeset(picture.caption)}{_formats(picture, shown)}</figcaption>"
    alt = plain(picture.alt)
    if picture.file.endswith(".svg"):
        name = re.sub(r"\W", "-", f"{section.name}-{picture.file[:-4]}")
        inside = inline_svg(content, name, alt)
        narrow = " scale" if "-scale" in picture.file else ""
        label = escape(f"{picture.file[:-4]}, scrolls sideways")
        region = f'<div class="card{narrow}" role="region" tabindex="0" aria-label="{label}">'
        return f"<figure>{region}{inside}</div>{caption}</figure>"
    opening = '<figure class="bad">' if picture.failing else "<figure>"
    return f"{opening}{embedded(content, 'png', alt)}{caption}</figure>"


def _formats(picture: Picture, shown: Page) -> str:
    """Links to the picture's own files, where they lie beside the page."""
    if shown.beside is None or picture.small:
        return ""
    stem, kind = picture.file.rsplit(".", 1)
    names = [f"{stem}.{kind}", *([f"{stem}.png"] if kind == "svg" else [])]
    links = ", ".join(_to(shown.beside(name), name.rsplit(".", 1)[1].upper()) for name in names)
    return f' <span class="formats">As a file: {links}</span>'


def _absent(section: Section, outcome: Outcome) -> str:
    words = f"{_REMEDIES[outcome.status]}: {outcome.reason}"
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">\n{_heading(section)}\n'
        f'<p class="absent"><strong>Not in this report.</strong> {escape(words)}</p>\n</section>'
    )


def _has_explorer(shown: Page) -> bool:
    """Whether the exact curves, which the explorer belongs to, are part of a report."""
    return bool(shown.manifest) and any(section.name == "curves" for section in shown.sections)


def _explorer(shown: Page) -> str:
    """The exact-curve explorer, computed in the page."""
    if not _has_explorer(shown):
        return ""

    return (
        '<section id="explorer" aria-labelledby="explorer-title">\n'
        '<h2 id="explorer-title">Explore the exact curves</h2>\n'
        "<p>Move the sliders: every mechanism is calibrated for the target, as its source says or on its exact "
        "curve, and its exact privacy and expected loss are drawn, computed in this page. Deltas here are "
        "rounded up.</p>\n"
        f'<div class="explorer">{fragment()}</div>\n</section>'
    )


def _footer(shown: Page) -> str:
    missing = shown.missing
    state = (
        ""
        if not missing
        else f" {count_word(len(missing)).capitalize()} of {len(shown.outcomes)} computations are missing."
    )
    versions = ", ".join(f"{name} {version}" for name, version in store.versions().items())
    manifest = (
        f"The file {shown.manifest} has the versions, seeds, settings and times of this run, and the sha256 of every "
        "file. "
        if shown.manifest
        else ""
    )
    words = (
        f"Made by {versions}.{state} {manifest}Exact privacy is that of real-valued noise, as a bracket with both ends "
        "proved; where one number is shown, both ends round to it. Lines, bars and marks of the pictures show their "
        f"values when the pointer rests on them. The paper: {PAPER}; figure numbers are those of its "
    )
    return f"<footer>\n<p>{escape(words)}{_to(PAPER_FULL, 'full version')}.</p>\n</footer>"
