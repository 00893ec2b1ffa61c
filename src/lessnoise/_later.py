"""What a method offers and a layer above does: the layer registers it here, so that imports go one way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., Any]")
_DONE_ABOVE: dict[str, Callable[..., Any]] = {}


def offers(name: str) -> Callable[[_Function], _Function]:
    """Decorator: this function does what methods below call by ``name``."""

    def register(function: _Function) -> _Function:
        _DONE_ABOVE[name] = function
        return function

    return register


def later(name: str) -> Callable[..., Any]:
    """The function that a layer above offers; ``import lessnoise`` loads them all."""
    return _DONE_ABOVE[name]
