"""Frames are placed in order by one thread, errors come to whoever hands over, and what is written is flushed."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from penstock.storage.format import frame_writer
from penstock.storage.format.frame_writer import FrameWriter


@pytest.fixture
def placer() -> Any:
    placer = FrameWriter(3)
    yield placer
    placer.close()


def test_order_is_kept(placer: FrameWriter, tmp_path: Path) -> None:
    done: list[tuple[int, str]] = []
    for number in range(50):
        placer.put(tmp_path, 1, lambda number=number: done.append((number, threading.current_thread().name)))  # type: ignore[misc]
    placer.finish()
    assert [number for number, _ in done] == list(range(50))
    assert len({name for _, name in done}) == 1


def test_few_wait(placer: FrameWriter, tmp_path: Path) -> None:
    go = threading.Event()
    handed = []

    def hand_over() -> None:
        for number in range(6):
            placer.put(tmp_path, 1, lambda: assert_waited(go))
            handed.append(number)

    thread = threading.Thread(target=hand_over)
    thread.start()
    while len(handed) < 3:
        time.sleep(0.001)
    thread.join(0.05)
    assert len(handed) == 3
    assert thread.is_alive()
    go.set()
    thread.join()
    placer.finish()


def assert_waited(go: threading.Event) -> None:
    assert go.wait(10)


def test_an_error_comes_back(placer: FrameWriter, tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError("broken")

    placer.put(tmp_path, 1, fail)
    with pytest.raises(OSError, match="broken"):
        placer.finish()


def test_what_is_written_is_flushed_on_the_way(
    placer: FrameWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(frame_writer, "FLUSH_BYTES", 10)
    monkeypatch.setattr(frame_writer, "flush", flushed.append)
    one, two = tmp_path / "one", tmp_path / "two"
    for size in (4, 4):
        placer.put(one, size, lambda: None)
        placer.put(two, 1, lambda: None)
    assert flushed == []
    placer.put(one, 4, lambda: None)
    placer.finish()
    assert flushed == [one]

    def fail(_: Path) -> None:
        raise OSError("no space")

    monkeypatch.setattr(frame_writer, "flush", fail)
    placer.put(two, 10, lambda: None)
    with pytest.raises(OSError, match="no space"):
        placer.finish()
