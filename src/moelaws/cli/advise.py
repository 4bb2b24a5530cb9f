"""``moelaws advise``: how to spend a budget, by all laws at once."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from moelaws.accounting.cost import GPUS, MFU, Device
from moelaws.analysis.advice import Constraints, Plans, advise, ideal, page, served_for
from moelaws.analysis.advice.plans import TRAINING_BYTES, USED, USUAL_CEILING
from moelaws.analysis.advice.short import cost, in_short, of_compared
from moelaws.analysis.advice.sources import fitted_laws, published_laws
from moelaws.analysis.advice.sweeps import SmallSweep, small_sweeps, study_text
from moelaws.cli.answers import JsonCommand, print_json, print_table
from moelaws.cli.common import (
    COUNTS,
    FILE,
    NAMES,
    Paths,
    Value,
    between,
    gathered,
    law_study_option,
    option,
    out_option,
)
from moelaws.cli.eval import given_numbers
from moelaws.cli.laws import join_own_laws
from moelaws.files.atomic import write_text
from moelaws.files.layout import Results
from moelaws.spec.advice import AdviceConfig, load_advice
from moelaws.spec.errors import UserError, located, or_nearest
from moelaws.spec.numbers import amount, number
from moelaws.spec.project import load_project, study_names
from moelaws.spec.tier import TIERS

_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_BYTES |= {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_EPOCHS, _SERVED_BYTES = 1.0, 2.0  # defaults: passes over the text, bytes of a served parameter


def _bytes(text: str) -> float:
    size, unit = re.fullmatch(r"([0-9.eE+]+)\s*([A-Za-z]*)", text).groups()  # type: ignore[union-attr]
    if not unit and float(size) < 1e6:
        raise UserError(f"{text!r} is that many bytes; did you mean {text}GB?")
    return float(size) * _BYTES[unit]


_AMOUNT = Value("NUMBER", amount, lambda x: 0 < x < 1e30,
                 "no number above 0 and below 1e30, such as 1e21 or 2T")  # fmt: skip
_MEMORY = Value("BYTES", _bytes, lambda x: 1e6 < x < math.inf,
                 "no amount of memory with its unit, such as 80GB or 80GiB")  # fmt: skip


def _constraints(
    compute: float | None,
    gpu_hours: float | None,
    gpu: str | None,
    mfu: float,
    gpus: int | None,
    memory: float | None,
    serve_memory: float | None,
    bytes_per_parameter: float,
    inference_tokens: float | None,
    max_tokens: float | None,
    epochs: float,
    max_sparsity: float,
    experts: tuple[int, ...],
    top_k: int | None,
    granularity: float | None,
) -> tuple[Constraints, Device]:
    """Returns the constraints, and the device whose hours are printed."""
    if (compute is None) == (gpu_hours is None):
        raise UserError("give the budget either as --compute FLOPS or as --gpu-hours HOURS")
    if epochs != _EPOCHS and max_tokens is None:
        raise UserError(f"--epochs {epochs:g} limits nothing without --max-tokens; give both")
    if bytes_per_parameter != _SERVED_BYTES and serve_memory is None:
        raise UserError(
            f"--bytes-per-parameter {bytes_per_parameter:g} limits nothing without --serve-memory; "
            "give both"
        )
    own = GPUS[gpu or "h100"]
    device = replace(own, flops_per_second=own.flops_per_second * mfu / MFU)
    limits = {}
    if serve_memory:
        limits["the memory to serve from"] = serve_memory / bytes_per_parameter
    own_memory = (memory or device.own_memory) if gpus or memory else math.inf
    if own_memory < math.inf:
        held = (gpus or 1) * own_memory * USED
        limits["the memory to train in"] = held / TRAINING_BYTES
    constraints = Constraints(
        compute=compute or gpu_hours * 3600 * device.flops_per_second,  # type: ignore[operator]
        served_tokens=inference_tokens or 0.0,
        max_parameters=limits,
        max_tokens=max_tokens * epochs if max_tokens else math.inf,
        max_sparsity=max_sparsity,
        experts=experts,
        device=device,
        gpus=gpus or 1,
        gpu_memory=own_memory,
        k=top_k,
        G=granularity,
    )
    return constraints, device


# The command receives ``chosen``: the constraints and the device.
constraint_options = gathered(
    "chosen",
    _constraints,
    option("--compute", "FLOPs of all training.", _AMOUNT),
    option("--gpu-hours", "The budget as hours of one GPU, all together.", _AMOUNT),
    option(
        "--gpu",
        "Which GPU.  [default: h100]",
        click.Choice(list(GPUS)),
    ),
    option(
        "--mfu",
        "Assumed speed of large products, as a fraction of its data sheet's.",
        between(0.01, 1.0),
        MFU,
    ),
    option("--gpus", "GPUs that share one training.", click.IntRange(1, 10**6)),
    option("--memory", "Memory of each of them, such as 80GB.", _MEMORY),
    option("--serve-memory", "Memory that holds the served weights.", _MEMORY),
    option(
        "--bytes-per-parameter",
        "Bytes of a served weight: 2 for bf16, 1 for fp8, 0.5 for int4.",
        _AMOUNT,
        _SERVED_BYTES,
    ),
    option(
        "--inference-tokens",
        "Tokens to serve over the model's life; the budget then pays 2 N_active FLOPs each.",
        _AMOUNT,
    ),
    option("--max-tokens", "Training tokens at hand.", _AMOUNT),
    option("--epochs", "How often each of them may be seen.", _AMOUNT, _EPOCHS),
    option(
        "--max-sparsity",
        "The sparsest mixture to look at; 0 for dense models alone.",
        between(0.0, 0.9999),
        USUAL_CEILING,
    ),
    option("--experts", "Numbers of experts, with --top-k.", COUNTS, ()),
    option("--top-k", "Active experts a token; by r* if left out.", click.IntRange(1, 64)),
    option(
        "--granularity",
        "2 d_model / d_expert; by the leverage paper's law if left out.",
        between(0.25, 64.0),
    ),
)


CEILINGS = (0.9, 0.95, 0.99, 0.995)  # that are asked beside the usual one
DAYS = between(0.1, 3650.0)
# 2.5, or as bills have it: $2.5/h
DOLLARS = Value("DOLLARS", lambda text: number(text.removeprefix("$").removesuffix("/h")),
                lambda x: 0 <= x < 1e6, "no price of an hour, such as 2.5 or 2.5/h")  # fmt: skip


@click.command(name="advise", cls=JsonCommand)
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
@out_option("Write the answer on one page with a picture, as .pdf or .html.", ".pdf", ".html")
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
    chosen: tuple[Constraints, Device],
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
) -> None:
    """Tell how to spend a budget: the model to build, and what it costs if another law is right.

    Each law of the loss is taken as the truth in turn. The regret of a plan under it is its loss
    less that of the best model by the same law; beside it stands the factor of compute that the
    best one would save. The robust plan is the model of the least worst-case regret, among all that
    can be built. docs/advice.md has worked examples.
    """
    limits, device = chosen
    config = load_advice()
    fits, speedups = tuple(map(_of_study, fits)), [*_speedups(fits)]
    join_own_laws(entry.law for entry in config.candidate_laws)
    own, unusable = fitted_laws(fits, config, lambda *fit: fits_top_k or limits.k)
    for path in fits:
        if reason := unusable.get(path.resolve()):
            raise UserError(f"--fits: {path}: {reason}")
    candidates = [*published_laws(config), *own]
    left_out = {str(path): reason for path, reason in unusable.items()}
    if only is not None:
        # A fit goes by its own name, or by that of its law.
        names = {c.name: {c.name, c.law.id} if c in own else {c.name} for c in candidates}
        known = dict.fromkeys([e.name or e.law for e in config.candidate_laws] + [*names])
        if unknown := [name for name in only if name not in known]:
            raise UserError(
                f"--laws: {unknown[0]!r} is no candidate law of config/advice.yaml; it has "
                f"{', '.join(known)}"
            )
        asked = {name for name, own_names in names.items() if own_names & {*only}}
        left_out |= {c.name: "--laws leaves out its law" for c in own if c.name not in asked}
        candidates = [c for c in candidates if c.name in asked]
    ask = partial(
        advise,
        candidates,
        shape=config.shape_of(shape),
        advisers=config.advisers if only is None else (),
        setters=config.setters,
    )
    answer = ask(limits, compare=None if compare is None else _plan(compare, limits, config))
    answer = replace(answer, left_out={**left_out, **answer.left_out})
    serves = served_for(ask, answer) if answer.compared else None
    far = answer.all_extrapolate and (details or as_json)
    shown = far or write_study is not None
    sweeps = small_sweeps(answer.minimax, config.sweep) if shown else []
    written = None if write_study is None else _write_study(write_study, sweeps, config)
    short = [*in_short(answer), cost(answer, device, price, days)]
    short += map(_in_words, speedups)
    if out:
        from moelaws.figures.advice import one_page, write_page  # most answers draw nothing

        said = [*page.heading(answer, device), *short, *page.agreement(answer)]
        write_page(one_page(answer, ask, said, price), out)
    if as_json:
        more = {"served_for": serves, "speedups": speedups, "written": written}
        print_json(page.as_json(answer, sweeps, device) | more)
        return
    _print([*short, ""])
    if answer.compared:
        _print([of_compared(answer, answer.compared, serves), ""])
    if not details:
        _print(page.summary(answer))
    else:
        _print([*page.heading(answer, device), "", *page.details(answer)])
        if limits.max_sparsity == USUAL_CEILING:
            others = {S: ask(replace(limits, max_sparsity=S)) for S in CEILINGS}
            moved = dict(sorted({**others, USUAL_CEILING: answer}.items()))
            _print(["", "The answer by other ceilings on sparsity:", page.of_ceilings(moved)])
    if sweeps:
        _print(["", *page.of_sweeps(answer, sweeps, device)])
    if written:
        click.echo(
            f"{written}: `moelaws plan {written} --tier {config.sweep.tier}` tells more of it; "
            f"set corpus in config/config.yaml to enough text and run it with `snakemake "
            f"--config studies={written} tier={config.sweep.tier} device=cuda`"
        )


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


def _print(blocks: Iterable[page.Block]) -> None:
    for block in blocks:
        if isinstance(block, page.Table):
            print_table(block.columns, block.rows)
        elif isinstance(block, page.Items):
            click.echo("\n".join(f"{block.mark}{sentence}" for sentence in block.sentences))
        else:
            click.echo(block)


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
    write_text(path, study_text(sweeps[0], name, config))
    return str(path)


def _plan(text: str, limits: Constraints, config: AdviceConfig) -> Plans:
    """Returns the plan of ``N=8e9 S=0.9 D=2e11``, or of a known model; without D it is NaN."""
    if own := config.known.get(text):
        plan = ideal(own.N_active, 1 - own.k / own.E, own.D or math.nan, limits)
        return replace(plan, N=np.asarray(own.N))
    with located("--compare"):
        if "=" not in text:
            raise UserError(
                f"{text!r} is no known model{or_nearest(text, config.known, 'there are')}"
            )
        given = given_numbers(text.replace(",", " ").split())
        for name, value in given.items():
            if name not in ("N", "N_active", "S", "D") or not 0 <= value < 1e40:
                raise UserError(f"{name} = {value:g} is no value of N, N_active, S or D")
        size = {name: value for name, value in given.items() if name != "D"}
        if len(size) != 2 or not 0 <= size.get("S", 0) < 1 or 0 in map(size.get, ("N", "N_active")):
            raise UserError(
                f"{text!r}: give two of N (total parameters), N_active and S (sparsity, at least 0 "
                "and below 1), such as 'N=8e9 S=0.9 D=2e11'"
            )
        S = size["S"] if "S" in size else 1 - size["N_active"] / size["N"]
        if S < 0:
            raise UserError("N_active is above N")
        N_active = size["N_active"] if "N_active" in size else (1 - S) * size["N"]
        if given.get("D") == 0:
            raise UserError("D is 0, so this plan trains no token")
    return ideal(N_active, S, given.get("D", math.nan), limits)
