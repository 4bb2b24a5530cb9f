"""The answers of ``moelaws next``: to a table, and to a study in a loop of rounds that trains."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.choice.ask import Answer as Asked
from moelaws.analysis.choice.ask import Question, ask, models_of
from moelaws.analysis.choice.choose import Chosen
from moelaws.cli import preregister
from moelaws.cli.common import Answer, table_text
from moelaws.cli.laws import join_own_laws
from moelaws.cli.project import snakemake_call, tier_folder
from moelaws.files.atomic import finite
from moelaws.files.layout import Results
from moelaws.grids.rounds import ChosenRun, Round, Rounds, path_of, read_rounds, write_rounds
from moelaws.grids.sweep import expand_study
from moelaws.laws.base import FittableLaw, Mask
from moelaws.records.batches import failures
from moelaws.records.names import name_of_row
from moelaws.records.registration import committed
from moelaws.spec.advice import ADVICE, load_advice
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError, located, nearest
from moelaws.spec.fit import Fit
from moelaws.spec.project import Project, load_study
from moelaws.spec.rows import select
from moelaws.spec.study import Study
from moelaws.spec.words import counted
from moelaws.tables.foreign import columns, read_any
from moelaws.tables.selected import evaluate
from moelaws.tables.simulate import design, studys_mapping

Options = SimpleNamespace  # those of the command

_MOST = 10_000  # runs of a pool: some seconds
_SHOWN = 12  # runs that are printed
_NO_RULE = ("cores", "register")  # options that do not decide which runs are chosen
# A round takes at most so many calls of Snakemake: two for runs that fail, one without these, one
# for a kill.
_CALLS = 4


def of_table(path: Path, options: Options) -> Answer:
    """Chooses among the runs of a table and of its pool."""
    question = question_of_table(path, options)
    answer = ask(question, options.noise, budget(question, options), options.seed)
    stop = why_none(answer, options)
    return shown(question, answer, options, f"stopped: {stop}" if stop else "")


def of_study(name: str, project: Project, options: Options) -> Answer:
    """Chooses the next round, or with cores trains and chooses until there is nothing to choose."""
    study = load_study(name)
    path, rounds, cores = path_of(study), options.rounds, options.cores
    rule = finite({key: x for key, x in vars(options).items() if key not in _NO_RULE})
    if options.register:
        whole = project.model_copy(update={"runs": "all"})
        return preregister.write(study, whole, pools={options.pool} - {""}, rule=rule)
    registered = committed(study.study, project.tier)
    fixed = [own.digest for own in registered if own.rule == rule]
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
        answer = ask(question, options.noise, left, options.seed + len(done))
        if {one.run for one in trained} - losses.keys():
            waiting = f"round {len(done)} is not trained: {call} -- tables"
            return shown(question, replace(answer, chosen=[]), options, waiting)
        stop = why_none(answer, options)
        if is_written and len(done) >= rounds:
            stop = stop or f"{counted(rounds, 'round')} of {rounds} are done"
        if stop or not is_written:
            state = f"stopped: {stop}; {spent:.3g} FLOPs were spent" if stop else ""
            return shown(question, answer, options, state)
        chosen = _first_of(question, answer, left / (rounds - len(done)), options.workers)
        about = {"round": len(done) + 1, "tier": project.tier, "source": project.source,
                 "target": target, "pool": options.pool, "runs": chosen,
                 "registered": "".join(fixed[-1:])}  # fmt: skip
        more = parse(Round, about, path)
        write_rounds(path, known.model_copy(update={"rounds": (*known.rounds, more)}))
        click.echo(
            f"round {more.round}: {counted(len(chosen), 'run')}, "
            f"{sum(one.cost for one in chosen):.3g} FLOPs, in {path}",
            err=True,
        )
        if not cores:
            state = f"train round {more.round}: {call} -- tables"
            return shown(question, answer, options, state)


def _first_of(question: Question, answer: Asked, allowance: float, workers: int) -> list[ChosenRun]:
    """Returns the runs of a round: at least ``workers``, and as many as the allowance pays for."""

    chosen = list[ChosenRun]()
    for name, one in named(question, answer.chosen):
        if len(chosen) < workers or allowance > 0:
            run = question.pool["run_id"].iloc[one.run]
            chosen.append(ChosenRun(run=run, name=name, cost=one.cost, reason=reason(one)))
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
            click.echo(
                f"not asked for again, for they failed twice: {', '.join(sorted(failed))}",
                err=True,
            )
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
    options: Options,
) -> Question:
    """Returns the question on the grid's runs, some of which have ``losses``."""

    pools = rounds.pools(project) | {options.pool} - {""}
    pool = design(expand_study(study, project.model_copy(update={"runs": "all"}), pools=pools))
    pool["L"] = pool["run_id"].map(losses).astype(float)
    tried = {*rounds.run_ids(project), *rounds.failed, *losses}
    free = ~pool["run_id"].isin(tried).to_numpy()
    return question_of(pool, free, options, lambda law: studys_mapping(study, law))


