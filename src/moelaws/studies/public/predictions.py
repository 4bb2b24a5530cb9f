"""Runs of a larger budget as fits to the cheaper ones predict them."""

from dataclasses import replace

import pandas as pd

from moelaws.analysis.derive import Rows, of_runs, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.prediction import predict
from moelaws.fitting.report import group_draws
from moelaws.tables.column import Column, estimated


@table(
    *of_runs("run_id", "C"),
    Column("N", "float", "active parameters without embeddings", "parameters"),
    *of_runs("D"),
    Column("fit", "string", "fit to the cheaper runs that predicts"),
    *estimated("value", "predicted loss, with the interval of the law", "nats/token", "alone"),
    Column("low", "float?", "lower end of the calibrated interval", "nats/token"),
    Column("high", "float?", "its upper end", "nats/token"),
    Column("level", "float", "coverage of both intervals, which are of a new run's loss"),
    Column("observed", "float", "loss of the run, which no fit has seen", "nats/token"),
    Column("inside_alone", "bool", "whether the interval of the law alone holds it"),
    Column("inside", "bool", "whether the calibrated interval holds it"),
)
def predictions(inputs: FittedInputs) -> Rows:
    """Returns the losses of the runs above the fitted budgets, as each declared fit predicts them.

    The first fit says which runs are fitted; those of its data set with more compute are new.
    """
    fitted = inputs.rows(next(iter(inputs.fits)))
    every = inputs.completed[inputs.completed["dataset"] == fitted["dataset"].iloc[0]]
    new = every[every["C"] > fitted["C"].max() * 1.1].sort_values(["N_active_nonemb", "D"])
    tables = []
    for name, path in inputs.fits.items():
        report, mapping = inputs.fit(name), inputs.spec(name).mapping
        law, result = inputs.law(name), report.group({})
        columns = {v.name: new[mapping.get(v.name, v.name)] for v in law.variables}
        draws = group_draws(path, report, result)
        alone = predict(law, replace(result, calibration=None), draws, columns, report.level)
        own = predict(law, result, draws, columns, report.level)
        ends = {"alone_low": alone.new_low, "alone_high": alone.new_high}
        ends |= {"low": own.new_low, "high": own.new_high}
        held = {"inside_alone": new["L"].between(alone.new_low, alone.new_high)}
        held |= {"inside": new["L"].between(own.new_low, own.new_high), "observed": new["L"]}
        known = {"fit": name, "N": new["N_active_nonemb"], "level": report.level}
        tables.append(new.assign(**known, value=own.value, **ends, **held))
    frame: pd.DataFrame = pd.concat(tables)
    return frame
