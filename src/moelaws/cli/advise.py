"""``moelaws advise``: how to spend a budget, by all laws at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moelaws.cli.budget import constraint_options
from moelaws.cli.output import json_option, print_json
from moelaws.spec.errors import UserError
from moelaws.spec.study import TIERS

if TYPE_CHECKING:
    from moelaws.accounting.cost import Device
    from moelaws.analysis.advice import Constraints, Plans
    from moelaws.analysis.advice.sweeps import Candidate
    from moelaws.spec.advice import AdviceConfig


@click.command(name="advise")
@constraint_options
@click.option(
    "--fits",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Your own fits, which judge beside the published laws: a report or a folder of them.",
)
@click.option(
    "--fits-top-k",
    type=click.IntRange(1, 64),
    help="Active experts of the runs behind these fits, where a law counts experts.  "
    "[default: --top-k]",
)
@click.option(
    "--shape",
    type=click.Choice(TIERS),
    help="Build a model of this tier's shape in config/advice.yaml: its vocabulary is smaller.",
)
@click.option("--laws", "only", metavar="A,B", help="Ask these laws of config/advice.yaml alone.")
@click.option(
    "--compare",
    metavar="'N=8e9 S=0.9 D=2e11'",
    help="A plan of your own, judged beside the others: two of N, N_active, S, and D if not all "
    "of the budget is spent.",
)
@click.option(
    "--measured",
    type=click.Path(path_type=Path),
    help="A table of your own runs: hours are then told by their speed, plan by plan.",
)
@click.option(
    "--write-study",
    metavar="NAME",
    help="Write the small sweep that would tell most to NAME.yaml, as a study that can be run.",
)
@json_option
def command(
    chosen: tuple[Constraints, Device],
    fits: tuple[Path, ...],
    fits_top_k: int | None,
    shape: str | None,
    only: str | None,
    compare: str | None,
    measured: Path | None,
    write_study: str | None,
    as_json: bool,
) -> None:
    """Tell how to spend a budget: what each law recommends, and what it costs if another is right.

    Each law of the loss is taken as the truth in turn. The regret of a plan under it is its loss
    less that of the best plan by the same law; beside it stands the factor of compute that the best
    plan would save. The robust plan is the one of the least worst-case regret. docs/advice.md has
    worked examples.
    """
    from moelaws.analysis.advice import advise
    from moelaws.analysis.advice.sources import advisers, fitted_judges, published_judges, setters
    from moelaws.analysis.advice.sweeps import candidates
    from moelaws.cli.advice_text import advice_json, print_advice
    from moelaws.spec.advice import load_advice

    limits, device = chosen
    config = load_advice()
    own, unusable = fitted_judges(fits, config, fits_top_k or limits.k)
    for path in fits:
        if reason := unusable.get(path.resolve()):
            raise UserError(f"--fits: {path}: {reason}")
    judges = [*published_judges(config), *own]
    left_out = {str(path): reason for path, reason in unusable.items()}
    if only is not None:
        listed = _listed(only, config)
        left_out |= {j.name: "--laws leaves out its law" for j in own if j.law.id not in listed}
        judges = [judge for judge in judges if judge.law.id in listed]
    answer = advise(
        judges,
        limits,
        config.shape_of(shape) if shape else config.shape,
        advisers=() if only is not None else advisers(config),
        setters=setters(config),
        compare=None if compare is None else _plan(compare, limits),
        farthest=config.farthest,
    )
    answer = replace(answer, left_out={**left_out, **answer.left_out})
    writes = write_study is not None
    sweeps = candidates(answer.court, config.sweep) if answer.all_extrapolate or writes else []
    written = None if write_study is None else _write_study(write_study, sweeps, config)
    speed = None
    if measured:
        from moelaws.analysis.advice import speed as speeds  # reads tables by pandas, which is slow

        speed = speeds.measured(measured)
    if as_json:
        print_json(advice_json(answer, sweeps, device, speed) | {"written": written})
    else:
        print_advice(answer, sweeps, device, speed)
        if written:
            click.echo(
                f"{written}: `moelaws plan {written} --tier {config.sweep.tier}` tells more of it; "
                f"set corpus in config/config.yaml to enough text and run it with `snakemake "
                f"--config studies={written} tier={config.sweep.tier} device=cuda`"
            )


def _write_study(name: str, sweeps: Sequence[Candidate], config: AdviceConfig) -> str:
    """Writes the best of the small sweeps as a study and returns its file.

    Raises:
        UserError: for a name that is no key of a study, a file that is there already, or where no
            sweep of the settings is small enough for the budget.
    """
    from moelaws.analysis.advice.sweeps import study_of, study_text
    from moelaws.records.files import write_text
    from moelaws.spec.project import study_names

    path = Path(f"{name}.yaml")
    if name in study_names():
        raise UserError(f"--write-study: {name} is a study of config/studies/; choose another name")
    if path.exists():
        raise UserError(f"--write-study: {path} is there already; choose another name")
    if not sweeps:
        raise UserError(
            "--write-study: at the budgets of sweep in config/advice.yaml no three models of its "
            "settings can be trained; set smaller models or larger shares of the budget there"
        )
    write_text(path, study_text(study_of(sweeps[0], name, config), sweeps[0]))
    return str(path)


def _listed(text: str, config: AdviceConfig) -> list[str]:
    known, names = (
        [entry.law for entry in config.judges],
        [name.strip() for name in text.split(",")],
    )
    for name in names:
        if name not in known:
            raise UserError(
                f"--laws: {name!r} is no judge of config/advice.yaml; it has {', '.join(known)}"
            )
    return names


def _plan(text: str, limits: Constraints) -> Plans:
    """Returns the plan of ``N=8e9 S=0.9 D=2e11``."""
    from moelaws.analysis.advice import ideal

    given: dict[str, float] = {}
    for word in text.replace(",", " ").split():
        name, _, value = word.partition("=")
        if name in given:
            raise UserError(f"--compare: {name} is given twice")
        try:
            given[name] = float(value)
        except ValueError:
            given[name] = math.nan
        if name not in ("N", "N_active", "S", "D") or not 0 <= given[name] < 1e40:
            raise UserError(
                f"--compare: {word!r} is not NAME=NUMBER with a name of N, N_active, S and D"
            )
    size = {name: value for name, value in given.items() if name != "D"}
    if (
        len(size) != 2
        or not 0 <= size.get("S", 0) < 1
        or 0 in (size.get("N"), size.get("N_active"))
    ):
        raise UserError(
            f"--compare {text!r}: give two of N (total parameters), N_active and S (sparsity, at "
            "least 0 and below 1), such as 'N=8e9 S=0.9 D=2e11'"
        )
    S = size["S"] if "S" in size else 1 - size["N_active"] / size["N"]
    if S < 0:
        raise UserError("--compare: N_active is above N")
    N_active = size["N_active"] if "N_active" in size else (1 - S) * size["N"]
    D = given.get("D", float(limits.tokens(N_active)))
    if D <= 0:
        why = "D is 0" if "D" in given else "serving it takes the whole budget"
        raise UserError(f"--compare: {why}, so this plan trains no token")
    return ideal(N_active, S, D, limits)
