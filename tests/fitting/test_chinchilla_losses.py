"""The refits of the Chinchilla losses that others published, from a user's copy of the data."""

import numpy as np
import pytest
from fitting_case import fitted, fitted_group, objective_of

from moelaws import laws
from moelaws.fitting.descent import certify
from moelaws.fitting.problem import multistart, starts_of

LAW = laws.fittable("chinchilla")
# Half of the last digit printed; beta of all rows is .4530493, printed .4531 by way of .45305.
DIGITS = {"A": 0.005, "B": 0.05, "E": 5e-5, "alpha": 5e-5, "beta": 5.1e-5}


@pytest.mark.parametrize(
    ("dropped", "objective", "expected"),
    [
        (
            5,
            0.00101827,
            {"A": 477.83, "B": 2143.42, "E": 1.81722, "alpha": 0.34731, "beta": 0.36717},
        ),
        (0, 0.00182601, {"A": 495.73, "B": 12845.6, "E": 1.8913, "alpha": 0.3493, "beta": 0.4531}),
    ],
)
def test_global_optimum_from_all_4500_starts(chinchilla_losses, dropped, objective, expected):
    group = fitted_group(LAW, chinchilla_losses(dropped), bootstrap=1)
    assert group.n == 245 - dropped
    assert group.converged
    assert group.objective == pytest.approx(objective, abs=5e-9)
    assert group.diagnostics.starts.run == 4500
    assert not group.diagnostics.starts.pruning_lost
    for name, value in expected.items():
        assert group.params[name].estimate == pytest.approx(value, abs=DIGITS[name])


def test_the_published_refit_is_the_optimum_of_the_likelihood_with_a_scale(chinchilla_losses):
    protocol = {"objective": "huber_scale"}
    group = fitted_group(LAW, chinchilla_losses(5), bootstrap=1, protocol=protocol)
    assert group.converged
    assert group.objective == pytest.approx(-879.773139, abs=5e-7)
    assert group.params["A"].estimate == pytest.approx(482.01, abs=0.005)
    assert group.params["B"].estimate == pytest.approx(2085.43, abs=0.005)
    for name, value in {"E": 1.8169, "alpha": 0.3478, "beta": 0.3659}.items():
        assert group.params[name].estimate == pytest.approx(value, abs=5e-5)


def test_an_early_stop_is_no_optimum(chinchilla_losses):
    """The mean in place of the sum stopped others at A = 855, E = 1.784."""
    objective = objective_of(LAW, chinchilla_losses(5))
    starts = starts_of(LAW, LAW.protocol, 0)
    mean = multistart(objective.at(1e-3, 1 / 240), starts, LAW.bounds)
    estimates = dict(zip(LAW.names, LAW.natural(mean.phi), strict=True))
    assert estimates["A"] == pytest.approx(477.83, abs=0.005)
    assert estimates["E"] == pytest.approx(1.81722, abs=5e-6)
    assert mean.value * 240 == pytest.approx(0.00101827, abs=5e-9)
    # With A and E held there, the other parameters' best is worse and not stationary.
    held = LAW.bounds.copy()
    held[0], held[2] = np.log(855), np.log(1.784)
    stopped = multistart(objective, np.clip(starts, *held.T), held)
    assert stopped.value > 1.005 * 0.00101827
    assert not certify(objective, stopped.phi, LAW.bounds).converged


def test_bootstrap_standard_errors(chinchilla_losses):
    """B's draws are skewed: its own standard error hangs on a few of them, that of ln B does not.

    ln A and ln B are held against what the printed errors of A and B mean for a lognormal draw
    of the mean that the draws have.
    """
    report = fitted(LAW, chinchilla_losses(5), bootstrap=2000, protocol={"sample": 60})
    draws, (group,) = report.draws, report.parts
    errors = draws[["E", "alpha", "beta", "A"]].std().to_dict()
    published = {"E": 0.0256, "alpha": 0.0153, "beta": 0.0205, "A": 124}
    assert errors == pytest.approx(published, rel=0.15)
    for name, printed in (("A", 124), ("B", 1285)):
        implied = np.sqrt(np.log1p((printed / draws[name].mean()) ** 2))
        assert np.log(draws[name]).std() == pytest.approx(implied, rel=0.15)
        assert group.params[name].low < group.params[name].estimate < group.params[name].high
