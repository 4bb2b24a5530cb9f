"""``moelaws plan``: the intervals and the cost of a sweep that nobody trained."""

import json
from pathlib import Path

import pytest
import yaml

from command_line import printed
from moelaws import laws
from moelaws.spec.errors import UserError
from planned_study import STUDY as SMALL

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


def test_people_see_what_is_true_and_what_it_costs():
    text = plan(study={**STUDY, "simulation": SIMULATION})
    assert "small, demo: chinchilla at 12 runs, noise 0.001 of ln L, simulated" in text
    assert "assumed: much" in text
    assert "chinchilla, chinchilla: 12 rows" in text
    assert "2 other fits of the study: --all" in text
    assert "12 runs of" in text
    assert "H100 hours" in text
    every = plan("--all", study={**STUDY, "simulation": SIMULATION})
    assert "many, sparsity.loss: cannot be fitted: " in every
    assert "other fit" not in every


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "small.yaml has no simulation, for no law gives its losses; name a law"),
        (["--law", "chinchilla", "--rows", "C > 1e20"], "selects none of the 12 runs"),
    ],
)
def test_mistakes(words, message):
    with pytest.raises(UserError, match=message):
        plan(*words)
