"""Which parts of libraries are given back, and that what was given back is there when it is used."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.footprint import library_pages
from support.faults import python

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
from penstock.storage.footprint.library_pages import give_back_library_pages

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
    found = library_pages.library_parts(MAPS)
    assert found == [(0x7F0000000000, 4 << 20), (0x7F0000400000, 80 << 20), (0x7F0008000000, 2 << 20)]
    assert library_pages.library_parts("") == []


@LINUX
def test_a_written_page_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "one.so"
    file.write_bytes(bytes(4 * mmap.PAGESIZE))
    with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        place = np.frombuffer(mapped, np.uint8).ctypes.data
        assert mapped[0] == 0
        assert not library_pages._written.__wrapped__(place, len(mapped))
        mapped[2 * mmap.PAGESIZE] = 1
        assert library_pages._written.__wrapped__(place, len(mapped))


@LINUX
def test_libraries_work_when_their_pages_were_given_back() -> None:
    told = python(SCRIPT)
    assert int(told.stdout) > 8 << 10, "KiB that are not mapped any more"


@pytest.mark.parametrize("hidden", ["platform", "maps"])
def test_nothing_is_done_where_the_system_does_not_tell(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, **options: object) -> str:
        raise PermissionError(self)

    monkeypatch.setattr(library_pages._Known, "modules", -1)
    monkeypatch.setattr(library_pages, "_madvise", lambda: pytest.fail("pages were given back"))
    if hidden == "platform":
        monkeypatch.setattr(sys, "platform", "darwin")
    else:
        monkeypatch.setattr(Path, "read_text", refused)
    library_pages.give_back_library_pages()
