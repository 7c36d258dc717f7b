"""The file below the HDF5 library: what it reads is what was written, also when the disk took none of it."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from penstock.storage.format import hdf5
from penstock.storage.format.driver_file import PIECE_BYTES, DriverFile
from penstock.storage.tables.columns import Column


class Full(DriverFile):
    """Takes so many writes, and then none."""

    def __init__(self, path: Path, writes: int) -> None:
        super().__init__(path)
        self.left = writes

    def _write(self, at: int, view: memoryview) -> None:
        if self.left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left -= 1
        super()._write(at, view)


def test_it_is_a_file(tmp_path: Path) -> None:
    file = DriverFile(tmp_path / "x")
    data = os.urandom(PIECE_BYTES + 10)
    assert (file.seek(5), file.write(data), file.tell()) == (5, len(data), 5 + len(data))
    assert file.seek(0, os.SEEK_END) == 5 + len(data)
    file.seek(0)
    assert file.read(8) == bytes(5) + data[:3]
    file.truncate(7)
    file.check()
    file.close()
    assert (tmp_path / "x").read_bytes() == bytes(5) + data[:2]


def test_what_the_disk_refused_is_read_back_and_the_error_kept(tmp_path: Path) -> None:
    file = Full(tmp_path / "x", 1)
    for data in (b"abcdef", b"XY"):
        file.seek(0)
        assert file.write(data) == len(data)
    file.seek(4)
    file.write(b"1234")
    file.seek(0)
    assert file.read(10) == b"XYcd1234\0\0"
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            file.check()
    file.close()
    assert (tmp_path / "x").read_bytes() == b"abcdef"


def test_an_interrupt_in_a_call_is_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DriverFile(tmp_path / "x")

    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(file, "_write", interrupted)
    file.write(b"1")
    with pytest.raises(KeyboardInterrupt):
        file.check()
    file.close()


def test_a_file_that_is_stopped_takes_no_more(tmp_path: Path) -> None:
    file = DriverFile(tmp_path / "x")
    file.write(b"1")
    file.stop()
    file.write(b"2")
    file.close()
    assert (tmp_path / "x").read_bytes() == b"1"


def test_the_library_closes_a_file_whatever_the_disk_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write of a table fails in turn: an error each time, and no file stays open in the library."""
    monkeypatch.setattr(hdf5, "ROWS", 2000)
    columns = {"vertex": Column.of(np.arange(3000)), "level": Column.of(np.arange(3000) % 7)}
    writes = 0
    while True:
        file = Full(tmp_path / "x.h5", writes)
        with suppress(OSError):
            hdf5.write_columns(file, columns, 1)
            file.close()
            break
        with pytest.raises(OSError, match="No space left"):
            file.check()
        file.close()
        assert h5py.h5f.get_obj_count(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE) == 0
        writes += 1
    assert writes > 3
    assert hdf5.same_columns(tmp_path / "x.h5", columns, 1)
    assert not hdf5.same_columns(tmp_path / "x.h5", columns | {"level": Column.of(np.arange(3000))}, 1)
    assert not hdf5.same_columns(tmp_path / "x.h5", {"vertex": columns["vertex"]}, 1)
