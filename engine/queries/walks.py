"""Random walks over a graph: `walk` checks what is asked for; `Walks` are made as they are read or written to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import VertexFinder
from penstock.engine.queries.edges_where import opened_where
from penstock.engine.queries.row_windows import chunk_of, longest_span
from penstock.engine.queries.walk_memory import (
    ROUNDING,
    WRITER_BYTES,
    DeviceWalkRequest,
    WalkMemory,
    WalkMemoryRequest,
    divide_device_walks,
    divide_walk_memory,
    walker_bytes,
)
from penstock.engine.queries.walk_options import Sources, WalkOptions, WalkResources, check_graph, source_vertices
from penstock.engine.resources.config import Config
from penstock.engine.resources.device_resources import device_of
from penstock.engine.resources.requirements_types import index_bytes, name_bytes
from penstock.storage.access.graph_queries import names_of
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, for_python
from penstock.storage.format.graph import Graph
from penstock.storage.tables.columns import WriteOptions
from penstock.storage.tables.formats import TableStyle
from penstock.transfer.devices.device import Device
from penstock.transfer.planning.host_budget import HostBudgetRequest

if TYPE_CHECKING:
    from penstock.engine.queries.device_run import DeviceWalkRun
    from penstock.engine.queries.row_windows import RowWindows
    from penstock.engine.queries.walk_run import WalkRun
    from penstock.storage.tables.walk_files import WrittenWalks


@for_python
def walk(
    graph: Graph | Path | str,
    *,
    length: int = 80,
    walks_per_vertex: int = 10,
    sources: Sources = None,
    where: str | None = None,
    host_memory: int | str | None = None,
    threads: int | None = None,
    direct_io: bool = False,
    scratch: Path | str | None = None,
    device: str = "cpu",
    device_memory: int | str | None = None,
    device_edge_memory: int | str | None = None,
    **options: Any,
) -> Walks:
    """Return random walks along the out-edges of a graph; they are made when they are read.

    Walk w begins at source w modulo the number of sources. Random numbers are functions of the seed, the walk and the
    step, so that walks are the same for every device, budget and number of threads.

    Parameters
    ----------
    graph : Graph, Path or str
        An open graph, or the path of a graph file.
    length : int
        Steps of a walk, which so has at most ``length + 1`` vertices.
    walks_per_vertex : int
        Walks from each source.
    sources : vertex id or iterable of them, optional
        Where walks begin; by default every vertex.
    where : str, optional
        Walk on the edges of which this holds: "amount >= 100 and kind = 'wire'".
    host_memory : int or str, optional
        Ceiling in bytes, or a text such as "1GiB"; by default a share of what is free.
    threads : int, optional
        CPU threads; default: every core.
    direct_io : bool
        Read past the page cache.
    scratch : Path or str, optional
        The folder of temporary data, which a graph larger than memory needs; by default the system's.
    device : str
        Where walkers advance: "cpu", "cuda:N", or "auto", the first GPU if there is one.
    device_memory, device_edge_memory : int or str, optional
        Ceilings on all that is allocated on the GPU (default: nine tenths of what is free), and on edges there.
    **options
        ``seed`` (0); ``weight`` (True): choose edges in proportion to their weights, where there are any; ``p`` and
        ``q`` (1.0) of node2vec; ``restart`` (0.0): the probability that a step goes back to the source;
        ``dead_ends``: "end" or "restart" a walk at a vertex without out-edges; ``time`` and ``until``: a column beside
        the edges, and its latest value, one for all sources or one for each. See `WalkOptions`.

    Returns
    -------
    Walks
        With `save`, `to_arrow`, `to_numpy` and `blocks`; an Arrow stream.

    Raises
    ------
    InputError
        An option is unknown or out of range, a source is not in the graph, the graph cannot be walked on, or the device
        is not here.
    BudgetError
        The memory budget is too small; the message has the smallest that works.

    Examples
    --------
    >>> from penstock.engine import from_edges, walk
    >>> graph = from_edges([(0, 1), (1, 2), (2, 0)])
    >>> walk(graph, length=3, walks_per_vertex=1).to_numpy().tolist()
    [[0, 1, 2, 0], [1, 2, 0, 1], [2, 0, 1, 2]]
    """
    wanted = WalkOptions.of(length=length, walks_per_vertex=walks_per_vertex, **options)
    given: dict[str, Any] = {"device": device, "device_memory": device_memory, "device_edge_memory": device_edge_memory}
    config = Config.of(**given, host_memory=host_memory, threads=threads, direct_io=direct_io, scratch=scratch)
    if where is not None and wanted.time is not None:
        raise InputError("where leaves out the column that time needs; walk on what extract --where writes")
    opened = opened_where(graph, where, config)

    def lend() -> closing[Device]:
        return closing(device_of(config))

    with lend() as here:
        memory = here.own_bytes
        config.check_used(here)
    return Walks(opened, wanted, sources, WalkResources(config, scratch, lend, memory))


class Walks:
    """Random walks, made as they are read, each time anew and the same.

    Attributes
    ----------
    count : int
        How many walks there are.
    length : int
        Steps of a walk; a walk that ends before has fewer.
    weighted : bool
        Whether edges are chosen in proportion to their weights.
    progress : WalkProgress or None
        What the last reading has done: steps, sweeps over the graph, bytes read.
    """

    def __init__(self, graph: Graph, options: WalkOptions, sources: Sources, resources: WalkResources) -> None:
        timed = options.time is not None
        check_graph(graph, weighted=options.weight and not timed)
        if timed and options.weight and graph.weight_dtype is not None:
            raise InputError("walks with a time choose every edge alike, and the graph has weights; add --no-weight")
        found = source_vertices(VertexFinder(graph), sources)
        if options.time is not None:
            graph = graph.with_times(options.time)
        self.graph, self.options, self._resources = graph, options, resources
        self._sources = np.empty(0, graph.vertex_dtype) if found is None else found
        self._source_count = graph.vertices if found is None else len(found)
        self.count, self.length = self._source_count * options.walks_per_vertex, options.length
        self.weighted = options.weight and graph.weight_dtype is not None and not timed
        self._limits = options.limits(graph, self._source_count)
        self.progress: Any = None
        request = self._request()
        if resources.device_memory is None:
            self._memory = divide_walk_memory(request)
        else:
            self._memory = divide_device_walks(request, self._device_request(resources.device_memory))

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<Walks: {self.count} of {self.length} steps>"

    @property
    def memory(self) -> WalkMemory:
        """How memory is divided."""
        return self._memory

    def blocks(self, report: Callable[[Any], None] | None = None) -> Iterator[NDArray[Any]]:
        """Yield the walks in order, some at a time, in internal ids.

        Parameters
        ----------
        report : callable, optional
            Called with a `WalkProgress` now and then.

        Yields
        ------
        ndarray, (walks, length + 1)
            Of the dtype of the graph's vertices; behind the end of a walk its largest value.

        Raises
        ------
        InputError
            The folder of temporary data cannot be used, or has not enough space.
        RunError
            The graph cannot be read, or is damaged, or the disk of temporary data is full or failed.
        """
        from penstock.engine.queries.row_windows import RowWindows  # the compiler

        given, memory, config = self._resources, self._memory, self._resources.config
        if self.count == 0:
            return
        tell = report or (lambda progress: None)
        with (
            given.lend() as device,
            RowWindows(
                self.graph,
                memory,
                weighted=self.weighted,
                timed=len(self._limits) > 0,
                threads=config.thread_count,
                direct_io=config.direct_io,
            ) as windows,
        ):
            run = self._run(device, windows)
            self.progress = run.progress
            yield from run.blocks(self.count, tell)

    def _run(self, device: Device, rows: RowWindows) -> WalkRun | DeviceWalkRun:
        """What makes the walks, on CPU cores or on a device, to which rows come from the host."""
        from penstock.engine.queries.walk_run import WalkRun, rule_of

        given, sources = self._resources, (self._sources, self._source_count, self._limits)
        rule = rule_of(self.options, weighted=self.weighted, symmetric=not self.graph.directed)
        if device.reads_host:
            return WalkRun(rows, self._memory, rule, sources, given.scratch, given.config.thread_count)
        from penstock.engine.queries.device_run import DeviceWalkRun

        return DeviceWalkRun(rows, self._memory, rule, sources, device, given.config.rates_on(device))

    def _device_request(self, device_memory: int) -> DeviceWalkRequest:
        """What a device has for walks."""
        graph, width = self.graph, self.graph.vertex_dtype.itemsize
        own = width + 4 + (2 * width + 4 if self.options.second_order else 0)
        flags = graph.out.edges // chunk_of(graph.out)
        fixed = index_bytes(graph.out) + self._sources.nbytes + self._limits.nbytes + flags + ROUNDING
        walker = own + (self.length + 1) * width
        return DeviceWalkRequest(device_memory, self._resources.config.device_edge_memory, fixed, walker)

    def _request(self) -> WalkMemoryRequest:
        """What there is to divide."""
        graph, rows, given = self.graph, self.graph.out, self._resources
        in_memory, width = rows.arrays is not None, graph.vertex_dtype.itemsize
        summed = self.weighted or len(self._limits) > 0
        fixed = index_bytes(graph.out) + name_bytes(graph) + self._sources.nbytes + self._limits.nbytes + WRITER_BYTES
        host = HostBudgetRequest.of(graph, given.config.memory_bytes, fixed, given.config.thread_count)
        chunk = longest = chunk_of(rows)
        if given.device_memory is not None if in_memory else host.left > 0:  # an index without room is not read
            longest = longest_span(rows.index(given.config.thread_count), chunk)
        return WalkMemoryRequest(
            host=host,
            edges=graph.edges,
            in_memory=in_memory,
            neighbor_bytes=width,
            weight_bytes=rows.weight_dtype.itemsize if summed and rows.weight_dtype is not None else 0,
            sum_bytes=8 if summed else 0,
            longest=longest,
            chunk_edges=chunk,
            walks=max(1, self.count),
            row_bytes=(self.length + 1) * width,
            walker_bytes=walker_bytes(width, second_order=self.options.second_order),
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the walks as a stream of record batches with one column of lists, `walk` (Arrow PyCapsule interface)."""
        stream: object = self._reader().__arrow_c_stream__(requested_schema)
        return stream

    def _reader(self) -> Any:
        from penstock.storage.tables.arrow_files import stream  # Arrow takes long to import
        from penstock.storage.tables.walk_files import WalkTable

        return stream(WalkTable(self.blocks(), self.graph.vertex_dtype, names_of(self.graph)), 1)

    @for_python
    def to_arrow(self) -> Any:
        """Return all walks as a `pyarrow.Table` with one column, `walk`: a list of the ids of the input for each."""
        return self._reader().read_all()

    @for_python
    def to_numpy(self) -> NDArray[Any]:
        """Return all walks as an array.

        Returns
        -------
        ndarray of int32 or int64, (walks, length + 1)
            Ids of the input; -1 behind the end of a walk.

        Raises
        ------
        InputError
            Ids are strings, or the array does not fit the memory that walks may take.
        """
        from penstock.storage.tables.walk_files import matrix_dtype, matrix_of

        graph = self.graph
        names = names_of(graph)
        kind = matrix_dtype(names, graph.vertex_dtype, graph.vertices)
        size = self.count * (self.length + 1) * kind.itemsize
        budget = self._resources.config.memory_bytes
        if size > budget:
            raise InputError(
                f"{self.count} walks take {format_bytes(size)}, more than --host-memory "
                f"{format_bytes(budget)}; read `blocks`, or `save` them to a file"
            )
        found, first = np.empty((self.count, self.length + 1), kind), 0
        for block in self.blocks():
            found[first : first + len(block)] = matrix_of(block, np.iinfo(block.dtype).max, names, kind)
            first += len(block)
        return found

    @for_python
    def save(
        self,
        path: Path | str,
        *,
        format: str | None = None,
        force: bool = False,
        report: Callable[[Any], None] | None = None,
        **style: Unpack[TableStyle],
    ) -> None:
        """Write the walks to a file while they are made, whole or not at all.

        Parameters
        ----------
        path : Path or str
            Ends in .parquet or .feather (a list for each walk), .txt or .txt.gz (a line for each, ids between spaces,
            as word2vec reads), .csv or .csv.gz (a column for each step), or .npy (a matrix, -1 behind ends).
        format : str, optional
            Whatever the name is: "parquet", "feather", "txt", "txt.gz", "csv", "csv.gz", "npy".
        force : bool
            Replace an existing file.
        report : callable, optional
            Called with a `WalkProgress` now and then.
        **style : TableStyle
            Options of output, such as ``csv_safe=True``.

        Raises
        ------
        InputError
            The file may not be written, or the format cannot hold the ids, or an option is not for it.
        RunError
            The graph cannot be read, or a disk is full or failed.
        """
        from penstock.storage.tables.formats import WALKS, format_of
        from penstock.storage.tables.walk_files import save_walks

        target = Path(path)
        name = format_of(target, format, WALKS)
        options = WriteOptions(self._resources.config.thread_count, style=style)
        save_walks(self.written(report), target, name, options, force=force)

    def written(self, report: Callable[[Any], None] | None = None) -> WrittenWalks:
        """Return the walks as files of them are written."""
        from penstock.storage.tables.walk_files import WrittenWalks

        graph = self.graph
        return WrittenWalks(self.blocks(report), self.count, self.length + 1, graph.vertex_dtype, names_of(graph))
