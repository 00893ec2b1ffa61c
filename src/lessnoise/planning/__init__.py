"""Planning releases: how much noise each of many needs, which law is best for that many, how many fit."""

from lessnoise.planning.item import Planned, read_schedule
from lessnoise.planning.often import HowOften, most_releases
from lessnoise.planning.plan import PlanItem, ReleasePlan, plan_releases

__all__ = [
    "HowOften",
    "PlanItem",
    "Planned",
    "ReleasePlan",
    "most_releases",
    "plan_releases",
    "read_schedule",
]
