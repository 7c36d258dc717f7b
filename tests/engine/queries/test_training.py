"""The example of engine/queries/training.md: its accuracy, and that of the same model with a plain sampler."""

from __future__ import annotations

import random
import textwrap
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.source_code import ROOT, SHARED

pytestmark = pytest.mark.filterwarnings("ignore")
with warnings.catch_warnings(action="ignore"):  # PyTorch Geometric uses what PyTorch no longer wants
    torch = pytest.importorskip("torch")
    sampler = pytest.importorskip("torch_geometric.sampler.neighbor_sampler")
    base = pytest.importorskip("torch_geometric.sampler")

EDGES = SHARED / "facebook_combined.txt.gz"
LEAST = 0.975
"""Area under the ROC curve: 0.985 with both samplers, less where models are trained elsewhere."""


class PlainSampler(base.BaseSampler):  # type: ignore[misc, name-defined]
    """Neighbors of an undirected graph, drawn alike without replacement, one vertex after the other."""

    def __init__(self, ends: np.ndarray, fanouts: list[int]) -> None:
        self.fanouts, self.nodes = fanouts, int(ends.max()) + 1
        self.near: dict[int, list[int]] = defaultdict(list)
        for source, target in ends.tolist():
            self.near[source].append(target)
            self.near[target].append(source)

    def sample_from_nodes(self, index: Any, **kwargs: Any) -> Any:
        return sampler.node_sample(index, self.sample)

    def sample_from_edges(self, index: Any, neg_sampling: Any = None) -> Any:
        return sampler.edge_sample(index, self.sample, self.nodes, False, neg_sampling=neg_sampling)

    def sample(self, seeds: Any, times: Any) -> Any:
        node, row, col, first = seeds.tolist(), [], [], 0
        places = {vertex: place for place, vertex in enumerate(node)}
        for fanout in self.fanouts:
            last = len(node)
            for place in range(first, last):
                near = self.near[node[place]]
                for vertex in random.sample(near, min(fanout, len(near))):
                    if vertex not in places:
                        places[vertex] = len(node)
                        node.append(vertex)
                    row.append(places[vertex])
                    col.append(place)
            first = last
        return base.SamplerOutput(*map(torch.tensor, (node, row, col)), edge=None)


@pytest.mark.skipif(not EDGES.exists(), reason="needs shared/data")
def test_the_example_reaches_what_a_plain_sampler_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "engine" / "queries" / "training.md").read_text(encoding="utf-8")
    code = textwrap.dedent(page[page.index("    import numpy as np") :])
    plain = code.replace("stores[1]}", "PlainSampler(train, [15, 10])}")
    assert plain != code
    monkeypatch.chdir(tmp_path)
    (tmp_path / EDGES.name).symlink_to(EDGES)
    found = []
    for text in (code, plain):
        exec(text, {"PlainSampler": PlainSampler, "__name__": "example"})
        found.append(float(capsys.readouterr().out.split("AUC ")[1]))
    assert min(found) > LEAST
    assert found[0] == pytest.approx(found[1], abs=0.005)
