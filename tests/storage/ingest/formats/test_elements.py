"""GraphML and GML: what networkx writes is read the same; what no edge list holds is refused with its line."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import convert
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats import elements
from penstock.storage.ingest.open_source import open_source
from support.reading import edges_of

FUZZED = {
    "graphml": [
        b'<graphml><key id="d0" for="edge" attr.name="weight"><default>1</default></key><graph edgedefault="directed">'
        b'<node id="0"/><edge source="0" target="1"><data key="d0">2</data></edge></graph></graphml>'
    ],
    "gml": [b"graph [\n  directed 1\n  node [ id 0 ]\n  node [ ]\n  edge [ source 0 target 1 weight 2.5 ]\n]\n"],
}
"""Valid files, which `test_fuzz.py` damages."""

TEXTS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1, max_size=6)
XML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'
KEY = '<key id="d0" for="edge" attr.name="weight" attr.type="double">{}</key>'


@st.composite
def graphs(draw: st.DrawFn, names: bool) -> Any:
    """A multigraph with or without direction and weights; some nodes have no edge."""
    made = draw(st.sampled_from([nx.MultiGraph, nx.MultiDiGraph]))()
    ids = (
        st.text("abcé&<> \"'", min_size=1, max_size=3).filter(lambda text: text == text.strip())
        if names
        else st.integers(0, 30)
    )
    nodes = draw(st.lists(ids, min_size=1, max_size=6, unique=True))
    made.add_nodes_from(nodes, label='x [ ] " # y')
    weighted = draw(st.booleans())
    for _ in range(draw(st.integers(0, 10))):
        ends = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        made.add_edge(
            *ends, **({"weight": draw(st.floats(-9, 9) | st.integers(-9, 9))} if weighted else {}), note=draw(TEXTS)
        )
    return made


def expected(graph: Any, kind: Callable[[Any], Any], *, weights: bool) -> list[Any]:
    found = [(kind(a), kind(b), *((data["weight"],) if weights else ())) for a, b, data in graph.edges(data=True)]
    return sorted(found if graph.is_directed() else [(*sorted(edge[:2]), *edge[2:]) for edge in found])


def read(path: Path, graph: Any, **options: Any) -> list[Any]:
    edges, source = edges_of(path, **options)
    assert source.undirected is not graph.is_directed()
    return sorted(edges if graph.is_directed() else [(*sorted(edge[:2]), *edge[2:]) for edge in edges])


@settings(max_examples=30)
@given(st.data(), st.booleans(), st.sampled_from([16, 1 << 12]))
def test_graphml_of_networkx(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, names: bool, block: int
) -> None:
    path = tmp_path_factory.mktemp("x") / "g.graphml"
    graph = data.draw(graphs(names))
    nx.write_graphml(graph, path)
    weights = any("weight" in found for _, _, found in graph.edges(data=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elements, "BLOCK_BYTES", block)
        assert read(path, graph, string_ids=names) == expected(graph, str if names else int, weights=weights)


@settings(max_examples=30)
@given(st.data(), st.sampled_from([16, 1 << 12]))
def test_gml_of_networkx(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, block: int) -> None:
    path = tmp_path_factory.mktemp("x") / "g.gml"
    graph = nx.convert_node_labels_to_integers(data.draw(graphs(False)))
    nx.write_gml(graph, path, stringizer=str)
    weights = any("weight" in found for _, _, found in graph.edges(data=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elements, "BLOCK_BYTES", block)
        assert read(path, graph, weights=weights) == expected(graph, int, weights=weights)


def test_nodes_without_edges_are_vertices(tmp_path: Path) -> None:
    graph = nx.Graph([("a", "b")])
    graph.add_node("lone")
    nx.write_graphml(graph, tmp_path / "g.graphml.gz")
    made = convert(tmp_path / "g.graphml.gz", tmp_path / "g.h5")
    assert (made.original_ids().tolist(), made.edges, made.directed) == (["a", "b", "lone"], 2, False)
    with gzip.open(tmp_path / "n.gml.gz", "wt") as file:
        file.write('Creator "me"\ngraph [ node [ id 1 ] node [ id 5 label "x" ] edge [ source 1 target 1 ] ]\n# end')
    assert convert(tmp_path / "n.gml.gz", tmp_path / "n.h5").original_ids().tolist() == [1, 5]
    assert convert(tmp_path / "n.gml.gz", tmp_path / "all.h5", renumber=False).vertices == 6


def test_weights_by_name(tmp_path: Path) -> None:
    path = tmp_path / "lesmis"
    path.write_text("graph [ directed 1 node [ id 0 ] edge [ source 0 target 1 value 2.5 graphics [ w 7 ] ] ]")
    assert edges_of(path)[0] == [(0, 1)]
    assert edges_of(path)[1].passed_over == "value"  # type: ignore[attr-defined]
    assert edges_of(path, weights=True)[0] == [(0, 1, 2.5)]
    assert edges_of(path, columns=("source", "target", "value"))[0] == [(0, 1, 2.5)]
    with pytest.raises(InputError, match=r"line 1: the first edge has no km \(attributes: value\); see --columns"):
        edges_of(path, columns=("source", "target", "km"))
    path.write_text(
        XML.format(
            KEY.format("<default> 7 </default>")
            + '<key id="d1" for="edge"/><graph edgedefault="directed"><edge source="1" target="2"/>'
            '<edge source="2" target="3" directed="false"><data key="d0">4</data><data key="d1">x</data></edge></graph>'
        )
    )
    assert edges_of(path)[0] == [(1, 2, 7), (2, 3, 4), (3, 2, 4)]
    assert edges_of(path, weights=False)[0] == [(1, 2), (2, 3), (3, 2)]
    with pytest.raises(InputError, match=r"edges have no attribute 'km' \(there is: weight\); see --columns"):
        edges_of(path, columns=("source", "target", "km"))


GRAPH = '<graph edgedefault="undirected">{}</graph>'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (XML.format(GRAPH.format("\n<edge source='1' target='2' directed='true'/>")), "line 2: this edge is directed"),
        (XML.format(GRAPH.format(GRAPH.format(""))), "several graphs, or one inside another"),
        (XML.format(GRAPH.format("<hyperedge/>")), "it has a hyperedge"),
        (XML.format(GRAPH.format("<edge source='1'/>")), "this edge has no target"),
        (XML.format(GRAPH.format("<node id='1'/>\n<node id='x'/>")), "line 2: node 'x' is no number; --string-ids"),
        (XML.format(GRAPH.format("<edge source='1' target='2'>")), "the XML is broken (mismatched tag)"),
        (XML.format(GRAPH.format(""))[:-5], "the file is truncated or damaged"),
        (XML.format(""), "has no <graph>"),
        (
            XML.format(KEY.format("") + GRAPH.format("<edge source='1' target='2'/>")),
            "weight '' is missing; --no-weights",
        ),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]>" + XML.format(GRAPH.format("")), "its DOCTYPE declares entities"),
        ("graph [ node [ id 1 ]\n node [ id -2 ] ]", "line 2: node '-2' is negative"),
        ("graph [ edge [ source 1 target ] ]", "target has no value"),
        ("graph [ edge [ source 1 ] ]", "this edge has no target"),
        ("graph [ node [ id 1 ]", "the file ends inside of a list"),
        ("graph [ node [ id 1 ] directed 1 ]", "directed is behind nodes or edges"),
        ("graph [ ] graph [ ]", "it has several graphs"),
        ('graph [ "x" 1 ]', "is where the name of a value is due"),
        ("graph [ directed 2 ]", "directed is '2'; it must be 0 or 1"),
        ("graph [ ] ]", "a list is closed that is not open"),
    ],
)
def test_what_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        edges_of(path)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(str(path))


LONG = elements.LONGEST_VALUE + (300 << 10)
KEYS = '<key id="k" for="all" attr.name="weight"/>'
INNER = XML.format(KEYS + GRAPH.format("{}"))
LONG_GRAPHML = {
    "attribute": INNER.format(f'<node id="{"x" * LONG}"/>'),
    "blanks in a tag": INNER.format(f'<node{" " * LONG}id="1"/>'),
    "data": INNER.format(f'<edge source="1" target="2"><data key="k">{"7" * LONG}</data></edge>'),
    "CDATA": INNER.format(f'<edge source="1" target="2"><data key="k"><![CDATA[{"7" * LONG}]]></data></edge>'),
    "default": XML.format(f'<key id="k" for="all" attr.name="weight"><default>{"7" * LONG}</default></key>'),
    "comment": INNER.format(f"<!--{'x' * LONG}-->"),
    "instruction": INNER.format(f"<?x {'x' * LONG}?>"),
    "DOCTYPE": f'<!DOCTYPE graphml SYSTEM "{"x" * LONG}">{INNER}',
    "depth": INNER.format(f'<data key="k">{"<a>" * 1000}'),
    "ports": INNER.format('<node id="1">' + '<port name="1">' * 1000),
    "names": INNER.format(f'<data key="k">{"".join(f"<a{i}/>" for i in range(20_000))}</data>'),
    "keys": XML.format("".join(f'<key id="a{i}"/>' for i in range(20_000)) + GRAPH),
    "key": XML.format(f'<key id="{"x" * 5000}"/>' * 2 + GRAPH),
    "element": INNER.format(f"<{'x' * 5000}/>"),
    "text": INNER.format("x" * 5000),
    "direction": INNER.format(f'<edge source="1" target="2" directed="{"x" * 5000}"/>'),
    "weight": INNER.format(f'<edge source="1" target="2"><data key="k">{"x" * 5000}</data></edge>'),
    "id": INNER.format(f'<node id="1"/><node id="{"x" * 5000}"/>'),
}
LONG_GML = {
    "text": f'graph [ node [ id 1 label "{"x" * LONG}" ] ]',
    "word": f"graph [ node [ id {'1' * LONG} ] ]",
    "comment": f"# {'x' * LONG}\ngraph [ ]",
    "open text": f'graph [ name "{"x" * LONG}',
    "depth": "graph [ " + "a [ " * 1000,
    "values": f"graph [ node [ id 1 {''.join(f'a{i:030} 1 ' for i in range(36_000))}] ]",
    "name": f"graph [ {'x' * 5000} ]",
    "no name": f"graph [ {'-' * 5000} ]",
    "value": f"graph [ a {'x' * 5000} ]",
    "direction": f"graph [ directed {'2' * 5000} ]",
    "node": f"graph [ node {'2' * 5000} ]",
    "id": f'graph [ node [ id "{"x" * 5000}" ] ]',
    "digits": f"graph [ node [ id {'9' * 5000} ] ]",
    "weight": f'graph [ edge [ source 1 target 1 weight "{"x" * 5000}" ] ]',
}
LONG_FILES = [("graphml", name) for name in LONG_GRAPHML] + [("gml", name) for name in LONG_GML]


@pytest.mark.parametrize(("kind", "name"), LONG_FILES)
def test_what_could_be_of_any_size_is_refused_in_few_words(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text((LONG_GRAPHML if kind == "graphml" else LONG_GML)[name])
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            list(open_source([path], kind, IngestOptions(weights=True)).batches())
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < len(str(path)) + 500


def test_what_is_not_read_may_be_long(tmp_path: Path) -> None:
    path = tmp_path / "file.graphml"
    path.write_text(
        INNER.format(f'<data key="k">{"x" * LONG}</data>{" " * LONG}<desc>{"y" * LONG}</desc><node id="1"/>')
    )
    ((batch,),) = [list(open_source([path], None, IngestOptions()).batches())]
    assert batch.lone is not None
    assert batch.lone.tolist() == [1]
    path = tmp_path / "file.gml"
    path.write_text(f"graph [{' ' * LONG} node [ id 1 ]{chr(10) * LONG} ]")
    assert convert(path, tmp_path / "g.h5", renumber=True).original_ids().tolist() == [1]


def test_numbers_of_many_digits_are_read_as_text_has_them(tmp_path: Path) -> None:
    zeros = "0" * 5000
    for name, text in (
        ("a.gml", f"graph [ edge [ source {zeros}1 target 2 ] ]"),
        ("a.graphml", INNER.format(f'<edge source="{zeros}1" target="2"/>')),
        ("a.txt", f"{zeros}1 2\n"),
    ):
        (tmp_path / name).write_text(text)
        assert edges_of(tmp_path / name, weights=False)[0] == [(1, 2)]


def test_weights_of_several_types_are_one(tmp_path: Path) -> None:
    """networkx writes a key for each type of a name."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 1), (1, 2, 2.5), (2, 0, 3)])
    nx.write_graphml(graph, tmp_path / "g.graphml")
    assert (tmp_path / "g.graphml").read_text().count('attr.name="weight"') == 2
    assert edges_of(tmp_path / "g.graphml")[0] == [(0, 1, 1), (1, 2, 2.5), (2, 0, 3)]


def test_nodes_without_ids_come_behind_all_ids(tmp_path: Path) -> None:
    path = tmp_path / "g.gml"
    path.write_text("graph [ node [ ] edge [ source 7 target 9 id 99 ] node [ id 4 ]" + " node [ ]" * 40_000 + " ]")
    made = convert(path, tmp_path / "g.h5", renumber=True)
    assert made.original_ids().tolist() == [4, 7, 9, *range(10, 40_011)]
    path.write_text("graph [ node [ id 1 label 2 ] node [ label 3 ] ]")
    with pytest.raises(InputError, match="this node has no id"):
        convert(path, tmp_path / "g.h5", vertices=path, force=True)
