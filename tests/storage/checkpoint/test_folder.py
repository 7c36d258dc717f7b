"""The folder of a run's checkpoints: the last two, the newest whole one, nobody else's files."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.checkpoint import folder as checkpoint_folder
from penstock.storage.checkpoint.folder import CheckpointFolder
from support.faults import flip_bit

ARRAYS = [("a", np.arange(5))]


@pytest.fixture
def folder(tmp_path: Path) -> CheckpointFolder:
    made = CheckpointFolder(tmp_path / "kept")
    made.prepare()
    made.lock.release()
    return made


def test_the_last_two_are_kept(folder: CheckpointFolder) -> None:
    for number in (3, 4, 10, 100):
        assert folder.write(number, {"n": number}, ARRAYS) == folder.file(number).stat().st_size
    assert folder.numbers() == [10, 100]
    newest, wrong = folder.newest()
    assert newest is not None
    assert (newest.story, wrong) == ({"n": 100}, [])


def test_a_damaged_one_is_passed_over_and_named_and_goes_with_the_next(folder: CheckpointFolder) -> None:
    for number in (10, 20):
        folder.write(number, {"n": number}, ARRAYS)
    flip_bit(folder.file(20), 10)
    newest, wrong = folder.newest()
    assert newest is not None
    assert newest.story == {"n": 10}
    assert len(wrong) == 1
    assert wrong[0].startswith(f"{folder.file(20)}: it is damaged: the checksum of frame 0")
    folder.write(15, {"n": 15}, ARRAYS)
    assert folder.numbers() == [10, 15]


def test_no_whole_one_and_none_at_all(folder: CheckpointFolder) -> None:
    assert folder.newest() == (None, [])
    folder.file(1).write_bytes(b"")
    folder.file(2).mkdir()
    newest, wrong = folder.newest()
    assert newest is None
    assert [line.partition(": ")[2] for line in wrong] == ["Is a directory", "it is no checkpoint of Penstock"]
    assert CheckpointFolder(folder.path / "absent").numbers() == []


def test_what_a_killed_process_left_goes_and_others_files_stay(folder: CheckpointFolder) -> None:
    left = folder.path / ".checkpoint-0000000004.partial-123-abcdef.penstock"
    others = [folder.path / name for name in ("notes.txt", "checkpoint-4.penstock", ".hidden.partial-1")]
    for path in (left, *others):
        path.write_text("x")
    folder.prepare()
    folder.lock.release()
    folder.write(1, {}, ARRAYS)
    folder.clear()
    assert sorted(folder.path.iterdir()) == sorted(others)


def test_a_failed_write_leaves_those_before(folder: CheckpointFolder) -> None:
    for number in (1, 2):
        folder.write(number, {"n": number}, ARRAYS)
    full = OSError(28, "No space left on device")
    with (
        mock.patch("penstock.storage.checkpoint.file._write", side_effect=full),
        pytest.raises(RunError, match=r"0000000003.penstock could not be written: No space left on device"),
    ):
        folder.write(3, {}, ARRAYS)
    assert folder.numbers() == [1, 2]
    assert len(list(folder.path.iterdir())) == 2


def test_old_ones_go_only_when_the_new_one_is_there(folder: CheckpointFolder) -> None:
    for number in (1, 2):
        folder.write(number, {}, ARRAYS)
    seen = []
    real = checkpoint_folder.write_checkpoint

    def write(*arguments: object) -> int:
        size = real(*arguments)
        seen.append(folder.numbers())
        return size

    with mock.patch.object(checkpoint_folder, "write_checkpoint", write):
        folder.write(3, {}, ARRAYS)
    assert seen == [[1, 2, 3]]


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "absent" / "kept"):
        with pytest.raises(InputError, match=r"cannot be used: .*; name another"):
            CheckpointFolder(path).prepare()


def test_a_second_run_is_refused_and_removes_nothing(folder: CheckpointFolder) -> None:
    folder.prepare()
    (folder.path / ".checkpoint-0000000004.partial-123-abcdef.penstock").write_text("of the first run")
    before = sorted(folder.path.iterdir())
    with pytest.raises(InputError, match=r"kept is in use by another run, process .* name another --checkpoint folder"):
        CheckpointFolder(folder.path).prepare()
    assert sorted(folder.path.iterdir()) == before
    folder.lock.release()
    CheckpointFolder(folder.path).prepare()


def test_a_folder_that_was_made_for_nothing_goes(tmp_path: Path) -> None:
    made = CheckpointFolder(tmp_path / "new")
    made.prepare()
    made.lock.release()
    made.abandon()
    assert not made.path.exists()
    made.path.mkdir()
    found = CheckpointFolder(made.path)
    found.prepare()
    found.lock.release()
    found.abandon()
    assert made.path.exists(), "another one's folder stays"
