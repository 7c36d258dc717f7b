"""Compiled kernels are read only where nobody but this user and root could have written them."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.base.user_cache import (
    kernel_folder,
    kernel_places,
    make_place,
    own_place,
    read_own,
    shipped_places,
)

STRANGER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away and be another user")


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that other users can enter, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-places-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def cache(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kernels, which is there; the private one would be below `root/tmp`."""
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(root / "tmp"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(root / "cache"))
    make_place(kernel_folder())
    return root / "cache"


def private(root: Path, user: int | None = None) -> Path:
    return root / "tmp" / f"penstock-{os.geteuid() if user is None else user}" / "kernels"


def as_stranger(call: Callable[[], object]) -> str:
    """What a call returns, as text, to another user."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        told = "failed"
        try:
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            told = repr(call())
        finally:
            os.write(write, told.encode())
            os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as answer:
        found = answer.read()
    os.waitpid(child, 0)
    return found


def test_the_users_own_folder_is_used(cache: Path) -> None:
    assert kernel_places() == ((kernel_folder(),), None)


def test_a_folder_is_made_for_this_user_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(root / "new"))
    assert kernel_places()[0] == (kernel_folder(),)
    umask = os.umask(0)
    try:
        make_place(kernel_folder())
    finally:
        os.umask(umask)
    assert {place.stat().st_mode & 0o777 for place in (root / "new", kernel_folder().parent, kernel_folder())} == {
        0o700
    }


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
@pytest.mark.parametrize("place", ["", "penstock", "penstock/kernels"])
def test_a_folder_that_others_can_write_is_not_used(place: str, mode: int, root: Path, cache: Path) -> None:
    (cache / place).chmod(mode)
    folders, trouble = kernel_places()
    assert folders == (private(root),)
    assert trouble is not None
    assert f"`chmod go-w {cache / place}`" in trouble
    assert "NUMBA_CACHE_DIR" in trouble
    (cache / place).chmod(mode & 0o755)
    assert kernel_places() == ((kernel_folder(),), None)


def test_all_that_others_can_write_is_named_at_once(cache: Path) -> None:
    for place in (cache, kernel_folder()):
        place.chmod(0o777)
    assert f"`chmod go-w {cache} {kernel_folder()}`" in str(kernel_places()[1])


def test_a_sticky_bit_protects_what_is_in_a_folder_not_the_folder(cache: Path) -> None:
    cache.chmod(0o1777)
    assert kernel_places()[1] is None
    kernel_folder().chmod(0o1777)
    assert kernel_places()[1] is not None


def test_own_links_are_followed(root: Path, cache: Path) -> None:
    (root / "link").symlink_to("tmp/../cache")
    (root / "absolute").symlink_to(root / "link" / "penstock")
    assert own_place(root / "absolute" / "kernels") == kernel_folder()
    assert own_place(root / "absolute" / ".." / "penstock" / "new" / "folder") == cache / "penstock/new/folder"


def test_links_that_lead_nowhere_or_round_are_refused(root: Path) -> None:
    (root / "round").symlink_to("round")
    with pytest.raises(InputError, match=r"round.* cannot be used: Too many levels"):
        own_place(root / "round")
    (root / "file").touch()
    with pytest.raises(InputError, match="file is no folder"):
        own_place(root / "file" / "kernels")
    (root / "gone").symlink_to("missing/folder")
    assert own_place(root / "gone" / "kernels") == root / "missing/folder/kernels"


@as_root
def test_a_folder_of_another_user_is_not_used(root: Path, cache: Path) -> None:
    for place in (cache, cache / "penstock", kernel_folder()):
        os.chown(place, STRANGER, -1)
        folders, trouble = kernel_places()
        assert folders == (private(root),)
        assert f"{place} belongs to user {STRANGER}" in str(trouble)
        os.chown(place, 0, -1)


@as_root
def test_a_link_of_another_user_is_not_followed(root: Path, cache: Path) -> None:
    link = root / "tmp" / "link"
    link.symlink_to(cache)
    assert own_place(link / "penstock/kernels") == kernel_folder()
    os.lchown(link, STRANGER, -1)
    with pytest.raises(InputError, match=f"link belongs to user {STRANGER}"):
        own_place(link / "penstock/kernels")


@as_root
def test_a_folder_that_root_made_is_read_by_all_and_lacks_are_kept_elsewhere(root: Path, cache: Path) -> None:
    (kernel_folder() / "entry").write_bytes(b"content")
    assert "cannot be used: Permission denied" in as_stranger(kernel_places)
    for place in (cache, cache / "penstock", kernel_folder()):
        place.chmod(0o755)
    assert as_stranger(kernel_places) == repr(((private(root, STRANGER), kernel_folder()), None))
    assert as_stranger(lambda: read_own(kernel_folder() / "entry")) == "b'content'"


@as_root
def test_another_users_home_is_not_mine(root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `sudo -E`: what the user wrote is not executed as root, nor the other way round."""
    assert as_stranger(lambda: make_place(private(root, STRANGER))) == "None"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(root / "tmp"))
    (root / "tmp" / "penstock").symlink_to(private(root, STRANGER).parent)
    assert kernel_places()[0] == (private(root),)
    os.lchown(root / "tmp" / "penstock", STRANGER, -1)
    assert as_stranger(kernel_places) == repr(((private(root, STRANGER),), None))


