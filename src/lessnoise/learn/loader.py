"""Poisson samples of a data set: each record takes part in each batch with the same probability, independently."""

from __future__ import annotations

import itertools
import math
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, Sampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from lessnoise.errors import InvalidInput
from lessnoise.learn.batch import Collate, token_of
from lessnoise.noise import ChaChaStream, Stream, has_kernels, poisson_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray


_KEPT = (
    *("num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "generator"),
    *("prefetch_factor", "persistent_workers"),
)  # of the options of the loader that is replaced


class PoissonSampler(Sampler[list[int]]):
    """Batches of the records that there are, at rate 1/steps, ``steps`` an epoch; ``issued`` counts all of them.

    The secure one compares cryptographic words with the rate rounded down, under a new key each epoch, on the model's
    device if that has kernels; the other one uses torch's generator. With several replicas each takes every replica-th
    record.
    """

    def __init__(
        self,
        records: int,
        steps: int,
        *,
        secure: bool,
        generator: torch.Generator | None = None,
        rank: int = 0,
        replicas: int = 1,
    ) -> None:
        self.rate = 1.0 / steps
        self.steps = steps
        self.issued = 0
        self.on_start: Callable[[], None] = lambda: None
        self._mine = np.arange(rank, records, replicas)
        self._secure, self._generator = secure, generator
        self.device = torch.device("cpu")  # where samples are drawn, if it has kernels

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[list[int]]:
        self.on_start()
        chosen = self._chosen()
        for _ in range(self.steps):
            self.issued += 1
            yield self._mine[next(chosen)].tolist()

    def _chosen(self) -> Iterator[NDArray[Any]]:
        """Samples of one pass without end, as places or as truths: rates are rounded down, and 1 is everybody."""
        count = self._mine.size
        if self.rate == 1.0:
            yield from itertools.repeat(np.ones(count, dtype=bool))
        elif self._secure and has_kernels(self.device):
            stream = ChaChaStream.secure().claim()
            for step in itertools.count():
                yield poisson_sample(stream, count, self.rate, step, self.device).cpu().numpy()
        elif self._secure:
            words, limit = Stream.secure().claim().sequence(), np.uint64(math.ldexp(self.rate, 64))
            while True:
                yield words.words(count) < limit
        while True:
            yield torch.rand(count, generator=self._generator, dtype=torch.float64).numpy() < self.rate


class Parts(Sampler[list[int]]):
    """The samples of another sampler in parts of at most so many records; ``ends`` says which parts end a sample."""

    def __init__(self, sampler: PoissonSampler, max_rows: int) -> None:
        self.sampler, self.max_rows = sampler, max_rows
        self.ends: deque[bool] = deque()

    def __iter__(self) -> Iterator[list[int]]:
        self.ends = deque()  # of this pass, and not of one that begins later
        return self._parts(self.ends)

    def _parts(self, ends: deque[bool]) -> Iterator[list[int]]:
        for sample in self.sampler:
            starts = range(0, max(len(sample), 1), self.max_rows)
            for start in starts:
                ends.append(start == starts[-1])
                yield sample[start : start + self.max_rows]


class Place(NamedTuple):
    """Where a batch stands in its pass."""

    before: str | None  # the token of the batch before
    last: bool  # whether a Poisson sample ends with it


class PoissonLoader(DataLoader[Any]):
    """A loader of Poisson samples, or of their parts, that knows which batch of a pass came before which."""

    def __init__(self, *options: Any, **named: Any) -> None:  # noqa: ANN401
        super().__init__(*options, **named)
        self.places: dict[str | None, Place] = {}  # of the batches of the present pass, by token

    def __iter__(self) -> Iterator[Any]:
        """The batches of one pass, some of them perhaps empty."""
        self.places.clear()
        batches, before = super().__iter__(), None
        ends = self.batch_sampler.ends if isinstance(self.batch_sampler, Parts) else None
        for batch in batches:
            token = token_of(batch)
            self.places[token], before = Place(before, ends.popleft() if ends is not None else True), token
            yield batch

    def in_parts(self, max_rows: int) -> PoissonLoader:
        """The same samples in parts of at most so many records."""
        sampler = self.batch_sampler
        assert isinstance(sampler, PoissonSampler)
        kept = {name: getattr(self, name) for name in _KEPT}
        loader = PoissonLoader(self.dataset, batch_sampler=Parts(sampler, max_rows), collate_fn=self.collate_fn, **kept)
        loader.places = self.places  # one pass at a time
        return loader


Kind = TypeVar("Kind", bound=PoissonLoader)


def check_loader(loader: object) -> None:
    """Refuse a loader whose batches cannot be replaced by Poisson samples of the same data."""
    if not isinstance(loader, DataLoader):
        raise InvalidInput(f"data_loader={type(loader).__name__} is not a torch DataLoader: pass one over a data set.")
    if isinstance(loader.dataset, IterableDataset):
        raise InvalidInput(
            f"data_loader.dataset={type(loader.dataset).__name__} is iterable only: Poisson samples, which the "
            "accounting needs, take a data set with an index and a length."
        )
    if not len(loader.dataset):
        raise InvalidInput("data_loader.dataset has no record: pass one with records of the form that is trained on.")
    batches = loader.batch_sampler
    if batches is None:
        raise InvalidInput("data_loader.batch_size=None does no batching: pass batch_size=, the mean size of a batch.")
    if type(batches) is not BatchSampler or not isinstance(
        batches.sampler, (RandomSampler, SequentialSampler, DistributedSampler)
    ):
        sampler = batches if type(batches) is not BatchSampler else batches.sampler
        raise InvalidInput(
            f"data_loader.sampler={type(sampler).__name__} does not draw Poisson samples, so the accounting would be "
            "wrong: pass a DataLoader with dataset= and batch_size= alone, over a Subset if need be."
        )


def batches_an_epoch(loader: DataLoader[Any], records: int) -> int:
    """How many batches an epoch has if there are so many records: by public numbers alone."""
    sampler = loader.sampler
    each = -(-records // sampler.num_replicas) if isinstance(sampler, DistributedSampler) else records
    return int(-(-each // loader.batch_size))


def poisson_loader(
    loader: DataLoader[Any], batches: int, *, secure: bool, generator: torch.Generator | None, distributed: bool
) -> PoissonLoader:
    """The same data in Poisson samples at rate 1/batches; samples may be empty."""
    rank, replicas = (torch.distributed.get_rank(), torch.distributed.get_world_size()) if distributed else (0, 1)
    records = len(loader.dataset)  # type: ignore[arg-type]
    sampler = PoissonSampler(records, batches, secure=secure, generator=generator, rank=rank, replicas=replicas)
    return replaced(loader, sampler, PoissonLoader)


def replaced(loader: DataLoader[Any], sampler: PoissonSampler, kind: type[Kind]) -> Kind:
    """The same data in the batches of this sampler."""
    records = len(loader.dataset)  # type: ignore[arg-type]
    examples = [loader.dataset[place] for place in sorted({0, (records - 1) // 2, records - 1})]
    kept = {name: getattr(loader, name) for name in _KEPT}
    return kind(loader.dataset, batch_sampler=sampler, collate_fn=Collate(loader.collate_fn, examples), **kept)
