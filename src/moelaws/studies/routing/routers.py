"""The three routers of the paper, the runs that Eq 1 describes, and the losses over steps."""

from dataclasses import dataclass

import pandas as pd

from moelaws.analysis.derive import Rows, of_runs, table
from moelaws.analysis.inputs import Inputs
from moelaws.tables.column import Column


@dataclass(frozen=True)
class Router:
    """A routing technique."""

    name: str  # as the table has it
    fit: str  # of Eq 1 by the paper's objective

    @property
    def huber(self) -> str:
        """Names the fit of Eq 1 by our objective."""
        return f"{self.fit}_huber"


ROUTERS = (
    Router("S-Base", "s_base"),
    Router("RL-R", "rl_r"),
    Router("Hash", "hash"),
)
DENSE = "Dense"
CUTOFF = "log10_N"  # log10 of the size at which routing stops helping


def main_runs(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the runs that Eq 1 describes: one active expert, every other layer routed."""
    kept = (table["k_source"] == 1) & (table["routing_frequency"] == 0.5)
    return table[kept].reset_index(drop=True)


@table(
    *of_runs("run_id", "E", "L"),
    Column("router", "string", "routing technique, or Dense"),
    Column("size", "string", "size label of the dense base model"),
    Column("k_source", "int", "k as in the source", "experts"),
    Column("routing_frequency", "float", "share of blocks with a routed layer"),
    Column("step", "int", "training steps before the evaluation", "steps"),
    Column("D", "int", "training tokens by then", "tokens"),
)
def curves(inputs: Inputs, file: str) -> Rows:
    """Returns a row for each evaluation with a loss in the authors' ``file``."""
    source = inputs.shipped(file)
    columns = {"step": source["step"], "L": source["loss_validation"]}
    curves = pd.DataFrame({"run_id": source["hyper_id"].astype(str), **columns})
    runs = inputs.completed.astype({"batch_tokens": "int64", "E": "int64", "k_source": "int64"})
    own = ["run_id", "router", "size", "E", "k_source", "routing_frequency", "batch_tokens"]
    frame = curves.dropna().merge(runs[own], on="run_id", validate="many_to_one")
    return frame.assign(D=frame["step"] * frame["batch_tokens"]).sort_values(
        ["router", "size", "E", "run_id", "step"], ignore_index=True
    )
