"""Attacks on mechanisms, ours and anyone's: lower bounds of the true delta and epsilon, with a stated confidence."""

from lessnoise.audit.auditor import audit
from lessnoise.audit.laws import log_density_ratio
from lessnoise.audit.report import AttackResult, AuditReport, Evidence
from lessnoise.audit.target import worst_neighbour

__all__ = ["AttackResult", "AuditReport", "Evidence", "audit", "log_density_ratio", "worst_neighbour"]
