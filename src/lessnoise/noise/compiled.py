"""Whether compiled code is used. Both paths give the same output, so this is a matter of time alone."""

from __future__ import annotations

import logging  # noqa: F401
import os
import sys
import threading
import time
from typing import Any

import numpy as np

KERNELS_LOADING = 1 << 23  # values by NumPy, in all, after which loading the compiled code has paid for itself
LARGE = 1 << 22  # in one release: load it at once


class _State:
    """What is compiled; it may be missing, or unable to compile here, and NumPy serves then."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.ready: set[tuple[str, type]] = set()
        self.failed = False
        self.values = 0

    def load(self, group: str, kind: type) -> None:
        """Compile a group of kernels or take it from the cache on disk; any failure is remembered."""
        with self.lock:
            if self.failed or (group, kind) in self.ready:
                return
            try:
                from lessnoise.noise import warm

                warm.compile_group(group, kind)
                self.ready.add((group, kind))
            except Exception:  # whatever a compiler may meet on a foreign machine
                self.failed = True


_state = _State()


def compiled_kernels(group: str, kind: type = np.float64, count: int = LARGE, path: str = "auto") -> Any:  # noqa: ANN401
    """The kernels, where they pay and work; None where NumPy is to be used."""
    if path == "numpy" or _state.failed:
        return None
    if (group, kind) not in _state.ready:
        if path == "auto" and count < LARGE:
            _state.values += count
            if _state.values < KERNELS_LOADING:
                return None
        _state.load(group, kind)
    return sys.modules["lessnoise.noise.kernels"] if (group, kind) in _state.ready else None


# A child of a fork inherits locks that are held, but not the threads that would open them: it could wait for ever for
# code that another thread was compiling, or importing. So a fork waits until none is.

_PATIENCE = 120.0  # seconds, several times what compiling takes
_IMPORTED = frozenset(("lessnoise", "numba", "llvmlite", "numpy", "scipy", "cryptography"))
_forking = threading.local()  # what the thread that is about to fork holds


def _before_fork() -> None:
    """Let nothing of ours be compiled or imported by another thread."""
    end = time.monotonic() + _PATIENCE
    while True:
        module = sys.modules.get("numba.core.compiler_lock")
        compiler = getattr(getattr(module, "global_compiler_lock", None), "_lock", None)
        wanted = [_state.lock] if compiler is None else [_state.lock, compiler]
        _forking.held = [lock for lock in wanted if lock.acquire(timeout=max(end - time.monotonic(), 0.0))]
        _forking.settled = len(_forking.held) == len(wanted) and not _imported_elsewhere()
        if _forking.settled or time.monotonic() > end:
            return
        _after_fork()
        time.sleep(1e-3)


def _imported_elsewhere() -> bool:
    """Whether another thread is importing what we compute with."""
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    found = (reference() for name, reference in list(locks.items()) if str(name).partition(".")[0] in _IMPORTED)
    return any(getattr(lock, "owner", None) not in (None, threading.get_ident()) for lock in found)


def _after_fork() -> None:
    for lock in reversed(getattr(_forking, "held", ())):
        lock.release()


def _in_child() -> None:
    """As in the parent; where the wait was given up, NumPy serves, which takes no lock."""
    _after_fork()
    _state.failed = _state.failed or not getattr(_forking, "settled", False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
