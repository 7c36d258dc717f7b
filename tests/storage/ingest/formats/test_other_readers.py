"""GraphML and GML beside the readers of networkx and igraph: what each of the three accepts, and why where they differ.

The cases are those that their own tests have (networkx 3.6: `test_graphml.py`, `test_gml.py`; igraph 1.0:
`igraph_read_graph_graphml.c`, `gml.c`, `*_invalid_inputs.c`), written anew and small. networkx's column is held to
networkx itself; igraph's is what igraph 1.0.0 did with each file. A reader that stops with any error refuses.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source


class Case(NamedTuple):
    """A file, what it is here (edges and lone vertices, or words of the error), and whether two others accept it."""

    text: str
    here: list[Any] | str
    networkx: bool
    igraph: bool
    why: str = ""


def xml(body: str, default: str = ' edgedefault="undirected"', before: str = "", behind: str = "") -> str:
    """A document with one graph."""
    return f"<graphml>{before}<graph{default}>{body}</graph>{behind}</graphml>"


KEY = '<key id="d0" for="edge" attr.name="weight" attr.type="double"/>'
NODES = '<node id="1"/><node id="2"/>'
EDGE = '<edge source="1" target="2"{}/>'


def weighted(*values: str, key: str = "d0") -> str:
    """An edge with values of a key."""
    data = "".join(f'<data key="{key}">{value}</data>' for value in values)
    return f'<edge source="1" target="2">{data}</edge>'


PAIR = [(1, 2), 1, 2]
STREAM = "a stream is read once and knows no more than what came before"
GRAPHML = {
    "a graph": Case(xml(NODES + EDGE.format("")), PAIR, True, True),
    "without nodes": Case(xml(""), [], True, True),
    "of another namespace": Case(
        xml(NODES).replace("<graphml>", '<graphml xmlns="http://graphml.graphdrawing.org/xmlns/graphml">'),
        [1, 2], False, False, "older writers have this one; the root says what it is",
    ),
    "with a prefix": Case(
        '<g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns"><g:graph edgedefault="undirected"><g:node id="1"/>'
        "</g:graph></g:graphml>", [1], True, True,
    ),
    "no graph": Case("<graphml/>", "has no <graph>", False, False),
    "no root": Case('<graph edgedefault="directed"/>', "<graph> is not an element that GraphML has at", False, False),
    "nothing": Case("", "no element found", False, False),
    "no XML": Case("graph [ ]", "the XML is broken", False, False),
    "cut off": Case(xml(NODES)[:-5], "truncated", False, False),
    "an unknown entity": Case(xml('<node id="&a;"/>'), "undefined entity", False, False),
    "an entity of its own": Case(
        '<!DOCTYPE graphml [<!ENTITY a "1">]>' + xml('<node id="&a;"/>'), "its DOCTYPE declares", True, False,
        "what is declared could be of any size",
    ),
    "an element declared": Case(
        "<!DOCTYPE graphml [<!ELEMENT graphml ANY>]>" + xml(NODES), "its DOCTYPE declares", True, True,
        "defaults of attributes could be of any size",
    ),
    "a DOCTYPE elsewhere": Case('<!DOCTYPE graphml SYSTEM "graphml.dtd">' + xml(NODES), [1, 2], True, True),
    "two graphs": Case(
        xml(NODES, behind='<graph edgedefault="directed"/>'), "several graphs", True, True,
        "they read the first and are silent about the others",
    ),
    "a graph in a node": Case(
        xml('<node id="1"><graph edgedefault="undirected"/></node>'), "one inside another", True, True,
        "they lose its nodes",
    ),
    "a hyperedge": Case(xml(NODES + "<hyperedge/>"), "hyperedge", False, True, "igraph loses it"),
    "a key twice": Case(
        xml(NODES + weighted("5"), before=KEY + KEY), "key 'd0' is declared twice", True, False, "one of them is meant"
    ),
    "two keys of one name": Case(
        xml(
            NODES + weighted("5.5") + weighted("2", key="d1"),
            before=KEY + '<key id="d1" for="edge" attr.name="weight" attr.type="long"/>',
        ),
        [(1, 2, 5.5), (1, 2, 2.0), 1, 2], True, False, "networkx writes them for weights of mixed types",
    ),
    "data of no key": Case(
        xml(NODES + weighted("5")), "key 'd0' of this data is not declared before", False, True, "igraph loses it"
    ),
    "data without a key": Case(xml("<data>5</data>"), "this data has no key", False, True, "igraph overlooks it"),
    "a key behind the graph": Case(
        xml(NODES + weighted("5"), behind=KEY), "not declared before", True, True, f"{STREAM}; igraph reads NaN"
    ),
    "a key behind an empty graph": Case(xml("", behind=KEY), "this key is behind the graph", True, True, STREAM),
    "a key without an id": Case(xml("", before='<key for="node"/>'), "this key has no id", False, False),
    "a key for something else": Case(
        xml("", before='<key id="a" for="edges" attr.name="weight"/>'), "this key is for 'edges'", True, False,
        "weights are lost",
    ),
    "a key for all": Case(
        xml(NODES + weighted("5"), before='<key id="d0" attr.name="weight" attr.type="double"/>'),
        [(1, 2, 5.0), 1, 2], True, True, "igraph loses it",
    ),
    "a key of a program": Case(
        xml(NODES, before='<key id="a" for="node" yfiles.type="nodegraphics"/>'), [1, 2], True, True
    ),
    "a weight twice": Case(
        xml(NODES + weighted("1", "2"), before=KEY), "this edge has two values of 'weight'", True, True,
        "they take the last; which is meant is not known",
    ),
    "a weight that is a word": Case(xml(NODES + weighted("much"), before=KEY), "weight 'much' is not", False, False),
    "an empty weight": Case(
        xml(NODES + weighted(""), before=KEY), "weight '' is not a number", True, True, "they have '' and NaN"
    ),
    "no weight": Case(
        xml(NODES + EDGE.format(""), before=KEY), "is missing; --no-weights", True, True, "igraph has NaN"
    ),
    "a node without an id": Case(xml("<node/>"), "this node has no id", True, False, "networkx has a node None"),
    "a node twice": Case(xml('<node id="1"/><node id="1"/>'), [1, 1], True, True, "it is one vertex"),
    "an edge to an unknown node": Case(xml(EDGE.format("")), [(1, 2)], True, True, "it is a vertex"),
    "an edge without a target": Case(
        xml('<edge source="1"/>'), "this edge has no target", True, False, "networkx has a node None"
    ),
    "an unknown element": Case(
        xml('<nod id="3"/>'), "<nod> is not an element that GraphML has in <graph>", True, True, "they lose a vertex"
    ),
    "an unknown element in a node": Case(
        xml('<node id="1"><edge source="1" target="2"/></node>'), "<edge> is not an element", True, True,
        "they lose an edge",
    ),
    "a node outside of the graph": Case(xml("", before=NODES), "<node> is not an element", True, True, "lost"),
    "any element in data": Case(
        xml('<node id="1"><data key="a"><node id="9"/></data></node>', before='<key id="a" for="node" attr.name="a"/>'),
        [1], True, True,
    ),
    "text in the graph": Case(xml("1 2" + NODES), "the text '1 2' is where an element is due", True, True, "lost"),
    "a port and descriptions": Case(
        xml('<desc>a</desc><node id="1"><desc>b</desc><port name="c"/></node>', before="<desc/>"), [1], True, True
    ),
    "no edgedefault": Case(xml(NODES + EDGE.format(""), ""), PAIR, True, True, "it is undirected"),
    "another edgedefault": Case(
        xml(NODES, ' edgedefault="both"'), "edgedefault is 'both'", True, True, "they take it for undirected"
    ),
    "a directed edge in an undirected graph": Case(
        xml(EDGE.format(' directed="true"')), "this edge is directed", False, True, "igraph makes it undirected"
    ),
    "an undirected edge in a directed graph": Case(
        xml(NODES + EDGE.format(' directed="false"'), ' edgedefault="directed"'), [(1, 2), (2, 1), 1, 2], False, True,
        "it leads both ways; igraph makes it directed",
    ),
    "an edge of unknown direction": Case(
        xml(EDGE.format(' directed="maybe"')), "directed is 'maybe'", True, True, "they overlook it"
    ),
}  # fmt: skip
GML = {
    "a graph": Case("graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] ]", PAIR, True, True),
    "without blanks": Case("graph[node[id 1]node[id 2]edge[source 1 target 2]]", PAIR, True, True),
    "without nodes": Case("graph [ ]", [], True, True),
    "no graph": Case('Creator "x"', "has no graph [ ... ]", False, False),
    "nothing": Case("", "has no graph [ ... ]", False, False),
    "a graph that is a number": Case("graph 1", "has no graph [ ... ]", False, False),
    "a graph that is not opened": Case("graph ]", "graph has no value", False, False),
    "two graphs": Case("graph [ ] graph [ ]", "several graphs", False, True, "igraph is silent about the second"),
    "a word behind": Case("graph [ ] graph", "it is truncated", False, False),
    "nodes without an id": Case(
        'graph [ node [ ] node [ id 3 ] node [ label "x" ] ]', [3, 4, 5], False, True,
        "the format has them; no edge names them, and they get ids above all others",
    ),
    "a node with two ids": Case("graph [ node [ id 1 id 2 ] ]", "this node has two values of id", False, False),
    "a node twice": Case(
        "graph [ node [ id 1 ] node [ id 1 ] ]", [1, 1], False, False,
        "it is one vertex; to see it takes memory for every node",
    ),
    "an id that is text": Case('graph [ node [ id "a" ] ]', "node 'a' is no number", True, False, "as in the format"),
    "an id in quotes": Case('graph [ node [ id "1" ] ]', [1], True, False, "it is a number"),
    "an id that is a word": Case("graph [ node [ id a ] ]", "a is where the value of id is", True, False, "as above"),
    "an id with a point": Case("graph [ node [ id 1.5 ] ]", "node '1.5' is not a whole", True, False, "as above"),
    "a negative id": Case("graph [ node [ id -3 ] ]", "node '-3' is negative", True, True, "ids are 0 or more here"),
    "a label that is a word": Case("graph [ node [ id 1 label b ] ]", [1], True, False, "some writers do it"),
    "a value that is a word": Case("graph [ node [ id 1 a b ] ]", "b is where the value of a is due", False, False),
    "words in a row": Case("graph [ node [ a r r P p ] ]", "r is where the value of a is due", False, False),
    "a word without a value": Case(
        "graph [ node [ id 1 ] nodes edge [ source 1 target 1 ] ]", "edge is where the value of nodes is", False, False
    ),
    "another list": Case("graph [ nod [ id 1 ] node [ id 2 ] ]", [2], True, True, "a graph may have any attribute"),
    "a number for a name": Case("graph [ 1 ]", "1 is where the name of a value is due", False, False),
    "numbers for names": Case("graph [ 1 2 ]", "1 is where the name of a value is due", False, False),
    "text for a name": Case('graph [ "A" ]', '"A" is where the name of a value is due', False, False),
    "a name with a dash": Case("Version-0 1 graph [ ]", "Version-0 is where the name", False, False),
    "a list of values": Case("graph [ data [1, 2, 3] ]", "1, is where the name of a value is due", False, False),
    "a node that is a number": Case("graph [ node 1 ]", "this node is '1'; it must be a list", False, False),
    "an edge that is a number": Case("graph [ edge 1 ]", "this edge is '1'; it must be a list", False, False),
    "an edge without a source": Case("graph [ node [ id 1 ] edge [ target 1 ] ]", "no source", False, False),
    "an edge with two sources": Case(
        "graph [ node [ id 1 ] edge [ source 1 source 1 target 1 ] ]", "two values of source", False, False
    ),
    "an edge to an unknown node": Case(
        "graph [ node [ id 1 ] edge [ source 1 target 9 ] ]", [(1, 9), 1], False, False,
        "it is a vertex; to see it takes memory for every node",
    ),
    "an edge before its node": Case("graph [ edge [ source 1 target 1 ] node [ id 1 ] ]", [(1, 1), 1], True, True),
    "a number that runs into a word": Case(
        "graph [ node [ id 2 ] edge [ source 2target 2 ] ]", "2target is where the value of source", True, True,
        "a blank is missing",
    ),
    "parallel edges": Case(
        "graph [ edge [ source 1 target 1 ] edge [ source 1 target 1 ] node [ id 1 ] ]", [(1, 1), (1, 1), 1], False,
        True, "multigraphs need no declaration here",
    ),
    "a direction that is no truth": Case("graph [ directed 2 ]", "it must be 0 or 1", True, True, "2 says nothing"),
    "a direction twice": Case("graph [ directed 1 directed 1 node [ id 1 ] ]", [1], True, True),
    "a direction behind edges": Case(
        "graph [ node [ id 1 ] edge [ source 1 target 1 ] directed 1 ]", "directed is behind nodes", True, True, STREAM
    ),
    "a weight": Case(
        "graph [ node [ id 1 ] edge [ source 1 target 1 weight -2.5E1 ] ]", [(1, 1, -25.0), 1], True, True
    ),
    "an infinite weight": Case(
        "graph [ node [ id 1 ] edge [ source 1 target 1 weight +INF ] ]", "not finite", True, True, "no weight here is"
    ),
    "a weight twice": Case(
        "graph [ node [ id 1 ] edge [ source 1 target 1 weight 1 weight 2 ] ]", "two values of weight", True, True,
        "networkx has a list, igraph the last",
    ),
    "an attribute twice": Case("graph [ node [ id 1 a 1 a 2 ] ]", [1], True, True),
    "comments": Case("# c\ngraph [\n# d\n node [ id 1 ] ]", [1], True, True),
    "a comment behind something": Case("graph [ # d\n node [ id 1 ] ]", [1], True, False, "as networkx has it"),
    "a byte-order mark": Case("\ufeffgraph [ node [ id 1 ] ]", [1], False, False, "all text may have one"),
    "text that is not closed": Case('graph [ node [ id 1 label "a ] ]', "it is truncated", False, False),
    "a list that is not closed": Case("graph [ node [ id 1 ]", "it is truncated", False, False),
    "a list closed twice": Case("graph [ node [ id 1 ] ] ]", "a list is closed that is not open", False, False),
    "lists in a node": Case("graph [ node [ id 1 graphics [ x 1 y [ z 2 ] ] node [ id 2 ] ] ]", [1], True, True),
}  # fmt: skip
ALL = [(kind, name) for kind, cases in (("graphml", GRAPHML), ("gml", GML)) for name in cases]


def case_of(kind: str, name: str) -> Case:
    return (GRAPHML if kind == "graphml" else GML)[name]


def read(path: Path, kind: str) -> list[Any]:
    """Edges, with their weights where there are, and lone vertices."""
    weights = True if "weight" in path.read_text() and kind == "gml" else None
    found: list[Any] = []
    for batch in open_source([path], kind, IngestOptions(weights=weights)).batches():
        columns = [batch.sources, batch.targets] + ([] if batch.weights is None else [batch.weights])
        found += zip(*(column.tolist() for column in columns), strict=True)
        found += [] if batch.lone is None else batch.lone.tolist()
    return found


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_what_is_read_and_refused(kind: str, name: str, tmp_path: Path) -> None:
    case, path = case_of(kind, name), tmp_path / f"file.{kind}"
    path.write_text(case.text)
    if isinstance(case.here, list):
        assert read(path, kind) == case.here
    else:
        with pytest.raises(InputError) as caught:
            read(path, kind)
        assert case.here in str(caught.value)
        assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_networkx_does_what_the_table_says(kind: str, name: str) -> None:
    case, file = case_of(kind, name), io.BytesIO(case_of(kind, name).text.encode())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nx.read_graphml(file) if kind == "graphml" else nx.read_gml(file, label="id")
    except Exception:
        assert not case.networkx
    else:
        assert case.networkx
