"""``moelaws next``: the choice from a table, and the loop of rounds with a real Snakemake."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command_line import printed
from moelaws.grids.rounds import Rounds, read_rounds, write_rounds
from moelaws.grids.sweep import expand_study
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_project, load_study, study_names
from repository import copy_repository
from sweep_copy import Copy
from waiting import wait_for

ROWS = [{"N": n, "D": d, "C": 6 * n * d} for n in (1e7, 1e8, 1e9) for d in (1e9, 1e10, 1e11)]


pytestmark = pytest.mark.usefixtures("project_folder")


@pytest.fixture
def table(tmp_path):
    """The three cheapest runs are known, one more diverged."""
    frame = pd.DataFrame(ROWS).sort_values("C", ignore_index=True).assign(status="completed")
    frame["L"] = [4.2, 3.6, 3.5] + [float("nan")] * 6
    frame.loc[3, ["status", "L"]] = ["diverged", 9.0]
    frame.to_csv(tmp_path / "runs.csv", index=False)
    return tmp_path / "runs.csv"


def chosen(*words):
    return json.loads(printed("next", *map(str, words), "--law", "chinchilla", "--json"))


def test_runs_without_a_loss_are_the_pool(table):
    data = chosen(table, "--target", "C=1e21", "--budget", "50%")
    assert data["known"] == 3
    assert data["laws"] == {"chinchilla": pytest.approx(1.0)}
    assert data["runs"]
    assert {run["run"] for run in data["runs"]} <= {5, 6, 7, 8, 9}  # neither known nor diverged
    best = data["best"]
    assert 6 * best["N"] * best["D"] == pytest.approx(1e21)
    assert best["L"] < 3.5  # what the law expects of more FLOPs than any known run had
    # Nothing is chosen where the target is known.
    data = chosen(table, "--target", "C=1e21", "--budget", "50%", "--tolerance", "0.99")
    assert data["error"] <= 0.9
    assert (data["state"], data["runs"]) == ("stopped: the target is known", [])


def test_the_pool_may_be_a_table_of_its_own(table, tmp_path):
    pool, frame = tmp_path / "pool.csv", pd.read_csv(table)
    frame[:3].to_csv(table, index=False)
    frame.drop(columns=["L", "status"]).to_csv(pool, index=False)
    cost = "(5 + exp(0)) * N*D -- in FLOPs"
    words = ("--pool", pool, "--target-rows", "N >= 1e9", "--budget", 1e20, "--cost", cost)
    data = chosen(table, *words)
    assert data["known"] == 3
    assert all(run["cost"] <= 1e20 and run["run"] > 3 for run in data["runs"])
    costs = [run["cost"] for run in data["runs"]]
    assert costs == pytest.approx([frame["C"][run["run"] - 1] for run in data["runs"]])


def test_a_search_of_rates_goes_on_beside_the_best_one_of_each_budget(tmp_path):
    rates = [1e-3 * 2**i for i in range(9)]
    frame = pd.DataFrame([{"C": C, "lr": lr} for C in (1e18, 1e19) for lr in rates])
    best = frame["C"].map({1e18: 1.6e-2, 1e19: 8e-3})
    whole = 3 + 0.05 * np.log(frame["lr"] / best) ** 2
    frame["L"] = whole.where(frame["lr"].isin(rates[::4]) & (frame["C"] == 1e18))
    frame.to_csv(path := tmp_path / "search.csv", index=False)
    words = ("next", str(path), "--search", "lr", "--per", "C", "--budget", "7e19")
    runs = json.loads(printed(*words, "--json"))["runs"]
    firsts = [run["run"] for run in runs if run["error"] is None]
    assert [run > 9 for run in firsts] == 3 * [True]  # those of the budget without losses
    assert any(run["run"] in (4, 6) for run in runs)  # beside the least loss known, at row 5
    text = printed(*words)
    assert re.search(r"least loss of each search\n +C +lr +L\n1e\+18 +0\.016 +3\n", text)
    assert re.search(r"row 6 +0\.032 +1e\+18 +the least loss falls by ", text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--budget", "1e20"), "say what the runs are for"),
        (("--budget", "1e20", "--search", "N", "--target", "1e21"), "say what the runs are for"),
        (("--budget", "1e20", "--search", "lr"), "no column 'lr'"),
        (("--budget", "1e20", "--search", "L"), "L is not above 0 in all runs"),
        (("--budget", "1e20", "--target-rows", "N>1e30"), "selects no row"),
        (("--budget", "1e20", "--target", "1e21", "--cost", "N-1e8"), "not above 0"),
        (("--budget", "1e20", "--target", "1e21", "--cost", "6*M*D"), "no column 'M'"),
        (("--budget", "1e20", "--target", "1e21", "--cost", "unnest([1, 2])"), "gives 18 values"),
        (("--budget", "1e20", "--target", "1e21", "--rounds", "3"), "go with a study"),
    ],
)
def test_slips_are_refused(table, words, message):
    with pytest.raises(UserError, match=message):
        printed("next", str(table), *words)


def test_more_runs_than_can_be_weighed_in_seconds_and_damaged_rounds_are_refused(tmp_path):
    pd.DataFrame({"N": 1e8, "D": 1e9, "C": 6e17}, range(10_001)).to_csv(tmp_path / "many.csv")
    with pytest.raises(UserError, match="10,001 runs are too many to choose among; give at most"):
        printed("next", tmp_path / "many.csv", "--target", "C=1e20", "--budget", "1%")
    path = tmp_path / "a.rounds.yaml"
    path.write_text("rounds: [{round: 1, tier: demo, target: C=1e12, runs: [{run: a, cost: -1}]}]")
    with pytest.raises(UserError, match=r"a\.rounds\.yaml"):
        read_rounds(path)
    assert read_rounds(tmp_path / "none.rounds.yaml") == Rounds()


ROUNDS = "config/studies/sparsity.rounds.yaml"
LOOP = (
    *("next", "sparsity", "--tier", "demo", "--set", "source=simulated"),
    *("--target", "C=1e12", "--budget", "30%", "--rounds", "3"),
)


@pytest.mark.slow
def test_three_rounds_on_simulated_losses_and_the_same_again(tmp_path):
    """A round is ordinary input of Snakemake; a loop that was killed goes on; the seed decides."""
    copy, other = Copy(tmp_path / "a"), Copy(tmp_path / "b")
    for each in (copy, other):
        copy_repository(each.root)
    tools = Path(sys.executable).parent
    words = [str(tools / "moelaws"), *LOOP]

    def called(words, where):
        of = {"cwd": where.root, "env": where.environment, "capture_output": True, "text": True}
        done = subprocess.run(words, **of)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr + done.stdout

    said = called(words, copy)
    assert "train round 1: snakemake" in said
    project = load_project(overrides={"tier": "demo", "source": "simulated"})
    first = read_rounds(copy.root / ROUNDS).run_ids(project)

    loop = subprocess.Popen([*words, "--cores", "2"], cwd=copy.root, env=copy.environment,
                            start_new_session=True)  # fmt: skip
    wait_for(lambda: len(read_rounds(copy.root / ROUNDS).rounds) == 2)
    os.killpg(loop.pid, signal.SIGKILL)  # Snakemake with it
    loop.wait()
    assert "stopped:" in called([*words, "--cores", "2"], copy)
    rounds = read_rounds(copy.root / ROUNDS)
    table = pd.read_parquet(copy.root / "results/demo/simulated/tables/sparsity.parquet")
    assert set(table["run_id"]) == rounds.run_ids(project) > first
    assert len(rounds.rounds) <= 3

    called([*words, "--cores", "2"], other)
    assert read_rounds(other.root / ROUNDS) == rounds


def test_ctrl_c_waits_for_snakemake_to_end_by_itself(tmp_path):
    snakemake = "trap 'sleep 1; exit 130' INT; touch begun; sleep 30"
    code = f"from moelaws.cli import rounds; exit(rounds._call(['sh', '-c', {snakemake!r}]))"
    loop = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, start_new_session=True)
    wait_for((tmp_path / "begun").exists)
    os.killpg(loop.pid, signal.SIGINT)
    assert loop.wait() == 130


def rounds_of(*runs, failed=(), **about):
    """Rounds of one, which asks for these runs of the demo."""
    each = [{"run": run, "name": "", "cost": 1.0, "reason": ""} for run in runs]
    of = {"round": 1, "tier": "demo", "target": "C=1e12", "runs": each, **about}
    return parse(Rounds, {"rounds": [of], "failed": failed}, "here")


def test_runs_that_simulated_losses_chose_are_not_those_of_a_trained_sweep():
    project, rounds = load_project(), rounds_of("a" * 16, source="simulated")
    assert not rounds.run_ids(project)
    assert rounds.run_ids(project.model_copy(update={"source": "simulated"})) == {"a" * 16}


def test_a_sweep_of_rounds_has_their_runs_alone():
    study = load_study("sparsity")
    project = load_project(overrides={"runs": "rounds"})
    with pytest.raises(UserError, match=r"runs = rounds, but .*sparsity\.rounds\.yaml has none"):
        expand_study(study, project)
    whole = expand_study(study, project.model_copy(update={"runs": "all"}))
    first, second = (run.run_id for run in whole.runs[:2])
    write_rounds(Path(ROUNDS), rounds_of(first, second, failed=[second]))
    assert [run.run_id for run in expand_study(study, project).runs] == [first]
    assert "sparsity.rounds" not in study_names()  # it is no study
