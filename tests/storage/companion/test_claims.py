"""A kernel is compiled by one process."""

from pathlib import Path

from penstock.storage.companion.claims import Claims


def test_each_kernel_is_taken_once(tmp_path: Path) -> None:
    one, other = Claims(tmp_path), Claims(tmp_path)
    assert one.take("a kernel")
    assert not other.take("a kernel")
    assert not other.ended("a kernel")
    one.end("a kernel")
    assert other.ended("a kernel")
    assert other.take("another kernel")


def test_nothing_is_taken_where_the_folder_is_gone(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "gone")
    assert not claims.take("a kernel")
    claims.end("a kernel")
    assert not claims.ended("a kernel")
