"""What each choice does to the loss, at equal tokens and at equal time."""

import numpy as np

from moelaws.analysis.derive import Row, Rows, records, table
from moelaws.analysis.effect import Effect, ratio_of_times
from moelaws.analysis.inputs import Inputs
from moelaws.studies.routing_choices.arms import ARMS, BASE, SHUFFLED, TOP_K, Arms
from moelaws.tables.column import Column, estimated


@table(
    Column("choice", "string", "sweep of the arm, or the number of active experts"),
    Column("words", "string", "the same in words"),
    *estimated("tokens", "higher loss than the base's at equal FLOPs and tokens", "%"),
    Column("tokens_se", "float?", "its error by documents, paired", "%"),
    *estimated("ratio", "time of a training step over that of the base"),
    *estimated("time", "higher loss than the base's at equal time", "%"),
)
def derive(inputs: Inputs) -> Rows:
    """Yields a row for each arm and number of active experts.

    An arm whose step takes q times as long makes 1 / q of the steps in the same time. By the slope
    of ln L over ln C of the base, its loss is then higher by minus the slope times ln q. The ends
    add those of the effect and of the time, so that they are wide.
    """
    arms, timed = Arms(inputs), _timed(inputs)
    present = set(arms.runs["arm"]) - {BASE, SHUFFLED}
    effects = {arm: (ARMS[arm], arms.effect(arm)) for arm in ARMS if arm in present}
    for k in sorted(set(arms.runs["k"]) - {TOP_K}):
        effects[f"top{k}"] = f"{k} active experts", arms.of_active(k)
    for choice, (words, effect) in effects.items():
        ratio = timed.get(choice, Effect(np.nan))
        later = np.array(effect.interval) - arms.slope() * np.log(ratio.interval)
        row: Row = {"choice": choice, "words": words, "tokens_se": arms.documents(choice)}
        yield {**row, "tokens": effect, "ratio": ratio, "time": Effect(*later)}


def _timed(inputs: Inputs) -> dict[str, Effect]:
    """Returns the time of a step over that of the base, by choice, at the size of most arms."""
    runs = Arms(inputs).runs.drop(columns="tokens_per_second")
    runs = inputs.speed().merge(runs, on="run_id")
    runs = runs[runs["d_model"] == runs["d_model"].mode().max()]
    runs = runs[(runs["k"] == TOP_K) | (runs["arm"] == BASE)]
    names = runs["arm"].where(runs["k"] == TOP_K, "top" + runs["k"].astype(str))
    rows = dict(zip(names, records(runs), strict=True))
    if BASE not in rows:
        return {}
    return {name: ratio_of_times(row, rows[BASE], "time_ratio") for name, row in rows.items()}
