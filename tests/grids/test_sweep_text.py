"""Whether a sweep's text is long enough, as far as that is known before the text is read."""

from pathlib import Path

import pytest
from grid_runs import runs_of

from moelaws.corpus.sources import resolve
from moelaws.grids.sweep import Sweep, too_long_for
from moelaws.spec.corpus import Dataset
from planned_study import small

GRID = {
    "settings": {
        "context": 64, "vocab_size": 512, "n_layers": 1, "n_heads": 1, "d_model": 16, "batch": 10,
        "n_experts": 4, "top_k": 2, "d_expert": 16, "lr": 0.01, "steps": 1000,
        "evaluation_sequences": 100,
    },
    "sweeps": [{"axes": {"seed": [0]}}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("size", "says"),
    [
        (None, ""),
        (10**6, ""),
        (6 * 10**5, "more than 5.7e+05 bytes of training text can give with max_epochs = 1"),
    ],
)
def test_a_data_set_is_refused_where_its_bytes_cannot_do(size, says):
    setting = Dataset(dataset="owner/stories", commit="0" * 40, bytes=size)
    source = resolve(setting, Path())
    problem = too_long_for(Sweep(small()[0], "demo", tuple(runs_of(GRID)), {"": source}))
    assert says in problem
    assert bool(problem) == bool(says)
