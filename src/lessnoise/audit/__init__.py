"""Attacks on mechanisms, ours and anyone's: lower bounds of the true delta and epsilon, with a stated confidence."""

from lessnoise.audit import body_laws as _body_laws  # noqa: F401  # registers them
from lessnoise.audit.auditor import audit
from lessnoise.audit.curves import Comparison, compare_curves
from lessnoise.audit.curves import summary as curves_summary
from lessnoise.audit.laws import draw_many, log_density_ratio
from lessnoise.audit.random_mechanisms import random_mechanism
from lessnoise.audit.report import AttackResult, AuditReport, Evidence, percent
from lessnoise.audit.target import worst_neighbour

__all__ = [
    "AttackResult",
    "AuditReport",
    "Comparison",
    "Evidence",
    "audit",
    "compare_curves",
    "curves_summary",
    "draw_many",
    "log_density_ratio",
    "percent",
    "random_mechanism",
    "worst_neighbour",
]
