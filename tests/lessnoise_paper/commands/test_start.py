"""The commands of the paper before they do anything."""

import subprocess
import sys


def test_importing_the_commands_loads_neither_scipy_nor_matplotlib():
    heavy = "[m for m in ('scipy', 'matplotlib') if m in sys.modules]"
    code = f"import sys, lessnoise_paper.commands; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
