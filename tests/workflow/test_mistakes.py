"""A user's mistakes: one clear message before any job starts, exit code not 0, no traceback."""

import json
import re
import shutil

import pytest

from moelaws.spec.errors import UserError
from moelaws.workflow.jobs import Jobs


def change(copy, **keys):
    """Set keys of the demo grid's settings or axes."""
    study = copy.study()
    grid = study["grids"]["demo"]
    for key, value in keys.items():
        target = grid["sweeps"][0]["axes"] if key in ("S", "C", "d_model") else grid["settings"]
        target[key] = value
    copy.write_study(study)


def refused(copy, **overrides):
    """What the Snakefile is told before any rule, which it prints (below)."""
    with pytest.raises(UserError) as told:
        Jobs.load(overrides, copy.root)
    return str(told.value)


def test_snakemake_prints_the_mistake_and_ends(fresh):
    change(fresh, S=[1])
    done = fresh.snakemake("-n", "--config", "tier=demo", check=False)
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert f"moelaws: {refused(fresh, tier='demo')}" in output.replace(f"{fresh.root}/", "")
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"n_experts": 1, "top_k": 2}, "top_k = 2 of n_experts = 1 is S = -1"),
        ({"C": [1e15]}, "set corpus in config/config.yaml to a larger text"),
    ],
)
def test_impossible_grids(fresh, keys, message):
    change(fresh, **keys)
    output = refused(fresh)
    assert "config/studies/sparsity.yaml" in output
    assert message in output


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("studies", "sparsty", "unknown study 'sparsty'; did you mean sparsity? There are: "),
        ("corpus", "nowhere.txt", "corpus: nowhere.txt matches no file"),
        ("tier", "paper", "grids.paper is missing; there are: demo"),
    ],
)
def test_mistakes_on_the_command_line(fresh, key, value, message):
    assert message in refused(fresh, **{key: value})


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("figures.optima:in", "figures.optim:in"), "F4: code: there is no module moelaws."),
        (("figures.optima:in", "figures.optima:n"), "optima has no function nside"),
        (("over: C_6N", "over: C_7N"), "F7: panels: 'C_7N' is no column; there are run_id"),
        (("size: total\n", "sizes: total\n"), "F4: code: with: figures.optima:inside takes"),
    ],
)
def test_mistakes_in_fits(fresh, edit, message):
    fresh.edit("config/studies/sparsity.yaml", *edit)
    assert message in refused(fresh)


def test_a_column_that_training_measures_cannot_choose_weights(fresh):
    fresh.write_study(fresh.study() | {"keep_weights": "L < 4"})
    with pytest.raises(UserError, match=r"keep_weights.*no column 'L'"):
        _ = Jobs.load({}, fresh.root).kept


@pytest.mark.slow
def test_braces_of_a_setting_are_no_wildcards(fresh):
    (fresh.root / "text").rename(fresh.root / "{téxt}")
    setting = "corpus={téxt}/*.py"
    planned = fresh.snakemake("-n", "-p", "--quiet", "host", "--config", setting).stdout
    assert """--set 'corpus="{téxt}/*.py"'""" in planned
    (report,) = re.findall("--report .* --configfile (.*) --", planned)
    assert json.loads((fresh.root / report).read_text()) == {
        "corpus": "{téxt}/*.py",
        "studies": ["sparsity"],
    }


@pytest.mark.slow
def test_too_little_held_out_text_is_noticed_before_any_run_trains(fresh):
    fresh.snakemake("--until", "prepare_corpus")
    (meta,) = fresh.root.glob("results/corpora/*/meta.json")
    tokens = json.loads(meta.read_text())["validation"]["tokens"]
    change(fresh, evaluation_sequences=tokens // 32 + 1)  # its bytes would do
    prepared = fresh.snakemake("tables", check=False)
    assert f"more than {tokens - 1:.4g} tokens of held-out text can give" in prepared.stderr
    shutil.rmtree(meta.parent)
    anew = fresh.snakemake("tables", check=False)
    assert re.search(r"moelaws: jobs that failed: 1 of .* \(prepare_corpus ", anew.stderr)
    assert f"holds out {tokens:,} tokens, and a run measures its loss on" in anew.stderr
    assert list((fresh.root / "results").glob("runs/*")) == []


@pytest.mark.slow
def test_a_sweep_over_its_limits_is_refused_and_a_dry_run_warns(fresh):
    limits = ("--config", "limits={cpu_hours: 1e-6}")
    dry = fresh.snakemake("-n", *limits)
    assert "more than limits.cpu_hours = 1e-06" in dry.stderr
    done = fresh.snakemake(*limits, check=False)
    assert done.returncode != 0
    assert "refused: " in done.stdout + done.stderr
    assert fresh.summaries() == []
