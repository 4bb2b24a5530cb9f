"""Expands a study's grid at the project's tier, on its own texts or the project's."""

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from moelaws.accounting.cost import device_of, placed, spent
from moelaws.accounting.parameters import count_parameters
from moelaws.corpus.sources import DatasetSource, Sources, resolve
from moelaws.files.atomic import read_json
from moelaws.files.layout import Results
from moelaws.grids.expand import Run, expand
from moelaws.grids.rounds import path_of, read_rounds
from moelaws.grids.text import choose_corpus
from moelaws.laws.step_law import BEYOND, is_searched
from moelaws.spec.corpus import Corpus
from moelaws.spec.errors import UserError, located
from moelaws.spec.grid import Grid, Stages
from moelaws.spec.hyperparameters import choice_of
from moelaws.spec.project import Project, load_study
from moelaws.spec.study import Study
from moelaws.spec.tier import TIERS

if TYPE_CHECKING:
    from moelaws.records.watching import Planned


@dataclass(frozen=True)
class Sweep:
    """The runs that a study asks for at a tier."""

    study: Study
    tier: str
    runs: tuple[Run, ...]
    texts: Mapping[str, Sources | DatasetSource] = field(default_factory=dict)  # by name

    @property
    def corpora(self) -> dict[str, Corpus]:
        """Returns the corpora of the runs, by identity."""
        return {run.config.corpus.corpus_id: run.config.corpus for run in self.runs}


def expand_study(
    study: Study, project: Project, root: Path = Path(), pools: Iterable[str] = ()
) -> Sweep:
    """Returns the sweep of ``study``, empty without grids; else one of them must be the tier's.

    ``pools`` are wider grids whose runs join, on the study's texts: another tier of the study, or
    another study at the project's tier. Where the project asks for rounds, the sweep has the runs
    of these alone, with the pools that they were chosen from.
    """
    if not study.grids:
        return Sweep(study, project.tier, ())
    rounds = read_rounds(path_of(study, root)) if project.runs == "rounds" else None
    grids, choice = _grid(study, project.tier, project.stages), choice_of(project, root)
    for pool in sorted(rounds.pools(project) if rounds else pools):
        is_tier = pool in {*TIERS, *study.grids}
        other, tier = (study, pool) if is_tier else (load_study(pool, root), project.tier)
        grids |= _grid(other, tier)
    texts: dict[str, Sources | DatasetSource] = {}
    runs: dict[str, Run] = {}
    for name, setting in (study.corpora or {"": project.corpus}).items():
        with located(*((study.file, "corpora", name) if name else ("",))):
            sources = resolve(setting, root)
            corpus = choose_corpus(project, sources, root, name)
        for where, grid in grids.items():
            for run in expand(grid, corpus, where, project.seed, choice):
                if (known := runs.setdefault(run.run_id, run).corpus) != corpus.name:
                    raise UserError(f"{study.file}: corpora: {name}: it has the text of {known}")
            grids[where] = grid.on_each_corpus
        texts[corpus.name] = sources
    if rounds:
        chosen = rounds.run_ids(project)
        runs = {run_id: run for run_id, run in runs.items() if run_id in chosen}
        if not runs:
            none = f"{path_of(study, root)} has none of {' and '.join(grids)}"
            raise UserError(f"runs = rounds, but {none}; see `moelaws next`")
    return Sweep(study, project.tier, tuple(runs.values()), texts)


def _grid(study: Study, tier: str, stages: Stages = "all") -> dict[str, Grid]:
    """Returns the study's grid at ``tier``, by its place in messages."""
    where = study.place(tier)
    if (grid := study.grid_of(tier, stages)) is None:
        raise UserError(f"{where} is missing; there are: {', '.join(study.grids) or 'none'}")
    return {where: grid}


def too_long_for(sweep: Sweep) -> str:
    """Returns what is wrong if a run needs more text than there is; empty if none does.

    Before the text is tokenised, this finds runs that are certainly impossible.
    """
    larger = "set corpus in config/config.yaml to a larger text"
    size_of = cache(_size)
    for run in sweep.runs:
        config, corpus = run.config, run.config.corpus
        train, held_out, unit = size_of(corpus, sweep.texts[run.corpus].bytes)
        if config.tokens > train * config.max_epochs:
            return (
                f"run {run.run_id} trains on D = {config.tokens:.4g} tokens, more than {train:.4g} "
                f"{unit} of training text can give with max_epochs = {config.max_epochs:g} (corpus "
                f"{run.corpus}); {larger}, or choose a smaller C or tier"
            )
        if config.held_out_tokens > held_out:
            return (
                f"evaluation_sequences = {config.evaluation.sequences} are "
                f"{config.held_out_tokens:.4g} tokens, more than {held_out:.4g} {unit} of held-out "
                f"text can give (corpus {run.corpus}); {larger}, or raise validation, or lower "
                "evaluation_sequences"
            )
    return ""


def beyond_step_law(sweeps: Iterable[Sweep], project: Project) -> str:
    """Returns a warning if Step Law sets rates or batches beyond its searches; empty if not."""
    following = {"step_law", "chosen" if project.hyperparameters == "step_law" else ""}
    for sweep in sweeps:
        for config in (run.config for run in sweep.runs):
            rules = sweep.study.grids[project.tier].derive
            named = {getattr(rule, "rule", "-") for rule in (rules.lr, rules.batch)}
            count = count_parameters(config.model)
            N = count.total - count.embeddings
            if following & named and not is_searched(N, config.tokens):
                return BEYOND
    return ""


def _size(corpus: Corpus, text_bytes: float | None) -> tuple[float, float, str]:
    """Returns the sizes of the training and held-out text, in tokens if it is prepared."""
    with suppress(UserError, KeyError, TypeError):  # it is not prepared yet, or damaged
        meta = read_json(Results().corpus(corpus.corpus_id) / "meta.json")
        return meta["train"]["tokens"], meta["validation"]["tokens"] - 1, "tokens"
    # A token has at least one byte. Those of some data sets are unknown before they are read.
    size = math.inf if text_bytes is None else text_bytes
    return size * (1 - corpus.validation), size * corpus.validation, "bytes"


def sweep_of(name: str, project: Project) -> Sweep:
    """Returns the sweep of the study ``name``, which must have runs of its own."""
    sweep = expand_study(load_study(name), project)
    if not sweep.runs:
        kind = "imports its runs" if sweep.study.imported else "has no runs"
        raise UserError(f"{sweep.study.file} has no grids: the study {kind}")
    return sweep


def planned(sweeps: Iterable[Sweep], project: Project) -> dict[str, "Planned"]:
    """Returns the runs of ``sweeps`` by id, as ``records.watching`` takes them."""
    from moelaws.records.names import sizes_of
    from moelaws.records.watching import Planned  # loads pyarrow

    device = device_of(project.device, project)
    runs: dict[str, Planned] = {}
    for sweep in sweeps:
        own = spent([run.config for run in sweep.runs])
        for run, config in zip(sweep.runs, own, strict=True):
            before = runs[run.run_id].studies if run.run_id in runs else ()
            studies, size = (*before, sweep.study.study), sizes_of(run.config)
            seconds = placed(config, device, project.devices_per_run).seconds
            plan = size["C"], run.config.steps, size["N"], size["N_active"], seconds
            runs[run.run_id] = Planned(size["name"], studies, *plan)
    return runs
