"""Running totals of numbers, vectors or tables, one a period, private over all periods together."""

from __future__ import annotations

import functools
import hashlib
import hmac
import math
import os
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from lessnoise import changes as change_sets
from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._display import Facts, Listed, Plotted
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.mechanism import Laplace, prepare_noise
from lessnoise.release import Payment, check_payment
from lessnoise.streams.plan import Plan, best_plan
from lessnoise.streams.store import StreamFolder, chained
from lessnoise.streams.tree import Tree

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lessnoise._common import Array, IntArray, Shape
    from lessnoise.changes import Changes
    from lessnoise.composition import Composition
    from lessnoise.guarantees import Bracket, Guarantee
    from lessnoise.ledger import Ledger, Receipt

_MOST_QUANTA = 2.0**60


class Stream(Listed, Plotted):
    """Noisy running totals, each as soon as its period is over; the guarantee holds for all periods together.

    What is pushed may depend on all totals before. The strategy and its noise are chosen for the least mean squared
    error of the running totals: a tree of sums with geometric or Laplace noise, or with Gaussian noise a Toeplitz
    matrix, by buffers, by few coefficients or by all those of a square root.

    Parameters
    ----------
    periods : how many values will be pushed at most.
    epsilon, delta : the guarantee of all totals together; delta 0 is pure privacy.
    shape : of a value; () for one number.
    changes : what one individual can change in one period's value, by default one row of counts.
    participations : in how many periods one individual may take part.
    strategy : "best", "tree", "buffers", "banded" or "square-root".
    path : a folder for the state, which survives a crash; without it the stream lives in memory.
    ledger, partition : pay from a ledger, once, when the stream is made.
    rng : for experiments only: a seeded stream is not private.
    keep : without a path, keep the totals in memory, for ``totals`` and ``window``.

    >>> import numpy as np
    >>> with Stream(periods=365, epsilon=1, delta=1e-6, rng=np.random.default_rng(1)) as visits:
    ...     for count in (120, 95, 130):
    ...         total = visits.push(count)
    >>> round(visits.standard_error(), 1), abs(total - 345) < 60
    (9.7, True)
    >>> print(visits.plan.strategy)
    square-root Toeplitz, 365 coefficients
    """

    def __init__(
        self,
        *,
        periods: int,
        epsilon: float,
        delta: float = 0.0,
        shape: Shape = (),
        changes: Changes | None = None,
        participations: int = 1,
        strategy: str = "best",
        path: str | os.PathLike[str] | None = None,
        ledger: Ledger | None = None,
        partition: str | None = None,
        rng: np.random.Generator | None = None,
        keep: bool = True,
    ) -> None:
        check_payment(validation.generator(rng), ledger, partition, "stream")
        asked = change_sets.counts() if changes is None else changes
        plan = best_plan(periods, shape, epsilon, delta, asked, participations, strategy)
        plan.check()
        if ledger is not None:
            ledger.check(plan.composition, partition=partition)
        folder = None if path is None else StreamFolder.reserve(path)
        key = b""
        try:
            with Payment(ledger) as payment:
                payment.spend(plan.composition, partition)
                key = os.urandom(32) if rng is None else rng.bytes(32)
                if folder is not None:
                    folder.write_plan(plan.to_dict(), key, rng is None)
        except BaseException:
            if folder is not None:
                folder.discard()
            raise
        self._start(plan, key, rng is None, folder, keep, payment.receipt)

    def _start(
        self,
        plan: Plan,
        key: bytes,
        private: bool,
        folder: StreamFolder | None,
        keep: bool,
        receipt: Receipt | None = None,
    ) -> None:
        self.plan, self.private, self.receipt = plan, private, receipt
        self._key, self._folder, self._keep = key, folder, keep
        self._run = plan.run()
        self._period, self._value, self._chain = 0, b"", b""
        self._kept: list[Array] = []
        self._process, self._lock = os.getpid(), threading.Lock()
        self._closed = ""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Stream:
        """Go on with the stream of a folder; refused while another process has it, or if its files were changed."""
        folder = StreamFolder.open(path)
        try:
            values, key, private = folder.read_plan()
            found = cls.__new__(cls)
            found._start(Plan.from_dict(values), key, private, folder, keep=False)
            state = folder.read_state(key)
            if state is not None:
                header, arrays = state
                found._period, found._value = header["period"], bytes.fromhex(header["value"])
                found._chain = bytes.fromhex(header["chain"])
                found._run.settle(arrays)
            before = found.plan.records(max(found._period - 1, 0))
            last = np.empty((0, found.plan.size)) if state is None else _rows(state[1])
            folder.check_totals(before, found._chain, last)
        except BaseException:
            folder.close()
            raise
        return found

    # Pushing.

    def push(self, value: ArrayLike, *, period: int | None = None) -> Any:  # noqa: ANN401
        """The noisy running total, this period's value in it: a float, or an array of the shape of a value.

        With ``period``, pushing is safe to repeat: the last period again, with the same value, gives the same total.
        """
        with self._lock:
            self._check_open()
            wanted = self._period + 1 if period is None else validation.whole_number("period", period)
            checked = np.ascontiguousarray(validation.array(value, self.plan.shape), dtype=np.float64)
            checked = checked.reshape(-1) + 0.0  # no negative zeros
            digest = self._value_digest(wanted, checked)
            if wanted == self._period:
                if digest != self._value:
                    raise InvalidInput(f"period={wanted} was pushed with another value: push each period once.")
                return self._given(self._run.total)
            if wanted < self._period:
                raise InvalidInput(f"period={wanted} is over: only the last one, {self._period}, can be pushed again.")
            if wanted != self._period + 1:
                raise InvalidInput(f"period={shown(wanted)} is not the next one: push period {self._period + 1}.")
            if wanted > self.plan.periods:
                raise InvalidInput(
                    f"period={wanted} is beyond periods={self.plan.periods}, which the noise was made for: make "
                    "another stream."
                )
            return self._pushed(checked, wanted, digest)

    def _pushed(self, value: Array, period: int, digest: bytes) -> Any:  # noqa: ANN401
        measured, private = self._run.measured(self._quanta(value), period)
        drawing = {level: self._prepared(level, quanta, period) for level, quanta in measured.items()}
        noisy = {level: draw() for level, draw in drawing.items()}
        state = {**private, **self._run.estimated(noisy, period)}
        rows = _rows(state)
        if self._folder is not None:
            try:
                chain = chained(self._chain, rows)
                self._folder.write_state(period, digest.hex(), chain, state, self._key)
                self._folder.append(self.plan.records(period - 1), rows)
            except BaseException:
                self._closed = "failed to write its state: open it again"
                self._folder.close()
                raise
            self._chain = chain
        self._run.settle(state)
        self._period, self._value = period, digest
        if self._folder is None and self._keep:
            self._kept.extend(rows)
        return self._given(state["total"])

    def _quanta(self, value: Array) -> IntArray:
        """The value in whole quanta, rounded down."""
        quantum = self.plan.noise.quantum
        scaled = value / quantum  # exact: a power of two
        largest = float(max(scaled.max(), -scaled.min()))
        if not largest <= _MOST_QUANTA:
            raise InvalidInput(
                f"value={largest * quantum:g} exceeds {_MOST_QUANTA * quantum:g}, the most that this stream's "
                "arithmetic holds: state it in larger units, or clip it to a public bound."
            )
        whole = np.floor(scaled)
        if self.plan.is_integer and (whole != scaled).any():
            wrong = value[whole != scaled][0]
            raise InvalidInput(f"value={wrong:g} is not a whole number, as changes={self.plan.changes} has: round it.")
        return whole.astype(np.int64)

    def _prepared(self, level: int, quanta: IntArray, period: int) -> Any:  # noqa: ANN401
        """The noise of a measurement, checked and not drawn: a function of the key, the period and the level alone."""
        key = functools.partial(self._noise_key, level, period)
        words = noise_engine.Stream(key, private=self.private, description="AES-256-CTR keyed by a stream")
        law = self.plan.law(level, period)
        if self.plan.is_integer and not isinstance(law, float):
            draw = prepare_noise(law, quanta, words)
            return lambda: draw().astype(np.float64)
        density = noise_engine.laplace() if isinstance(law, Laplace) else noise_engine.normal()
        scale = law.scale if isinstance(law, Laplace) else law
        assert isinstance(scale, float)
        quantum = self.plan.noise.quantum
        floats = quanta.astype(np.float64)
        largest = float(max(floats.max(), -floats.min()))
        behind = None
        if largest > 2.0**53:  # floats are nearest to the whole numbers, within 2^-53 of them
            exact = Fraction(quantum)
            behind = noise_engine.Behind(largest * 2.0**-53 * quantum, lambda index: int(quanta[index]) * exact)
        form = noise_engine.Independent(density, noise_engine.Real.exactly(scale))
        return noise_engine.prepare_noise(form, floats * quantum, words, behind=behind)

    def _noise_key(self, level: int, period: int) -> bytes:
        """Independent keys: a pseudorandom function of the stream's key."""
        return hmac.digest(self._key, b"noise %d %d" % (period, level), "sha256")

    def _value_digest(self, period: int, value: Array) -> bytes:
        """What a value is known by when it comes again: in memory, itself."""
        if self._folder is None:
            return value.tobytes()
        return hashlib.blake2b(b"value %d " % period + value.tobytes(), digest_size=32, key=self._key).digest()

    def _given(self, total: Array) -> Any:  # noqa: ANN401
        return total.reshape(self.plan.shape).copy() if self.plan.shape else float(total[0])

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInput(f"stream={self} {self._closed}.")
        if os.getpid() != self._process:
            raise InvalidInput(f"stream={self} belongs to the process that forked this one: push there.")

    # What was released.

    @property
    def period(self) -> int:
        """How many periods were pushed."""
        return self._period

    @property
    def total(self) -> Any:  # noqa: ANN401
        """The last running total."""
        if not self._period:
            raise InvalidInput("period=0: no total was released yet, push a value first.")
        return self._given(self._run.total)

    @property
    def totals(self) -> Array:
        """Every running total so far, one in a row."""
        places = [self.plan.records(period) for period in range(self._period)]
        found = self._released(0, places[-1] + 1)[places] if places else np.empty((0, self.plan.size))
        return found.reshape(self._period, *self.plan.shape)

    def window(self, first: int, last: int | None = None) -> Any:  # noqa: ANN401
        """The noisy sum over the periods first .. last, by default up to now.

        It is the difference of two totals; in a tree, combined with the sum of the largest nodes within the window.
        """
        first, last = self._window(first, last)
        difference, parts = self._between(first - 1, last), self.plan.window(first, last)
        if parts is None or not parts.nodes:
            return self._given(difference)
        nodes = np.sum([self._node(level, start) for level, start in parts.nodes], axis=0)
        return self._given(difference + parts.share * (nodes - difference))

    def _between(self, before: int, last: int) -> Array:
        """The difference of two totals."""
        place = self.plan.records(last - 1)
        after = np.asarray(self._released(place, place + 1)[0])
        if before == 0:
            return after
        place = self.plan.records(before - 1)
        return np.asarray(after - self._released(place, place + 1)[0])

    def _node(self, level: int, start: int) -> Array:
        assert isinstance(self.plan.strategy, Tree)
        place = self.plan.strategy.record(level, start)
        if place is None:
            return self._between(start, start + self.plan.strategy.sizes[level])
        return np.asarray(self._released(place, place + 1)[0])

    def _released(self, start: int, stop: int) -> Array:
        """Rows of what was released, counted from 0."""
        if self._folder is not None:
            self._check_open()
            return self._folder.read_rows(start, stop, self.plan.size)
        if self._keep:
            return np.array(self._kept[start:stop])
        if (start, stop) != (self.plan.records(self._period - 1), self.plan.records(self._period - 1) + 1):
            raise InvalidInput("keep=False: earlier totals were not kept; make the stream with keep=True, or a path.")
        return np.asarray(self._run.total[np.newaxis])

    def _window(self, first: int, last: int | None) -> tuple[int, int]:
        end = self._period if last is None else validation.whole_number("last", last)
        start = validation.whole_number("first", first)
        if not start <= end <= self._period:
            raise InvalidInput(f"first={start} and last={end} are no window of the {self._period} periods pushed.")
        return start, end

    # Accuracy and privacy.

    @property
    def query_error(self) -> float:
        """The mean squared error of an entry of a running total, over all periods."""
        return float(np.mean(self.plan.variances()))

    def standard_error(self, period: int | None = None) -> float:
        """The standard deviation of an entry of one running total, by default of the last one."""
        wanted = max(self._period, 1) if period is None else validation.whole_number("period", period)
        if wanted > self.plan.periods:
            raise InvalidInput(f"period={wanted} is beyond periods={self.plan.periods}: pass an earlier one.")
        return math.sqrt(self.plan.variances()[wanted - 1])

    def window_error(self, first: int, last: int | None = None) -> float:
        """The standard deviation of an entry of :meth:`window`."""
        return math.sqrt(self.plan.window_variance(*self._window(first, last)))

    @property
    def composition(self) -> Composition:
        """All that is measured in all periods, as a ledger has it."""
        return self.plan.composition

    @property
    def guarantee(self) -> Guarantee:
        """What all totals together give at the epsilon that was asked for, the finite machine's share in it."""
        return self.plan.composition.guarantee(self.plan.epsilon)

    def delta(self, epsilon: float) -> Bracket:
        """Exact delta at an epsilon of all totals together."""
        return self.plan.composition.delta(epsilon)

    # Ending.

    def close(self) -> None:
        """Let other processes open the stream; what was released can still be seen in memory."""
        if self._folder is not None and not self._closed:
            self._closed = "is closed: open it again"
            self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        place = "" if self._folder is None else f" in {self._folder.path}"
        return f"<Stream{place}: period {self._period} of {self.plan.periods}, {self.plan.strategy}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream cannot be copied or pickled: its noise must never be used twice")

    def _facts(self) -> Facts:
        rows = list(self.plan._facts().rows)
        rows.insert(1, ("periods over", f"{self.period:,}"))
        if self.period:
            rows.append(("standard error of the last total", f"{self.standard_error(self.period):.4g}"))
        return Facts("Running totals", rows)


def _rows(state: dict[str, Any]) -> Array:
    """What a period releases: its total, and the nodes of a tree that are within another one."""
    return np.vstack([state["total"], *state.get("inner", ())])
