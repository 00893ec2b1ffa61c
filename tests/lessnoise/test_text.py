"""Numbers as words, and what a report need not load."""

import math
import subprocess
import sys

import pytest

from lessnoise import text


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (999.96, "1000"), (1e-3, "0.001"), (123.456, "123.5"), (1e8, "1e8"), (math.inf, "infinite")],
)
def test_numbers_as_words(value, words):
    assert text.number(value) == words


@pytest.mark.slow
def test_importing_the_report_loads_neither_scipy_nor_matplotlib():
    heavy = "[m for m in ('scipy', 'matplotlib') if m in sys.modules]"
    code = f"import sys, lessnoise.report; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
