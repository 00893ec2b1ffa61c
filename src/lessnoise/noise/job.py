"""One release in progress: its blocks over threads, and value + shift + factor x for each of them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise._common import cores
from lessnoise.noise import reference
from lessnoise.noise.grid import BLOCK, reserve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.noise.exact_arithmetic import Real
    from lessnoise.noise.grid import Grid
    from lessnoise.noise.stream import Reader, Stream
    from lessnoise.noise.ziggurat import Density

    Floats = NDArray[Any]

PARALLEL = 1 << 17  # values from which a second thread pays
MOST_THREADS = 4  # by default: beyond, the interpreter's lock takes what is gained


@dataclass
class Worker:
    """What one thread owns: a cipher context, its buffers, scratch for one block."""

    stream: Stream
    _reader: Reader | None = None
    _scratch: tuple[Any, ...] | None = None

    @property
    def reader(self) -> Reader:
        """Of the stream's words."""
        if self._reader is None:
            self._reader = self.stream.reader()
        return self._reader

    @property
    def scratch(self) -> tuple[Any, ...]:
        """Room for x, pending, places, finals, seconds, rounded (see the kernels)."""
        if self._scratch is None:
            integers = (np.empty(BLOCK + 1, np.int64) for _ in range(4))
            self._scratch = (np.empty(BLOCK), *integers, np.empty(BLOCK))
        return self._scratch


@dataclass(frozen=True)
class Behind:
    """The real numbers behind values that floats hold only nearly, such as sums: how nearly, and each of them."""

    error: float
    number: Callable[[int], Fraction]