def question_of_table(path: Path, options: Options) -> Question:
    """Returns the question on a table's rows, and on those of the pool that it does not have."""
    frame, _ = read_any(path)
    loss = options.mapping.get("L", "L")
    if options.pool:
        pool, _ = read_any(Path(options.pool))
        numbers = [c for c in pool if c in frame and c != loss and pool[c].dtype.kind in "if"]
        shared = ["run_id"] if "run_id" in pool and "run_id" in frame else numbers
        if not shared:
            raise UserError(f"{options.pool} has no column of numbers that {path} has")
        fresh = pool[~pool.set_index(shared).index.isin(frame.set_index(shared).index)]
        frame = pd.concat([frame, fresh.drop(columns=loss, errors="ignore")], ignore_index=True)
    if loss not in frame:
        frame[loss] = np.nan
    status = frame.get("status", pd.Series("completed", frame.index)).fillna("completed")
    lost = (status != "completed").to_numpy()
    frame[loss] = frame[loss].mask(lost)
    with located(path):
        return question_of(frame, frame[loss].isna().to_numpy() & ~lost, options, lambda law: {})


def question_of(
    pool: pd.DataFrame,
    free: Mask,
    options: Options,
    mapping_of: Callable[[FittableLaw], Mapping[str, str]],  # of the study, if it has one
) -> Question:
    """Returns the question of the ``options``; of the pool's runs the ``free`` ones are open."""
    if len(pool) > _MOST:
        raise UserError(f"{len(pool):,} runs are too many to choose among; give at most {_MOST:,}")
    with located("--cost"):
        costs = evaluate(options.cost, pool)
    if not (np.isfinite(costs) & (costs > 0)).all():
        raise UserError(f"the cost of runs, {options.cost!r}, is not above 0 in every row")
    if options.rows:
        free = free & select(columns(pool), options.rows)
    if missing := [name for name in (*options.search, *options.per) if name not in pool]:
        raise UserError(
            f"the runs have no column {missing[0]!r}{nearest(missing[0], map(str, pool))}"
        )
    if options.search:
        pool["L"] = pool[options.mapping.get("L", "L")]
        return Question((), (), pool, costs, free, pool, 0.0, False, options.search, options.per)
    if cost := options.target:
        target = models_of(pool, costs, cost)
    else:
        chosen = select(columns(pool), options.target_rows)
        if not chosen.any():
            raise UserError(f"--target-rows {options.target_rows!r} selects no row")
        target, cost = pool[chosen], float(np.exp(np.log(costs[chosen]).mean()))
    advised = load_advice().candidate_laws if not options.laws or ADVICE.exists() else ()
    usual = {entry.law: entry.mapping for entry in reversed(advised)}
    join_own_laws(refs := options.laws or usual)
    candidates, specs, given = [laws.fittable(ref) for ref in refs], [], options.mapping
    for law in candidates:
        mapping = mapping_of(law) or usual.get(law.id, {})
        known = {name: column for name, column in mapping.items() if column in pool}
        mine = {v.name: given[v.name] for v in (*law.variables, law.response) if v.name in given}
        specs.append(Fit(name="next", law=law.ref, mapping={**known, "L": "L", **mine}))
    return Question(candidates, specs, pool, costs, free, target, cost, bool(options.target))


