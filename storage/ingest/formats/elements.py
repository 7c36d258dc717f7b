"""Formats of nested elements, nodes and edges with attributes: what GraphML and GML share.

A parser is fed block by block and collects nodes and edges; a source makes a batch of what each block gave. Ids are
whole numbers, or text (a GraphML file whose first id is no number).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, brief
from penstock.storage.base.places import Place
from penstock.storage.ingest.bytes.stream import InputFiles, Stream
from penstock.storage.ingest.core.arrow import record_batch
from penstock.storage.ingest.core.edges import EdgeBatch, local_names, places_of
from penstock.storage.ingest.core.source import LONGEST_VALUE, IngestOptions
from penstock.storage.ingest.text.columns import Columns, TakenColumns
from penstock.storage.ingest.text.diagnose import bad_id, bad_name, bad_weight, is_number, whole_number

BLOCK_BYTES = 128 << 10
"""Fed at once: elements take some twenty times as much as Python's objects."""
SHORT = 20
"""Digits of the largest id."""
UNNAMED = 1 << 14
"""Nodes without an id in a batch."""
CELL_BYTES = 64
"""Of an attribute of a node in a batch, about."""
DEEPEST = 100
MOST_NAMES = 10_000
"""Elements and lists inside one another; attributes that nodes and edges have, which are kept."""


class Node(NamedTuple):
    """A node, and the line that it is on. attributes: as text by name, where they were asked for."""

    id: str
    line: int
    attributes: dict[str, str] = {}  # noqa: RUF012 - nothing is added to it unless attributes are asked for


class Edge(NamedTuple):
    """An edge, its weight as it is written (None: it has none), and the line that it is on."""

    source: str
    target: str
    weight: str | None
    line: int


class ElementParser(ABC):
    """Finds nodes and edges in blocks of a file.

    attributes: whether nodes are to have theirs. nodes, edges: found and not taken yet. directed: whether edges are.
    weight: the attribute that is the weight. passed_over: an attribute of the first edge that could have been.
    defaults: of attributes that a node does not have. unnamed: nodes that have no id, so that no edge names them.
    """

    directed: bool | None = None
    weight: str | None = None
    passed_over: str | None = None
    unnamed = 0

    def __init__(self, file: str, *, attributes: bool) -> None:
        self._file, self._attributes = file, attributes
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.defaults: dict[str, str] = {}

    @property
    @abstractmethod
    def settled(self) -> bool:
        """Whether direction and weight are known."""

    @abstractmethod
    def feed(self, block: bytes) -> None:
        """Read on. Raises InputError naming the line."""

    @abstractmethod
    def close(self) -> None:
        """Check that the file ends where it may. Raises InputError."""


