"""``moelaws pin``: a search's laws of learning rate and batch become those of the other studies."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from moelaws.cli.common import Answer, Words, json_command, option, warn
from moelaws.cli.project import project_options
from moelaws.files.atomic import write_text
from moelaws.files.layout import Results
from moelaws.records.runs import read_record
from moelaws.spec.base import Frozen, parse
from moelaws.spec.corpus import Corpus
from moelaws.spec.hyperparameters import (
    Pinned,
    pinned_file,
    rates_file,
    read_pinned,
    transfer_file,
)
from moelaws.spec.project import Project, load_study
from moelaws.spec.run import RunConfig

if TYPE_CHECKING:
    from moelaws.analysis.inputs import Inputs


@json_command
@click.argument("study_name", metavar="STUDY", default="hyperparameters")
@project_options
@option("--lr", "The fit of the learning rate.", default="lr")
@option("--batch", "The fit of the batch.", default="batch")
@option(
    "--per",
    "Pin the best learning rate at each value of this column instead; may be repeated.",
    multiple=True,
    metavar="COLUMN",
)
@option("--bases", "Pin the best learning rate of each base shape instead.", is_flag=True)
def command(
    study_name: str, project: Project, lr: str, batch: str, per: Words, bases: bool
) -> Answer:
    """Pin the laws that STUDY fitted at this tier, in config/hyperparameters.

    The file is TIER.yaml, or TIER-gates-over-all.yaml where the models searched have gates over all
    experts (normalize_top_k: false). Learning rates and batches of grids whose rule is `chosen`
    follow it from then on where models have such gates, so that the identities of those runs
    change. Prints the file; with --json, also the laws before.

    With --per, the best rates of STUDY go to config/hyperparameters/rates/TIER-STUDY.yaml, which
    grids follow whose rule names STUDY as its `search`.

    With --bases, those of STUDY's derived table `bases` go to
    config/hyperparameters/transfer/TIER.yaml, for larger models to take over (docs/transfer.md),
    with the power of training tokens by which they fall.
    """
    from moelaws.analysis.fitted import FittedInputs
    from moelaws.analysis.inputs import read_runs
    from moelaws.analysis.pinning import best_rates, pinned, transferred

    study, tier = load_study(study_name), project.tier
    results, key = Results(), study.study
    folder = results.tier(tier)
    fits = () if per or bases else (lr, batch)
    searched = {study.fit(name).table for name in fits} - {""} if fits else {"bases", "optima"}
    inputs = FittedInputs(
        frame=read_runs(folder.table(key)),
        fits={name: folder.fit(key, name) for name in fits},
        derived_tables={name: folder.derived(key, name) for name in searched},
    )
    if per:
        rates = best_rates(inputs, per, _corpora(inputs, results))
        return _written(rates_file(tier, key), rates)
    if bases:
        of_runs = inputs.derived("bases")["run_id"]
        configs = {run: parse(RunConfig, read_record(results, run).config, run) for run in of_runs}
        return _written(transfer_file(tier), transferred(inputs, configs))
    new = pinned(study, inputs, tier, lr, batch, _corpora(inputs, results))
    gates = new.provenance.gates
    old, file, text = read_pinned(tier, gates=gates), pinned_file(tier, gates), _text(new)
    write_text(file, text)
    warn(*new.provenance.notes)
    data = {
        "file": file,
        "old": old and old.model_dump(mode="json"),
        "new": new.model_dump(mode="json"),
    }
    return data, f"{text}\n{file}"


def _written(file: Path, rates: Frozen) -> Answer:
    data = rates.model_dump(mode="json", exclude_none=True)
    write_text(file, yaml.safe_dump(data, sort_keys=False, default_flow_style=None))
    return {"file": file, **data}, file


def _corpora(inputs: "Inputs", results: Results) -> list[str]:
    """Returns the identities of the text of those runs that are on record."""
    searched_runs = [run for run in inputs.table["run_id"] if results.run(run).is_dir()]
    texts = (Corpus(**read_record(results, run).config["corpus"]) for run in searched_runs)
    return sorted({text.corpus_id for text in texts})


def _text(new: Pinned) -> str:
    """Returns the file's YAML, behind a comment that says what it is."""
    source = new.provenance
    low, high = source.C
    head = (
        f"# Learning-rate and batch laws of the {source.tier} tier, x = coefficient * C^exponent,\n"
        "# C in FLOPs: what grids whose rule is `chosen` follow (docs/hyperparameters.md), where\n"
        f"# gates are a softmax over {source.gates} experts. Written by `moelaws pin`;\n"
        "# another search pinned changes the identities of all runs that follow these laws.\n"
        f"# At C = {low:.3g}: lr {new.lr.at(low):.3g}, batch {new.batch_tokens.at(low):.4g} tokens;"
        f" at C = {high:.3g}: lr {new.lr.at(high):.3g}, batch {new.batch_tokens.at(high):.4g}.\n"
    )
    data = new.model_dump(mode="json")
    return head + yaml.safe_dump(data, sort_keys=False, default_flow_style=None)
