"""The metadata of a graph file: the header, its arrays, the dtypes that it allows.

A header is checked field by field before anything is allocated or opened because of it: values that no writer of this
version makes are refused. It is JSON, which h5dump shows in readable form; it is checksummed, because every other
checksum hangs from it (as in Merkle's tree: header, tables, chunks).
"""

import json
import re
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.encoding.payload import PAYLOADS
from penstock.storage.format.edge_properties import MOST_PROPERTIES, EdgeProperty, is_property, property_path

FORMAT_VERSION = 7
"""The newest that is read; only graphs whose edges were added to or removed (`splice.py`) need it."""
COLUMNS_VERSION = 6
"""That of graphs with columns beside their edges."""
WINDOWS_VERSION = 5
"""That of graphs with windows, and no such columns."""
SHARDS_VERSION = 4
"""That of graphs with shards, where they have no windows."""
LIST_VERSION = 3
"""That of graphs in the order of their input, and `ROWS_VERSION` that of others, where they have no shards."""
ROWS_VERSION = 2
UNSIZED_PAYLOADS = 1
"""The version whose chunk tables have no sizes of payloads."""
CHUNK_EDGES = 1 << 18
"""Edges of a chunk (the last may hold fewer): 1 MiB of 4-byte ids."""
CHUNK_VERTICES = 1 << 18
"""Vertices of a chunk of degrees or original ids."""
LIST_BLOCK = 2048
"""Edges of a block of a graph in the order of its input: the row of its index, the unit that its spans bound."""
SPAN_COLUMNS = 4
"""Least and greatest source, least and greatest target of a block."""
LAYOUTS = ("rows", "list")
LIST_VERTICES = 1 << 32
"""Vertices that keys of edges can name."""
STRIPE_RUN = 8
"""Neighboring chunks that stay together on one stripe: about one merged read."""
ENCODINGS = ("packed", "delta", "plain")
KEY_ENCODING = "shuffled"
"""That of keys of edges."""
WEIGHT_DTYPES = tuple(np.dtype(name) for name in ("u1", "u2", "u4", "f4", "f8"))
VERTEX_DTYPES = (np.dtype("u4"), np.dtype("u8"))
COUNT_DTYPES = tuple(np.dtype(name) for name in ("u1", "u2", "u4", "u8"))
PROPERTY_DTYPES = (*WEIGHT_DTYPES, np.dtype("u8"))
DIRECTIONS = ("out", "in")
NEIGHBORS, WEIGHTS, DEGREES, ORIGINAL_ID = "neighbors", "weights", "degrees", "original_id"
SPANS = "spans"
WITHOUT_EDGES = "without_edges"
"""What the provenance calls the number of vertices without an edge."""
RISING = "rising_ids"
"""What the provenance calls how many vertices, from 0 on, have ids that rise, where those of later ones are less."""
CHANGES = "changes"
"""What the provenance calls which content a graph had before each change, and how many edges that removed."""
EXTRACTED = "extracted"
"""What the provenance calls where a part of a graph was taken from, and by which conditions."""
NEW_IDS = ("renumber", "bipartite", "vertices_file")
"""Options in the provenance that give vertices other numbers than the ids of the input."""
ADDED_AT, ADDED_IDS, ADDED_WEIGHTS, ADDED_TURN = "added/at", "added/ids", "added/values", "added/turn"
ADDED, REMOVED_AT = (ADDED_AT, ADDED_IDS, ADDED_WEIGHTS, ADDED_TURN), "removed/at"
"""What was added to an adjacency and removed from it, beside its stored edges (`splice.py`)."""
NAME_ENDS, NAME_TEXT = "original_id/ends", "original_id/text"
"""Original ids that are strings: where each ends (uint64), and all of them end to end (UTF-8)."""
MOST = 1 << 62
MOST_WINDOWS = 256
EXACT = 1 << 53
"""Whole numbers up to here are exact in float64."""
_IDENTITY = re.compile("[0-9a-f]{32}")


def window_name(direction: str, number: int) -> str:
    """Return what the file calls the edges of one direction that lead to a window of vertices, as an adjacency."""
    return f"{direction}/windows/{number}"


