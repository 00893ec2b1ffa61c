"""Formulas as MathML, by its rules; words around them stay words; tables align what they hold."""

import re
from xml.etree import ElementTree

import pytest

from lessnoise_paper.formulas import mathml, plain, typeset
from lessnoise_paper.tables import html_table


def shape(formula):
    """The elements of a formula as nested lists, leaves as their text."""

    def of(element):
        return [element.tag, *map(of, element)] if len(element) else element.text

    return [of(element) for element in ElementTree.fromstring(mathml(formula))]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("C_R", [["msub", "C", "R"]]),
        ("5/sqrt 3", ["5", "/", ["msqrt", "3"]]),
        ("v = (-1, 2)", ["v", "=", ["mrow", "(", ["mrow", "\N{MINUS SIGN}", "1", ",", "2"], ")"]]),
        ("‖a‖_2 ≥ 1e-7", [["msub", ["mrow", "‖", "a", "‖"], "2"], "≥", "1e-7"]),
        ("E[L^2]^1.5", ["E", ["msup", ["mrow", "[", ["msup", "L", "2"], "]"], "1.5"]]),
        ("r^(1-M)", [["msup", "r", ["mrow", "1", "\N{MINUS SIGN}", "M"]]]),
        ("Φ⁻¹(δ)²", [["msup", "Φ", "\N{MINUS SIGN}1"], ["msup", ["mrow", "(", "δ", ")"], "2"]]),
        ("x_i^2", [["msubsup", "x", "i", "2"]]),
        ("x^2_i", [["msubsup", "x", "i", "2"]]),
        ("sqrt(8/H)", [["msqrt", ["mrow", "8", "/", "H"]]]),
        ("e^-x", [["msup", "e", ["mrow", "\N{MINUS SIGN}", "x"]]]),
        ("φ_*", [["msub", "φ", "\N{ASTERISK OPERATOR}"]]),
        ("MN ≥ 7,921", ["M", "N", "≥", "7,921"]),
        ("2 ln x", ["2", None, "ln", None, "x"]),
        ("f(x')", ["f", ["mrow", "(", "x\N{PRIME}", ")"]]),
    ],
)
def test_formulas_have_their_structure(formula, expected):
    assert shape(formula) == expected


@pytest.mark.parametrize("formula", ["E[L", "x^", "sqrt", "(a"])
def test_a_broken_formula_is_refused(formula):
    with pytest.raises(ValueError, match=re.escape(f"formula={formula!r}")):
        mathml(formula)


def test_words_keep_their_form_and_markup_is_escaped():
    made = typeset("By $a_1 < b$ & C_R, see map_file.py, data_x and 1e-7.")
    assert plain("By $a_1 < b$ & C_R.") == "By a_1 < b & C_R."
    assert (
        "<mo>&lt;</mo><mi>b</mi></math> &amp; <math><msub><mi>C</mi><mi>R</mi></msub></math>, see map_file.py" in made
    )
    assert made.endswith('data_x and <span class="whole">1e-7</span>.')


def test_numbers_stand_right_and_words_left():
    rows = [("a", "1e-7", "(1, 2)", "at least 0.2", "3% to 4.5%", ""), ("b", "1,234", "x", "unknown", "5 ± 0.1%", "")]
    found = re.findall(r"<td([^>]*)>", html_table("abcdef", rows, "all kinds"))
    text = ' class="text"'
    assert found == ["", text, "", "", text] * 2
    assert html_table("ab", rows=[("x", "word " * 9)], label="t").count('class="text wide"') == 1
