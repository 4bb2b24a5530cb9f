"""``moelaws next``: which runs to train next, and the loop that trains them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from moelaws.cli.answers import JsonCommand, print_answer, table_text
from moelaws.cli.common import BEST, COUNT, WHOLE, Value, between, option, pairs
from moelaws.cli.project import late_project_options, snakemake_call, tier_folder
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError, located
from moelaws.spec.numbers import amount
from moelaws.spec.project import Project, load_study
from moelaws.spec.words import counted

if TYPE_CHECKING:
    import pandas as pd

    from moelaws.analysis.choice.ask import Answer, Question
    from moelaws.analysis.choice.choose import Chosen
    from moelaws.grids.rounds import Rounds
    from moelaws.laws.base import FittableLaw, Mask
    from moelaws.spec.study import Study

_BUDGET = Value("FLOPS|PERCENT", lambda text: (amount(text), text.strip().endswith("%")),
                lambda pair: 0 < pair[0] < 1e100 and not (pair[1] and pair[0] > 1),
                "no budget, such as 1e19, or 10% of the cost of all runs")  # fmt: skip
_MOST = 10_000  # runs of a pool: some seconds
_SHOWN = 12  # runs that are printed
_CALLS = 4  # of Snakemake for one round: two for runs that fail, one without them, one for a kill


@click.command(name="next", cls=JsonCommand)
@click.argument("source", metavar="STUDY|TABLE")
@late_project_options
@option("--target", "The budget whose best model is asked for.", BEST)
@option("--target-rows", "Rows of the pool whose loss is asked for.", metavar="EXPR")
@option("--budget", "What all chosen runs may cost.", _BUDGET, required=True)
@option("--law laws", "A candidate law, or several; by default config/advice.yaml's.",
        multiple=True)  # fmt: skip
@option("--map mapping", "Column of a variable, for all laws.", multiple=True, metavar="VAR=COLUMN")
@option("--pool", "Runs to choose among: a table beside TABLE, else its own rows without a loss; "
        "or beside STUDY's grid another study's, or its own at another tier.",
        metavar="TABLE|STUDY|TIER")  # fmt: skip
@option("--cost", "FLOPs of a run: SQL over the pool's columns.", default="C", metavar="EXPR")
@option("--rows", "Runs of the pool that may be chosen.", default="", metavar="EXPR")
@option("--noise", "Standard deviation of ln L between seeds.", between(1e-6, 1), 0.003)
@option("--tolerance", "Error at the target that is small enough.", between(0, 1), 0.001)
@option("--rounds", "Choose in so many rounds, each after the last one's losses.", COUNT, 1)
@option("--workers", "Runs that a round has at least.", COUNT, 1)
@option("--cores", "Call Snakemake on so many cores, round after round.", metavar="N|all")
@option("--seed", "Seed of the draws.", WHOLE, 0)
def command(source: str, project: Callable[[], Project], as_json: bool, **options: Any) -> None:
    """Choose the runs that tell most of a target for what they cost.

    The runs are those of STUDY's grid, or of any TABLE. The draws of all candidate laws say how far
    each run's loss goes together with the target, so that a run counts on which laws disagree.

    With --rounds, STUDY's next round is written to STUDY.rounds.yaml beside its file, which
    `snakemake --config runs=rounds` trains. With --cores, Snakemake is called, and the next
    round follows until the target's error is within --tolerance or the budget is spent. A second
    call goes on.
    """
    if (options["target"] is None) == (options["target_rows"] is None):
        raise UserError("say what the runs are for: --target C=1e21 or --target-rows EXPR")
    if _is_study(source):
        if not _is_study(options["pool"] or ""):
            raise UserError(
                f"--pool {options['pool']}: a study trains runs of grids, which a table does not "
                "give; name another tier of the study, or a study that has these runs"
            )
        _of_rounds(load_study(source), project(), as_json, options)
        return
    if options["rounds"] > 1 or options["cores"]:
        raise UserError(f"{source} is a table; --rounds and --cores go with a study")
    question = _of_table(Path(source), options)
    answer = answer_to(question, options, _budget(options, question))
    stop = _stop(answer, options)
    _show(question, answer, options, as_json, f"stopped: {stop}" if stop else "")


def _is_study(name: str) -> bool:
    return Path(name).suffix in ("", ".yaml", ".yml")


def _of_rounds(study: Study, project: Project, as_json: bool, options: dict[str, Any]) -> None:
    """Chooses the next round, or with cores trains and chooses until there is nothing to choose."""
    from moelaws.grids.rounds import ChosenRun, Round, path_of, read_rounds, write_rounds

    path, rounds, cores = path_of(study), options["rounds"], options["cores"]
    of_rounds = project.model_copy(update={"runs": "rounds", "studies": (study.reference,)})
    call = snakemake_call(of_rounds).replace("--cores all", f"--cores {cores or 'all'}")
    is_written = rounds > 1 or cores is not None
    while True:
        known = read_rounds(path)
        here = known.of(project) if is_written else []
        done = [own for own in here if own.target == _target(options)]
        if done and cores:
            known = _train(call, known, project, path)
        losses = _losses(study, project)
        question = _of_study(study, project, known, losses, options)
        trained = [one for own in done for one in own.runs if one.run not in known.failed]
        spent = sum(one.cost for one in trained)
        left = _budget(options, question) - spent
        answer = answer_to(question, options, left, len(done))
        if {one.run for one in trained} - losses.keys():
            waiting = f"round {len(done)} is not trained: {call} -- tables"
            _show(question, replace(answer, chosen=[]), options, as_json, waiting)
            return
        stop = _stop(answer, options)
        if is_written and len(done) >= rounds:
            stop = stop or f"{counted(rounds, 'round')} of {rounds} are done"
        if stop or not is_written:
            words = f"stopped: {stop}; {spent:.3g} FLOPs were spent" if stop else ""
            _show(question, answer, options, as_json, words)
            return
        allowance, chosen = left / (rounds - len(done)), list[ChosenRun]()
        names = _names(question, answer.chosen)
        for one, name in zip(answer.chosen, names, strict=True):
            if len(chosen) < options["workers"] or allowance > 0:
                run = question.pool["run_id"].iloc[one.run]
                chosen.append(ChosenRun(run=run, name=name, cost=one.cost, reason=_reason(one)))
                allowance -= one.cost
        about = {"round": len(done) + 1, "tier": project.tier, "source": project.source,
                 "target": _target(options)}  # fmt: skip
        more = parse(Round, {**about, "pool": options["pool"] or "", "runs": chosen}, path)
        write_rounds(path, known.model_copy(update={"rounds": (*known.rounds, more)}))
        said = f"{counted(len(chosen), 'run')}, {sum(one.cost for one in chosen):.3g} FLOPs"
        click.echo(f"round {more.round}: {said}, in {path}", err=as_json)
        if not cores:
            _show(question, answer, options, as_json, f"train round {more.round}: {call} -- tables")
            return


def _train(call: str, rounds: Rounds, project: Project, path: Path) -> Rounds:
    """Calls Snakemake for the rounds' table, and again where runs were lost; returns the rounds.

    Runs that failed by themselves more than once are marked, and it goes on without them. What
    stops it otherwise, such as a signal, ends this command with the same exit code.
    """
    from moelaws.files.layout import Results
    from moelaws.grids.rounds import write_rounds
    from moelaws.records.batches import failures

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
            shown = ", ".join(sorted(failed))
            click.echo(f"not asked for again, for they failed twice: {shown}", err=True)
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
    from moelaws.tables.foreign import read_any

    if not (table := tier_folder(project).table(study.study)).exists():
        return {}
    frame, _ = read_any(table)
    losses = frame["L"].where(frame["status"] == "completed")
    return dict(zip(frame["run_id"], losses, strict=True))


def _of_study(
    study: Study,
    project: Project,
    rounds: Rounds,
    losses: Mapping[str, float],
    options: dict[str, Any],
) -> Question:
    """Returns the question on the grid's runs, some of which have ``losses``."""
    from moelaws.grids.sweep import expand_study
    from moelaws.tables.simulate import design, studys_mapping

    pools = rounds.pools(project) | {options["pool"] or ""} - {""}
    pool = design(expand_study(study, project.model_copy(update={"runs": "all"}), pools=pools))
    pool["L"] = pool["run_id"].map(losses).astype(float)
    tried = {*rounds.run_ids(project), *rounds.failed, *losses}
    free = ~pool["run_id"].isin(tried).to_numpy()
    return question_of(pool, free, options, lambda law: studys_mapping(study, law))


