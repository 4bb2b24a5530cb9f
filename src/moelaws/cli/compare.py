"""moelaws compare: laws side by side on the same rows and the same hold-out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from moelaws.cli.common import (
    TABLE,
    Answer,
    Data,
    format_cell,
    json_command,
    law_study_option,
    option,
    out_option,
    table_text,
    warn_last,
)
from moelaws.cli.fit import fit_options, from_options, read_all, seed_option, threads_option
from moelaws.files.atomic import write_json
from moelaws.records.progress import reporting
from moelaws.spec.errors import located


@json_command
@click.argument("table", type=TABLE)
@option(
    "--laws refs",
    "The laws, each as LAW or LAW:VARIANT; average: those of size and tokens to average.",
    required=True,
    metavar="A,B,...|average",
)
@fit_options
@option(
    "--at point",
    "Predict the response there too, by each law and by their average.",
    default="",
    metavar="'N=1e10 D=2e11'",
)
@seed_option
@threads_option()
@out_option("FILE.json for the comparison.", ".json")
@law_study_option
def command(
    table: Path, refs: str, seed: int, out: Path | None, point: str, **options: Any
) -> Answer:
    """Fit several laws to the same rows of TABLE and set them side by side.

    Forms of one law can be compared too: --laws allocation.loss,allocation.loss:abslog+log1p. The
    table is sorted by the error on held-out rows (root mean square, in the response's unit), or by
    AICc if no row is held out, which rests on ln of the response; a fit that did not converge, or
    of too few rows, has none and comes last. Beside each rank stand the best and the worst one
    within the interval, and how often the law is first. A law of whose variables
    one is constant in the table is fitted in a reduced form. A law that cannot be fitted to the
    table is named with the reason, and the others are compared.

    Beyond the fitted compute, intervals are calibrated on fits to the cheaper rows. `inside` says
    how many of the held-out rows they hold. Laws with such a calibration are also averaged, by
    weights of their errors there.
    """
    from moelaws import laws
    from moelaws.cli.laws import given_numbers, join_own_laws
    from moelaws.fitting.compare import compare
    from moelaws.fitting.variables import sized_by_compute
    from moelaws.tables.parquet import is_study

    refs = "chinchilla,farseer,skaling" if refs == "average" else refs
    at = given_numbers(point.replace(",", " ").split())
    given = {key: value for key, value in options.items() if value not in (None, ())}
    spec = from_options({"name": "comparison", "law": refs} | given, "compare")
    names = [ref.strip() for ref in refs.split(",") if ref.strip()]
    join_own_laws(names)
    candidates = [laws.fittable(name) for name in names]
    if not is_study(table):
        candidates = [*map(sized_by_compute, candidates)]
    frame, declared, entry, _ = read_all(table, spec)
    with reporting() as progress, located(table):
        entries, refused, average = compare(
            candidates, frame, entry, seed=seed, units=declared, progress=progress, at=at
        )
    data = {
        "holdout": spec.holdout,
        "level": spec.level,
        "laws": entries,
        "refused": refused,
        "average": average,
        "at": at,
    }
    if out is not None:
        write_json(out, data)
    texts = [_table(entries, spec.level, spec.holdout), *_of_average(average)]
    if at:
        texts.append(_predictions(entries, average, spec.level, point))
    warn_last(
        *(f"{name} is refused: {reason}" for name, reason in refused.items()),
        *(f"{law['law']}: {warning}" for law in entries for warning in law["warnings"]),
    )
    return data, "\n".join(texts)


def _table(entries: list[Data], level: float, holdout: str) -> str:
    """Returns errors and criteria, or with held-out rows the errors there and the ranks by them."""
    title = f"{entries[0]['n']} rows fitted"
    shown = {
        "parameters": "n_params",
        "rmse": "rmse",
        "r2": "r2",
        "AICc - least": "aicc_excess",
        "BIC - least": "bic_excess",
    }
    if holdout:
        title += f"; {entries[0]['holdout']['n']} rows held out ({holdout}); intervals {level:.0%}"
        shown = {
            "held-out rmse": "rmse",
            "excess": "rmse_excess",
            "rank": "rank",
            "first": "first",
            "r2": "r2",
            "inside": "inside",
        }
    rows = []
    for law in entries:
        name = law["law"] + " (did not converge)" * (not law["converged"])
        rows.append((name, *(_within(law["holdout"] or law, key) for key in shown.values())))
    return table_text(("law", *shown), rows, title)


def _within(known: Mapping[str, Any], name: str) -> Any:
    """Returns a number, with its interval if it has one, such as ``0.031 (0.027 to 0.036)``."""
    value, ends = known.get(name), known.get(f"{name}_interval")
    return f"{format_cell(value)} ({' to '.join(map(format_cell, ends))})" if ends else value


def _of_average(average: Data | None) -> list[str]:
    if average is None:
        return []
    weights = ", ".join(f"{law} {weight:.2f}" for law, weight in average["weights"].items())
    held = average["holdout"]
    error = f"; held-out rmse {held['rmse']:.4g}" if held else ""
    if held and held["inside"] is not None:
        error += f", {100 * held['inside']:.0f} % inside its interval"
    return [f"average by roll-out errors ({weights}){error}"]


def _predictions(entries: list[Data], average: Data | None, level: float, point: str) -> str:
    every = [(law["law"], law["at"]) for law in entries]
    every += [("average", average["at"])] if average else []
    keys = ("value", "low", "high", "new_low", "new_high")
    return table_text(
        ("law", "value", f"mean low ({100 * level:g} %)", "high", "new run low", "high"),
        [(name, *(at[key] for key in keys)) for name, at in every],
        title=f"at {point}",
    )
