"""config/config.yaml and the studies beside it: what a user edits first."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from moelaws.spec.base import Fraction, Frozen, Positive, Whole, parse, text_like
from moelaws.spec.corpus import Commit, Rows
from moelaws.spec.errors import UserError, located, or_nearest
from moelaws.spec.fit import Name
from moelaws.spec.from_yaml import read_yaml
from moelaws.spec.references import join
from moelaws.spec.study import Study, Tier
from moelaws.spec.validation import must_be

CONFIG = Path("config/config.yaml")
COMMAND_LINE = "command line"  # as the place of a mistake in --config, --set or --tier


StudyFile = Annotated[str, text_like(r"(?s:.*)\.ya?ml", "the path of a study's YAML file")]


# A core that waits for the last batch of a sweep waits for half as long; a start of torch costs
# seconds, and one of a cluster's job a minute.
BATCH_MINUTES: dict[Tier, float] = {"demo": 1, "workstation": 5, "gpu": 15, "paper": 30}


class Dataset(Rows):
    """A data set of the Hugging Face hub by name and commit, or one in a local folder."""

    dataset: str
    commit: Commit | None = None


def _indices(value: object) -> object:
    # `--config gpus=2` gives a number, and `--config gpus=0,2` a text.
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    if isinstance(value, str) and re.fullmatch(r"\d+(,\d+)+", value):
        return tuple(value.split(","))
    return value


def _list(value: object) -> object:
    return tuple(value.split(",")) if isinstance(value, str) else value


def _count_or_auto(value: object) -> object:
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise must_be("auto, or a whole number of at least 1")


class Limits(Frozen):
    """What a sweep may cost by estimate; one that would cost more is refused before it starts."""

    gpu_hours: Positive = 500.0  # where device is cuda
    cpu_hours: Positive = 24.0  # of one core, where device is cpu
    disk_gb: Positive = 500.0


class Project(Frozen):
    """Which tier of which studies, on which text and device."""

    tier: Tier = "demo"
    source: Literal["trained", "simulated"] = "trained"  # of the losses
    # Names of config/studies/, and YAML files of a user's own studies.
    studies: Literal["all"] | tuple[Name | StudyFile, ...] = "all"
    corpus: str | tuple[str, ...] | Dataset = "stdlib"  # or environment, or text files
    tokenizer: str | None = None  # a pretrained tokenizer's JSON file; None trains one on the text
    validation: Annotated[Fraction, Field(gt=0, lt=1)] = (
        0.05  # share of the text that is held out, by whole documents
    )
    device: Literal["cpu", "cuda"] = "cpu"
    # Of this machine, where device is cuda: which GPUs train, by nvidia-smi's numbers.
    gpus: Annotated[
        Literal["all"] | Annotated[tuple[Whole, ...], Field(min_length=1)],
        BeforeValidator(_indices),
    ] = "all"
    # How many runs train on one GPU at a time; auto: as many as its memory holds by estimate.
    runs_per_gpu: Annotated[int | Literal["auto"], BeforeValidator(_count_or_auto)] = 1
    # How many devices train one run together; auto: as few as hold it, by estimate of its memory.
    devices_per_run: Annotated[int | Literal["auto"], BeforeValidator(_count_or_auto)] = "auto"
    # Of a cluster, and of estimates: GB of each GPU. The GPUs of this machine are asked.
    gpu_memory: Positive = 80.0
    # Of a cluster: how many GPUs a node has; a run that takes more spans several nodes.
    gpus_per_node: Annotated[int, Field(gt=0)] = 8
    # Of a cluster: how many GPUs a job has, on each of which it trains other runs; the nodes' kind
    # of GPU, as Slurm calls it.
    gpus_per_job: Annotated[int, Field(gt=0)] = 1
    gpu_model: str | None = None
    # Up to so many minutes of runs, by estimate, train in one job; 0: each run has a job; auto: by
    # the tier.
    batch_minutes: Annotated[float, Field(ge=0)] | Literal["auto"] = "auto"
    seed: Whole = 0  # added to the seed of every run
    # What grids whose rule is `chosen` follow; auto: pinned, else their table, else published.
    hyperparameters: Literal["auto", "pinned", "published", "tables"] = "auto"
    # What kept weights are asked (moelaws bench): held-out, olmo:NAME, or task files.
    tasks: Annotated[tuple[str, ...], BeforeValidator(_list)] = ("held-out",)
    limits: Limits = Limits()

    @property
    def batch_seconds(self) -> float:
        """Returns how long a batch of runs may take by estimate, on one GPU or core."""
        auto = self.batch_minutes == "auto"
        return 60.0 * (BATCH_MINUTES[self.tier] if auto else float(self.batch_minutes))

    @model_validator(mode="before")
    @classmethod
    def _one_study(cls, data: Any) -> Any:
        # `--config studies=sparsity` gives a bare name, as a user would type it.
        names = data.get("studies") if isinstance(data, Mapping) else None
        if isinstance(names, str) and names != "all":
            return {**data, "studies": tuple(names.split(","))}
        return data


def load_project(
    root: Path = Path(), overrides: Mapping[str, Any] | None = None, path: Path = CONFIG
) -> Project:
    """Returns the project's configuration with ``overrides`` of its keys."""
    own = read_yaml(root / path)
    data = {**own, **(overrides or {})}
    if all(isinstance(x, Mapping) for x in (own.get("limits"), data.get("limits"))):
        data["limits"] = {**own["limits"], **data["limits"]}  # one limit leaves the others
    if data.get("source") == "simulated" and "tier" not in (overrides or {}):
        data["tier"] = "paper"  # nothing is trained: the papers' own grids cost nothing
    if overrides:
        parse(Project, dict(overrides), COMMAND_LINE)  # so that no mistake there is the file's
    return parse(Project, data, path)


def study_names(root: Path = Path()) -> tuple[str, ...]:
    """Returns the studies that have a file in config/studies/."""
    return tuple(sorted(path.stem for path in (root / "config/studies").glob("*.yaml")))


def chosen_studies(project: Project, root: Path = Path()) -> tuple[Study, ...]:
    """Returns the studies that the project asks for.

    Where losses are simulated, without those that have no law to simulate, nor what needs more.
    """
    every = project.studies == "all"
    names = study_names(root) if every else project.studies
    with located("studies"):
        for name in names:
            study_path(name, root)  # so that a word that is no study is the project's mistake
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
    """Returns the study ``name`` of config/studies/, or the user's own whose file ``name`` is.

    The package of a user's own study lies beside its file and becomes importable.

    A key that is taken, and a package that is not there, are refused.
    """
    known, path = study_names(root), study_path(name, root)
    study = parse(Study, read_yaml(root / path), path).read_from(path)
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
    """Returns the file of the study ``name``, which is its key or the file of a user's own."""
    known = study_names(root)
    if name in known:
        return Path("config/studies") / f"{name}.yaml"
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    raise UserError(
        f"unknown study {name!r}{or_nearest(name, known, 'there are')}; a study of your own "
        "goes by its YAML file"
    )
