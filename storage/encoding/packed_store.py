"""The packed store: payloads of all chunks of an array, one after another without padding, in one array of words.

`pack_arrays` makes one of an array in memory; `unpack_wanted` decodes chunks of one, or only those of their blocks that
are wanted. A bitmap of wanted blocks has bit b & 31 of word b >> 5 for block b, which holds items 256 * b and on.
Nothing in a store is trusted: a forged payload is neither read outside of its words nor written outside of its items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.base.threads import ThreadPool, ordered_map
from penstock.storage.encoding.payload import BLOCK, payload_words

ALL: NDArray[np.uint32] = np.empty(0, np.uint32)
"""The bitmap that wants every block."""


class PackedStore(NamedTuple):
    """Payloads, or a range of them: that of chunk c is ``words[starts[c] - first_word : starts[c + 1] - first_word]``.

    ``words`` uint32; ``starts`` int64 (chunks + 1,). Every chunk has ``chunk_items`` of the array's ``items`` items,
    the last what is left.
    """

    words: NDArray[np.uint32]
    first_word: int
    starts: NDArray[np.int64]
    chunk_items: int
    items: int


class UnpackTarget(NamedTuple):
    """Where items go: item i to ``out[i - first_item]``; ids must be below ``limit`` (0: any).

    ``marks`` is the bitmap of wanted blocks, `ALL` without one. What is not wanted is not touched.
    """

    out: NDArray[Any]
    first_item: int
    limit: int
    marks: NDArray[np.uint32]


def pack_arrays(
    items: NDArray[Any], chunk_items: int, differences: bool, threads: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Pack an array in memory, in threads.

    Parameters
    ----------
    items : ndarray of uint8, uint16, uint32 or uint64, (items,)
        Ids, or values of at most 32 bits.
    chunk_items : int
        Items of every payload but the last.
    differences : bool
        Whether to pack differences (ids) or the items themselves (weights).
    threads : int
        How many pack.

    Returns
    -------
    words : ndarray of uint32
        The payloads, one after another.
    starts : ndarray of int64, (chunks + 1,)
        Where each begins, and the end.

    Raises
    ------
    RunError
        A thread cannot be started.
    """
    chunks = -(-len(items) // chunk_items)
    words = np.empty(
        chunks * payload_words(chunk_items, items.itemsize), np.uint32
    )  # what is not written takes no memory
    parts = (items[first : first + chunk_items] for first in range(0, len(items), chunk_items))
    sizes = _pack_into(words, parts, differences, max(1, threads))
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    words.resize(int(starts[-1]), refcheck=False)
    return words, starts


def _pack_into(words: NDArray[np.uint32], parts: Iterable[NDArray[Any]], differences: bool, threads: int) -> list[int]:
    """Pack arrays one after another into ``words``; return the words of each.

    Threads pack into rooms of their own; where a payload goes is known when all before it are packed, and threads move
    it there. A room is waited for by the caller alone, so that no thread that could free one waits.
    """
    from penstock.storage.encoding.bitpack import pack  # the compiler, only where something is packed

    rooms: SimpleQueue[NDArray[np.uint32]] = SimpleQueue()
    made = 0

    def tasks() -> Iterator[tuple[NDArray[Any], NDArray[np.uint32]]]:
        nonlocal made
        for part in parts:
            if made < 3 * threads:
                made += 1
                rooms.put(np.empty(payload_words(len(part), part.itemsize), np.uint32))
            yield part, rooms.get()

    def work(task: tuple[NDArray[Any], NDArray[np.uint32]]) -> tuple[NDArray[np.uint32], int]:
        part, room = task
        return room, int(pack(part, room, differences))

    def move(room: NDArray[np.uint32], first: int, last: int) -> None:
        try:
            words[first:last] = room[: last - first]
        finally:
            rooms.put(room)

    sizes: list[int] = []
    end = 0
    with ThreadPool(threads, "penstock-pack") as pool:
        moves = []
        for room, used in ordered_map(pool, work, tasks(), 2 * threads):
            moves.append(pool.submit(move, room, end, end + used))
            sizes.append(used)
            end += used
        for moved in moves:
            moved.result()
    return sizes


def unpack_wanted(
    store: PackedStore, target: UnpackTarget, first_chunk: int, last_chunk: int, values: bool
) -> NDArray[np.uint8]:
    """Decode chunks first_chunk..last_chunk-1 of a store, or their wanted blocks. Runs without Python's lock.

    Several threads may decode different chunks of one store at once.

    Parameters
    ----------
    store : PackedStore
        The payloads.
    target : UnpackTarget
        Where their items go.
    first_chunk, last_chunk : int
        The chunks.
    values : bool
        Whether payloads hold values (weights), not differences of ids.

    Returns
    -------
    ndarray of uint8, (last_chunk - first_chunk,)
        0 for a chunk that is sound, else flags. The wanted blocks of a `MALFORMED` one are filled with zeros, and ids
        that are `BEYOND` the limit are written as 0. A chunk without wanted blocks is not looked at.

    Raises
    ------
    ValueError
        The items do not fit ``out``, or the bitmap has too few words.
    """
    from penstock.storage.encoding import unpack  # the compiler, only where something is unpacked

    _check(store, target, first_chunk, last_chunk)
    status = np.zeros(last_chunk - first_chunk, np.uint8)
    decode = unpack.decode_values if values else unpack.decode_ids
    decode(store, target, first_chunk, last_chunk, status)
    return status


def _check(store: PackedStore, target: UnpackTarget, first_chunk: int, last_chunk: int) -> None:
    size, chunks = store.chunk_items, len(store.starts) - 1
    if not 0 <= first_chunk <= last_chunk <= chunks or chunks != -(-store.items // size):
        raise ValueError(f"chunks {first_chunk}..{last_chunk} of {chunks}, {store.items} items of {size} a chunk")
    if first_chunk == last_chunk:
        return
    first, last = first_chunk * size - target.first_item, min(last_chunk * size, store.items) - target.first_item
    if first < 0 or last > len(target.out):
        raise ValueError(f"items {first}..{last} for room of {len(target.out)}")
    if len(target.marks) and (size % BLOCK or len(target.marks) * 32 * BLOCK < store.items):
        raise ValueError(f"a bitmap of {len(target.marks)} words for {store.items} items, {size} a chunk")


def malformed(chunk: int) -> RunError:
    """The error about a chunk."""
    return RunError(
        f"packed edges of chunk {chunk} are malformed, or name a vertex that does not exist: the graph file or memory "
        "is damaged; check the file with: penstock verify"
    )
