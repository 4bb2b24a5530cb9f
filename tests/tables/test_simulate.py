"""A law's losses at a grid's points: what the table holds, whose noise it is, what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

from command_line import call, printed
from moelaws import laws
from moelaws.files.layout import Results
from moelaws.fitting.fit import fit
from moelaws.fitting.report import write_fit
from moelaws.grids.expand import expand
from moelaws.grids.sweep import Sweep, expand_study
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.spec.project import load_project, load_study
from moelaws.spec.study import Simulation
from moelaws.tables.parquet import column_metadata, is_study, read_table
from moelaws.tables.simulate import design, simulate, simulation_entry, studys_mapping
from moelaws.tables.simulate import simulated as from_entry
from planned_study import TEXT
from repository import REPOSITORY

LAW = laws.fittable("sparsity.loss")


@pytest.fixture(scope="module")
def sweep():
    """The demo's grid of the sparsity study."""
    study = load_study("sparsity", REPOSITORY)
    runs = expand(study.grids["demo"], TEXT, "sparsity.yaml")
    return Sweep(study, "demo", tuple(runs))


def simulated(sweep, law=LAW, rows="", repeats=1, **options):
    frame = design(sweep, rows, repeats)
    return simulate(frame, law, law.published, **{"noise": 0.003, "seed": 1} | options)


def test_losses_are_the_laws_at_the_grids_points(sweep):
    """Eq 6 of sparsity written out, with the columns that the study's own fit maps."""
    mapping = studys_mapping(sweep.study, LAW)
    frame = simulated(sweep, noise=0.0, mapping=mapping).frame
    assert frame["run_id"].tolist() == [run.run_id for run in sweep.runs]
    N, D, x = frame["N_total"], frame["D"], 1 - frame["S"]
    expected = 16612.50 / N**0.5962 + 5455.67 / D**0.3954
    expected += 0.4598 * x**0.1666 + 17.26 / (x**0.1603 * N**0.1595) + 0.94
    np.testing.assert_allclose(frame["L"], expected, rtol=1e-12)
    np.testing.assert_allclose(frame["L_true"], expected, rtol=1e-12)


