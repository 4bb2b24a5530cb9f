"""``moelaws advise``: how to spend a budget, by all laws at once."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from moelaws.accounting.cost import Device
from moelaws.analysis.advice import (
    Advice,
    CandidateLaw,
    Constraints,
    Plans,
    advise,
    ideal,
    page,
    served_for,
    side_by_side,
)
from moelaws.analysis.advice.blocks import Block, Table
from moelaws.analysis.advice.plans import USUAL_CEILING
from moelaws.analysis.advice.short import (
    beside,
    costs,
    nearby,
    of_compared,
    of_known,
    quantities,
    recipe,
    shape_in_words,
)
from moelaws.analysis.advice.sources import fitted_laws, published_laws
from moelaws.analysis.advice.sweeps import SmallSweep, small_sweeps
from moelaws.cli.budget import constraint_options, constraints
from moelaws.cli.common import (
    FILE,
    NAMES,
    Paths,
    between,
    json_command,
    law_study_option,
    option,
    out_option,
    print_answer,
    sentences,
    table_text,
)
from moelaws.cli.laws import given_numbers, join_own_laws
from moelaws.files.atomic import write_text
from moelaws.files.layout import Results
from moelaws.spec.advice import AdviceConfig, load_advice
from moelaws.spec.errors import UserError, located, or_nearest
from moelaws.spec.hyperparameters import choice_of
from moelaws.spec.project import load_project, study_names
from moelaws.spec.tier import TIERS

CEILINGS = (0.9, 0.95, USUAL_CEILING, 0.99, 0.995, 0.9999)  # the last is none
DAYS, DOLLARS = between(0.1, 3650.0), between(0.0, 1e6)


@json_command
@constraint_options
@option(
    "--fits",
    "Fits as candidate laws beside the published: a report, a folder of them, or a study's name, "
    "such as public.",
    FILE,
    multiple=True,
)
@option(
    "--fits-top-k",
    "Active experts of the runs behind these fits, where a law counts experts.  [default: --top-k]",
    click.IntRange(1, 64),
)
@option(
    "--shape",
    "Build a model of this tier's shape in config/advice.yaml: its vocabulary is smaller.",
    click.Choice(TIERS),
)
@law_study_option
@option("--price", "Dollars for an hour of one GPU, to print what it costs.", DOLLARS, 2.5)
@option("--days", "Days that it may take, unless --gpus says on how many GPUs.", DAYS, 30.0)
@out_option("Write all of it to this Markdown file, with a picture (PNG) beside it.", ".md")
@option("--details", "Print all regrets, the limits of each law, and other ceilings.", is_flag=True)
@option("--laws only", "Ask these laws of config/advice.yaml alone.", NAMES)
@option(
    "--compare",
    "A plan of your own, to compare with the others: two of N, N_active, S, and D if not "
    "all of the budget is spent; or a model that config/advice.yaml knows, such as OLMoE.",
    metavar="'N=8e9 S=0.9 D=2e11'",
)
@option(
    "--write-study",
    "Write the small sweep that would tell most to NAME.yaml, as a study that can be run.",
    metavar="NAME",
)
def command(
    fits: Paths,
    fits_top_k: int | None,
    shape: str | None,
    price: float,
    days: float,
    out: Path | None,
    details: bool,
    only: list[str] | None,
    compare: str | None,
    write_study: str | None,
    as_json: bool,
    **budget: Any,
) -> None:
    """Tell how to spend a budget: the model to build, and what it costs if another law is right.

    Each law of the loss is taken as the truth in turn. The regret of a plan under it is its loss
    less that of the best model by the same law; beside it stands the factor of compute that the
    best one would save. The robust plan is the model of the least worst-case regret, among all that
    can be built. docs/advice.md has worked examples.
    """
    limits, device = constraints(**budget)
    config, speedups = load_advice(), [*_speedups(fits)]
    join_own_laws(entry.law for entry in config.candidate_laws)
    candidates, left_out = _candidates(fits, fits_top_k or limits.k, only, config)
    ask = partial(
        advise,
        candidates,
        shape=config.shape_of(shape),
        advisers=config.advisers if only is None else (),
        setters=config.setters,
    )
    answer = ask(limits, compare=None if compare is None else _plan(compare, limits, config))
    answer = replace(answer, left_out={**left_out, **answer.left_out})
    both, serves = side_by_side(ask, answer), served_for(ask, answer)
    whole = details or out is not None
    is_far = answer.all_extrapolate and (whole or as_json)
    sweeps = small_sweeps(answer.minimax, config.sweep) if is_far or write_study else []
    written = None if write_study is None else _write_study(write_study, sweeps, config)
    data = page.as_json(answer, sweeps, device, both) | {
        "served_for": serves,
        "speedups": speedups,
        "written": written,
        "known": nearby(config.known, limits.compute),
    }
    columns = {
        name: quantities(own) | costs(own, device, price, days) for name, own in both.items()
    }
    blocks: list[Block] = [Table(("", *both), beside(columns)), ""]
    blocks += [
        f"Build ({name}): {shape_in_words(own.configuration.model)}." for name, own in both.items()
    ]
    law = next((entry.law for entry in config.setters if entry.variable == "lr"), "")
    blocks += filter(None, [recipe(answer, law, choice_of(load_project()).transferred)])
    blocks += [*map(_in_words, speedups), ""]
    blocks += [of_compared(answer, answer.compared, serves), ""] if answer.compared else []
    blocks += [*page.summary(answer), of_known(config.known, limits.compute)]
    blocks += _more(ask, answer, device) if whole else []
    blocks += ["", *page.of_sweeps(answer, sweeps, device)] if sweeps else []
    blocks += [_how_to_run(written, config.sweep.tier)] if written else []
    if out:
        from moelaws.figures.advice import write_page  # most answers draw nothing

        write_page(out, [f"# How to spend {limits.compute:.3g} FLOPs", *blocks], both)
        blocks = [str(out)]
    print_answer(as_json, data, "\n".join(map(_text, blocks)))


def _text(block: Block) -> str:
    if isinstance(block, Table):
        return table_text(block.columns, block.rows)
    return sentences(block)


def _how_to_run(study: str, tier: str) -> str:
    return (
        f"{study}: `moelaws plan {study} --tier {tier}` tells more of it; "
        f"set corpus in config/config.yaml to enough text and run it with `snakemake "
        f"--cores all --config studies={study} tier={tier} device=cuda`"
    )


def _more(ask: Callable[[Constraints], Advice], answer: Advice, device: Device) -> Iterator[Block]:
    """Yields what ``--details`` adds to an answer."""
    yield ""
    yield from page.heading(answer, device)
    yield from page.details(answer)
    if answer.limits.max_sparsity == USUAL_CEILING:
        others = {S: ask(replace(answer.limits, max_sparsity=S)) for S in CEILINGS}
        yield from page.of_ceilings(others)


def _candidates(
    fits: Paths, top_k: int | None, only: list[str] | None, config: AdviceConfig
) -> tuple[list[CandidateLaw], dict[str, str]]:
    """Returns the published laws and those of fits, and why other laws and fits take no part."""
    paths = tuple(map(_of_study, fits))
    own, unusable = fitted_laws(paths, config, lambda *fit: top_k)
    for path in paths:
        if reason := unusable.get(path.resolve()):
            raise UserError(f"--fits: {path}: {reason}")
    candidates = [*published_laws(config), *own]
    left_out = {str(path): reason for path, reason in unusable.items()}
    if only is None:
        return candidates, left_out
    # A fit goes by its own name, or by that of its law.
    names = {c.name: {c.name, c.law.id} if c in own else {c.name} for c in candidates}
    known = dict.fromkeys([e.name or e.law for e in config.candidate_laws] + [*names])
    if unknown := [name for name in only if name not in known]:
        raise UserError(
            f"--laws: {unknown[0]!r} is no candidate law of config/advice.yaml; it has "
            f"{', '.join(known)}"
        )
    asked = [c for c in candidates if names[c.name] & {*only}]
    more = {c.name: "--laws leaves out its law" for c in own if c not in asked}
    return asked, left_out | more


def _of_study(fits: Path) -> Path:
    """Returns the folder of a study's fits where ``fits`` is its name and no file."""
    if fits.exists() or str(fits) not in study_names():
        return fits
    return Results().tier(load_project().tier).fit(str(fits), "any").parent


