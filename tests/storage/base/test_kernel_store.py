"""A store gives back what was kept, whole and written by nobody else, or nothing."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import pytest
from penstock.storage.base import kernel_cache
from penstock.storage.base.kernel_cache import KernelStore
from penstock.storage.base.user_cache import kernel_folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return kernel_folder()


@pytest.fixture
def store(folder: Path) -> KernelStore:
    return KernelStore(".cubin")


def test_what_was_kept_is_taken(folder: Path, store: KernelStore) -> None:
    assert store.take("a") is None
    assert not folder.exists()
    for key, content in (("a", b"one"), ("b", b""), ("a", b"two")):
        store.keep(key, content)
    again = KernelStore(".cubin")
    assert (again.take("a"), again.take("b"), again.take("c")) == (b"two", b"", None)
    assert sorted(path.name for path in folder.iterdir()) == ["a.cubin", "b.cubin"]


def test_an_entry_with_any_bit_changed_or_cut_off_is_none(folder: Path, store: KernelStore) -> None:
    store.keep("a", b"content")
    entry = folder / "a.cubin"
    whole = entry.read_bytes()
    damaged = [whole[:length] for length in range(len(whole))]
    damaged += [
        whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
        for place in range(len(whole))
        for bit in range(8)
    ]
    other = b"content"  # of a version that does not compress
    for content in (*damaged, whole + b"\0", hashlib.sha256(other).digest() + other):
        entry.write_bytes(content)
        assert store.take("a") is None
    store.keep("a", b"content")
    assert store.take("a") == b"content"


def test_the_oldest_make_room(folder: Path, store: KernelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "MOST_ENTRIES", 2)
    for number, key in enumerate("abcd"):
        store.keep(key, key.encode())
        os.utime(folder / f"{key}.cubin", (number, number))
    assert [store.take(key) for key in "abcd"] == [None, None, b"c", b"d"]


def test_what_others_could_have_written_is_none_and_replaced(folder: Path, store: KernelStore) -> None:
    umask = os.umask(0)
    try:
        store.keep("a", b"content")
    finally:
        os.umask(umask)
    entry = folder / "a.cubin"
    assert entry.stat().st_mode & 0o777 == 0o644
    for mode in (0o664, 0o646, 0o666):
        entry.chmod(mode)
        assert store.take("a") is None
    store.keep("a", b"content")
    assert store.take("a") == b"content"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_another_user_wrote_is_none_and_replaced(folder: Path, store: KernelStore) -> None:
    store.keep("a", b"content")
    os.chown(folder / "a.cubin", 12345, -1)
    assert store.take("a") is None
    store.keep("a", b"content")
    assert store.take("a") == b"content"


def test_entries_are_looked_for_in_order_and_kept_in_the_first(
    tmp_path: Path, store: KernelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setattr(kernel_cache, "kernel_places", lambda: ((second,), None))
    store.keep("a", b"old")
    store.keep("b", b"shared")
    monkeypatch.setattr(kernel_cache, "kernel_places", lambda: ((first, second), None))
    store.keep("a", b"new")
    assert (store.take("a"), store.take("b"), store.take("c")) == (b"new", b"shared", None)
    (first / "a.cubin").write_bytes(b"damaged")
    assert store.take("a") == b"old"


@pytest.fixture
def shipped(tmp_path: Path, store: KernelStore, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels that another store has made: `a`, `b`, and `level`."""
    folder = tmp_path / "shipped"
    with monkeypatch.context() as patch:
        patch.setattr(kernel_cache, "kernel_places", lambda: ((folder,), None))
        for key in ("a", "b", "level"):
            store.keep(key, f"shipped {key}".encode())
    monkeypatch.setattr(kernel_cache, "shipped_places", lambda: (folder,))
    return folder


def test_what_is_shipped_is_found_after_the_users_and_only_read(
    folder: Path, shipped: Path, store: KernelStore
) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in shipped.iterdir()}
    assert store.take("a") == b"shipped a"
    assert not folder.exists()
    store.keep("a", b"own")
    assert (store.take("a"), store.take("b"), store.take("c")) == (b"own", b"shipped b", None)
    (folder / "a.cubin").write_bytes(b"damaged")
    assert store.take("a") == b"shipped a"
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in shipped.iterdir()} == before
    (shipped / "b.cubin").write_bytes(before[shipped / "b.cubin"][0][:-1])
    (shipped / "a.cubin").chmod(0o666)
    assert (store.take("a"), store.take("b")) == (None, None)


def test_the_first_name_wins_in_whichever_folder_it_is(shipped: Path, store: KernelStore) -> None:
    store.keep("level", b"own level")
    assert store.take("b", "level") == b"shipped b"
    assert store.take("c", "level", "b") == b"own level"
    assert store.take("c", "d") is None


@pytest.mark.parametrize("folders", [(), ("private",)])
def test_where_kernels_are_instead_is_said_once(
    folders: tuple[str, ...],
    tmp_path: Path,
    store: KernelStore,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    kernel_cache._say.cache_clear()
    places = tuple(tmp_path / name for name in folders), "the reason"
    monkeypatch.setattr(kernel_cache, "kernel_places", lambda: places)
    with caplog.at_level(logging.WARNING, "penstock.storage.base.kernel_cache"):
        for key in "ab":
            assert store.take(key) is None
            store.keep(key, b"content")
    (record,) = caplog.records
    where = f"in {tmp_path / 'private'}: " if folders else "not kept, "
    assert where in record.message
    assert record.message.endswith("the reason")
    kernel_cache._say.cache_clear()
