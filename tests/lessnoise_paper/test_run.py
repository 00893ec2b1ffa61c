"""The run of the report: what is kept, what is computed again, and what a failure costs."""

import json
import sys
import time

import pytest
from typer.testing import CliRunner

from lessnoise import InvalidInput
from lessnoise.cli import app
from lessnoise.errors import MissingExtra
from lessnoise_paper import Experiment, Picture, Result, Section, Settings, Words, registry, reproduce, store
from lessnoise_paper import run as run_module

PICTURE = b'<svg viewBox="0 0 1 1"><g style="fill: #222222"></g></svg>'


class Toy:
    """Three small computations that count how often they run, and do what they are told."""

    def __init__(self):
        self.calls = []
        self.trouble = {}
        self.works = {name: Experiment(name, self.parameters, self.maker(name)) for name in ("one", "two", "three")}
        self.sections = tuple(
            Section(f"fig-{name}", f"Picture {name}", "Figure 1" if name == "one" else "", name, self.words(name))
            for name in self.works
        )

    @staticmethod
    def parameters(settings):
        return {"seed": settings.seed, "size": 1 if settings.quick else 2}

    def maker(self, name):
        def make(folder, progress, *, seed, size):
            self.calls.append(name)
            progress("half way", 1, 2)
            if name in self.trouble:
                raise self.trouble[name]
            return Result({"value": seed + size}, {f"{name}.svg": PICTURE})

        return make

    @staticmethod
    def words(name):
        def write(numbers):
            picture = Picture(f"{name}.svg", f"The value {numbers['value']}", "A caption")
            return Words("setting", "", f"value {numbers['value']}", "exact delta 0.5", "shows", (picture,))

        return write


@pytest.fixture
def toy(monkeypatch):
    toy = Toy()
    monkeypatch.setattr(registry, "EXPERIMENTS", toy.works)
    monkeypatch.setattr(registry, "SECTIONS", toy.sections)
    return toy


def statuses(run):
    return {name: outcome.status for name, outcome in run.outcomes.items()}


# What is kept.


def test_a_second_run_computes_nothing_and_writes_the_same_page(toy, tmp_path):
    first = reproduce(tmp_path, jobs=1)
    page = (tmp_path / "index.html").read_bytes()
    second = reproduce(tmp_path, jobs=1)
    assert toy.calls == ["one", "two", "three"]
    assert statuses(first) == dict.fromkeys(toy.works, "made")
    assert statuses(second) == dict.fromkeys(toy.works, "kept")
    assert (tmp_path / "index.html").read_bytes() == page
    assert second.complete


@pytest.mark.parametrize("settings", [Settings(seed=1), Settings(quick=True)])
def test_changed_settings_are_computed_again(toy, tmp_path, settings):
    reproduce(tmp_path, jobs=1)
    run = reproduce(tmp_path, settings, jobs=1)
    assert statuses(run) == dict.fromkeys(toy.works, "made")
    assert run.outcomes["one"].numbers == {"value": settings.seed + (1 if settings.quick else 2)}


def test_changed_code_is_computed_again(toy, tmp_path, monkeypatch):
    reproduce(tmp_path, jobs=1)
    monkeypatch.setattr(store, "code_hash", lambda: "another")
    assert statuses(reproduce(tmp_path, jobs=1)) == dict.fromkeys(toy.works, "made")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("data/two.json", b'{"experiment": "two"'),
        ("data/two.json", b"[]"),
        ("data/two.json", 10**5 * b"["),
        ("data/two.json", None),
        ("figures/two.svg", b"<svg></svg>"),
        ("figures/two.svg", None),
    ],
)
def test_a_damaged_result_is_computed_again_and_others_are_kept(toy, tmp_path, file, content):
    reproduce(tmp_path, jobs=1)
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_bytes(content)
    run = reproduce(tmp_path, jobs=1)
    assert statuses(run) == {"one": "kept", "two": "made", "three": "kept"}
    assert (tmp_path / "figures" / "two.svg").read_bytes() == PICTURE


def test_an_edited_number_is_computed_again(toy, tmp_path):
    first = reproduce(tmp_path, jobs=1)
    file = tmp_path / "data" / "two.json"
    record = json.loads(file.read_bytes())
    file.write_text(json.dumps({**record, "numbers": {"value": 1e9}}))
    run = reproduce(tmp_path, jobs=1)
    assert statuses(run) == {"one": "kept", "two": "made", "three": "kept"}
    assert run.outcomes["two"].numbers == first.outcomes["two"].numbers


def test_an_interrupted_run_loses_only_what_was_under_way(toy, tmp_path):
    toy.trouble["two"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, jobs=1)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["one.json", "one.svg"]
    toy.trouble.clear()
    assert statuses(reproduce(tmp_path, jobs=1)) == {"one": "kept", "two": "made", "three": "made"}


