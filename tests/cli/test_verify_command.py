"""``moelaws verify``: which files of runs no grid of the project asks for."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import printed
from moelaws.files.layout import Results
from moelaws.grids.sweep import expand_study
from moelaws.spec.project import load_project, load_study


@pytest.mark.parametrize("tier", ["demo", "paper"])
def test_a_file_of_a_run_that_no_tier_asks_for_is_orphaned(project_folder, tier):
    project = load_project(overrides={"tier": tier})
    run = expand_study(load_study("leverage"), project).runs[-1].run_id
    stray = "0123456789abcdef"
    for name in (run, stray):
        path = Results().scores(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"score": [1.0]}), path)
    verdicts = json.loads(printed("verify", "--json"))
    states = {verdict["path"]: verdict["state"] for verdict in verdicts}
    assert states[str(Results().scores(run))] == "unverified"
    assert states[str(Results().scores(stray))] == "orphaned"
