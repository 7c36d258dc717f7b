"""GraphML (Brandes et al., 2002), a stream: direction by `edgedefault`; the edges' attribute `weight`, if declared.

Edges are undirected where the graph has no `edgedefault`; ids are text if the first is no number; an undirected edge
in a directed graph becomes two. The weight is the attribute of edges (`attr.name`) called weight, or the one that
`--columns source,target,NAME` names; several keys of that name are one weight. Refuses what no edge list holds
(several graphs, nested ones, hyperedges, directed edges in an undirected graph), elements and text where GraphML has
none, data of a key that is not declared before, and what could be of any size: entities, deep nesting, long values.
"""

from functools import partial
from xml.parsers import expat

from penstock.storage.base.errors import InputError, brief
from penstock.storage.base.places import Place
from penstock.storage.ingest.core.source import LONGEST_VALUE, IngestOptions
from penstock.storage.ingest.formats.elements import (
    DEEPEST,
    MOST_NAMES,
    Edge,
    ElementParser,
    ElementSource,
    Node,
)

WEIGHT = "weight"
_CONTENT: dict[str, tuple[str, ...]] = {
    "": ("graphml",),
    "graphml": ("desc", "key", "data", "graph"),
    "key": ("desc", "default"),
    "graph": ("desc", "data", "node", "edge"),
    "node": ("desc", "data", "port"),
    "port": ("desc", "data", "port"),
    "edge": ("desc", "data"),
}
"""Which elements an element has. The others have text and whatever else."""
_NO_LIST = {
    "graph": "it has several graphs, or one inside another; write each to a file of its own",
    "hyperedge": "it has a hyperedge, which joins more than two nodes; write it as edges",
}
_FOR = ("all", "graphml", "graph", "node", "edge", "hyperedge", "port", "endpoint")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def graphml_source(path: Place, options: IngestOptions) -> ElementSource:
    """The file as a source: of text where the options say so or the first id is no number. Raises InputError."""
    made = partial(GraphMLParser, str(path), weight_name(options, str(path)), required=options.columns is not None)
    source = ElementSource(path, options, made)
    source.named = options.string_ids or source.begins_with_text
    return source


def weight_name(options: IngestOptions, file: str) -> str | None:
    """The attribute of edges that is the weight; None: weights are not wanted. Raises InputError."""
    if options.weights is False:
        return None
    if options.columns is None:
        return WEIGHT
    if len(options.columns) != 3 or options.columns[:2] != ("source", "target"):
        raise InputError(f"{file}: edges have no columns to choose but a weight: --columns source,target,NAME")
    return str(options.columns[2])


