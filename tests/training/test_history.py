"""The record of the steps: divergence, thinning, units."""

import itertools
import math

import pyarrow.parquet as pq
import pytest
import torch

from moelaws.training.history import COLUMNS, ROWS, History


def history_of(losses):
    history = History()
    for i, loss in enumerate(losses, 1):
        history.add([i, 10 * i, 1e-3], torch.tensor([loss, 1.0, 2.0, 3.0]), 0.5 * i)
    history.settle()
    return history


@pytest.mark.parametrize(
    ("losses", "step"),
    [([5, 4, math.nan, 4], 3), ([5, 4, math.inf, 4], 3), ([7, 7, 5, 7, 7, 5], None),
     ([5, 7, 7, 7, 5], 4)],
)  # fmt: skip
def test_a_loss_that_is_not_finite_or_three_in_a_row_above_six_are_divergence(losses, step):
    assert history_of(losses).diverged_at(6, 3) == step


def test_training_loss_is_the_mean_of_the_last_tenth():
    assert history_of(range(100)).recent_loss() == pytest.approx(94.5)
    assert history_of([3.0, math.nan]).recent_loss() is None
    assert History().recent_loss() is None


def test_long_runs_are_thinned_and_keep_the_last_step(tmp_path):
    steps = 2 * ROWS + 501
    history_of([4.0] * steps).write(tmp_path / "h.parquet")
    table = pq.read_table(tmp_path / "h.parquet")
    assert table.column_names == list(COLUMNS)
    assert table.schema.field("loss").metadata[b"unit"] == b"nats/token"
    kept = table.to_pydict()["step"]
    assert len(kept) <= ROWS + 1
    assert kept[-1] == steps
    assert {b - a for a, b in itertools.pairwise(kept[:-1])} == {3}
