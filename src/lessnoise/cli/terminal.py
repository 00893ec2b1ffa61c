"""A console that shows text from outside as it is: it neither obeys it nor swallows it."""

from __future__ import annotations

import re
from typing import Any

from rich import console, markup
from rich.errors import MarkupError
from rich.text import Text

from lessnoise.harmless import printable

_OURS = r"/?(?:bold )?(?:bold|red|green)\]|/\]"  # the only styles that our own words have
_OTHERS = re.compile(rf"(?<!\\)\[(?!{_OURS})")


class Console(console.Console):
    """Rich's console for our own few styles; escape sequences, emoji codes and any other markup are shown as text."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        super().__init__(highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401
        """Every text, in tables too, comes through here."""
        shown = printable(text)
        if options.get("markup") is False:
            return super().render_str(shown, **options)
        try:
            return super().render_str(_OTHERS.sub(r"\\[", shown), **options)
        except MarkupError:  # a closing tag that closes nothing, as in a file name
            return Text(shown)


def literal(*values: object) -> str:
    """Text from outside, for a line that has styles: no word of it is taken for one."""
    return ", ".join(markup.escape(str(value)) for value in values)
