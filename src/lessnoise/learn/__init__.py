"""Private training of PyTorch models: Opacus's machinery, any noise of lessnoise, exact accounting."""

from lessnoise.learn.across import (
    AcrossPlan,
    Banded,
    BandedInverse,
    Factorisation,
    NoiseComparison,
    NoiseRow,
    compare_noise,
    plan_across_steps,
)
from lessnoise.learn.plan import TrainingPlan, gaussian, plan_training, published_r1smg
from lessnoise.learn.private import Private, fit, make_private

__all__ = [
    "AcrossPlan",
    "Banded",
    "BandedInverse",
    "Factorisation",
    "NoiseComparison",
    "NoiseRow",
    "Private",
    "TrainingPlan",
    "compare_noise",
    "fit",
    "gaussian",
    "make_private",
    "plan_across_steps",
    "plan_training",
    "published_r1smg",
]
