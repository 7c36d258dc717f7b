"""Programs that count edges: in int32 where a graph has few, with the same answers, types included."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from penstock.engine import Field, Program, run
from penstock.engine.planning.requirements import RunSetting, planned, requirements_within
from penstock.engine.program import precision
from penstock.engine.program.program import fields_of
from penstock.engine.programs.kcore import Coreness, KCore
from penstock.engine.programs.scc import SCC
from penstock.engine.resources.config import Config
from support.graphs import in_memory, skewed
from support.oracles import EdgeList

GRAPH = in_memory(EdgeList(300, *skewed(300, 900, 3), None, True))


@pytest.mark.parametrize(
    ("make", "saved", "kernels"), [(Coreness, 12, "host"), (lambda: KCore(3), 8, "reference"), (SCC, 8, "reference")]
)
def test_half_the_bytes_count_as_well(
    make: Callable[[], Program], saved: int, kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken() -> int:
        return planned(GRAPH, make(), RunSetting(Config()))[2].needs.state_bytes

    small, few = run(make(), GRAPH, kernels=kernels), taken()
    monkeypatch.setattr(precision, "MOST_EDGES", 0)
    large = run(make(), GRAPH, kernels=kernels)
    assert taken() - few == saved * GRAPH.vertices
    assert small.fields.keys() == large.fields.keys()
    for name, values in large.fields.items():
        assert small.fields[name].dtype == values.dtype
        assert np.array_equal(small.fields[name], values)
    assert small.top(5) == large.top(5)
    assert repr(small.columns()) == repr(large.columns())


def test_a_class_that_derives_from_one_has_the_types_that_it_says() -> None:
    class Mine(KCore):
        """It counts something else, too."""

        far = Field(np.int64, constant=True, fill=2**40)

    made, asks, _ = planned(GRAPH, Mine(3), RunSetting(Config()))
    assert type(made) is Mine
    assert {np.dtype(field.dtype) for field in fields_of(asks[0].program).values()} == {  # type: ignore[arg-type]
        np.dtype(np.uint32),
        np.dtype(np.int64),
    }
    assert requirements_within(GRAPH, made, RunSetting(Config()))[0][0].program is made
