"""The pipeline: right edges, bounded read-ahead, overlap as an order of events, and nothing left after a fault."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError, RunError
from penstock.transfer.planning.plan import make_plan
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.rates import Rates
from penstock.transfer.values.task import Demand, whole_demand
from support.covering import covering
from support.fakes import (
    CHUNK,
    FakeAdjacency,
    FakeGraph,
    FakeReader,
    check,
    demand_of,
    make,
    make_cache,
    pipeline_of,
    rows,
    wanted_edges,
)

RATES = Rates.host(2)


def run(pipeline, demand):
    """One iteration: returns the edges seen, ascending, each checked."""
    plan = pipeline.plan(demand, RATES)
    seen = [check(view, demand) for view in pipeline.arrivals(plan, demand)]
    assert len(pipeline.records) == len(seen)
    return np.sort(np.concatenate(seen)) if seen else np.zeros(0, int)


def poison(pipeline):
    """Fill every slab with edges that are nowhere in the graph."""
    for array in pipeline.staging.slabs._neighbors.values():
        array[:] = 0xFFFFFFFF
    for array in pipeline.staging.slabs._weights.values():
        array[:] = 0xFF


def all_free(pipeline, reader):
    return pipeline.staging.slabs.free == pipeline.options.slabs and not reader.open


@settings(max_examples=75)
@given(st.data())
def test_every_wanted_edge_arrives_once_whatever_the_memory(data):
    partitions, step = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 3))
    slots = data.draw(st.sampled_from([0, 1, 3, None]))
    pipeline, reader = make(
        partitions, step, slots, slabs=data.draw(st.integers(1, 3)), instant=data.draw(st.booleans()),
        tail=data.draw(st.integers(0, 7)), combine=data.draw(st.integers(1, 3)),
        ahead=data.draw(st.integers(1, 4)),
    )  # fmt: skip
    table = pipeline.directory("out").table
    total = -(-table.edges // CHUNK)
    for _ in range(4):
        everything = data.draw(st.booleans())
        chunks = None if everything else data.draw(st.sets(st.integers(0, total - 1)))
        demand = demand_of(table, chunks, with_weights=data.draw(st.booleans()))
        before = reader.chunks
        seen = run(pipeline, demand)
        poison(pipeline)
        wanted = np.arange(table.edges)
        if chunks is not None:
            wanted = wanted[np.isin(wanted // CHUNK, list(chunks))]
        np.testing.assert_array_equal(seen, wanted)
        assert all_free(pipeline, reader)
        read = sum(r.chunks_read for r in pipeline.records)
        assert read == reader.chunks - before
        assert read + sum(r.hits for r in pipeline.records) == (total if chunks is None else len(chunks))
        assert sum(r.edges for r in pipeline.records) == demand.active_edges.sum()


def test_once_loaded_one_view_over_one_array():
    pipeline, reader = make(partitions=6, slots=None)
    demand = demand_of(pipeline.directory("out").table)
    run(pipeline, demand)
    assert len(pipeline.records) == 6
    assert not pipeline.plan(demand_of(pipeline.directory("out").table, with_weights=True), RATES).whole
    plan = pipeline.plan(demand, RATES)
    (view,) = pipeline.arrivals(plan, demand)
    assert plan.whole
    assert (view.e0, view.e1) == (0, 93)
    assert len(view.neighbors) == 93
    assert view.record.hits == 12
    assert view.record.chunks_read == view.record.bytes_disk == 0
    assert reader.chunks == 12


def test_a_partly_fetched_partition_is_completed_and_only_what_is_missing_is_read():
    pipeline, reader = make(partitions=3, step=4, slots=None, tail=0)
    table = pipeline.directory("out").table
    run(pipeline, demand_of(table, [1, 2]))
    run(pipeline, demand_of(table, [0, 1, 2]))
    run(pipeline, demand_of(table, [1, 3, 9], with_weights=True))
    assert [t.chunks.tolist() for t in reader.tickets] == [[1, 2], [0], [1, 3], [9]]
    assert [r.hits for r in pipeline.records] == [0, 0]
    run(pipeline, demand_of(table, [0, 1, 3]))
    assert [(r.route, r.hits) for r in pipeline.records] == [("resident", 3)]


@pytest.mark.parametrize("slots", [0, 2, None])
def test_a_demand_of_nothing_is_planned_as_make_plan_does_and_changes_no_cache(slots):
    pipeline, _ = make(partitions=6, slots=slots)
    table = pipeline.directory("out").table
    run(pipeline, demand_of(table, [0, 3]))
    nothing, cache = demand_of(table, []), pipeline.cache
    before = cache.use.copy(), cache.starts.copy()
    residency = pipeline.residency(nothing)
    assert pipeline.plan(nothing, RATES) == make_plan(nothing, table, residency, RATES, pipeline.options)
    assert run(pipeline, nothing).size == 0
    assert not cache.pins.any()
    np.testing.assert_array_equal((cache.use, cache.starts), before)


@pytest.mark.parametrize("slots", [0, 2, None])
def test_a_demand_by_partitions_wants_all_chunks_of_those_and_none_of_others(slots):
    pipeline, reader = make(partitions=5, step=2, slots=slots, tail=0)
    active = np.array([3, 0, 5, 0, 0])
    demand = Demand("out", active, active, active, np.zeros(5))
    for _ in range(2):
        plan = pipeline.plan(demand, RATES)
        views = [(view.e0, view.e1) for view in pipeline.arrivals(plan, demand)]
    assert {chunk for ticket in reader.tickets for chunk in ticket.chunks} == {0, 1, 4, 5}
    assert views == {0: [(0, 16), (32, 48)], 2: [(0, 16), (32, 48)], None: [(0, 48)]}[slots]
    assert sum(record.hits for record in pipeline.records) == (0 if slots == 0 else 4)


def test_a_cache_without_a_slot_keeps_nothing_and_harms_nothing():
    graph = FakeGraph(FakeAdjacency(rows(90)))
    cache, reader = make_cache(graph, 2, 0), FakeReader(instant=True)
    pipeline = pipeline_of(graph, reader, cache, TransferOptions(2 * CHUNK, slabs=2))
    for _ in range(2):
        np.testing.assert_array_equal(run(pipeline, demand_of(pipeline.directory("out").table)), np.arange(90))
    assert reader.chunks == 24


def test_bytes_and_seconds_of_the_reader_are_recorded():
    pipeline, _ = make(partitions=1, step=2, slots=0, tail=0)
    run(pipeline, demand_of(pipeline.directory("out").table, [1], with_weights=True))
    (record,) = pipeline.records
    assert (record.bytes_disk, record.chunks_read, record.hits) == (20, 1, 0)
    assert (record.disk_seconds, record.decode_seconds) == (0.5, 0.25)
    assert (record.route, record.direction, record.partitions) == ("filter", "out", (0,))


@pytest.mark.parametrize("slots", [3, 6, 9])
def test_cyclic_sweeps_larger_than_the_cache_hit_by_its_share(slots):
    pipeline, reader = make(partitions=12, step=2, slots=slots, tail=0)
    demand = whole_demand(pipeline.directory("out").table)
    for _ in range(3):
        run(pipeline, demand)
    before = reader.chunks
    for _ in range(8):
        run(pipeline, demand)
    hit = 1 - (reader.chunks - before) / (8 * 24)
    assert hit >= 0.9 * slots / 12


def test_what_has_arrived_overtakes_where_the_order_is_free():
    pipeline, reader = make(partitions=4, slots=0, slabs=3, instant=False)
    demand = demand_of(pipeline.directory("out").table)
    arrivals = pipeline.arrivals(pipeline.plan(demand, RATES), demand)
    assert next(arrivals).e0 == 0  # nothing has arrived: wait for the first
    reader.tickets[2].arrive()
    assert next(arrivals).e0 == 32
    assert sorted(view.e0 for view in arrivals) == [16, 48]


def test_resident_tasks_fill_the_wait_for_the_first_reads():
    pipeline, reader = make(partitions=6, slots=2, slabs=2, instant=True)
    demand = demand_of(pipeline.directory("out").table)
    run(pipeline, demand)
    reader.instant = False
    arrivals = pipeline.arrivals(pipeline.plan(demand, RATES), demand)
    started = len(reader.tickets)
    assert next(arrivals).record.route == "resident"
    assert len(reader.tickets) == started + 2  # the disk works while the kernel has what is resident
    reader.tickets[-1].arrive()
    view = next(arrivals)  # an arrival goes before the next resident task: its slab returns to the disk
    assert (view.record.route, view.e0) == ("filter", 48)
    assert next(arrivals).record.route == "resident"
    assert len(reader.tickets) == started + 3
    assert [view.record.wait_seconds > 0 for view in arrivals] == [True] * 3


def test_disk_and_kernel_overlap_as_an_order_of_events():
    """While the consumer works on view i, the reads of views i+1.. are under way: the maximum, not the sum."""
    pipeline, reader = make(partitions=8, slots=0, slabs=3, instant=False)
    demand = demand_of(pipeline.directory("out").table)
    clock = []  # what the disk had been asked for each time the consumer began to work
    for view in pipeline.arrivals(pipeline.plan(demand, RATES), demand):
        asked = len(reader.tickets)
        clock.append(asked)
        for ticket in reader.tickets:  # the disk delivers while the kernel works
            ticket.arrive()
        assert view.record.wait_seconds >= 0
    assert clock == [3, 4, 5, 6, 7, 8, 8, 8]
    # only the first read was waited for: every later one arrived during a kernel
    assert [event for event in reader.log if event[0] == "wait"] == [("wait", 0)]


def test_a_slab_returns_only_when_the_next_view_is_asked_for():
    pipeline, reader = make(partitions=4, slots=0, slabs=1, instant=True)
    demand = demand_of(pipeline.directory("out").table)
    arrivals = pipeline.arrivals(pipeline.plan(demand, RATES), demand)
    view = next(arrivals)
    assert pipeline.staging.slabs.free == 0
    assert len(reader.tickets) == 1
    kept = view.neighbors.copy()
    assert np.array_equal(view.neighbors, kept)
    next(arrivals)
    assert len(reader.tickets) == 2
    assert np.shares_memory(view.neighbors, pipeline.staging.slabs._neighbors[0])


@covering("slots, failing, kind", [0, 2, None], range(5), ["failing", "refusing"])
def test_a_failed_read_frees_everything_and_names_its_cause(slots, failing, kind):
    pipeline, reader = make(partitions=5, slots=slots, slabs=3, instant=False)
    getattr(reader, kind).add(failing)
    demand = demand_of(pipeline.directory("out").table)
    error = RunError if kind == "failing" else OSError
    with pytest.raises(error, match=f"fetch {failing}|no fetch"):
        run(pipeline, demand)
    reader.tickets = [t for t in reader.tickets if t.number != failing] if kind == "refusing" else reader.tickets
    assert all_free(pipeline, reader)
    assert not pipeline.cache.flights
    reader.failing.clear()
    reader.refusing.clear()
    np.testing.assert_array_equal(run(pipeline, demand), np.arange(pipeline.directory("out").table.edges))


@pytest.mark.parametrize("slots", [0, 2, None])
@pytest.mark.parametrize("at", range(4))
def test_a_consumer_that_raises_frees_everything(slots, at):
    pipeline, reader = make(partitions=5, slots=slots, slabs=3, instant=False)
    demand = demand_of(pipeline.directory("out").table)

    def consume():
        for i, _ in enumerate(pipeline.arrivals(pipeline.plan(demand, RATES), demand)):
            if i == at:
                raise KeyError("kernel")

    with pytest.raises(KeyError):
        consume()
    assert all_free(pipeline, reader)
    assert not pipeline.cache.flights


@pytest.mark.parametrize("views", range(4))
def test_closing_the_generator_cancels_what_is_under_way(views):
    pipeline, reader = make(partitions=5, slots=0, slabs=2, instant=False)
    demand = demand_of(pipeline.directory("out").table)
    arrivals = pipeline.arrivals(pipeline.plan(demand, RATES), demand)
    for _ in range(views):
        next(arrivals)
    arrivals.close()
    assert all_free(pipeline, reader)
    assert len([e for e in reader.log if e[0] == "cancel"]) == (1 if views else 0)


def test_cancelling_one_that_fails_still_frees_the_others():
    pipeline, reader = make(partitions=5, slots=0, slabs=3, instant=False)
    demand = demand_of(pipeline.directory("out").table)
    arrivals = pipeline.arrivals(pipeline.plan(demand, RATES), demand)
    next(arrivals)

    def broken():
        raise OSError("cancel")

    reader.tickets[1].cancel = broken
    with pytest.raises(OSError, match="cancel"):
        arrivals.close()
    assert pipeline.staging.slabs.free == 3


def test_an_old_plan_is_refused_rather_than_answered_wrongly():
    pipeline, _ = make(partitions=4, slots=2)
    demand = demand_of(pipeline.directory("out").table)
    run(pipeline, demand)
    plan = pipeline.plan(demand, RATES)
    pipeline.close()
    pipeline.cache.replace([0], [3])
    with pytest.raises(RuntimeError, match="make a new plan"):
        list(pipeline.arrivals(plan, demand))
    assert pipeline.staging.slabs.free == 2


def test_no_slab_at_all_is_an_error_not_a_hang():
    pipeline, _ = make(partitions=2, slots=0, slabs=0, ahead=1)
    with pytest.raises(RunError, match="--host-memory"):
        run(pipeline, demand_of(pipeline.directory("out").table))


class TestTwoDevices:
    """Two pipelines over one graph, reader and cache."""

    def pair(self, slots, instant=False):
        graph = FakeGraph(FakeAdjacency(rows(90)))
        cache, reader = make_cache(graph, 2, slots), FakeReader(instant)
        options = TransferOptions(2 * CHUNK, slabs=2, ahead=2)
        return [pipeline_of(graph, reader, cache, options, f"host:{i}") for i in (0, 1)], reader

    @pytest.mark.parametrize("slots", [None, 2])
    def test_interleaved_walks_share_flights_into_the_cache(self, slots):
        (first, second), reader = self.pair(slots)
        demand = demand_of(first.directory("out").table)
        walks = [p.arrivals(p.plan(demand, RATES), demand) for p in (first, second)]
        seen = [[], []]
        while walks[0] or walks[1]:
            for i, walk in enumerate(walks):
                view = next(walk, None) if walk else None
                if view is None:
                    walks[i] = None
                else:
                    seen[i].append(check(view, demand))
        for edges in seen:
            np.testing.assert_array_equal(np.sort(np.concatenate(edges)), np.arange(90))
        assert reader.chunks == (12 if slots is None else 2 * 12 - 4)
        assert not reader.open
        assert first.staging.slabs.free == second.staging.slabs.free == 2

    def test_one_that_stops_does_not_cancel_what_the_other_waits_for(self):
        (first, second), reader = self.pair(None)
        demand = demand_of(first.directory("out").table)
        walks = [p.arrivals(p.plan(demand, RATES), demand) for p in (first, second)]
        next(walks[0])
        next(walks[1])
        walks[0].close()
        rest = [check(view, demand) for view in walks[1]]
        assert len(rest) == 5
        assert not reader.open
        assert not first.cache.flights

    def test_a_plan_of_one_is_not_evicted_by_the_other(self):
        (first, second), _ = self.pair(2, instant=True)
        table = first.directory("out").table
        low, high = demand_of(table, range(4)), demand_of(table, range(8, 12))
        run(first, low)
        plan = first.plan(low, RATES)
        for _ in range(8):
            run(second, high)
        assert [check(view, low).size for view in first.arrivals(plan, low)] == [32]
        first.close()
        for _ in range(8):
            run(second, high)
        assert [r.route for r in second.records] == ["resident"]


class TestInMemory:
    """Graphs whose arrays are in memory already."""

    def pipeline(self):
        graph = FakeGraph(FakeAdjacency(rows(5000), in_memory=True))
        return pipeline_of(graph, None, make_cache(graph, 64, 0), TransferOptions(64 * CHUNK, slabs=0)), graph

    def test_one_view_of_the_arrays_themselves(self):
        pipeline, graph = self.pipeline()
        demand = demand_of(pipeline.directory("out").table, with_weights=True)
        (view,) = pipeline.arrivals(pipeline.plan(demand, RATES), demand)
        assert view.neighbors is graph.out.arrays[0]
        assert view.weights is graph.out.arrays[1]
        assert (view.v0, view.v1) == (pipeline.directory("out").table.v0[0], pipeline.directory("out").table.v1[-1])
        assert pipeline.records == [view.record]
        assert check(view, demand).size == 5000

    def test_a_record_takes_the_kernel_seconds(self):
        pipeline, _ = self.pipeline()
        demand = demand_of(pipeline.directory("out").table)
        for view in pipeline.arrivals(pipeline.plan(demand, RATES), demand):
            view.record.kernel_seconds = 1.5
        assert pipeline.records[0].kernel_seconds == 1.5
        run(pipeline, demand)
        assert pipeline.records[0].kernel_seconds == 0

    def test_a_tiny_iteration_costs_little(self):
        """Thousands of iterations of a road network must not drown in Python: calls are counted."""
        pipeline, _ = self.pipeline()
        assert pipeline.directory("out").whole(False)
        one = np.array([3])
        demand = Demand("out", one, one, one, np.zeros(1))
        plan = pipeline.plan(demand, RATES)

        calls = 0

        def count(frame, event, argument):
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        for _ in pipeline.arrivals(plan, demand):
            pass
        sys.setprofile(None)
        assert calls < 60  # 38 on 2026-11-23


def test_an_undirected_graph_pulls_and_pushes_over_one_cached_adjacency():
    out = FakeAdjacency(rows(90))
    graph = FakeGraph(out, out)
    reader = FakeReader(instant=True)
    cache = make_cache(FakeGraph(out), 2, None)
    pipeline = pipeline_of(graph, reader, cache, TransferOptions(2 * CHUNK, slabs=0))
    run(pipeline, demand_of(pipeline.directory("out").table))
    demand = demand_of(pipeline.directory("in").table, direction="in")
    (view,) = pipeline.arrivals(pipeline.plan(demand, RATES), demand)
    assert view.record.direction == "in"
    assert reader.chunks == 12


def test_two_adjacencies_share_the_slots():
    graph = FakeGraph(FakeAdjacency(rows(90)), FakeAdjacency(rows(90), "in"))
    reader = FakeReader(instant=True)
    cache = make_cache(graph, 2, 6)
    pipeline = pipeline_of(graph, reader, cache, TransferOptions(2 * CHUNK, slabs=2))
    for _ in range(3):
        run(pipeline, demand_of(pipeline.directory("in").table, direction="in"))
    assert {r.route for r in pipeline.records} == {"resident"}
    for _ in range(6):
        run(pipeline, demand_of(pipeline.directory("out").table))
    assert {r.route for r in pipeline.records} == {"resident"}


def test_a_graph_without_in_edges_says_how_to_get_them():
    pipeline, _ = make()
    with pytest.raises(InputError, match="--direction both"):
        pipeline.directory("in")


@pytest.mark.parametrize("slots", [0, None])
def test_no_edges_no_views(slots):
    graph = FakeGraph(FakeAdjacency([0, 0, 0]))
    cache = make_cache(graph, 2, slots)
    pipeline = pipeline_of(graph, FakeReader(), cache, TransferOptions(2 * CHUNK))
    demand = whole_demand(pipeline.directory("out").table)
    assert list(pipeline.arrivals(pipeline.plan(demand, RATES), demand)) == []


def test_a_view_shows_leftovers_only_where_nothing_is_wanted():
    pipeline, _ = make(partitions=1, step=4, slots=0, slabs=1, tail=0)
    table = pipeline.directory("out").table
    run(pipeline, demand_of(table))
    poison(pipeline)
    demand = demand_of(table, [1, 3])
    (view,) = pipeline.arrivals(pipeline.plan(demand, RATES), demand)
    inside = np.isin(np.arange(32), wanted_edges(view, demand))
    assert (view.neighbors[~inside] == 0xFFFFFFFF).all()
    assert (view.neighbors[inside] != 0xFFFFFFFF).all()
