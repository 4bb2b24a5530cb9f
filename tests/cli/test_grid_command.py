"""moelaws grid and moelaws plan: what a sweep would train, tell and cost."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from command_line import call, printed
from moelaws import laws
from planned_study import STUDY as SMALL

pytestmark = pytest.mark.usefixtures("project_folder")
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


@pytest.mark.parametrize(("source", "times"), [("auto", 0), ("step_law", 1)])
def test_step_law_beyond_its_searches_is_said_once(project_folder, source, times):
    (project_folder / "text.txt").write_text("a text\n")
    settings = (f"hyperparameters={source}", CHOSEN, "corpus=text.txt")
    done = call("grid", *(word for text in settings for word in ("--set", text)))
    assert done.stderr.count("Step Law sets learning rates or batches beyond the sea") == times


def test_a_tier_of_ones_own_is_a_file_and_no_shipped_one_is_edited(grid, project_folder, ended):
    assert "it must be demo, workstation, gpu, node or paper" in ended("grid", "--tier", "lab")[2]
    study = yaml.safe_load(Path("config/studies/sparsity.yaml").read_text())
    sweeps = [{"axes": {"C": 2e10, "S": [0, 0.5], "d_model": 16}}]
    own = study["grids"]["demo"] | {"sweeps": sweeps}
    Path("config/tiers").mkdir()
    Path("config/tiers/lab.yaml").write_text(yaml.safe_dump({"sparsity": own}))
    rows = json.loads(grid("sparsity", "--tier", "lab", "--json"))
    assert [row["S"] for row in rows] == [0, 0.5]
    assert len(json.loads(grid("sparsity", "--json"))) > 2  # at the demo, as before
    lacking = ended("grid", "--tier", "lab", "generalization")[2]
    assert "config/tiers/lab.yaml: generalization is missing; there are: demo" in lacking


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


def plan(*words, study=STUDY):
    Path("config/studies/small.yaml").write_text(yaml.safe_dump(study))
    return printed("plan", "small", *words, "--sample", "50")


def test_the_studys_own_law_its_intervals_and_the_cost(project_folder):
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
    cpu, gpu = data["costs"]
    assert (cpu["device"], gpu["device"]) == ("CPU core", "H100")
    assert cpu["runs"] == gpu["runs"] == 12
    assert cpu["flops"] == pytest.approx(4 * (1e16 + 1e17 + 1e18), rel=0.01)
    assert not (project_folder / "results/demo").exists()


def test_less_noise_and_more_seeds_narrow_the_intervals():
    def planned(*words):
        words = ("--law", "chinchilla", "--json", *words)
        data = json.loads(plan(*words, study={**STUDY, "fits": []}))
        return data, data["fits"][0]["parts"][0]["params"]["E"]["relative_width"]

    usual, width = planned("--noise", "0.003")
    assert planned("--noise", "0.0003")[1] < width / 2
    four, narrower = planned("--noise", "0.003", "--repeats", "4")
    assert narrower < width
    assert four["costs"][1]["tokens"] == 4 * usual["costs"][1]["tokens"]


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
