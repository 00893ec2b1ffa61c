"""Formulas in words: between dollar signs they are written as one types them, and shown as MathML.

``$E[L^3]/E[L^2]^1.5$`` has indices after ``_``, powers after ``^`` and roots after ``sqrt``; round brackets hold what
belongs together, and vanish there: ``$r^(1-M)$``. A letter with an index of one sign, as in ``C_R``, is a formula
without dollar signs too.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from lessnoise.report import prose

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKED = re.compile(r"\$([^$\n]+)\$|(?<![\w/.-])([A-Za-z]_[A-Za-z0-9])(?![\w/]|\.\w)")
_TOKEN = re.compile(r"\s*(\d+(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?(?:e-?\d+)?|[^\W\d_]+'*|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+|[<>]=|\S)")
_MINUS, _ASTERISK, _PRIME = "\N{MINUS SIGN}", "\N{ASTERISK OPERATOR}", "\N{PRIME}"
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", f"0123456789{_MINUS}")
_BRACKETS = {"(": ")", "[": "]", "⟨": "⟩", "|": "|", "‖": "‖"}
_FUNCTIONS = frozenset({"ln", "log", "exp", "cos", "sin", "max", "min", "sqrt"})
_SIGNS = {"-": _MINUS, "*": _ASTERISK, ">=": "≥", "<=": "≤"}
_SPACE = re.compile(r"(?<=[\w)\]⁻²³']) +(?=[\w(√])")  # between two things that are multiplied, say


def typeset(words: str) -> str:
    """Words as HTML, with their formulas as MathML.

    >>> typeset("C_R < 1")
    '<math><msub><mi>C</mi><mi>R</mi></msub></math> &lt; 1'
    """
    parts, end = [], 0
    for found in _MARKED.finditer(words):
        parts += [prose(words[end : found.start()]), mathml(found.group(1) or found.group(2))]
        end = found.end()
    return "".join(parts) + prose(words[end:])


def plain(words: str) -> str:
    """Words for places without markup, such as a terminal.

    >>> plain("it falls like $r^(1-M)$")
    'it falls like r^(1-M)'
    """
    return _MARKED.sub(lambda found: found.group(1) or found.group(2), words)


def mathml(formula: str) -> str:
    """One formula as an element of a page.

    >>> mathml("sqrt(M - 1)")
    '<math><msqrt><mrow><mi>M</mi><mo>−</mo><mn>1</mn></mrow></msqrt></math>'
    """
    tokens = list(_single(_TOKEN.findall(_SPACE.sub("~", formula))))
    place, elements = 0, []
    while place < len(tokens):
        element, place = _scripted(tokens, place, formula)
        elements.append(element)
    return f"<math>{''.join(elements)}</math>"


def _single(tokens: list[str]) -> Iterator[str]:
    """Letters side by side are symbols of their own, but for the names of functions."""
    for token in tokens:
        if token[0].isalpha() and token not in _FUNCTIONS:
            yield from re.findall(r"\w'*", token)
        else:
            yield token


def _scripted(tokens: list[str], place: int, formula: str) -> tuple[str, int]:
    """An element with what stands below and above it, and the place after it."""
    base, place = _element(tokens, place, formula)
    scripts: dict[str, str] = {}
    while place < len(tokens):
        token = tokens[place]
        if token in ("_", "^"):
            negative = tokens[place + 1 : place + 2] in (["-"], [_MINUS])
            scripts[token], place = _element(tokens, place + 1 + negative, formula, grouped=True)
            if negative:
                scripts[token] = _row([f"<mo>{_MINUS}</mo>", scripts[token]])
        elif token[0] in "⁰¹²³⁴⁵⁶⁷⁸⁹⁻":
            scripts["^"], place = f"<mn>{token.translate(_RAISED)}</mn>", place + 1
        else:
            break
    name = {"_": "msub", "^": "msup", "_^": "msubsup"}.get("".join(sorted(scripts, reverse=True)), "")
    return (f"<{name}>{base}{''.join(scripts[s] for s in '_^' if s in scripts)}</{name}>" if name else base), place


def _element(tokens: list[str], place: int, formula: str, *, grouped: bool = False) -> tuple[str, int]:
    """One element from a place on; round brackets of one that is ``grouped`` are left out."""
    if place >= len(tokens):
        raise ValueError(f"formula={formula!r} ends too early: something must follow its last sign.")
    token = tokens[place]
    if token in ("sqrt", "√"):
        after = place + 1 + (tokens[place + 1 : place + 2] == ["~"])
        inside, place = _element(tokens, after, formula, grouped=True)
        return f"<msqrt>{inside}</msqrt>", place
    if token in _BRACKETS:
        elements, place = _until(_BRACKETS[token], tokens, place + 1, formula)
        if not (grouped and token == "("):
            inner = [_row(elements)] if elements else []
            elements = [_bracket(token), *inner, _bracket(_BRACKETS[token])]
        return _row(elements), place
    return _leaf(token), place + 1


def _until(closing: str, tokens: list[str], place: int, formula: str) -> tuple[list[str], int]:
    elements = []
    while tokens[place : place + 1] != [closing]:
        if place >= len(tokens):
            raise ValueError(f"formula={formula!r} lacks a closing {closing}.")
        element, place = _scripted(tokens, place, formula)
        elements.append(element)
    return elements, place + 1


def _leaf(token: str) -> str:
    if token[0].isdigit():
        return f"<mn>{token}</mn>"
    if token[0].isalpha():
        name = token.rstrip("'")
        return f"<mi>{name}{_PRIME * (len(token) - len(name))}</mi>"
    if token == "~":
        return '<mspace width="0.2em"/>'
    if token == "/":
        return '<mo lspace="0" rspace="0">/</mo>'
    return f"<mo>{escape(_SIGNS.get(token, token))}</mo>"


def _bracket(sign: str) -> str:
    return f'<mo stretchy="false">{sign}</mo>'


def _row(elements: list[str]) -> str:
    return elements[0] if len(elements) == 1 else f"<mrow>{''.join(elements)}</mrow>"
