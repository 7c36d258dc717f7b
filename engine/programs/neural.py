"""Neural network: activations of neurons that edges lead between, from given inputs.

Each edge u -> v has its weight w(u, v), negative ones inhibiting, and all neurons fire at once:

    x(v) <- s(gain * sum over edges u -> v of w(u, v) * x(u) + bias),     s(z) = 1 / (1 + exp(-z))  or  tanh(z),

the inputs keeping their values and all others beginning at 0 (Rumelhart, Hinton, Williams, Nature 1986). In a
feed-forward network of k layers behind the inputs x is exact after k iterations and does not change any more. A
recurrent network (Hopfield, PNAS 1984) has a single state of rest that every start leads to if gain * max over v of
sum |w(u, v)| is below 4, below 1 with tanh, since s is flatter than that. Otherwise it may oscillate for ever: the run
then ends after max_iter iterations, with the activations of that moment, and says that it did not converge.

A benchmark of CuSha (NN; Khorasani, Vora, Gupta, Bhuyan, HPDC 2014) and of Garaph (Ma et al., USENIX ATC 2017). CuSha's
public code (github.com/farkhor/CuSha) has BFS, SSSP and PageRank only; the stopping rule is that of this code: a run
ends when no vertex changes by the tolerance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, Finite, NonNegative, Positive
from penstock.engine.program.program import Field, Global, Program, Start
from penstock.engine.programs.given_values import Given, bytes_to_translate, given_values
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph


class Neural(Program):
    """`activation` (float64), from 0 to 1 but for inputs. inputs: original id -> activation, or an array of a number
    for every vertex, in the order of `Result.ids` and NaN where there is no input.

    function: sigmoid, or tanh, whose activations are from -1 to 1. gain, bias: see the file. max_iter: iterations at
    most (1000). tol: stop when no activation changes by more; 0 runs exactly max_iter iterations. weight: whether edges
    count by their weights where the graph has some (False or None: each counts 1).
    """

    activation = Field(np.float64)
    held = Field(np.uint8, constant=True, output=False)
    combine = "sum"
    everywhere = True
    accumulator = "activation"
    by_ranges = True
    tolerance = 1e-9
    single = True
    extendable = ("max_iter", "tol")

    def __init__(
        self,
        inputs: Given,
        function: str = "sigmoid",
        gain: Positive = 1.0,
        bias: Finite = 0.0,
        max_iter: Count = 1000,
        tol: NonNegative = 1e-6,
        weight: bool | str | None = True,
    ) -> None:
        if function not in ("sigmoid", "tanh"):
            raise InputError(f"function is {function!r}; it must be sigmoid or tanh")
        self.inputs, self.function, self.gain, self.bias = inputs, function, gain, bias
        self.max_iter, self.tol = max_iter, tol
        self.working_bytes = bytes_to_translate(inputs)
        self.needs_weights = counts_by_weight(weight)
        # sigmoid(z) = 1/2 + 1/2 tanh(z / 2), whose terms do not overflow
        self.middle, self.half = (0.5, 0.5) if function == "sigmoid" else (0.0, 1.0)

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """The inputs have their values, all others nothing."""
        places, values = given_values(graph, self.inputs, "inputs")
        if len(places) == 0:
            raise InputError("a neural network needs inputs: give at least one vertex an activation with --inputs")
        state["activation"][places] = values
        state["held"][places] = 1
        return Start(everything=True)

    def send(activation):  # type: ignore[no-untyped-def]
        """What an edge of weight 1 brings."""
        return activation

    def edge(sent, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return sent * weight

    def vertex(sent, held, incoming, gain, bias, middle, half):  # type: ignore[no-untyped-def]
        """The new activation; an input keeps its own."""
        if held != 0:
            return sent
        return middle + half * math.tanh(half * (gain * incoming + bias))

    @Global(np.float64, combine="max")
    def change(activation, sent):  # type: ignore[no-untyped-def]
        """The largest change in an iteration."""
        return abs(activation - sent)

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether no activation changed by the tolerance."""
        return bool(totals["change"] < self.tol)
