"""Memory that was freed among blocks still in use goes back to the system."""

from __future__ import annotations

import ctypes
import mmap
import sys
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.base import freed_memory
from penstock.storage.base.budget import resident_bytes
from penstock.storage.base.freed_memory import give_back_freed_memory
from support.faults import python

PIECE, PIECES = 64 << 10, 512


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc")
def test_freed_memory_goes_back_while_its_neighbors_are_in_use() -> None:
    blocks = [np.ones(PIECE, np.uint8) for _ in range(PIECES)]
    kept = blocks[::8]
    before = resident_bytes()
    del blocks
    give_back_freed_memory()
    assert resident_bytes() < before - PIECE * PIECES // 2
    assert all(block.all() for block in kept)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library than glibc")
def test_no_large_block_is_kept_where_that_is_chosen() -> None:
    """Blocks of 3 MiB among small ones, freed after one of 30 MiB."""
    code = """
import sys
import numpy as np
from penstock.storage.base.budget import resident_bytes
from penstock.storage.base.freed_memory import keep_no_large_blocks
if sys.argv[1] == "none":
    keep_no_large_blocks()
np.ones(30 << 20, np.uint8)
before = resident_bytes()
kept = []
for _ in range(8):
    blocks = [np.ones(3 << 20, np.uint8) for _ in range(4)]
    kept.append(np.ones(1 << 16, np.uint8))
    del blocks
print(resident_bytes() - before)
"""
    some, none = (int(python(code, choice).stdout) for choice in ("some", "none"))
    assert none < 4 << 20 < some


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked to give pages back")
MAPS = """\
7f0000000000-7f0000400000 r--p 00000000 fe:00 1    /usr/lib/libone.so.3
7f0000400000-7f0005400000 r-xp 00400000 fe:00 1    /usr/lib/libone.so.3
7f0005400000-7f0005600000 rw-p 05400000 fe:00 1    /usr/lib/libone.so.3
7f0005600000-7f0005601000 r-xp 00000000 fe:00 2    /usr/lib/libsmall.so
7f0005700000-7f0005900000 r-xp 00000000 00:00 0
7f0005a00000-7f0006a00000 r--s 00000000 fe:00 3    /data/graph.so.bin
7f0006b00000-7f0007b00000 r--p 00000000 fe:00 4    /data/graph.h5
7f0008000000-7f0008200000 r-xp 00000000 fe:00 5    /a b/two.cpython-311-x86_64-linux-gnu.so
"""
SCRIPT = """
import numpy as np
import llvmlite.binding as llvm
from penstock.storage.base.freed_memory import give_back_library_pages

def mapped():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssFile"))

def compiled():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    module = llvm.parse_assembly("define i32 @seven() { ret i32 7 }")
    return machine.emit_object(module)

first = compiled()
before = mapped()
give_back_library_pages()
after = mapped()
assert compiled() == first
assert np.array_equal(np.ones((9, 9)) @ np.ones((9, 9)), np.full((9, 9), 9.0))
print(before - after)
"""


def test_parts_that_nobody_writes_are_found() -> None:
    found = freed_memory.library_parts(MAPS)
    assert found == [(0x7F0000000000, 4 << 20), (0x7F0000400000, 80 << 20), (0x7F0008000000, 2 << 20)]
    assert freed_memory.library_parts("") == []


@LINUX
def test_a_written_page_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "one.so"
    file.write_bytes(bytes(4 * mmap.PAGESIZE))
    with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        place = np.frombuffer(mapped, np.uint8).ctypes.data
        assert mapped[0] == 0
        assert not freed_memory._written.__wrapped__(place, len(mapped))
        mapped[2 * mmap.PAGESIZE] = 1
        assert freed_memory._written.__wrapped__(place, len(mapped))


@LINUX
def test_libraries_work_when_their_pages_were_given_back() -> None:
    told = python(SCRIPT)
    assert int(told.stdout) > 8 << 10, "KiB that are not mapped any more"


@pytest.mark.parametrize("hidden", ["platform", "maps"])
def test_nothing_is_done_where_the_system_does_not_tell(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, **options: object) -> str:
        raise PermissionError(self)

    freed_memory._unwritten_parts.cache_clear()
    monkeypatch.setattr(freed_memory, "_madvise", lambda: pytest.fail("pages were given back"))
    if hidden == "platform":
        monkeypatch.setattr(sys, "platform", "darwin")
    else:
        monkeypatch.setattr(Path, "read_text", refused)
    freed_memory.give_back_library_pages()
