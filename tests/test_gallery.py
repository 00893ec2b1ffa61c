"""The notebooks of the gallery run from top to bottom, and are stored without outputs."""

import ast
import json
import time
from pathlib import Path

import pytest

GALLERY = sorted((Path(__file__).parents[1] / "docs" / "gallery").glob("*.ipynb"))
MOST_SECONDS = 30.0  # of processor time; a few are usual


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def run(cells):
    """Every cell in one namespace; what stands on the last line of a cell shows itself, as in a notebook."""
    space, shown = {"__name__": "__main__"}, []
    for cell in cells:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]), cell["id"])
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, cell["id"], "exec"), space)
            if last is not None:
                shown.append(eval(compile(ast.Expression(last.value), cell["id"], "eval"), space))
    return shown


def test_there_is_a_gallery():
    assert len(GALLERY) >= 7


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch, tmp_path):
    if path.stem == "private-training":
        pytest.importorskip("torch", reason="needs the extra learn")
    monkeypatch.chdir(tmp_path)
    begun = time.process_time()
    shown = [value for value in run(read(path)) if value is not None]
    assert time.process_time() - begun < MOST_SECONDS
    assert shown
    for value in shown:
        assert any(hasattr(value, name) for name in ("_repr_html_", "_repr_png_", "shape")), value


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_notebook_is_stored_clean(path):
    cells = read(path)
    assert cells[0]["cell_type"] == "markdown"
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def test_the_guide_links_every_notebook():
    guide = (Path(__file__).parents[1] / "docs" / "guide" / "notebooks.md").read_text(encoding="utf-8")
    assert [path.name for path in GALLERY if f"(../gallery/{path.name})" not in guide] == []
