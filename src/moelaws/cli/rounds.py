"""The answers of ``moelaws next``: to a table, and to a study in a loop of rounds that trains."""

import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from moelaws.analysis.choice.ask import Answer as Asked
from moelaws.analysis.choice.ask import Question, ask
from moelaws.cli.answers import Answer
from moelaws.cli.project import snakemake_call, tier_folder
from moelaws.cli.question import (
    budget,
    named,
    question_of,
    question_of_table,
    reason,
    shown,
    target_of,
    why_none,
)
from moelaws.files.layout import Results
from moelaws.grids.rounds import ChosenRun, Round, Rounds, path_of, read_rounds, write_rounds
from moelaws.grids.sweep import expand_study
from moelaws.records.batches import failures
from moelaws.spec.base import parse
from moelaws.spec.project import Project, load_study
from moelaws.spec.study import Study
from moelaws.spec.words import counted
from moelaws.tables.foreign import read_any
from moelaws.tables.simulate import design, studys_mapping

# A round takes at most so many calls of Snakemake: two for runs that fail, one without these, one
# for a kill.
_CALLS = 4


def of_table(path: Path, options: dict[str, Any]) -> Answer:
    """Chooses among the runs of a table and of its pool."""
    question = question_of_table(path, options)
    answer = ask(question, options["noise"], budget(question, options), options["seed"])
    stop = why_none(answer, options)
    return shown(question, answer, options, f"stopped: {stop}" if stop else "")


def of_study(name: str, project: Project, options: dict[str, Any]) -> Answer:
    """Chooses the next round, or with cores trains and chooses until there is nothing to choose."""
    study = load_study(name)
    path, rounds, cores = path_of(study), options["rounds"], options["cores"]
    of_rounds = project.model_copy(update={"runs": "rounds", "studies": (study.reference,)})
    call = snakemake_call(of_rounds).replace("--cores all", f"--cores {cores or 'all'}")
    is_written, target = rounds > 1 or cores is not None, target_of(options)
    while True:
        known = read_rounds(path)
        done = [own for own in known.of(project) if is_written and own.target == target]
        if done and cores:
            known = _train(call, known, project, path)
        losses = _losses(study, project)
        question = _question(study, project, known, losses, options)
        trained = [one for own in done for one in own.runs if one.run not in known.failed]
        spent = sum(one.cost for one in trained)
        left = budget(question, options) - spent
        answer = ask(question, options["noise"], left, options["seed"] + len(done))
        if {one.run for one in trained} - losses.keys():
            waiting = f"round {len(done)} is not trained: {call} -- tables"
            return shown(question, replace(answer, chosen=[]), options, waiting)
        stop = why_none(answer, options)
        if is_written and len(done) >= rounds:
            stop = stop or f"{counted(rounds, 'round')} of {rounds} are done"
        if stop or not is_written:
            state = f"stopped: {stop}; {spent:.3g} FLOPs were spent" if stop else ""
            return shown(question, answer, options, state)
        chosen = _first_of(question, answer, left / (rounds - len(done)), options["workers"])
        about = {"round": len(done) + 1, "tier": project.tier, "source": project.source,
                 "target": target, "pool": options["pool"], "runs": chosen}  # fmt: skip
        more = parse(Round, about, path)
        write_rounds(path, known.model_copy(update={"rounds": (*known.rounds, more)}))
        said = f"{counted(len(chosen), 'run')}, {sum(one.cost for one in chosen):.3g} FLOPs"
        click.echo(f"round {more.round}: {said}, in {path}", err=True)
        if not cores:
            state = f"train round {more.round}: {call} -- tables"
            return shown(question, answer, options, state)


def _first_of(question: Question, answer: Asked, allowance: float, workers: int) -> list[ChosenRun]:
    """Returns the runs of a round: at least ``workers``, and as many as the allowance pays for."""

    chosen = list[ChosenRun]()
    for name, one in named(question, answer.chosen):
        if len(chosen) < workers or allowance > 0:
            run, why = question.pool["run_id"].iloc[one.run], reason(one)
            chosen.append(ChosenRun(run=run, name=name, cost=one.cost, reason=why))
            allowance -= one.cost
    return chosen


def _train(call: str, rounds: Rounds, project: Project, path: Path) -> Rounds:
    """Calls Snakemake for the rounds' table, and again where runs were lost; returns the rounds.

    Runs that failed by themselves more than once are marked, and it goes on without them. What
    stops it otherwise, such as a signal, ends this command with the same exit code.
    """

    # The rules hold the results themselves: the lock of a Snakemake that was killed means nothing.
    more = ("--keep-going", "--nolock", "--rerun-incomplete")
    words = [*shlex.split(call), *more, "--", "tables"]
    words[0] = str(Path(sys.executable).parent / words[0])
    for _ in range(_CALLS):
        if not (code := _call(words)):
            return rounds
        runs = rounds.run_ids(project)
        lost = {run for run in runs if not Results().summary(run).exists()}
        if code != 1 or not lost or project.source == "simulated":
            break
        failed = {run for run in lost if failures(Results(), run) > 1}
        if failed == runs:
            break
        if failed:
            known = tuple(sorted({*rounds.failed, *failed}))
            write_rounds(path, rounds := rounds.model_copy(update={"failed": known}))
            lost_ones = ", ".join(sorted(failed))
            click.echo(f"not asked for again, for they failed twice: {lost_ones}", err=True)
    sys.exit(code if code > 0 else 128 - code)


def _call(words: list[str]) -> int:
    """Returns a command's exit code; Ctrl-C, which the command hears as well, is left to it."""
    process = subprocess.Popen(words)
    try:
        return process.wait()
    except KeyboardInterrupt:  # subprocess.run would kill it, and its locks would stay
        return process.wait()


def _losses(study: Study, project: Project) -> dict[str, float]:
    """Returns the loss of each run in the tier's table, NaN where it did not complete."""

    if not (table := tier_folder(project).table(study.study)).exists():
        return {}
    frame, _ = read_any(table)
    losses = frame["L"].where(frame["status"] == "completed")
    return dict(zip(frame["run_id"], losses, strict=True))


def _question(
    study: Study,
    project: Project,
    rounds: Rounds,
    losses: Mapping[str, float],
    options: dict[str, Any],
) -> Question:
    """Returns the question on the grid's runs, some of which have ``losses``."""

    pools = rounds.pools(project) | {options["pool"]} - {""}
    pool = design(expand_study(study, project.model_copy(update={"runs": "all"}), pools=pools))
    pool["L"] = pool["run_id"].map(losses).astype(float)
    tried = {*rounds.run_ids(project), *rounds.failed, *losses}
    free = ~pool["run_id"].isin(tried).to_numpy()
    return question_of(pool, free, options, lambda law: studys_mapping(study, law))
