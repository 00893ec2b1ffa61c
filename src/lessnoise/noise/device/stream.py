"""Random words for a device, addressed: ChaCha20 (RFC 8439), one key a release.

A block of ChaCha20 is eight words of 64 bits, and its 128 bits of counter and nonce are an address:

    counter   the block's number, 32 bits
    nonce     level, step, purpose, 32 bits each

Levels 1, 2, ... of a word are its further bits, as in :mod:`lessnoise.noise.stream`. ``step`` tells the releases of one
training apart, ``purpose`` what the words are for. A tile is 256 blocks: word j of block 256 t + i belongs to the value
at place 2048 t + 256 j + i, so that neighbouring lanes of a device write neighbouring values.
"""

from __future__ import annotations

import functools
import os
import struct
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.noise.stream import SCALARS, Reader, Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

LANES = 256  # blocks of a tile
WORDS = 8  # words of a block
TILE = LANES * WORDS
MOST_VALUES = 1 << 35  # 2^32 blocks
VALUES, SAMPLES, ONCE = 0, 1, 2  # purposes; ONCE and beyond: what is drawn once a release


class ChaChaStream(Stream):
    """The words of one release, or of one training. The key cannot be read, copied or pickled.

    >>> stream = ChaChaStream.of(np.random.default_rng(1)).claim()
    >>> stream.tiles(0, 1).shape
    (1, 8, 256)
    """

    __slots__ = ("_bytes",)

    @classmethod
    def secure(cls) -> ChaChaStream:
        """A fresh key from the operating system; no two streams share one."""
        return cls(lambda: os.urandom(32), private=True, description="ChaCha20 keyed by the operating system")

    @classmethod
    def of(cls, rng: np.random.Generator | None) -> ChaChaStream:
        """A secure stream, or one keyed by the caller's generator, which moves on by 32 bytes."""
        if rng is None:
            return cls.secure()
        key = functools.partial(rng.bytes, 32)
        return cls(key, private=False, description="ChaCha20 keyed by the caller's NumPy generator")

    def claim(self) -> ChaChaStream:
        """Draw the key, for the one release that may use it."""
        if self._key is None:
            raise RuntimeError("this stream has served a release already: its words must not be used again")
        self._bytes: bytes = self._key()
        self._key = None
        self._algorithm = self._process = os.getpid()
        return self

    def kernel_key(self) -> tuple[int, ...]:
        """The key as eight signed 32-bit integers: the argument of a kernel, and nothing else."""
        self.check_process()
        return struct.unpack("<8i", self._bytes)

    def reader(self) -> Reader:
        """For what is drawn once a release."""
        if self._algorithm is None:
            raise RuntimeError("this stream has no key yet: claim it for a release")
        return _ScalarReader(self)

    def blocks(self, first: int, count: int, *, level: int = 0, step: int = 0, purpose: int = VALUES) -> Words:
        """``count`` blocks, one a row; a fresh array."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        self.check_process()
        if first < 0 or count < 0 or (first + count - 1) >> 32 or (level | step | purpose) >> 32:
            raise ValueError("no such address")
        address = struct.pack("<4I", first, level, step, purpose)
        found = np.empty((count, WORDS), dtype="<u8")
        cipher = Cipher(algorithms.ChaCha20(self._bytes, address), mode=None).encryptor()
        cipher.update_into(bytes(found.nbytes), found.data.cast("B"))
        return found

    def tiles(self, first: int, count: int, *, level: int = 0, step: int = 0, purpose: int = VALUES) -> Words:
        """``count`` tiles: entry [t, j, i] is word j of block i of tile first + t, the value at 2048 t + 256 j + i."""
        found = self.blocks(first * LANES, count * LANES, level=level, step=step, purpose=purpose)
        return found.reshape(count, LANES, WORDS).transpose(0, 2, 1)

    def word(self, place: int, level: int, step: int = 0) -> int:
        """The word of the value at a place."""
        tile, inside = divmod(place, TILE)
        j, i = divmod(inside, LANES)
        return int(self.blocks(tile * LANES + i, 1, level=level, step=step)[0, j])


class _ScalarReader(Reader):
    """Words of scalar draws, by the addresses that :class:`~lessnoise.noise.exact_arithmetic.Word` asks for."""

    __slots__ = ("_source",)

    def __init__(self, stream: ChaChaStream) -> None:
        self._source = stream

    def words(self, level: int, block: int, start: int, count: int) -> Words:
        """``count`` words of a block of scalars."""
        first, end = start // WORDS, -(-(start + count) // WORDS)
        found = self._source.blocks(first, end - first, level=level, purpose=ONCE + (block - SCALARS))
        return found.reshape(-1)[start - first * WORDS :]

    def word(self, level: int, block: int, position: int) -> int:
        """One word."""
        return int(self.words(level, block, position, 1)[0])


def check_count(count: int) -> None:
    """Refuse more values than there are addresses."""
    if count > MOST_VALUES:
        raise InvalidInput(f"entries={count} exceed {MOST_VALUES}, the most of one release on a device: split it.")


def claimed(key: bytes) -> ChaChaStream:
    """A stream with a known key, for known answers; it is not private."""
    return ChaChaStream(lambda: key, private=False, description="ChaCha20 with a known key").claim()
