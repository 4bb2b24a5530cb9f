"""The loss of each arm in sequences longer than those that it was trained on (sec 5.2.6)."""

from collections.abc import Iterator
from typing import Any

from moelaws.analysis.derive import of_runs, records, table
from moelaws.analysis.inputs import Inputs
from moelaws.probing.longer import losses_by_stretch
from moelaws.studies.sectional.arms import ARMS
from moelaws.tables.column import Column

TIMES = 4  # the length of the sequences over that of the trained ones


@table(
    Column("arm", "string", "1", "sweep of the grid that names the architecture"),
    *of_runs("run_id", "E", "n_dense_layers", "d_model", "context", "D", "seed", "L"),
    Column("stretch", "int", "1", "of a sequence, each as long as a trained one, from 1"),
    Column("L_stretch", "float", "nats/token", "held-out loss in that stretch"),
)
def longer(inputs: Inputs) -> Iterator[dict[Any, Any]]:
    """Yields a row for each run of an arm and each stretch of the longer sequences."""
    for arm in ARMS:
        for run in records(inputs.sweep(arm)):
            weights = inputs.weights_file(str(run["run_id"]))
            losses = losses_by_stretch(weights.parent, inputs.results, TIMES)
            for stretch, loss in enumerate(losses, 1):
                yield {**run, "arm": arm, "stretch": stretch, "L_stretch": loss}
