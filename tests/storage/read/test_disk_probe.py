"""The disk's rate counts what was read, each block once, past the page cache, and ends in time."""

from pathlib import Path

import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.read import disk_probe
from penstock.storage.read.disk_probe import DiskRate, measure, write_probe


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    done: list[int] = []
    path = tmp_path / "probe"
    assert write_probe(path, 3 << 20, done.append) > 0
    assert done == [1 << 20, 2 << 20, 3 << 20]
    assert path.stat().st_size == 3 << 20
    return path


@pytest.mark.parametrize("in_flight", [1, 3])
def test_each_block_is_read_once(probe: Path, in_flight: int) -> None:
    try:
        rate = measure([probe], 128 << 10, in_flight, 2 << 20)
    except InputError:
        pytest.skip("no direct reads in this file system")
    assert rate.bytes == 2 << 20
    assert rate.bytes_per_second == pytest.approx(rate.bytes / rate.seconds)


def test_shards_are_read_together_and_whole_blocks_only(probe: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(bytes((1 << 20) + 5000))
    try:
        rate = measure([probe, other], 512 << 10, 2, 1 << 30)
    except InputError:
        pytest.skip("no direct reads in this file system")
    assert rate.bytes == 4 << 20


def test_no_read_begins_when_time_is_up(probe: Path) -> None:
    try:
        assert measure([probe], 128 << 10, 2, 1 << 30, most_seconds=0.0).bytes == 0
    except InputError:
        pytest.skip("no direct reads in this file system")


def test_blocks_of_the_probe_differ(probe: Path) -> None:
    data = probe.read_bytes()
    assert data[: 1 << 20] != data[1 << 20 : 2 << 20]


def test_a_file_system_without_direct_reads_is_refused(probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(disk_probe.os, "open", refuse)
    with pytest.raises(InputError, match=r"no direct reads.*--folder"):
        measure([probe], 1 << 20, 1, 1 << 20)


def test_the_rate_is_bytes_over_seconds() -> None:
    assert DiskRate(1, 1, 100, 0.5).bytes_per_second == 200
