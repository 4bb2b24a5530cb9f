"""``moelaws verify`` says what is wrong in results/; ``archive`` writes a sweep to one file."""

import re
import sys
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import click

from moelaws.cli.common import (
    FILE,
    Answer,
    check_out,
    json_command,
    option,
    print_answer,
    table_text,
    warn,
)
from moelaws.cli.project import override_options
from moelaws.files.layout import Results, recovery
from moelaws.records.progress import reporting
from moelaws.spec.advice import ADVICE, load_advice
from moelaws.spec.errors import UserError
from moelaws.spec.project import chosen_studies, load_project, load_study, study_names
from moelaws.spec.study import Study
from moelaws.spec.tier import TIERS, own_tiers
from moelaws.spec.words import counted
from moelaws.tables.at_hand import at_hand

SHOWN = 8  # lines for each state
_OF_RUNS = ("runs", "weights", "hidden", "scores")  # folders whose entries have a run's id as name


@json_command
@option(
    "--tier",
    "Read the tables, fits and figures of this tier alone; of all tiers by default.",
    click.Choice([*TIERS, *own_tiers()]),
)
def command(tier: str | None, as_json: bool) -> None:
    """Read all that was made (runs, texts, weights, tables, fits, figures) and say what is wrong.

    A file is whole if it is what was written, and unverified if it was written by a version that
    noted no digest. It is stale if other code or other inputs than today's made it, orphaned if no
    entry of the project asks for it, and damaged if its content changed. The command exits with 1
    if anything is damaged.
    """
    from moelaws.workflow.verify import STATES, Verification

    results = Results()
    if not results.root.is_dir():
        raise UserError(f"{results.root}: no such folder; run the workflow first")
    tiers = [t for t in (*TIERS, *own_tiers()) if tier in (None, t) and (results.root / t).is_dir()]
    if tier and not tiers:
        raise UserError(f"{results.root / tier}: no such folder; nothing was made of tier {tier}")
    studies, runs = _of_project(results)
    advice = load_advice() if ADVICE.exists() else None
    verification = Verification(results, studies, runs, advice)
    verdicts = list(verification.shared())
    for name in tiers:
        own = {key: at_hand(study, name) for key, study in studies.items()}
        for simulated in (False, True):
            verdicts += replace(verification, studies=own).tier(results.tier(name, simulated))
    damaged = [v for v in verdicts if v.state == "damaged"]
    lines = [f"nothing was made below {results.root} yet"]
    if verdicts:
        counts = Counter((v.kind, v.state) for v in verdicts)
        kinds = dict.fromkeys(v.kind for v in verdicts)
        rows = [(kind, *(counts[kind, state] or None for state in STATES)) for kind in kinds]
        lines = [table_text(("", *STATES), rows)]
    for state in reversed(STATES):
        reasons = [f"{v.path}: {v.reason}" for v in verdicts if v.state == state and v.reason]
        if len(reasons) > SHOWN:
            reasons[SHOWN:] = [f"and {len(reasons) - SHOWN} more; --json lists them all"]
        lines += [f"{state}: {reason}" for reason in reasons]
    lines += [f"To make {v.path} again: {recovery(v.path)[1]}" for v in damaged]
    print_answer(as_json, [vars(v) for v in verdicts], "\n".join(lines))
    if damaged:
        sys.exit(1)


def _of_project(results: Results) -> tuple[dict[str, Study], frozenset[str] | None]:
    """Returns all studies by key, and which runs on record their grids ask for.

    Small tiers come first, and no grid is expanded once all runs are found: a paper's takes longer
    than all else. The runs are None where the text of some is missing, so that ids are unknown.
    """
    from moelaws.grids.rounds import path_of, read_rounds
    from moelaws.grids.sweep import expand_study

    project = load_project()
    listed = [*(load_study(name) for name in study_names()), *chosen_studies(project)]
    studies = {study.file: study for study in listed}.values()
    stems = {path.stem for kind in _OF_RUNS for path in results.root.glob(f"{kind}/*")}
    runs = {stem for stem in stems if re.fullmatch("[0-9a-f]{16}", stem)}  # markers lie there, too
    unknown = set(runs)
    for tier, study in product((*TIERS, *own_tiers()), studies):
        if unknown and tier in study.grids:
            whole = {"tier": tier, "source": "trained", "stages": "all"}
            here = project.model_copy(update=whole)
            try:
                sweep = expand_study(study, here)
            except UserError as error:
                warn(f"no run is called orphaned: {error}")
                return {study.study: study for study in studies}, None
            unknown -= {run.run_id for run in sweep.runs}
            unknown -= read_rounds(path_of(study)).run_ids(here)  # perhaps of a wider grid
    return {study.study: study for study in studies}, frozenset(runs - unknown)


@json_command
@option("--to out", "Write the archive to this file.", FILE, metavar="FILE.zip", required=True)
@option("--force", "Replace the file of --to where it exists.", is_flag=True)
@override_options
def archive(out: Path, force: bool, overrides: dict[str, Any]) -> Answer:
    """Write a finished sweep of the chosen studies to one ZIP file.

    It holds the configuration, the pinned packages, the record of each run, tables, fits, figures,
    claims, pages, the code, and a README.txt that says how to use it. Neither the text nor its
    tokens are in it. Where it is unpacked, `sha256sum -c SHA256SUMS` checks each file.

    \b
    moelaws archive --set studies=sparsity --to sparsity.zip
    """
    from moelaws.workflow.archive import write
    from moelaws.workflow.jobs import Jobs

    check_out(out, ".zip", option="--to")
    if out.exists() and not force:
        raise UserError(f"--to is {str(out)!r}, which exists; --force replaces it")
    with reporting() as report:
        sums = write(out, Jobs.load(overrides), overrides, report)
    return {"archive": out, "files": sums}, f"{out}: {counted(len(sums), 'file')}"