def _of_table(path: Path, options: dict[str, Any]) -> Question:
    """Returns the question on a table's rows, and on those of the pool that it does not have."""
    import pandas as pd

    from moelaws.tables.foreign import read_any

    frame, _ = read_any(path)
    loss = pairs("--map", options["mapping"], "VAR=COLUMN").get("L", "L")
    if options["pool"]:
        pool, _ = read_any(Path(options["pool"]))
        numbers = [c for c in pool if c in frame and c != loss and pool[c].dtype.kind in "if"]
        shared = ["run_id"] if "run_id" in pool and "run_id" in frame else numbers
        if not shared:
            raise UserError(f"{options['pool']} has no column of numbers that {path} has")
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
    options: dict[str, Any],
    mapping_of: Callable[[FittableLaw], Mapping[str, str]],  # of the study, if it has one
) -> Question:
    """Returns the question of the ``options``; of the pool's runs the ``free`` ones are open."""
    from moelaws import laws
    from moelaws.analysis.choice.ask import Question, models_of
    from moelaws.cli.laws import join_own_laws
    from moelaws.spec.advice import ADVICE, load_advice
    from moelaws.spec.fit import Fit
    from moelaws.spec.rows import select
    from moelaws.tables.foreign import columns
    from moelaws.tables.selected import evaluate

    if len(pool) > _MOST:
        raise UserError(f"{len(pool):,} runs are too many to choose among; give at most {_MOST:,}")
    with located("--cost"):
        costs = evaluate(options["cost"], pool)
    if not (np.isfinite(costs) & (costs > 0)).all():
        raise UserError(f"the cost of runs, {options['cost']!r}, is not above 0 in every row")
    if options["rows"]:
        free = free & select(columns(pool), options["rows"])
    if cost := options["target"]:
        target = models_of(pool, costs, cost)
    else:
        chosen = select(columns(pool), options["target_rows"])
        if not chosen.any():
            raise UserError(f"--target-rows {options['target_rows']!r} selects no row")
        target, cost = pool[chosen], float(np.exp(np.log(costs[chosen]).mean()))
    advised = load_advice().candidate_laws if not options["laws"] or ADVICE.exists() else ()
    entries = {entry.law: entry for entry in reversed(advised)}
    refs = options["laws"] or tuple(entries)
    join_own_laws(refs)
    given = pairs("--map", options["mapping"], "VAR=COLUMN, such as N=N_active")
    candidates, specs = [laws.fittable(ref) for ref in refs], []
    for law in candidates:
        usual = mapping_of(law) or (entries[law.id].mapping if law.id in entries else {})
        known = {name: column for name, column in usual.items() if column in pool}
        mine = {v.name: given[v.name] for v in (*law.variables, law.response) if v.name in given}
        specs.append(Fit(name="next", law=law.ref, mapping={**known, "L": "L", **mine}))
    return Question(candidates, specs, pool, costs, free, target, cost, bool(options["target"]))


