"""MatrixMarket, general or symmetric; pattern, integer or real: an entry (row, column) is an edge, ids count from 1.

Takes coordinate matrices, real, integer (double) or pattern; ``symmetric`` (or real ``hermitian``)
says that the graph is undirected. A rectangular matrix has as many vertices as its longer side.
Values are weights. The banner may be indented or begin with one ``%``, as most readers allow.
Refuses dense arrays and vectors (no graphs), complex values, skew symmetry (the two directions of an
edge would have opposite weights), and files whose size line does not tell the truth. The format
is that of Boisvert, Pozo, Remington (NIST, 1996).
"""

from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.declared_size import DeclaredSize, DeclaredSource
from penstock.storage.ingest.text.diagnose import LARGEST_ID, is_data, shown, whole_number

BANNERS = ("%%matrixmarket", "%matrixmarket")
_VALUES = {"real": True, "double": True, "integer": True, "pattern": False}


class MatrixMarketSource(DeclaredSource):
    """One MatrixMarket file. See `core/source.Source`."""

    _ends = ("row", "column")
    _whole = "matrix"

    def __init__(self, path: Place, options: IngestOptions) -> None:
        super().__init__(path, options)
        if options.weights and self._size.columns.weight < 0:
            raise InputError(f"{self.name} is a pattern: it has no values to take as weights")

    def _read_size(self, first: bytes) -> DeclaredSize:
        """Read banner, comments and size line from a file's first bytes.

        Raises:
            InputError: there is no banner, it asks for what is no graph, or no size line follows.
        """
        lines = first.split(b"\n")
        valued, self.undirected = _read_banner(lines[0].decode("utf-8", "replace"), self.name)
        at = len(lines[0]) + 1
        for number, raw in enumerate(lines[1:], start=2):
            line = raw.decode("utf-8", "replace")
            at += len(raw) + 1
            if is_data(line):
                rows, columns, entries = _read_sizes(line, number, self.name)
                return DeclaredSize(Columns(0, 1, 2 if valued else -1), number, at, entries, (rows, columns))
        raise InputError(
            f"{self.name}: its first {len(first)} bytes have no size line (rows columns entries): it is missing, or "
            "behind too many comments; fetch it again, or remove them"
        )


def _read_banner(line: str, name: str) -> tuple[bool, bool]:
    words = line.split()
    if not words or words[0].lower() not in BANNERS:
        raise InputError(
            f"{name}, line 1: a MatrixMarket file begins with %%MatrixMarket, and this one does "
            f"not; --format text reads a bare list of edges\n    {shown(line)}"
        )
    words = [word.lower() for word in words[1:]]

    def refuse(reason: str) -> InputError:
        return InputError(f"{name}, line 1: {reason}\n    {shown(line)}")

    if len(words) != 4:
        raise refuse("the banner needs four words: matrix coordinate FIELD SYMMETRY; correct it")
    kind, layout, field, symmetry = words
    if kind != "matrix":
        raise refuse(f"{shown(kind)!r} is no graph; only 'matrix' is")
    if layout != "coordinate":
        raise refuse(
            f"the layout {shown(layout)!r} is not supported, only 'coordinate' is: a dense array has "
            "every edge; write the entries that are edges in coordinate layout"
        )
    if field not in _VALUES:
        raise refuse(f"values of type {shown(field)!r} cannot be weights; use real, integer or pattern")
    if symmetry not in ("general", "symmetric", "hermitian"):
        raise refuse(
            f"the symmetry {shown(symmetry)!r} is not supported, only general and symmetric are; write the matrix as "
            "general"
        )
    return _VALUES[field], symmetry != "general"


def _read_sizes(line: str, number: int, name: str) -> tuple[int, int, int]:
    words = line.split()
    if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words):
        raise InputError(
            f"{name}, line {number}: the size line must be three whole numbers, rows columns "
            f"entries; correct it\n    {shown(line)}"
        )
    rows, columns, entries = map(whole_number, words)
    if max(rows, columns, entries) > LARGEST_ID:
        raise InputError(f"{name}, line {number}: a matrix larger than 2^64 - 1 has no vertex ids\n    {shown(line)}")
    return rows, columns, entries
