"""Private training of PyTorch models: Opacus's machinery, any noise of lessnoise, exact accounting."""

from lessnoise.learn.plan import TrainingPlan, gaussian, plan_training, published_r1smg
from lessnoise.learn.private import Private, fit, make_private

__all__ = ["Private", "TrainingPlan", "fit", "gaussian", "make_private", "plan_training", "published_r1smg"]
