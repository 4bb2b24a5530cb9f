"""`moelaws advise` as people call it: budgets and limits in their units, fits, plans, mistakes."""

import json
import re
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest

from command_line import call, printed
from moelaws import laws
from moelaws.files.layout import Results, TierFolder
from moelaws.fitting.fit import fit
from moelaws.fitting.report import write_fit
from moelaws.spec.advice import ADVICE, load_advice
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.spec.project import load_project
from moelaws.tables.parquet import read_table
from moelaws.workflow.verify import Verification
from repository import REPOSITORY

EVIDENCE = REPOSITORY / "docs/evidence"
advise = partial(printed, "advise")
SMALL = ("--shape", "demo")  # for the budgets of small models


def line(first, output):
    """The first line that begins with a word."""
    return next(text for text in output.splitlines() if text.startswith(first))


def cells(title, output):
    """The cells of a row, for training alone and for serving."""
    return re.split("  +", line(title, output))[1:]


def answer(*words):
    return json.loads(advise(*words, "--json"))


def test_gpu_hours_are_flops_at_an_assumed_speed(project_folder):
    hours = answer("--gpu-hours", 1000, "--gpu", "a100", "--mfu", 0.15)
    assert hours["compute"] == pytest.approx(1000 * 3600 * 0.15 * 3.12e14)
    assert hours["gpu_hours"] == {"A100": pytest.approx(1000)}
    own = hours["configuration"]
    assert own["flops"]["all"] / (1 - own["waiting"]) == pytest.approx(hours["compute"])
    assert own["mfu"] == pytest.approx(0.15 * (1 - own["waiting"]))


def test_memory_and_tokens_at_hand_limit_every_plan(project_folder):
    words = ["--compute", 1e21, "--serve-memory", "48GB", "--gpus", 8, "--memory", "80GiB"]
    given = answer(*words, "--max-tokens", "40B")
    assert given["limits"]["max_tokens"] == 4e10
    assert given["limits"]["max_parameters"] == {
        "the memory to serve from": pytest.approx(24e9),
        "the memory to train in": pytest.approx(0.8 * 8 * 80 * 2**30 / 18),
    }
    assert all(plan["N"] <= 24e9 * (1 + 1e-9) for plan in given["plans"])
    assert all(plan["D"] <= 4e10 * (1 + 1e-9) for plan in given["plans"])
    often = "The model passes 3. times over the text.*--max-tokens 4B keeps to that"
    assert re.search(often, advise("--compute", 1e20, "--text-tokens", 1e9))
    by_fp8 = answer("--compute", 1e21, "--serve-memory", "48GB", "--bytes-per-parameter", 1)
    assert by_fp8["limits"]["max_parameters"] == {"the memory to serve from": pytest.approx(48e9)}


def test_a_users_own_plan_is_judged_beside_the_others(project_folder):
    *_, own = answer("--compute", 1e20, "--compare", "N=8e9 S=0.9")["plans"]
    assert own["name"] == "your plan"
    assert own["N_active"] == pytest.approx(8e8)
    assert 0.5 * 1e20 / 6 / 8e8 < own["D"] < 1e20 / 6 / 8e8  # a token costs more than its products


@pytest.mark.slow
def test_the_answer_is_written_on_one_page_with_a_picture(project_folder):
    words = ("--compute", 1e21, "--laws", "chinchilla,joint.loss")
    assert advise(*words, "--out", "answer.md") == "answer.md\n"
    page = (project_folder / "answer.md").read_text()
    printed = advise(*words, "--details")
    for first in ("Build (served)", "- People trained", "Budget", "- It takes"):
        assert line(first, printed) in page
    assert f"| days | {' | '.join(cells('days', printed))} |" in page
    assert "| S at most | N | N_active |" in page
    assert "](answer.png)" in page
    assert (project_folder / "answer.png").read_bytes()[1:4] == b"PNG"
    with pytest.raises(UserError, match=r"its name must end in \.md"):
        advise(*words, "--out", "answer.png")


def test_days_follow_from_the_gpus_and_gpus_in_whole_nodes_from_the_days(project_folder):
    assert cells("days", advise("--compute", 1e21, "--gpus", 8))[0] == "4.18 on 8 GPUs"
    assert cells("days", advise("--compute", 1e21, "--days", 1))[0] == "0.836 on 40 GPUs"


def test_a_known_model_is_compared_at_its_own_budget(project_folder):
    """By 6 N_active D it costs 4e22 FLOPs, and by all products and waiting more."""
    output = advise("--compute", 4.02e22, "--compare", "olmoe")
    assert "3.98e+22 FLOPs by 6 N_active D, but 5.81e+22 with all products" in output
    people = line("- People trained", output)
    assert re.findall(r"([A-Z][\w-]+) \(", people) == ["OLMoE", "DeepSeek-V2-Lite", "Moonlight"]
    *_, own = answer("--compute", 1e20, "--compare", "Mixtral 8x7B")["plans"]
    assert own["D"] < 1e20 / 6 / 12.9e9  # those of the budget, for its own are not published


