"""Attacks on mechanisms, ours and anyone's: lower bounds of the true delta and epsilon, with a stated confidence."""

from lessnoise.audit import body_laws as _body_laws  # noqa: F401  # registers them
from lessnoise.audit.auditor import audit
from lessnoise.audit.laws import draw_many, log_density_ratio
from lessnoise.audit.report import AttackResult, AuditReport, Evidence, percent
from lessnoise.audit.target import worst_neighbour

__all__ = [
    "AttackResult",
    "AuditReport",
    "Evidence",
    "audit",
    "draw_many",
    "log_density_ratio",
    "percent",
    "worst_neighbour",
]
