"""Files of checkpoints: what is read is what was written; whatever else there is in the file is an error."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from penstock.storage.base.errors import RunError
from penstock.storage.checkpoint import file as checkpoint
from penstock.storage.checkpoint.file import MAGIC, Checkpoint, CheckpointError, write_checkpoint
from penstock.storage.encoding.codec import checksum
from support.faults import cut_short, flip_bit, python

STORY = {"iteration": 7, "limit": float("inf"), "names": ["a", "ä"]}
ARRAYS = [
    ("field/level", np.arange(90, dtype=np.uint32)),
    ("pending", np.array([5, 0, 129], dtype=np.uint8)),
    ("field/vector", np.linspace(0, 1, 24).reshape(6, 4)),
    ("none", np.zeros(0, np.int64)),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one"
    write_checkpoint(path, STORY, ARRAYS)
    return path


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    kept = Checkpoint(path)
    found = {}
    for name, spec in kept.arrays.items():
        found[name] = np.empty(spec.shape, spec.dtype)
        kept.fill(name, found[name])
    return kept.story, found


NUMBERS = arrays.arrays(
    st.sampled_from(["u1", "u4", "u8", "i8", "f4", "f8"]), arrays.array_shapes(min_dims=1, max_dims=2, max_side=40)
)


@settings(max_examples=25)
@given(held=st.dictionaries(st.text(max_size=8), NUMBERS, max_size=4), frame=st.integers(1, 25).map(lambda n: 8 * n))
def test_arrays_of_any_size_come_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, held: dict[str, Any], frame: int
) -> None:
    path = tmp_path_factory.mktemp("any") / "one"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "FRAME_BYTES", frame)
        assert write_checkpoint(path, {}, held.items()) == path.stat().st_size
        _, found = read(path)
    assert {name: (a.dtype, a.shape, a.tobytes()) for name, a in found.items()} == {
        name: (a.dtype, a.shape, a.tobytes()) for name, a in held.items()
    }


def test_every_flipped_byte_is_an_error(file: Path) -> None:
    """Never another state: not one byte of the file is unguarded."""
    for at in range(file.stat().st_size):
        flip_bit(file, at, at % 8)
        with pytest.raises(CheckpointError):
            Checkpoint(file)
        flip_bit(file, at, at % 8)
    assert read(file)[0] == STORY


@given(data=st.data())
def test_bytes_that_were_put_in_taken_out_or_exchanged_are_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("any") / "one"
    write_checkpoint(path, STORY, ARRAYS)
    whole = path.read_bytes()
    first, last = sorted(data.draw(st.tuples(st.integers(0, len(whole)), st.integers(0, len(whole)))))
    changed = whole[:first] + data.draw(st.binary(max_size=40)) + whole[last:]
    path.write_bytes(changed)
    if changed != whole:
        with pytest.raises(CheckpointError):
            Checkpoint(path)


@pytest.mark.parametrize("size", [0, 3, 8, 20, -1, -24, -200])
def test_a_truncated_file_is_an_error(file: Path, size: int) -> None:
    cut_short(file, size)
    with pytest.raises(CheckpointError, match=r"truncated|no checkpoint|damaged"):
        Checkpoint(file)


def forge(path: Path, header: bytes, *, version: int = 1, frames: bytes = b"") -> None:
    """A file with a right checksum over a header of anybody's."""
    digest = checksum(header + struct.pack("<QI", len(header), version))
    path.write_bytes(MAGIC + frames + header + struct.pack("<QQI4s", len(header), digest, version, b"KEPT"))


def test_a_newer_version_is_named(file: Path) -> None:
    forge(file, b"{}", version=2)
    with pytest.raises(CheckpointError, match="has format version 2, and this Penstock reads up to 1; upgrade"):
        Checkpoint(file)


@pytest.mark.parametrize(
    "arrays",
    [
        None,
        {"a": 1},
        [1],
        [{"name": "a"}],
        [{"name": "a", "dtype": "O", "shape": [1], "frames": [[1, 1]]}],
        [{"name": "a", "dtype": "u1", "shape": [1 << 60], "frames": []}],
        [{"name": "a", "dtype": "u1", "shape": [-1], "frames": []}],
        [{"name": "a", "dtype": "u1", "shape": [1.0], "frames": [[1, 1]]}],
        [{"name": "a", "dtype": "u1", "shape": [1], "frames": [[1, 1]]}],
        [{"name": "a", "dtype": "u1", "shape": [0], "frames": []}] * 2,
        [{"name": "a", "dtype": "nonsense", "shape": [0], "frames": []}],
    ],
)
def test_a_header_that_nobody_writes_is_an_error_before_anything_is_allocated(file: Path, arrays: Any) -> None:
    forge(file, json.dumps({"story": {}, "arrays": arrays}).encode())
    with pytest.raises(CheckpointError, match="header is malformed"):
        Checkpoint(file)


@pytest.mark.parametrize("header", [b"", b"[1]", b"{", b"[" * 100_000, b"\xff"])
def test_a_header_that_is_no_json_object_is_an_error(file: Path, header: bytes) -> None:
    forge(file, header)
    with pytest.raises(CheckpointError, match="header is malformed"):
        Checkpoint(file)


def test_a_frame_that_holds_more_than_it_should_is_an_error(file: Path) -> None:
    frame = checkpoint.compress(np.zeros(1 << 16, np.uint8), 1)
    spec = {"name": "a", "dtype": "u1", "shape": [4], "frames": [[len(frame), checksum(frame)]]}
    forge(file, json.dumps({"story": {}, "arrays": [spec]}).encode(), frames=frame)
    with pytest.raises(CheckpointError, match="decompresses to 65536 bytes, not 4"):
        Checkpoint(file).fill("a", np.empty(4, np.uint8))


def test_arrays_are_read_into_their_like_only(file: Path) -> None:
    kept = Checkpoint(file)
    with pytest.raises(CheckpointError, match=r"its 'pending' is uint8 \(3,\) and not uint8 \(4,\)"):
        kept.fill("pending", np.empty(4, np.uint8))
    with pytest.raises(CheckpointError, match="has no 'rank'"):
        kept.fill("rank", np.empty(3))


def test_damage_after_opening_is_an_error(file: Path) -> None:
    kept = Checkpoint(file)
    raw = bytearray(file.read_bytes())
    raw[12] ^= 1
    file.write_bytes(raw)
    with pytest.raises(CheckpointError, match="checksum of frame 0"):
        kept.fill("field/level", np.empty(90, np.uint32))


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    code = (
        "import signal, sys, numpy as np; from penstock.storage.checkpoint.file import write_checkpoint\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "write_checkpoint(sys.argv[1], {}, [('a', np.random.default_rng(1).random(200_000))])\n"
    )
    path = tmp_path / "one"
    write_checkpoint(path, STORY, ARRAYS)
    child = python(code, str(path), file_bytes=1 << 20)
    assert f"RunError: {path} could not be written: File too large" in child.stderr
    assert read(path)[0] == STORY
    assert list(tmp_path.iterdir()) == [path]


def test_an_array_that_cannot_be_had_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Any:
        yield ARRAYS[0]
        raise RunError("the device is gone")

    with pytest.raises(RunError, match="the device is gone"):
        write_checkpoint(tmp_path / "one", STORY, broken())
    assert list(tmp_path.iterdir()) == []
