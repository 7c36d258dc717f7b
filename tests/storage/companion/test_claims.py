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


def test_kernels_of_a_plan_are_counted_as_they_are_taken(tmp_path: Path) -> None:
    one, other = Claims(tmp_path), Claims(tmp_path)
    assert other.counts() is None
    one.plan(["push", "pull", "push", "send"])
    assert other.counts() == (0, 3)
    assert other.take("pull")
    assert one.take("what is in no plan")
    assert other.counts() == (1, 3)


def test_nothing_is_taken_where_the_folder_is_gone(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "gone")
    assert not claims.take("a kernel")
    claims.end("a kernel")
    assert not claims.ended("a kernel")
    claims.plan(["a kernel"])
    assert claims.counts() is None