def vertex_dtype(vertices: int) -> np.dtype[Any]:
    """Return the dtype of ids below ``vertices``: uint32, and uint64 beyond 2^32 vertices."""
    return np.dtype(np.uint32 if vertices <= 1 << 32 else np.uint64)


def count_dtype(largest: int) -> np.dtype[Any]:
    """Return the narrowest unsigned dtype that holds ``largest``."""
    return next(kind for kind in COUNT_DTYPES if largest <= np.iinfo(kind).max)


def weight_dtype(low: float, high: float, *, integral: bool, single: bool) -> np.dtype[Any]:
    """Return the narrowest allowed dtype for weights between ``low`` and ``high``.

    Parameters
    ----------
    low, high : float
        The smallest and the largest weight.
    integral : bool
        Whether all are whole numbers.
    single : bool
        Whether all are exact in float32.
    """
    if integral and low >= 0 and high <= 0xFFFFFFFF:
        return count_dtype(int(high))
    return np.dtype(np.float32 if single else np.float64)


def check_whole_weights(weights: NDArray[Any], name: str) -> None:
    """Refuse whole numbers that float64, which weights from 2^32 on are kept in, does not hold. Raises InputError."""
    if weights.dtype.kind not in "iu" or weights.itemsize < 8 or len(weights) == 0:
        return
    if int(weights.min()) >= -EXACT and int(weights.max()) <= EXACT:
        return
    bits = weights.astype(np.uint64)
    size = np.where(weights < 0, ~bits + np.uint64(1), bits)
    lowest = np.maximum(size & (~size + np.uint64(1)), np.uint64(1))
    rounded = size // lowest > EXACT
    if rounded.any():
        raise InputError(
            f"{name}: the weight {weights[np.argmax(rounded)]} is a whole number that no 64-bit float holds; scale the "
            "weights, give them as floats to have them rounded, or leave them out"
        )


def narrow_weights(weights: NDArray[Any], name: str) -> NDArray[Any]:
    """Return weights in an allowed dtype, the narrowest where theirs is not one already.

    Parameters
    ----------
    weights : ndarray of numbers, (edges,)
        Booleans, integers or floats of any width.
    name : str
        What to call them in an error.

    Raises
    ------
    InputError
        They are whole numbers that no allowed dtype holds.
    """
    if weights.dtype in WEIGHT_DTYPES or len(weights) == 0:
        return weights if weights.dtype in WEIGHT_DTYPES else weights.astype(np.uint8)
    check_whole_weights(weights, name)
    low, high = weights.min(), weights.max()
    integral = weights.dtype.kind in "biu"
    single = bool((weights.astype(np.float32).astype(weights.dtype) == weights).all())
    return weights.astype(weight_dtype(low, high, integral=integral, single=single))


def values_encoding(kind: np.dtype[Any]) -> str:
    """Return the encoding of weights and degrees: bit-packed where they are short integers."""
    return "bits" if kind.kind == "u" and kind.itemsize <= 4 else "plain"


def table_columns(encoding: str, version: int = FORMAT_VERSION) -> int:
    """Return the columns of a chunk table: length, checksum, and where frames hold payloads the words of each."""
    return 3 if encoding in PAYLOADS and version > UNSIZED_PAYLOADS else 2


