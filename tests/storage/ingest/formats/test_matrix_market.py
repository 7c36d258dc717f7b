"""MatrixMarket: what the banner says is done, and a size line that lies is found out, with its line."""

from pathlib import Path
from typing import Any

import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from support.reading import Edges, edges_of, small_blocks

FUZZED = {
    "matrix-market": [
        b"%%MatrixMarket matrix coordinate integer general\n% made\n5 5 5\n1 2 2\n2 3 5\n3 1 1\n5 2 9\n5 4 7\n"
    ]
}
"""Valid files, which `test_fuzz.py` damages."""

GENERAL = "%%MatrixMarket matrix coordinate real general\n"


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 128)


def file_of(folder: Path, text: str) -> Path:
    path = folder / "matrix.mtx"
    path.write_text(text)
    return path


def edges(path: Path, **options: Any) -> Edges:
    return edges_of(path, **options)[0]


def test_entries_become_edges_from_zero(tmp_path: Path) -> None:
    path = file_of(tmp_path, GENERAL + "% c\n\n3 5 2\n1 5 -2.5\n3 1 1e2\n")
    assert edges(path) == [(0, 4, -2.5), (2, 0, 100.0)]
    assert edges(path, weights=False) == [(0, 4), (2, 0)]
    source = open_source([path], None, IngestOptions())
    assert source.known_vertices == 5
    assert not source.undirected


def test_symmetric_means_undirected(tmp_path: Path) -> None:
    path = file_of(tmp_path, "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n3 1\n")
    assert open_source([path], None, IngestOptions()).undirected
    assert edges(path) == [(2, 0)]
    with pytest.raises(InputError, match="is a pattern"):
        edges(path, weights=True)


def test_many_blocks(tmp_path: Path) -> None:
    lines = [(i + 1, 1000 - i, i / 4) for i in range(1000)]
    text = GENERAL + "1000 1000 1000\n" + "".join(f"{i} {j} {w}\n" for i, j, w in lines)
    assert edges(file_of(tmp_path, text)) == [(i - 1, j - 1, w) for i, j, w in lines]
    with pytest.raises(InputError, match=r"line 904: row 1001 is outside 1..1000.*\n    1001 5 1"):
        edges(file_of(tmp_path, text.replace("\n902 99 225.25\n", "\n1001 5 1\n")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GENERAL + "3 3 2\n1 1 1\n", "says 2 entries, and it ends after 1"),
        (GENERAL + "3 3 1\n1 1 1\n% c\n2 2 2\n", "line 5: .*one more"),
        (GENERAL + "3 3 1\n0 1 1\n", "line 3: row 0 is outside 1..3"),
        (GENERAL + "3 2 1\n1 3 1\n", "line 3: column 3 is outside 1..2"),
        (GENERAL + "3 3 1\n1 1\n", "line 3: it has 2 columns"),
        (GENERAL + "3 3\n1 1 1\n", "line 2: the size line"),
        (GENERAL + "% no size\n", "size line .*missing"),
        (GENERAL.replace("coordinate", "array") + "3 3\n", "line 1: the layout 'array'"),
        (GENERAL.replace("real", "complex") + "3 3 0\n", "line 1: values of type 'complex'"),
        (GENERAL.replace("general", "skew-symmetric") + "3 3 0\n", "'skew-symmetric'"),
        ("%%MatrixMarket matrix\n", "banner needs four words"),
        ("%%MatrixMarkt matrix coordinate real general\n3 3 0\n", "--format text"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        edges(file_of(tmp_path, text))


def test_one_matrix_at_a_time(tmp_path: Path) -> None:
    path = file_of(tmp_path, GENERAL + "1 1 0\n")
    with pytest.raises(InputError, match="one at a time"):
        open_source([path, path], None, IngestOptions())


def test_a_bare_list_named_mtx_is_text(tmp_path: Path) -> None:
    assert edges(file_of(tmp_path, "2 1\n1113 1\n")) == [(2, 1), (1113, 1)]