class GraphMLParser(ElementParser):
    """See `elements.ElementParser`. name: of the attribute that is the weight; required: the graph must have it."""

    def __init__(self, file: str, name: str | None, *, required: bool = False, attributes: bool = False) -> None:
        super().__init__(file, attributes=attributes)
        self._name, self._required = name, required
        self._keys: dict[str, str] = {}
        self._weights: set[str] = set()
        self._of_nodes: dict[str, str] = {}
        self._default: str | None = None
        self._open, self._prefix, self._key = [""], "", ""
        self._node: Node | None = None
        self._edge: tuple[str, str, bool, int] | None = None
        self._data: str | None = None
        self._text: list[str] | None = None
        self._kept_bytes = self._fed = 0
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        parser.SkippedEntityHandler = self._skipped
        self._parser = parser

    @property
    def settled(self) -> bool:
        """Whether the graph has begun."""
        return self.directed is not None

    def feed(self, block: bytes) -> None:
        """Read on."""
        self._parse(block, False)
        self._fed += len(block)
        if self._fed - self._parser.CurrentByteIndex > LONGEST_VALUE:
            raise self._error(f"a tag or a comment is longer than {LONGEST_VALUE} bytes; write the file without it")
        if len(self._parser.intern) > MOST_NAMES:
            raise self._error(f"it has more than {MOST_NAMES} names of elements and attributes, so this is no GraphML")

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
        parent = self._open[-1]
        if len(self._open) > DEEPEST:
            raise self._error(f"its elements are nested deeper than {DEEPEST}, so this is no GraphML")
        if parent not in _CONTENT:
            self._open.append(parent)
            return
        if not parent:
            self._prefix = name[: name.rfind(":") + 1]
        kind = name.removeprefix(self._prefix)
        if kind not in _CONTENT[parent] or (kind == "graph" and self.directed is not None):
            where = f"in <{parent}>" if parent else "at the root"
            unknown = f"<{brief(name)}> is not an element that GraphML has {where}; correct it"
            raise self._error(_NO_LIST.get(kind, unknown) if parent else unknown)
        self._open.append(kind)
        if kind == "edge":
            self._begin_edge(given)
        elif kind == "node":
            self._kept_bytes = 0
            one, line = self._of(given, "id", kind), self._parser.CurrentLineNumber
            self._node = Node(one, line, {}) if self._attributes else Node(one, line)
        elif kind == "data":
            self._key = self._of(given, "key", kind)
            if self._key not in self._keys:
                raise self._error(f"key {brief(self._key)!r} of this data is not declared before; correct it")
            if (parent == "node" and self._key in self._of_nodes) or (parent == "edge" and self._key in self._weights):
                self._text = []
        elif kind == "key":
            self._begin_key(given)
        elif kind == "default":
            self._text = []
        elif kind == "graph":
            self._begin_graph(given)

    def _doctype(self, name: str, system: str | None, public: str | None, inner: int) -> None:
        if inner:
            raise self._error("its DOCTYPE declares entities or defaults, which could be of any size; write it without")

    def _skipped(self, name: str, _: bool) -> None:
        raise self._error(f"the entity {brief(name)!r} is declared in another file, which is not read; write its text")

    def _begin_graph(self, given: dict[str, str]) -> None:
        default = given.get("edgedefault", "undirected")
        if default not in ("directed", "undirected"):
            raise self._error(f"edgedefault is {brief(default)!r}; it must be directed or undirected")
        self.directed = default == "directed"
        if self._required and not self._weights:
            known = brief(", ".join(dict.fromkeys(filter(None, self._keys.values())))) or "none"
            raise self._error(f"edges have no attribute {self._name!r} (there is: {known}); see --columns")

    def _begin_key(self, given: dict[str, str]) -> None:
        self._key, name, of = self._of(given, "id", "key"), given.get("attr.name", ""), given.get("for", "all")
        if self.directed is not None:
            raise self._error("this key is behind the graph; declare it before")
        if self._key in self._keys:
            raise self._error(f"key {brief(self._key)!r} is declared twice; name one of them differently")
        if of not in _FOR:
            raise self._error(f"this key is for {brief(of)!r}; it must be for one of {', '.join(_FOR)}")
        of_edges = of in ("edge", "all")
        self._keys[self._key] = name if of_edges else ""
        self._keep(self._key + name)
        if len(self._keys) > MOST_NAMES:
            raise self._error(f"it declares more than {MOST_NAMES} keys; leave out what is not read")
        if self._attributes and name and of in ("node", "all"):
            self._of_nodes[self._key] = name
        if of_edges and self._name is not None and name == self._name:
            self._weights.add(self._key)
            self.weight = name

    def _begin_edge(self, given: dict[str, str]) -> None:
        asked = given.get("directed")
        directed = self.directed is not False if asked is None else _BOOLEANS.get(asked)
        if directed is None:
            raise self._error(f"directed is {brief(asked or '')!r}; it must be true or false")
        if directed and self.directed is False:
            raise self._error("this edge is directed, and the graph is undirected; give all edges one direction")
        ends = self._of(given, "source", "edge"), self._of(given, "target", "edge")
        self._edge, self._data = (*ends, directed, self._parser.CurrentLineNumber), None
        self._kept_bytes = 0

    def _of(self, given: dict[str, str], name: str, kind: str) -> str:
        found = given.get(name)
        if found is None:
            raise self._error(f"this {kind} has no {name}")
        return found.strip()

    def _end(self, name: str) -> None:
        kind = self._open.pop()
        if kind == self._open[-1] and kind not in _CONTENT:
            return
        if kind == "edge" and self._edge is not None:
            source, target, directed, line = self._edge
            weight = self._default if self._data is None else self._data
            self.edges.append(Edge(source, target, weight, line))
            if self.directed and not directed and source != target:
                self.edges.append(Edge(target, source, weight, line))
        elif kind == "node" and self._node is not None:
            self.nodes.append(self._node)
        elif self._text is not None:
            text, self._text = "".join(self._text).strip(), None
            if kind == "default":
                self._end_default(text)
            elif self._open[-1] == "node" and self._node is not None:
                attribute = self._of_nodes[self._key]
                if attribute in self._node.attributes:
                    raise self._error(f"this node has two values of {brief(attribute)!r}; leave one out")
                self._node.attributes[attribute] = text
            elif self._data is not None:
                raise self._error(f"this edge has two values of {brief(self._name or '')!r}; leave one out")
            else:
                self._data = text

    def _end_default(self, text: str) -> None:
        """A default of an attribute of nodes, or of the weight: the first one of several keys."""
        if self._key in self._of_nodes:
            self.defaults.setdefault(self._of_nodes[self._key], text)
        if self._key in self._weights:
            self._default = self._default or text or None

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._keep(text)
            self._text.append(text)
        elif not text.isspace() and self._open[-1] in _CONTENT:
            raise self._error(f"the text {brief(text.strip())!r} is where an element is due; correct it")

    def _keep(self, text: str) -> None:
        """Count what is kept of a node, of an edge, or of all keys."""
        self._kept_bytes += len(text.encode())
        if self._kept_bytes > LONGEST_VALUE:
            raise self._error(f"a value is longer than {LONGEST_VALUE} bytes; leave it out")
