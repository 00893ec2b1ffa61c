"""What a new user meets when something is wrong: one sentence with name=value and the remedy, and exit code 2."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lessnoise.cli import app, run

RUNNER = CliRunner()
GOAL = ["--sensitivity", "1", "--epsilon", "0.5", "--delta", "1e-7"]
SHAPED = ["--shape", "4", *GOAL]
COMMANDS = {
    "plan": SHAPED,
    "check": ["l2", *SHAPED],
    "audit": ["l2", *SHAPED, "--samples", "1000"],
    "release": ["IN", "OUT", *GOAL],
    "ledger spend": ["LEDGER", "l2", *SHAPED],
    "histogram": [
        "DATA",
        "--x",
        "a",
        "--bins",
        "4",
        "--bounds",
        "0:1",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--out",
        "DIR",
    ],
}


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "in.npy", np.arange(4.0))
    (tmp_path / "data.csv").write_text("a\n0.5\n0.25\n")
    assert (
        RUNNER.invoke(app, ["ledger", "create", str(tmp_path / "l"), "--epsilon", "9", "--delta", "1e-5"]).exit_code
        == 0
    )
    return {"IN": "in.npy", "OUT": "out.npy", "LEDGER": "l", "DATA": "data.csv", "DIR": "counts"}


def command(name, files, folder, **changed):
    """The working command line, with some options set to other values."""
    words = [str(folder / files[word]) if word in files else word for word in COMMANDS[name]]
    for option, value in changed.items():
        flag = "--" + option.replace("_", "-")
        if flag in words:
            words[words.index(flag) + 1] = value
        else:
            words += [flag, value]
    return [*name.split(), *words]


def one_sentence(words, *expected):
    result = RUNNER.invoke(app, [str(word) for word in words])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert lines[0].endswith(".")
    assert not re.search(r"[.!?]['\")]*\s+[A-Z]", lines[0])
    for text in expected:
        assert text in lines[0]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("epsilon", "abc", "epsilon='abc' is not a number"),
        ("epsilon", "", "epsilon='' is not a number"),
        ("epsilon", "0", "epsilon=0.0 must be above 0"),
        ("epsilon", "-1", "epsilon=-1.0 must be above 0"),
        ("epsilon", "nan", "epsilon=nan is not finite"),
        ("epsilon", "inf", "epsilon=inf is not finite"),
        ("delta", "1", "delta=1.0 must lie strictly between 0 and 1"),
        ("delta", "-1e-6", "delta=-1e-06 must lie strictly between 0 and 1"),
        ("delta", "0", "delta=0.0 must lie strictly between 0 and 1"),
        ("delta", "1e-250", "delta=1e-250 is below 1e-200"),
    ],
)
def test_bad_targets(name, option, value, words, files, tmp_path):
    before = sorted(tmp_path.iterdir())
    one_sentence(command(name, files, tmp_path, **{option: value}), words, ":")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["plan", "check", "audit", "release", "ledger spend"])
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("sensitivity", "0", "sensitivity=0.0 must be above 0"),
        ("sensitivity", "nan", "sensitivity=nan is not finite"),
        ("l1_sensitivity", "-2", "l1_sensitivity=-2.0 must be above 0"),
        ("objective", "smallest", "objective='smallest'"),
        ("bound", "x", "bound='x' is not a number"),
    ],
)
def test_bad_settings_of_the_noise(name, option, value, words, files, tmp_path):
    one_sentence(command(name, files, tmp_path, **{option: value}), words)


@pytest.mark.parametrize("name", ["plan", "check", "audit", "ledger spend"])
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("abc", "shape='abc' is not a shape: write 7921 or 89x89"),
        ("0", "must hold whole numbers of at least 1"),
        ("3x-1", "must hold whole numbers of at least 1"),
        ("2.5", "shape='2.5' is not a shape"),
        ("10000000x10000000", "has more than 1000000000000 entries"),
    ],
)
def test_bad_shapes(name, shape, words, files, tmp_path):
    one_sentence(command(name, files, tmp_path, shape=shape), words)


@pytest.mark.parametrize("name", ["check", "audit", "ledger spend"])
def test_an_unknown_mechanism_gets_a_suggestion(name, files, tmp_path):
    words = ["lapalce" if word == "l2" else word for word in command(name, files, tmp_path)]
    one_sentence(words, "mechanism='lapalce' is not known: perhaps 'laplace' is meant")


@pytest.mark.parametrize("name", ["release", "histogram"])
def test_an_unknown_mechanism_by_option(name, files, tmp_path):
    one_sentence(
        command(name, files, tmp_path, mechanism="bset"), "mechanism='bset' is not known: perhaps 'best' is meant"
    )


@pytest.mark.parametrize("name", ["release", "histogram", "audit"])
@pytest.mark.parametrize(
    ("seed", "words"), [("-1", "seed=-1 must be at least 0"), ("x", "seed='x' is not a whole number")]
)
def test_bad_seeds(name, seed, words, files, tmp_path):
    one_sentence(command(name, files, tmp_path, seed=seed), words)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_arguments_name_what_is_needed(name):
    one_sentence(name.split(), "is missing:", f"{name} needs", f"{name} --help'")


@pytest.mark.parametrize("name", [*COMMANDS, "claims", "demo", "frontier", "selftest", "ledger show", "study uber"])
def test_unknown_options_and_stray_words(name):
    one_sentence([*name.split(), "--epslion", "1"], "--epslion")


def test_an_unknown_command_gets_a_suggestion():
    one_sentence(["plann"], "plann", "'plan'")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a readable .npy array"),
        (b"\x93NUMPY\x01\x00", "is not a readable .npy array"),
        (b"1,2,3\n", "is not a readable .npy array"),
        (b"PK\x03\x04rest of a zip", "is not a readable .npy array"),
    ],
)
def test_corrupt_arrays(content, words, files, tmp_path):
    (tmp_path / "in.npy").write_bytes(content)
    one_sentence(command("release", files, tmp_path), words, "write it with numpy.save")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([1.0, np.nan, 1.0]), "value[1]=nan is not finite"),
        (np.array(["a"]), "dtype=<U1 is not numeric"),
        (np.array([1j]), "dtype=complex128"),
        (np.zeros(0), "shape=(0,)"),
    ],
)
def test_unusable_arrays(value, words, files, tmp_path):
    np.save(tmp_path / "in.npy", value)
    one_sentence(command("release", files, tmp_path), words)
    assert not (tmp_path / "out.npy").exists()


def test_files_that_are_not_there(files, tmp_path):
    one_sentence(["release", tmp_path / "none.npy", tmp_path / "out.npy", *GOAL], "none.npy does not exist")
    one_sentence(["release", tmp_path, tmp_path / "out.npy", *GOAL], f"input={tmp_path}")
    one_sentence(["release", tmp_path / "in.npy", tmp_path / "no" / "out.npy", *GOAL], "create", "first")
    one_sentence(["ledger", "show", tmp_path / "none"], "none")
    one_sentence(["ledger", "show", tmp_path / "in.npy"], "in.npy")
    one_sentence(["histogram", tmp_path / "none.csv", *COMMANDS["histogram"][1:-1], tmp_path / "d"], "none.csv")
    one_sentence(["histogram", tmp_path / "in.npy", *COMMANDS["histogram"][1:-1], tmp_path / "d"], "in.npy")


def test_output_that_exists(files, tmp_path):
    (tmp_path / "out.npy").write_text("precious")
    one_sentence(command("release", files, tmp_path), "out.npy exists already", "--force")
    assert (tmp_path / "out.npy").read_text() == "precious"
    (tmp_path / "folder").mkdir()
    one_sentence(["release", tmp_path / "in.npy", tmp_path / "folder", *GOAL], "is a folder")


def test_an_input_without_permission(files, tmp_path, monkeypatch):
    def refused(path, *_, **__):  # what the system does to anyone but root
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "open", refused)
    one_sentence(command("release", files, tmp_path), "in.npy", "ermission denied")


def test_an_output_that_cannot_be_written_is_told_before_the_ledger_pays(files, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode, **_: not mode & os.W_OK)
    one_sentence(
        ["release", tmp_path / "in.npy", tmp_path / "out.npy", *GOAL, "--ledger", tmp_path / "l"],
        f"output={tmp_path / 'out.npy'}",
        "may not be written",
    )
    monkeypatch.undo()
    shown = RUNNER.invoke(app, ["ledger", "show", str(tmp_path / "l"), "--json"])
    assert json.loads(shown.stdout)["records"] == 0


# As processes: pipes, signals, names of files, terminals.


def start(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "lessnoise", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


def test_a_closed_pipe_ends_the_run_without_a_word():
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [sys.executable, "-m", "lessnoise", "plan", *SHAPED, "--json"], stdout=writer, stderr=subprocess.PIPE
    ) as process:
        os.close(writer)
        _, errors = process.communicate()
    assert errors == b""
    assert process.returncode == 141


def test_an_interrupt_is_told_and_leaves_nothing(files, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(os, "link", interrupted)  # all is computed, and the file is about to appear
    result = RUNNER.invoke(app, [*command("release", files, tmp_path), "--mechanism", "l2"])
    assert (result.exit_code, result.stderr) == (130, "interrupted: no half-written file is left.\n")
    assert sorted(tmp_path.iterdir()) == before


def test_an_interrupt_outside_a_command_ends_the_run_too(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setitem(run.__globals__, "app", interrupted)
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 130


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
def test_names_that_are_not_utf_8(tmp_path):
    name = os.fsdecode(bytes(tmp_path) + b"/\xff\xfe.npy")
    missing = start("release", name, str(tmp_path / "out.npy"), *GOAL)
    _, errors = missing.communicate()
    assert missing.returncode == 2
    assert b"does not exist" in errors
    assert b"Traceback" not in errors
    np.save(name, np.arange(3.0))
    good = start("release", name, name + "2.npy", *GOAL)
    output, errors = good.communicate()
    assert (good.returncode, errors) == (0, b"")
    assert b"wrote" in output


def test_a_narrow_terminal_without_colour():
    process = start("check", "r1smg", *SHAPED, env={**os.environ, "NO_COLOR": "1", "COLUMNS": "40", "TERM": "xterm"})
    output, errors = process.communicate()
    assert process.returncode == 1
    assert b"\x1b" not in output + errors
    assert b"FAILS" in output


def test_folders_for_output_are_made_only_when_there_is_something_to_put_in(tmp_path):
    one_sentence(["demo", "--epsilon", "0", "--out", tmp_path / "page"], "epsilon=0.0 must be above 0")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("precious")
    for words in (["demo"], ["study", "uber", "--data", "synthetic"]):
        one_sentence([*words, "--out", tmp_path / "file"], f"out={tmp_path / 'file'} is a file", "name of a folder")
    assert (tmp_path / "file").read_text() == "precious"


def test_an_audit_that_would_not_end(files, tmp_path):
    words = command("audit", files, tmp_path, shape="1000000", samples="10000000")
    one_sentence(words, "samples=10000000 releases of 1000000 entries", "pass fewer samples")


def test_tables_that_are_empty_or_folders(files, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    rest = command("histogram", files, tmp_path)[2:]
    one_sentence(["histogram", tmp_path / "empty.csv", *rest], "empty.csv is empty")
    one_sentence(["histogram", tmp_path, *rest], "is a folder", "*.parquet")


def test_a_ledger_that_is_not_there(files, tmp_path):
    one_sentence(command("release", files, tmp_path, ledger=str(tmp_path / "none")), "lessnoise ledger create")
    assert not (tmp_path / "none").exists()
