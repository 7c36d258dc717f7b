"""A cache gives back what was put on it, whole, or nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from penstock.storage.base.kernel_cache import BlobCache


def test_what_was_put_is_taken(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path, ".ptx", 512)
    assert cache.get("a") is None
    assert cache.put("a", b"one")
    assert cache.put("b", b"")
    assert cache.put("a", b"two")
    again = BlobCache(tmp_path, ".ptx", 512)
    assert (again.get("a"), again.get("b"), again.get("c")) == (b"two", b"", None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ptx", "b.ptx"]


@pytest.mark.parametrize("length", [0, 10, 32, 36])
def test_a_torn_entry_is_none(tmp_path: Path, length: int) -> None:
    cache = BlobCache(tmp_path, ".ptx", 512)
    cache.put("a", b"content")
    entry = tmp_path / "a.ptx"
    entry.write_bytes(entry.read_bytes()[:length])
    assert cache.get("a") is None
    assert cache.put("a", b"content")
    assert cache.get("a") == b"content"


def test_a_damaged_entry_is_none(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path, ".ptx", 512)
    cache.put("a", b"content")
    entry = tmp_path / "a.ptx"
    entry.write_bytes(entry.read_bytes()[:-1] + b"!")
    assert cache.get("a") is None


def test_the_oldest_make_room(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path, ".ptx", most=2)
    for number, key in enumerate("abcd"):
        cache.put(key, key.encode())
        os.utime(tmp_path / f"{key}.ptx", (number, number))
    assert [cache.get(key) for key in "abcd"] == [None, None, b"c", b"d"]


def test_a_folder_that_is_not_there_is_an_empty_shelf(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "missing", ".ptx", 512)
    assert cache.get("a") is None
    assert not cache.put("a", b"content")
    assert list(tmp_path.iterdir()) == []
