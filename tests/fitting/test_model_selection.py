"""The choice of an isoFLOP surface's degrees by prediction of rows that were held out."""

import numpy as np
import pytest

from moelaws import laws
from moelaws.fitting.model_selection import FITTED_FRACTION, select
from moelaws.spec.errors import UserError
from moelaws.studies.sparsity.laws import loss

S = np.array([0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98])
BUDGETS = (3e19, 1e20, 1e21)


def _surfaces(noise, seed=0):
    """A part a budget, 22 rows each, drawn from the (2, 2, 2) surface nearest to the paper's law.

    The paper's grid of sparsities, three or four sizes about the best one of each.
    """
    rng = np.random.default_rng(seed)
    law = laws.get("sparsity.isoflop")
    groups = []
    for C in BUDGETS:
        sizes = [np.array([0.25, 1.0, 4.0])] * 6 + [np.array([0.25, 0.5, 2.0, 4.0])]
        best = loss.optimal_size(loss.LAW.published, S, C).N
        N = np.concatenate([n * factor for n, factor in zip(best, sizes, strict=True)])
        s = np.repeat(S, [len(factor) for factor in sizes])
        D = C / (6 * (1 - s) * N)
        X = law.design(law.columns({"N": N, "S": s}))
        L = loss.LAW.predict(loss.LAW.published, {"N": N, "D": D, "S": s})
        truth = X @ np.linalg.lstsq(X, L, rcond=None)[0]
        groups.append(({"N": N, "S": s}, truth + noise * rng.standard_normal(len(N))))
    return groups


@pytest.fixture(scope="module")
def selection():
    return select(laws.variants("sparsity.isoflop"), _surfaces(0.003))


def test_the_degrees_that_the_data_came_from_are_chosen(selection):
    assert selection.best.name == selection.simplest.name == "222"
    assert selection.best.n_params == 7
    assert selection.best.pearson > 0.999
    # Held-out errors hold the noise and the fit's own error, about 7/18 of it.
    assert selection.best.mse == pytest.approx(0.003**2 * (1 + 7 / 18), rel=0.4)


def test_the_simplest_form_within_one_error_of_the_best():
    """With noise that buries the curvature a smaller form is as good, and is named."""
    noisy = select(laws.variants("sparsity.isoflop"), _surfaces(0.1), k=50)
    best, simplest = noisy.best, noisy.simplest
    assert simplest.n_params < 7
    assert simplest.mse <= best.mse + best.standard_error
    smaller = [c for c in noisy.ranked if c.n_params < simplest.n_params]
    assert all(c.mse > best.mse + best.standard_error for c in smaller)


def test_weights_are_those_of_aicc_over_all_groups(selection):
    """AICc = n ln(RSS/n) + 2k + 2k(k+1)/(n-k-1) of each group, where k counts the spread, too."""
    names, aicc = list(selection.weights), []
    for name in names:
        law, own = laws.get(f"sparsity.isoflop:{name}"), 0.0
        for columns, response in _surfaces(0.003):
            X = law.design(law.columns(columns))
            n, k = len(X), X.shape[1] + 1
            _, [rss], *_ = np.linalg.lstsq(X / np.abs(X).max(axis=0), response, rcond=None)
            own += n * np.log(rss / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1)
        aicc.append(own)
    expected = np.exp((min(aicc) - np.array(aicc)) / 2)
    np.testing.assert_allclose([*selection.weights.values()], expected / expected.sum(), rtol=1e-5)
    assert names[0] == "222"
    assert min(selection.weights.values()) > 0.009


def test_errors_are_those_of_one_fit_after_another():
    """The batched fits against np.linalg.lstsq, resample by resample, on the same splits."""
    groups, k, seed = _surfaces(0.003)[:2], 5, 3
    law = laws.get("sparsity.isoflop:312")
    got = select({"312": law}, groups, seed=seed, k=k).best
    rng = np.random.default_rng(seed)
    squared = np.zeros(k)
    rows = used = 0
    for columns, y in groups:
        n = len(y)
        fitted = round(FITTED_FRACTION * n)
        X = law.design(law.columns(columns))
        X[:, :-1] = (X[:, :-1] - X[:, :-1].mean(axis=0)) / X[:, :-1].std(axis=0)
        for i, order in enumerate(rng.random((k, n)).argsort(axis=1)):
            w = np.linalg.lstsq(X[order[:fitted]], y[order[:fitted]], rcond=None)[0]
            squared[i] += ((X[order[fitted:]] @ w - y[order[fitted:]]) ** 2).sum()
        rows, used = rows + n - fitted, used + fitted
    mse = squared / rows
    assert got.mse == pytest.approx(mse.mean(), rel=1e-6)
    assert got.standard_error == pytest.approx(mse.std(ddof=1) * (1 / k + rows / used) ** 0.5)


def test_forms_that_the_rows_cannot_determine_are_out():
    """All rows at one sparsity: nothing of v can be told from the constant or from u."""
    N = np.geomspace(1e8, 1e10, 15)
    L = 2 + 0.03 * np.log(N / 1e9) ** 2 + np.random.default_rng(0).normal(0, 0.005, 15)
    selection = select(
        laws.variants("sparsity.isoflop"), [({"N": N, "S": np.full(15, 0.9)}, L)], k=20
    )
    assert selection.simplest.name in {"200", "002"}  # here (uv)^2 is u^2
    assert {c.name for c in selection.ranked} <= {"000", "100", "200", "300", "400"} | {
        f"00{i}" for i in range(1, 5)
    }
    assert "222" in selection.unidentified
    with pytest.raises(UserError, match=r"no form.*do not determine any"):
        select({"222": laws.get("sparsity.isoflop")}, [({"N": N[:8], "S": np.full(8, 0.9)}, L[:8])])
