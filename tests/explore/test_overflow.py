"""A fit that its rows hardly determine, whose law overflows, is on the page like any other."""

import numpy as np

from moelaws.explore.fits import loss_fits
from moelaws.explore.laws import COARSE, fitted_laws
from moelaws.explore.runs import read_runs


def test_a_law_that_overflows_does_not_end_the_page(published, monkeypatch):
    fits = [fit for fit in loss_fits(published, read_runs(published)) if fit.spec.name == "wang"]
    (fit,) = fits
    form = type(fit.law)
    before = form.predict

    def overflowing(law, params, columns):
        values = np.asarray(before(law, params, columns))
        return np.where(np.arange(len(values)) % COARSE < 2, np.inf, values)

    monkeypatch.setattr(form, "predict", overflowing)
    assert [law["id"] for law in fitted_laws(published, fits)] == ["sparsity/wang"]
