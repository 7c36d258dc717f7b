"""How memory is divided for walks, of the host and of a device: kept rows, slabs, walkers at once, blocks of walks.

Pure functions: numbers in, values out. Where all rows fit, walks are made block by block. Else walkers take most of
what is left: every batch of them sweeps the rows that are not kept, until all walks of the batch have ended. Slabs get
up to half of what walkers leave, so that a sweep has few partitions, kept rows the rest.

On a device a batch of walkers has its walks until all have ended. Where all rows fit beside a good many walkers,
nothing is swept. Else every batch sweeps the rows that are not kept about once a step, so that bytes over the link go
with the square of what is not kept, over the number of walkers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.base.errors import BudgetError
from penstock.transfer.planning.host_budget import ONE_BY_ONE, READS, HostBudgetRequest, reader_bytes

WRITER_BYTES = 8 << 20
"""What writes the file of walks takes beside blocks: pages of Parquet, what compresses."""
BLOCK_BYTES = 8 << 20
BLOCK_WALKS = 1 << 16
SLAB_BYTES = 32 << 20
PIECE_BYTES = 4 << 20
TIMES = 8
"""A block of walks, its records, the names of its vertices and the text or columns that are written, in blocks."""
GAINED = 8
"""Further steps of a walker for which there is room at each visit of its partition."""
UNIT, UNIT_ROWS = 1024, 128
"""Walkers that a thread looks through, and those of them for whose further steps there is room at once."""
PENDING_BYTES = 4
"""Of records by walker, that are gathered before they are logged; twice, while they are."""
WALKERS_SHARE = 7
"""Eighths of what is left that walkers may take: sweeps fall with their number, reading with the share that is kept."""
SLABS_SHARE = 0.5
"""Of what walkers leave, at most: all walkers are looked through for each partition of a slab; the rest keeps rows."""
PARTITIONS = 8
"""Of a sweep: slabs for fewer would save little time, and rows that are not kept are read again and again."""
WALKER_BYTES = 64
"""What a walker of a block takes beside its walk, at most."""
CELLS = 1 << 32
"""A block has fewer cells than this."""


@dataclass(frozen=True)
class WalkMemoryRequest:
    """What there is to divide, in bytes.

    host: budget, what is taken of it, and what reading takes. edges: of the graph; in_memory: they are there anyway.
    neighbor_bytes, weight_bytes, sum_bytes: of an edge, the last two 0 without weights. longest: edges that a slab must
    hold, in whole chunks of chunk_edges. walks: how many; row_bytes: of one; walker_bytes: of what a walker is.
    """

    host: HostBudgetRequest
    edges: int
    in_memory: bool
    neighbor_bytes: int
    weight_bytes: int
    sum_bytes: int
    longest: int
    chunk_edges: int
    walks: int
    row_bytes: int
    walker_bytes: int

    @property
    def kept_bytes(self) -> int:
        """Of an edge that stays."""
        return self.sum_bytes + (0 if self.in_memory else self.neighbor_bytes)

    @property
    def slab_bytes(self) -> int:
        """Of an edge in a slab."""
        return self.neighbor_bytes + self.weight_bytes + self.sum_bytes

    @property
    def piece_edges(self) -> int:
        """Edges whose weights are read at once while kept rows are loaded."""
        return max(self.longest, self.whole_chunks(PIECE_BYTES, self.neighbor_bytes))

    def whole_chunks(self, size: int, edge_bytes: int) -> int:
        """Edges of the whole chunks that take at most so many bytes, one chunk at least."""
        return max(1, size // (self.chunk_edges * edge_bytes)) * self.chunk_edges


@dataclass(frozen=True)
class WalkMemory:
    """The division. kept_edges: those that stay in memory; slab_edges: of each of two slabs, 0 where all are kept.

    piece_edges: read at once while kept rows are loaded. reads: in flight; one_by_one: one thread decodes, a frame a
    read. batch, block: walks at once, and written at once. log_bytes: memory for records before they go to disk.
    device_edges: the first ones, which a device keeps; device_slab_edges: in each of two slabs there, 0 where the
    others are none or read in place; sets: how many batches there are at once, of which one goes to the host.
    """

    kept_edges: int
    slab_edges: int
    piece_edges: int
    batch: int
    block: int
    reads: int = 1
    one_by_one: bool = False
    log_bytes: int = 0
    device_edges: int = 0
    device_slab_edges: int = 0
    sets: int = 1


def divide_walk_memory(request: WalkMemoryRequest) -> WalkMemory:
    """Divide a budget. Raises BudgetError where it is too small."""
    left = request.host.left
    block = block_walks(request, BLOCK_BYTES)
    whole = request.edges * request.kept_bytes
    if request.in_memory:
        block = block_walks(request, min(BLOCK_BYTES, max(0, left - whole) // TIMES // 2))
        if whole + block_bytes(request, block) > left:
            raise refusal(request, whole + block_bytes(request, 1))
        return WalkMemory(request.edges, 0, 0, block, block)
    piece = request.piece_edges * request.weight_bytes
    for reads in READS:
        if whole + piece + reader_bytes(request.host, reads) + block_bytes(request, block) <= left:
            return WalkMemory(request.edges, 0, request.piece_edges, block, block, reads)
    return _swept(request, left)


def _swept(request: WalkMemoryRequest, left: int) -> WalkMemory:
    """Of a graph whose rows do not all fit: slabs and reads as large as leave half for walkers and kept rows."""
    for share, reads in ((16, 8), (16, 4), (8, 1)):
        block = block_walks(request, min(BLOCK_BYTES, left // share // TIMES))
        slab = max(request.longest, request.whole_chunks(min(SLAB_BYTES, left // share), request.slab_bytes))
        reading = reader_bytes(request.host, reads) + 2 * slab * request.slab_bytes
        rest = left - reading - block_bytes(request, block)
        if rest >= left // 2:
            return _filled(request, rest, WalkMemory(0, slab, request.longest, 0, block, reads))
    least = reader_bytes(request.host, *ONE_BY_ONE) + 2 * request.longest * request.slab_bytes
    rest = left - least
    block = block_walks(request, max(0, rest) // 4 // TIMES)
    if rest < 2 * (block_bytes(request, block) + block * request.walker_bytes):
        raise refusal(request, least + 2 * (block_bytes(request, 1) + request.walker_bytes))
    after = rest - block_bytes(request, block)
    return _filled(request, after, WalkMemory(0, request.longest, request.longest, 0, block, 1, True))


def _filled(request: WalkMemoryRequest, rest: int, memory: WalkMemory) -> WalkMemory:
    """Give the rest to walkers and their records, and what they leave to larger slabs and kept rows."""
    block = memory.block
    walkers = min(request.walks, rest * WALKERS_SHARE // 8 // request.walker_bytes)
    most = max(block, walkers // block * block)
    even = -(-request.walks // -(-request.walks // most))  # the last batch sweeps as often as a full one
    batch = min(request.walks, -(-even // block) * block)
    after = rest - batch * request.walker_bytes
    log = min(after // 8, 2 * batch * request.row_bytes)
    rows, chunk = after - log, request.chunk_edges
    lacks = request.edges * request.kept_bytes - rows - PARTITIONS * memory.slab_edges * request.kept_bytes
    enough = max(0, lacks) // (PARTITIONS * request.kept_bytes - 2 * request.slab_bytes)
    most = int(rows * SLABS_SHARE) // (2 * request.slab_bytes) // chunk * chunk
    more = min(most, -(-enough // chunk) * chunk)
    kept = min((rows - 2 * more * request.slab_bytes) // request.kept_bytes, request.edges)
    return replace(memory, kept_edges=kept, slab_edges=memory.slab_edges + more, batch=batch, log_bytes=log)


def walker_bytes(vertex_bytes: int, *, second_order: bool) -> int:
    """Bytes of a walker of a batch: vertex, step, what the second order takes, its share of rows, records."""
    own = vertex_bytes + 4 + (2 * vertex_bytes + 4 if second_order else 0)
    return own + -(-UNIT_ROWS * (GAINED * vertex_bytes + 28) // UNIT) + 2 * PENDING_BYTES


def block_walks(request: WalkMemoryRequest, size: int) -> int:
    """Walks of a block of about so many bytes."""
    return max(1, min(BLOCK_WALKS, size // request.row_bytes, request.walks, (CELLS - 1) // request.row_bytes))


def block_bytes(request: WalkMemoryRequest, block: int) -> int:
    """Return what a block takes."""
    return block * (TIMES * request.row_bytes + WALKER_BYTES)


def refusal(request: WalkMemoryRequest, least: int) -> BudgetError:
    """Return why a budget cannot work, and the least that can; least: beside what is fixed."""
    return request.host.refusal("index and names of the graph", "rows, walkers and walks at least", least)


WHOLE_BATCH_BYTES = 512 << 20
"""Walks of a batch where all rows are kept: so many walkers keep any device busy."""
MANY = 1 << 14
"""Walkers for whom there must be room beside all rows; fewer leave a device idle."""
ROUNDING = 32 << 10
"""What arrays take more than their items, each being a few hundred bytes longer, and small ones."""
CHOICES = ((8, False), (4, False), (1, False), (1, True))
"""Reads in flight, and whether they are one frame each, best first."""


@dataclass(frozen=True)
class DeviceWalkRequest:
    """What a device has for walks, in bytes.

    memory: all that may be allocated on it; edge_memory: what edges may take of that, None for no limit of its own.
    fixed: index and sources. walker_bytes: of a walker, its walk included.
    """

    memory: int
    edge_memory: int | None
    fixed: int
    walker_bytes: int


def divide_device_walks(host: WalkMemoryRequest, device: DeviceWalkRequest) -> WalkMemory:
    """Divide both. Raises BudgetError where either is too small."""
    each = host.neighbor_bytes + host.sum_bytes
    left = device.memory - device.fixed
    room = left if device.edge_memory is None else min(left, device.edge_memory)
    whole = host.edges * each
    if whole <= room and left - whole >= min(host.walks, MANY) * device.walker_bytes:
        most = min(left - whole, 2 * WHOLE_BATCH_BYTES) // device.walker_bytes
        sets = 2 if most >= 2 * min(host.walks, MANY) else 1
        batch = _even(host.walks, most // sets)
        return _beside(host, batch, (host.edges, 0), min(sets, -(-host.walks // batch)))
    return _beside(host, *_in_sweeps(host, device, left, room))


def _in_sweeps(host: WalkMemoryRequest, device: DeviceWalkRequest, left: int, room: int) -> tuple[int, tuple[int, int]]:
    """Of a graph whose rows do not all fit: slabs first, then walkers and kept rows so that least is carried."""
    each = host.neighbor_bytes + host.sum_bytes
    least = 2 * host.longest * each
    in_place = room < least and _kept_beside(host)
    if room < least and left >= least and not in_place:
        why = f"two slabs of the longest row take {format_bytes(least)}"
        otherwise = ", or a --host-memory that holds all edges, which are then read in place"
        raise too_small("--device-edge-memory", room, why, least, otherwise)
    needed = device.walker_bytes + (0 if in_place else least)
    if left < needed:
        rows = f"a walk and two slabs of the longest row {format_bytes(needed)}"
        why = f"index and sources take {format_bytes(device.fixed)}, {rows}"
        raise too_small("--device-memory", device.memory, why, device.fixed + needed)
    if in_place:
        return _even(host.walks, left // device.walker_bytes), (0, 0)
    size = min(SLAB_BYTES, room // 8, max(0, host.host.left) // 16)
    slab = max(host.longest, host.whole_chunks(size, each))
    after, edges = left - 2 * slab * each, room - 2 * slab * each
    kept = max(2 * after - host.edges * each, after - host.walks * device.walker_bytes)
    kept = max(0, min(kept, edges, after - device.walker_bytes))
    batch = _even(host.walks, (after - kept) // device.walker_bytes)
    return batch, (min(kept // each, host.edges), slab)


def _kept_beside(host: WalkMemoryRequest) -> bool:
    """Whether the host has room for all rows beside reading."""
    slabs = 2 * max(host.longest, host.whole_chunks(SLAB_BYTES, host.slab_bytes)) * host.slab_bytes
    taken = reader_bytes(host.host, 1) + slabs + block_bytes(host, 1) + host.edges * host.kept_bytes
    return host.in_memory or host.host.fixed + 2 * taken <= host.host.host_memory


def _even(walks: int, most: int) -> int:
    """Walkers of equal batches of at most so many; the last one sweeps as often as a full one."""
    return -(-walks // -(-walks // max(1, most)))


def _beside(host: WalkMemoryRequest, batch: int, placed: tuple[int, int], sets: int = 1) -> WalkMemory:
    """What the host does for the device: blocks of walks, reading, slabs; the rest keeps rows that it has not.

    placed: edges that the device keeps, and those of a slab there.
    """
    left = host.host.left
    block = min(batch, block_walks(host, min(BLOCK_BYTES, max(0, left) // 16 // TIMES)))
    kept, staged = placed
    given = WalkMemory(0, 0, host.longest, batch, block, device_edges=kept, device_slab_edges=staged, sets=sets)
    if host.in_memory:
        taken = host.edges * host.kept_bytes + block_bytes(host, block)
        if taken > left:
            raise refusal(host, host.edges * host.kept_bytes + block_bytes(host, 1))
        return replace(given, kept_edges=host.edges)
    size = min(SLAB_BYTES, left // 16, host.edges * host.slab_bytes)
    slab = staged or max(host.longest, host.whole_chunks(size, host.slab_bytes))
    for reads, one_by_one in CHOICES:
        reading = reader_bytes(host.host, *ONE_BY_ONE) if one_by_one else reader_bytes(host.host, reads)
        taken = reading + 2 * slab * host.slab_bytes
        rest = left - taken - block_bytes(host, block)
        if rest >= (left // 2 if reads > 1 else 0):
            here = 0 if kept == host.edges else rest // host.kept_bytes
            return replace(given, slab_edges=slab, kept_edges=here, reads=reads, one_by_one=one_by_one)
    raise refusal(host, taken + block_bytes(host, 1))
