"""config/config.yaml, which a user edits first, and the studies beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from moelaws.spec.base import (
    Count,
    Filled,
    Fraction,
    Frozen,
    Inside,
    Positive,
    Whole,
    parse,
    text_like,
)
from moelaws.spec.corpus import CorpusSetting
from moelaws.spec.errors import UserError, located, or_nearest
from moelaws.spec.fit import Name
from moelaws.spec.from_yaml import read_yaml
from moelaws.spec.grid import Grid
from moelaws.spec.references import join
from moelaws.spec.study import Study
from moelaws.spec.tier import Tier, own_tiers

CONFIG = Path("config/config.yaml")
COMMAND_LINE = "command line"  # what messages call --config, --set and --tier
StudyFile = Annotated[str, text_like(r"(?s:.*)\.ya?ml", "the path of a study's YAML file")]
Hyperparameters = Literal["auto", "pinned", "published", "step_law", "tables", "transfer"]

# Longer batches leave cores idle at the end of a sweep, on average for half a batch. Shorter ones
# start more often: torch takes seconds to start, and a cluster's job a minute.
BATCH_MINUTES = {"demo": 2, "workstation": 5, "gpu": 5, "node": 15, "paper": 30}


def _list(value: object) -> object:
    # `--config` gives a bare value, as a user would type it: studies=sparsity, gpus=0,2 or gpus=2.
    if isinstance(value, str) and value != "all":
        return tuple(value.split(","))
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else value


class Limits(Frozen):
    """The estimated cost that a sweep may have; a costlier one is refused before it starts."""

    gpu_hours: Positive = 500.0  # if device is cuda
    cpu_hours: Positive = 24.0  # of one core, if device is cpu
    disk_gb: Positive = 500.0


class Project(Frozen):
    """Which tier of which studies, on which text and device."""

    tier: Tier = "demo"
    source: Literal["trained", "simulated"] = "trained"  # of the losses
    # Names of config/studies/, and YAML files of a user's own studies.
    studies: Annotated[
        Literal["all"] | Filled[Name | StudyFile],
        BeforeValidator(_list),
    ] = "all"
    runs: Literal["all", "rounds"] = "all"  # of a grid, or those that `moelaws next` chose
    # Named parts of the grids, trained without the others
    stages: Annotated[
        Literal["all"] | Annotated[tuple[Name, ...], Field(min_length=1)],
        BeforeValidator(_list),
    ] = "all"
    corpus: CorpusSetting = "stdlib"
    tokenizer: str | None = None  # a pretrained tokenizer's JSON file; None trains one on the text
    # The fraction of the text that is held out, in whole documents
    validation: Inside = 0.05
    device: Literal["cpu", "cuda"] = "cpu"
    # Which GPUs of this machine train if device is cuda, by nvidia-smi's numbers.
    gpus: Annotated[
        Literal["all"] | Filled[Whole],
        BeforeValidator(_list),
    ] = "all"
    # Whether training computes the same bits again on CUDA, too, and more slowly
    deterministic: bool = False
    # The share of a GPU's peak that estimates assume for large products; docs/speed.md has measured
    mfu: Annotated[Fraction, Field(gt=0)] = 0.35
    # How many runs train on one GPU at a time; auto: as many as its memory holds by estimate
    runs_per_gpu: Count | Literal["auto"] = 1
    # How many devices train one run together; auto: the fewest whose memory holds it by estimate
    devices_per_run: Count | Literal["auto"] = "auto"
    # GB of each GPU, for a cluster and for estimates; the GPUs of this machine report their own
    gpu_memory: Positive = 80.0
    # How many GPUs a node of the cluster has; a run that takes more spans several nodes
    gpus_per_node: Count = 8
    # How many GPUs a job on a cluster has, each for other runs; and their kind, as Slurm calls it
    gpus_per_job: Count = 1
    gpu_model: str | None = None
    # The most that a job on a cluster asks for, retries included, if less than its partition has;
    # memory in GB on each node. profiles/slurm/site.yaml may have them, too.
    max_minutes: Count | None = None
    max_memory: Positive | None = None
    # The most estimated minutes of runs in one job; 0: a job for each run; auto: by the tier
    batch_minutes: Annotated[float, Field(ge=0)] | Literal["auto"] = "auto"
    seed: Whole = 0  # added to the seed of every run
    # What grids with the rule `chosen` follow; auto: pinned, else their table, else published
    hyperparameters: Hyperparameters = "auto"
    # Whether runs train that no registration has which a commit has (moelaws preregister)
    preregistered: Literal["any", "required"] = "any"
    # The tasks that kept weights are scored on (moelaws bench): held-out, olmo:NAME, or task files
    tasks: Annotated[tuple[str, ...], BeforeValidator(_list)] = ("held-out",)
    # Which contests between laws are judged; auto: all but at the demo, which has short forms
    contests: Literal["auto", "all"] = "auto"
    # On how many simulated tables, with and without their effects, the rules of claims are tried;
    # auto: 10, and at the demo none, whose shipped counts are printed
    power: Whole | Literal["auto"] = "auto"
    limits: Limits = Limits()

    @property
    def short_contests(self) -> bool:
        return self.contests == "auto" and self.tier == "demo"

    @property
    def trials(self) -> int:
        """Returns on how many simulated tables rules are tried."""
        return (0 if self.tier == "demo" else 10) if self.power == "auto" else self.power

    @property
    def batch_seconds(self) -> float:
        """Returns the most estimated seconds of a batch, summed over the GPUs of its job.

        They follow from the configuration alone, so that batches are the same on every machine.
        """
        auto = self.batch_minutes == "auto"
        minutes = BATCH_MINUTES.get(self.tier, 15) if auto else float(self.batch_minutes)
        return 60.0 * minutes * (self.gpus_per_job if self.device == "cuda" else 1)


def load_project(
    root: Path = Path(), overrides: Mapping[str, Any] | None = None, path: Path = CONFIG
) -> Project:
    """Returns the project's configuration, with ``overrides`` of its keys."""
    own = read_yaml(root / path)
    data = {**own, **(overrides or {})}
    if all(isinstance(x, Mapping) for x in (own.get("limits"), data.get("limits"))):
        data["limits"] = {**own["limits"], **data["limits"]}  # one limit leaves the others
    if data.get("source") == "simulated" and "tier" not in (overrides or {}):
        data["tier"] = "paper"  # nothing is trained, so the papers' own grids cost nothing
    if overrides:
        parse(Project, dict(overrides), COMMAND_LINE)  # first, so the file is not blamed for these
    return parse(Project, data, path)


