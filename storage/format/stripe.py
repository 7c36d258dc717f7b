"""Which stripe holds which chunk, where a graph's shard files are looked for, and which of them are its own.

Chunks go out in groups of ``run`` neighbors a stripe; a hash of the group's number permutes the stripes, so that every
stripe carries the same share, a stride in the graph does not fall on one stripe, and neighbors still merge into one
read: Garaph's hashed blocks (Ma et al., ATC 2017) without their variance.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.format import hdf5
from penstock.storage.format.direct_io import OpenFile
from penstock.storage.format.schema import Header, ShardEntry


def _mixed(value: int) -> int:
    """SplitMix64's finalizer (Steele, Lea and Flood)."""
    mask = (1 << 64) - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


def group_stripes(group: int, chunks: int, stripes: int) -> NDArray[np.int64]:
    """Return the stripe of each of a group's chunks: equal neighboring shares, one more at most."""
    keys = [_mixed(group * 0x9E3779B97F4A7C15 + stripe) for stripe in range(stripes)]
    order = np.array(sorted(range(stripes), key=keys.__getitem__), np.int64)
    return order[np.arange(chunks) * stripes // max(1, chunks)]


def place(chunks: int, stripes: int, run: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each chunk's stripe and its number among that stripe's chunks, int64 (chunks,)."""
    size = stripes * run
    groups = [group_stripes(group, min(size, chunks - group * size), stripes) for group in range(-(-chunks // size))]
    stripe = np.concatenate(groups) if groups else np.empty(0, np.int64)
    order = np.argsort(stripe, kind="stable")
    firsts = np.searchsorted(stripe[order], np.arange(stripes))
    local = np.empty(chunks, np.int64)
    local[order] = np.arange(chunks) - firsts[stripe[order]]
    return stripe, local


def shard_name(manifest: Path, stripe: int, tag: str = "") -> str:
    """Return the plain name of a stripe's shard file: NAME.0.h5 for NAME.h5, or NAME.TAG.0.h5."""
    return f"{manifest.stem}.{tag}.{stripe}.h5" if tag else f"{manifest.stem}.{stripe}.h5"


def recorded_folder(manifest: Path, folder: Path) -> str:
    """Return what a manifest records of a folder: relative to its own if it is inside that, both without links."""
    whole, base = folder.resolve(), manifest.resolve().parent
    return str(whole.relative_to(base) if whole.is_relative_to(base) else whole)


def recorded_place(manifest: Path, entry: ShardEntry) -> Path:
    """Return where a manifest's record has a shard, as seen from where the manifest is."""
    return manifest.resolve().parent / entry.directory / entry.name


def candidates(manifest: Path, header: Header, entry: ShardEntry, stripes: Sequence[Path]) -> Iterable[Path]:
    """Yield where a shard may be: the stripes given, where it is recorded, beside the manifest, at its original."""
    beside = manifest.resolve().with_name(entry.name)
    places = [*(folder / entry.name for folder in stripes), recorded_place(manifest, entry), beside]
    if header.place is not None:
        places.append(recorded_place(Path(header.place.path), entry))
    yield from dict.fromkeys(places)


def real_place(shard: Path) -> Path:
    """Return a shard's name in its folder without links; what it is itself does not matter."""
    return shard.parent.resolve() / shard.name


def own_places(manifest: Path, header: Header) -> set[Path]:
    """Return where shards are that belong to this manifest, and that a graph in its place may remove.

    They are where they are recorded, with no link on the way. The manifest is the file that was written, in its place;
    or it may be a copy, which has those in its own folder only, which were copied with it, and only under the name that
    the manifest was written with: beside that one, it has none.
    """
    place, real = header.place, manifest.resolve()
    if place is None:
        return set()
    stays = manifest.stat().st_ino == place.inode and real == Path(place.path).resolve()
    named = real.name == Path(place.path).name
    found = set()
    for entry in header.shards:
        shard = recorded_place(manifest, entry)
        if (stays or (named and not Path(entry.directory).is_absolute())) and real_place(shard) == shard:
            found.add(shard)
    return found


def is_copied(manifest: Path, header: Header) -> bool:
    """Whether another manifest of the same graph is where this one was written; True where that cannot be seen."""
    if header.place is None or manifest.resolve() == Path(header.place.path).resolve():
        return False
    try:
        return hdf5.read_manifest(OpenFile(Path(header.place.path))).header.graph_id == header.graph_id
    except (FileNotFoundError, NotADirectoryError, hdf5.FileError):
        return False
    except OSError:
        return True


def is_own(manifest: Path, header: Header) -> bool:
    """Whether a manifest with shards is the file that was written, wherever it was moved, and no copy has its place."""
    place = header.place
    return place is not None and manifest.stat().st_ino == place.inode and not is_copied(manifest, header)


def check_own(manifest: Path, header: Header, shards: Sequence[Path]) -> None:
    """Refuse to add to a graph with shards, found in these places, that may be those of another manifest.

    A list goes on to name its shards, so that all must be its own. Rows are written again: none may be written where
    the original has its own. The file that was written may do both, wherever it and its shards were moved, unless a
    copy has its place. Raises InputError.
    """
    if is_own(manifest, header):
        return
    place = header.place
    own = own_places(manifest, header)
    written = manifest if place is None else Path(place.path)
    theirs = {real_place(recorded_place(written, entry)) for entry in header.shards}
    for shard in map(real_place, shards):
        if shard in own or not (shard in theirs or header.layout == "list"):
            continue
        copy = f"is not the file that was written as {written}, and" if place else "is of an older Penstock:"
        way = "copy its shards, too, and name their new folders with --stripe"
        if header.layout == "list":
            way = f"'penstock convert {manifest} OTHER.h5 --layout list' makes a graph of its own"
        raise InputError(f"{manifest} {copy} {shard} may be the shard of another graph file; {way}")
