"""`speed: true`: a study's configurations are timed side by side, once, and a table reads that."""

import json

import pandas as pd
import pytest
import yaml

from moelaws.files.parquet import read_origin
from sweep_copy import Copy

pytestmark = pytest.mark.slow

SPEED = "results/demo/speed/widths.parquet"
TIMES = "results/demo/derived/widths/times.parquet"
STUDY = {
    "study": "widths",
    "package": "widths",
    "title": "How fast are two widths?",
    "grids": {
        "demo": {
            "settings": {
                "context": 16, "vocab_size": 300, "n_layers": 1, "n_heads": 2, "n_kv": 2,
                "ffn": "dense", "d_ffn": 16, "batch": 4, "lr": 0.01, "steps": 5,
                "evaluation_sequences": 8,
            },
            "sweeps": [{"axes": {"d_model": [8, 16], "seed": [0, 1]}}],
        }
    },
    "derived": [{"name": "times", "code": "derived.times:derive", "speed": True}],
}  # fmt: skip
CODE = """
from moelaws.analysis.derive import table
from moelaws.tables.column import Column


@table(
    Column("d_model", "int", "1", "width"),
    Column("step_seconds", "float", "s", "time of a step"),
)
def derive(inputs):
    return inputs.table.merge(inputs.speed(), on="run_id")
"""


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """A copy of the repository in which the study's speeds were measured and read."""
    root = tmp_path_factory.mktemp("timed")
    Copy.of_repository(root).edit(
        "config/config.yaml", r"studies: .*", "studies: [ours/study.yaml]"
    )
    write_study(root, STUDY)
    (root / "ours/widths/derived").mkdir(parents=True)
    (root / "ours/widths/derived/times.py").write_text(CODE)
    copy = Copy(root)
    copy.snakemake(TIMES)
    return copy


def write_study(root, study):
    (root / "ours").mkdir(exist_ok=True)
    (root / "ours/study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))


def test_a_row_for_each_architecture_and_a_table_made_of_them(timed):
    assert len(timed.summaries()) == 4
    speeds, times = (pd.read_parquet(timed.root / name) for name in (SPEED, TIMES))
    assert list(times["d_model"]) == [8, 16]
    assert sorted(times["step_seconds"]) == sorted(speeds["step_seconds"])
    assert set(speeds["threads"]) == {1}  # as a training has
    assert SPEED in read_origin(timed.root / TIMES)["files"]
    assert timed.planned(TIMES) == {}


def test_code_that_measures_makes_the_speeds_again_and_trains_nothing(timed):
    with timed.edited("src/moelaws/probing/speed.py", r"\Z", "\n# Edited.\n"):
        assert timed.planned(TIMES) == {"measure_speed": 1, "derive": 1}


def test_what_was_measured_is_verified(timed):
    def verified():
        verdicts = json.loads(timed.moelaws("verify", "--json").stdout)
        return {v["path"]: v["state"] for v in verdicts}

    states = verified()
    assert (states[SPEED], states[TIMES]) == ("whole", "whole")
    with timed.edited("src/moelaws/grids/expand.py", r"\Z", "\n# Edited.\n"):
        assert verified()[SPEED] == "stale"