def test_noise_is_normal_and_runs_of_a_trunk_share_nine_tenths_of_it(sweep):
    frame = design(sweep, repeats=40)
    pairs = len(frame) // 2
    shared = frame.assign(trunk=np.arange(len(frame)) // 2)
    alone, together = (
        simulate(runs, LAW, LAW.published, noise=0.02, seed=1).frame for runs in (frame, shared)
    )
    np.testing.assert_allclose(alone["L_se"], 0.02 * alone["L"], rtol=1e-12)
    z = np.log(alone["L"] / alone["L_true"]) / 0.02
    assert stats.kstest(z, "norm").pvalue > 0.01  # of this seed
    for one, correlation in ((alone, 0.0), (together, 0.9)):
        z = np.log(one["L"] / one["L_true"]).to_numpy()[: 2 * pairs].reshape(pairs, 2)
        assert np.corrcoef(z.T)[0, 1] == pytest.approx(correlation, abs=0.05)
        assert z.std() == pytest.approx(0.02, rel=0.05)


def test_a_law_that_is_not_of_a_log_gets_its_noise_added(sweep):
    law = laws.fittable("generalization.kappa:log2")
    assert not law.log_response
    frame = simulated(sweep, law, noise=0.1).frame
    other = simulated(sweep, noise=0.1).frame  # the same runs and seed: the same draws
    z = np.log(other["L"] / other["L_true"]) / 0.1
    np.testing.assert_allclose((frame["kappa"] - frame["kappa_true"]) / 0.1, z, rtol=1e-9)
    assert set(frame["kappa_se"]) == {0.1}


def test_a_run_keeps_its_noise_whatever_else_is_asked_for(sweep):
    whole = simulated(sweep, repeats=2).frame.set_index("run_id")
    selected = simulated(sweep, rows="S >= 0.75 and seed == 0").frame.set_index("run_id")
    assert 0 < len(selected) < len(sweep.runs)
    of_all_rows = ["n_seeds", "L_seed_sd"]
    pd.testing.assert_frame_equal(
        whole.loc[selected.index].drop(columns=of_all_rows), selected.drop(columns=of_all_rows)
    )
    assert not np.isclose(simulated(sweep, seed=2).frame["L"], simulated(sweep).frame["L"]).any()


def test_what_the_grid_does_not_give_is_refused(sweep):
    with pytest.raises(UserError, match="no column 'size' for N of sparsity"):
        simulated(sweep, mapping={"N": "size"})


def test_command_writes_a_table_that_says_how_it_was_made(project_folder):
    """In a folder with nothing but the configuration: no text is prepared."""
    words = ["simulate", "sparsity.loss", "--study", "sparsity", "--noise", "0.01", "--seed", "3"]
    path = project_folder / "sparsity.parquet"
    said = "sparsity.parquet: 36 simulated runs of sparsity, demo\nsparsity.loss of N = N_total, D"
    assert printed(*words).startswith(said)
    frame = read_table(path)
    sweep = expand_study(load_study("sparsity"), load_project())
    expected = simulated(sweep, noise=0.01, seed=3, mapping=studys_mapping(sweep.study, LAW))
    pd.testing.assert_frame_equal(frame, expected.frame, check_dtype=False)
    assert column_metadata(path)["L_true"] == ("nats/token", "the law's own value")
    about = json.loads(pq.read_schema(path).metadata[b"simulation"])
    assert about["law"] == "sparsity.loss"
    assert about["params"] == LAW.published
    assert (about["noise"], about["seed"]) == (0.01, 3)
    assert about["variables"] == {"N": "N_total", "D": "D", "S": "S"}

    assert json.loads(printed(*words, "--out", "t.csv", "--json"))["rows"] == 36
    np.testing.assert_array_equal(pd.read_csv("t.csv")["L"], frame["L"])


def test_coefficients_of_a_fit(sweep, project_folder):
    """A fit's own mapping goes with its coefficients."""
    frame = simulated(sweep, laws.fittable("clark.routing")).frame
    law, options = laws.fittable("sparsity.isoflop"), {"units": {"N": "1"}, "bootstrap": 2}
    entry = Fit(name="f", law=law.id, mapping={"N": "N_active"}, rows="C == 3e10", **options)
    report = fit(law, frame, entry)
    write_fit(report, project_folder / "own.json")
    words = ("--study", "sparsity", "--out", "t.csv", "--params")
    printed("simulate", law.id, *words, "own.json")
    got = pd.read_csv("t.csv")
    columns = {"N": got["N_active"], "S": got["S"]}
    expected = law.predict(report.parts[0].estimates(), columns)
    np.testing.assert_allclose(got["L_true"], expected, rtol=1e-12)
    with pytest.raises(UserError, match=r"fit of sparsity.isoflop; give a fit of sparsity\.loss"):
        call("simulate", "sparsity.loss", *words, "own.json")


def of_a_study(sweep, **entry):
    """The study with a simulation of its own, and two named sweeps."""
    names = ("wide", "narrow")
    runs = tuple(replace(run, sweeps=names[run.config.model.d_model <= 20 :]) for run in sweep.runs)
    study = sweep.study.model_copy(update={"simulation": Simulation(**entry)})
    return Sweep(study, sweep.tier, runs)


def test_only_the_sweeps_that_have_a_source_are_simulated(sweep):
    of = of_a_study(sweep, law="sparsity.loss", sweeps=["wide"])
    frame = from_entry(of, simulation_entry(of.study))[0].frame
    assert 0 < len(frame) < len(sweep.runs)
    assert set(frame["sweep"]) == {"wide,narrow"}
    assert (frame["d_model"] > 20).all()
    lost = of_a_study(sweep, law="sparsity.loss", sweeps=["deep"])
    with pytest.raises(UserError, match="tier demo: no runs to simulate in the sweeps deep"):
        from_entry(lost, simulation_entry(lost.study))


def test_the_command_without_a_law_follows_the_study(project_folder):
    """Unless the user says otherwise."""
    words, entry = ("simulate", "--study", "allocation"), load_study("allocation").simulation
    data = json.loads(printed(*words, "--json"))
    assert (data["law"], data["noise"], data["seed"]) == (entry.law, entry.noise, entry.seed)
    assert (data["assumed"], data["table"]) == (entry.assumed, "allocation.parquet")
    assert data["params"] == laws.fittable(entry.law).published
    assert is_study(Path("allocation.parquet"))
    assert not Results().tier("demo").root.exists()
    quieter = json.loads(printed(*words, "--noise", 0, "--json"))
    assert quieter == {**data, "noise": 0.0}
    with pytest.raises(UserError, match=r"sectional.yaml has no simulation, .* name a law"):
        call("simulate", "--study", "sectional")


def test_values_that_overflow_are_named_by_their_run(sweep):
    with pytest.raises(UserError, match=r"which noise 1000 makes (inf|0); leave such"):
        simulated(sweep, noise=1000.0)
