"""A rule that measures how well a frontier predicts larger published runs."""

from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Evidence


def holds_larger_runs(inputs: Inputs, fit: str) -> Evidence:
    """Returns how far the least loss of the larger runs lies from what the fit predicts.

    The unit is the half width of the calibrated interval, on that side.
    """
    rows = inputs.derived("predictions", fit=fit).sort_values("observed")
    least = rows.iloc[0]
    value, observed = float(least["value"]), float(least["observed"])
    end = float(least["high"] if observed > value else least["low"])
    far = (observed - value) / abs(end - value)
    losses = ", ".join(f"{x:.3f}" for x in rows["observed"])
    return Evidence(
        f"{value:.3f} [{least['low']:.3f}, {least['high']:.3f}] is predicted, the law alone gives "
        f"[{least['alone_low']:.3f}, {least['alone_high']:.3f}]; {len(rows)} runs have {losses} "
        f"nats/token; the calibrated interval holds {rows['inside'].sum()} of them, that of the "
        f"law alone {rows['inside_alone'].sum()}",
        Effect(far),
        "half widths of the interval",
        [Effect(far, far, far)],
    )
