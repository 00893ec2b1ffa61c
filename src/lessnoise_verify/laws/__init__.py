"""The exact delta of each noise law, enclosed from its description alone."""

from lessnoise_verify.laws import bodies, gaussian, integers, laplace, measured, others, radial, shells
from lessnoise_verify.laws.registry import Case, delta, law, squared_mu, values_drawn

__all__ = [
    "Case",
    "bodies",
    "delta",
    "gaussian",
    "integers",
    "laplace",
    "law",
    "measured",
    "others",
    "radial",
    "shells",
    "squared_mu",
    "values_drawn",
]
