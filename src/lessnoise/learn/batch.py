"""Which tensors hold the records of a drawn batch: they know it themselves, through whatever a training loop does.

A loader's tensors carry the token of their batch. What is computed from them record by record (``x.to(device)``, a
normalisation by constants) carries it too. What is computed across records (a mean over the batch, mixed or permuted
records) loses it, and with it the permission to be trained on.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from lessnoise.errors import InvalidInput

# These neither look at values nor move records, so that there is nothing to check.
_HARMLESS = {
    *("to", "cuda", "cpu", "float", "double", "half", "bfloat16", "long", "int", "bool", "type_as", "contiguous"),
    *("clone", "detach", "pin_memory", "requires_grad_", "__reduce_ex__", "__repr__", "__format__", "item", "tolist"),
}
_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
_IN_PLACE = {"__setitem__", *(f"__i{operator}__" for operator in _OPERATORS)}


class Drawn(torch.Tensor):
    """A tensor with one record of a drawn batch a row; or, if ``token`` is None, what was computed across records."""

    token: str | None

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        """Any operation: do it, and pass on the token if each row of the result follows from that row alone."""
        kwargs = kwargs or {}
        sources = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Drawn)]
        name = getattr(func, "__name__", "")
        in_place = name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))
        with torch._C.DisableTorchFunctionSubclass():
            if name in _HARMLESS:
                token = _common_token(sources)
                return tree_map(lambda leaf: _tagged(leaf, token), func(*args, **kwargs))
            if in_place or kwargs.get("out") is not None:
                if isinstance(args[0], Drawn):
                    expected = _replayed(func, args, kwargs, sources, torch.get_rng_state())
                    result = func(*args, **kwargs)
                    args[0].token = _token_of(plain(args[0]), expected, sources)
                    return result
                return func(*args, **kwargs)
            state = torch.get_rng_state()
            result = func(*args, **kwargs)
            leaves = tree_leaves(result)
            if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
                return result
            expected = _replayed(func, args, kwargs, sources, state)
            token = _token_of(result, expected, sources)
            return tree_map(lambda leaf: _tagged(leaf, token), result)

    def __format__(self, form: str) -> str:
        return format(plain(self), form)


def plain(leaf: Any) -> Any:  # noqa: ANN401
    """The same tensor without its token."""
    if not isinstance(leaf, Drawn):
        return leaf
    with torch._C.DisableTorchFunctionSubclass():
        return leaf.as_subclass(torch.Tensor)


def tagged(tree: Any, token: str, rows: int) -> Any:  # noqa: ANN401
    """The tensors of a batch, with its token; those that do not have a row for each record belong to none."""
    return mapped(tree, lambda tensor: _tagged(plain(tensor), token if len(tensor) == rows else None))


def token_of(batch: object) -> str | None:
    """The token that a batch carries, if it holds tensors."""
    found: list[str | None] = []
    mapped(batch, lambda tensor: found.append(tensor.token) if isinstance(tensor, Drawn) else None)
    return next(filter(None, found), None)


class Collate:
    """A loader's collate function, for empty batches too; what it makes carries a fresh token, which it knows."""

    def __init__(self, collate: Callable[[list[Any]], Any], examples: list[Any]) -> None:
        self.collate = collate
        self.name = secrets.token_hex(12)
        self.empty = _emptied(collate(examples[:1]))
        _check_collate(collate, examples)

    def __call__(self, records: list[Any]) -> Any:  # noqa: ANN401
        """The batch of these records."""
        batch = self.collate(records) if records else self.empty
        return tagged(batch, self.name + secrets.token_hex(12), len(records))

    def made(self, token: str) -> bool:
        """Whether a token is of this loader's batches."""
        return token.startswith(self.name)


def _check_collate(collate: Callable[[list[Any]], Any], examples: list[Any]) -> None:
    """A record is to look the same beside others and beside copies of itself, random numbers being the same."""
    batches = []
    for records in (examples, examples[:1] * len(examples)):
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            batches.append(tree_leaves(collate(records)))
    for one, other in zip(*batches, strict=False):
        rows = isinstance(one, torch.Tensor) and one.dim() and len(one) == len(examples)
        if rows and not _alike(one, other, 0):
            raise InvalidInput(
                "collate_fn gives a record another form or other values beside other records: pad to a public length, "
                "not to the longest of a batch, and prepare each record by itself."
            )


