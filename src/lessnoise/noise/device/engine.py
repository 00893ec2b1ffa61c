"""Noise where a tensor lies: kernels on a GPU, the NumPy twin elsewhere, with the same bits from the same key."""

from __future__ import annotations

import contextlib
import functools
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.noise.device import forms, twin
from lessnoise.noise.device.sources import AcrossNormals, Laplaces, Normals
from lessnoise.noise.device.stream import SAMPLES, TILE, check_count
from lessnoise.noise.device.tables import IntegerTable
from lessnoise.noise.device.twin import LEFT, Squares, Tiles
from lessnoise.noise.grid import BITS, Grid

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from numpy.typing import NDArray

    from lessnoise.noise.device.forms import DeviceForm
    from lessnoise.noise.device.stream import ChaChaStream
    from lessnoise.noise.device.twin import Line

_LIMIT = 1 << 63


def prepare_noise_on_device(
    form: DeviceForm,
    value: torch.Tensor,
    stream: ChaChaStream,
    *,
    out: torch.Tensor | None = None,
    path: str = "auto",
    bits: int = BITS,
    bound: float | None = None,
) -> Callable[[], torch.Tensor]:
    """Check everything; the function returned draws, and gives ``value`` plus noise on the grid, on the same device.

    float32 and float64 keep their type, bfloat16 and float16 are rounded from the float32 output; integers are int64.
    ``out`` may be ``value``. With a ``bound``, the caller knows that all values are finite and no larger, and they are
    looked at only if the grid might not hold them. ``path`` is "kernels", "twin" or "auto": kernels on a GPU.

    >>> import numpy, torch
    >>> from lessnoise.noise import Independent, Real, normal
    >>> from lessnoise.noise.device import ChaChaStream
    >>> form = Independent(normal(), Real.exactly(2.0))
    >>> seeded = ChaChaStream.of(numpy.random.default_rng(1))
    >>> prepare_noise_on_device(form, torch.zeros(3, dtype=torch.bfloat16), seeded)().dtype
    torch.bfloat16
    """
    import torch

    check_not_captured(value)
    check_count(value.numel())
    whole = isinstance(form, IntegerTable)
    kept = value.dtype
    value = value.detach()
    work = value.to(torch.int64) if whole else value.to(torch.float64 if kept == torch.float64 else torch.float32)
    flat = work.contiguous().reshape(-1)
    target = _target(out, value, work.dtype)
    if flat.data_ptr() != target.data_ptr() and _overlap(flat, target):
        flat = flat.clone()  # an output that overlaps the value in part would overwrite what is still to be read
    grid = Grid(1.0)
    if not isinstance(form, IntegerTable):
        kind = np.float32 if work.dtype == torch.float32 else np.float64
        grid = Grid.of(form.deviation(flat.numel()), kind, bits)
        if bound is None or not bound < grid.largest_value * grid.step:
            _check_values(flat, grid, tuple(value.shape))
    backend = _backend(flat, target, stream, path)

    def draw() -> torch.Tensor:
        check_not_captured(target)
        if stream.unclaimed:
            stream.claim()
        stream.check_process()
        try:
            forms.add(form, backend, grid)
            backend.finish()
        except BaseException as failure:
            _spoil(target)
            if isinstance(failure, RuntimeError) and not isinstance(failure, LessnoiseError):
                raise LessnoiseError(
                    f"the device failed in the middle of a release ({_first_line(failure)}): nothing of it was "
                    "returned; free memory or use another device, and release again with fresh noise."
                ) from failure
            raise
        shaped = target.reshape(value.shape)
        if whole or kept in (torch.float32, torch.float64):
            return shaped
        return shaped.to(kept)

    return draw


def add_noise_on_device(form: DeviceForm, value: torch.Tensor, stream: ChaChaStream, **options: Any) -> torch.Tensor:  # noqa: ANN401
    """Check, draw and add at once, with the options of :func:`prepare_noise_on_device`."""
    return prepare_noise_on_device(form, value, stream, **options)()