@dataclass
class Job:
    """Flat values, their output, and all that decides what is drawn."""

    values: Floats
    out: Floats
    stream: Stream
    density: Density
    grid: Grid
    margin: float
    kernels: Any
    threads: int | None
    shape: tuple[int, ...]
    behind: Behind | None = None

    @property
    def blur(self) -> float:
        """How far the values are from the numbers behind them, in cells."""
        return 0.0 if self.behind is None else self.behind.error / self.grid.step

    @property
    def count(self) -> int:
        """Values in all."""
        return self.values.size

    @property
    def blocks(self) -> int:
        """Blocks of 2^14 values, the last one shorter."""
        return -(-self.count // BLOCK)

    @property
    def in_place(self) -> bool:
        """Whether the output is the value's own memory."""
        return np.shares_memory(self.values, self.out)

    @property
    def held(self) -> range:
        """The blocks whose values are in memory."""
        return range(self.blocks)

    def part(self, block: int) -> slice:
        """Where a block's values are."""
        start = (block - self.held.start) * BLOCK
        return slice(start, start + self.size(block))

    def size(self, block: int) -> int:
        """Values of a block."""
        return min(BLOCK, self.count - block * BLOCK)

    def words(self, worker: Worker, block: int) -> tuple[NDArray[np.uint64], int, int]:
        """A block's words, how many there are, and how many values they are for."""
        count = self.size(block)
        available = count + reserve(count)
        return worker.reader.words(0, block, 0, available), available, count

    # Values.

    def check(self) -> None:
        """Refuse what is not finite or too large for the grid, before anything is drawn or written."""
        limit = self.grid.largest_value * self.grid.step
        bad: list[int] = []

        def work(worker: Worker, block: int) -> None:
            part = self.values[self.part(block)]
            if not (part.min() >= -limit and part.max() <= limit):  # a NaN spreads to both
                bad.append(block)

        self.each(work, self.held)
        if bad:
            self._refuse(min(bad), limit)

    def _refuse(self, block: int, limit: float) -> None:
        part = self.values[self.part(block)]
        place = int(np.flatnonzero(~(np.abs(part) <= limit))[0])
        self.grid.refuse(self.shape, block * BLOCK + place, part[place])

    # Adding: values + shift + factor x.

    def add(self, factor: Real, shift: Real, factors: Array | None = None) -> None:
        """Draw x, add and round, block by block; ``factor`` and ``shift`` are in cells.

        With ``factors``, entry i gets factors[i] (shift + factor x).
        """
        line, tables, in_place = self.line(factor, shift), self.density.tables, self.in_place
        bounds = self.bounds(factor, shift)

        def work(worker: Worker, block: int) -> None:
            status = 1
            if self.kernels is not None and factors is not None:
                status = self.kernels.scaled(
                    *self.words(worker, block),
                    worker.scratch,
                    tables,
                    self.values,
                    self.out,
                    self.part(block).start,
                    bounds,
                    in_place,
                    factors[block * BLOCK : block * BLOCK + self.size(block)],
                )
            elif self.kernels is not None:
                status = self.kernels.independent(
                    *self.words(worker, block),
                    worker.scratch,
                    tables,
                    self.values,
                    self.out,
                    self.part(block).start,
                    line,
                    in_place,
                )
            if status != 0:
                self.slowly(worker.reader, block, factor, shift, factors)

        self.each(work, self.held)

    def line(self, factor: Real, shift: Real, more: float = 0.0) -> tuple[float, ...]:
        """The line; near + slope |factor x| for its float error, in cells (docs/theory/noise-engine.md, lemma 4)."""
        near = abs(factor.value) * (self.density.error + more) + shift.error + 2.0**-50 + self.blur
        if not max(abs(factor.value) * 32.0, abs(shift.value)) < (2.0**21 if self.grid.single else 2.0**40):
            near = 1.0  # nothing is certain: the reference clips, too
        slope = factor.error + 2.0**-51
        whole = float(np.rint(shift.value))
        return factor.value, shift.value - whole, whole, near, slope, self.grid.step

    def bounds(self, factor: Real, shift: Real) -> tuple[float, ...]:
        """The line of entries with factors f of their own.

        The float error is f (near + slope |factor x|) + 2^-50 (1 + |move|) + blur cells, move = f (shift + factor x).
        """
        near = abs(factor.value) * self.density.error + shift.error + 2.0**-51 * abs(shift.value)
        largest = 2.0**21 if self.grid.single else 2.0**40
        return factor.value, shift.value, near, factor.error + 2.0**-50, self.blur, largest, self.grid.step

    def slowly(self, reader: Reader, block: int, factor: Real, shift: Real, factors: Array | None = None) -> None:
        """One block by the reference."""
        part = self.part(block)
        own = None if factors is None else factors[block * BLOCK : block * BLOCK + self.size(block)]
        values = self.values[part].astype(np.float64)

        def number(index: int) -> Fraction:
            return Fraction(float(values[index])) if self.behind is None else self.behind.number(block * BLOCK + index)

        self.out[part] = reference.release(
            self.density, reader, block, values, factor, shift, self.grid, self.margin, self.blur, number, own
        )

    # Threads.

    def each(self, work: Callable[[Worker, int], None], wanted: range | None = None) -> None:
        """Every block once, on as many threads as pay; the output does not depend on which thread did it."""
        number = 1
        if self.count >= PARALLEL and self.kernels is not None:
            threads = min(MOST_THREADS, cores()) if self.threads is None else self.threads
            number = max(1, min(threads, self.blocks))
        blocks = iter(range(self.blocks) if wanted is None else wanted)
        if number == 1:
            _run(Worker(self.stream), blocks, work)
            return
        failures: list[BaseException] = []
        lock = threading.Lock()

        def run() -> None:
            try:
                _run(Worker(self.stream), _locked(blocks, lock, failures), work)
            except BaseException as failure:
                failures.append(failure)

        others = [threading.Thread(target=run, daemon=True) for _ in range(number - 1)]
        for thread in others:
            thread.start()
        run()
        for thread in others:
            thread.join()
        if failures:
            raise failures[0]


def _run(worker: Worker, blocks: Iterator[int], work: Callable[[Worker, int], None]) -> None:
    for block in blocks:
        work(worker, block)


def _locked(blocks: Iterator[int], lock: threading.Lock, failures: list[BaseException]) -> Iterator[int]:
    """Each block to one thread; none any more once a thread has failed."""
    while not failures:
        with lock:
            block = next(blocks, None)
        if block is None:
            return
        yield block
