"""Adding the noise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._display import Plotted
from lessnoise._later import offers
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.mechanism import BEST, choose_mechanism, integer_array, is_streamed, prepare_noise, values_drawn
from lessnoise.noise import ChaChaStream, Stream, can_keep, prepare_noise_on_device
from lessnoise.query import Answer, Asked
from lessnoise.release.certificate import Certificate
from lessnoise.release.coverage import check_covers, unquoted
from lessnoise.release.pair import read_release, reserved, write_staged
from lessnoise.release.payment import Payment, check_payment
from lessnoise.release.tensors import as_array, checked_tensor, form_there, grid_type, is_tensor, like

if TYPE_CHECKING:
    import os

    import torch
    from numpy.typing import ArrayLike, NDArray

    from lessnoise.ledger import Ledger, Receipt
    from lessnoise.mechanism import Mechanism
    from lessnoise.release.signer import Signer


@dataclass(frozen=True, eq=False)
class Release(Plotted):
    """A noisy value and its certificate; with a ledger, the receipt of what it cost.

    A float32 value stays float32; integers stay integers for integer noise. The noisy value of a tensor is a tensor on
    the same device.

    >>> import pathlib, tempfile, lessnoise as ln
    >>> made = ln.laplace(epsilon=1, sensitivity=1, shape=3).release([1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made.write(pathlib.Path(folder) / "noisy.npy")
    ...     again = ln.Release.read(pathlib.Path(folder) / "noisy.npy")
    >>> bool((again.value == made.value).all()), again.certificate.guarantee == made.certificate.guarantee
    (True, True)
    """

    value: Any  # an array of float64, float32 or int64; of a tensor, a tensor on its device
    certificate: Certificate
    receipt: Receipt | None = None

    def write(self, path: str | os.PathLike[str], *, force: bool = False, signer: Signer | None = None) -> None:
        """Write the value as ``path`` and the certificate, with the value's SHA-256, beside it: both or neither.

        With a ``signer`` the certificate is signed.
        """
        with reserved(self.certificate.mechanism, Path(path), force, self.certificate.asked) as staged:
            write_staged(self, Path(path), staged, None, signer)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Release:
        """Read what :meth:`write` or ``lessnoise release`` wrote; a value that is not its certificate's is refused."""
        return cls(*read_release(Path(path)))


@offers("release")
def release(
    mechanism: Mechanism,
    value: ArrayLike | Answer,
    rng: np.random.Generator | None = None,
    *,
    ledger: Ledger | None = None,
    partition: str | None = None,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
) -> Release:
    """Check everything, certify, pay, and only then draw and add the noise.

    Of an :class:`~lessnoise.Answer`, the mechanism must hide all that one unit can change, and the certificate says
    what was asked.

    A tensor of PyTorch is released where it lies, and the noisy value is a tensor on the same device.

    What fails before the payment costs nothing; what fails after it raises :class:`~lessnoise.PaidNotReleased`.

    >>> import lessnoise as ln
    >>> m = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=3)
    >>> r = release(m, [1.0, 2.0, 3.0])
    >>> r.value.shape, r.certificate.private, r.certificate.guarantee.delta <= 1e-6
    ((3,), True, True)
    """
    if is_tensor(value):
        return _release_tensor(mechanism, value, rng, ledger, partition, out, threads)
    asked = None
    if isinstance(value, Answer):
        asked, value = value.asked, value.value
        check_covers(mechanism, asked)
    with unquoted(asked):
        integer = mechanism.law.integer
        checked = integer_array(value, mechanism.shape) if integer else validation.shaped_array(value, mechanism.shape)
    stated = asked if asked is not None and asked.query.can_be_read else None
    stream, certificate = certified(mechanism, checked.dtype, rng, ledger, partition, stated)
    if threads is not None:
        validation.whole_number("threads", threads)
    with unquoted(asked):
        drawing = prepare_noise(mechanism.law, checked, stream, out=out, threads=threads)
    if ledger is not None:
        _check_memory(mechanism)
    with Payment(ledger) as payment:
        payment.spend(mechanism, partition)
        with unquoted(asked):
            noisy = drawing()
    return Release(noisy, certificate, payment.receipt)


def _release_tensor(
    mechanism: Mechanism,
    value: torch.Tensor,
    rng: np.random.Generator | None,
    ledger: Ledger | None,
    partition: str | None,
    out: Any,  # noqa: ANN401
    threads: int | None,
) -> Release:
    """The same for a tensor; the noisy one is on its device."""
    value = checked_tensor(value, mechanism.shape)
    form = form_there(mechanism, value)
    if form is None:
        if out is not None:
            raise InvalidInput(f"out= is not for tensors on {value.device} with this noise: leave it out.")
        made = release(mechanism, as_array(value), rng, ledger=ledger, partition=partition, threads=threads)
        with Payment(ledger, made.receipt, made):
            return replace(made, value=like(made.value, value))
    stream, certificate = certified(mechanism, grid_type(value), rng, ledger, partition, streams=ChaChaStream)
    assert isinstance(stream, ChaChaStream)
    drawing = prepare_noise_on_device(form, value, stream, out=out)
    with Payment(ledger) as payment:
        payment.spend(mechanism, partition)
        noisy = drawing()
    return Release(noisy, certificate, payment.receipt)


@offers("release answer")
def release_answer(
    answer: Answer,
    *,
    epsilon: float,
    delta: float,
    mechanism: str = BEST,
    rng: np.random.Generator | None = None,
    ledger: Ledger | None = None,
    partition: str | None = None,
) -> Release:
    """Choose the mechanism and release; what is best for counts gives whole numbers, rounded if its noise is not."""
    built = choose_mechanism(mechanism, answer.request(epsilon, delta))
    made = release(built, answer, rng, ledger=ledger, partition=partition)
    if mechanism != BEST or built.law.integer or not answer.query.integer:
        return made
    with Payment(ledger, made.receipt, made):
        return replace(made, value=_whole(made.value), certificate=replace(made.certificate, grid=1.0))


def _whole(noisy: NDArray[Any]) -> NDArray[Any]:
    """Noisy counts, rounded; integers unless the noise is so large that 64 bits do not hold them."""
    rounded: NDArray[Any] = np.rint(noisy)
    return rounded.astype(np.int64) if (np.abs(rounded) < 2.0**62).all() else rounded


def certified(
    mechanism: Mechanism,
    dtype: np.dtype[Any],
    rng: np.random.Generator | None,
    ledger: Ledger | None,
    partition: str | None,
    asked: Asked | None = None,
    streams: type[Stream] = Stream,
) -> tuple[Stream, Certificate]:
    """Every check that needs no value; the words of the release, not drawn yet, and its certificate."""
    generator = validation.generator(rng)
    check_payment(generator, ledger, partition)
    stream = streams.of(generator)
    certificate = Certificate.of(mechanism, stream, dtype, asked)
    _refuse_impossible(certificate)
    if certificate.claim_holds is False and mechanism.claim is not None:
        warnings.warn(
            f"the claim {mechanism.claim} of {mechanism.name} does not hold: the exact guarantee of this release is "
            f"{certificate.guarantee}.",
            ClaimWarning,
            stacklevel=4,
        )
    return stream, certificate


def _check_memory(mechanism: Mechanism) -> None:
    """Noise that is not simply added needs room beside its output: take it once, and give it back, before paying."""
    if not is_streamed(mechanism.law, mechanism.shape):
        np.ones(2 * values_drawn(mechanism.law, mechanism.dimension) + 6 * mechanism.dimension)


def _refuse_impossible(certificate: Certificate) -> None:
    """A target that the noise keeps, but not a cipher: its delta is too small for its epsilon and dimension."""
    mechanism, claim = certificate.mechanism, certificate.mechanism.claim
    if claim is None or not certificate.claim_holds or claim.delta == 0.0:
        return
    if not can_keep(claim.delta, claim.epsilon, values_drawn(mechanism.law, mechanism.dimension)):
        raise InvalidInput(
            f"delta={claim.delta:g} is too small for epsilon={claim.epsilon:g} and M={mechanism.dimension}: the random "
            f"words alone cost {certificate.delta_numeric:.3g}; use a larger delta or a smaller epsilon."
        )