def mapped(tree: Any, change: Callable[[torch.Tensor], Any]) -> Any:  # noqa: ANN401
    """A batch with its tensors changed: mappings of all kinds, lists and tuples are looked into."""
    if isinstance(tree, torch.Tensor):
        return change(tree) if tree.dim() else tree
    return _rebuilt(tree, lambda value: mapped(value, change)) if isinstance(tree, Mapping | list | tuple) else tree


def _rebuilt(tree: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    """A mapping, list or tuple of the same type with its values changed."""
    if isinstance(tree, Mapping):
        changed = {key: change(value) for key, value in tree.items()}
        return changed if type(tree) is dict else type(tree)(changed)  # type: ignore[call-arg]
    changes = (change(value) for value in tree)
    return type(tree)(*changes) if hasattr(tree, "_fields") else type(tree)(changes)


def _emptied(tree: Any) -> Any:  # noqa: ANN401
    """A batch of the same form without records, and without any value of the one that it was made from."""
    if isinstance(tree, torch.Tensor):
        return torch.zeros_like(tree[:0] if tree.dim() else tree)
    if isinstance(tree, list | tuple) and not hasattr(tree, "_fields"):
        tree = type(tree)(value for value in tree if isinstance(value, torch.Tensor | Mapping | list | tuple))
    return _rebuilt(tree, _emptied) if isinstance(tree, Mapping | list | tuple) else None


def _tagged(leaf: Any, token: str | None) -> Any:  # noqa: ANN401
    if not isinstance(leaf, torch.Tensor) or isinstance(leaf, Drawn):
        return leaf
    drawn = leaf.as_subclass(Drawn)
    drawn.token = token
    return drawn


def _common_token(sources: list[Drawn]) -> str | None:
    tokens = {source.token for source in sources}
    return tokens.pop() if len(tokens) == 1 else None


def _replayed(func: Any, args: Any, kwargs: Any, sources: list[Drawn], state: torch.Tensor) -> list[Any] | None:  # noqa: ANN401
    """What the operation gives for the first and for the last record where all others are copies of it.

    Random numbers are the same again. None where it fails, or where nothing could follow from it.
    """
    rows = {len(source) for source in sources if source.dim()}
    if _common_token(sources) is None or len(rows) != 1 or not all(source.dim() for source in sources):
        return None
    count = rows.pop()
    devices = sorted({source.get_device() for source in sources if source.is_cuda})
    on_device = [torch.cuda.get_rng_state(device) for device in devices]
    found = []
    for row in {0, count - 1} if count > 1 else ():

        def copies(leaf: Any, row: int = row) -> Any:  # noqa: ANN401
            return plain(leaf).detach()[row].expand(leaf.shape).clone() if isinstance(leaf, Drawn) else leaf

        with torch.random.fork_rng(devices), torch.no_grad():
            torch.set_rng_state(state)
            for device, kept in zip(devices, on_device, strict=True):
                torch.cuda.set_rng_state(kept, device)
            given, named = tree_map(copies, (args, kwargs))
            try:
                result = func(*given, **named)
            except (RuntimeError, IndexError, ValueError, TypeError):
                return None
        found.append((row, given[0] if result is None else result))
    return found


def _token_of(result: Any, replayed: list[Any] | None, sources: list[Drawn]) -> str | None:  # noqa: ANN401
    """The sources' token, if the result has a row for each record that follows from this record alone."""
    if replayed is None:
        return None
    count = len(sources[0])
    leaves = [plain(leaf) for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    if any(not leaf.dim() or len(leaf) != count for leaf in leaves):
        return None
    for row, again in replayed:
        others = [plain(leaf) for leaf in tree_leaves(again) if isinstance(leaf, torch.Tensor)]
        if not all(_alike(one, other, row) for one, other in zip(leaves, others, strict=True)):
            return None
    return _common_token(sources)


def _alike(one: torch.Tensor, other: torch.Tensor, row: int) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return close(one[row], other[row], 1e-3)


def close(one: torch.Tensor, other: torch.Tensor, share: float, floor: float = 0.0) -> bool:
    """Whether two tensors differ by at most a share of the larger one's length, or by the floor."""
    if not (one.is_floating_point() or one.is_complex()):
        return bool(torch.equal(one, other))
    one, other = one.detach().double().nan_to_num(nan=3e33), other.detach().double().nan_to_num(nan=3e33)
    size = max(float(one.norm()), float(other.norm()))
    return float((one - other).norm()) <= max(share * size, floor)
