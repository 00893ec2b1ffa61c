"""Proofs of privacy certificates by ball arithmetic, from the certificate alone and with no code of lessnoise."""

from lessnoise_verify.verdict import Verdict, verify

__all__ = ["Verdict", "verify"]
