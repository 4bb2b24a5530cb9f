"""What sparsity does to scores at equal loss is found where it is planted, and only there."""

import numpy as np
import pandas as pd
import pytest

from made_scores import score_row, write_scores
from moelaws.analysis.derive import derive as write_derived
from moelaws.analysis.inputs import Inputs
from moelaws.claims.judge import judged
from moelaws.figures.draw import make
from moelaws.files.layout import Results
from moelaws.spec.project import load_study
from picture import assert_legible, words
from repository import REPOSITORY

STUDY = load_study("sparsity", REPOSITORY)
SPARSITIES = (0.0, 0.5, 0.75, 0.9375)
RANGE = -np.log1p(-SPARSITIES[-1])
TASKS = {"near": "continuation", "far": "continuation", "brackets": "syntax"}


def runs(per_sparsity=18):
    """A table of runs whose losses do not depend on their sparsity."""
    rng = np.random.default_rng(1)
    S = np.repeat(SPARSITIES, per_sparsity)
    return pd.DataFrame(
        {
            "run_id": [f"{i:016x}" for i in range(len(S))], "C": 1e11, "S": S, "d_model": 16,
            "seed": 0, "L": 3.5 + rng.random(len(S)), "L_se": 0.05, "status": "completed",
            "source": "trained",
        }
    )  # fmt: skip


def inputs_of(root, shift, slope=0.7, noise=0.01, group=TASKS, frame=None, seed=2):
    """Inputs whose runs were scored: bits per byte by the loss, and ``shift`` for the sparsest."""
    frame, rng = runs() if frame is None else frame, np.random.default_rng(seed)
    results = Results(root / "results")
    for run in frame.itertuples():
        rows = []
        for step, tail in ((10, 1.0), (20, 0.0)):
            for task, kind in group.items():
                v = -np.log1p(-run.S) / RANGE
                bits = 1 + slope * run.L + 0.05 * run.L**2 + shift * v + tail
                bits += noise * rng.standard_normal()
                rows.append(score_row(step, task, kind, bits, accuracy=0.9 - 0.1 * run.L))
        write_scores(results, run.run_id, rows)
    inputs = Inputs(frame=frame, results=results)
    for name in ("downstream", "relation"):
        path = root / f"{name}.parquet"
        write_derived(STUDY, name, inputs, path)
        inputs = Inputs(
            frame=frame, results=results, derived_tables={**inputs.derived_tables, name: path}
        )
    return inputs


def test_a_group_is_the_mean_of_its_tasks_after_the_last_step(tmp_path):
    table = inputs_of(tmp_path, 0.0).derived("downstream")
    own = table[table["run_id"] == table["run_id"].iloc[0]].set_index("skill")
    assert list(own.index) == ["continuation", "near", "far", "syntax", "brackets"]
    assert own.loc["continuation", "bits_per_byte"] == pytest.approx(
        own.loc[["near", "far"], "bits_per_byte"].mean()
    )
    assert own.loc["continuation", "bits_per_byte_se"] == pytest.approx(0.1 / np.sqrt(2))
    assert own.loc["near", "error"] == pytest.approx(0.1 + 0.1 * own.loc["near", "L"])
    assert (own["chance"] == 0.75).all()
    assert own.loc["near", "bits_per_byte"] < 1 + 0.7 * 4.5 + 0.05 * 4.5**2 + 0.5  # the last step


@pytest.mark.parametrize(
    ("shift", "said"), [(0.0, "supported"), (0.2, "not supported"), (-0.2, "not supported")]
)
def test_a_planted_shift_is_recovered_and_judged_with_its_sign_and_size(tmp_path, shift, said):
    inputs = inputs_of(tmp_path, shift)
    table, L = inputs.derived("relation"), inputs.table["L"]
    middle = (L.min() + L.max()) / 2
    bits = table[table["measure"] == "bits_per_byte"]
    assert len(bits) == 5
    for row in bits.itertuples():
        assert row.shift == pytest.approx(shift, abs=0.02)
        at_middle = 0.7 + 0.1 * middle
        assert row.slope == pytest.approx(at_middle, abs=0.03)
        assert row.equivalent == pytest.approx(shift / at_middle, abs=0.02)
        assert row.equivalent_low < shift / at_middle < row.equivalent_high or shift == 0
    assert (table["n"] == 72).all()
    judgement = verdict(inputs, "sparsity_changes_no_score_at_equal_loss")
    assert judgement["verdict"] == said
    assert "continuation" in judgement["measured"]
    assert "(72 runs)" in judgement["measured"]


def test_a_score_that_does_not_follow_the_loss_has_no_equivalent(tmp_path):
    far = {"far": "continuation"}
    nearly_flat = {"slope": -0.4, "noise": 0.5, "seed": 4}  # about L = 4
    inputs = inputs_of(tmp_path, 0.0, group=far, **nearly_flat)
    table = inputs.derived("relation")
    flat = table[table["measure"] == "bits_per_byte"]
    assert flat["equivalent"].isna().all()
    assert set(flat["note"]) == {"the score is not told to follow the loss"}
    evidence = verdict(inputs, "sparsity_changes_no_score_at_equal_loss")
    assert evidence["verdict"] == "cannot tell at this scale"
    assert "not told to follow the loss" in evidence["measured"]


def test_too_few_runs_say_so(tmp_path):
    table = inputs_of(tmp_path, 0.0, frame=runs(1)).derived("relation")
    assert table["slope"].isna().all()
    assert table["note"].str.contains("4 runs, of which 8 must differ").all()
    alike = inputs_of(tmp_path, 0.0, frame=runs(20).assign(S=0.5)).derived("relation")
    assert alike["shift"].isna().all()


def verdict(inputs, name):
    (claim,) = (claim for claim in STUDY.claims if claim.name == name)
    return judged(STUDY, claim, inputs)


def test_reading_comprehension_is_judged_only_where_it_was_tested(tmp_path):
    name = "sparser_models_read_worse"
    nothing = verdict(inputs_of(tmp_path, 0.2), name)
    assert nothing["verdict"] == "cannot tell at this scale"
    assert "olmo:boolq" in nothing["needed"]
    reads = {"boolq": "reading comprehension", "near": "continuation"}
    assert verdict(inputs_of(tmp_path, 0.2, group=reads), name)["verdict"] == "supported"
    assert verdict(inputs_of(tmp_path, -0.2, group=reads), name)["verdict"] == "not supported"


@pytest.mark.slow
def test_figures_show_a_column_for_each_skill_and_no_more_than_fit(tmp_path):
    inputs = inputs_of(tmp_path, 0.0)
    groups, tasks = (make(STUDY, name, inputs) for name in ("F5", "F10"))
    assert len(groups.panels) == 4
    assert len(tasks.panels) == 6
    for sheet in (groups, tasks):
        assert_legible(sheet)
        assert "guessing" in words(sheet)
    shown = groups.data[groups.data["series"] == "S=0.5"]
    assert len(shown) == 4 * 18
    many = inputs_of(tmp_path / "many", 0.0, group={f"t{i}": "g" for i in range(9)})
    assert any("t6, t7, t8 are not shown" in line for line in make(STUDY, "F10", many).warnings)
