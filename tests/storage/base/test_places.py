import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.places import Address, exists, file_size, local, names_below, open_stored, place_of, send
from support.object_store import object_store


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    with object_store() as made:
        yield made


def test_names_are_paths_or_addresses() -> None:
    address = place_of("S3://bucket/a/b.parquet")
    assert isinstance(address, Address)
    assert str(address) == "s3://bucket/a/b.parquet"
    assert address.suffix == ".parquet"
    assert str(address / "c") == "s3://bucket/a/b.parquet/c"
    assert str(address.parent) == "s3://bucket/a"
    assert place_of(address) is address
    assert place_of("file:///tmp/a b") == Path("/tmp/a b")
    assert place_of("a/b") == Path("a/b")
    assert place_of("-") == Path("-")
    assert place_of("gs://bucket/x") == Address("gs://bucket/x")


@pytest.mark.parametrize("name", ["ftp://a/b", "s3:///key", "s3://", "file://host/a", "s3://user@bucket/key"])
def test_other_addresses_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="is no address that can be read"):
        place_of(name)


def test_an_address_is_no_path_of_this_machine() -> None:
    assert local("a") == Path("a")
    with pytest.raises(InputError, match="s3://bucket/a is no file of this machine"):
        local(Address("s3://bucket/a"))
    with pytest.raises(InputError, match="copy it first"):
        os.stat(Address("s3://bucket/a"))


def test_files_of_a_store(store: Any, tmp_path: Path) -> None:
    source, address = tmp_path / "file", place_of("s3://bucket/sent/file")
    assert isinstance(address, Address)
    assert not exists(address)
    source.write_bytes(b"x" * 1000)
    send(source, address)
    assert exists(address)
    assert file_size(address) == 1000
    for ordered in (True, False):
        file, size = open_stored(address, ordered=ordered)
        assert size == 1000
        assert file.read() == b"x" * 1000
    assert names_below(address.parent) == ["file"]
    assert not exists(address.parent)


def test_what_a_store_refuses(store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="s3://bucket/none does not exist"):
        open_stored(Address("s3://bucket/none"), ordered=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="no such bucket"):
        send(tmp_path / "file", Address("s3://others/file"))
    assert not exists(Address("s3://others/file"))


def test_a_store_that_is_not_reached_is_a_failed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    def fails(*_: object) -> None:
        raise OSError("AWS Error NETWORK_CONNECTION during HeadObject operation")

    class Broken:
        get_file_info = fails

    monkeypatch.setattr("penstock.storage.base.places._store", lambda *_: Broken())
    with pytest.raises(RunError, match="s3://bucket/a: the store failed: AWS Error NETWORK"):
        file_size(Address("s3://bucket/a"))
    assert fs is not None
