"""What is wrong with a command of the paper is told in one sentence, and nothing is written."""

import pytest

from tests.helpers.sentences import refused_command


@pytest.mark.parametrize("name", ["demo", "study uber"])
def test_unknown_options_and_stray_words(name):
    refused_command([*name.split(), "--epslion", "1"], "--epslion")


def test_folders_for_output_are_made_only_when_there_is_something_to_put_in(tmp_path):
    refused_command(["demo", "--epsilon", "0", "--out", tmp_path / "page"], "epsilon=0.0 must be above 0")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("precious")
    for words in (["demo"], ["study", "uber", "--data", "synthetic"]):
        refused_command([*words, "--out", tmp_path / "file"], f"out={tmp_path / 'file'} is a file", "name of a folder")
    assert (tmp_path / "file").read_text() == "precious"
