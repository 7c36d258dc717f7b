"""Independent verifiers of the simulations: heat, circuit and neural network with dense matrices, without Penstock.

Imports nothing of penstock; held against networkx and scipy in test_catalogue_oracles.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from support.catalogue_oracles import OTHER, SOURCE, Case, Floats, matrix, near
from support.oracles import EdgeList


def laplacian(edges: EdgeList, *, weighted: bool = True) -> Floats:
    """The Laplacian of the conductances, which conduct both ways; self-loops carry nothing. (vertices, vertices)"""
    dense = matrix(edges, weighted=weighted)
    if edges.directed:
        dense = dense + dense.T
    np.fill_diagonal(dense, 0.0)
    return np.diag(dense.sum(axis=1)) - dense


def temperatures(
    edges: EdgeList, initial: Mapping[int, float], fixed: Mapping[int, float], time_step: float, steps: int
) -> Floats:
    """`steps` times T <- T - time_step L T, fixed temperatures keeping theirs, all others beginning at 0."""
    step = np.eye(edges.vertices) - time_step * laplacian(edges)
    held = list(fixed)
    step[held] = np.eye(edges.vertices)[held]
    first = np.zeros(edges.vertices)
    for vertex, value in {**initial, **fixed}.items():
        first[vertex] = value
    return np.linalg.matrix_power(step, steps) @ first


def potentials(edges: EdgeList, fixed: Mapping[int, float], *, weighted: bool = True) -> Floats:
    """The solution of L V = 0 at the nodes that are not fixed; -infinity at those without a path to a fixed one."""
    conductances = laplacian(edges, weighted=weighted)
    joined = conductances < 0
    held = list(fixed)
    found = np.full(edges.vertices, -np.inf)
    found[held] = list(fixed.values())
    reached = np.isin(np.arange(edges.vertices), held)
    for _ in range(edges.vertices):
        reached |= joined[reached].any(axis=0)
    free = np.flatnonzero(reached & np.isinf(found))
    found[free] = np.linalg.solve(conductances[np.ix_(free, free)], -conductances[np.ix_(free, held)] @ found[held])
    return found


def activations(
    edges: EdgeList, inputs: Mapping[int, float], *, gain: float = 1.0, bias: float = 0.0, rounds: int = 200
) -> Floats:
    """So many rounds of x <- 1 / (1 + exp(-(gain W x + bias))) from 0, inputs keeping theirs."""
    weights, held = matrix(edges, weighted=True).T, list(inputs)
    found = np.zeros(edges.vertices)
    found[held] = list(inputs.values())
    for _ in range(rounds):
        found = 1 / (1 + np.exp(-(gain * (weights @ found) + bias)))
        found[held] = list(inputs.values())
    return found


HELD = {SOURCE: 2.0, OTHER: -1.0}
"""Potentials and inputs."""
CASES: dict[str, Case] = {
    "heat": (
        {"initial": {SOURCE: 5.0}, "fixed": {OTHER: -1.0}, "time_step": 7e-6, "max_iter": 12, "tol": 0},
        lambda e, f: near(f["temperature"], temperatures(e, {SOURCE: 5.0}, {OTHER: -1.0}, 7e-6, 12)),
    ),
    "circuit": (
        {"fixed": HELD, "tol": 1e-11, "floating": True},
        lambda e, f: near(f["potential"], potentials(e, HELD)),
    ),
    "neural": (
        {"inputs": HELD, "gain": 1e-3, "bias": 0.1, "tol": 1e-12},
        lambda e, f: near(f["activation"], activations(e, HELD, gain=1e-3, bias=0.1)),
    ),
}
