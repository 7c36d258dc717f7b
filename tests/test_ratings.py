"""Collaborative filtering on two public sets of ratings, against the bias model on ratings held back.

expected.json gives the bias model's error on all ratings, on which it was fitted; the same model fitted to nine tenths
of them is what a held-back tenth is judged by here. Skips where the data is not there.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine import run
from penstock.engine.programs.collaborative import CollaborativeFiltering, predicted
from scipy.sparse import coo_matrix, eye
from scipy.sparse.linalg import cg
from support.graphs import in_memory
from support.oracles import EdgeList
from support.source_code import SHARED

ABOUT = SHARED / "expected.json"
SETS = ["ml-latest-small-ratings.csv.gz", "jester5k-ratings.csv.gz"]
ITERATIONS = 30
Ints, Floats = NDArray[np.int64], NDArray[np.float64]

pytestmark = pytest.mark.skipif(not ABOUT.is_file(), reason=f"{SHARED} is not here")


def ratings(name: str) -> tuple[Ints, Ints, Floats]:
    """Users from 0, items after them, and ratings."""
    with gzip.open(SHARED / name, "rt") as file:
        rows = [line.strip().split(",")[:3] for line in file][1:]
    user, item = (np.unique([row[at] for row in rows], return_inverse=True)[1] for at in (0, 1))
    return user, item + user.max() + 1, np.array([float(row[2]) for row in rows])


def bias_error(user: Ints, item: Ints, rating: Floats, judged: NDArray[np.bool_]) -> float:
    """RMSE on the judged ratings of mean + b_user + b_item, fitted to the others by ridge regression (5)."""
    count, chosen = int(item.max()) + 1, np.flatnonzero(~judged if judged.any() and not judged.all() else judged | True)
    rows = np.tile(np.arange(len(chosen)), 2)
    ends = np.concatenate([user[chosen], item[chosen]])
    ones = coo_matrix((np.ones(len(rows)), (rows, ends)), shape=(len(chosen), count)).tocsr()
    mean = rating[chosen].mean()
    bias, failed = cg(ones.T @ ones + 5 * eye(count), ones.T @ (rating[chosen] - mean), rtol=1e-13)
    assert not failed
    return rmse(mean + bias[user] + bias[item], rating, judged)


def rmse(guess: Floats, rating: Floats, judged: NDArray[np.bool_]) -> float:
    return float(np.sqrt(np.mean((guess - rating)[judged] ** 2)))


def lux(user: Ints, item: Ints, rating: Floats, known: NDArray[np.bool_], *, epochs: int, step: float) -> Floats:
    """What Lux's gradient descent predicts (github.com/LuxGraph/Lux, col_filter): 20 factors without mean and biases.

    All begin at 1 / sqrt(20), and equal factors stay equal: a number of each user and item stands for all 20.
    """
    factor = np.full(int(item.max()) + 1, 20**-0.5)
    one, other, given = user[known], item[known], rating[known]
    for _ in range(epochs):
        error = given - 20 * factor[one] * factor[other]
        gradient = np.bincount(one, error * factor[other], len(factor))
        gradient += np.bincount(other, error * factor[one], len(factor))
        factor = factor + step * (gradient - 0.001 * factor)
    return 20 * factor[user] * factor[item]


@pytest.mark.parametrize("name", SETS)
def test_better_than_biases_on_ratings_held_back(name: str) -> None:
    user, item, rating = ratings(name)
    known: dict[str, Any] = json.loads(ABOUT.read_text())[name]
    assert (len(rating), int(user.max()) + 1, int(item.max() - user.max())) == (
        known["ratings"],
        known["users"],
        known["items"],
    )
    everything = np.ones(len(rating), dtype=bool)
    assert bias_error(user, item, rating, everything) == pytest.approx(known["bias_model"]["train_rmse"], abs=1e-9)
    held = np.random.default_rng(1).random(len(rating)) < 0.1
    graph = in_memory(EdgeList(int(item.max()) + 1, user[~held], item[~held], rating[~held].astype(np.float32), False))
    result = run(CollaborativeFiltering(max_iter=ITERATIONS), graph, threads=1)
    guess = predicted(result, np.stack([user, item], axis=1))
    assert rmse(guess, rating, held) < 0.99 * bias_error(user, item, rating, held)
    for step in (3.5e-7, 3e-4):  # Lux's own, and the best constant one here
        assert rmse(guess, rating, held) < 0.95 * rmse(
            lux(user, item, rating, ~held, epochs=ITERATIONS, step=step), rating, held
        )
    assert rmse(guess, rating, ~held) < 0.9 * known["bias_model"]["train_rmse"]
    assert isinstance(result.program, CollaborativeFiltering)
    errors = result.program.rmse
    assert errors[0] == pytest.approx(rating[~held].std(), rel=1e-2)
    assert errors[-1] < min(0.75 * errors[0], 1.001 * min(errors))
