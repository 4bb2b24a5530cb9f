"""Expands a grid to runs: the sweep that Snakemake, the command line and the tables agree on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from moelaws.grids.derive import derive_architecture, derive_hyperparameters, planned_steps
from moelaws.grids.hyperparameters import transferred
from moelaws.grids.model import model_data, with_hidden_width
from moelaws.grids.text import CorpusChoice, corpus_of, with_vocabulary
from moelaws.spec.base import parse
from moelaws.spec.corpus import Corpus
from moelaws.spec.errors import UserError, located
from moelaws.spec.grid import Derivations, Grid, Settings, data_of
from moelaws.spec.hyperparameters import Choice
from moelaws.spec.model import Model
from moelaws.spec.run import OPTIMIZERS, Evaluation, RunConfig, Schedule


@dataclass(frozen=True)
class Run:
    run_id: str
    config: RunConfig
    C: float | None  # the budget that its grid point named; None where steps are set
    sweeps: tuple[str, ...] = ()  # the named sweeps that ask for it
    corpus: str = ""  # the name of its text


AUTO = Choice()  # as a project without pinned laws


def expand(
    grid: Grid, corpus: CorpusChoice, where: str, seed: int = 0, choice: Choice = AUTO
) -> list[Run]:
    """Returns the runs of ``grid``, each once, in the grid's order.

    ``seed`` is added to each run's seed; ``where`` names file and tier in messages. Learning rates
    and batches whose rule is ``chosen`` follow ``choice``. An impossible point raises a UserError
    that names it.
    """
    settings = grid.settings.model_dump(exclude_none=True)
    runs: dict[str, Run] = {}
    for number, sweep in enumerate(grid.sweeps):
        for axes in sweep.points():
            shown = ", ".join(f"{name}: {value}" for name, value in axes.items())
            label = f"{where}, sweep {number + 1}, point {{{shown}}}"
            checked = parse(Settings, axes, label)
            point = settings | {name: getattr(checked, name) for name in axes}
            point["seed"] = point.get("seed", 0) + seed
            run = _run(point, grid.derive, corpus, choice, label)
            known = runs.setdefault(run.run_id, run)
            if sweep.name and sweep.name not in known.sweeps:
                runs[run.run_id] = replace(known, sweeps=(*known.sweeps, sweep.name))
    return list(runs.values())


def _run(
    point: dict[str, Any], rules: Derivations, corpus: CorpusChoice, choice: Choice, label: str
) -> Run:
    rule = rules.batch
    batch_from = "set" if "batch" in point or rule is None else f"by the rule {rule.rule}"
    with located(label):  # not around ``parse``, which names the place itself
        point = derive_architecture(with_vocabulary(point, corpus), rules)
        if rules.hidden_width:
            point = with_hidden_width(point, rules.hidden_width, label)
        point, rules = transferred(point, rules, choice)
    model = parse(Model, model_data(point), label)
    with located(label):
        text = corpus_of(corpus, model.vocab_size)
        point = derive_hyperparameters(point, model, rules, choice)
    parsed = parse(RunConfig, _config(point, model, text), label)
    with located(label):
        steps = planned_steps(point, model, rules, batch_from)
        if (warmup := parsed.schedule.warmup_steps or 0) >= steps:
            raise UserError(f"warmup_steps is {warmup}; it must be below the {steps} steps")
    parsed = parsed.of_length(steps)
    return Run(parsed.run_id, parsed, point.get("C"), corpus=corpus.name)


def _config(point: Mapping[str, Any], model: Model, text: Corpus) -> dict[str, Any]:
    """Returns the data of a RunConfig with one step: steps are planned when its batch is valid."""
    whole = {"balance_group": point["batch"]} if "batch" in point else {}
    kind = {"kind": point["optimizer"]} if "optimizer" in point else {}
    return {
        **whole,
        **data_of(point, RunConfig),
        "model": model,
        "corpus": text,
        "optimizer": data_of(point, *OPTIMIZERS) | kind,
        "schedule": data_of(point, Schedule),
        "evaluation": data_of(point, Evaluation),
        "steps": 1,
    }


def architectures(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Returns the first of the ``runs`` of each architecture, in their order.

    Runs that differ only in seed, learning rate and number of steps have one architecture: their
    steps take the same time and memory.
    """
    first: dict[str, Run] = {}
    for run in runs:
        optimizer = run.config.optimizer.model_copy(update={"lr": 1.0})
        common = {"seed": 0, "steps": 1, "optimizer": optimizer}
        first.setdefault(run.config.model_copy(update=common).canonical_json(), run)
    return tuple(first.values())