def test_a_result_that_cannot_be_stored_leaves_nothing_behind(toy, tmp_path):
    toy.works["two"] = Experiment(
        "two", toy.parameters, lambda *_, **__: Result({"value": float("nan")}, {"two.svg": PICTURE})
    )
    run = reproduce(tmp_path, jobs=1)
    assert statuses(run) == {"one": "made", "two": "failed", "three": "made"}
    assert not (tmp_path / "figures" / "two.svg").exists()


# What a failure costs.


@pytest.mark.parametrize(
    ("trouble", "status"),
    [
        (InvalidInput("data=None: save the file in a folder."), "left out"),
        (MissingExtra("scikit-learn is missing: pip install 'lessnoise[sklearn]'."), "left out"),
        (ImportError("no module"), "left out"),
        (ZeroDivisionError("division by <zero>"), "failed"),
    ],
)
def test_one_that_cannot_run_is_named_at_its_place_and_others_are_there(toy, tmp_path, trouble, status):
    toy.trouble["two"] = trouble
    run = reproduce(tmp_path, jobs=1)
    assert statuses(run) == {"one": "made", "two": status, "three": "made"}
    assert not run.complete
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    place = page[page.index('<section id="fig-two"') : page.index('<section id="fig-three"')]
    assert "Not in this report." in place
    assert "value 2" in page
    assert "<zero>" not in page
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["experiments"]["two"]["status"] == status
    assert str(trouble) in manifest["experiments"]["two"]["reason"]
    assert "data/two.json" not in manifest["files"]


def test_what_is_missing_comes_with_how_to_get_it(tmp_path, monkeypatch):
    for name in ["sklearn", "sklearn.datasets", *(name for name in sys.modules if name.startswith("sklearn."))]:
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "empty").mkdir()
    only = ["fig-6"]
    without_library = reproduce(tmp_path / "a", Settings(quick=True), only, 1)
    assert "lessnoise[sklearn]" in without_library.outcomes["pca"].reason
    without_data = reproduce(tmp_path / "b", Settings(data=str(tmp_path / "empty")), [*only, "fig-4"], 1)
    assert statuses(without_data) == {"pca": "left out", "counts": "left out"}
    for outcome in without_data.missing:
        assert "--data FOLDER" in outcome.reason
        assert "https://" in outcome.reason
    page = (tmp_path / "b" / "index.html").read_text(encoding="utf-8")
    assert page.count("Not in this report.") == 2


def test_a_stale_result_does_not_stand_in_for_one_that_failed(toy, tmp_path):
    reproduce(tmp_path, jobs=1)
    toy.trouble["two"] = ZeroDivisionError()
    reproduce(tmp_path, Settings(seed=1), jobs=1)
    assert not (tmp_path / "data" / "two.json").exists()


# Choices.


def test_only_some_sections(toy, tmp_path):
    run = reproduce(tmp_path, only=["fig-three", "fig-one"], jobs=1)
    assert [section.name for section in run.sections] == ["fig-one", "fig-three"], "in the report's order"
    assert toy.calls == ["one", "three"]
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'id="fig-two"' not in page
    assert reproduce(tmp_path, jobs=1).outcomes["two"].status == "made"
    assert toy.calls == ["one", "three", "two"]


def test_an_unknown_section_is_refused_with_the_names_before_anything_is_written(toy, tmp_path):
    with pytest.raises(InvalidInput, match=r"only='fig-4x' .* fig-one, fig-two, fig-three") as error:
        reproduce(tmp_path / "new", only=["fig-4x"], jobs=1)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("name", "value"), [("seed", -1), ("jobs", 0)])
def test_bad_numbers_are_refused(toy, tmp_path, name, value):
    settings = Settings(seed=value) if name == "seed" else None
    with pytest.raises(InvalidInput, match=f"{name}={value}"):
        reproduce(tmp_path, settings, jobs=value if name == "jobs" else 1)


def test_progress_is_heard(toy, tmp_path):
    heard = []
    reproduce(tmp_path, jobs=1, listener=lambda *message: heard.append(message))
    assert ("one", "half way", 1, 2) in heard
    assert ("three", "made", 1, 1) in heard


# Processes.


@pytest.mark.slow
def test_processes_give_the_same_numbers_as_one(tmp_path):
    settings, only = Settings(quick=True), ["fig-1", "fig-2"]
    heard = []
    apart = reproduce(tmp_path / "apart", settings, only, 2, lambda *message: heard.append(message))
    together = reproduce(tmp_path / "together", settings, only, 1)
    assert statuses(apart) == {"range-of-epsilon": "made", "angle": "made"}
    for name in apart.outcomes:
        assert apart.outcomes[name].numbers == together.outcomes[name].numbers
        pictures = json.loads((tmp_path / "apart" / "data" / f"{name}.json").read_text())["files"]
        assert pictures == json.loads((tmp_path / "together" / "data" / f"{name}.json").read_text())["files"]
    assert {work for work, *_ in heard} == {"range-of-epsilon", "angle"}