def test_the_dense_model_of_the_same_loss_is_told(project_folder):
    """By Eq 6 alone, which reads the same loss off it (the qs inequality)."""
    words = ["--compute", 1e21, "--laws", "sparsity.loss"]
    ratio, _ = re.findall(r"\(q s\) +([\d.]+) of its size +([\d.]+) of", advise(*words))[0]
    plan, law = answer(*words)["plans"][-1], laws.get("sparsity.loss")
    sizes, S = np.array([plan["N"], float(ratio) * plan["N"]]), np.array([plan["S"], 0.0])
    own, dense = law.predict(law.published, {"N": sizes, "D": np.full(2, plan["D"]), "S": S})
    assert float(ratio) < 1
    assert dense == pytest.approx(own, abs=0.005)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give the budget either as --compute FLOPS or as --gpu-hours HOURS"),
        (["--compute", 1e20, "--experts", "64"], "needs the number of active ones"),
        (["--compute", 1e20, "--laws", "chinchila"], "'chinchila' is no candidate law of"),
        (["--compute", 1e20, "--serve-memory", "2MB"], "no model of whole layers and experts"),
        (["--compute", 1e10], "decades from those of its runs, and beyond 2 a law judges nothing"),
        (["--compute", 1e20, "--compare", "OLMo"], "no known model; did you mean OLMoE?"),
        (["--compute", 1e20, "--max-tokens", 1e9, "--compare", "N=1e9 S=0 D=2e9"], "tokens allows"),
        (["--compute", 1e20, "--serve-sequences", 8], "limit nothing without --serve-memory"),
    ],
)
def test_mistakes_are_told_in_one_line(project_folder, words, message):
    with pytest.raises(UserError, match=message) as mistake:
        advise(*words)
    assert "\n" not in str(mistake.value)


def fitted(frame, mapping, law="chinchilla", **options):
    """The report of a user's own fit of a law, from few starts."""
    entry = Fit(name="own", law=law, mapping=mapping, protocol={"sample": 50}, **options)
    return fit(laws.fittable(law), frame, entry)


def test_a_users_own_fit_judges_beside_the_published_laws(project_folder):
    """A fit to this repository's runs, as a user's own."""
    for file in (EVIDENCE / "fits/sparsity").glob("chinchilla.*"):
        shutil.copy(file, project_folder)
    given = answer("--compute", 1e13, "--fits", project_folder / "chinchilla.json", *SMALL)
    judge = given["judges"][-1]
    assert judge["source"] == "trained"
    # The sparsest are held out.
    runs = pd.read_parquet(EVIDENCE / "sparsity.parquet").query("S <= 0.875")
    ends = (6 * runs["N_active"] * runs["D"]).agg(["min", "max"])
    assert judge["fitted_on"].keys() == {"N_active", "D", "C"}
    assert judge["fitted_on"]["C"] == pytest.approx(ends.tolist())
    own = next(plan for plan in given["plans"] if plan["name"] == judge["name"])
    regret = own["regret"][judge["name"]]
    assert regret["nats"] == 0 <= regret["high"]
    low, high = own["intervals"]["N_active"]
    assert low <= high


@pytest.mark.slow
def test_a_fit_of_a_users_own_table_is_taken_by_its_variables(project_folder):
    runs = pd.read_csv(REPOSITORY / "docs/losses.csv").drop(columns="source")
    mapping = {"N": "params", "D": "tokens", "L": "loss"}
    write_fit(fitted(runs, mapping, bootstrap=20), project_folder / "own.json")
    output = advise("--compute", 1e21, "--fits", project_folder / "own.json", "--details")
    assert "takes columns of its fitted table by their variables: params as N_active" in output
    # wang.loss counts experts, and how many of them were active is not in any fit.
    frame = runs.assign(n_experts=np.tile([2, 4, 8], 14), loss=lambda t: t["loss"] - 0.01)
    mapping |= {"E": "n_experts"}
    write_fit(fitted(frame, mapping, "wang.loss", bootstrap=20), project_folder / "own.json")
    with pytest.raises(UserError, match="the experts of runs with k active ones"):
        advise("--compute", 1e21, "--fits", project_folder / "own.json")
    words = ["--fits", project_folder / "own.json", "--fits-top-k", 2, "--details"]
    output = advise("--compute", 1e21, *words)
    assert "n_experts as expansion" in output


