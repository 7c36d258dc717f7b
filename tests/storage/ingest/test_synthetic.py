"""Generated graphs: the same whatever the threads, in range, of the promised shape and size."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.ingest import synthetic
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.synthetic import SyntheticSource, below, draw, grid, rmat, scrambled, uniform, web

MODELS: dict[str, Callable[[int], SyntheticSource]] = {
    "rmat": lambda seed: rmat(10, 8, seed, weights=(1, 63)),
    "rmat-plain": lambda seed: rmat(11, 4, seed, scramble=False),
    "uniform": lambda seed: uniform(700, 9000, seed),
    "grid": lambda seed: grid(50, 70, seed),
    "web": lambda seed: web(1000, 8, seed, weights=(0, 300)),
}


def whole(source: SyntheticSource) -> EdgeBatch:
    batches = list(source.batches())
    weights = None
    if source.weight_dtype is not None:
        weights = np.concatenate([batch.weights for batch in batches])  # type: ignore[misc]
    return EdgeBatch(
        np.concatenate([batch.sources for batch in batches]),
        np.concatenate([batch.targets for batch in batches]),
        weights,
    )


@pytest.mark.parametrize("model", MODELS)
def test_threads_and_batches_do_not_change_the_graph(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = MODELS[model](5)
    expected = source.batch(0, source.edges)
    monkeypatch.setattr(synthetic, "BATCH_EDGES", 999)
    monkeypatch.setattr(SyntheticSource.batch, "__defaults__", (999,))
    for threads in (1, 3):
        source.threads = threads
        got = whole(source)
        np.testing.assert_array_equal(got.sources, expected.sources)
        np.testing.assert_array_equal(got.targets, expected.targets)
        assert (got.weights is None) == (expected.weights is None)
        if got.weights is not None:
            np.testing.assert_array_equal(got.weights, expected.weights)
    assert source.bytes_done == source.total_bytes


@pytest.mark.parametrize("model", MODELS)
def test_counts_and_ranges_are_as_promised(model: str) -> None:
    source = MODELS[model](1)
    edges = whole(source)
    assert len(edges.sources) == len(edges.targets) == source.edges
    assert edges.sources.dtype == edges.targets.dtype == np.uint32
    assert max(edges.sources.max(), edges.targets.max()) < source.known_vertices
    if source.weight_range is not None:
        assert edges.weights is not None
        assert (edges.weights.min(), edges.weights.max()) == source.weight_range


@pytest.mark.parametrize("model", [name for name in MODELS if name != "grid"])
def test_another_seed_is_another_graph(model: str) -> None:
    first, second = whole(MODELS[model](1)), whole(MODELS[model](2))
    assert np.mean(first.targets == second.targets) < 0.1


def test_rmat_quadrants_have_their_shares() -> None:
    edges = rmat(3, 1 << 16, 3, scramble=False).batch(0)
    for level in range(3):
        upper = (edges.sources >> level & 1) * 2 + (edges.targets >> level & 1)
        share = np.bincount(upper, minlength=4) / len(upper)
        np.testing.assert_allclose(share, [0.57, 0.19, 0.19, 0.05], atol=0.004)


@pytest.mark.parametrize("scale", [0, 1, 2, 7, 12])
def test_scrambling_only_renames(scale: int) -> None:
    keys = np.array([7, 11, 13, 17, 19], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    names = [scrambled(np.uint64(v), np.uint64(scale), keys) for v in range(1 << scale)]
    assert sorted(names) == list(range(1 << scale))


def test_scrambled_rmat_is_the_plain_one_renamed() -> None:
    plain, renamed = rmat(12, 16, 9, scramble=False).batch(0), rmat(12, 16, 9).batch(0)
    names = {int(a): int(b) for a, b in zip(plain.sources, renamed.sources, strict=True)}
    assert len(set(names.values())) == len(names)
    assert all(names.get(int(a), int(b)) == int(b) for a, b in zip(plain.targets, renamed.targets, strict=True))
    assert not np.array_equal(plain.sources, renamed.sources)


def test_rmat_degrees_are_skewed() -> None:
    degrees = np.bincount(rmat(14, 16, 1).batch(0).sources, minlength=1 << 14)
    assert degrees.max() > 40 * degrees.mean()
    assert np.mean(degrees == 0) > 0.2


def test_uniform_ends_are_even() -> None:
    edges = uniform(10, 100_000, 4).batch(0)
    pairs = np.bincount(edges.sources * np.uint32(10) + edges.targets, minlength=100)
    assert abs(pairs - 1000).max() < 160


def test_a_grid_joins_right_and_lower_neighbors_once() -> None:
    source = grid(3, 4)
    edges = whole(source)
    pairs = {(int(a), int(b)) for a, b in zip(edges.sources, edges.targets, strict=True)}
    across = {(v, w) for row in range(3) for v, w in pairwise(range(4 * row, 4 * row + 4))}
    assert pairs == across | {(v, v + 4) for v in range(8)}
    assert source.undirected
    assert len(edges.sources) == len(pairs)


def test_web_is_local_skewed_and_has_pages_without_links() -> None:
    edges = whole(web(1 << 14, 16, 1))
    outgoing = np.bincount(edges.sources, minlength=1 << 14)
    incoming = np.bincount(edges.targets, minlength=1 << 14)
    assert outgoing.mean() == 16
    assert 0.05 < np.mean(outgoing == 0) < 0.3
    assert incoming.max() > 50 * incoming.mean()
    apart = np.abs(edges.sources.astype(np.int64) - edges.targets)
    assert np.mean(apart < 1024) > 0.35


def test_web_pages_copy_from_neighbors() -> None:
    edges = whole(web(4096, 16, 1))
    lists = [set(edges.targets[edges.sources == page].tolist()) for page in range(1024, 1088)]
    shared = [max(len(links & other) for other in lists if other is not links) for links in lists if len(links) > 8]
    assert np.mean(shared) > 2


@pytest.mark.parametrize(
    "source",
    [rmat(0, 3), rmat(5, 0), uniform(0, 0), uniform(1, 5), grid(0, 9), grid(1, 5), grid(5, 1),
     web(0), web(1, 4), web(63, 1), web(5, 0)],
    ids=lambda source: source.name,
)  # fmt: skip
def test_the_smallest_graphs_are_graphs(source: SyntheticSource) -> None:
    batches = list(source.batches())
    assert sum(len(batch) for batch in batches) == source.edges
    for batch in batches:
        assert max(batch.sources.max(), batch.targets.max()) < source.known_vertices


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: rmat(41), "scale 41"),
        (lambda: rmat(4, -1), "edge factor -1"),
        (lambda: rmat(4, quadrants=(0.9, 0.2, 0.1)), "quadrants"),
        (lambda: uniform(0, 1), "at least 1"),
        (lambda: uniform(5, -1), "edges -1"),
        (lambda: grid(-1, 5), "rows -1"),
        (lambda: web(-4), "vertices -4"),
        (lambda: uniform(5, 5, weights=(9, 3)), r"weights 9\.\.3"),
        (lambda: uniform(5, 5, weights=(-1, 3)), r"weights -1\.\.3"),
    ],
)
def test_impossible_graphs_are_refused(make: Callable[[], SyntheticSource], named: str) -> None:
    with pytest.raises(InputError, match=named):
        make()


def test_wide_ids_beyond_32_bits() -> None:
    edges = rmat(34, 1, 1).batch(12345, 1000)
    assert edges.sources.dtype == np.uint64
    assert 1 << 33 < edges.sources.max() < 1 << 34


def test_words_are_scaled_exactly() -> None:
    words = [0, 1, (1 << 64) - 1, 0x9E3779B97F4A7C15, 1 << 63, 0xFFFFFFFF00000001]
    for bound in (1, 2, 3, 1000, (1 << 32) - 1, 1 << 32, (1 << 40) - 7):
        for word in words:
            assert below(np.uint64(word), np.uint64(bound)) == word * bound >> 64


def test_words_are_splitmix64() -> None:
    assert draw(np.uint64(1234567), np.uint64(0)) == 6457827717110365317
    assert draw(np.uint64(1234567), np.uint64(4)) == 16408922859458223821


def test_stopping_early_ends_the_threads() -> None:
    source = rmat(22, 16)
    batches = source.batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert source.bytes_done < source.total_bytes
