"""moelaws grid and moelaws plan: what a sweep would train, tell and cost."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from command_line import call, printed
from moelaws import laws
from planned_study import STUDY as SMALL

CHOSEN = "studies=generalization,sparsity,routing"


@pytest.fixture
def grid(project_folder):
    (project_folder / "text.txt").write_text("a text\n")
    return partial(printed, "grid", "--set", CHOSEN, "--set", "corpus=text.txt")


def test_every_chosen_study_that_has_a_grid_is_listed(grid):
    rows = json.loads(grid("--json"))
    assert list(rows) == ["generalization", "sparsity"]  # routing imports its runs
    run = rows["sparsity"][-1]
    assert json.loads(grid("--run", run["run_id"]))["model"]["d_model"] == run["d_model"]
    titles = [line for line in grid().splitlines() if ", demo: " in line]
    assert [title.partition(",")[0] for title in titles] == ["generalization", "sparsity"]


def test_runs_side_by_side_on_a_gpu_cost_fewer_hours(grid):
    words = ("sparsity", "--tier", "gpu", "--set", "runs_per_gpu=8")
    rows = json.loads(printed("grid", *words, "--json"))
    alone = json.loads(printed("grid", *words[:3], "--json"))
    for row, other in zip(rows, alone, strict=True):
        assert row["estimated_seconds"] == pytest.approx(8 * row["device_seconds"])
        assert row["device_seconds"] < other["device_seconds"] == other["estimated_seconds"]
    hours = sum(row["device_seconds"] for row in rows) / 3600
    assert f"about {hours:,.3g} H100 hours" in printed("grid", *words)


@pytest.mark.parametrize(("source", "times"), [("auto", 0), ("step_law", 1)])
def test_step_law_beyond_its_searches_is_said_once(project_folder, source, times):
    (project_folder / "text.txt").write_text("a text\n")
    settings = (f"hyperparameters={source}", CHOSEN, "corpus=text.txt")
    done = call("grid", *(word for text in settings for word in ("--set", text)))
    assert done.stderr.count("Step Law sets learning rates or batches beyond the sea") == times


def test_a_tier_of_ones_own_is_a_file_and_no_shipped_one_is_edited(grid, project_folder, ended):
    assert "it must be demo, workstation, gpu or paper" in ended("grid", "--tier", "lab")[2]
    study = yaml.safe_load(Path("config/studies/sparsity.yaml").read_text())
    own = {
        **study["grids"]["demo"],
        "sweeps": [{"axes": {"C": 2e10, "S": [0, 0.5], "d_model": 16}}],
    }
    Path("config/tiers").mkdir()
    Path("config/tiers/lab.yaml").write_text(yaml.safe_dump({"sparsity": own}))
    rows = json.loads(grid("sparsity", "--tier", "lab", "--json"))
    assert [row["S"] for row in rows] == [0, 0.5]
    assert len(json.loads(grid("sparsity", "--json"))) > 2  # at the demo, as before
    lacking = ended("grid", "--tier", "lab", "generalization")[2]
    assert "config/tiers/lab.yaml: generalization is missing; there are: demo" in lacking


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, ": unknown key colour"),
        ({"sweeps": [{"axes": {"colour": [1]}}]}, ": sweeps #1: there is no setting 'colour'"),
        # These two are found when runs are made of the grid.
        ({"derive": {}}, ", sweep 1, point {C: 1.5e10, S: 0, d_model: 10, seed: 0}: "),
        (
            {"sweeps": [{"axes": {"C": "2e10", "S": 2, "d_model": 16}}]},
            ", sweep 1, point {C: 2e10, S: 2",
        ),
    ],
)
def test_a_mistake_in_a_tier_of_ones_own_names_its_file(project_folder, ended, change, message):
    study = yaml.safe_load(Path("config/studies/sparsity.yaml").read_text())
    own = {"sparsity": {**study["grids"]["demo"], **change}}
    Path("config/tiers").mkdir()
    Path("config/tiers/lab.yaml").write_text(yaml.safe_dump(own))
    said = ended("grid", "sparsity", "--tier", "lab")[2]
    assert f"config/tiers/lab.yaml: sparsity{message}" in said
    assert "config/studies" not in said


GRID = SMALL["grids"]["demo"]
SHARING = GRID["settings"] | {"schedule": "wsd", "warmup_steps": 10, "n_experts": 4}
WIDTH = {"d_expert": GRID["derive"]["d_expert"]}


def listed(settings, derive, axes):
    grid = {"settings": settings, "derive": derive, "sweeps": [{"axes": axes}]}
    study = {"study": "small", "title": "Several lengths", "grids": {"demo": grid}}
    Path("config/studies/small.yaml").write_text(yaml.safe_dump(study))
    return printed("grid", "small"), json.loads(printed("grid", "small", "--json"))


def test_what_runs_of_one_trunk_spend(project_folder):
    """100 steps, of 200 all but the first 90, and of 400 all but the first 180."""
    text, rows = listed(SHARING, WIDTH, {"steps": [100, 200, 400], "d_model": [64, 128]})
    assert [row["shared_steps"] for row in rows] == [0, 90, 180] * 2
    for row in rows:
        own = 1 - row["shared_steps"] / row["steps"]
        assert row["flops_spent"] == pytest.approx(row["C_sparsity"] * own)
    spent = sum(row["C_sparsity"] for row in rows) * 430 / 700
    assert f"{spent:.3g} of them spent with shared trunks" in text


def test_rates_that_depend_on_the_length_make_no_trunk(project_folder):
    settings = {key: value for key, value in SHARING.items() if key != "lr"}
    rate = {"rule": "power", "value": 1e-3, "at": {"C": 1.0}, "exponent": {"C": -0.1}}
    by_tokens = {"rule": "tokens", "min_steps": 10, "laws_at": {"convention": "sparsity"}}
    derive = {**WIDTH, "lr": rate, "steps": by_tokens}
    _, rows = listed(settings, derive, {"D": [1e5, 2e5], "d_model": 64})
    assert not any(row["shared_steps"] for row in rows)
    rates = {"rule": "table", "by": ["D"], "rows": [[1e5, 0.01], [2e5, 0.01], [4e5, 0.02]]}
    _, rows = listed(settings, derive | {"lr": rates}, {"D": [1e5, 2e5, 4e5], "d_model": 64})
    assert [row["shared_steps"] > 0 for row in rows] == [False, True, False]


SWEEP = {"axes": {"C": [1e16, 1e17, 1e18], "S": [0], "d_model": [64, 128, 256, 512]}}
STUDY = {
    "study": "small",
    "title": "A sweep that is not trained yet",
    "grids": {"demo": {**SMALL["grids"]["demo"], "sweeps": [SWEEP]}},
    "fits": [
        {"name": "size", "law": "leverage.curve", "mapping": {"C": "C_sparsity", "L": "L"}},
        {"name": "many", "law": "sparsity.loss", "mapping": {"N": "N_total"}},
    ],
}
SIMULATION = {"law": "chinchilla", "mapping": {"N": "N_total"}, "noise": 0.001, "assumed": "much"}


@pytest.fixture(autouse=True)
def folder(project_folder):
    return project_folder


def plan(*words, study=STUDY):
    Path("config/studies/small.yaml").write_text(yaml.safe_dump(study))
    return printed("plan", "small", *words, "--sample", "50")


def test_the_studys_own_law_its_intervals_and_the_cost(folder):
    data = json.loads(plan("--json", "--all", study={**STUDY, "simulation": SIMULATION}))
    assert (data["law"], data["noise"], data["seed"], data["rows"]) == ("chinchilla", 0.001, 1, 12)
    assert data["assumed"] == "much"
    fits = {fit["name"]: fit for fit in data["fits"]}
    assert list(fits) == ["size", "many", "chinchilla"]  # the law's own comes with the study's
    assert "sparsity.loss" in fits["many"]["error"]
    (group,) = fits["chinchilla"]["parts"]
    published = laws.fittable("chinchilla").published
    assert {n: p["reference"] for n, p in group["params"].items()} == published
    for parameter in group["params"].values():
        assert parameter["low"] < parameter["estimate"] < parameter["high"]
    assert {p["reference"] for p in fits["size"]["parts"][0]["params"].values()} == {None}
    cpu, gpu = data["costs"]
    assert (cpu["device"], gpu["device"]) == ("CPU core", "H100")
    assert cpu["runs"] == gpu["runs"] == 12
    assert cpu["flops"] == pytest.approx(4 * (1e16 + 1e17 + 1e18), rel=0.01)
    assert not (folder / "results").exists() or not list(folder.glob("results/demo"))


def test_less_noise_and_more_seeds_narrow_the_intervals():
    def planned(*words):
        words = ("--law", "chinchilla", "--json", *words)
        data = json.loads(plan(*words, study={**STUDY, "fits": []}))
        return data, data["fits"][0]["parts"][0]["params"]["E"]["relative_width"]

    usual, width = planned("--noise", "0.003")
    assert planned("--noise", "0.0003")[1] < width / 2
    four, narrower = planned("--noise", "0.003", "--repeats", "4")
    assert four["rows"] == 48
    assert narrower < width
    assert four["costs"][1]["tokens"] == 4 * usual["costs"][1]["tokens"]
    few, _ = planned("--rows", "C >= 1e17")
    assert few["rows"] == few["costs"][0]["runs"] == 8


def test_what_the_sweep_would_tell_of_a_larger_budget():
    """By the engine of `moelaws next`: fewer runs or more noise leave more open."""

    def expected(*words, study=STUDY):
        words = ("--law", "chinchilla", "--target", "C=1e20", "--json", *words)
        return json.loads(plan(*words, study={**study, "fits": []}))["expected"]

    usual, noisy = expected(), expected("--noise", "0.05")
    assert 0 <= usual["regret"] < noisy["regret"]
    assert 0 < usual["error"] < noisy["error"]
    assert usual["error"] < expected("--rows", "C <= 1e17")["error"]
    assert "expected error at C=1e+20: " in plan("--law", "chinchilla", "--target", "1e20")
