"""Which stripe holds which chunk, and where a graph's shard files are looked for.

Chunks go out in groups of ``run`` neighbors a stripe; a hash of the group's number permutes the stripes, so that every
stripe carries the same share, a stride in the graph does not fall on one stripe, and neighbors still merge into one
read: Garaph's hashed blocks (Ma et al., ATC 2017) without their variance.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


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


def candidates(manifest: Path, name: str, recorded: str, stripes: Sequence[Path]) -> Iterable[Path]:
    """Yield where a shard may be: the stripes given, where it was written, beside the manifest."""
    seen: set[Path] = set()
    for directory in (*stripes, Path(recorded), manifest.parent):
        path = directory / name
        if path not in seen:
            seen.add(path)
            yield path
