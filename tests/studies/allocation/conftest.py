"""The simulated study at two sizes, each written once a session."""

import numpy as np
import pytest

from allocation_case import PAPER, POOR, simulate, write_case
from moelaws.studies.allocation.figures.loss import representative
from moelaws.training.columns import write_columns


@pytest.fixture(scope="session")
def paper(tmp_path_factory):
    return _with_curve(PAPER, tmp_path_factory)


@pytest.fixture(scope="session")
def poor(tmp_path_factory):
    return _with_curve(POOR, tmp_path_factory)


def _with_curve(setting, tmp_path_factory):
    """The setting's case, with a history that falls as a power of the tokens for F4's run."""
    case = write_case(tmp_path_factory.mktemp("allocation"), simulate(setting))
    run = representative(case.inputs.derived("runs"))
    step = np.arange(1, 301)
    loss = run["L"] + 0.5 * (300 / step) ** 0.5 - 0.5 + 0.1 * (-1.0) ** step
    columns = {"step": step, "tokens": (step * run["D"] / 300).astype(np.int64), "loss": loss}
    folder = case.results.run(str(run["run_id"]))
    folder.mkdir(parents=True)
    write_columns(folder / "history.parquet", {name: ("1", name) for name in columns}, columns)
    return case