class ElementSource(InputFiles):
    """A file of elements. See `core.source.Source`."""

    named = False
    """Whether ids are text."""

    def __init__(self, path: Place, options: IngestOptions, made: Callable[[], ElementParser]) -> None:
        super().__init__([path], options)
        if self.total_bytes is None:
            raise InputError(f"{path} is not a file; GraphML and GML cannot be read from a pipe")
        self._made = made
        self._first = "0"
        self._above = 0
        head = self._head()
        self.undirected = not head.directed
        self._weighted = head.weight is not None
        self.passed_over = head.passed_over
        self.columns_taken: list[TakenColumns] = []
        if head.weight is not None:
            self.columns_taken.append(TakenColumns(str(path), Columns(0, 1, 2), ("source", "target", head.weight), 3))

    @property
    def begins_with_text(self) -> bool:
        """Whether the first id is no number."""
        return bool(bad_id(self._first))

    def _head(self) -> ElementParser:
        """A parser that knows direction and weight; note the first id."""
        parser, ids = self._made(), list[str]()
        with Stream(self._paths[0], self._options.host_memory) as stream:
            while not (ids and parser.settled) and (block := stream.read(BLOCK_BYTES)):
                parser.feed(block)
                ids = ids or [node.id for node in parser.nodes[:1]] or [edge.source for edge in parser.edges[:1]]
                parser.nodes, parser.edges = [], []
        self._first = ids[0] if ids else "0"
        return parser

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the edges in order; ``lone`` are the nodes, of which those without an id get ids above all others.

        Raises:
            InputError: the file is damaged, or an id or a weight is none, with the line.
            RunError: the disk failed.
        """
        parser = self._made()
        for stream in self._streams():
            while block := stream.read(BLOCK_BYTES):
                parser.feed(block)
                if parser.nodes or parser.edges:
                    yield self._batch(parser.nodes, parser.edges)
                    parser.nodes, parser.edges = [], []
            parser.close()
            if parser.nodes or parser.edges:
                yield self._batch(parser.nodes, parser.edges)
            for left in range(parser.unnamed, 0, -UNNAMED):
                ids = range(self._above, self._above + min(left, UNNAMED))
                yield self._batch([Node(str(one), 0) for one in ids], [])

    def _batch(self, nodes: list[Node], edges: list[Edge]) -> EdgeBatch:
        if self.named:
            return self._named_batch(nodes, edges)
        sources = self._numbers([edge.source for edge in edges], edges, "source")
        targets = self._numbers([edge.target for edge in edges], edges, "target")
        listed = [] if self._options.sides else nodes
        lone = self._numbers([node.id for node in listed], nodes, "node")
        return EdgeBatch(sources, targets, self._weights(edges), lone=lone if len(lone) else None)

    def _named_batch(self, nodes: list[Node], edges: list[Edge]) -> EdgeBatch:
        ends = [end for edge in edges for end in (edge.source, edge.target)]
        if not self._options.sides:
            ends += [end for node in nodes for end in (node.id, node.id)]
        encoded = [end.encode() for end in ends]
        lengths = np.array([len(end) for end in encoded], np.int32)
        if (bad := next((at for at, end in enumerate(ends) if bad_name(end)), None)) is not None:
            found: list[Node | Edge] = [*edges, *nodes]
            raise self._error(found[bad // 2].line, f"id {brief(ends[bad])!r} {bad_name(ends[bad])}")
        text = np.frombuffer(b"".join(encoded), np.uint8)
        names, numbers = local_names(text, places_of(lengths), self._options.sides)
        of_edges = numbers[: len(edges)]
        return EdgeBatch(of_edges[:, 0].copy(), of_edges[:, 1].copy(), self._weights(edges), names=names)

    def _numbers(self, ids: list[str], elements: Sequence[Node | Edge], role: str) -> NDArray[np.uint64]:
        for one, element in zip(ids, elements, strict=False):
            if not (one.isdigit() and len(one) < SHORT and one.isascii()) and (reason := bad_id(one)):
                text = "is no number; --string-ids takes ids of GraphML as text"
                raise self._error(element.line, f"{role} {brief(one)!r} {reason if is_number(one) else text}")
        read = int if max(map(len, ids), default=0) < SHORT else whole_number
        found = np.array(list(map(read, ids)), np.uint64)
        if len(found):
            self._above = max(self._above, int(found.max()) + 1)
        return found

    def _weights(self, edges: list[Edge]) -> NDArray[np.float64] | None:
        if not self._weighted:
            return None
        for edge in edges:
            reason = "is missing; --no-weights leaves weights out" if edge.weight is None else bad_weight(edge.weight)
            if reason:
                raise self._error(edge.line, f"weight {brief(edge.weight or '')!r} {reason}")
        return np.array([float(edge.weight or "nan") for edge in edges])

    def _error(self, line: int, reason: str) -> InputError:
        return InputError(f"{self.name}, line {line}: {reason}")


class NodeRows:
    """The nodes of a file as rows of a table of vertices, as `vertex_rows.CsvRows`. opened: its content;
    made: a parser of attributes."""

    def __init__(self, name: str, opened: Callable[[], Stream], made: Callable[[], ElementParser]) -> None:
        self.name, self._opened, self._made = name, opened, made

    def names(self) -> tuple[str, ...]:
        """All attributes that a node has. Raises InputError as the parser."""
        found: dict[str, None] = {}
        for nodes, defaults in self._nodes():
            found |= dict.fromkeys((*defaults, *(name for node in nodes for name in node.attributes)))
            if len(found) > MOST_NAMES:
                raise InputError(f"{self.name}: its nodes have more than {MOST_NAMES} attributes; leave out some")
        return tuple(found)

    def batches(self, columns: Any, types: Mapping[str, str], block_bytes: int) -> Iterator[Any]:
        """Yield batches: the id, then the properties. Raises InputError for an id that must be a number and is none."""
        numbers = types[columns.id] == "uint64"
        kinds = [types[columns.id], *(types.get(source, "string") for source in columns.properties)]
        for nodes, defaults in self._nodes():
            row_bytes = CELL_BYTES * len(kinds) + sum(map(len, defaults.values()))
            rows = max(1, LONGEST_VALUE // row_bytes)
            for some in (nodes[at : at + rows] for at in range(0, len(nodes), rows)):
                for node in some:
                    if numbers and (reason := bad_id(node.id)):
                        raise InputError(f"{self.name}, line {node.line}: node {brief(node.id)!r} {reason}")
                found: dict[str, list[Any]] = {"id": [whole_number(node.id) if numbers else node.id for node in some]}
                for source, (name, _) in columns.properties.items():
                    read = {"int64": int, "float64": float}.get(types.get(source, "string"), str)
                    texts = [node.attributes.get(source, defaults.get(source)) for node in some]
                    found[name] = [read(text) if text else None for text in texts]
                yield record_batch(found, kinds)

    def _nodes(self) -> Iterator[tuple[list[Node], dict[str, str]]]:
        """Some nodes at a time, and the defaults of their attributes."""
        parser = self._made()
        with self._opened() as stream:
            while block := stream.read(BLOCK_BYTES):
                parser.feed(block)
                found, parser.nodes, parser.edges = parser.nodes, [], []
                yield found, parser.defaults
        parser.close()
        yield parser.nodes, parser.defaults
