"""Files that say .npy of themselves: whole arrays of numbers are read as NumPy reads them, all else is refused."""

import io
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import npy

PLAIN = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }"


def file_of(header, data=bytes(48), version=b"\x01\x00", length=None):
    size = len(header) if length is None else length
    return b"\x93NUMPY" + version + size.to_bytes(2 if version[0] == 1 else 4, "little") + header + data


def refused(path, words="="):
    for read in (npy.load, npy.mapped):
        with pytest.raises(ln.InvalidInput, match=words) as caught:
            read(path)
        assert str(caught.value).endswith(".")
        assert len(str(caught.value)) < 500


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", ">i2", "u1", "<i8", "f2", "?", "<c16"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (2, 0, 3), (2, 3, 4)])
@pytest.mark.parametrize("order", "CF")
def test_what_numpy_writes_is_read_as_numpy_reads_it(tmp_path, dtype, shape, order):
    value = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape), dtype=dtype, order=order)
    path = tmp_path / "value.npy"
    for version in ((1, 0), (2, 0), (3, 0)):
        with path.open("wb") as file:
            np.lib.format.write_array(file, value, version)
        for read in (npy.load, npy.mapped):
            found = read(path)
            assert found.dtype == value.dtype
            assert found.shape == value.shape
            np.testing.assert_array_equal(found, np.load(path))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x01\x00\xff\xff",
        file_of(PLAIN, version=b"\x04\x00"),
        file_of(PLAIN, version=b"\x01\x01"),
        file_of(PLAIN, version=b"\x02\x00", length=2**32 - 1),
        file_of(PLAIN, version=b"\x02\x00", length=2**20),
        file_of(PLAIN, data=bytes(47)),
        file_of(PLAIN, data=bytes(49)),
        file_of(PLAIN, data=bytes(48) + file_of(PLAIN)),
        file_of(PLAIN.replace(b"(2, 3)", b"(100000000000000000000,)")),
        file_of(PLAIN.replace(b"(2, 3)", b"(2, 3, 100000000000000000000)")),
        file_of(PLAIN.replace(b"(2, 3)", b"(4294967296, 4294967296, 0)")),
        file_of(PLAIN.replace(b"(2, 3)", b"(-2, -3)")),
        file_of(PLAIN.replace(b"(2, 3)", b"(True, 6)")),
        file_of(PLAIN.replace(b"(2, 3)", b"(2.0, 3.0)")),
        file_of(PLAIN.replace(b"(2, 3)", b"6")),
        file_of(PLAIN.replace(b"(2, 3)", b"(" + b"1," * 40 + b"6)")),
        file_of(PLAIN.replace(b"(2, 3)", b"(" + b"9" * 5000 + b",)")),
        file_of(PLAIN.replace(b"False", b"0")),
        file_of(PLAIN.replace(b"'<f8'", b"'|O'")),
        file_of(PLAIN.replace(b"'<f8'", b"'<U2'")),
        file_of(PLAIN.replace(b"'<f8'", b"'|S8'")),
        file_of(PLAIN.replace(b"'<f8'", b"'|V8'")),
        file_of(PLAIN.replace(b"'<f8'", b"'<M8[s]'")),
        file_of(PLAIN.replace(b"'<f8'", b"[('a', '<f8')]")),
        file_of(PLAIN.replace(b"'<f8'", b"'<f7'")),
        file_of(PLAIN.replace(b"'<f8'", b"'<f8, <f8'")),
        file_of(PLAIN.replace(b"'<f8'", b"8")),
        file_of(PLAIN[:-3]),
        file_of(PLAIN[:-1] + b"'more': 1}"),
        file_of(b"(" * 5000),
        file_of(b"not " * 2000 + b"1"),
        file_of(b"__import__('os').system('true')"),
        file_of(b"\xff" * 40),
        b"PK\x03\x04 and the rest of a zip",
    ],
)  # fmt: skip
def test_every_other_file_is_refused_before_anything_is_allocated(tmp_path, content):
    path = tmp_path / "value.npy"
    path.write_bytes(content)
    refused(path)


def test_several_arrays_are_told(tmp_path):
    path = tmp_path / "several.npz"
    np.savez(path, a=np.zeros(2), b=np.zeros(2))
    refused(path, "several arrays")


def test_what_is_no_ordinary_file_is_refused_and_nobody_waits_for_it(tmp_path):
    pipe, loop, folder = tmp_path / "pipe.npy", tmp_path / "loop.npy", tmp_path / "folder.npy"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    folder.mkdir()
    for path in (pipe, loop, folder, tmp_path / "none.npy", tmp_path / ("a" * 300)):
        refused(path, "not an ordinary file")
    refused(type(tmp_path)("/dev/zero"), "not an ordinary file")


@pytest.mark.slow
def test_the_command_line_reads_a_pipe_as_little(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    command = [sys.executable, "-m", "lessnoise", "release", "pipe.npy", "out.npy", "--sensitivity", "1"]
    done = subprocess.run(
        [*command, "--epsilon", "1", "--delta", "1e-6"], cwd=tmp_path, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 2
    assert b"not an ordinary file" in done.stderr


@pytest.mark.slow
def test_changed_bytes_of_the_header_are_refused_or_read_as_numpy_reads_them(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.arange(6.0).reshape(2, 3))
    whole, chance, path = buffer.getvalue(), random.Random(0), tmp_path / "value.npy"
    read = 0
    for _ in range(3000):
        content = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 4))):
            content[chance.randrange(128)] = chance.choice(
                (chance.randrange(256), ord(chance.choice("0123456789 '\n")))
            )
        path.write_bytes(bytes(content))
        try:
            found = npy.load(path)
        except ln.InvalidInput:
            continue
        expected = np.load(path)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        read += 1
    assert read > 30
