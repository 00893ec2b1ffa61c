"""``python -m lessnoise``."""

from lessnoise.cli import run

if __name__ == "__main__":
    run()
