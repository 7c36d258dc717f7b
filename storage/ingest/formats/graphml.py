"""Owns GraphML: nodes and edges in XML (Brandes et al., 2002), read as a stream.

The direction of edges is the graph's `edgedefault`; an undirected edge in a directed graph becomes two. The weight is
the attribute of edges (`attr.name`) called weight, or the one that `--columns source,target,NAME` names. Refuses what
no edge list holds: several graphs, nested ones, hyperedges, directed edges in an undirected graph; and entities.
"""

from functools import partial
from pathlib import Path
from typing import Any
from xml.parsers import expat

from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.elements import Edge, ElementSource, NamedElementSource, Node

WEIGHT = "weight"


def graphml_source(path: str | Path, options: IngestOptions) -> ElementSource:
    """The file as a source: of text where the options say so or the first id is no number. Raises InputError."""
    made = partial(GraphMLParser, str(path), weight_name(options, str(path)), required=options.columns is not None)
    source = ElementSource(path, options, made)
    return NamedElementSource(path, options, made) if options.string_ids or source.begins_with_text else source


def weight_name(options: IngestOptions, file: str) -> str | None:
    """The attribute of edges that is the weight; None: weights are not wanted. Raises InputError."""
    if options.weights is False:
        return None
    if options.columns is None:
        return WEIGHT
    if len(options.columns) != 3 or options.columns[:2] != ("source", "target"):
        raise InputError(f"{file}: edges have no columns to choose but a weight: --columns source,target,NAME")
    return str(options.columns[2])


class GraphMLParser:
    """See `elements.ElementParser`. name: of the attribute that is the weight; required: the graph must have it.

    attributes: whether nodes are to have theirs.
    """

    def __init__(self, file: str, name: str | None, *, required: bool = False, attributes: bool = False) -> None:
        self._file, self._name, self._required, self._wanted = file, name, required, attributes
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.directed: bool | None = None
        self.weight: str | None = None
        self.passed_over: str | None = None
        self._key: str | None = None
        self._default: str | None = None
        self._attributes: list[str] = []
        self._edge: tuple[str, str, bool, int] | None = None
        self._of_nodes: dict[str, str] = {}
        self._defaults: dict[str, str] = {}
        self._node: Node | None = None
        self._place = ""
        self._data: str | None = None
        self._text: list[str] | None = None
        self._in_key = self._ended = False
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        self._parser = parser

    @property
    def settled(self) -> bool:
        """Whether the graph has begun."""
        return self.directed is not None

    def feed(self, block: bytes) -> None:
        """Read on."""
        self._parse(block, False)

    def close(self) -> None:
        """Check that the document is whole, and had a graph."""
        self._parse(b"", True)
        if self.directed is None:
            raise InputError(f"{self._file} has no <graph>, so this is no GraphML")

    def _parse(self, block: bytes, last: bool) -> None:
        try:
            self._parser.Parse(block, last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise self._error(f"the XML is broken ({reason}); the file is truncated or damaged", error.lineno) from None

    def _error(self, reason: str, line: int | None = None) -> InputError:
        return InputError(f"{self._file}, line {line or self._parser.CurrentLineNumber}: {reason}")

    def _start(self, name: str, given: dict[str, str]) -> None:
        kind = name.rpartition(":")[2]
        if kind == "edge":
            self._begin_edge(given)
        elif kind == "node":
            found = dict(self._defaults) if self._wanted else {}
            self._node = Node(self._of(given, "id", kind), self._parser.CurrentLineNumber, found)
        elif kind == "data":
            key = given.get("key", "")
            of_node = self._node is not None and key in self._of_nodes
            if of_node or (self._edge is not None and self._key is not None and key == self._key):
                self._text, self._place = [], key
        elif kind == "key":
            self._begin_key(given)
        elif kind == "default":
            self._text = [] if self._in_key else None
        elif kind == "graph":
            self._begin_graph(given)
        elif kind == "hyperedge":
            raise self._error("it has a hyperedge, which joins more than two nodes; write it as edges")

    def _begin_graph(self, given: dict[str, str]) -> None:
        if self.directed is not None:
            raise self._error("it has several graphs, or one inside another; write each to a file of its own")
        default = given.get("edgedefault", "directed")
        if default not in ("directed", "undirected"):
            raise self._error(f"edgedefault is {default!r}; it must be directed or undirected")
        self.directed = default == "directed"
        if self._required and self._key is None:
            known = ", ".join(self._attributes) or "none"
            raise self._error(f"edges have no attribute {self._name!r} (there is: {known}); see --columns")

    def _begin_key(self, given: dict[str, str]) -> None:
        name, of = given.get("attr.name", ""), given.get("for", "all")
        self._place = given.get("id", "")
        if self._wanted and name and of in ("node", "all"):
            self._of_nodes[self._place], self._in_key = name, True
        if of in ("edge", "all"):
            self._attributes.append(name)
            if self._name is not None and name == self._name:
                self._key, self.weight, self._in_key = given.get("id"), name, True

    def _begin_edge(self, given: dict[str, str]) -> None:
        directed = {"true": True, "false": False}.get(given.get("directed", ""), self.directed is not False)
        if directed and self.directed is False:
            raise self._error("this edge is directed, and the graph is undirected; give all edges one direction")
        ends = self._of(given, "source", "edge"), self._of(given, "target", "edge")
        self._edge, self._data = (*ends, directed, self._parser.CurrentLineNumber), self._default

    def _of(self, given: dict[str, str], name: str, kind: str) -> str:
        found = given.get(name)
        if found is None:
            raise self._error(f"this {kind} has no {name}")
        return found.strip()

    def _end(self, name: str) -> None:
        kind = name.rpartition(":")[2]
        if kind == "edge" and self._edge is not None:
            source, target, directed, line = self._edge
            self.edges.append(Edge(source, target, self._data, line))
            if self.directed and not directed and source != target:
                self.edges.append(Edge(target, source, self._data, line))
            self._edge = None
        elif self._text is not None and kind in ("data", "default"):
            text, self._text = "".join(self._text).strip(), None
            if kind == "data" and self._node is not None:
                self._node.attributes[self._of_nodes[self._place]] = text
            elif kind == "data":
                self._data = text
            elif self._place in self._of_nodes:
                self._defaults[self._of_nodes[self._place]] = text
            if kind == "default" and self._place == self._key:
                self._default = text or None
        elif kind == "node" and self._node is not None:
            self.nodes.append(self._node)
            self._node = None
        elif kind == "key":
            self._in_key = False

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _entity(self, *given: Any) -> None:
        raise self._error(f"it declares an entity ({given[0]}), which could be of any size; write the file without")