def answer_to(question: Question, options: dict[str, Any], budget: float, turn: int = 0) -> Answer:
    """Returns what to train for ``budget`` FLOPs; the ``turn`` of a loop moves the seed."""
    from threadpoolctl import threadpool_limits

    from moelaws.analysis.choice.ask import ask

    with threadpool_limits(1):  # whose number would change last digits, and a choice between equals
        return ask(question, options["noise"], budget, options["seed"] + turn)


def _stop(answer: Answer, options: dict[str, Any]) -> str:
    """Returns why no run is trained, or nothing if some are worth it."""
    if answer.known and answer.error <= options["tolerance"]:
        return "the target is known"
    return "" if answer.chosen else "no run that is left would tell more and is paid for"


def _budget(options: dict[str, Any], question: Question) -> float:
    value, is_share = options["budget"]
    return float(value * question.costs.sum() if is_share else value)


def _target(options: dict[str, Any]) -> str:
    return f"C={options['target']:g}" if options["target"] else str(options["target_rows"])


def _names(question: Question, chosen: Sequence[Chosen]) -> list[str]:
    from moelaws.records.names import name_of_row

    rows: list[Any] = question.pool.to_dict("records") if chosen else []
    return [name_of_row(rows[one.run]) or f"row {one.run + 1}" for one in chosen]


def _reason(one: Chosen) -> str:
    why = "laws disagree there" if one.between >= 0.5 else "a law is unsure there"
    return f"{why}; error then {100 * one.error:.2g} %"


def _best_model(question: Question, answer: Answer) -> dict[str, float]:
    """Returns what the laws read of the model that is best on average, and its loss."""
    best = int(np.argmin(answer.loss))
    read = {spec.mapping.get(variable.name, variable.name): None
            for law, spec in zip(question.laws, question.specs, strict=True)
            for variable in law.variables}  # fmt: skip
    row = question.target.iloc[best]
    return {name: float(row[name]) for name in read if name in row} | {"L": answer.loss[best]}


def _show(
    question: Question, answer: Answer, options: dict[str, Any], as_json: bool, last: str = ""
) -> None:
    what = "expected regret" if question.is_budget else "expected error"
    support = ", ".join(f"{law} {100 * weight:.0f} %" for law, weight in answer.weights.items())
    lines = [
        f"{answer.known} of {counted(len(question.pool), 'run')} are known; laws: {support}",
        f"{what} at {_target(options)}: {100 * answer.error:.2g} % of the loss",
        *(f"{law} takes no part: {why}" for law, why in answer.refused.items()),
    ]
    model = _best_model(question, answer) if question.is_budget and answer.known else {}
    if model:
        lines.append(f"best model: {', '.join(f'{k} = {v:.4g}' for k, v in model.items())}")
    runs = [] if last.startswith("stopped") else answer.chosen
    each = list(zip(_names(question, runs), runs, strict=True))
    if each:
        rows = [(name, one.cost, _reason(one)) for name, one in each[:_SHOWN]]
        title = f"{counted(len(each), 'run')}, {sum(one.cost for _, one in each):.3g} FLOPs"
        more = f"; the first {_SHOWN} of them (all: --json)" if len(each) > _SHOWN else ""
        lines.append(table_text(("run", "FLOPs", "why"), rows, title + more))
    entries = [{"name": name, **vars(one), "run": one.run + 1} for name, one in each]
    data = {"known": answer.known, "best": model, "laws": answer.weights, "refused": answer.refused,
            "error": answer.error, "state": last, "runs": entries}  # fmt: skip
    print_answer(as_json, data, "\n".join([*lines, last] if last else lines))
