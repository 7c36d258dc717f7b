"""Commands under limits: each does its work, or ends with exit code 1 or 2 and one message, and leaves what was there.

Disks with room for so many pages, a disk that may only be read, limits of file size, of open files, of address space;
environments without a home, a place for temporary files, standard files, a working folder, memory to share. By default
some of them; PENSTOCK_CAMPAIGN=all tries every command at every value.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from campaigns.conftest import Workshop
from support.failing_calls import Ended
from support.faults import small_disk
from support.launched_ranks import needs_mpi
from support.stories import STORIES, Left, Story

ALL = os.environ.get("PENSTOCK_CAMPAIGN") == "all"
PAGE, MIB = 4096, 1 << 20
LIMITS = {
    "RLIMIT_FSIZE": (1000, 4096, 5000, 9000, 16384, 20000, 40000, 65536, 100_000, 200_000),
    "RLIMIT_NOFILE": (1, 2, 3, 4, 5, 6, 8, 10, 13, 16),
    "RLIMIT_AS": tuple(MIB * size for size in (3, 12, 48, 128, 256, 512, 700, 850, 1000)),
}
"""Open files and address space beside those that the process has when the command begins."""
PAGES = (*range(16), 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256)
SAMPLE = {
    "RLIMIT_FSIZE": ("append-list", "run-job"),
    "RLIMIT_NOFILE": ("convert-names", "run-metrics"),
    "RLIMIT_AS": ("convert-rows", "run-parquet"),
    "pages": ("append-stripes", "run-checkpoints-pagerank"),
}
FEW = 3

pytestmark = pytest.mark.timeout(6 * 3600 if ALL else 300)


def stories(sample: str) -> list[Story]:
    """The commands to try."""
    return [story for story in STORIES if (ALL and story.name != "demo") or story.name in SAMPLE[sample]]


def some(values: tuple[int, ...], name: str) -> list[int]:
    """The values to try."""
    return list(values) if ALL else random.Random(name).sample(values, FEW)


def whole_after(workshop: Workshop, story: Story) -> Left:
    """What a command leaves without limits."""
    workshop.place.restore()
    ended = workshop.run(story.arguments)
    assert (ended.code, ended.err) == (0, ""), ended
    return workshop.left(story)


def check(workshop: Workshop, story: Story, ended: Ended, after: Left) -> None:
    """The work is done, or one message is there and the files are those before or after."""
    said = f"{story.name}: {ended}"
    assert ended.code in (0, 1, 2), said
    assert "Traceback" not in ended.err, said
    lines = ended.err.splitlines()
    assert ended.code == 0 or sum(line.startswith("penstock: ") for line in lines) == 1, said
    found = workshop.left(story)
    wrong = found.differs(workshop.before, after)
    assert not wrong, f"{said}: {wrong}"
    assert ended.code or found.files == after.files, said
    debris = {name for name in found.debris if not (name.endswith(".penstock-begun") and "completes that" in ended.err)}
    assert debris <= {*workshop.before.debris, *after.debris}, f"{said}: {found.debris}"


def report(name: str, values: list[int], codes: Counter[int], failures: list[str]) -> None:
    """Print how it went; fail where anything did."""
    print(f"{name}: {len(values)} values: {dict(codes)}")
    assert not failures, "\n".join([f"{len(failures)} failures", *failures])


@pytest.mark.parametrize(
    ("limit", "story"), [pytest.param(name, s, id=f"{name}-{s.name}") for name in LIMITS for s in stories(name)]
)
def test_limits_of_the_system(workshop: Workshop, limit: str, story: Story) -> None:
    after, codes, failures = whole_after(workshop, story), Counter[int](), []
    values = some(LIMITS[limit], story.name)
    for value in values:
        workshop.place.restore()
        ended = workshop.run(story.arguments, **{limit: value})
        codes[ended.code] += 1
        try:
            check(workshop, story, ended, after)
        except AssertionError as failure:
            failures.append(f"{limit} {value}: {failure}")
            print("failed:", failures[-1])
    report(f"{story.name}, {limit}", values, codes, failures)


@contextmanager
def full_but_for(workshop: Workshop, pages: int | None) -> Iterator[None]:
    """Let the folder be a disk that holds so many pages more than it does, or None: that may only be read."""
    folder = workshop.place.folder
    workshop.place.restore()
    with small_disk(folder, 64 * MIB):
        workshop.place.restore()
        held = os.statvfs(folder)
        size = (held.f_blocks - held.f_bfree + (pages or 0)) * PAGE
        how = "remount,ro" if pages is None else f"remount,size={size}"
        subprocess.run(["mount", "-o", how, str(folder)], check=True)
        yield


@pytest.mark.parametrize("story", stories("pages"), ids=lambda story: story.name)
def test_a_full_disk(workshop: Workshop, story: Story) -> None:
    after, codes, failures = whole_after(workshop, story), Counter[int](), []
    values = some(PAGES, story.name)
    for pages in values:
        with full_but_for(workshop, pages):
            ended = workshop.run(story.arguments)
            codes[ended.code] += 1
            try:
                check(workshop, story, ended, after)
            except AssertionError as failure:
                failures.append(f"{pages} pages: {failure}")
                print("failed:", failures[-1])
    report(f"{story.name}, pages", values, codes, failures)


@pytest.mark.parametrize("story", stories("pages"), ids=lambda story: story.name)
def test_a_disk_that_may_only_be_read(workshop: Workshop, story: Story) -> None:
    before, writes = workshop.before_of(story), whole_after(workshop, story).files != workshop.before_of(story).files
    with full_but_for(workshop, None):
        ended = workshop.run(story.arguments)
        check(workshop, story, ended, before)
        assert (ended.code != 0) == writes
        assert workshop.left(story) == before


COMMAND = f"{sys.executable} -P -m penstock.tools.main"
EXPORT = f"{COMMAND} export $WORK/g.h5 $WORK/new.csv --quiet"
ENVIRONMENTS = {
    "no home": (f"unset HOME XDG_CACHE_HOME; {EXPORT}", 0, ""),
    "a home that is not there": (f"unset XDG_CACHE_HOME; HOME=/nonexistent {EXPORT}", 0, ""),
    "a home that is a file": (f"unset XDG_CACHE_HOME; HOME=/etc/passwd {EXPORT}", 0, ""),
    "rates without a home": (
        f"unset XDG_CACHE_HOME; HOME=/proc/none {COMMAND} calibrate --quick --device cpu",
        2,
        "/proc/none/.cache/penstock cannot be made",
    ),
    "temporary files nowhere": (f"TMPDIR=/nonexistent {EXPORT}", 0, ""),
    "temporary files in a file": (f"TMPDIR=/etc/passwd {EXPORT}", 0, ""),
    "no variables": (f"exec env -i NUMBA_CACHE_DIR=$NUMBA_CACHE_DIR {EXPORT}", 0, ""),
    "fewer threads for Numba": (
        f"NUMBA_NUM_THREADS=1 {COMMAND} similarity $WORK/g.h5 --k 3 --output $WORK/new.csv --quiet",
        0,
        "",
    ),
    "standard files closed": (f"exec <&- >&- 2>&-; {EXPORT}", 0, ""),
    "standard output closed": (f"exec >&-; {COMMAND} info $WORK/g.h5", 1, "standard output: Bad file descriptor"),
    "standard output full": (f"{COMMAND} info $WORK/g.h5 > /dev/full", 1, "standard output: No space left on device"),
    "a table to a full disk": (f"{COMMAND} export $WORK/g.h5 - > /dev/full", 1, "standard output: No space left"),
    "messages to a full disk": (f"{COMMAND} info $WORK/none.h5 2> /dev/full", 2, ""),
    "notes to a full disk": (
        f"{COMMAND} run bfs $WORK/g.h5 --source 0 --verbose --top 3 --output $WORK/new.csv 2> /dev/full > /dev/null",
        0,
        "",
    ),
    "no working folder": (
        f"mkdir $WORK/gone; cd $WORK/gone; rmdir $WORK/gone; {COMMAND} export ../g.h5 new.csv",
        1,
        "the working folder was removed",
    ),
    "no working folder, whole names": (f"mkdir $WORK/gone; cd $WORK/gone; rmdir $WORK/gone; {EXPORT}", 0, ""),
}
"""What a shell does, how it ends, and what is said."""


@pytest.mark.parametrize("name", ENVIRONMENTS if ALL else ["standard files closed", "no working folder"])
def test_environments(workshop: Workshop, name: str) -> None:
    line, code, words = ENVIRONMENTS[name]
    workshop.place.restore()
    given = os.environ | workshop.place.environment | {"WORK": str(workshop.place.folder)}
    ended = subprocess.run(["bash", "-c", line], env=given, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False), ended
    assert ended.stderr.count("\n") == (words != ""), ended
    assert words in ended.stderr, ended
    assert (workshop.place.folder / "new.csv").exists() == (code == 0), ended
    assert workshop.left(STORIES[0]).debris == workshop.before.debris


@needs_mpi
@pytest.mark.parametrize("size", [64 << 10, 4 * MIB, 16 * MIB, 28 * MIB, 64 * MIB] if ALL else [4 * MIB])
def test_ranks_with_little_memory_to_share(workshop: Workshop, size: int) -> None:
    workshop.place.restore()
    command = f"{COMMAND} run wcc g.h5 --devices cpu,cpu --output new.csv --no-calibrate --quiet"
    line = f"mount -t tmpfs -o size={size} none /dev/shm && {command}"
    ended = subprocess.run(
        ["unshare", "--mount", "bash", "-c", line],
        cwd=workshop.place.folder, env=os.environ | workshop.place.environment,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if "unshare:" in ended.stderr or "mount:" in ended.stderr:
        pytest.skip("this machine lets us mount no tmpfs")
    fits = size >= 28 * MIB
    assert ended.returncode == (0 if fits else 2), ended
    assert ("2 ranks need 28.0 MiB of memory in /dev/shm" in ended.stderr) == (not fits), ended
    assert Path(workshop.place.folder, "new.csv").exists() == fits
