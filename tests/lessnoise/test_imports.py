"""The library stands alone: nothing in it imports the reproduction of the paper, which is built on it."""

import ast
from pathlib import Path

import lessnoise

SOURCES = sorted(Path(lessnoise.__file__).parent.rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))


def imported(source):
    """The names of all modules that a source imports, anywhere in it, absolutely or by a string."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("import_module", "find_spec"):
            yield from (one.value for one in node.args if isinstance(one, ast.Constant))


def of_the_paper(source):
    return [name for name in imported(source) if name.split(".")[0] == "lessnoise_paper"]


def test_no_module_of_the_library_and_no_test_of_it_imports_the_paper():
    assert len(SOURCES) > 100
    assert {
        path: found for path in [*SOURCES, *TESTS] if (found := of_the_paper(path.read_text(encoding="utf-8")))
    } == {}


def test_every_way_to_import_it_is_noticed():
    ways = [
        "import lessnoise_paper.run",
        "def f():\n    from lessnoise_paper import run",
        "import os, lessnoise_paper as p",
    ]
    ways.append("import importlib\nimportlib.import_module('lessnoise_paper.run')")
    assert [len(of_the_paper(way)) for way in ways] == [1, 1, 1, 1]
    assert of_the_paper("from lessnoise import noise\nfrom . import lessnoise_paper_not") == []
