import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from penstock.engine import run
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Address, place_of, send
from penstock.storage.convert.convert_files import convert
from penstock.storage.ingest.tables.folders import files_of
from penstock.tools import cli
from pyarrow import feather
from support.object_store import BUCKET, object_store
from support.reading import edges_of

EDGES = pa.table({"src": [1, 2, 3], "dst": [2, 3, 4]})


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    with object_store() as made:
        for year in (2020, 2021):
            with made.open_output_stream(f"{BUCKET}/edges/year={year}/part-0.parquet") as file:
                pq.write_table(EDGES, file)
        with made.open_output_stream(f"{BUCKET}/edges/_SUCCESS") as file:
            file.write(b"")
        with made.open_output_stream(f"{BUCKET}/text/a.csv.gz", compression="gzip") as file:
            file.write(b"src,dst,km\n1,2,3\n3,4,5\n")
        yield made


ROWS = [(1, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("s3://bucket/edges", ROWS * 2),
        ("s3://bucket/edges/year=2020", ROWS),
        ("s3://bucket/edges/year=2020/part-0.parquet", ROWS),
        ("s3://bucket/edges/*/part-*.parquet", ROWS * 2),
        ("s3://bucket/**/part-0.parquet", ROWS * 2),
        ("s3://bucket/edges/year=*1", ROWS),
        ("s3://bucket/text/a.csv.gz", [(1, 2), (3, 4)]),
    ],
)
def test_edges_of_a_store(store: Any, name: str, edges: list[tuple[int, int]]) -> None:
    found, source = edges_of(name)
    assert found == edges
    assert source.total_bytes == source.bytes_done
    assert source.total_bytes


def test_every_format_that_reads_bytes_reads_them_of_a_store(store: Any, tmp_path: Path) -> None:
    pairs = np.array(ROWS, np.uint32)
    np.save(tmp_path / "a.npy", pairs)
    pairs.tofile(tmp_path / "a.bin")
    feather.write_feather(EDGES, tmp_path / "a.feather")
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n5 5 3\n2 3\n3 4\n4 5\n")
    (tmp_path / "a.adjlist").write_text("1: 2\n2: 3\n3: 4\n")
    listed = "".join(f"edge [ source {a} target {b} ]\n" for a, b in ROWS)
    (tmp_path / "a.gml").write_text(f"graph [ directed 1 {listed}]")
    for name in ("npy", "bin", "feather", "mtx", "adjlist", "gml"):
        format = "binary32" if name == "bin" else None
        send(tmp_path / f"a.{name}", Address(f"s3://bucket/formats/a.{name}"))
        assert edges_of(f"s3://bucket/formats/a.{name}", format)[0] == ROWS, name
    for format in ("npz", "graph"):
        with pytest.raises(InputError, match=r"s3://bucket/formats/a\.bin is no file of this machine"):
            edges_of("s3://bucket/formats/a.bin", format)


def test_text_and_weights_of_hive_folders(tmp_path: Path) -> None:
    for kind in ("a b", "c"):
        folder = tmp_path / f"kind={kind.replace(' ', '%20')}" / "year=2024"
        folder.mkdir(parents=True)
        pq.write_table(EDGES, folder / "part.parquet")
    assert edges_of(tmp_path)[0] == ROWS * 2
    weighted = [(*row, 2024) for row in ROWS]
    assert edges_of(tmp_path, columns=("src", "dst", "year"), weights=True)[0] == weighted * 2


def test_hive_columns_are_kept_beside_edges(tmp_path: Path) -> None:
    for day, size in (("2024-01-05", 1), ("2024-02-01", 2)):
        for kind in ("a%20b", "c"):
            folder = tmp_path / "in" / f"day={day}" / f"kind={kind}"
            folder.mkdir(parents=True)
            pq.write_table(EDGES.append_column("size", [[size] * 3]), folder / "part.parquet")
    graph = tmp_path / "g.h5"
    convert(tmp_path / "in", graph, edge_properties="day:date,kind,size")
    for where, edges in (
        ("day >= 2024-01-31", 6),
        ("kind = 'a b' and size = 2", 3),
        ("day < 2024-02-01 and kind = 'c' and size = 2", 0),
    ):
        assert int(run("degrees", graph, where=where)["out_degree"].sum()) == edges
    with pytest.raises(InputError, match="'year' is not the name of one column"):
        convert(tmp_path / "in", tmp_path / "no.h5", edge_properties="year")


def test_folders_of_rows_without_a_value(tmp_path: Path) -> None:
    for kind in ("wire", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / "in" / f"kind={kind}").mkdir(parents=True)
        pq.write_table(EDGES, tmp_path / "in" / f"kind={kind}" / "part.parquet")
    convert(tmp_path / "in", tmp_path / "g.h5", edge_properties="kind:string")
    for where, edges in (("kind is null", 3), ("kind = 'wire'", 3), ("kind != 'wire'", 0)):
        assert int(run("degrees", tmp_path / "g.h5", where=where)["out_degree"].sum()) == edges


def test_hidden_names_and_empty_folders(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "_c.csv", ".d.csv", "_t/e.csv", "f/g.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1 2\n")
    assert [one.name for one in files_of(tmp_path)] == ["a.csv", "b.csv", "g.csv"]
    assert [one.name for one in files_of(tmp_path / "[ab].csv")] == ["a.csv", "b.csv"]
    assert [one.name for one in files_of(tmp_path / "f*")] == ["g.csv"]
    assert files_of(tmp_path / "none.csv") == [tmp_path / "none.csv"]
    (tmp_path / "what?.csv").write_text("1 2\n")
    assert files_of(tmp_path / "what?.csv") == [tmp_path / "what?.csv"]
    (tmp_path / "empty").mkdir()
    for name in ("*.parquet", "empty"):
        with pytest.raises(InputError, match="there is no file; name files, or a folder or a pattern"):
            files_of(tmp_path / name)


