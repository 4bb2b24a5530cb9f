"""Figures of the allocation paper from simulated runs: what they show, and how."""

import numpy as np
import pandas as pd
import pytest

from allocation_case import STUDY, Case
from moelaws.grids.sweep import sweep_of
from moelaws.spec.project import Project
from moelaws.studies.allocation.figures.loss import representative
from moelaws.studies.allocation.laws.ratio import ratio
from moelaws.tables.describe import describe
from picture import assert_legible


@pytest.mark.parametrize("setting", ["paper", "poor"])
@pytest.mark.parametrize("figure", [figure.name for figure in STUDY.figures])
def test_nothing_is_clipped_and_simulated_losses_say_so(figure, setting, request):
    case: Case = request.getfixturevalue(setting)
    sheet = case.sheet(figure)
    assert_legible(sheet)
    # The paper's setting is simulated, by a law that takes R of Eq 2 for granted.
    mark = "SIMULATED DATA, PARTLY ASSUMED" if setting == "paper" else ""
    assert sheet.figure.get_suptitle() == mark


def test_every_loss_is_on_the_valleys_and_the_path_goes_through_the_least(paper):
    runs, shown = paper.inputs.completed, []
    for figure in ("F1", "F6"):
        data = paper.sheet(figure).data
        heights = data[data["series"].str.startswith("loss less")]
        said = heights["series"].str.extract(r"less (.*), shifted by (.*), C=").astype(float)
        shown.append(heights["y"] + said[0] - said[1])
        path = data[data["series"].str.startswith("r*")]
        least = runs.loc[runs.groupby(["C", "S"])["L"].idxmin()]
        for panel, S in zip("ab", (0, 3) if figure == "F1" else (1, 2), strict=True):
            own = least[least["S"] == sorted(runs["S"].unique())[S]].sort_values("C")
            np.testing.assert_allclose(path.loc[path["panel"] == panel, "x"], own["r"])
    losses = pd.concat(shown)
    assert len(losses) == len(runs)
    np.testing.assert_allclose(np.sort(losses), np.sort(runs["L"]), rtol=1e-4)


def test_r_star_and_its_lines_are_those_of_the_tables(paper):
    data = paper.sheet("F2a").data
    table = paper.inputs.derived("r_star")
    points = data[data["series"].str.startswith("adjusted")]
    np.testing.assert_allclose(np.sort(points["y"]), np.sort(table["r_adjusted"]))
    published = data[data["series"] == "published, S=0.8235"]
    np.testing.assert_allclose(published["y"], ratio(published["x"], 14 / 17))
    for result in paper.inputs.fit("ratio_adjusted").parts:
        line = data[data["series"] == f"fit, S={result.where['S']:.4g}"]
        p = result.estimates()
        np.testing.assert_allclose(line["y"], p["alpha_r"] * line["x"] ** p["beta_r"])


def test_f4_shows_the_printed_model_at_tier_paper():
    runs = sweep_of("allocation", Project(tier="paper")).runs
    sizes = pd.DataFrame([describe(run) for run in runs])
    sizes = sizes.assign(S=sizes["S_shared"], r_star=0.7, C=[run.C for run in runs],
                         N_active=sizes["N_active_nonemb"])  # fmt: skip
    run = representative(sizes)
    assert (run["n_layers"], run["S"]) == (8, pytest.approx(0.9538, abs=1e-4))
    assert run["N_active"] == pytest.approx(30.8e6, rel=0.002)
    assert run["N_total_nonemb"] == pytest.approx(590e6, rel=0.002)


def test_the_grid_of_tier_paper_exceeds_the_papers_range_of_sizes():
    """The paper says 100M to 5B (App B.1), against its own Table 2 at E = 129."""
    runs = sweep_of("allocation", Project(tier="paper")).runs
    N = pd.Series([describe(run)["N_total"] for run in runs])
    assert (N.min(), N.max()) == (pytest.approx(0.152e9, rel=0.01), pytest.approx(16.9e9, rel=0.01))
    assert ((N > 5e9).sum(), len(N)) == (45, 504)
    row_of_200M = [describe(run)["N_total"] for run in runs if run.config.model.n_layers == 16]
    assert max(row_of_200M) == pytest.approx(8.7e9, rel=0.01)
