"""The fitting benchmark runs, and compares like with like. No time is asserted."""

import json

import numpy as np
import pytest

from repository import REPOSITORY


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")


def test_one_part_runs_alone(tmp_path, capsys):
    import fit

    path = tmp_path / "fit_speed.json"
    fit.main(["--quick", "--parts", "chinchilla", "--json", str(path)])
    found = json.loads(path.read_text())
    assert set(found) == {"machine", "quick", "chinchilla"}
    assert found["chinchilla"]["starts"] == fit.FEW
    assert found["chinchilla"]["certified"]["value"] is True
    assert "not judged" in capsys.readouterr().out


@pytest.mark.slow
def test_all_parts_run_and_stand_beside_their_targets(tmp_path):
    import fit

    path = tmp_path / "fit_speed.json"
    fit.main(["--quick", "--json", str(path)])
    found = json.loads(path.read_text())
    assert set(found) == {"machine", "quick", *fit.TARGETS}
    assert found["sparsity"]["rows"] == 180
    assert found["chinchilla"]["rows"] == 240
    for part, targets in fit.TARGETS.items():
        for name, (bound, limit) in targets.items():
            assert found[part][name][bound] == limit
            assert found[part][name]["met"] is None  # a trial judges nothing
    for part in ("sparsity", "allocation", "chinchilla"):
        assert found[part]["certified"]["value"] is True
        assert not found[part]["pruning_lost"]
        assert found[part]["starts"] == fit.FEW
    assert found["bootstrap"]["draws"] == 20
    scipy = found["sparsity"]["scipy"]
    for loop in scipy.values():
        assert loop["timed_starts"] == loop["starts"] == 4
        assert loop["seconds_extrapolated"] == pytest.approx(loop["seconds"] * fit.FEW / 4)
    excess = found["sparsity"]["objective_excess"]["value"]
    assert excess < 1e-9
    best = scipy["tight_tolerances"]["best"]
    assert excess == pytest.approx(found["sparsity"]["objective"] / best - 1)


def test_a_missed_target_is_called_missed(capsys):
    import fit

    targets = {"seconds": ("at_most", 1.0), "ratio": ("at_least", 100.0)}
    found = fit.judged({"seconds": 1.5, "ratio": 120.0, "rows": 3}, targets, quick=False)
    assert found["seconds"] == {"value": 1.5, "at_most": 1.0, "met": False}
    assert found["ratio"] == {"value": 120.0, "at_least": 100.0, "met": True}
    fit.show("part", found)
    lines = capsys.readouterr().out.splitlines()
    assert any("seconds" in line and "MISSED" in line for line in lines)


def test_the_grids_are_the_protocols():
    from speed import fits

    for ref, points, starts in (
        ("sparsity.loss", fits.sparsity_loss(), 437_400),
        ("allocation.loss", fits.allocation_loss(), 104_976),
    ):
        assert fits.simulated(ref, points, None).protocol.n_starts == starts


def test_scipy_gets_the_objective_of_the_engine_and_its_gradient():
    from speed import fits, lbfgs

    task = fits.simulated("sparsity.loss", fits.sparsity_loss(), 20)
    (objective,) = task.path()
    function = lbfgs.value_and_gradient(objective, unit=3e-4)
    for theta in task.starts:
        value, gradient = function(theta)
        assert value * 3e-4 == pytest.approx(objective.value(theta[None])[0])
        exact = objective.derivatives(theta[None], np.array([True]))[1][0]
        assert gradient * 3e-4 == pytest.approx(exact, abs=1e-12)


def test_scipys_loop_ends_at_the_optimum_where_it_is_near():
    from speed import fits, lbfgs

    task = fits.simulated("sparsity.loss", fits.sparsity_loss(), 1)
    (objective,) = task.path()
    truth = task.law.vector(task.law.published)
    end = lbfgs.descend_from(
        lbfgs.value_and_gradient(objective, 3e-4), truth, task.bounds, lbfgs.TIGHT
    )
    # The optimum that the engine finds from the whole grid.
    assert objective.value(end[None])[0] == pytest.approx(3.32261287e-4, rel=1e-6)
