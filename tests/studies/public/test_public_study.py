"""The study in the workflow, driven by real Snakemake over a register that a test writes."""

import json

import pandas as pd
import pytest

from public_case import unpin, write_isoflop, write_ladder
from sweep_copy import Copy

pytestmark = pytest.mark.slow
STUDY = ("--config", "studies=public")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository without any imported table, whose fits are short."""
    copy = Copy.of_repository(tmp_path_factory.mktemp("public") / "copy")
    study = copy.study("public")
    for fit in study["fits"]:
        fit |= {"bootstrap": 5}
        if "leverage" not in fit["law"]:
            fit["protocol"] = {"sample": 20}
    for contest in study["contests"]:
        contest |= {"bootstrap": 5, "protocol": {"sample": 5}}
    copy.write_study(study)
    for name in ("marin-v16", "marin-ladder"):
        unpin(name, copy.root)
    return copy


def imported(copy, name, write):
    write(copy.root / "files" / name)
    files = [*(copy.root / "files" / name).iterdir()]
    source = files[0] if len(files) == 1 else copy.root / "files" / name
    done = copy.moelaws("import", name, "--from", str(source))
    assert done.returncode == 0, done.stderr


def test_the_study_from_the_first_table_on(copy):
    asked = copy.moelaws("make", "runs", "public")
    assert asked.returncode == 2
    assert "run moelaws import marin-v16" in asked.stderr

    imported(copy, "marin-v16", write_isoflop)
    ended = copy.snakemake(*STUDY)
    assert "so these are left out: experts, repeated" in ended.stderr
    tier = copy.root / "results/demo"
    table = pd.read_parquet(tier / "tables/public.parquet")
    assert set(table["dataset"]) == {"marin-v16"}
    assert table["run_id"].str.startswith("marin-v16/").all()
    for name in ("isoflop", "optima", "frontier", "ladder", "rates", "batches"):
        assert_drawn(tier / f"figures/public/{name}")
    assert verdict(tier, "a_mixture_needs_several_times_less_compute")["verdict"].startswith("cann")
    assert not (tier / "fits/public/repeated.json").exists()
    fit = json.loads((tier / "fits/public/chinchilla.json").read_text())
    assert [part["where"] for part in fit["parts"]] == [{"group": "marin-v16"}]
    assert copy.planned(*STUDY) == {}

    imported(copy, "marin-ladder", write_ladder)
    planned = copy.planned(*STUDY)
    assert planned["aggregate"] == 1
    assert "train" not in planned
    copy.snakemake("results/demo/claims/public.json", *STUDY)
    table = pd.read_parquet(tier / "tables/public.parquet")
    assert set(table["dataset"]) == {"marin-v16", "marin-ladder"}
    assert verdict(tier, "a_mixture_needs_several_times_less_compute")["verdict"] == "supported"
    shown = copy.moelaws("show", "results/demo/tables/public.parquet").stdout
    assert "marin-ladder: Apache-2.0: The Marin Authors" in shown


def assert_drawn(path):
    assert path.with_suffix(".png").stat().st_size > 5000
    assert path.with_suffix(".csv").is_file()


def verdict(tier, name):
    judged = json.loads((tier / "claims/public.json").read_text())
    return next(claim for claim in judged["claims"] if claim["name"] == name)
