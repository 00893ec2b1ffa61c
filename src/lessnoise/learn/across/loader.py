"""Batches for noise across steps: each record has a group, and each step takes records of one group alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lessnoise.errors import InvalidInput
from lessnoise.learn.batch import token_of
from lessnoise.learn.loader import PoissonLoader, PoissonSampler, replaced
from lessnoise.noise import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lessnoise.learn.across.plan import AcrossPlan


class GroupSampler(PoissonSampler):
    """Step t takes the records of group t mod ``groups``, each with probability ``groups``/``steps``.

    Every record draws its group once, by itself, so that a record more or less changes nothing for the others. A pass
    begins at the step that the training has come to, not at the first one: a record whose group had its turn waits for
    the next.
    """

    def __init__(
        self, records: int, steps: int, groups: int, *, secure: bool, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(records, steps, secure=secure, generator=generator)
        self.rate = groups / steps
        self.groups = groups
        self.start = 0
        self.next_step: Callable[[], int] = lambda: 0
        self._group = self._drawn_groups(records)

    def _drawn_groups(self, records: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Any law will do, as long as it is not that of the data."""
        if self._secure:
            words = Stream.secure().claim().sequence().words(records)
            return np.asarray(words % np.uint64(self.groups)).astype(np.int64)
        return np.asarray(torch.randint(0, self.groups, (records,), generator=self._generator))

    def __iter__(self) -> Iterator[list[int]]:
        step = self.start
        for batch in super().__iter__():
            chosen = np.asarray(batch, dtype=np.int64)
            yield chosen[self._group[chosen] == step % self.groups].tolist()
            step += 1


class AcrossLoader(PoissonLoader):
    """A loader of such batches, which knows for which step each of them is."""

    def __init__(self, *options: Any, **named: Any) -> None:  # noqa: ANN401
        super().__init__(*options, **named)
        self.steps_of: dict[str | None, int] = {}

    def __iter__(self) -> Iterator[Any]:
        """The batches of one epoch from the next step on, some of them perhaps empty."""
        sampler: GroupSampler = self.batch_sampler  # type: ignore[assignment]
        sampler.start = step = sampler.next_step()
        self.steps_of = {}
        for batch in super().__iter__():
            self.steps_of[token_of(batch)] = step
            step += 1
            yield batch

    def in_parts(self, max_rows: int) -> PoissonLoader:
        """Parts have no places among the steps."""
        raise InvalidInput(
            f"max_rows={max_rows} with noise across steps is not supported: take smaller batches, or "
            'mechanism="gaussian".'
        )


def across_loader(
    loader: torch.utils.data.DataLoader[Any], plan: AcrossPlan, *, secure: bool, generator: torch.Generator | None
) -> AcrossLoader:
    """The same data in the batches of the plan."""
    records = len(loader.dataset)  # type: ignore[arg-type]
    sampler = GroupSampler(records, plan.batches, plan.groups or plan.batches, secure=secure, generator=generator)
    return replaced(loader, sampler, AcrossLoader)
