"""The last step: a noisy value, and a certificate that says what was really guaranteed."""

from lessnoise.release.certificate import Certificate
from lessnoise.release.release import Release, release

__all__ = ["Certificate", "Release", "release"]