def study_names(root: Path = Path()) -> tuple[str, ...]:
    """Returns the studies that have a file in config/studies/."""
    files = (root / "config/studies").glob("*.yaml")
    return tuple(sorted(path.stem for path in files if "." not in path.stem))  # no A.rounds.yaml


def chosen_studies(project: Project, root: Path = Path()) -> tuple[Study, ...]:
    """Returns the studies that the project asks for.

    Where losses are simulated, it leaves out the studies that have runs but no law to simulate, and
    the entries that need more than simulated losses.
    """
    every = project.studies == "all"
    names = study_names(root) if every else project.studies
    with located("studies"):
        for name in names:
            study_path(name, root)  # so that messages place an unknown name in the project
    studies = tuple(load_study(name, root) for name in names)
    for study in studies:
        if len(same := [other.file for other in studies if other.study == study.study]) > 1:
            raise UserError(
                f"{CONFIG}: studies: {' and '.join(map(str, same))} both have the key "
                f"{study.study!r}; name each once, and give your own study a key of its own"
            )
    studies = tuple(study for study in studies if not (every and study.by_name))
    if project.source == "trained":
        return studies
    possible = tuple(s.of_simulated() for s in studies if s.simulation or not s.has_runs)
    if not possible:
        raise UserError(
            f"source is simulated, but no law of {', '.join(names)} is to be simulated: "
            "a study names it under simulation"
        )
    return possible


def load_study(name: str, root: Path = Path()) -> Study:
    """Returns the study ``name`` of config/studies/, or a user's own study from the file ``name``.

    The package of a user's own study lies beside its file; it becomes importable. A key that is
    taken and a package that does not exist are refused.
    """
    known, path = study_names(root), study_path(name, root)
    data = read_yaml(root / path)
    places = {}
    for tier, file in own_tiers(root).items():
        places[tier] = f"{file}: {data.get('study')}"
        if grid := read_yaml(file).get(str(data.get("study"))):
            parse(Grid, grid, places[tier])  # so that no other file is blamed
            data["grids"] = {**data.get("grids", {}), tier: grid}
        elif tier in data.get("grids", {}):
            del places[tier]
    study = parse(Study, data, path)
    study._file, study._places = path, places
    if name in known:
        if study.study != name:
            raise UserError(
                f"{path}: study is {study.study!r}; it must be the file's name, {name!r}"
            )
    elif study.study in known:
        raise UserError(f"{path}: study is {study.study!r}, which is taken; choose another key")
    elif study.readers and not study.package:
        raise UserError(
            f"{path}: package is missing; name the package beside this file, or an installed one, "
            f"that holds the code of {study.readers[0].name}"
        )
    if study.package:
        with located(path, "package"):
            join(study.package, (root / path).parent)
    return study


def study_path(name: str, root: Path = Path()) -> Path:
    """Returns the file of the study ``name``: a key, or already the file of a user's own study."""
    known = study_names(root)
    if name in known:
        return Path("config/studies") / f"{name}.yaml"
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    raise UserError(
        f"unknown study {name!r}{or_nearest(name, known, 'there are')}; a study of your own "
        "goes by its YAML file"
    )
