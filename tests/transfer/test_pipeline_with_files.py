"""The pipeline over a real file and reader: right edges, bytes as on disk, a damaged chunk, the memory promised."""

import numpy as np
import pytest
from penstock.storage.base.errors import RunError
from penstock.storage.format.graph import Graph
from penstock.storage.format.read_plan import MOST_BYTES
from penstock.storage.format.writer import GraphWriter
from penstock.storage.read.partition_cache import PartitionCache
from penstock.storage.read.reader import Reader
from penstock.transfer.planning.host_budget import HostBudgetRequest, reader_bytes
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.rates import Rates
from penstock.transfer.values.task import Demand, whole_demand
from support import fakes, faults
from support.covering import covering

CHUNK = 262_144
VERTICES = 40_000
RATES = Rates.host(2)


@pytest.fixture(scope="module")
def arrays():
    """Rows of up to 60 edges and one of 600,000, which spans partitions."""
    random = np.random.default_rng(5)
    degrees = random.integers(0, 60, VERTICES)
    degrees[1234] = 600_000
    offsets = np.r_[0, np.cumsum(degrees)]
    neighbors = random.integers(0, VERTICES, offsets[-1]).astype(np.uint32)
    rows = np.repeat(np.arange(VERTICES), degrees)
    order = np.lexsort((neighbors, rows))
    return degrees, neighbors[order], random.integers(1, 64, offsets[-1]).astype(np.uint8)


@pytest.fixture(scope="module")
def path(arrays, tmp_path_factory):
    degrees, neighbors, weights = arrays
    path = tmp_path_factory.mktemp("graph") / "graph.h5"
    settings = {"vertex_dtype": np.uint32, "weight_dtype": np.uint8, "provenance": {}}
    with GraphWriter(path, vertices=VERTICES, directed=True, **settings) as writer:
        rows = writer.adjacency("out")
        rows.append(neighbors, weights)
        rows.degrees(degrees)
        rows.finish()
    return path


def pipeline_of(graph, reader, slots, **options):
    cache = PartitionCache([graph.out], 2 * CHUNK, (np.uint32, np.uint8), slots and slots * 2 * CHUNK)
    settings = TransferOptions(2 * CHUNK, **{"slabs": 2, "ahead": 2, **options})
    return fakes.pipeline_of(graph, reader, cache, settings)


@covering("slots, with_weights", [0, 1, None], [False, True], strength=1)
def test_sweeps_show_the_graph(arrays, path, slots, with_weights):
    _, neighbors, weights = arrays
    graph = Graph.open(path)
    with Reader(graph, decode_threads=2) as reader:
        pipeline = pipeline_of(graph, reader, slots)
        demand = whole_demand(pipeline.directory("out").table, with_weights=with_weights)
        for sweep in range(3):
            seen = 0
            for view in pipeline.arrivals(pipeline.plan(demand, RATES), demand):
                np.testing.assert_array_equal(view.neighbors, neighbors[view.e0 : view.e1])
                if with_weights:
                    np.testing.assert_array_equal(view.weights, weights[view.e0 : view.e1])
                seen += view.e1 - view.e0
            assert seen == graph.edges
            read = sum(record.chunks_read for record in pipeline.records)
            assert read + sum(record.hits for record in pipeline.records) == graph.out.chunks
            if sweep == 0:
                assert sum(r.bytes_disk for r in pipeline.records) >= graph.out.chunk_bytes(with_weights).sum()
                assert min(r.decode_seconds for r in pipeline.records) > 0
            else:
                assert read == graph.out.chunks - {0: 0, 1: 2, None: graph.out.chunks}[slots]


def test_the_long_row_lies_in_several_partitions(arrays, path):
    graph = Graph.open(path)
    table = pipeline_of(graph, None, 0).directory("out").table
    holders = [p.number for p in table if p.v0 <= 1234 < p.v1]
    assert len(holders) >= 2
    assert table[holders[0]].v1 == 1235
    assert table[holders[1]].v0 == 1234


def test_only_the_chunks_wanted_are_read(arrays, path):
    _, neighbors, _ = arrays
    graph = Graph.open(path)
    with Reader(graph, decode_threads=2) as reader:
        pipeline = pipeline_of(graph, reader, None)
        marks = np.zeros(graph.out.chunks, np.uint8)
        marks[3] = 1
        per = np.add.reduceat(marks, np.arange(0, len(marks), 2), dtype=np.int64)
        demand = Demand("out", per, per * CHUNK, per, np.zeros(len(per)), marks)
        (view,) = pipeline.arrivals(pipeline.plan(demand, RATES), demand)
        assert view.record.chunks_read == 1
        np.testing.assert_array_equal(view.neighbors[CHUNK:], neighbors[3 * CHUNK : 4 * CHUNK])


@pytest.mark.parametrize("slots", [0, 1, None])
def test_a_damaged_chunk_stops_the_sweep_and_frees_everything(path, tmp_path, slots):
    broken = tmp_path / "broken.h5"
    broken.write_bytes(path.read_bytes())
    graph = Graph.open(broken)
    frames = graph.out.neighbors
    faults.flip_bit(broken, int(frames.offsets[2]) + int(frames.lengths[2]) // 2)
    with Reader(graph, decode_threads=2) as reader:
        pipeline = pipeline_of(graph, reader, slots)
        demand = whole_demand(pipeline.directory("out").table)
        with pytest.raises(RunError, match=r"broken\.h5"):
            list(pipeline.arrivals(pipeline.plan(demand, RATES), demand))
        assert pipeline.staging.slabs.free == 2
        assert not pipeline.cache.flights


@pytest.mark.parametrize(
    ("workers", "reads", "most"), [(1, 1, MOST_BYTES), (2, 8, MOST_BYTES), (3, 4, 1 << 20), (1, 1, 0)]
)
def test_the_reader_holds_no_more_than_the_layout_gives_it(path, workers, reads, most):
    graph = Graph.open(path)
    known = HostBudgetRequest(
        0, 0, workers=workers, frame_bytes=graph.frame_bytes[0], decoder_bytes=graph.frame_bytes[1]
    )
    with Reader(graph, decode_threads=workers, reads_in_flight=reads, most_bytes=most) as reader:
        assert reader.memory_bytes == reader_bytes(known, reads, workers, most)
        assert reader.memory_bytes <= reader_bytes(HostBudgetRequest(0, 0, workers=workers), reads)