def test_a_dead_process_costs_its_own_result_only(toy, tmp_path, monkeypatch):
    """The first pool breaks without any result; alone, one of three breaks again."""
    pools = []

    def pool(out, settings, names, jobs, tell):
        pools.append((tuple(names), jobs))
        if len(names) > 1 or names == ["two"]:
            return {}
        return run_module._here(out, settings, [toy.works[names[0]]], tell)

    monkeypatch.setattr(run_module, "_pool", pool)
    run = reproduce(tmp_path, jobs=2)
    assert statuses(run) == {"one": "made", "two": "failed", "three": "made"}
    assert "memory" in run.outcomes["two"].reason
    assert pools == [(("one", "two", "three"), 2), (("one",), 1), (("two",), 1), (("three",), 1)]


# Fingerprints.


def test_words_do_not_count_as_code_and_numbers_do(monkeypatch):
    packages = ("lessnoise", "lessnoise_paper")
    sources = {
        name: content
        for package in packages
        for name, content in store._sources(store.resources.files(package), f"{package}/")
    }
    assert "lessnoise_paper/sections/counts.py" in sources
    assert "lessnoise_paper/experiments/uber.py" in sources
    assert "lessnoise/mechanism/mechanism.py" in sources
    assert any(name.endswith(".json") for name in sources)

    def hashed(change):
        changed = {**sources, change: b"other"} if change else sources
        monkeypatch.setattr(store, "_sources", lambda *_: changed.items())
        return store.code_hash.__wrapped__()

    unchanged = hashed("")
    assert hashed("lessnoise_paper/sections/counts.py") == hashed("lessnoise/cli/app.py") == unchanged
    assert hashed("lessnoise_paper/experiments/uber.py") != unchanged
    assert hashed("lessnoise/mechanism/mechanism.py") != unchanged


# The command.


@pytest.fixture
def command(toy):
    return lambda *arguments: CliRunner().invoke(app, ["reproduce", "--jobs", "1", *map(str, arguments)])


def test_the_command_says_what_it_did(command, tmp_path):
    ended = command("--out", tmp_path)
    assert ended.exit_code == 0, ended.output
    assert "made" in ended.output
    assert "fig-two" in ended.output
    again = command("--out", tmp_path)
    assert again.exit_code == 0
    assert again.output.count("kept") == 3


def test_the_command_prints_its_manifest_as_json(command, tmp_path):
    ended = command("--out", tmp_path, "--json", "--only", "fig-one", "--quick", "--seed", 3)
    assert ended.exit_code == 0
    found = json.loads(ended.output)
    assert (found["quick"], found["seed"], found["sections"]) == (True, 3, ["fig-one"])


def test_the_exit_code_tells_that_something_is_missing(command, toy, tmp_path):
    toy.trouble["two"] = InvalidInput("data=None: save the file in a folder.")
    ended = command("--out", tmp_path)
    assert ended.exit_code == 3
    assert "data=None: save the file in a folder." in ended.output
    assert (tmp_path / "index.html").exists()


def test_the_command_lists_its_names(command):
    ended = command("--list")
    assert ended.exit_code == 0
    assert [line.split()[0] for line in ended.output.splitlines()] == ["fig-one", "fig-two", "fig-three"]
    assert [entry["experiment"] for entry in json.loads(command("--list", "--json").output)] == ["one", "two", "three"]


def test_the_command_refuses_unknown_names_and_foreign_pages(command, tmp_path):
    ended = command("--out", tmp_path / "a", "--only", "fig-99")
    assert ended.exit_code == 2
    assert "fig-one, fig-two, fig-three" in ended.output
    assert not (tmp_path / "a").exists()
    (tmp_path / "index.html").write_text("my own page")
    ended = command("--out", tmp_path)
    assert ended.exit_code == 2
    assert "--force" in ended.output
    assert (tmp_path / "index.html").read_text() == "my own page"
    assert command("--out", tmp_path, "--force").exit_code == 0


def test_the_command_stops_kindly(command, toy, tmp_path):
    toy.trouble["two"] = KeyboardInterrupt()
    ended = command("--out", tmp_path)
    assert ended.exit_code == 130
    assert "run the same command again" in ended.output


def test_times_are_recorded(toy, tmp_path, monkeypatch):
    clock = iter(range(0, 1000, 7))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    run = reproduce(tmp_path, jobs=1)
    assert all(outcome.seconds > 0 for outcome in run.outcomes.values())
