"""One run stands for all that train alike."""

from moelaws.grids.architectures import architectures
from moelaws.grids.expand import expand
from moelaws.grids.text import CorpusChoice
from moelaws.spec.base import parse
from moelaws.spec.corpus import Text
from moelaws.spec.grid import Grid

TEXT = CorpusChoice(source=Text(digest="none"), validation=0.05, seed=0)
SETTINGS = {
    "context": 16, "vocab_size": 300, "n_layers": 1, "n_heads": 2, "n_kv": 2, "ffn": "dense",
    "d_ffn": 16, "batch": 4, "lr": 0.01, "steps": 10,
}  # fmt: skip


def runs_of(**axes):
    grid = parse(Grid, {"settings": SETTINGS, "sweeps": [{"axes": axes}]}, "grid")
    return expand(grid, TEXT, "grid")


def test_seeds_rates_and_steps_share_an_architecture():
    runs = runs_of(d_model=[8, 16], seed=[0, 1], lr=[0.01, 0.02], steps=[10, 20])
    chosen = architectures(runs)
    assert [run.config.model.d_model for run in chosen] == [8, 16]
    assert [run.run_id for run in chosen] == [runs[0].run_id, runs[8].run_id]


def test_what_changes_a_step_is_another_architecture():
    runs = runs_of(d_model=[8], batch=[4, 8], precision=["fp32", "bf16"], clip=[0, 1])
    assert len(architectures(runs)) == len(runs) == 8
