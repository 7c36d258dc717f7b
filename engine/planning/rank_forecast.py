"""What sharing a sweep between several ranks costs: what ranks of a host share, and what they exchange.

Pure: numbers in, values out. Lux (VLDB 2017, section 6) adds up loading, computing and transfers of a part in the same
way; its transfers are one link a GPU, here a ring of ranks. `paper_ranks.py` makes a session forecast one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.program.program import Program, author_function, message_dtype

if TYPE_CHECKING:
    from penstock.engine.resources.direction import Direction
    from penstock.transfer.values.rates import Rates


@dataclass(frozen=True)
class RankLink:
    """What carries values between ranks: bytes per second that a rank receives, seconds of a message."""

    bytes_per_second: float
    latency: float


HOST_MPI = RankLink(bytes_per_second=4.4e9, latency=3e-6)
"""Between CPU ranks of one host, slices of arrays of 2 to 128 MiB with MPICH: 4.3 to 5.0 GB/s, 64 B in 2 to 3.5 us."""
VERTEX_RATE = 2.6e8
"""Vertices a second and thread for which a sweep computes a message and a value: 16 ms for 4.2 M (PageRank)."""
SCATTERED, PACKED = 0.68, 0.38
"""Of the edges that a sweep walks in a second over grouped messages: those over messages as ids have them (0.075 and
0.110 s), and those that the kernel decodes, too (0.2 s; decisions/sweeps.md)."""


def vertex_seconds(vertices: int, threads: int) -> float:
    """Seconds in which a sweep computes messages and values of all vertices, as every rank does."""
    return vertices / (VERTEX_RATE * max(1, threads))


def rates_of_rank(rates: Rates, ranks: int) -> Rates:
    """The rates of one of so many ranks on a host, which divide its disk and its cores; rates: of the whole host."""
    return replace(
        rates,
        disk_bytes=rates.disk_bytes / ranks,
        decode_bytes=rates.decode_bytes / ranks,
        gather_bytes=rates.gather_bytes / ranks,
        kernel_edges=rates.kernel_edges / ranks,
        kernel_rows=rates.kernel_rows / ranks,
        sweep_edges=rates.sweep_edges / ranks,
    )


def exchange_seconds(nbytes: int, ranks: int, link: RankLink) -> float:
    """Seconds until every rank has all slices of an array of so many bytes.

    A ring: ranks - 1 messages, each of one slice (Thakur, Rabenseifner and Gropp, 2005).
    """
    return (ranks - 1) * (link.latency + nbytes / ranks / link.bytes_per_second)


def exchanged_bytes(program: Program, direction: Direction, vertices: int, vertex_bytes: int) -> int:
    """Bytes of the arrays that ranks hand out slices of, in a sweep in which every vertex has a message.

    A pull hands out what it found; a push exchanges parts before. Of union-find every rank hands out its slice of a
    forest twice, of triangles every vertex' count.
    """
    if program.combine == "union":
        return 2 * vertices * vertex_bytes
    message = message_dtype(program, np.dtype(f"uint{8 * vertex_bytes}")).itemsize
    once = message * int(np.prod(program.message_shape)) * vertices
    return once if direction == "pull" or author_function(program, "corner") is not None else 2 * once
