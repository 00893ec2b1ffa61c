"""The record of claims: what sources state of their mechanisms, beside the exact or rigorously bounded truth."""

from lessnoise.claims.cases import CASES
from lessnoise.claims.record import Case, Finding, at_setting, evaluate

__all__ = ["CASES", "Case", "Finding", "at_setting", "evaluate"]
