"""The bytes of a raw input: what is refused before anything is read, and small files of text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.ingest.bytes.file import RawFile, open_text


def test_small_files_of_text(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes("\ufeffa\n".encode())
    with open_text(tmp_path / "t") as text:
        assert text.read() == "a\n"
    (tmp_path / "bytes").write_bytes(b"a\n\xff\n")
    with pytest.raises(InputError, match="bytes is not UTF-8 text"), open_text(tmp_path / "bytes") as text:
        text.read()
    absent = tmp_path / "absent"
    with pytest.raises(InputError, match="absent does not exist; look there"), open_text(absent, "look there"):
        pass


def test_devices_without_an_end_are_refused(tmp_path: Path) -> None:
    """Whatever they are called; the null device is an empty file, and a pipe is read."""
    (tmp_path / "link").symlink_to("/dev/zero")
    for name in ("/dev/zero", "/dev/full", tmp_path / "link"):
        with pytest.raises(InputError, match="is a device; name a file or a pipe"):
            RawFile(name)
    with open_text(Path(os.devnull)) as text:
        assert text.read() == ""


def test_an_error_of_the_first_read_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="/proc/self/mem: reading failed: Input/output error"):
        RawFile("/proc/self/mem")
