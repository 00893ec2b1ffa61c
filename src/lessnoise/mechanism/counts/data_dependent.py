"""Laws whose error depends on the data: what cannot be told without them is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.errors import InvalidInput
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.sampling import draw_noise

if TYPE_CHECKING:
    from typing import NoReturn

    from lessnoise.mechanism.law import Law


def needs_data(law: type[Law], name: str, reason: str) -> None:
    """Refuse the noise, the expected loss and the quantiles of the loss of a law, which depend on the data."""

    def refusal(what: str) -> InvalidInput:
        return InvalidInput(f"mechanism={name!r} has no {what} of its own: {reason}; release some.")

    @draw_noise.register(law)
    def _(law: Law, shape: tuple[int, ...], rng: object = None) -> NoReturn:
        raise refusal("noise")

    @log_raw_moment.register(law)
    def _(law: Law, dimension: int, order: float) -> NoReturn:
        raise refusal("expected loss")

    @quantile.register(law)
    def _(law: Law, dimension: int, probability: float) -> NoReturn:
        raise refusal("quantile of the loss")
