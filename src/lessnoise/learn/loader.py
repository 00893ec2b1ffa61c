"""Poisson samples of a data set: each record takes part in each batch with the same probability, independently."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from opacus.data_loader import DPDataLoader
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, Sampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from lessnoise.errors import InvalidInput
from lessnoise.noise import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator


class PoissonSampler(Sampler[list[int]]):
    """Batches at rate 1/steps, ``steps`` an epoch; ``issued`` counts them over all epochs.

    The secure one compares cryptographic 64-bit words with the rate rounded down, under a new key each epoch; the other
    one uses torch's generator. With several replicas each takes every replica-th record.
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
        self._mine = np.arange(rank, records, replicas)
        self._secure, self._generator = secure, generator

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[list[int]]:
        words = Stream.secure().claim().sequence() if self._secure else None
        # floor(rate 2^64): never more likely than accounted for. The rate 1 is everybody.
        limit = np.uint64(min(int(math.ldexp(self.rate, 64)), 2**64 - 1))
        for _ in range(self.steps):
            if self.rate == 1.0:
                chosen = np.ones(self._mine.size, dtype=bool)
            elif words is not None:
                chosen = words.words(self._mine.size) < limit
            else:
                drawn = torch.rand(self._mine.size, generator=self._generator, dtype=torch.float64)
                chosen = drawn.numpy() < self.rate
            self.issued += 1
            yield self._mine[chosen].tolist()


def check_loader(loader: object) -> None:
    """Refuse a loader whose batches cannot be replaced by Poisson samples of the same data."""
    if not isinstance(loader, DataLoader):
        raise InvalidInput(f"data_loader={type(loader).__name__} is not a torch DataLoader: pass one over a data set.")
    if isinstance(loader.dataset, IterableDataset):
        raise InvalidInput(
            f"data_loader.dataset={type(loader.dataset).__name__} is iterable only: Poisson samples, which the "
            "accounting needs, take a data set with an index and a length."
        )
    batches = loader.batch_sampler
    if isinstance(batches, PoissonSampler) or isinstance(loader, DPDataLoader):
        return
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


def poisson_loader(
    loader: DataLoader[Any], *, secure: bool, generator: torch.Generator | None, distributed: bool
) -> DataLoader[Any]:
    """The same data in Poisson samples, as many an epoch as the loader has batches; batches may be empty."""
    theirs = DPDataLoader.from_data_loader(loader, generator=generator)  # for its handling of empty batches
    ranks = (torch.distributed.get_rank(), torch.distributed.get_world_size()) if distributed else (0, 1)
    sampler = PoissonSampler(
        len(loader.dataset),  # type: ignore[arg-type]
        len(loader),
        secure=secure,
        generator=generator,
        rank=ranks[0],
        replicas=ranks[1],
    )
    return DataLoader(
        loader.dataset,
        batch_sampler=sampler,
        collate_fn=theirs.collate_fn,
        num_workers=loader.num_workers,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=loader.persistent_workers,
    )