def add_noise_to_array(
    form: DeviceForm, value: NDArray[Any], stream: ChaChaStream, *, threads: int | None = None
) -> Any:  # noqa: ANN401
    """The same for a NumPy array, by the twin: the bits that a GPU gives for the same key."""
    whole = isinstance(form, IntegerTable)
    dtype = np.dtype(np.int64 if whole else np.float32 if value.dtype == np.float32 else np.float64)
    flat = np.ascontiguousarray(value, dtype=dtype).reshape(-1)
    out = np.empty_like(flat)
    grid = Grid(1.0) if isinstance(form, IntegerTable) else Grid.of(form.deviation(flat.size), dtype)
    forms.add(form, Tiles(flat, out, stream.claim() if stream.unclaimed else stream, threads), grid)
    return out.reshape(value.shape)


def poisson_sample(stream: ChaChaStream, records: int, rate: float, step: int, device: torch.device) -> torch.Tensor:
    """The places of a Poisson sample, on the device: 63-bit words of this step below the rate rounded down.

    >>> import torch
    >>> from lessnoise.noise.device import ChaChaStream
    >>> places = poisson_sample(ChaChaStream.secure().claim(), 10_000, 0.5, 0, torch.device("cpu"))
    >>> 4000 < len(places) < 6000
    True
    """
    import torch

    check_count(records)
    if rate >= 1.0:
        return torch.arange(records, device=device)
    limit = int(math.ldexp(rate, 63))
    if not has_kernels(device):
        tiles = -(-records // TILE)
        words = stream.tiles(0, tiles, step=step, purpose=SAMPLES).reshape(-1)[:records]
        return torch.from_numpy(np.flatnonzero((words >> np.uint64(1)).astype(np.int64) < limit)).to(device)
    chosen = torch.empty(records, dtype=torch.int8, device=device)
    check_not_captured(chosen)
    with on_device_of(chosen):
        loaded_kernels().sample[(-(-records // TILE),)](chosen, records, *stream.kernel_key(), step, SAMPLES, limit)
    found = chosen.nonzero().reshape(-1)
    chosen.zero_()
    return found


def has_kernels(device: torch.device) -> bool:
    """Whether kernels run there: a GPU that Triton knows."""
    if device.type != "cuda":
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def check_not_captured(tensor: torch.Tensor) -> None:
    """A captured graph would add the same noise at each replay."""
    import torch

    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        raise InvalidInput(
            "device=cuda is capturing a graph, and each replay would add the same noise: release outside of the graph."
        )


# The tensor's own memory.


def _target(out: torch.Tensor | None, value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    import torch

    if out is None:
        return torch.empty(value.numel(), dtype=dtype, device=value.device)
    same = isinstance(out, torch.Tensor) and out.shape == value.shape and out.device == value.device
    if not (same and out.dtype == dtype and out.is_contiguous()):
        raise InvalidInput(
            f"out={_described(out)} does not fit: pass a contiguous tensor of shape {tuple(value.shape)}, {dtype}, on "
            f"{value.device}."
        )
    return out.detach().view(-1)


def _described(out: object) -> str:
    shape, dtype, device = (getattr(out, name, None) for name in ("shape", "dtype", "device"))
    return type(out).__name__ if shape is None else f"a tensor of shape {tuple(shape)}, {dtype}, on {device}"


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())


def _check_values(flat: torch.Tensor, grid: Grid, shape: tuple[int, ...]) -> None:
    """Refuse what is not finite or too large for the grid, before anything is drawn."""
    if not flat.numel():
        return
    limit = grid.largest_value * grid.step
    low, high = (float(end) for end in flat.aminmax())  # a NaN spreads to both
    if low >= -limit and high <= limit:
        return
    place = int((~(flat.abs() <= limit)).nonzero()[0])
    grid.refuse(shape, place, float(flat[place]))


def _spoil(target: torch.Tensor) -> None:
    """Leave neither bare noise nor half a release behind."""
    with contextlib.suppress(RuntimeError):  # else the device is gone, and its memory with it
        target.fill_(math.nan if target.is_floating_point() else 0)


def _first_line(failure: BaseException) -> str:
    return (str(failure).splitlines() or [type(failure).__name__])[0][:200]


# Who does the work.


def _backend(flat: torch.Tensor, target: torch.Tensor, stream: ChaChaStream, path: str) -> Any:  # noqa: ANN401
    if path == "kernels" or (path == "auto" and has_kernels(flat.device)):
        return Kernels(flat, target, stream)
    return _OnHost(flat, target, stream)


class _OnHost(Tiles):
    """The twin for a tensor of any device: its values come to the host and go back."""

    def __init__(self, flat: torch.Tensor, target: torch.Tensor, stream: ChaChaStream) -> None:
        values = flat.cpu().numpy()
        self.target = target
        super().__init__(values, np.empty_like(values), stream)

    def finish(self) -> None:
        """The output to its device."""
        import torch

        self.target.copy_(torch.from_numpy(self.out))


@dataclass
class Kernels:
    """The kernels, a program for each tile; what they leave is answered by the twin."""

    values: torch.Tensor
    out: torch.Tensor
    stream: ChaChaStream

    @property
    def count(self) -> int:
        """Values in all."""
        return int(self.values.numel())

    @property
    def tiles(self) -> int:
        """Programs."""
        return -(-self.count // TILE)

    def squares(self) -> Callable[[], Squares]:
        """Of the normals of step 0: whole numbers, added in whatever order."""
        import torch

        sums = torch.empty(2, self.tiles, dtype=torch.int64, device=self.values.device)
        with on_device_of(self.values):
            loaded_kernels().squares[(self.tiles,)](sums[0], sums[1], self.count, *self.stream.kernel_key())
        return functools.partial(self._added_up, sums)

    def _added_up(self, sums: torch.Tensor) -> Squares:
        units, found = sums.cpu().numpy()
        sums.zero_()
        for tile in np.flatnonzero(found >= LEFT):
            units[tile] = twin.tile_squares(self.stream, self.count, int(tile))
        total = (int((units >> 20).sum()) << 20) + int((units & 0xFFFFF).sum())
        return Squares(total, int((found & (LEFT - 1)).sum()))

    def add(self, line: Line) -> None:
        """Draw, add and round; then the tiles with a doubt."""
        import torch

        source = line.source
        steps = weights = self.values
        rows = 0
        if isinstance(source, AcrossNormals):
            rows = len(source.rows)
            signed = [step - (1 << 32) if step >= _LIMIT >> 32 else step for step, _ in source.rows]
            steps = torch.tensor(signed, dtype=torch.int32, device=self.values.device)
            weights = torch.tensor([w for _, w in source.rows], dtype=torch.float64, device=self.values.device)
        flags = torch.empty(self.tiles, dtype=torch.int8, device=self.values.device)
        with on_device_of(self.values):
            loaded_kernels().add[(self.tiles,)](
                self.values,
                self.out,
                flags,
                self.count,
                *self.stream.kernel_key(),
                source.step if isinstance(source, Normals) else 0,
                *(_bits(number) for number in line.numbers().values()),
                steps,
                weights,
                rows,
                kind=1 if isinstance(source, Laplaces) else 0,
                across=bool(rows),
            )
        self._settle(flags, lambda first, values: twin.rounded(line, self.stream, first, values.astype(np.float64)))

    def add_integers(self, table: IntegerTable) -> None:
        """Draw and add; then the tiles with a doubt."""
        import torch

        first, last = (torch.from_numpy(digits).to(self.values.device) for digits in (table.first, table.last))
        flags = torch.empty(self.tiles, dtype=torch.int8, device=self.values.device)
        with on_device_of(self.values):
            loaded_kernels().add_integers[(self.tiles,)](
                self.values,
                self.out,
                flags,
                self.count,
                *self.stream.kernel_key(),
                first,
                last,
                table.last.size,
                rounds=table.rounds,
            )
        self._settle(flags, lambda tile, values: values + twin.integers(table, self.stream, tile, values.size))

    def _settle(self, flags: torch.Tensor, answer: Callable[[int, NDArray[Any]], NDArray[Any]]) -> None:
        """The tiles that the kernel has left as they were."""
        import torch

        if not flags.any():  # nearly always
            return
        for tile in flags.nonzero().reshape(-1).tolist():
            part = slice(tile * TILE, min((tile + 1) * TILE, self.count))
            values = self.values[part].cpu().numpy()
            self.out[part] = torch.from_numpy(answer(tile, values).astype(values.dtype)).to(self.out.device)

    def finish(self) -> None:
        """All is there."""


def _bits(number: float) -> int:
    """The bits of a double, as a signed integer."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def loaded_kernels() -> Any:  # noqa: ANN401
    """Triton is imported when a kernel is called for."""
    from lessnoise.noise.device import kernels

    return kernels


def on_device_of(tensor: torch.Tensor) -> Any:  # noqa: ANN401
    """Launch on the tensor's own device."""
    import torch

    return torch.cuda.device(tensor.device) if tensor.is_cuda else contextlib.nullcontext()
