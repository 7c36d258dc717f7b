"""What is done to a copy of a graph changes neither the original nor another copy; a graph that was moved stays one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.convert.append import append
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.encoding.codec import checksum
from penstock.storage.format.graph import Graph
from penstock.storage.read.verify import verify
from support.commands import answered
from support.conversions import Edge, Given
from support.covering import covering
from support.graph_files import header_of

BASE: list[Edge] = [(0, 1, None), (1, 2, None), (2, 0, None)]
MORE: list[Edge] = [(3, 4, None)]
LAYOUTS = ["rows", "list"]


def made(path: Path, layout: str, *folders: Path, **options: Any) -> Path:
    for folder in (path.parent, *folders):
        folder.mkdir(parents=True, exist_ok=True)
    convert(Given(BASE, []), path, ConvertOptions(layout=layout, stripes=folders, threads=1, **options))
    return path


def grown(path: Path, *stripes: Path) -> None:
    append(Given(MORE, []), path, stripes=stripes, threads=1)


def replaced(path: Path, *stripes: Path) -> None:
    convert(Given(MORE, []), path, ConvertOptions(force=True, stripes=stripes, threads=1))


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(path: Path, edges: int) -> Graph:
    """A whole graph; where its files are."""
    assert verify(path, threads=1).problems == []
    graph = Graph.open(path)
    assert graph.edges == edges
    return graph


def inside(graph: Graph, folder: Path) -> bool:
    return all(file.resolve().is_relative_to(folder) for file in graph.files)


def rewritten(path: Path, change: dict[str, Any]) -> None:
    text = json.dumps(header_of(path) | change).encode()
    with h5py.File(path, "r+") as file:
        del file["penstock_header"]
        file.create_dataset("penstock_header", data=np.bytes_(text))
        file.attrs["penstock_header_checksum"] = np.uint64(checksum(text))


@pytest.fixture(params=LAYOUTS)
def original(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A graph on two stripes in folders below its own."""
    place = tmp_path / "o"
    return made(place / "g.h5", request.param, place / "a1", place / "a2")


