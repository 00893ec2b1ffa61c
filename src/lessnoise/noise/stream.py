"""Random words, addressed: AES-256 in counter mode, one key a release.

Every word of a release has an address (level, block, position), and the address is its counter, so that

* any thread can fetch any block, and the words do not depend on who fetches them;
* a word can be *lengthened*: levels 1, 2, ... at the same (block, position) are its further bits. A word with all its
  levels is one uniform real number of [0, 1), of which the fast path looks at the first 64 bits only.

A 128-bit counter holds level (16 bits), block (80 bits) and position/2 (32 bits): a cipher block is two words.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

SCALARS = 1 << 60  # the block of the draws made once a release: the radius, a common shift
SEQUENCES = 1 << 61  # the first block of words that are taken in a row
PROPOSALS = 1 << 62  # the first block of normals that are proposed and may be rejected
_ZEROS = memoryview(bytes(8 * (1 << 15)))
_PAD = 2  # words the cipher wants beyond the end of its output


class Stream:
    """The words of one release. The key is drawn when the release begins, and cannot be read, copied or pickled."""

    __slots__ = ("_algorithm", "_key", "_process", "description", "fixed", "private")

    def __init__(self, key: Callable[[], bytes], *, private: bool, description: str) -> None:
        import cryptography.hazmat.primitives.ciphers  # noqa: F401  (if it is missing, that shows before a release)

        self._key: Callable[[], bytes] | None = key
        self._algorithm: Any = None
        self._process = 0
        self.fixed: tuple[int, int, int] | None = None  # block, position and first level of the word that is known
        self.private = private
        self.description = description

    @classmethod
    def secure(cls) -> Stream:
        """A fresh key from the operating system; no two streams share one."""
        return cls(lambda: os.urandom(32), private=True, description="AES-256-CTR keyed by the operating system")

    @classmethod
    def of(cls, rng: np.random.Generator | None) -> Stream:
        """A secure stream, or one keyed by the caller's generator, which moves on by 32 bytes."""
        if rng is None:
            return cls.secure()
        key = functools.partial(rng.bytes, 32)
        return cls(key, private=False, description="AES-256-CTR keyed by the caller's NumPy generator")

    def claim(self) -> Stream:
        """Draw the key, for the one release that may use it."""
        from cryptography.hazmat.primitives.ciphers import algorithms

        if self._key is None:
            raise RuntimeError("this stream has served a release already: its words must not be used again")
        self._algorithm = algorithms.AES(self._key())
        self._key = None
        self._process = os.getpid()
        return self

    @property
    def unclaimed(self) -> bool:
        """Whether its key is still to be drawn."""
        return self._key is not None

    def fix(self, block: int, position: int, first: int) -> None:
        """One word that is not drawn: it begins with ``first``, and all its further levels are 0."""
        self.fixed = block, position, first

    def sequence(self) -> Sequence:
        """Its words one after the other, for samplers that take as many as they need."""
        return Sequence(self.reader())

    def reader(self) -> Reader:
        """One for each thread: a cipher context must not be shared."""
        if self._algorithm is None:
            raise RuntimeError("this stream has no key yet: claim it for a release")
        return Reader(self)

    def check_process(self) -> None:
        """A child process holds a copy of its parent's stream: it must not draw the same noise."""
        if os.getpid() != self._process:
            raise RuntimeError("this process was forked in the middle of a release: start the release again")

    def __repr__(self) -> str:
        return f"<Stream: {self.description}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream cannot be copied or pickled: its key must never be used twice")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce__()


class Reader:
    """One thread's cipher context and buffer."""

    __slots__ = ("_buffer", "_bytes", "_cipher", "_stream")

    def __init__(self, stream: Stream) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, modes

        self._stream = stream
        self._cipher: Any = Cipher(stream._algorithm, modes.CTR(bytes(16))).encryptor()
        self._buffer: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._bytes = memoryview(b"")

    def words(self, level: int, block: int, start: int, count: int) -> NDArray[np.uint64]:
        """``count`` words of a block from an even position on, in a buffer that the next call overwrites."""
        self._stream.check_process()
        if start % 2 or level >> 16 or block >> 80 or (start + count) >> 32:
            raise ValueError("no such address")
        if self._buffer.size < count + _PAD:
            self._buffer = np.empty(count + _PAD, dtype=np.uint64)
            self._bytes = self._buffer.data.cast("B")
        zeros = _ZEROS[: 8 * count] if 8 * count <= len(_ZEROS) else bytes(8 * count)
        self._cipher.reset_nonce((level << 112 | block << 32 | start >> 1).to_bytes(16, "big"))
        self._cipher.update_into(zeros, self._bytes)
        if self._stream.fixed is not None:
            there, position, first = self._stream.fixed
            if there == block and start <= position < start + count:
                self._buffer[position - start] = 0 if level else first
        return self._buffer

    def word(self, level: int, block: int, position: int) -> int:
        """One word."""
        return int(self.words(level, block, position & ~1, 2)[position & 1])


class Sequence:
    """Words in a row, for samplers that choose: block after block, none twice."""

    __slots__ = ("_block", "_position", "_reader")

    def __init__(self, reader: Reader) -> None:
        self._reader, self._block, self._position = reader, SEQUENCES, 0

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next ``count`` words."""
        return self.addressed(count)[0]

    def addressed(self, count: int) -> tuple[NDArray[np.uint64], tuple[Reader, int, int]]:
        """The next words, and where they can be lengthened: the reader, the block and the position of the first."""
        if self._position + count >> 32:
            self._block, self._position = self._block + 1, 0
        address = self._reader, self._block, self._position
        found = self._reader.words(0, self._block, self._position, count)[:count].copy()
        self._position += count + count % 2
        return found, address

    def stream(self) -> Stream:
        """A stream for a further part of the same release, keyed by the next words."""
        return Stream(lambda: self.words(4).tobytes(), private=False, description="keyed by another stream")
