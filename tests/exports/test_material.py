"""What of a run goes to a tracker, and which runs go: no tracker is needed for these tests."""

import json
import sys

import pytest
from export_records import copy_run, id_of, replace_column

from command_line import call, printed
from moelaws.accounting.flops import train_flops_per_token
from moelaws.exports.material import Place, TrackedRun, export, places_of
from moelaws.files.atomic import read_json, write_json
from moelaws.files.parquet import read_parquet
from moelaws.records.runs import all_records, annotate, read_record
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project
from moelaws.spec.run import RunConfig
from repository import REPOSITORY

TRACKERS = ["mlflow", "tensorboard", "wandb"]
LOAD = ("cv", "entropy", "kl", "overflow", "unused", "never_used")


def tracked(results, run, place=Place()):  # noqa: B008, it is frozen
    return TrackedRun.of(read_record(results, run), results, place)


def exported(results, places, records=None, **options):
    """What ``export`` writes and says: [(study, run), ...], run -> why it was left out."""
    records = all_records(results) if records is None else records
    runs, reports = [], []

    def report(stage, done, total, note):
        reports.append((done, total))

    written, left_out = export(records, results, places, runs.append, report, **options)
    assert written == [{"study": run.place.study, "run_id": run.run_id} for run in runs]
    assert reports == [(done + 1, len(records)) for done in range(len(records))]
    reasons = {run["run_id"]: run["reason"] for run in left_out}
    return [tuple(run.values()) for run in written], reasons


def test_the_points_are_the_history_the_load_and_the_summary_at_times_of_the_training(results):
    run = id_of(results, "moe")
    material = tracked(results, run)
    points = {point.step: point for point in material.points}
    for row in read_parquet(results.run(run) / "history.parquet").to_pylist():
        point = points[row.pop("step")]
        assert {f"train/{n}": value for n, value in row.items()}.items() <= point.values.items()
        assert point.time == pytest.approx(material.started + row["seconds"], abs=1e-6)
    for row in read_parquet(results.run(run) / "load.parquet").to_pylist():
        if not row["validation"]:
            load = {f"load/{name}/layer{row['layer']}": row[name] for name in LOAD}
            assert load.items() <= points[row["step"]].values.items()
    summary, final = read_json(results.summary(run)), points[30].values
    assert final["final/L"] == summary["loss"]
    assert final["final/bits_per_byte"] == summary["bits_per_byte"]
    assert final["final/seconds"] == summary["wall_seconds"]
    assert final["final/balance_cv"] == summary["balance"]["cv"]
    assert [step for step, p in points.items() if "final/L" in p.values] == [30]
    for other, lacks in (("diverged", "final/L"), (id_of(results, "dense"), "final/balance_cv")):
        step, _, values = tracked(results, other).points[-1]
        assert (step, values.get("final/seconds", 0) > 0, lacks in values) == (30, True, False)


def test_parameters_are_the_tables_columns_and_the_whole_configuration(results):
    run = id_of(results, "moe")
    parameters = tracked(results, run).parameters
    config = parse(RunConfig, read_json(results.run(run) / "config.json"), run)
    flops = train_flops_per_token(config.model, "sparsity") * config.tokens
    assert parameters["C_sparsity"] == pytest.approx(flops)
    assert parameters["config.optimizer.beta1"] == 0.9  # a default, which config.json leaves out
    assert parameters["config.model.ffn.n_experts"] == parameters["E"] == 4


def test_the_digest_is_of_all_that_is_sent(results):
    run = id_of(results, "moe")
    digests = [tracked(results, run).digest]
    assert digests == [tracked(results, run).digest]
    annotate(results, run, {"baseline": "yes"}, "best so far")
    digests.append(tracked(results, run).digest)
    summary = read_json(results.summary(run))
    write_json(results.summary(run), {**summary, "loss": 1.0})
    digests.append(tracked(results, run).digest)
    replace_column(results.run(run) / "history.parquet", "loss", [3.0] * 30)
    digests.append(tracked(results, run).digest)
    assert len(set(digests)) == 4


def test_a_run_goes_once_for_each_study_that_asks_for_it_or_if_it_is_named(results):
    run = id_of(results, "moe")
    places = {run: [Place("sparsity", "demo"), Place("leverage", "demo")]}
    written, left_out = exported(results, places)
    assert written == [("sparsity", run), ("leverage", run)]
    assert left_out.pop("lacking") == "out of memory"
    assert set(left_out.values()) == {"no chosen study asks for it at this tier"}
    assert len(left_out) == 2
    written, _ = exported(results, {}, [read_record(results, "diverged")], named=True)
    assert written == [("moelaws", "diverged")]


def test_a_damaged_or_foreign_run_is_left_out_and_the_others_go(results):
    copy_run(results, "diverged", "foreign")
    config = read_json(results.run("foreign") / "config.json")
    write_json(results.run("foreign") / "config.json", {**config, "wings": 2})
    path = results.run("diverged") / "history.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    written, left_out = exported(results, None)
    assert len(written) == 2
    assert "unknown key wings" in left_out["foreign"]
    assert "history.parquet" in left_out["diverged"]


def test_the_studies_of_a_run_are_those_of_the_grid(project_folder):
    grid = json.loads(printed("grid", "sparsity", "--tier", "demo", "--json"))
    places = places_of(Project(tier="demo", studies=("sparsity",), validation=0.1))
    assert len(grid) > 30
    for run in grid:
        (entry,) = places.pop(run["run_id"])
        assert (entry.study, entry.tier, entry.C) == ("sparsity", "demo", run["C"])
        assert ",".join(entry.sweeps) == run["sweep"]
    assert places == {}


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_told_with_its_lock(name, results, tmp_path, monkeypatch):
    # A module below the package may be loaded already, and Python would then not ask the package.
    below = [module for module in sys.modules if module.startswith(f"{name}.")]
    for module in (name, *below):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"moelaws.exports.{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    what = f"export {name} needs the package {name}: pip install --no-deps -r envs/{name}.txt"
    with pytest.raises(UserError, match=what):
        call("export", name, "--to", "sqlite:///x.db", "--results", results.root)


def test_locks_can_be_installed_beside_the_environment_and_together():
    """`.ci/run` has them in one folder."""

    def pins(path):
        words = [line.split()[0] for line in path.read_text().splitlines() if "==" in line]
        return {tuple(word.lower().split("==")) for word in words if word[0].isalpha()}

    envs = REPOSITORY / "envs"
    locked = set().union(*map(pins, envs.glob("*.lock")))
    every = set().union(*map(pins, envs.glob("*.txt")))
    assert len({package for package, _ in every}) == len(every)
    for name in TRACKERS:
        packages = {package for package, _ in pins(envs / f"{name}.txt")}
        assert {name, f"{name}-skinny"} & packages
        assert not packages & {package for package, _ in locked}
