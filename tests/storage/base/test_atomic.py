"""A file appears whole or not at all, never over another one unasked, and nothing stays behind."""

import errno
import os
import signal
import tempfile
from pathlib import Path

import pytest
from penstock.storage.base import atomic
from penstock.storage.base.errors import InputError, RunError, UnsyncedError


def test_the_file_appears_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "graph.tar.h5"
    with atomic.replacing(target, force=False) as partial:
        partial.write_bytes(b"whole")
        assert partial.parent == tmp_path
        assert partial.name.startswith(".")
        assert partial.name.endswith(".tar.h5")
        assert not target.exists()
    assert target.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt, SystemExit])
def test_any_exception_leaves_the_folder_as_it_was(tmp_path: Path, stop: type[BaseException]) -> None:
    target = tmp_path / "x.csv"
    target.write_text("old")

    def interrupted() -> None:
        with atomic.replacing(target, force=True) as partial:
            partial.write_text("half")
            raise stop

    with pytest.raises(stop):
        interrupted()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_an_existing_file_needs_force(tmp_path: Path) -> None:
    target = tmp_path / "x.csv"
    target.write_text("old")
    with (
        pytest.raises(InputError, match=r"x\.csv exists.*--force"),
        atomic.replacing(target, force=False),
    ):
        pytest.fail("the block must not run")
    with atomic.replacing(target, force=True) as partial:
        partial.write_text("new")
    assert target.read_text() == "new"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "x.csv"

    def overtaken() -> None:
        with atomic.replacing(target, force=False) as partial:
            partial.write_text("mine")
            target.write_text("theirs")

    with pytest.raises(InputError, match=r"appeared.*--force"):
        overtaken()
    assert target.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    real = tmp_path / "deep" / "real.csv"
    real.write_text("old")
    link = tmp_path / "link.csv"
    link.symlink_to(real)
    with atomic.replacing(link, force=True) as partial:
        partial.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/x.h5", "does not exist"),
        ("file/x.h5", "does not exist"),
        ("folder", "not a regular file"),
        ("/dev/null", "not a regular file"),
    ],
)
def test_impossible_targets_are_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=message):
        atomic.check_target(tmp_path / name, force=True)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("circle", "circle cannot be written: Too many levels of symbolic links"),
        ("pipe", "link is not a regular file"),
        ("long", r"x \.\.\. cannot be written: File name too long"),
    ],
)
def test_names_that_cannot_be_files_are_refused_before_any_work(tmp_path: Path, kind: str, message: str) -> None:
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    target = {"circle": tmp_path / "circle", "pipe": tmp_path / "link", "long": tmp_path / ("x" * 300)}[kind]
    with pytest.raises(InputError, match=message):
        atomic.check_target(target, force=True)


@pytest.mark.parametrize("stem", ["x", "é", "\udcff"])
def test_the_longest_names_can_be_written(tmp_path: Path, stem: str) -> None:
    target = tmp_path / (stem * ((255 - 4) // len(os.fsencode(stem))) + ".csv")
    atomic.write_text(target, "whole", force=False)
    assert target.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match="not writable"):
        atomic.check_target(tmp_path / "x", force=False)


def test_a_full_disk_at_the_flush_is_a_run_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(RunError, match="No space left"),
        atomic.replacing(tmp_path / "x", force=False) as partial,
    ):
        partial.write_text("new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("force", [True, False])
def test_a_folder_that_cannot_be_synced_leaves_the_file_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    """From the rename on the new file stands, and is not told as unwritten."""
    target, sync = tmp_path / "x.csv", os.fsync
    if force:
        target.write_text("old")

    def failing(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EIO, "Input/output error")
        sync(handle)

    monkeypatch.setattr(os, "fsync", failing)
    with (
        pytest.raises(UnsyncedError, match=r"x\.csv is written and in its place, but .* could not be synced"),
        atomic.replacing(target, force=force) as partial,
    ):
        partial.write_text("new")
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_the_last_files_in_place_are_known(tmp_path: Path) -> None:
    for number in range(6):
        atomic.write_text(tmp_path / f"{number}.txt", "whole", force=False)
    (tmp_path / "4.txt").unlink()
    (tmp_path / "5.txt").write_text("whole still")
    assert atomic.in_place() == [tmp_path / "2.txt", tmp_path / "3.txt", tmp_path / "5.txt"]


def test_scratch_folders_go_with_all_they_hold(tmp_path: Path) -> None:

    def interrupted() -> None:
        with atomic.scratch_folder(tmp_path) as folder:
            (folder / "run").mkdir()
            (folder / "run" / "0.bin").write_bytes(b"x" * 10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="--scratch"), atomic.scratch_folder(tmp_path / "none"):
        pytest.fail("the block must not run")


def test_a_folder_that_cannot_be_removed_goes_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(atomic.shutil, "rmtree", lambda path, ignore_errors: None)
        with atomic.scratch_folder(tmp_path) as folder:
            (folder / "file").touch()
    assert folder.exists()
    atomic.sweep_debris()
    assert list(tmp_path.iterdir()) == []


def test_the_sweep_takes_what_a_signal_left_and_nothing_kept(tmp_path: Path) -> None:
    left, kept = tmp_path / "left", tmp_path / "kept"
    atomic.register_debris(left)
    atomic.register_debris(kept)
    left.mkdir()
    (left / "part").write_text("x")
    kept.write_text("x")
    atomic.keep_debris(kept)
    atomic.sweep_debris()
    assert list(tmp_path.iterdir()) == [kept]


def test_a_forked_child_sweeps_nothing_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    with atomic.debris(path):
        path.write_text("x")
        child = os.fork()
        if child == 0:
            atomic.sweep_debris()
            os._exit(0)
        os.waitpid(child, 0)
        assert path.exists()
    assert not path.exists()


def test_a_signal_while_python_tries_the_folder_for_temporary_files_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tries() -> str:
        (tmp_path / "tried").touch()
        signal.raise_signal(signal.SIGINT)
        (tmp_path / "tried").unlink()
        return str(tmp_path)

    monkeypatch.setattr(tempfile, "gettempdir", tries)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test before this one may have left another
    try:
        with pytest.raises(KeyboardInterrupt):
            atomic.temporary_place()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not list(tmp_path.iterdir())