def _speedups(fits: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yields what studies among ``fits`` measured of mixtures against dense models at equal loss.

    S_c is the ratio of compute, and S_w that of time, as gates ask for them that promote a recipe.
    """
    for name in map(str, fits):
        path = Results().tier(load_project().tier).derived(name, "leverage")
        if not path.is_file():
            continue
        from moelaws.tables.parquet import read_table  # most answers need no pandas

        rows = read_table(path)
        if len(rows) and "in_time" in rows:
            row = rows.iloc[len(rows) // 2].to_dict()  # the middle one of several floors
            of_time = [row["time_low"], row["time_high"]]
            yield {
                "study": name,
                "S_c": {"value": row["leverage"], "interval": [row["low"], row["high"]]},
                "S_w": {"value": row["in_time"], "interval": of_time},
                "floor": row["floor"],
            }


def _in_words(speedup: Mapping[str, Any]) -> str:
    compute, time = (
        "{value:.3g} [{interval[0]:.3g}, {interval[1]:.3g}]".format(**speedup[name])
        for name in ("S_c", "S_w")
    )
    return (
        f"by {speedup['study']}, at equal loss a dense model needs {compute} times the compute of "
        f"a mixture (S_c), and {time} times its time (S_w)"
    )


def _write_study(name: str, sweeps: Sequence[SmallSweep], config: AdviceConfig) -> str:
    """Writes the best of the small sweeps as a study and returns its file."""
    path = Path(f"{name}.yaml")
    if name in study_names():
        raise UserError(f"--write-study: {name} is a study of config/studies/; choose another name")
    if path.exists():
        raise UserError(f"--write-study: {path} is there already; choose another name")
    if not sweeps:
        raise UserError(
            "--write-study: at the budgets of sweep in config/advice.yaml no three models of its "
            "settings can be trained; set smaller models or larger parts of the budget there"
        )
    # Most answers write none.
    from moelaws.analysis.advice.study import study_text
    from moelaws.grids.sweep import expand_study
    from moelaws.tables.simulate import design

    project = load_project(overrides={"tier": config.sweep.tier})
    text = study_text(sweeps[0], name, config, lambda study: design(expand_study(study, project)))
    write_text(path, text)
    return str(path)


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _plan(text: str, limits: Constraints, config: AdviceConfig) -> Plans:
    """Returns the plan of ``N=8e9 S=0.9 D=2e11``, or of a known model; without D it is NaN."""
    if own := next((m for name, m in config.known.items() if _plain(name) == _plain(text)), None):
        plan = ideal(own.N_active, 1 - own.k / own.E, own.D or math.nan, limits)
        return replace(plan, N=np.asarray(own.N))
    with located("--compare"):
        if "=" not in text:
            raise UserError(
                f"{text!r} is no known model{or_nearest(text, config.known, 'there are')}"
            )
        given = given_numbers(text.replace(",", " ").split())
        N, N_active, S, D = (given.pop(x, math.nan) for x in ("N", "N_active", "S", "D"))
        missing = sum(map(math.isnan, (N, N_active, S)))
        S = 1 - N_active / max(N, 1.0) if math.isnan(S) else S
        N_active = (1 - S) * N if math.isnan(N_active) else N_active
        if given or missing != 1 or not (0 <= S < 1 <= N_active < 1e40) or D < 1 or D > 1e40:
            raise UserError(
                f"{text!r}: give two of N (total parameters), N_active and S (sparsity, at least 0 "
                "and below 1), and D if it is known, such as 'N=8e9 S=0.9 D=2e11'"
            )
    return ideal(N_active, S, D, limits)