@pytest.fixture(params=LAYOUTS)
def outside(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A graph whose stripes are elsewhere."""
    return made(tmp_path / "o" / "g.h5", request.param, tmp_path / "d1", tmp_path / "d2")


def stays(path: Path, folder: Path, act: Callable[[], None]) -> None:
    """Something is done that changes nothing in a folder, and leaves the graph there as it is."""
    before = files_of(folder)
    act()
    assert {file: data for file, data in files_of(folder).items() if file in before} == before
    check(path, 3)


def refuses(path: Path, *places: Path, stripes: tuple[Path, ...] = ()) -> None:
    """An append that writes nothing anywhere, and says where what is not this graph's is."""
    before = files_of(path.parent.parent)
    with pytest.raises(InputError) as caught:
        grown(path, *stripes)
    assert files_of(path.parent.parent) == before
    for place in (path, *places):
        assert str(place) in str(caught.value), caught.value
    way = "--stripe" if Graph.open(path, stripes=stripes).layout == "rows" else f"penstock convert {path} OTHER.h5"
    assert way in str(caught.value)


@covering("layout, act", LAYOUTS, ["append", "convert"], strength=1)
def test_shards_copied_one_by_one(
    act: str, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a user types it: the stripes named are those of the copy."""
    monkeypatch.chdir(tmp_path)
    for folder in ("a1", "a2", "copy/a1", "copy/a2"):
        Path(folder).mkdir(parents=True)
    Path("base.txt").write_text("0 1\n1 2\n2 0\n")
    Path("add.txt").write_text("3 4\n")
    stripes = ("--stripe", "a1", "--stripe", "a2")
    answered(capsys, "convert", "base.txt", "g.h5", *stripes, "--layout", layout)
    for file in ("g.h5", "a1/g.0.h5", "a2/g.1.h5"):
        shutil.copy(file, Path("copy", file))
    before = {path: data for path, data in files_of(tmp_path).items() if "copy" not in path.parts}
    monkeypatch.chdir("copy")
    if act == "append":
        answered(capsys, "append", "g.h5", "../add.txt", *stripes)
    else:
        answered(capsys, "convert", "../add.txt", "g.h5", *stripes, "--force", "--layout", layout)
    graph = check(tmp_path / "copy" / "g.h5", 4 if act == "append" else 1)
    assert inside(graph, tmp_path / "copy")
    assert set(files_of(tmp_path / "copy")) == set(graph.files)
    assert {path: data for path, data in files_of(tmp_path).items() if "copy" not in path.parts} == before
    check(tmp_path / "g.h5", 3)


def test_a_tree_that_was_copied_is_a_graph_of_its_own(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "c" / "g.h5"
    shutil.copytree(original.parent, copy.parent)
    stays(original, original.parent, lambda: grown(copy))
    graph = check(copy, 4)
    assert inside(graph, copy.parent)
    assert set(files_of(copy.parent)) == set(graph.files)
    stays(original, original.parent, lambda: replaced(copy, copy.parent / "a1"))
    assert set(files_of(copy.parent)) == set(check(copy, 1).files)
    shutil.rmtree(original.parent)
    check(copy, 1)


@pytest.mark.parametrize("unstriped", [True, False])
def test_a_list_with_an_appended_part_that_was_copied(unstriped: bool, tmp_path: Path) -> None:
    place = tmp_path / "o"
    path = made(place / "g.h5", "list", *(() if unstriped else (place / "a1",)))
    grown(path)
    shutil.copytree(place, tmp_path / "c")
    before = files_of(place)
    grown(tmp_path / "c" / "g.h5")
    assert inside(check(tmp_path / "c" / "g.h5", 5), tmp_path / "c")
    replaced(tmp_path / "c" / "g.h5")
    assert list(files_of(tmp_path / "c")) == [tmp_path / "c" / "g.h5"]
    assert files_of(place) == before
    check(path, 4)


def test_a_copy_beside_under_another_name(original: Path, caplog: pytest.LogCaptureFixture) -> None:
    copy = original.with_name("h.h5")
    shutil.copy(original, copy)
    check(copy, 3)
    refuses(copy, original, original.parent / "a1")
    stays(original, original.parent / "a1", lambda: replaced(copy, original.parent / "a1"))
    assert "stays" not in caplog.text, "they are the original's"
    check(copy, 1)
    replaced(original)
    check(copy, 1)


def test_a_copy_of_the_manifest_alone(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "c" / "g.h5"
    copy.parent.mkdir()
    shutil.copy(original, copy)
    assert check(copy, 3).files[1:] == Graph.open(original).files[1:]
    refuses(copy, original, original.parent / "a1")
    refuses(copy, original.parent / "a1", stripes=(original.parent / "a1", original.parent / "a2"))
    stays(original, original.parent, lambda: replaced(copy))
    check(copy, 1)


def test_a_copy_whose_shards_are_nowhere_names_both_places(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "c" / "g.h5"
    copy.parent.mkdir()
    shutil.copy(original, copy)
    shutil.rmtree(original.parent)
    with pytest.raises(InputError, match="was not found in") as caught:
        Graph.open(copy)
    for place in (original.parent / "a1", copy.parent / "a1", "--stripe DIR"):
        assert str(place) in str(caught.value)


def test_a_copy_of_a_manifest_whose_original_is_gone_removes_no_shard(outside: Path, tmp_path: Path) -> None:
    """There may be a third copy."""
    copy = tmp_path / "c" / "g.h5"
    copy.parent.mkdir()
    shutil.copy(outside, copy)
    shutil.copy(outside, tmp_path / "third.h5")
    shutil.rmtree(outside.parent)
    refuses(copy, outside, tmp_path / "d1")
    place = header_of(copy)["place"] | {"inode": copy.stat().st_ino}
    rewritten(copy, {"place": place})  # the inode of the original, which was free
    replaced(copy, tmp_path / "d1")
    check(tmp_path / "third.h5", 3)
    check(copy, 1)


@pytest.mark.parametrize("link", [os.link, shutil.copy])
def test_a_copy_of_a_graph_with_folders_elsewhere(link: Callable[[Path, Path], None], outside: Path) -> None:
    """Also a hard link, which has the same inode."""
    copy = outside.parent.parent / "c" / "g.h5"
    copy.parent.mkdir()
    link(outside, copy)
    refuses(copy, outside, outside.parent.parent / "d1")
    stays(outside, outside.parent.parent / "d1", lambda: replaced(copy))
    grown(outside)
    check(outside, 4)


def test_a_folder_that_is_a_link_belongs_to_the_original(tmp_path: Path) -> None:
    for layout in LAYOUTS:
        place, disk = tmp_path / layout / "o", tmp_path / layout / "disk"
        for folder in (place, disk):
            folder.mkdir(parents=True)
        (place / "a1").symlink_to(disk)
        path = made(place / "g.h5", layout, place / "a1")
        copy = tmp_path / layout / "c" / "g.h5"
        shutil.copytree(place, copy.parent, symlinks=True)
        refuses(copy, path, disk)
        stays(path, disk, lambda copy=copy: replaced(copy, copy.parent / "a1"))  # type: ignore[misc]
        grown(path)
        assert set(check(path, 4).files[1:]) <= set(files_of(disk))


def test_a_folder_that_became_a_link_is_read_and_written_and_nothing_in_it_removed(original: Path) -> None:
    """The stripe of a copy may be a link to that of the original, to save space."""
    place, copy = original.parent, original.parent.parent / "c"
    shutil.copytree(place, copy)
    shutil.rmtree(copy / "a1")
    (copy / "a1").symlink_to(place / "a1")
    refuses(copy / "g.h5", original, place / "a1")
    stays(original, place, lambda: replaced(copy / "g.h5"))
    shutil.move(place / "a1", place.parent / "larger")
    (place / "a1").symlink_to(place.parent / "larger")
    grown(original)
    check(original, 4)


def test_a_manifest_that_is_read_through_a_link(original: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.h5"
    link.parent.mkdir()
    link.symlink_to(original)
    check(link, 3)
    grown(link)
    assert link.is_symlink()
    graph = check(link, 4)
    assert set(files_of(original.parent)) == {original, *graph.files[1:]}
    (tmp_path / "way").symlink_to(original.parent)
    replaced(tmp_path / "way" / "g.h5")
    assert set(files_of(original.parent)) == {original}


def test_a_moved_graph_stays_one(original: Path, tmp_path: Path) -> None:
    moved = tmp_path / "deep" / "m"
    moved.parent.mkdir()
    original.parent.rename(moved)
    grown(moved / "g.h5")
    assert set(files_of(moved)) == set(check(moved / "g.h5", 4).files)
    (moved / "g.h5").rename(moved / "h.h5")
    made(moved / "g.h5", "rows", moved / "a1")
    grown(moved / "h.h5")
    check(moved / "h.h5", 5)
    replaced(moved / "h.h5", moved / "a1")
    check(moved / "h.h5", 1)
    check(moved / "g.h5", 3)


def test_shards_that_stayed_when_the_manifest_was_moved(original: Path, tmp_path: Path) -> None:
    moved = tmp_path / "m" / "g.h5"
    moved.parent.mkdir()
    original.rename(moved)
    before = files_of(original.parent)
    for edges in (4, 5):
        grown(moved)
        assert {file.parent.parent for file in check(moved, edges).files[1:]} == {original.parent}
    assert before.items() <= files_of(original.parent).items()


def test_a_moved_manifest_keeps_folders_elsewhere(outside: Path, tmp_path: Path) -> None:
    moved = tmp_path / "m.h5"
    outside.rename(moved)
    made(outside, "rows")  # another graph has its place
    before = files_of(tmp_path / "d1")
    grown(moved)
    check(moved, 4)
    assert before.items() <= files_of(tmp_path / "d1").items()
    replaced(moved)
    check(moved, 1)
    check(outside, 3)
    assert files_of(tmp_path / "d1") == {}, "a graph that is appended to goes on with its shards"


def test_a_graph_that_was_moved_behind_a_link(outside: Path, tmp_path: Path) -> None:
    outside.parent.rename(tmp_path / "larger")
    outside.parent.symlink_to("larger")
    grown(outside)
    graph = check(outside, 4)
    assert set(files_of(tmp_path / "d1")) | set(files_of(tmp_path / "d2")) == set(graph.files[1:])


def test_shards_that_were_moved_are_found_and_not_removed(original: Path, tmp_path: Path) -> None:
    """A folder named with --stripe may be that of a copy."""
    moved = tmp_path / "larger"
    shutil.move(original.parent / "a1", moved)
    before = files_of(moved)
    grown(original, moved)
    assert check(original, 4) if Graph.open(original, stripes=[moved]).layout == "rows" else True
    assert before.items() <= files_of(moved).items()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_graph_that_was_restored_owns_folders_below_it_alone(
    layout: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    below = made(tmp_path / "o" / "g.h5", layout, tmp_path / "o" / "a1")
    beside = made(tmp_path / "p" / "g.h5", layout, tmp_path / "d1")
    for path in (below, beside):
        path.rename(tmp_path / "kept.h5")
        shutil.copy(tmp_path / "kept.h5", path)
    refuses(beside, tmp_path / "d1")
    assert "stays" not in caplog.text
    refuses(tmp_path / "kept.h5", beside)  # put aside: a copy has its name
    replaced(beside)
    assert f"{tmp_path / 'd1' / 'g.0.h5'} stays: it may be another graph's" in caplog.text
    check(tmp_path / "kept.h5", 3)
    grown(below)
    assert set(files_of(below.parent)) == set(check(below, 4).files)


def test_the_ways_out_that_a_copy_is_told(outside: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy, others = tmp_path / "c" / "g.h5", (tmp_path / "n1", tmp_path / "n2")
    copy.parent.mkdir()
    shutil.copy(outside, copy)
    for number, other in enumerate(others, 1):
        shutil.copytree(tmp_path / f"d{number}", other)
    if Graph.open(outside).layout == "list":
        refuses(copy, others[0], stripes=others)
        answered(capsys, "convert", copy, tmp_path / "c" / "own.h5", "--layout", "list")
        grown(tmp_path / "c" / "own.h5")
        check(tmp_path / "c" / "own.h5", 4)
    else:
        grown(copy, *others)
        assert {file.parent for file in check(copy, 4).files[1:]} == set(others)
    check(outside, 3)


def test_two_graphs_of_one_name_may_share_a_folder(tmp_path: Path) -> None:
    shared = tmp_path / "s"
    one = made(tmp_path / "x" / "g.h5", "rows", shared)
    stays(one, shared, lambda: made(tmp_path / "y" / "g.h5", "rows", shared).exists() or None)
    stays(one, one.parent, lambda: replaced(tmp_path / "y" / "g.h5", shared))
    check(tmp_path / "y" / "g.h5", 1)
    assert len(files_of(shared)) == 2


def older(path: Path) -> None:
    """Make of a graph what it was before manifests recorded their place."""
    shards = [{**shard, "directory": str(path.parent / shard["directory"])} for shard in header_of(path)["shards"]]
    rewritten(path, {"place": None, "shards": shards})
    with h5py.File(path, "r+") as file:
        file.attrs["penstock_format"] = 3


def test_a_graph_of_an_older_penstock_is_read_and_its_shards_stay(
    original: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    older(original)
    check(original, 3)
    copy = tmp_path / "c" / "g.h5"
    shutil.copytree(original.parent, copy.parent)
    check(copy, 3)
    for path in (original, copy):
        refuses(path, original.parent / "a1")
    stays(original, original.parent, lambda: replaced(copy))
    assert f"{original.parent / 'a1' / 'g.0.h5'} stays" in caplog.text
