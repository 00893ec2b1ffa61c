"""Names and labels from outside: no spreadsheet, terminal or browser obeys them."""

import csv
import io

import numpy as np
import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli.app import app
from lessnoise.harmless import csv_text, printable
from lessnoise.tasks.histogram import counts_file

FORMULAS = [
    '=HYPERLINK("http://example.org?x="&A1,"click")', "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1+1",
    "=cmd|' /C calc'!A0", "\uff1d1+1",
]  # fmt: skip


def test_no_cell_of_text_starts_as_a_formula_does():
    rows = [[*FORMULAS, "plain", 'quo"ted', "a,b", "two\nlines", "=", ""], [-1.5, -3, 0, True, None, 1e-300]]
    first, second = csv.reader(io.StringIO(csv_text(rows)))
    for before, after in zip(rows[0], first, strict=True):
        assert not after.lstrip(" ").startswith(tuple("=+-@\t\r\n\uff1d"))
        assert after in (before, f"'{before}")
    assert [float(cell) for cell in second[:3]] == [-1.5, -3.0, 0.0]
    assert second[5] == "1e-300"


def test_the_counts_of_hostile_columns_and_keys():
    query = ln.Histogram((ln.Axis("=evil", keys=FORMULAS), ln.Axis("-x", bounds=(-1, 1), bins=2)))
    data = {"=evil": np.array(FORMULAS[:2], dtype=object), "-x": np.array([0.5, -0.5])}
    made = ln.private_histogram(data, query, epsilon=1, delta=1e-6)
    head, *rows = csv.reader(io.StringIO(counts_file(made, "csv").decode(), newline=""))
    assert head == ["'=evil", "'-x from", "'-x to", "count"]
    assert [row[0] for row in rows[::2]] == [f"'{key}" for key in FORMULAS]
    assert {row[1] for row in rows} == {"-1.0", "0.0"}
    np.testing.assert_array_equal([float(row[3]) for row in rows], made.value.ravel())


@pytest.mark.parametrize(
    "text", ["\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\u202egnp", "a\rb", "\ud800", "\x00", "\x7f"]
)
def test_what_a_terminal_would_obey_is_written_as_an_escape(text):
    shown = printable(f"before {text} after")
    assert shown.isprintable()
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    shown.encode()
    assert str(ln.InvalidInput(f"name={text} will not do.")).isprintable()


@pytest.mark.parametrize(
    "name", ["[red]x[/red]", "[/]", "[link=http://example.org]x[/link]", "[a]", ":smile:", "\x1b[31mx"]
)
def test_the_console_shows_names_as_they_are(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "trips.csv").write_text(f'"{name}",x\nu1,1\nu2,2\n', encoding="utf-8")
    command = ["histogram", "data/trips.csv", "--x", "x", "--bins", "2", "--bounds", "0:4", "--unit", name]
    goal = ["--max-rows", "1", "--epsilon", "1", "--delta", "1e-6", "--out", "out"]
    result = CliRunner().invoke(app, [*command, *goal])
    assert printable(name) in result.output.replace("\n", " "), result.output
    assert "\x1b" not in result.output


def test_pages_and_tables_escape_names():
    evil = "<script>alert(1)</script>"
    mechanism = ln.Mechanism(evil, ln.Laplace(1.0), (2,), 1.0, claim=ln.Claim(1, 1e-6, source=evil))
    release = mechanism.release(np.zeros(2))
    for thing in (mechanism, mechanism.check(), mechanism.repeat(2), release, release.certificate):
        assert "<script" not in thing._repr_html_()
