"""What an archive says of a sweep: where its files go, and the calls that find it finished."""

from pathlib import Path

import pytest

from moelaws.spec.errors import UserError
from moelaws.workflow.archive import Sweep, place_of
from moelaws.workflow.archive_text import readme
from moelaws.workflow.checkout import Checkout
from moelaws.workflow.jobs import Jobs
from repository import REPOSITORY

OVERRIDES = {"source": "simulated", "tier": "demo", "studies": ["sparsity", "allocation"]}


@pytest.fixture(scope="module")
def jobs():
    return Jobs.load(OVERRIDES, REPOSITORY)


def test_a_study_of_ones_own_keeps_its_place_or_gets_one():
    assert place_of("mine", Path("mine")) == Path("mine")
    assert place_of("mine", Path("../mine")) == Path("own/mine")


def test_all_studies_are_finished_by_the_call_that_made_them(jobs):
    text = readme(Sweep(jobs, ("sparsity", "allocation"), OVERRIDES), Checkout("c" * 40, b"x"))
    assert "unzip FILE.zip changes.patch && git apply changes.patch\n" in text
    assert "-n --config source=simulated tier=demo 'studies=[sparsity, allocation]'\n" in text


def test_one_of_several_studies_is_finished_without_the_pages_of_all(jobs):
    sweep = Sweep(jobs, ("allocation",), OVERRIDES)
    claims = "results/demo/simulated/claims/allocation.json"
    assert sweep.command("-n").endswith(f"'studies=[allocation]' -- figures {claims}")
    assert jobs.folder.report not in sweep.made()
    assert "also tell of studies not here: sparsity" in readme(sweep, Checkout(None, b""))


def test_what_is_missing_is_named(jobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"allocation at tier demo is not finished: (\d+) of \1 "):
        Sweep(jobs, ("allocation",), OVERRIDES).files()
