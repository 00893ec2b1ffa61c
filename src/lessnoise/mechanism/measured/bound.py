"""What no mechanism can go below: for an array, or for the answers to a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise import changes as sets
from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.mechanism.curve import gaussian
from lessnoise.mechanism.least.bound import scalar_bound
from lessnoise.mechanism.least.builder import least_error
from lessnoise.mechanism.least.builder import loss_lower_bound as ball_bound
from lessnoise.mechanism.measured.law import Measured
from lessnoise.strategy import gaussian_bound

if TYPE_CHECKING:
    from lessnoise._common import Shape
    from lessnoise.changes import Changes
    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.workload import Workload

NOISES = ("any", "gaussian")


def loss_lower_bound(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float | None = None,
    shape: Shape | None = None,
    objective: str = "squared",
    workload: Workload | None = None,
    changes: Changes | None = None,
    noise: str = "any",
) -> float:
    """A proved lower bound on the loss of every additive mechanism with the target's guarantee.

    Additive: the released value is the true one plus noise whose law does not depend on the data. Of an array of a
    ``shape``, the guarantee is against every shift of length at most ``sensitivity``, and the loss is the
    ``objective``. Of a ``workload`` the loss is the expected squared error of an answer, averaged over its questions,
    and the guarantee is against ``changes``, by default one row more or less in one cell; ``noise="gaussian"`` bounds
    what Gaussian noise can do, whatever is measured.

    >>> import lessnoise as ln
    >>> bound = loss_lower_bound(epsilon=1, delta=1e-6, sensitivity=1, shape=3)
    >>> best = ln.least_noise(epsilon=1, delta=1e-6, sensitivity=1, shape=3).expected_loss
    >>> 1 <= best / bound < 1.01
    True
    >>> target = {"epsilon": 1, "delta": 1e-6, "workload": ln.workload.prefixes(64)}
    >>> f"{loss_lower_bound(**target):.2f} for any noise, {loss_lower_bound(**target, noise='gaussian'):.1f} for normal"
    '8.12 for any noise, 78.7 for normal'
    """
    validation.choice("noise", noise, NOISES)
    if workload is None:
        if sensitivity is None or shape is None or changes is not None or noise != "any":
            raise InvalidInput(
                f"sensitivity={shown(sensitivity)}, shape={shown(shape)} without a workload: pass both and neither "
                "changes nor noise, or a workload."
            )
        return ball_bound(epsilon=epsilon, delta=delta, sensitivity=sensitivity, shape=shape, objective=objective)
    if sensitivity is not None or shape is not None or objective != "squared":
        raise InvalidInput("a workload has its own shape, changes and squared error: leave the other arguments out.")
    return workload_bound(workload, epsilon, delta, sets.counts() if changes is None else changes, noise)


@least_error.register(Measured)
def _(law: Measured, mechanism: Mechanism) -> float:
    assert mechanism.claim is not None
    changes = sets.ball(mechanism.sensitivity, norm=1) if mechanism.changes is None else mechanism.changes
    return workload_bound(law.workload, mechanism.claim.epsilon, mechanism.claim.delta, changes)


def workload_bound(workload: Workload, epsilon: float, delta: float, changes: Changes, noise: str = "any") -> float:
    """No additive noise that keeps the target answers a workload with less squared error per question.

    Let S be the covariance of the noise of the table. What a change by d of cell j alone does to <u, n>, u = S^-1 e_j,
    is hidden by noise of variance u^T S u = u_j: with c the least variance of one number that changes by 1,
    u_j >= c d^2 u_j^2, so that X = c d^2 S^-1 has a diagonal of at most 1. The errors, tr(W S W^T) = c d^2 tr(W^T W
    X^-1), are then at least c d^2 times the least there is for such an X, the square of the norm that normal noise
    goes by (:func:`lessnoise.strategy.gaussian_bound`).
    """
    epsilon, delta = validation.epsilon(epsilon), validation.delta(delta)
    alone = sets.read_changes(changes).single(workload.cells)
    if noise == "gaussian":
        least = gaussian.gaussian_scale(epsilon, delta) ** 2 * (1.0 - 1e-9)
    else:
        least = scalar_bound(epsilon, delta)
    return least * alone**2 * gaussian_bound(workload) / workload.queries * (1.0 - 1e-12)
