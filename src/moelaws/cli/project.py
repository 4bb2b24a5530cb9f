"""Options that commands share: the project's configuration and what overrides it."""

import json
import shlex
from typing import Any

from moelaws.cli.common import Words, gathered, option
from moelaws.files.layout import Results, TierFolder
from moelaws.spec.errors import UserError
from moelaws.spec.from_yaml import parse_yaml
from moelaws.spec.project import Project, load_project


def _assignment(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(
            f"--set {text!r} is not KEY=VALUE with a key of config.yaml, such as tier=gpu"
        )
    try:
        return key, parse_yaml(value, f"--set {key}") if value else value
    except UserError:  # a glob, such as *.txt
        return key, value


def _overrides(tier: str | None, assignments: Words) -> dict[str, Any]:
    overrides = dict(_assignment(text) for text in assignments)
    return {**overrides, "tier": tier} if tier else overrides


def _project(tier: str | None, assignments: Words) -> Project:
    return load_project(overrides=_overrides(tier, assignments))


def tier_folder(project: Project) -> TierFolder:
    """Returns the folder in which the workflow puts what it makes at the project's tier."""
    return Results().tier(project.tier, project.source == "simulated")


def snakemake_call(project: Project) -> str:
    """Returns the call of Snakemake that makes what ``project`` asks for."""
    asked, own = (each.model_dump(mode="json") for each in (project, load_project()))
    changed = {key: x for key, x in asked.items() if key == "tier" or x != own[key]}
    words = [f"{k}={x if isinstance(x, str) else json.dumps(x)}" for k, x in changed.items()]
    return f"snakemake --cores all --config {shlex.join(words)}"


TIER = "demo, workstation, gpu, node or paper; the configuration's by default."
tier_option = option("--tier", TIER)
_set_option = option(
    "--set assignments",
    "Override a key of the configuration, like Snakemake's --config; a VALUE may be YAML.",
    multiple=True,
    metavar="KEY=VALUE",
)

# Adds ``--tier`` and ``--set``; the command receives ``overrides`` of the configuration's keys.
override_options = gathered("overrides", _overrides, tier_option, _set_option)

# Adds the same; the command receives ``project``.
project_options = gathered("project", _project, tier_option, _set_option)
