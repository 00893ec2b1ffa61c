"""A process that forks while another thread compiles: the child works, and its noise is its own."""

import os
import subprocess
import sys
import threading

import pytest

from lessnoise.noise import compiled

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

FORKS = 40
SCRIPT = """
import os, signal, sys, threading, time, warnings
import numpy as np
import lessnoise as ln
from lessnoise.noise import compiled

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of every fork with threads
mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=100)
mechanism.release(np.zeros(100))  # imports what children would import each for themselves
state, ended = compiled._state, threading.Event()

def compiling():
    "Again and again, under the locks of the real thing."
    from lessnoise.noise import warm  # and numba
    from numba.core.compiler_lock import global_compiler_lock

    def compile_group(group, kind):
        with global_compiler_lock:
            time.sleep(0.003)

    warm.compile_group = compile_group
    while not ended.is_set():
        state.load("independent", np.float64)
        state.ready.clear()
        time.sleep(0.001)  # let others have the locks

def child(write):
    state.ready.clear()
    compiled.compiled_kernels("independent", path="numba")
    state.ready.clear()  # to draw by NumPy
    os.write(write, mechanism.release(np.zeros(100)).value[:4].tobytes())

thread = threading.Thread(target=compiling, daemon=True)
thread.start()
seen = set()
for number in range(int(sys.argv[1])):
    read, write = os.pipe()
    time.sleep(0.001 * (number % 7))
    process = os.fork()
    if process == 0:
        try:
            child(write)
        finally:
            os._exit(0)
    os.close(write)
    end = time.monotonic() + 60
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            sys.exit(f"child {number} hangs")
        time.sleep(0.002)
    seen.add(os.read(read, 100))
    seen.add(mechanism.release(np.zeros(100)).value[:4].tobytes())
    os.close(read)
ended.set()
thread.join()
print(len(seen), b"" in seen)
"""


@pytest.mark.slow
def test_no_child_hangs_or_repeats_noise_while_another_thread_compiles():
    pytest.importorskip("numba")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(FORKS)], capture_output=True, text=True, timeout=500, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [str(2 * FORKS), "False"]


def test_a_child_that_could_not_wait_uses_no_compiled_code(monkeypatch):
    state = compiled._State()
    monkeypatch.setattr(compiled, "_state", state)
    compiled._before_fork()
    compiled._in_child()
    assert not state.failed
    monkeypatch.setattr(compiled, "_PATIENCE", 0.01)
    thread = threading.Thread(target=state.lock.acquire)  # as if it compiled for ever
    thread.start()
    thread.join()
    compiled._before_fork()
    compiled._in_child()
    assert state.failed
    assert compiled.compiled_kernels("independent", path="numba") is None