@pytest.mark.slow
def test_the_outlook_of_a_tier_goes_beyond_its_largest_budget(project_folder):
    fits = [EVIDENCE / f"fits/sparsity/{name}.json" for name in ("chinchilla", "wang")]
    table = EVIDENCE / "sparsity.parquet"
    words = ["outlook", *fits, "--table", table, "--tier", "workstation", "--out", "o/outlook.md"]
    assert printed(*words) == "o/outlook.md\n"
    answers = json.loads((project_folder / "o/outlook.json").read_text())["answers"]
    largest = read_table(table)["C_6N"].max()
    assert {float(n): own["compute"] for n, own in answers.items()} == pytest.approx(
        {10: 10 * largest, 100: 100 * largest}
    )
    page = (project_folder / "o/outlook.md").read_text()
    assert re.search(r"\nBuild \d+ layers of width \d+, ", page)
    assert "| sparsity/chinchilla | sparsity/wang | worst |" in page
    verification = Verification(Results(project_folder), {}, advice=load_advice())
    verdict, *pages = verification.tier(TierFolder(project_folder / "o"))
    assert {page.state for page in pages} == {"whole"}
    assert (verdict.kind, verdict.state) == ("outlook", "whole")
    with ADVICE.open("a") as config:
        config.write("# another word\n")
    verdict, *_ = verification.tier(TierFolder(project_folder / "o"))
    assert verdict.state == "stale"
    assert "advice.yaml is changed" in verdict.reason


@pytest.mark.slow
def test_each_data_set_of_a_split_fit_is_a_law_and_says_which_loss_to_expect(project_folder):
    """The interval is that of the fit's own roll-out, which `eval` prints too."""
    law, rng = laws.get("chinchilla"), np.random.default_rng(0)
    C = np.repeat([1e17, 3e17, 1e18, 3e18, 1e19, 3e19], 6)
    N = 0.1 * np.sqrt(C) * np.tile(np.geomspace(0.3, 3, 6), 6)
    runs = pd.DataFrame({"N_active": N, "D": C / (6 * N)})
    L = law.predict(law.published, {"N": N, "D": runs["D"]}) * np.exp(rng.normal(0, 0.004, len(N)))
    both = [runs.assign(dataset="c4", L=L), runs.assign(dataset="pile", L=0.9 * L)]
    table, fit_file = project_folder / "runs.csv", project_folder / "own.json"
    pd.concat(both).to_csv(table, index=False)
    words = ["--law", "chinchilla", "--map", "N=N_active", "--split-by", "dataset"]
    call("fit", table, *words, "--sample", 40, "--bootstrap", 20, "--out", fit_file)
    given = answer("--compute", 1e20, "--fits", fit_file)
    own = {judge["name"].partition("(")[2]: judge["at_robust"] for judge in given["judges"]}
    robust = given["plans"][-1]
    words = ["chinchilla", f"N={robust['N_active']!r}", f"D={robust['D']!r}", "dataset=pile"]
    said = json.loads(call("eval", *words, "--params", fit_file, "--json").stdout)
    assert own["c4)"]["loss"] > own["pile)"]["loss"] == pytest.approx(said["value"])
    low, high = said["intervals"]["new"]
    assert low * (1 - 1e-9) <= own["pile)"]["low"] < own["pile)"]["loss"]
    assert own["pile)"]["loss"] < own["pile)"]["high"] <= high * (1 + 1e-9)


@pytest.mark.slow
def test_a_study_may_say_how_much_faster_mixtures_are(project_folder):
    """Of a study's name its folder of fits is taken, and what it measured of leverage."""
    tier = Results().tier(load_project().tier)
    columns = {"floor": [0.0, 1.2, 1.6], "leverage": [4.0, 4.2, 4.4], "low": 3.0, "high": 5.0}
    columns |= {"in_time": [1.4, 1.5, 1.6], "time_low": 1.2, "time_high": 1.8}
    path = tier.derived("public", "leverage")
    path.parent.mkdir(parents=True)
    pd.DataFrame(columns).to_parquet(path)
    runs = pd.DataFrame({"N": np.geomspace(1e7, 1e9, 12), "D": np.geomspace(1e9, 1e11, 12)[::-1]})
    law = laws.get("chinchilla")
    frame = runs.assign(L=law.predict(law.published, runs))
    fit_file = tier.fit("public", "own")
    fit_file.parent.mkdir(parents=True)
    write_fit(fitted(frame, {"N": "N"}, bootstrap=5), fit_file)
    given = answer("--compute", 1e20, "--fits", "public")
    assert "public/own" in {judge["name"] for judge in given["judges"]}
    (speedup,) = given["speedups"]
    assert speedup["S_c"] == {"value": 4.2, "interval": [3.0, 5.0]}
    assert speedup["S_w"] == {"value": 1.5, "interval": [1.2, 1.8]}
    assert answer("--compute", 1e20)["speedups"] == []
