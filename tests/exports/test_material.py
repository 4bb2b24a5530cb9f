"""What of a run goes to a tracker, and which runs go: no tracker is needed for these tests."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from export_records import copy_run, replace_column, run_of

from moelaws.accounting.flops import train_flops_per_token
from moelaws.cli import cli
from moelaws.cli.export import FORMATS
from moelaws.exports.chosen import asked_in, choose
from moelaws.exports.material import Asked, TrackedRun
from moelaws.exports.send import send
from moelaws.records.annotations import annotate
from moelaws.records.files import read_json, write_json
from moelaws.records.parquet import read_parquet
from moelaws.records.runs import all_records, read_record
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project
from moelaws.spec.run import RunConfig
from repository import REPOSITORY, copy_repository

TRACKERS = ["mlflow", "tensorboard", "wandb"]


def tracked(results, run, asked=Asked()):  # noqa: B008, it is frozen
    return TrackedRun.of(read_record(results, run), results, asked)


def test_the_points_are_the_history_the_load_and_the_summary(results):
    run = run_of(results, "moe")
    points = {point.step: point for point in tracked(results, run).points()}
    for row in read_parquet(results.run(run) / "history.parquet").to_pylist():
        step = row.pop("step")
        assert {f"train/{name}": value for name, value in row.items()}.items() <= dict(
            points[step].values
        ).items()
    for row in read_parquet(results.run(run) / "load.parquet").to_pylist():
        if not row["validation"]:
            assert points[row["step"]].values[f"load/cv/layer{row['layer']}"] == row["cv"]
    summary = read_json(results.summary(run))
    assert points[30].values["final/L"] == summary["loss"]
    assert points[30].values["final/balance_cv"] == summary["balance"]["cv"]
    assert [step for step, p in points.items() if "final/L" in p.values] == [30]


def test_times_are_those_of_the_training(results):
    material = tracked(results, run_of(results, "moe"))
    history = read_parquet(results.run(material.run_id) / "history.parquet").to_pylist()
    for row, point in zip(history, material.points(), strict=True):
        assert point.time == pytest.approx(material.started + row["seconds"], abs=1e-6)


def test_a_run_is_told_by_its_width_its_experts_its_budget_and_its_seed(results):
    run = run_of(results, "moe")
    at_budget = tracked(results, run, Asked("sparsity", "demo", 2e11))
    assert at_budget.label == f"d16 E4 2e11 s0 · {run[:8]}"
    dense = tracked(results, run_of(results, "dense"))
    assert dense.label.startswith("d16 dense ")


def test_parameters_are_the_tables_columns_and_the_whole_configuration(results):
    run = run_of(results, "moe")
    parameters = tracked(results, run).parameters
    config = parse(RunConfig, read_json(results.run(run) / "config.json"), run)
    flops = train_flops_per_token(config.model, "sparsity") * config.tokens
    assert parameters["C_sparsity"] == pytest.approx(flops)
    assert parameters["config.optimizer.beta1"] == 0.9  # a default, which config.json leaves out
    assert parameters["config.model.ffn.n_experts"] == parameters["E"] == 4


def test_words_change_what_is_sent_and_not_the_record(results):
    run = run_of(results, "moe")
    before = tracked(results, run)
    annotate(results, run, {"baseline": "yes"}, "best so far")
    noted = tracked(results, run)
    assert noted.digest != before.digest
    assert noted.record_digest == before.record_digest
    summary = read_json(results.summary(run))
    write_json(results.summary(run), {**summary, "loss": 1.0})
    assert tracked(results, run).record_digest != before.record_digest


def test_a_changed_history_is_another_record(results):
    before = tracked(results, "diverged").record_digest
    replace_column(results.run("diverged") / "history.parquet", "loss", [3.0] * 30)
    assert tracked(results, "diverged").record_digest != before


def test_a_run_goes_once_for_each_study_that_asks_for_it(results):
    run = run_of(results, "moe")
    asked = {run: [Asked("sparsity", "demo"), Asked("leverage", "demo")]}
    chosen = choose(all_records(results), results, asked)
    assert [(r.study, r.run_id) for r in chosen.runs] == [("sparsity", run), ("leverage", run)]
    reasons = {left.run_id: left.reason for left in chosen.left_out}
    assert reasons.pop("lacking") == "out of memory"
    assert set(reasons.values()) == {"no chosen study asks for it at this tier"}
    assert len(reasons) == 2


def test_a_run_that_is_named_goes_without_a_study(results):
    chosen = choose([read_record(results, "diverged")], results, {}, named=True)
    assert [(r.study, r.run_id) for r in chosen.runs] == [("moelaws", "diverged")]


def test_a_configuration_of_another_version_is_left_out_with_the_reason(results):
    copy_run(results, "diverged", "foreign")
    config = read_json(results.run("foreign") / "config.json")
    write_json(results.run("foreign") / "config.json", {**config, "wings": 2})
    chosen = choose([read_record(results, "foreign")], results, None)
    (left,) = chosen.left_out
    assert "unknown key wings" in left.reason


def test_a_damaged_run_is_left_out_and_the_others_are_sent(results):
    class Memory:
        """A tracker that keeps the points of runs."""

        def __init__(self):
            self.points = {}

        def put(self, run):
            self.points[run.run_id] = run.points()
            return "added"

    path = results.run("diverged") / "history.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    tracker, reports = Memory(), []
    chosen = choose(all_records(results), results, None)
    sent = send(chosen, tracker, lambda stage, done, total, note: reports.append((done, total)))
    assert [run.run_id for run in sent.runs["added"]] == list(tracker.points)
    assert len(tracker.points) == 2
    reasons = {left.run_id: left.reason for left in sent.left_out}
    assert "history.parquet" in reasons["diverged"]
    assert reports == [(1, 3), (2, 3), (3, 3)]


def test_the_studies_of_a_run_are_those_of_the_grid(tmp_path, monkeypatch):
    copy_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["grid", "sparsity", "--tier", "demo", "--json"]
    grid = json.loads(CliRunner().invoke(cli, words).stdout)
    asked = asked_in(Project(tier="demo", studies=("sparsity",), validation=0.1))
    assert len(grid) > 50
    for run in grid:
        (entry,) = asked.pop(run["run_id"])
        assert (entry.study, entry.tier, entry.C) == ("sparsity", "demo", run["C"])
        assert ",".join(entry.sweeps) == run["sweep"]
    assert asked == {}


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_told_with_its_lock(name, results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"moelaws.exports.{name}", raising=False)
    offline = ["--offline"] if name == "wandb" else []
    words = ["export", name, "--to", "sqlite:///x.db", *offline, "--results", str(results.root)]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, words)
    assert isinstance(done.exception, UserError)
    assert str(done.exception) == (
        f"export {name} needs the package {name}: pip install --no-deps -r envs/{name}.txt"
    )


def test_wandb_is_never_asked_for_its_server(results):
    done = CliRunner().invoke(cli, ["export", "wandb", "--results", str(results.root)])
    assert "add --offline" in str(done.exception)


def test_each_format_has_its_own_help():
    told = CliRunner().invoke(cli, ["export", "--help"]).stdout
    for name, (_, line) in FORMATS.items():
        assert f"{name} " in told
        assert line in " ".join(told.split())
        assert CliRunner().invoke(cli, ["export", name, "--help"]).exit_code == 0


def test_what_goes_to_a_tracker_is_told_without_torch():
    modules = "moelaws.exports.material, moelaws.exports.chosen, moelaws.exports.send"
    code = f"import {modules}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_locks_can_be_installed_beside_the_environment_and_together():
    def pins(name):
        lines = (REPOSITORY / "envs" / name).read_text().splitlines()
        words = [line.split()[0] for line in lines if line and not line.startswith("#")]
        return {tuple(word.lower().split("==")) for word in words}

    locked = {package for package, _ in pins("cpu.lock")}
    every = set()
    for name in TRACKERS:
        packages = {package for package, _ in pins(f"{name}.txt")}
        assert not packages & locked
        assert {name, f"{name}-skinny"} & packages
        every |= pins(f"{name}.txt")
    assert len({package for package, _ in every}) == len(every)
