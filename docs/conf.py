"""The documentation site: ``python -m sphinx -W docs docs/_build`` (see CONTRIBUTING.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise import __version__

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

project = "lessnoise"
author = "The lessnoise developers"
project_copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "pictures"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# A reference that leads nowhere is an error. Types of other packages, and internal types, have no page here.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!lessnoise).*"),
    ("py:class", r"lessnoise(\.\w+){3,}|lessnoise\.frozen_matrix\.\w+"),
]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"lessnoise {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_domain_indices = False
html_show_sphinx = False


def _bars_are_lengths(_app: object, _what: str, _name: str, _of: object, _options: object, lines: list[str]) -> None:
    """In docstrings ``|x|`` is a length, never a substitution of reStructuredText."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            outside = line.split("``")
            outside[::2] = [text.replace("|", r"\|") for text in outside[::2]]
            lines[number] = "``".join(outside)


def _sections(app: Sphinx, what: str, name: str, of: object, options: object, lines: list[str]) -> None:
    """Estimators list parameters and attributes as scikit-learn does."""
    from sphinx.ext.napoleon import Config, NumpyDocstring

    if what == "class":
        lines[:] = NumpyDocstring(lines, Config(), app, what, name, of, options).lines()


def _no_empty_last_lines(_app: object, doctree: nodes.document) -> None:
    """Doctests in pages end with an empty line; readers need not see it."""
    from docutils import nodes

    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip()
            block.children = [nodes.Text(block.rawsource)]


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _sections)
    app.connect("doctree-read", _no_empty_last_lines)
    app.connect("autodoc-process-docstring", _bars_are_lengths)