def test_a_local_pattern_passes_over_the_same_names_and_gives_no_file_twice(tmp_path: Path) -> None:
    for name in ("a.csv", "_SUCCESS", "_t/b.csv", "f/c.csv", "f/g/d.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1 2\n")
    names = {
        pattern: [one.relative_to(tmp_path).as_posix() for one in files_of(tmp_path / pattern)]
        for pattern in ("*", "**", "**/*.csv", "f/**/d.csv")
    }
    every = ["a.csv", "f/c.csv", "f/g/d.csv"]
    assert names == {"*": every, "**": every, "**/*.csv": every, "f/**/d.csv": ["f/g/d.csv"]}


def test_links_in_folders(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.csv").write_text("1 2\n")
    loop = tmp_path / "d" / "loop"
    loop.symlink_to(tmp_path / "d")
    for name in ("d", "d/**", "d/*"):
        with pytest.raises(InputError, match="loop is a link to a folder that it lies in"):
            files_of(tmp_path / name)
    loop.unlink()
    (tmp_path / "d" / "b.csv").symlink_to(tmp_path / "moved.csv")
    with pytest.raises(InputError, match=r"b\.csv does not exist"):
        edges_of(tmp_path / "d")


def test_an_output_that_a_folder_or_a_pattern_means_is_kept(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("1,2\n")
    place = tmp_path / "d"
    place.mkdir()
    graph = place / "g.h5"
    convert(tmp_path / "e.csv", graph, layout="list")
    before = graph.read_bytes()
    for given in (place, place / "*.h5", graph):
        with pytest.raises(InputError, match=r"g\.h5 is an input too"):
            convert(given, graph, force=True)
        assert cli.run_command(["convert", str(given), str(graph), "--force"]) == 2
    assert graph.read_bytes() == before
    convert(place, tmp_path / "other.h5")


def test_delta_lake_with_blanks_in_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = pa.array(["a b", "c/d%", "e"])
    place = tmp_path / "a table"
    deltalake.write_deltalake(place, EDGES.append_column("kind", kinds), partition_by=["kind"])
    assert sorted(edges_of(place)[0]) == ROWS
    monkeypatch.chdir(tmp_path)
    assert sorted(edges_of("a table")[0]) == ROWS


def test_delta_lake_whose_columns_have_other_names_in_files(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", EDGES)
    (log,) = (tmp_path / "t" / "_delta_log").glob("*.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in line:
            line["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
            schema = json.loads(line["metaData"]["schemaString"])
            for number, (field, stored) in enumerate(zip(schema["fields"], ("dst", "src"), strict=True)):
                mapping = {"id": number + 1, "physicalName": stored}
                field["metadata"] = {f"delta.columnMapping.{key}": value for key, value in mapping.items()}
            line["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match="Delta's columnMapping, so its files do not tell its rows"):
        edges_of(tmp_path / "t")
    log.write_text("{}}")
    with pytest.raises(InputError, match="the log of the table cannot be read"):
        edges_of(tmp_path / "t")


def test_delta_lake(store: Any, tmp_path: Path) -> None:
    place = tmp_path / "delta"
    deltalake.write_deltalake(place, EDGES)
    deltalake.write_deltalake(place, EDGES, mode="overwrite")
    assert edges_of(place)[0] == ROWS, "the files before are still there"
    deltalake.write_deltalake(place, EDGES, mode="append")
    assert edges_of(place)[0] == ROWS * 2
    deltalake.DeltaTable(place).delete("src = 2")
    assert sorted(edges_of(place)[0]) == [(1, 2), (1, 2), (3, 4), (3, 4)]
    options = {"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}
    deltalake.write_deltalake("s3://bucket/delta", EDGES, storage_options=options)
    assert edges_of("s3://bucket/delta")[0] == ROWS


def test_delta_lake_that_its_files_do_not_tell(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", EDGES, configuration={"delta.enableDeletionVectors": "true"})
    with pytest.raises(InputError, match="Delta's deletionVectors, so its files do not tell its rows"):
        edges_of(tmp_path / "t")


def test_iceberg(tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    options = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    catalog = SqlCatalog("test", **options)
    catalog.create_namespace("db")
    table = catalog.create_table("db.edges", schema=EDGES.schema)
    table.append(EDGES)
    table.overwrite(EDGES)
    place = Path(table.location().removeprefix("file://"))
    assert edges_of(place)[0] == ROWS, "the files before are still there"
    for _ in range(10):
        table.append(EDGES.slice(0, 1))
    assert sorted(edges_of(place)[0]) == sorted(ROWS + [(1, 2)] * 10)
    with table.update_schema() as change:
        change.rename_column("dst", "target")
    with pytest.raises(InputError, match="was renamed; rewrite the table's files"):
        edges_of(place)
    catalog.destroy_tables()
    catalog.engine.dispose()


def test_a_table_whose_package_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deltalake.write_deltalake(tmp_path / "t", EDGES)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(InputError, match=r"is a table that the package deltalake reads; pip install '.\[tables\]'"):
        files_of(place_of(tmp_path / "t"))
