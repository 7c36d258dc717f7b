"""What is said of the programs that come with Penstock: one record each, of which help, pages and tables are made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """What is said of a program; its constructor has its parameters, its fields what the answer holds.

    Attributes
    ----------
    name : str
        By which it is run.
    home : str
        `file:Class`, below engine/programs; imported only when the program is asked for.
    group : str
        Under which it is listed.
    line : str
        What it computes, in one sentence.
    parameters, answer : str
        The parameters that have an option or matter most, and the fields of the answer, in Markdown.
    weighted : bool
        Whether edges count by their weights where the graph has some: the constructor takes `weight`.
    needs_weights : bool
        Whether it refuses a graph without weights.
    aliases : tuple of str
        What networkx, igraph and cuGraph call it.
    """

    name: str
    home: str
    group: str
    line: str
    answer: str
    parameters: str = ""
    weighted: bool = False
    needs_weights: bool = False
    aliases: tuple[str, ...] = ()


CATALOGUE = (
    ProgramInfo(
        "bfs",
        "bfs:BFS",
        "search",
        line="Levels and parents by hops from one or several sources.",
        parameters="`--source` (repeatable), `--no-parents`, `--target` (repeatable), `--cutoff`",
        answer="`level`, `parent` (the smallest id of the previous level)",
        aliases=(
            "breadth_first_search",
            "bfs_edges",
            "bfs_tree",
            "bfs_layers",
            "single_source_shortest_path",
            "single_source_shortest_path_length",
        ),
    ),
    ProgramInfo(
        "sssp",
        "sssp:SSSP",
        "search",
        line="Shortest paths by weight from one or several sources.",
        parameters="`--source` (repeatable), `--delta`, `--parents`, `--target` (repeatable), `--cutoff`, `--from`",
        answer=(
            "`distance`, from the nearest source, and with `--parents` or `--target` `parent`; weights must not be "
            "negative; a distance beyond the largest float64 is an error"
        ),
        weighted=True,
        aliases=(
            "shortest_path",
            "shortest_paths",
            "shortest_path_length",
            "get_shortest_paths",
            "dijkstra",
            "dijkstra_path",
            "dijkstra_path_length",
            "single_source_dijkstra",
            "single_source_dijkstra_path",
            "single_source_dijkstra_path_length",
            "multi_source_dijkstra",
            "multi_source_dijkstra_path",
            "multi_source_dijkstra_path_length",
            "bellman_ford",
        ),
    ),
    ProgramInfo(
        "distances",
        "from_each:FromEach",
        "search",
        line="The distances from each of several sources, a column for each.",
        parameters="`--source` (repeatable), `--cutoff`",
        answer="`distance_S` from each source S, a column for each",
        weighted=True,
        aliases=("all_pairs_shortest_path_length", "all_pairs_dijkstra_path_length"),
    ),
    ProgramInfo(
        "widest",
        "widest:WidestPath",
        "search",
        line="Widest paths: the largest bottleneck from the sources.",
        parameters="`--source` (repeatable), `--parents`, `--target` (repeatable), `--cutoff`",
        answer="`width`: the largest bottleneck of any path; `parent` likewise",
        weighted=True,
        aliases=("widest_path", "bottleneck_path"),
    ),
    ProgramInfo(
        "reachability",
        "reachability:Reachability",
        "search",
        line="Which vertices the sources lead to.",
        parameters="`--source` (repeatable)",
        answer="`reached`: 1 or 0",
        aliases=("descendants", "subcomponent"),
    ),
    ProgramInfo(
        "php",
        "php:PHP",
        "search",
        line="Penalized hitting probability from a source.",
        parameters="`--source`, `--damping`, `--tol`",
        answer="`php`: penalized hitting probability from the source",
        weighted=True,
    ),
    ProgramInfo(
        "pagerank",
        "pagerank:PageRank",
        "ranking",
        line="PageRank.",
        parameters="`--damping`, `--tol`, `--max-iter`, `--personalization`, `--from`",
        answer=(
            "`rank`, sum 1; dangling vertices as networkx does; `--tol 0` runs exactly `--max-iter` sweeps (not with"
            " `--mode async`, which has none); weights must not be negative"
        ),
        weighted=True,
        aliases=("page_rank",),
    ),
    ProgramInfo(
        "personalized_pagerank",
        "pagerank:PPR",
        "ranking",
        line="PageRank that restarts at given vertices.",
        parameters="`--source` (repeatable), and those of `pagerank`",
        answer="`rank`, restarting at the sources",
        weighted=True,
        aliases=("ppr", "random_walk_with_restart"),
    ),
    ProgramInfo(
        "katz",
        "katz:Katz",
        "ranking",
        line="Katz centrality.",
        parameters="`--alpha`, `--tol`, `--max-iter`",
        answer="`katz`, L2 norm 1; an alpha too large for the graph is refused, with the bound",
        weighted=True,
        aliases=("katz_centrality",),
    ),
    ProgramInfo(
        "eigenvector",
        "eigenvector:Eigenvector",
        "ranking",
        line="Eigenvector centrality.",
        parameters="`--tol`, `--max-iter`",
        answer=(
            "`eigenvector`: the left eigenvector of the largest eigenvalue, L2 norm 1; `--tol` (1e-6) is the L2 "
            "change of a sweep"
        ),
        weighted=True,
        aliases=("eigenvector_centrality", "evcent"),
    ),
    ProgramInfo(
        "hits",
        "hits:HITS",
        "ranking",
        line="Hubs and authorities.",
        parameters="`--tol`, `--max-iter`",
        answer="`hub`, `authority`, sum 1 each",
        weighted=True,
        aliases=("hubs_and_authorities", "hub_score", "authority_score"),
    ),
    ProgramInfo(
        "betweenness",
        "betweenness:Betweenness",
        "ranking",
        line="Betweenness centrality, exact or from sampled sources.",
        parameters="`--k` sampled sources, or `--source` (repeatable); all without",
        answer="`betweenness`, scaled as networkx does (`--set normalized=False`, `--set raw=True`)",
        aliases=("betweenness_centrality",),
    ),
    ProgramInfo(
        "closeness",
        "closeness:Closeness",
        "ranking",
        line="Closeness centrality, exact or estimated.",
        parameters="`--k` sampled searches, or `--source` (repeatable); all without",
        answer=(
            "`closeness`, from incoming distances, scaled as networkx does (`--set wf_improved=False`); of given "
            "vertices alone with `--source`; with `--k` estimates of all, and `error`, one standard error"
        ),
        weighted=True,
        aliases=("closeness_centrality",),
    ),
    ProgramInfo(
        "harmonic",
        "closeness:Harmonic",
        "ranking",
        line="Harmonic centrality, exact or estimated.",
        parameters="as `closeness`; `--set normalized=True`",
        answer="`harmonic`: sum of the inverse incoming distances; `error` likewise",
        weighted=True,
        aliases=("harmonic_centrality",),
    ),
    ProgramInfo(
        "hyperball",
        "hyperball:HyperBall",
        "ranking",
        line="Estimates of harmonic and closeness centrality of all vertices, and of the effective diameter.",
        parameters=(
            "`--set log2m=8` (4 to 12: 2^log2m bytes a vertex, twice while it runs), `--set seed=0`, `--set "
            "reverse=True`, `--max-iter`"
        ),
        answer=(
            "estimates for all vertices, of those that reach one: `harmonic`, `closeness`, `reachable` (how many), "
            "and `farthest`, a distance that one of them has; reports the neighborhood function, "
            "`effective_diameter` (90 %), `average_distance`, `diameter_at_least` and `standard_error` (1.04 / "
            "sqrt(2^log2m): 6.5 %)"
        ),
        aliases=("hyper_ball", "effective_diameter"),
    ),
    ProgramInfo(
        "adsorption",
        "adsorption:Adsorption",
        "ranking",
        line="How much of the sources' label arrives at each vertex.",
        parameters="`--source` (repeatable), `--damping`, `--tol`",
        answer="`score`: how much of the sources' label arrives",
        weighted=True,
    ),
    ProgramInfo(
        "wcc",
        "wcc:WCC",
        "groups",
        line="Weakly connected components.",
        parameters="`--from`",
        answer="`component`, named by its smallest vertex; direction ignored",
        aliases=(
            "components",
            "connected_components",
            "weakly_connected_components",
            "number_connected_components",
            "number_weakly_connected_components",
            "is_connected",
            "is_weakly_connected",
            "node_connected_component",
            "cc",
            "clusters",
        ),
    ),
    ProgramInfo(
        "scc",
        "scc:SCC",
        "groups",
        line="Strongly connected components.",
        answer="`component`, strongly connected, named by its smallest vertex",
        aliases=("strongly_connected_components", "number_strongly_connected_components", "is_strongly_connected"),
    ),
    ProgramInfo(
        "louvain",
        "louvain:Louvain",
        "groups",
        line="Communities of large modularity.",
        parameters=(
            "`--resolution` (1), `--seed`, `--tol` (1e-3: a round of sweeps that gains less ends the first level; "
            "each further level has a tenth), `--set sweeps=100` a level, in whole rounds, `--set iterations=2`: at "
            "most, `--set directed=true`: modularity by direction, `--from`"
        ),
        answer=(
            "`community` of large modularity, named by its smallest vertex; direction ignored, a mutual pair counts "
            "twice, unless `directed` is set; reports the modularity and the number of communities, level by level; "
            "weights must not be negative"
        ),
        weighted=True,
        aliases=("louvain_communities", "community_multilevel"),
    ),
    ProgramInfo(
        "leiden",
        "leiden:Leiden",
        "groups",
        line="Communities of large modularity, each connected.",
        parameters="those of `louvain` but `--from`; `--set iterations=3`",
        answer="`community`, as `louvain`'s, and connected",
        weighted=True,
        aliases=("leiden_communities", "community_leiden"),
    ),
    ProgramInfo(
        "cdlp",
        "cdlp:CDLP",
        "groups",
        line="Communities by label propagation.",
        parameters="`--max-iter` rounds (10)",
        answer="`label`: community by synchronous label propagation, ties to the smallest",
        aliases=("label_propagation", "lpa", "asyn_lpa_communities", "community_label_propagation"),
    ),
    ProgramInfo(
        "coreness",
        "kcore:Coreness",
        "groups",
        line="The largest k-core of each vertex.",
        answer="`core`: the largest k of a k-core with the vertex; direction ignored",
        aliases=("core_number",),
    ),
    ProgramInfo(
        "kcore",
        "kcore:KCore",
        "groups",
        line="The vertices of one k-core.",
        parameters="`--k`",
        answer="`member`: 1 in the k-core, else 0",
        aliases=("k_core",),
    ),
    ProgramInfo(
        "trussness",
        "trussness:Trussness",
        "groups",
        line="The largest k-truss of each vertex.",
        parameters="`--k` (0): the only one that is wanted",
        answer="`truss`: the largest k of a k-truss with the vertex, 0 of none; direction ignored",
        aliases=("truss", "k_truss", "k_truss_subgraph"),
    ),
    ProgramInfo(
        "mis",
        "independent_set:MaximalIndependentSet",
        "groups",
        line="A maximal independent set.",
        answer="`member`: 1 in a maximal independent set, else 0",
        aliases=("maximal_independent_set", "independent_set"),
    ),
    ProgramInfo(
        "coloring",
        "coloring:Coloring",
        "groups",
        line="A coloring in which neighbors differ.",
        answer="`color`, from 0; neighbors differ",
        aliases=("greedy_color", "graph_coloring", "vertex_coloring"),
    ),
    ProgramInfo(
        "msf",
        "spanning_forest:SpanningForest",
        "structure",
        line="A minimum spanning forest.",
        answer=(
            "`parent`, `weight`: each row that has them is an edge of the minimum spanning forest (ties by ids); the"
            " smallest vertex of a tree is its root, and has neither; `total weight` is printed; direction ignored"
        ),
        weighted=True,
        aliases=("minimum_spanning_tree", "minimum_spanning_forest", "spanning_tree", "mst"),
    ),
    ProgramInfo(
        "bridges",
        "bridges:Bridges",
        "structure",
        line="Bridges, and the parts between them.",
        parameters="`--set seed=1`, which does not change the answer",
        answer=(
            "`bridge_to`: the other end of the vertex's bridge towards the smallest vertex of its weak component, so"
            " that each bridge is in one row; `component`: the part without bridges, named by its smallest vertex; "
            "direction ignored"
        ),
        aliases=("bridge_components", "has_bridges"),
    ),
    ProgramInfo(
        "articulation",
        "articulation:Articulation",
        "structure",
        line="Articulation points and biconnected components.",
        answer=(
            "`articulation`: 1 for vertices whose loss disconnects; `blocks`: of how many biconnected components the"
            " vertex is part; `component`: the one of them towards the smallest vertex of its weak component, named "
            "by its smallest vertex other than `top`, the vertex of it nearest to that one; direction ignored"
        ),
        aliases=("articulation_points", "biconnected_components", "is_biconnected", "cut_vertices"),
    ),
    ProgramInfo(
        "diameter",
        "diameter:Diameter",
        "structure",
        line="The diameter, and bounds of the eccentricity of each vertex.",
        parameters="`--k` searches at most (64)",
        answer=(
            "`at_least`, `at_most`: bounds of the distance to the farthest vertex of the component; the diameter is "
            "printed, exact unless `--k` was too few; direction and weights ignored"
        ),
        aliases=("eccentricity",),
    ),
    ProgramInfo(
        "degrees",
        "degrees:Degrees",
        "structure",
        line="Degrees of the vertices.",
        answer="`degree`, `in_degree`, `out_degree`",
        aliases=(
            "degree",
            "degree_centrality",
            "in_degree_centrality",
            "out_degree_centrality",
            "isolates",
            "number_of_isolates",
        ),
    ),
    ProgramInfo(
        "strength",
        "strength:Strength",
        "structure",
        line="Weighted degrees of the vertices.",
        answer=(
            "`strength`, `in_strength`, `out_strength`: sums of the weights of their edges, of an undirected graph all "
            "the same, a self-loop counting once"
        ),
        weighted=True,
        aliases=("weighted_degree", "weighted_degrees"),
    ),
    ProgramInfo(
        "triangles",
        "triangles:Triangles",
        "triangles",
        line="Triangles of each vertex.",
        answer="`triangles` of each vertex; direction ignored",
        aliases=("triangle_count", "count_triangles", "list_triangles"),
    ),
    ProgramInfo(
        "lcc",
        "triangles:LCC",
        "triangles",
        line="Local clustering coefficients.",
        answer="`lcc`: local clustering coefficient, directed as LDBC has it, undirected as networkx",
        aliases=("clustering", "average_clustering", "local_clustering", "transitivity_local_undirected"),
    ),
    ProgramInfo(
        "fastrp",
        "fastrp:FastRP",
        "embeddings",
        line="Embeddings of the vertices by random projections.",
        parameters=(
            "`--set dimension=64`, `--set steps=[0,1,1]` (weights of the mean of the neighbors, of theirs, and so on), "
            "`--seed`"
        ),
        answer=(
            "`embedding_0` and so on: FastRP's numbers (float32), 0 for a vertex without edges; direction ignored; the "
            "same ids and seed have comparable embeddings on other graphs; weights must not be negative"
        ),
        weighted=True,
        aliases=("fast_rp", "fast_random_projection", "node_embeddings"),
    ),
    ProgramInfo(
        "cf",
        "collaborative:CollaborativeFiltering",
        "ratings",
        line="Matrix factorization of ratings.",
        parameters="`--set rank=8`, `--max-iter` epochs (100)",
        answer=(
            "`vector_0` and so on: factors of a ratings graph (`convert --bipartite --weights --direction both`), "
            "last the bias; reports the RMSE, with `--json` of every epoch"
        ),
        needs_weights=True,
        aliases=("collaborative_filtering", "matrix_factorization"),
    ),
    ProgramInfo(
        "heat",
        "heat:Heat",
        "simulation",
        line="The heat equation, step by step.",
        parameters=(
            "`--initial` and `--fixed` (files of ids and temperatures), `--time-step`, `--max-iter` steps (1000), "
            "`--tol`, `--set ambient=0`"
        ),
        answer=(
            "`temperature` after the last step; `time`, simulated; a time step that is not stable is refused, with "
            "the bound"
        ),
        weighted=True,
    ),
    ProgramInfo(
        "circuit",
        "circuit:Circuit",
        "simulation",
        line="Potentials of a resistor network.",
        parameters=(
            "`--fixed` (a file of ids and potentials), `--max-iter` (100,000), `--tol` (1e-8), `--set floating=True`"
        ),
        answer=(
            "`potential` of every node of a network of conductances; nodes without a path to a fixed one are "
            "refused, or with `floating` empty"
        ),
        weighted=True,
    ),
    ProgramInfo(
        "neural",
        "neural:Neural",
        "simulation",
        line="Activations of a neural network.",
        parameters=(
            "`--inputs` (a file of ids and activations), `--max-iter` (1000), `--tol`, `--set function=tanh`, "
            "`gain`, `bias`"
        ),
        answer="`activation` of every neuron, feed-forward or recurrent",
        weighted=True,
    ),
)
"""In the order in which they are listed; groups are in the order in which they come first."""
