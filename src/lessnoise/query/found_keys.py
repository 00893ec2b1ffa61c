"""Groups by keys that were found in the data, in combinations that occur there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.query.grouped import Grouped

if TYPE_CHECKING:
    from lessnoise._common import IntArray

_MOST_COMBINATIONS = 1 << 62


@dataclass(frozen=True, repr=False)
class FoundKeys(Grouped):
    """As :class:`Grouped`, where the keys of the columns ``found`` are all that there are.

    There is a group for each of the cells in ``only``: numbers among all, rising, axes in C order. None: for all.
    Neither keys nor their number are shown.

    >>> from lessnoise.query import ROWS, Axis
    >>> axes = (Axis("city", keys=["Bergen", "Oslo"]), Axis("sex", keys=["f", "m"]))
    >>> query = FoundKeys(axes, (ROWS,), ("city", "sex"), only=(0, 2, 3))
    >>> query.answer({"city": ["Oslo", "Oslo", "Bergen"], "sex": ["m", "f", "f"]}).value.tolist()
    [[1.0], [1.0], [1.0]]
    """

    shape_is_public: ClassVar[bool] = False
    found: tuple[str, ...] = ()
    only: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.prod(axis.size for axis in self.axes) > _MOST_COMBINATIONS:
            raise InvalidInput("the columns of the groups have too many keys together: pass public keys for some.")

    def __repr__(self) -> str:
        return f"FoundKeys of {', '.join(map(shown, self.found))}"

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return super().groups if self.only is None else len(self.only)

    @cached_property
    def _kept(self) -> IntArray:
        return np.array(self.only, dtype=np.int64)

    def numbered(self, cells: IntArray) -> IntArray:
        """The place of each cell among those that there are, or -1."""
        if self.only is None:
            return cells
        places = np.minimum(np.searchsorted(self._kept, cells), len(self.only) - 1)
        return np.where(self._kept[places] == cells, places, -1)

    def along(self, places: IntArray) -> list[IntArray]:
        """Of some groups, the cell along each axis."""
        return super().along(places if self.only is None else self._kept[places])
