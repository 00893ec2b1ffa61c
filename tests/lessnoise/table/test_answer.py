"""What a table answers, kept: files that belong together, pictures, notebooks, and failures that leave nothing."""

import csv
import errno
import io
import json
import os
import pathlib
import stat
import tempfile

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import files
from lessnoise._display import to_png
from lessnoise.release import Payment
from lessnoise.table import TableFolder
from tests.helpers.sentences import refused

KEYS = ["Oslo", "Bergen", "=1+1"]
TARGET = {"epsilon": 1.0, "delta": 1e-6}


def question(*aggregates, keys=KEYS, **options):
    rng = np.random.default_rng(0)
    data = {"city": rng.choice(KEYS, 600), "age": rng.normal(45, 15, 600), "who": np.arange(600) // 2}
    asked = aggregates or (ln.count(), ln.mean("age", bounds=(0, 120)))
    return ln.Table(data, **options).group_by("city", keys=keys).aggregate(*asked)


@pytest.fixture(scope="module")
def answer():
    return question().release(**TARGET)


# Files.


def test_every_format_has_the_same_rows_and_the_certificate_vouches_for_them(answer, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    written = answer.save(tmp_path / "new" / "d", formats=["parquet", "csv", "json"])
    names = ["answer.parquet", "answer.csv", "answer.json", "answer.png", "certificate.json"]
    assert [path.name for path in written] == names
    assert sorted(path.name for path in (tmp_path / "new" / "d").iterdir()) == sorted(names)
    folder = written[0].parent
    rows = [dict(row) for row in answer.rows]
    assert json.loads((folder / "answer.json").read_text()) == rows
    assert parquet.read_table(folder / "answer.parquet").to_pylist() == rows
    read = list(csv.DictReader(io.StringIO((folder / "answer.csv").read_text())))
    assert [float(row["value"]) for row in read] == [row["value"] for row in rows]
    assert {row["city"] for row in read} == {"Oslo", "Bergen", "'=1+1"}, "no formula for a spreadsheet"
    assert (folder / "answer.png").read_bytes().startswith(b"\x89PNG")
    certificate = ln.TableAnswer.verify(folder)
    assert certificate["guarantee"] == answer.guarantee.to_dict()
    assert set(certificate["sha256"]) == set(names[:-1])
    assert len(certificate["releases"]) == 1, "a count and a mean share one"


@pytest.mark.parametrize("damage", ["changed", "missing", "certificate", "old"])
def test_a_folder_whose_files_do_not_belong_together_is_refused(answer, tmp_path, damage):
    answer.save(tmp_path, formats=["csv"])
    if damage == "changed":
        (tmp_path / "answer.csv").write_text((tmp_path / "answer.csv").read_text().replace("1", "2", 1))
    elif damage == "old":
        (tmp_path / "certificate.json").write_text("{}")
    else:
        (tmp_path / {"missing": "answer.csv", "certificate": "certificate.json"}[damage]).unlink()
    words = {"certificate": "has no certificate.json", "old": "nothing to verify"}
    refused(lambda: ln.TableAnswer.verify(tmp_path), words.get(damage, "SHA-256"))


def test_existing_files_are_kept_unless_forced(answer, tmp_path):
    answer.save(tmp_path, formats=["csv"])
    before = (tmp_path / "answer.csv").read_bytes()
    other = question(ln.count()).release(**TARGET)
    refused(lambda: other.save(tmp_path, formats=["csv"]), "exists already", "force")
    assert (tmp_path / "answer.csv").read_bytes() == before
    other.save(tmp_path, formats=["csv"], force=True)
    assert (tmp_path / "answer.csv").read_bytes() != before
    ln.TableAnswer.verify(tmp_path)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a, p: a.save(p, formats=["xlsx"]), "format='xlsx'"),
        (lambda a, p: a.save(p / "file" / "d"), "cannot be written"),
        (lambda a, p: a.save(p / "file"), "is a file"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(answer, tmp_path, call, words):
    (tmp_path / "file").write_text("precious")
    refused(lambda: call(answer, tmp_path), words)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("step", ["write", "_place"])
def test_a_write_that_fails_leaves_nothing(answer, tmp_path, monkeypatch, step):
    holder = files if step == "_place" else files.Staged
    done = getattr(holder, step)

    def fail(*arguments):
        if any(str(each).endswith(".png") for each in arguments):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done(*arguments)

    monkeypatch.setattr(holder, step, fail)
    with pytest.raises(OSError, match="No space left"):
        answer.save(tmp_path / "new" / "d", formats=["csv"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that are killed")
def test_a_killed_write_never_leaves_a_certificate_without_its_files(answer, tmp_path):
    """The process dies at each of its steps in turn: there is all of it, or no certificate."""
    place, ended = files._place, []
    for step in range(4):
        folder = tmp_path / str(step)
        child = os.fork()
        if child == 0:
            done = []

            def dying(*arguments, done=done, step=step):
                if len(done) == step:
                    os._exit(9)
                done.append(arguments)
                place(*arguments)

            files._place = dying
            answer.save(folder, formats=["csv"])
            os._exit(0)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        if ended[-1]:
            refused(lambda folder=folder: ln.TableAnswer.verify(folder), "has no certificate.json")
        else:
            ln.TableAnswer.verify(folder)
    assert ended == [9, 9, 9, 0]


def test_rows_and_certificate_in_one_file(answer, tmp_path):
    answer.write(tmp_path / "a.json")
    read = json.loads((tmp_path / "a.json").read_text())
    assert read["rows"] == [dict(row) for row in answer.rows]
    assert read["certificate"]["private"] is True
    refused(lambda: answer.write(tmp_path / "a.json"), "exists already")


# Payments.


def test_a_trial_is_as_long_as_a_release_and_true_to_nothing(tmp_path):
    asked = question(ln.count(), ln.sum("age", bounds=(0, 120)), ln.quantiles("age", [0.5], bounds=(0, 120)))
    job = asked.prepare(**TARGET)
    folder = TableFolder(tmp_path, ["csv", "json", "parquet"])
    trial, made = folder.contents(job.trial()), folder.contents(job.release(job.answer()))
    assert list(trial) == list(made)
    for name, content in made.items():
        assert len(content) <= 2 * len(trial[name]) + (1 << 14)


def test_a_paid_answer_that_cannot_be_written_is_in_the_error(tmp_path, monkeypatch):
    ledger = ln.Ledger.open(tmp_path / "a.ledger", epsilon=2, delta=1e-5)
    made = question().release(**TARGET, ledger=ledger)
    with (
        pytest.raises(ln.PaidNotReleased, match=r"in this error's \.release") as caught,
        Payment(ledger, made.receipt, made),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.release is made
    assert caught.value.receipt.id == ledger.count() == 1


def test_memory_for_intervals_is_there_before_the_payment(tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError

    ledger = ln.Ledger.open(tmp_path / "a.ledger", epsilon=2, delta=1e-5)
    monkeypatch.setattr("lessnoise.table.plan.Part.noise", fail)
    with pytest.raises(MemoryError):
        question().release(**TARGET, ledger=ledger)
    assert ledger.count() == 0


def test_a_seeded_answer_repeats_and_says_that_it_is_not_private():
    first, second = (question().release(**TARGET, rng=np.random.default_rng(5)) for _ in range(2))
    assert first.rows == second.rows
    assert not first.private
    assert "NO: the noise came from a seeded generator" in first._repr_html_()
    assert to_png(first) == to_png(second)


def test_a_seeded_answer_without_groups_is_not_private_either():
    asked = ln.Table({"city": np.array(["Hell"])}).group_by("city").aggregate(ln.count())
    answer = asked.release(**TARGET, rng=np.random.default_rng(5))
    assert answer.rows == ()
    assert not answer.private
    assert asked.release(**TARGET).private
    assert to_png(answer).startswith(b"\x89PNG")
    assert "Hell" not in answer._repr_html_() + answer.to_json()


# Pictures and notebooks.


def test_a_panel_for_each_statistic_with_the_values_and_intervals_of_the_rows():
    answer = question(
        ln.count(), ln.mean("age", bounds=(0, 120)), ln.quantiles("age", [0.1, 0.5, 0.9], bounds=(0, 120))
    ).release(**TARGET)
    figure = answer.plot()
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == [row["statistic"] for row in answer.rows[:5]]
    for axes in shown:
        rows = [row for row in answer.rows if row["statistic"] == axes.get_title(loc="left")]
        assert axes.lines[0].get_xdata().tolist() == [row["value"] for row in rows]
        ends = [segment[:, 0].tolist() for segment in axes.collections[0].get_segments()]
        assert ends == [[row["lower"], row["upper"]] for row in rows]
        low, high = axes.get_xlim()
        assert low < min(row["lower"] for row in rows) <= max(row["upper"] for row in rows) < high
    assert [label.get_text() for label in shown[0].get_yticklabels()] == KEYS


def test_one_statistic_on_axes_of_the_callers(answer):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert question(ln.count()).release(**TARGET).plot(axes) is axes.figure
    assert axes.get_title(loc="left") == "count"
    refused(lambda: answer.plot(axes), "room for one statistic")


@pytest.mark.parametrize("name", ["fare_$ and tip_$", "$\\frac{", "two\nlines\r", "x" * 3000, "<b>&amp;", "=a"])
def test_every_name_can_be_written_drawn_and_shown(name, tmp_path):
    data = {name: np.array([name, "other"])}
    answer = ln.Table(data).group_by(name, keys=[name, "other"]).aggregate(ln.count()).release(**TARGET)
    made = TableFolder(tmp_path, ["csv", "json"]).contents(answer)
    assert [row[name] for row in json.loads(made["answer.json"])] == [name, "other"]
    assert made["answer.png"].startswith(b"\x89PNG")
    assert "<b>&amp;" not in answer._repr_html_()


def test_many_groups_are_drawn_and_shown_within_limits():
    data = {"k": np.arange(500)}
    answer = ln.Table(data).group_by("k", keys=list(range(500))).aggregate(ln.count()).release(**TARGET)
    assert len(answer.plot().axes[0].get_yticklabels()) <= 60
    assert to_png(answer).startswith(b"\x89PNG")
    assert answer._repr_html_().count("<tr") < 50


def test_notebooks_show_guarantee_rules_and_rows(answer):
    shown = answer._repr_html_()
    for words in (str(answer.guarantee), "one row", "are clipped to", "mean of age", f"{answer.rows[1]['value']:.6g}"):
        assert words in shown
    users = question(unit=ln.Unit("who", max_rows=2)).release(**TARGET)
    assert "one user by &#x27;who&#x27;" in users._repr_html_()


@pytest.mark.parametrize("name", ["statistic", "value", "lower", "upper"])
def test_a_group_may_not_have_the_name_of_a_column_of_the_answer(name):
    table = ln.Table({name: np.array(["a", "b"])})
    refused(lambda: table.group_by(name, keys=["a"]).aggregate(ln.count()), name, "rename")


def test_temporary_files_are_not_for_others(answer, tmp_path, monkeypatch):
    seen, make = [], tempfile.mkstemp

    def watch(**options):
        handle, name = make(**options)
        seen.append(stat.S_IMODE(pathlib.Path(name).stat().st_mode))
        return handle, name

    monkeypatch.setattr(tempfile, "mkstemp", watch)
    answer.save(tmp_path / "d", formats=["csv"])
    assert seen == [0o600] * 3
