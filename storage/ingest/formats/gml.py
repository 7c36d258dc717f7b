"""GML (Himsolt, 1997), a stream: `directed 1` or undirected; ids are numbers; the edges' `weight` or `value`.

`graph [ node [ id 1 ] edge [ source 1 target 2 ] ]`: ids are whole numbers; labels are not read. A node without an
id, which no edge can name, gets one above all others. Edges are directed where the graph says `directed 1`.
`--weights` takes the attribute weight of edges, or else value; `--columns source,target,NAME` another one. Refuses
what is no pair of a name and a number, text or list.
"""

import re
from functools import partial
from html import unescape

from penstock.storage.base.errors import InputError, brief
from penstock.storage.base.places import Place
from penstock.storage.ingest.core.source import LONGEST_VALUE, IngestOptions
from penstock.storage.ingest.formats.elements import DEEPEST, Edge, ElementParser, ElementSource, Node
from penstock.storage.ingest.formats.graphml import weight_name

WEIGHTS = ("weight", "value")
_ONCE = ("id", "source", "target")
"""Names that a node or an edge has once, like the weight; others may come again, and the first one counts."""
_TOKEN = re.compile(rb'\s+|\xef\xbb\xbf|#[^\n]*\n|(\[|\]|"[^"]*"|[^\s\[\]"#][^\s\[\]"]*)\s*')
"""Blanks, comments and a byte-order mark have no group."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|nan)", re.ASCII | re.IGNORECASE)


def gml_source(path: Place, options: IngestOptions) -> ElementSource:
    """The file as a source. Raises InputError."""
    names: tuple[str, ...] = ()
    if options.columns is not None:
        names = (str(weight_name(options, str(path))),)
    elif options.weights:
        names = WEIGHTS
    return ElementSource(path, options, partial(GMLParser, str(path), names))


class GMLParser(ElementParser):
    """See `elements.ElementParser`. names: of the attributes of which the first edge's first is the weight."""

    def __init__(self, file: str, names: tuple[str, ...], *, attributes: bool = False) -> None:
        super().__init__(file, attributes=attributes)
        self._names = names
        self._rest, self._line = b"", 1
        self._open: list[str] = []
        self._key: str | None = None
        self._found: dict[str, str] | None = None
        self._graphs = self._known_edges = self._kept = 0

    @property
    def settled(self) -> bool:
        """Whether there was an edge."""
        return self._known_edges > 0

    def feed(self, block: bytes) -> None:
        """Read on; a token that may go on in the next block waits."""
        text = self._rest + block
        at = 0
        for match in _TOKEN.finditer(text):
            start, end = match.span()
            token = match[1]
            if start != at or (end == len(text) and match.end(1) == end):
                break
            if token is not None:
                self._take(token.decode("utf-8", "replace"))
            self._line += match[0].count(b"\n")
            at = end
        self._rest = text[at:]
        if len(self._rest) > LONGEST_VALUE:
            raise self._error(f"a value or a comment is longer than {LONGEST_VALUE} bytes; perhaps a quote is missing")

    def close(self) -> None:
        """Check that every list is closed, and that there was a graph."""
        self.feed(b"\n")
        if self._rest or self._open or self._key is not None:
            raise self._error("the file ends inside of a list; it is truncated")
        if not self._graphs:
            raise InputError(f"{self._file} has no graph [ ... ], so this is no GML")

    def _error(self, reason: str) -> InputError:
        return InputError(f"{self._file}, line {self._line}: {reason}")

    def _take(self, token: str) -> None:
        """The next key, value or bracket."""
        if self._key is None:
            if token == "]":
                self._close_list()
            elif _is_name(token):
                self._key = token
            else:
                raise self._error(f"{brief(token)} is where the name of a value is due; correct it")
        elif token == "[":
            self._open_list(self._key)
            self._key = None
        elif token == "]":
            raise self._error(f"{brief(self._key)} has no value")
        elif token[0] == '"':
            self._value(self._key, token[1:-1])
            self._key = None
        elif token.isdigit() or _NUMBER.fullmatch(token) or (self._key == "label" and _is_name(token)):
            self._value(self._key, token)
            self._key = None
        else:
            raise self._error(
                f"{brief(token)} is where the value of {brief(self._key)} is due: a number, a text in quotes or a list"
            )

    def _open_list(self, name: str) -> None:
        self._open.append(name)
        if len(self._open) > DEEPEST:
            raise self._error(f"lists are nested deeper than {DEEPEST}, so this is no graph")
        if self._open == ["graph"]:
            self._graphs += 1
            if self._graphs > 1:
                raise self._error("it has several graphs; write each to a file of its own")
        elif self._open in (["graph", "node"], ["graph", "edge"]):
            self._found, self._kept = {}, 0
            self.directed = bool(self.directed)

    def _close_list(self) -> None:
        if not self._open:
            raise self._error("a list is closed that is not open")
        if self._found is not None and len(self._open) == 2:
            found, self._found = self._found, None
            if self._open[1] == "edge":
                self._end_edge(found)
            else:
                self._end_node(found)
        self._open.pop()

    def _end_node(self, found: dict[str, str]) -> None:
        if "id" not in found and not self._attributes:
            self.unnamed += 1
            return
        name = self._of(found, "id", "node")
        values = {key: unescape(value) for key, value in found.items() if key != "id"} if self._attributes else {}
        self.nodes.append(Node(name, self._line, values))

    def _end_edge(self, found: dict[str, str]) -> None:
        if not self._known_edges:
            self.weight = next((name for name in self._names if name in found), None)
            others = [name for name in found if name not in ("id", "label", "source", "target")]
            if self._names and self.weight is None:
                known = brief(", ".join(others)) or "none"
                missing = " or ".join(self._names)
                raise self._error(f"the first edge has no {missing} (attributes: {known}); see --columns")
            if not self._names:
                self.passed_over = next((name for name in WEIGHTS if name in found), None)
        self._known_edges += 1
        ends = self._of(found, "source", "edge"), self._of(found, "target", "edge")
        self.edges.append(Edge(*ends, None if self.weight is None else found.get(self.weight), self._line))

    def _of(self, found: dict[str, str], name: str, kind: str) -> str:
        if name not in found:
            raise self._error(f"this {kind} has no {name}")
        return found[name]

    def _value(self, name: str, value: str) -> None:
        if self._found is not None:
            if len(self._open) == 2:
                self._keep(self._found, name, value)
        elif self._open == ["graph"] and name in ("node", "edge"):
            raise self._error(f"this {name} is {brief(value)!r}; it must be a list: {name} [ ... ]")
        elif self._open == ["graph"] and name == "directed":
            if value not in ("0", "1"):
                raise self._error(f"directed is {brief(value)!r}; it must be 0 or 1")
            if self.directed is not None and self.directed != (value == "1"):
                raise self._error("directed is behind nodes or edges; write it before them")
            self.directed = value == "1"

    def _keep(self, found: dict[str, str], name: str, value: str) -> None:
        """Keep a value of a node or an edge."""
        if name in found and (name in _ONCE or name in self._names):
            raise self._error(f"this {self._open[1]} has two values of {name}; leave one out")
        found.setdefault(name, value)
        self._kept += len(name) + len(value)
        if self._kept > LONGEST_VALUE:
            raise self._error(f"the values of this {self._open[1]} are longer than {LONGEST_VALUE} characters")


def _is_name(token: str) -> bool:
    return token.isascii() and token.isidentifier()
