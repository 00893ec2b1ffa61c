"""Frozen dataclasses as plain values for JSON, and back: by their fields and the types of these."""

from __future__ import annotations

import types
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = TypeVar("Kind")


def stored(**names: str | None) -> Callable[[type[Kind]], type[Kind]]:
    """A dataclass with fields that files know by other names; None: those that they do not hold."""

    def decorate(kind: type[Kind]) -> type[Kind]:
        kind.stored_names = {**getattr(kind, "stored_names", {}), **names}  # type: ignore[attr-defined]
        return kind

    return decorate


def _stored(kind: Any) -> dict[str, Field[Any]]:  # noqa: ANN401
    """The fields that files hold, by their names there."""
    names = getattr(kind, "stored_names", {})
    named = {names.get(one.name, one.name): one for one in fields(kind)}
    return {name: one for name, one in named.items() if name is not None}


def plain_fields(value: Any, **derived: object) -> dict[str, Any]:  # noqa: ANN401
    """The stored fields of a dataclass, then what is derived from them, ready for JSON."""
    own = {name: getattr(value, one.name) for name, one in _stored(value).items()}
    return {name: plain(found) for name, found in {**own, **derived}.items()}


def plain(value: Any) -> Any:  # noqa: ANN401
    """A value ready for JSON.

    >>> plain({"a": (1, np.array([2.0]))})
    {'a': [1, [2.0]]}
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return plain_fields(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def read_fields(kind: type[Kind], values: object, name: str) -> Kind:
    """The inverse of :func:`plain_fields`; every field is checked against its type, and none may be there besides."""
    stored, hints = _stored(kind), get_type_hints(kind)
    needed = [key for key, one in stored.items() if one.default is MISSING]
    found = validation.fields(values, needed, name, optional=stored.keys() - set(needed))
    return kind(**{stored[key].name: _read(hints[stored[key].name], value, key) for key, value in found.items()})


def _read(kind: Any, value: Any, name: str) -> Any:  # noqa: ANN401
    origin, inside = get_origin(kind), get_args(kind)
    if origin is types.UnionType:
        return None if value is None else _read(inside[0], value, name)
    if origin is np.ndarray:
        return _array(value, name)
    if origin is dict:
        given = validation.fields(value, (), name, optional=None)
        return {key: _read(inside[1], entry, f"{name}[{key!r}]") for key, entry in given.items()}
    if origin is tuple:
        entries = validation.entries(name, value) if value != [] else ()
        kinds = inside[:1] * len(entries) if inside[-1] is Ellipsis else inside
        if len(kinds) != len(entries):
            raise InvalidInput(f"{name} has {len(entries)} entries, not {len(kinds)}: make it again.")
        return tuple(_read(one, entry, name) for one, entry in zip(kinds, entries, strict=True))
    if isinstance(kind, type) and is_dataclass(kind):
        return kind.from_dict(value) if hasattr(kind, "from_dict") else read_fields(kind, value, name)
    if kind is bool:
        validation.choice(name, value, (True, False))
        return value
    if kind is int:
        return validation.whole_number(name, value, minimum=0)
    return validation.text(name, value) if kind is str else validation.number(name, value)


def _array(value: object, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers, or rows of numbers that are equally long."""
    if not isinstance(value, list) or not value or not isinstance(value[0], list):
        return np.array(validation.numbers(name, value))
    rows = [validation.numbers(f"{name}[{place}]", row) for place, row in enumerate(value)]
    if len({len(row) for row in rows}) > 1:
        raise InvalidInput(f"{name} has rows of different lengths: make it again.")
    return np.array(rows)
