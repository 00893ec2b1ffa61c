"""Whether compiled code is used. Both paths give the same output, so this is a matter of time alone."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

LOADING = 1 << 23  # values by NumPy, in all, after which loading the compiled code has paid for itself
LARGE = 1 << 22  # in one release: load it at once


class _State:
    """What is compiled; it may be missing, or unable to compile here, and NumPy serves then."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
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
            if _state.values < LOADING:
                return None
        _state.load(group, kind)
    return sys.modules["lessnoise.noise.kernels"] if (group, kind) in _state.ready else None
