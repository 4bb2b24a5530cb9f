"""Losses by domain of the text, and their slopes over compute and sparsity."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from moelaws.analysis.inputs import Inputs
from moelaws.files.layout import Results
from moelaws.studies.sparsity.derived import domains
from moelaws.training.evaluation import DocumentLosses

_OF_ALL = {"C": 1e12, "S": 0.5, "d_model": 8, "N_active": 1e5, "N_total": 2e5, "D": 1e6}
RUNS = pd.DataFrame({"run_id": ["with", "older", "oldest"], "L": 2.0, "status": "completed"})
RUNS = RUNS.assign(seed=0, **_OF_ALL)


def test_a_domain_has_the_nats_of_its_documents_over_their_bytes(tmp_path):
    results, numbers = Results(tmp_path), np.arange(4)
    tokens, nats, sizes = np.array([10, 20, 30, 1]), np.array([9.0, 30.0, 24.0, 1.0]), numbers * 0
    sizes += [30, 70, 100, 2]
    folders = np.array(["go", "perl", "go", "a.txt"])
    for run, domain in (("with", folders), ("older", np.full(4, ""))):
        of_run = DocumentLosses(numbers, tokens, nats, sizes, domain)
        of_run.write(results.run(run) / "documents.parquet")
    DocumentLosses(numbers, tokens, nats).write(results.run("oldest") / "documents.parquet")
    table = domains.losses(Inputs(frame=RUNS, results=results)).set_index("domain")
    assert set(table["run_id"]) == {"with"}
    bpb = {"go": 33 / 130, "perl": 30 / 70, "other": 1 / 2, "all": 64 / 202}
    assert table["bpb"].to_dict() == pytest.approx({k: v / np.log(2) for k, v in bpb.items()})
    assert table["tokens"].to_dict() == {"go": 40, "perl": 20, "other": 1, "all": 61}


def slopes(of_domain, budgets=(1e12, 1e13, 1e14)):
    """The slopes of losses whose best size at 1e12 FLOPs is 1e5 active parameters."""
    grid = pd.MultiIndex.from_product(
        [budgets, [0, 0.5, 0.75, 0.875], [0.4, 1.0, 2.5], of_domain],
        names=["C", "S", "size", "domain"],
    )
    runs = grid.to_frame(index=False)
    c, v = np.log(runs["C"] / 1e12), -np.log1p(-runs["S"])
    over_C, over_v = (runs["domain"].map(lambda name, i=i: of_domain[name][i]) for i in (0, 1))
    ln_bpb = over_C * c + over_v * v + 0.1 * np.log(runs["size"]) ** 2
    runs = runs.assign(N_active=1e5 * runs["size"] * np.exp(c / 2), bpb=np.exp(ln_bpb), seed=0)
    worse = runs.assign(bpb=1.1 * runs["bpb"])  # another trial of each model
    runs = pd.concat([worse, runs], ignore_index=True)
    return domains.slopes(SimpleNamespace(derived={"domains": runs}.get)).set_index("domain")


def test_slopes_are_those_of_the_best_sizes():
    known = {"all": (-0.1, -0.02), "go": (-0.12, -0.03), "perl": (-0.08, -0.01)}
    table = slopes(known)
    assert [*table.index] == ["perl", "all", "go"]  # the flattest over sparsity first
    for name, (over_C, over_v) in known.items():
        assert table.loc[name, "over_compute"] == pytest.approx(over_C)
        assert table.loc[name, "over_sparsity"] == pytest.approx(over_v)
    assert (table["n"] == 12).all()
    assert table["level"].to_list() == pytest.approx([0.95] * 3)
    at_one = slopes(known, budgets=(1e12,))
    assert at_one["over_sparsity"].to_list() == pytest.approx([-0.01, -0.02, -0.03])
    assert at_one["note"].str.endswith("for over_compute").all()
    assert not len(slopes({"all": (-0.1, -0.02), "go": (-0.1, -0.02)}))
