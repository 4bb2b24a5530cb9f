"""A study's fits of simulated losses: what they find again, and what they cannot find."""

import pandas as pd
import pytest

from moelaws import laws
from moelaws.analysis.plan import coefficients, fits_of, plan
from moelaws.files.layout import Results
from moelaws.fitting.fit import fit
from moelaws.spec.fit import Fit
from moelaws.spec.study import Simulation
from moelaws.tables.simulate import simulated, simulation_entry, write
from planned_study import small


def planned_in(folder, every=True, **changes):
    """Name -> planned fit of the small study, in their order."""
    study, sweep = small(**changes)
    entry = simulation_entry(study)
    simulation, about = simulated(sweep, entry)
    results = Results(folder).tier("demo", simulated=True)
    write(simulation, results.table("small"), about, code="")
    possible = fits_of(study, entry, sample=100)
    fits = plan(possible, results, about, lambda name: lambda *stage: None, every)
    return {fit.entry.name: fit for fit in fits}


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    return planned_in(tmp_path_factory.mktemp("plan"))


def references(own):
    return {name: c.reference for name, c in own.items()}


def test_the_laws_coefficients_are_recovered(planned):
    ((_, own),) = planned["loss"].parts
    assert references(own) == laws.fittable("chinchilla").published
    assert all(c.simulated and c.identified for c in own.values())
    assert sum(bool(c.holds) for c in own.values()) >= 4  # of five 90 % intervals
    # The losses follow N_active: what a fit over N_total should find, nobody knows.
    ((_, other),) = planned["total"].parts
    assert {(c.reference, c.holds) for c in other.values()} == {(None, None)}


def test_a_fit_follows_the_fits_that_it_reads(planned, tmp_path):
    assert "balance" not in planned  # simulated losses have none
    assert list(planned).index("later") > list(planned).index("each")
    each = planned["each"]
    assert [group.where["S"] for group, _ in each.parts] == [0.0, 0.5]
    published = laws.fittable("chinchilla").published
    assert [references(own) for _, own in each.parts] == [published, published]
    later = planned["later"]
    # ln C of the first row, C = S = 0, does not exist.
    assert later.report is None
    assert "C" in later.reason
    # A fit of two runs is lost, and what needs it with it.
    few = {"name": "few", "law": "chinchilla", "sweep": "wide", "mapping": {}, "split_by": "S"}
    of_few = {"name": "later", "law": "leverage.compute", "table": "few", "mapping": {"EL": "A"}}
    assert planned_in(tmp_path, fits=[few, of_few])["later"].reason.startswith("it needs few: ")


def test_unless_all_are_asked_for_only_fits_with_a_true_value_are_made(tmp_path):
    assert list(planned_in(tmp_path, every=False)) == ["each", "loss", "few"]


def test_the_simulated_law_is_fitted_where_no_fit_of_the_study_is_of_it():
    study, _ = small(fits=[])
    (only,) = fits_of(study, simulation_entry(study)).fits
    assert (only.law, only.mapping) == ("chinchilla", {"N": "N_active"})
    other = fits_of(study, Simulation(law="joint.loss:E1")).fits[0]
    assert (other.name, other.mapping) == ("joint_loss_E1", {"N": "N_total"})


def test_the_papers_other_laws_are_compared_with_what_it_publishes():
    """Their coefficients follow from the simulated law in part, and are marked so."""
    law = laws.fittable("leverage.joint")
    grid = [(a, g, c) for a in (0.02, 0.1, 0.4) for g in (2.0, 6, 12) for c in (1e18, 1e19, 1e20)]
    table = pd.DataFrame(grid, columns=["A", "G", "C"])
    columns = {name: table[name] for name in table}
    table = table.assign(source="simulated", EL=law.predict(law.published, columns))
    entry = Fit(name="joint", law=law.id, mapping={}, bootstrap=20, protocol={"sample": 20})
    report = fit(law, table, entry)
    about = {"law": "chinchilla", "study": "leverage", "noise": 0.003}
    about["params"] = dict(laws.fittable("chinchilla").published)
    ((_, own),) = coefficients(report, about, table, {})
    assert references(own) == law.published
    assert all(c.is_of_another_law for c in own.values())
    # Nothing of another paper follows, nor of the paper from coefficients of one's own.
    mine = {**about["params"], "A": 1.0}
    for change in ({"study": "sparsity"}, {"params": mine}):
        ((_, other),) = coefficients(report, {**about, **change}, table, {})
        assert {c.reference for c in other.values()} == {None}