def budget(question: Question, options: Options) -> float:
    """Returns what all runs may cost, FLOPs."""
    value, is_share = options.budget
    return float(value * question.costs.sum() if is_share else value)


def target_of(options: Options) -> str:
    """Returns what the runs are for, in words."""
    if options.search:
        return ", ".join(options.search) + " per " * bool(options.per) + ", ".join(options.per)
    return f"C={options.target:g}" if options.target else str(options.target_rows)


def why_none(answer: Asked, options: Options) -> str:
    """Returns why no run is trained, or nothing if some are worth it."""
    if answer.known and answer.error <= options.tolerance:
        return "the target is known"
    return "" if answer.chosen else "no run that is left would tell more and is paid for"


def named(question: Question, chosen: Sequence[Chosen]) -> list[tuple[str, Chosen]]:
    """Returns the chosen runs behind what people call them."""
    rows: list[Any] = question.pool.to_dict("records")
    return [(name_of_row(rows[one.run]) or f"row {one.run + 1}", one) for one in chosen]


def reason(one: Chosen) -> str:
    """Returns why a run was chosen."""
    if np.isnan(one.between):  # of a search
        first = "one of the first three of its search"
        return first if np.isnan(one.error) else f"the least loss falls by {100 * one.error:.2g} %"
    why = "laws disagree there" if one.between >= 0.5 else "a law is unsure there"
    return f"{why}; error then {100 * one.error:.2g} %"


def shown(question: Question, answer: Asked, options: Options, state: str = "") -> Answer:
    """Returns the answer as data and text, with the ``state`` of the runs as its last line."""
    what = "expected regret" if question.is_budget else "expected error"
    support = ", ".join(f"{law} {100 * weight:.0f} %" for law, weight in answer.weights.items())
    known = f"{answer.known} of {counted(len(question.pool), 'run')} are known"
    asked = f"{what} at {target_of(options)}: {100 * answer.error:.2g} % of the loss"
    lines = (
        [known, *_least(question)] if question.searched else [f"{known}; laws: {support}", asked]
    )
    lines += [
        *(f"{law} takes no part: {why}" for law, why in answer.refused.items()),
    ]
    if model := _best_model(question, answer) if question.is_budget and answer.known else {}:
        lines.append(f"best model: {', '.join(f'{k} = {v:.4g}' for k, v in model.items())}")
    runs = [] if state.startswith("stopped") else answer.chosen
    own = [*question.searched]
    if each := named(question, runs):
        rows = [
            (name, *question.pool[own].iloc[one.run].tolist(), one.cost, reason(one))
            for name, one in each[:_SHOWN]
        ]
        title = f"{counted(len(each), 'run')}, {sum(one.cost for one in runs):.3g} FLOPs"
        title += f"; the first {_SHOWN} of them (all: --json)" if len(each) > _SHOWN else ""
        lines.append(table_text(("run", *own, "FLOPs", "why"), rows, title))
    entries = [{"name": name, **vars(one), "run": one.run + 1} for name, one in each]
    data = {"known": answer.known, "best": model, "laws": answer.weights, "refused": answer.refused,
            "error": answer.error, "state": state, "runs": entries}  # fmt: skip
    return data, "\n".join([*lines, state] if state else lines)


def _least(question: Question) -> list[str]:
    """Returns the run of least loss in each search that has one, as a table."""
    names = [*question.per, *question.searched, "L"]
    known = question.pool.dropna(subset="L").sort_values([*question.per, "L"], kind="stable")
    best = known.drop_duplicates([*question.per])[names] if question.per else known[names].head(1)
    rows = best.to_numpy(object).tolist()
    return [table_text(names, rows, "least loss of each search")] if rows else []


def _best_model(question: Question, answer: Asked) -> dict[str, float]:
    """Returns what the laws read of the model that is best on average, and its loss."""
    best = int(np.argmin(answer.loss))
    read = {spec.mapping.get(variable.name, variable.name): None
            for law, spec in zip(question.laws, question.specs, strict=True)
            for variable in law.variables}  # fmt: skip
    row = question.target.iloc[best]
    return {name: float(row[name]) for name in read if name in row} | {"L": answer.loss[best]}