@as_root
def test_without_any_folder_of_ones_own_there_is_none(root: Path, cache: Path) -> None:
    cache.chmod(0o777)
    make_place(private(root))
    os.chown(private(root).parent, STRANGER, -1)
    folders, trouble = kernel_places()
    assert folders == ()
    assert f"chmod go-w {cache}" in str(trouble)
    assert f"{private(root).parent} belongs to user {STRANGER}" in str(trouble)


def test_without_a_home_kernels_are_kept_in_the_private_folder(
    root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    folders, trouble = kernel_places()
    assert folders == (private(root),)
    assert "XDG_CACHE_HOME" in str(trouble)


@pytest.fixture
def package(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the installed package is."""
    monkeypatch.setattr("penstock.__file__", str(root / "penstock" / "__init__.py"))
    return root / "penstock"


def test_shipped_kernels_are_in_named_folders_and_in_the_package(
    root: Path, package: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PENSTOCK_KERNELS", raising=False)
    named = [root / "site", root / "gone", root / "open", root / "file", root / "more"]
    monkeypatch.setenv("PENSTOCK_KERNELS", os.pathsep.join(["", *map(str, named)]))
    for folder in (package / "kernels", named[0], named[2], named[4]):
        folder.mkdir(parents=True)
    named[2].chmod(0o777)
    named[3].touch()
    with caplog.at_level(logging.WARNING):
        assert shipped_places() == (named[0], named[4], package / "kernels")
        shipped_places()
    gone, others, file = (record.message for record in caplog.records)
    assert gone == f"no kernels are read from {named[1]}: it is missing; take it out of PENSTOCK_KERNELS"
    assert f"`chmod go-w {named[2]}` ends that, or take it out of PENSTOCK_KERNELS" in others
    assert f"{named[3]} is no folder" in file


@pytest.mark.parametrize("mode", [None, 0o777])
def test_a_package_without_kernels_or_that_others_can_write_is_no_trouble(
    mode: int | None, package: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PENSTOCK_KERNELS", raising=False)
    if mode is not None:
        (package / "kernels").mkdir(parents=True)
        package.chmod(mode)
    with caplog.at_level(logging.INFO, shipped_places.__module__):
        assert shipped_places() == ()
    assert [record.levelno for record in caplog.records] == ([] if mode is None else [logging.INFO])


@as_root
def test_shipped_kernels_of_another_user_are_not_read(
    root: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_KERNELS", str(root / "site"))
    for folder in (root / "site", package / "kernels"):
        folder.mkdir(parents=True)
        os.chown(folder, STRANGER, -1)
    assert shipped_places() == ()


def test_a_file_is_read_if_it_is_ours_alone(root: Path) -> None:
    path = root / "file"
    assert read_own(path) is None
    path.write_bytes(b"content")
    path.chmod(0o644)
    assert read_own(path) == b"content"
    for mode in (0o664, 0o646):
        path.chmod(mode)
        assert read_own(path) is None
    (root / "link").symlink_to(path)
    path.chmod(0o644)
    assert read_own(root / "link") is None
    assert read_own(root) is None
    os.mkfifo(root / "pipe", 0o600)
    assert read_own(root / "pipe") is None


@as_root
def test_a_file_of_another_user_is_not_read_by_root(root: Path) -> None:
    path = root / "file"
    path.write_bytes(b"content")
    path.chmod(0o644)
    assert as_stranger(lambda: read_own(path)) == "b'content'"
    os.chown(path, STRANGER, -1)
    assert as_stranger(lambda: read_own(path)) == "b'content'"
    assert read_own(path) is None
