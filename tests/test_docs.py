"""The documentation: the site builds without a warning, its links lead somewhere, and the commands it shows run."""

import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas
import pytest
import typer
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    path for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")] if "_build" not in path.relative_to(ROOT).parts
)


def name_of(path):
    return str(path.relative_to(ROOT))


# The site.


class Links(HTMLParser):
    """What a page points to, what can be pointed to, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.loaded, self.unspoken = [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag == "img" and len(found.get("alt") or "") < 10:
            self.unspoken.append(found.get("src"))
        source = found.get("href") if tag == "link" else found.get("src")
        if source and found.get("rel") != "canonical":
            self.loaded.append(source)


def build(folder):
    options = ["-q", "-W", "--keep-going", "-d", folder / "doctrees"]
    command = [sys.executable, "-m", "sphinx", *options, DOCS, folder / "html"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-3000:]
    return {path: Links(path.read_text(encoding="utf-8")) for path in (folder / "html").rglob("*.html")}


def broken_links(pages):
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{path.name}: {link} is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                yield f"{path.name}: {link} has no such anchor"


def missing_names(pages):
    documented = set().union(*(page.ids for path, page in pages.items() if path.parent.name == "reference"))
    ours = (name for name in ln.__all__ if name != "__version__")
    return [name for name in ours if not {f"lessnoise.{name}", f"module-lessnoise.{name}"} & documented]


@pytest.mark.slow
def test_the_site(tmp_path):
    """One test, so that the site is built once."""
    pytest.importorskip("furo", reason="needs the extra docs")
    pages = build(tmp_path)
    assert len(pages) > 40
    assert sum(len(page.links) for page in pages.values()) > 1000
    assert list(broken_links(pages)) == []
    assert missing_names(pages) == [], "add them to a page in docs/reference/"
    assert [source for page in pages.values() for source in page.unspoken] == [], "pictures need a text in words"
    from_elsewhere = [source for page in pages.values() for source in page.loaded if urlsplit(source).netloc]
    assert from_elsewhere == [], "the site must work without a network"


def test_the_search_for_broken_links_finds_them(tmp_path):
    path = tmp_path / "page.html"
    path.write_text('<a href="#here">x</a><a href="#gone">x</a><a href="no.html">x</a><p id="here">')
    problems = list(broken_links({path: Links(path.read_text())}))
    assert problems == ["page.html: #gone has no such anchor", "page.html: no.html is not there"]


def test_relative_links_of_the_pages_work_on_the_forge():
    """As files, not as pages of the site: a link from docs/ to README.md, or to a source, must be there too."""
    count = 0
    for path in PAGES:
        text = re.sub(r"^( *)```.*?^\1```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            parts = urlsplit(link)
            if parts.path and not parts.scheme:
                count += 1
                assert (path.parent / parts.path).exists(), f"{name_of(path)}: {link}"
    assert count > 100


# Commands.


@dataclass
class Command:
    """A line of a ``console`` block: the words after ``$``, the exit code that its comment names, the output shown."""

    line: str
    shown: str

    @property
    def words(self):
        return shlex.split(self.line, comments=True)

    @property
    def code(self):
        found = re.search(r"#.*exit code (\d)", self.line)
        return int(found[1]) if found else 0


def commands(text):
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, shown = part.replace("\\\n", " ").partition("\n")
            yield Command(line, shown)


def run_in(folder, command, monkeypatch):
    """Run a command as a reader would, and return its exit code and output; None for what is not ours to run."""
    program, *arguments = command.words
    if program == "lessnoise":
        monkeypatch.chdir(folder)
        result = CliRunner().invoke(app, arguments)
        return result.exit_code, result.output
    if program == "python":
        done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr
    assert program in ("pip", "git", "jupyter"), f"a reader may run it, so say here how to test it: {command.line}"
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(commands(page.read_text(encoding="utf-8")))], ids=name_of
)
def test_commands_of_a_page_run(page, tmp_path, monkeypatch):
    for command in commands(page.read_text(encoding="utf-8")):
        outcome = run_in(tmp_path, command, monkeypatch)
        if outcome is not None:
            code, output = outcome
            assert code == command.code, f"{command.line}\n{output}"
            matches = OutputChecker().check_output(command.shown, output, ELLIPSIS | NORMALIZE_WHITESPACE)
            assert not command.shown or matches, f"{command.line}\n{output}"


def test_console_blocks_are_read_as_they_are_shown():
    text = "```console\n$ lessnoise a \\\n  -b   # exit code 1: no\nerror\n$ lessnoise c\n```\n"
    first, second = commands(text)
    assert (first.words, first.code, first.shown) == (["lessnoise", "a", "-b"], 1, "error\n")
    assert (second.words, second.code, second.shown) == (["lessnoise", "c"], 0, "")


def sketches(page):
    """Lines of ``sh`` blocks: with files and folders that only the reader has."""
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("lessnoise "):
                yield Command(line, "")


QUICK = {"plan", "check", "release", "histogram", "ledger", "audit", "query", "verify", "claims"}


@pytest.mark.slow
@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "guide" / "ledger.md"], ids=name_of)
def test_quick_sketches_run_once_the_files_are_there(page, tmp_path, monkeypatch):
    np.save(tmp_path / "counts.npy", np.arange(12.0).reshape(3, 4))
    points = np.random.default_rng(0).normal([-73.9, 40.75], 0.05, (1000, 2))
    pandas.DataFrame(points, columns=["Lon", "Lat"]).to_parquet(tmp_path / "trips.parquet")
    people = {"city": ["Oslo", "Bergen"] * 500, "income": np.arange(1000) * 100, "age": np.arange(1000) % 90}
    pandas.DataFrame(people).to_csv(tmp_path / "people.csv", index=False)
    ln.Table(people).aggregate(ln.count()).release(1, 1e-6).save(tmp_path / "by-city")
    quick = [command for command in sketches(page) if command.words[1] in QUICK]
    assert len(quick) > 4
    for command in quick:
        code, output = run_in(tmp_path, command, monkeypatch)
        assert code == command.code, f"{command.line}\n{output}"


@pytest.mark.slow
def test_the_training_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("opacus", reason="needs the extra learn")
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.DOTALL)
    (training,) = [block for block in blocks if "make_private" in block]
    monkeypatch.chdir(tmp_path)
    exec(compile(training, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1].startswith("epoch 2, step 20 of 20: epsilon between 3.")
    assert (tmp_path / "model.pt").stat().st_size > 0


def parse(words):
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        name, *words = words
        command = command.get_command(None, name) or {}[name]
    context = command.make_context(command.name, [], resilient_parsing=True)
    context.resilient_parsing = False  # from here on, an unknown option is an error
    command.make_parser(context).parse_args(list(words))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(c.words[1:], id=f"{name_of(page)}: {' '.join(c.words[:3])}")
        for page in PAGES
        for c in sketches(page)
    ],
)
def test_sketched_commands_and_options_exist(words):
    parse(words)


@pytest.mark.parametrize("words", [["plann"], ["ledger", "burn"], ["plan", "--shap", "3"]])
def test_unknown_commands_and_options_are_noticed(words):
    with pytest.raises(Exception, match=words[-1] if len(words) < 3 else words[1]):
        parse(words)


def test_every_command_is_in_the_guide():
    guide = (DOCS / "guide" / "command-line.md").read_text(encoding="utf-8")
    assert [name for name in typer.main.get_command(app).commands if f"`{name}`" not in guide] == []


# Pages that need an extra.


@pytest.mark.slow
def test_a_page_is_skipped_with_the_reason(pytester_page):
    outcome = pytester_page("<!-- needs: json, no_such_module.part -->\n\n>>> 1 + 1\n3\n")
    assert "1 skipped" in outcome
    assert "needs no_such_module.part" in outcome


@pytest.mark.slow
def test_a_page_whose_needs_are_met_is_run(pytester_page):
    assert "1 failed" in pytester_page("<!-- needs: json -->\n\n>>> 1 + 1\n3\n")


@pytest.fixture
def pytester_page(tmp_path):
    def run(text):
        (tmp_path / "page.md").write_text(text)
        (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", "--doctest-glob=*.md", "page.md"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout

    return run


# Project files.


def test_the_citation_has_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", text, re.MULTILINE) == [ln.__version__]


def test_the_changelog_begins_with_the_version_of_the_package():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", text, re.MULTILINE)[0] == ln.__version__


def test_the_architecture_shows_the_layers_that_are_checked():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    checked = next(contract["layers"] for contract in contracts if contract.get("containers") == ["lessnoise"])
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert re.search(r"```text\n(.*?)\n```", page, re.DOTALL)[1].splitlines() == checked
    folders = {path.stem for path in (ROOT / "src" / "lessnoise").iterdir() if path.suffix == ".py" or path.is_dir()}
    named = {name for line in checked for name in line.split(" | ")}
    assert folders - {"__init__", "__main__", "__pycache__", "py"} == named
