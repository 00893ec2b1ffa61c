"""What is wrong is said in one sentence, for people: in Python as an error, on the command line with exit code 2."""

import re

import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli import app

NEXT_SENTENCE = re.compile(r"[.!?]['\")]*\s+[A-Z]")


def refused(call, *words):
    """The one sentence of the error that a call must raise; it has these words."""
    with pytest.raises(ln.LessnoiseError) as caught:
        call()
    assert isinstance(caught.value, ln.InvalidInput)
    assert isinstance(caught.value, ValueError)
    sentence = str(caught.value)
    assert_one_sentence(sentence)
    assert ":" in sentence, f"what is wrong, then what to do: {sentence}"
    assert "object at 0x" not in sentence
    for word in words:
        assert word in sentence
    return sentence


def refused_command(words, *expected):
    """A command line that must end with exit code 2, nothing on standard output, and one sentence with these words."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    sentence = result.stderr.strip()
    assert_one_sentence(sentence)
    assert sentence.startswith("error: ")
    for text in expected:
        assert text in sentence


def assert_one_sentence(text):
    assert len(text.splitlines()) == 1, text
    assert text.endswith(".")
    assert not NEXT_SENTENCE.search(text), text