class HeaderError(ValueError):
    """A header that no Penstock of this version writes; says which field is wrong."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One chunked array of the file.

    Attributes
    ----------
    path : str
        Its name in the file, such as ``out/neighbors``.
    dtype : str
        NumPy's name of the items' dtype; little-endian.
    items, chunk_items : int
        Number of items, and of those of every chunk but the last.
    encoding : {"packed", "delta", "plain", "bits"}
        How a chunk's items become the payload of a frame: see `packing` and `delta`.
    table_checksum : int
        xxh3 (64 bits) of the chunk table.
    """

    path: str
    dtype: str
    items: int
    chunk_items: int
    encoding: str
    table_checksum: int

    @property
    def kind(self) -> np.dtype[Any]:
        """The dtype as numpy's."""
        return np.dtype(self.dtype)

    @property
    def chunks(self) -> int:
        """How many chunks hold the items."""
        return -(-self.items // self.chunk_items)

    def chunk_length(self, chunk: int) -> int:
        """Return how many items a chunk holds."""
        return min(self.chunk_items, self.items - chunk * self.chunk_items)

    def check(self) -> None:
        """Raise HeaderError for values that no writer makes."""
        for name in ("items", "chunk_items", "table_checksum"):
            _require(isinstance(getattr(self, name), int), f"{self.path}.{name}")
        _require(0 <= self.items < MOST, f"{self.path}.items")
        _require(0 < self.chunk_items <= CHUNK_EDGES, f"{self.path}.chunk_items")
        name = self.path.rpartition("/")[2]
        kinds = {DEGREES: COUNT_DTYPES, "text": COUNT_DTYPES[:1]} | dict.fromkeys((WEIGHTS, "values"), WEIGHT_DTYPES)
        allowed = kinds.get(name, VERTEX_DTYPES)
        known: tuple[str, ...] = (*ENCODINGS, KEY_ENCODING) if name == NEIGHBORS else ENCODINGS
        column = is_property(self.path)
        if column or is_property(self.path, bounds=True):
            allowed, known = PROPERTY_DTYPES, ("plain",)
        _require(self.dtype in {kind.name for kind in allowed}, f"{self.path}.dtype")
        if column or name in (WEIGHTS, DEGREES, "values"):
            known = ("plain", values_encoding(np.dtype(self.dtype)))
        _require(self.encoding in known, f"{self.path}.encoding")


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """One shard file of a striped graph: its plain name, and the directory it was written to.

    The directory is relative to that of the manifest if it is inside that. (Up to version 3 it was absolute.)
    """

    name: str
    directory: str

    def check(self) -> None:
        """Raise HeaderError for a name that could lead out of the directories searched."""
        _require(isinstance(self.name, str) and isinstance(self.directory, str), "shards")
        plain = self.name not in ("", ".", "..") and not set(self.name) & set("/\\\0")
        _require(plain, f"shards: {self.name!r} is not a plain file name")
        _require("\0" not in self.directory, "shards.directory")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a manifest was written: its path without links, and its inode, which a copy does not share."""

    path: str
    inode: int

    def check(self) -> None:
        """Raise HeaderError for values that no writer makes."""
        _require(isinstance(self.path, str) and isinstance(self.inode, int) and "\0" not in self.path, "place")


@dataclass(frozen=True, slots=True)
class ListPart:
    """A part of a list: what the conversion, or one `penstock append`, wrote.

    Attributes
    ----------
    shards : int
        How many files hold its edges, those behind the shards of earlier parts; 0: the manifest.
    stored, used : int
        Chunks in these files, and how many of them, from the first on, are in the graph: an append writes the last
        chunk of the part before again where that is not full.
    """

    shards: int
    stored: int
    used: int

    def check(self) -> None:
        """Raise HeaderError for values that no writer makes."""
        numbers = (self.shards, self.stored, self.used)
        _require(all(isinstance(number, int) for number in numbers), "parts")
        _require(0 <= self.used <= self.stored <= self.used + 1 < MOST and self.shards >= 0, "parts")


@dataclass(frozen=True, slots=True)
class Header:
    """Everything about a graph but the data and the tables of chunks.

    The fields are those of `Graph`; ``stripe_run`` is the number of neighboring chunks that stay together on one
    stripe. ``parts`` and ``self_loops`` are those of a list, ``place`` that of a manifest with shards,
    ``window_vertices`` those of a window, 0 without any, ``edge_properties`` the columns beside the edges of rows. In
    the file the header is JSON, and its checksum is an attribute beside it.
    """

    graph_id: str
    vertices: int
    edges: int
    input_edges: int
    directed: bool
    stripe_run: int
    shards: tuple[ShardEntry, ...]
    arrays: tuple[ArraySpec, ...]
    provenance: dict[str, Any] = field(default_factory=dict)
    weight_range: tuple[float, float, float] | None = None
    left: int | None = None
    layout: str = "rows"
    parts: tuple[ListPart, ...] = ()
    self_loops: int = 0
    place: Place | None = None
    window_vertices: int = 0
    edge_properties: tuple[EdgeProperty, ...] = ()

    @property
    def windows(self) -> int:
        """How many windows of vertices there are, for each of which edges are stored once more."""
        return -(-self.vertices // self.window_vertices) if self.window_vertices else 0

    def windows_of(self, direction: str) -> tuple[str, ...]:
        """Return the names of the windows' adjacencies of one direction; none where the graph does not store it."""
        stored = direction in DIRECTIONS and self.array(f"{direction}/{NEIGHBORS}") is not None
        return tuple(window_name(direction, number) for number in range(self.windows)) if stored else ()

    @property
    def is_spliced(self) -> bool:
        """Whether edges were added to those of its shards, or removed from them."""
        return any(spec.path.endswith((ADDED_AT, REMOVED_AT)) for spec in self.arrays)

    @property
    def version(self) -> int:
        """The format version of a file with this header."""
        if self.is_spliced:
            return FORMAT_VERSION
        if self.edge_properties:
            return COLUMNS_VERSION
        if self.window_vertices:
            return WINDOWS_VERSION
        if self.place is not None:
            return SHARDS_VERSION
        return ROWS_VERSION if self.layout == "rows" else LIST_VERSION

    def array(self, path: str) -> ArraySpec | None:
        """Return the array of that path, None where the graph has none."""
        return next((spec for spec in self.arrays if spec.path == path), None)

    def to_json(self) -> str:
        """Return the header as JSON text."""
        fields = asdict(self)
        if self.place is None:
            del fields["place"]
        if not self.window_vertices:
            del fields["window_vertices"]
        if not self.edge_properties:
            del fields["edge_properties"]
        if self.layout == "rows":  # what version 2 knows
            for name in ("layout", "parts", "self_loops"):
                del fields[name]
        return json.dumps(fields, indent=1, sort_keys=True, default=str)

    @staticmethod
    def from_json(text: str) -> "Header":
        """Parse a header; raises HeaderError for anything odd."""
        try:
            fields = json.loads(text)
            fields["shards"] = tuple(ShardEntry(**entry) for entry in fields["shards"])
            fields["arrays"] = tuple(ArraySpec(**entry) for entry in fields["arrays"])
            fields["parts"] = tuple(ListPart(**part) for part in fields.get("parts", ()))
            if fields.get("weight_range") is not None:
                fields["weight_range"] = tuple(fields["weight_range"])
            if fields.get("place") is not None:
                fields["place"] = Place(**fields["place"])
            fields["edge_properties"] = tuple(_edge_property(entry) for entry in fields.get("edge_properties", ()))
            header = Header(**fields)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise HeaderError(f"unreadable header ({error})") from error
        header.check()
        return header

    def check(self) -> None:
        """Raise HeaderError for values that no writer makes, alone or together."""
        for name in ("vertices", "edges", "input_edges", "stripe_run", "window_vertices"):
            value = getattr(self, name)
            _require(isinstance(value, int) and 0 <= value < MOST, name)
        _require(isinstance(self.directed, bool), "directed")
        _require(isinstance(self.graph_id, str) and _IDENTITY.fullmatch(self.graph_id) is not None, "graph_id")
        _require(isinstance(self.provenance, dict), "provenance")
        _require(self.left is None or (isinstance(self.left, int) and 0 <= self.left <= self.vertices), "left")
        weighted = self.array(f"out/{WEIGHTS}") is not None
        numbers = self.weight_range or ()
        _require(len(numbers) == (3 if weighted else 0), "weight_range")
        _require(all(isinstance(number, float) for number in numbers), "weight_range")
        _require(not numbers or (all(map(isfinite, numbers[::2])) and numbers[0] <= numbers[2]), "weight_range")
        _require(0 < self.stripe_run <= 1 << 16 and len(self.shards) < 1 << 15, "stripe_run")
        _require(self.layout in LAYOUTS, "layout")
        for shard in self.shards:
            shard.check()
        for part in self.parts:
            part.check()
        if self.place is not None:
            self.place.check()
        for spec in self.arrays:
            spec.check()
        _require(len({spec.path for spec in self.arrays}) == len(self.arrays), "arrays")
        self._check_lengths()

    def _property_lengths(self) -> dict[str, int]:
        """Return the lengths of the arrays of columns beside edges, which every adjacency has that is stored."""
        known = self.edge_properties
        _require(len(known) <= (MOST_PROPERTIES if self.layout == "rows" else 0), "edge_properties")
        _require(all(one.sound for one in known), "edge_properties")
        _require(len({one.name for one in known}) == len(known), "edge_properties")
        expected: dict[str, int] = {}
        for direction in DIRECTIONS:
            neighbors = self.array(f"{direction}/{NEIGHBORS}")
            for number in range(len(known) if neighbors is not None else 0):
                path, bounds = (property_path(direction, number, bounds=flag) for flag in (False, True))
                column, extents = self.array(path), self.array(bounds)
                _require(column is not None and extents is not None, f"arrays of {path}")
                assert neighbors is not None
                assert column is not None
                assert extents is not None
                _require(column.chunk_items == neighbors.chunk_items and column.dtype == extents.dtype, path)
                expected |= {path: self.edges, bounds: 2 * neighbors.chunks}
        return expected

    def _check_lengths(self) -> None:
        text = self.array(NAME_TEXT)
        expected = {ORIGINAL_ID: self.vertices, NAME_ENDS: self.vertices, NAME_TEXT: text.items if text else 0}
        _require((text is None) == (self.array(NAME_ENDS) is None), NAME_ENDS)
        _require(text is None or self.array(ORIGINAL_ID) is None, ORIGINAL_ID)
        for direction in DIRECTIONS:
            changed, more = self._splice_lengths(direction)
            expected |= changed
            edges = self.edges - more
            expected |= {f"{direction}/{NEIGHBORS}": edges, f"{direction}/{WEIGHTS}": edges}
            expected[f"{direction}/{DEGREES}"] = self.vertices
        if self.layout == "list":
            expected[f"out/{SPANS}"] = SPAN_COLUMNS * -(-self.edges // LIST_BLOCK)
        expected |= self._window_lengths() | self._property_lengths()
        for spec in self.arrays:
            _require(spec.path in expected, f"arrays: {spec.path!r} is unknown")
            _require(spec.items == expected[spec.path], f"{spec.path}.items")
        if self.layout == "list":
            self._check_list()
            return
        _require(not self.parts and self.self_loops == 0, "parts")
        for direction in DIRECTIONS:
            pair = [self.array(f"{direction}/{name}") for name in (NEIGHBORS, DEGREES)]
            missing = pair.count(None)
            _require(missing == 0 or (missing == 2 and direction == "in"), f"arrays of {direction}")
        self._check_agreement()
        if self.is_spliced:
            self._check_splices()

    def _splice_lengths(self, name: str) -> tuple[dict[str, int], int]:
        """Return the lengths of what was added to an adjacency and removed, and how many edges it won by that."""
        added, removed = (self.array(f"{name}/{part}") for part in (ADDED_AT, REMOVED_AT))
        more, fewer = (0 if one is None else one.items for one in (added, removed))
        return {f"{name}/{part}": more for part in ADDED if more} | {f"{name}/{REMOVED_AT}": fewer}, more - fewer

    def _check_splices(self) -> None:
        """Edges are in shards, and what was added has neighbors, and weights where edges have them."""
        _require(bool(self.shards) and not self.edge_properties, "shards")
        for direction in (*DIRECTIONS, *(name for one in DIRECTIONS for name in self.windows_of(one))):
            found = {part: self.array(f"{direction}/{part}") for part in (*ADDED, NEIGHBORS, WEIGHTS)}
            wanted = {ADDED_AT, ADDED_IDS, ADDED_TURN} | ({ADDED_WEIGHTS} if found[WEIGHTS] else set())
            _require({part for part in ADDED if found[part]} in (set(), wanted), f"arrays of {direction}/{ADDED_AT}")
            for part, other in ((found[ADDED_IDS], found[NEIGHBORS]), (found[ADDED_WEIGHTS], found[WEIGHTS])):
                _require(part is None or (other is not None and part.dtype == other.dtype), f"dtype of {direction}")

    def _window_lengths(self) -> dict[str, int]:
        """Return the lengths of windows' arrays; all windows of a direction together have its edges."""
        _require(self.windows <= (MOST_WINDOWS if self.layout == "rows" else 0), "window_vertices")
        expected: dict[str, int] = {}
        for direction in DIRECTIONS:
            names = self.windows_of(direction)
            weighted, edges = self.array(f"{direction}/{WEIGHTS}") is not None, 0
            for name in names:
                neighbors, weights, degrees = (self.array(f"{name}/{part}") for part in (NEIGHBORS, WEIGHTS, DEGREES))
                whole = neighbors is not None and degrees is not None and (weights is not None) == weighted
                _require(whole, f"arrays of {name}")
                items, (changed, more) = 0 if neighbors is None else neighbors.items, self._splice_lengths(name)
                expected |= {f"{name}/{NEIGHBORS}": items, f"{name}/{WEIGHTS}": items} | changed
                expected[f"{name}/{DEGREES}"] = self.vertices
                edges += items + more
            _require(not names or edges == self.edges, f"edges of the windows of {direction}")
        return expected

    def _check_list(self) -> None:
        """One adjacency of keys, with spans and weights in its chunks; degrees, where there are any, of both ends."""
        keys, spans = self.array(f"out/{NEIGHBORS}"), self.array(f"out/{SPANS}")
        _require(keys is not None and keys.encoding == KEY_ENCODING and keys.kind.itemsize == 8, f"out/{NEIGHBORS}")
        _require(spans is not None and spans.kind.itemsize == 4, f"out/{SPANS}")
        assert keys is not None
        _require(keys.chunk_items % LIST_BLOCK == 0, f"out/{NEIGHBORS}.chunk_items")
        _require(self.vertices <= LIST_VERTICES, "vertices")
        _require(self.array(f"in/{NEIGHBORS}") is None and self.array(f"in/{WEIGHTS}") is None, "arrays of in")
        found = [self.array(f"{direction}/{DEGREES}") is not None for direction in DIRECTIONS]
        _require(found[1] <= found[0] and (self.directed or not found[1]), f"in/{DEGREES}")
        _require(isinstance(self.self_loops, int) and 0 <= self.self_loops <= self.edges, "self_loops")
        _require(sum(part.shards for part in self.parts) == len(self.shards), "parts")
        _require(sum(part.used for part in self.parts) == keys.chunks, "parts")
        _require(all(part.shards for part in self.parts) or len(self.parts) == 1, "parts")
        self._check_agreement()

    def _check_agreement(self) -> None:
        """Arrays that are read side by side, or in one slab, have the same chunks and dtypes."""
        edges = [spec for spec in self.arrays if spec.path.endswith((f"/{NEIGHBORS}", f"/{WEIGHTS}"))]
        _require(len({spec.chunk_items for spec in edges}) == 1, "chunk_items: edges differ")
        for name in (NEIGHBORS, WEIGHTS):
            found = [spec for spec in edges if spec.path.endswith(name)]
            _require(len({(spec.dtype, spec.encoding) for spec in found}) <= 1, f"dtype: {name} differ")
        weighted = [self.array(f"{direction}/{WEIGHTS}") for direction in DIRECTIONS]
        inward = self.array(f"in/{NEIGHBORS}") is not None
        _require(self.directed or not inward, "directed")
        _require((weighted[1] is not None) == (weighted[0] is not None and inward), WEIGHTS)
        wide = self.vertices <= 1 << 32 or edges[0].kind.itemsize == 8
        shuffled = any(spec.encoding == KEY_ENCODING for spec in edges)
        _require(shuffled == (self.layout == "list"), f"{edges[0].path}.encoding")
        _require(wide, f"{edges[0].path}.dtype")


def _edge_property(entry: dict[str, Any]) -> EdgeProperty:
    """Return a column beside edges as the header has it; raises TypeError, as a record of other fields does."""
    found = None if entry.get("range") is None else tuple(entry["range"])
    return EdgeProperty(**entry | {"values": tuple(entry.get("values", ())), "range": found})


def _require(condition: bool, name: str) -> None:
    if not condition:
        raise HeaderError(f"impossible value of {name}")
