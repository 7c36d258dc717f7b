"""DIMACS: `p sp N M`, then `a U V W` from 1 (without `p`: as they stand); `p edge` with `e U V` is undirected.

``p sp N M`` with arcs ``a U V W`` is the shortest-path format of the 9th DIMACS implementation
challenge (2006): directed, weights taken unless refused. ``p edge N M`` (or ``col``) with edges ``e U V`` is
that of the 2nd: undirected. A file that begins with its arcs, without a problem line, is read too, its ids
taken as they stand, because nothing then says whether they count from 0 or from 1. Refuses edges without a
problem line, and a problem line that does not tell the truth.
"""

from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.declared_size import DeclaredSize, DeclaredSource
from penstock.storage.ingest.text.diagnose import LARGEST_ID, bad_id, bad_weight, shown, whole_number

_ARCS = Columns(1, 2, 3)
_EDGES = Columns(1, 2, -1)
_KINDS = {"sp": _ARCS, "edge": _EDGES, "col": _EDGES}
_LETTERS = {_ARCS: (ord("a"), ord("c")), _EDGES: (ord("e"), ord("c"))}
"""What begins edges, and comments."""


def read_problem(first: bytes, name: str) -> DeclaredSize:
    """Read comments and the problem line from a file's first bytes.

    Raises:
        InputError: a line that is no arc comes first, there is none, or it is malformed.
    """
    at = 0
    for number, raw in enumerate(first.split(b"\n"), start=1):
        line = raw.decode("utf-8", "replace")
        at += len(raw) + 1
        words = line.split()
        if not words or words[0].startswith("c"):
            continue
        if words[0] == "a":
            return DeclaredSize(_ARCS, number - 1, at - len(raw) - 1, letters=_LETTERS[_ARCS])
        if words[0] != "p":
            raise InputError(
                f"{name}, line {number}: a DIMACS file begins with 'p sp VERTICES ARCS', 'p edge VERTICES EDGES' or an "
                "arc 'a SOURCE TARGET WEIGHT'; --format text reads other lists, --columns 1,2,3 saying where sources, "
                f"targets and weights are\n    {shown(line)}"
            )
        numbers = words[2:]
        if len(words) != 4 or words[1] not in _KINDS or not all(n.isascii() and n.isdigit() for n in numbers):
            raise InputError(
                f"{name}, line {number}: the problem line must be 'p sp VERTICES ARCS' or 'p edge VERTICES EDGES'; "
                f"correct it, or --format text --columns 1,2,3 ignores it if it is removed\n    {shown(line)}"
            )
        vertices, entries = map(whole_number, numbers)
        if max(vertices, entries) > LARGEST_ID:
            raise InputError(
                f"{name}, line {number}: no graph has 2^64 vertices or edges; correct it\n    {shown(line)}"
            )
        columns = _KINDS[words[1]]
        return DeclaredSize(columns, number, at, entries, (vertices, vertices), _LETTERS[columns])
    raise InputError(
        f"{name}: its first {len(first)} bytes have no problem line 'p sp VERTICES ARCS': it is missing, or behind too "
        "many comments; fetch the file again, or remove them"
    )


def what_is_wrong(line: str, columns: Columns) -> str:
    """Why a line is no arc, and what would help."""
    words = line.split()
    form = "a SOURCE TARGET WEIGHT" if columns.weight >= 0 else "e END END"
    wrong = f"a line of this file is 'c' and a comment, or '{form}'; correct it"
    if words[0] != form[0] or len(words) != len(form.split()):
        return wrong
    for word, role in zip(words[1:], ("source", "target", "weight"), strict=False):
        reason = bad_weight(word) if role == "weight" else bad_id(word)
        if reason:
            return f"{role} {shown(word, 24)!r} {reason}"
    return wrong


class DimacsSource(DeclaredSource):
    """One DIMACS file. See `core/source.Source`."""

    _line = "problem line"
    _explain = staticmethod(what_is_wrong)

    def __init__(self, path: Place, options: IngestOptions) -> None:
        if options.columns is not None:
            raise InputError(f"{path}: DIMACS arcs have no columns to choose; --format text reads any columns")
        super().__init__(path, options)
        self.undirected = self._size.columns is _EDGES
        if options.weights and self.undirected:
            raise InputError(f"{self.name}: edges of a 'p edge' file have no weights to take")

    def _read_size(self, first: bytes) -> DeclaredSize:
        return read_problem(first, self.name)

    def _is_entry(self, line: str) -> bool:
        return bool(line.split()) and not line.split()[0].startswith("c")
