"""The question of ``moelaws next`` as its options put it, and the answer as text and data."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.choice.ask import Answer as Asked
from moelaws.analysis.choice.ask import Question, models_of
from moelaws.analysis.choice.choose import Chosen
from moelaws.cli.answers import Answer, table_text
from moelaws.cli.laws import join_own_laws
from moelaws.laws.base import FittableLaw, Mask
from moelaws.records.names import name_of_row
from moelaws.spec.advice import ADVICE, load_advice
from moelaws.spec.errors import UserError, located
from moelaws.spec.fit import Fit
from moelaws.spec.rows import select
from moelaws.spec.words import counted
from moelaws.tables.foreign import columns, read_any
from moelaws.tables.selected import evaluate

_MOST = 10_000  # runs of a pool: some seconds
_SHOWN = 12  # runs that are printed


def question_of_table(path: Path, options: dict[str, Any]) -> Question:
    """Returns the question on a table's rows, and on those of the pool that it does not have."""
    frame, _ = read_any(path)
    loss = options["mapping"].get("L", "L")
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
    usual = {entry.law: entry.mapping for entry in reversed(advised)}
    join_own_laws(refs := options["laws"] or usual)
    candidates, specs, given = [laws.fittable(ref) for ref in refs], [], options["mapping"]
    for law in candidates:
        mapping = mapping_of(law) or usual.get(law.id, {})
        known = {name: column for name, column in mapping.items() if column in pool}
        mine = {v.name: given[v.name] for v in (*law.variables, law.response) if v.name in given}
        specs.append(Fit(name="next", law=law.ref, mapping={**known, "L": "L", **mine}))
    return Question(candidates, specs, pool, costs, free, target, cost, bool(options["target"]))


def budget(question: Question, options: dict[str, Any]) -> float:
    """Returns what all runs may cost, FLOPs."""
    value, is_share = options["budget"]
    return float(value * question.costs.sum() if is_share else value)


def target_of(options: dict[str, Any]) -> str:
    """Returns what the runs are for, in words."""
    return f"C={options['target']:g}" if options["target"] else str(options["target_rows"])


def why_none(answer: Asked, options: dict[str, Any]) -> str:
    """Returns why no run is trained, or nothing if some are worth it."""
    if answer.known and answer.error <= options["tolerance"]:
        return "the target is known"
    return "" if answer.chosen else "no run that is left would tell more and is paid for"


def named(question: Question, chosen: Sequence[Chosen]) -> list[tuple[str, Chosen]]:
    """Returns the chosen runs behind what people call them."""
    rows: list[Any] = question.pool.to_dict("records")
    return [(name_of_row(rows[one.run]) or f"row {one.run + 1}", one) for one in chosen]


def reason(one: Chosen) -> str:
    """Returns why a run was chosen."""
    why = "laws disagree there" if one.between >= 0.5 else "a law is unsure there"
    return f"{why}; error then {100 * one.error:.2g} %"


def shown(question: Question, answer: Asked, options: dict[str, Any], state: str = "") -> Answer:
    """Returns the answer as data and text, with the ``state`` of the runs as its last line."""
    what = "expected regret" if question.is_budget else "expected error"
    support = ", ".join(f"{law} {100 * weight:.0f} %" for law, weight in answer.weights.items())
    lines = [
        f"{answer.known} of {counted(len(question.pool), 'run')} are known; laws: {support}",
        f"{what} at {target_of(options)}: {100 * answer.error:.2g} % of the loss",
        *(f"{law} takes no part: {why}" for law, why in answer.refused.items()),
    ]
    if model := _best_model(question, answer) if question.is_budget and answer.known else {}:
        lines.append(f"best model: {', '.join(f'{k} = {v:.4g}' for k, v in model.items())}")
    runs = [] if state.startswith("stopped") else answer.chosen
    if each := named(question, runs):
        rows = [(name, one.cost, reason(one)) for name, one in each[:_SHOWN]]
        title = f"{counted(len(each), 'run')}, {sum(one.cost for one in runs):.3g} FLOPs"
        title += f"; the first {_SHOWN} of them (all: --json)" if len(each) > _SHOWN else ""
        lines.append(table_text(("run", "FLOPs", "why"), rows, title))
    entries = [{"name": name, **vars(one), "run": one.run + 1} for name, one in each]
    data = {"known": answer.known, "best": model, "laws": answer.weights, "refused": answer.refused,
            "error": answer.error, "state": state, "runs": entries}  # fmt: skip
    return data, "\n".join([*lines, state] if state else lines)


def _best_model(question: Question, answer: Asked) -> dict[str, float]:
    """Returns what the laws read of the model that is best on average, and its loss."""
    best = int(np.argmin(answer.loss))
    read = {spec.mapping.get(variable.name, variable.name): None
            for law, spec in zip(question.laws, question.specs, strict=True)
            for variable in law.variables}  # fmt: skip
    row = question.target.iloc[best]
    return {name: float(row[name]) for name in read if name in row} | {"L": answer.loss[best]}
