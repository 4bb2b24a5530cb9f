"""Options that commands share: the project's configuration and what overrides it."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import yaml

from moelaws.spec.errors import UserError
from moelaws.spec.project import CONFIG, load_project


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--tier``, ``--config`` and ``--set``; the command receives ``project``."""

    @click.option("--tier", help="demo, gpu or paper; the configuration's by default.")
    @click.option(
        "--config",
        type=click.Path(path_type=Path),
        default=CONFIG,
        show_default=True,
        help="The project's configuration.",
    )
    @click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override a key of the configuration, like Snakemake's --config; a VALUE may be YAML.",
    )
    @functools.wraps(command)
    def wrapped(
        *args: Any, tier: str | None, config: Path, assignments: tuple[str, ...], **kwargs: Any
    ) -> Any:
        # The workflow hands on what its own command line overrode.
        overrides = json.loads(os.environ.get("MOELAWS_OVERRIDES", "{}"))
        overrides |= dict(_assignment(text) for text in assignments)
        if tier:
            overrides["tier"] = tier
        return command(*args, project=load_project(overrides=overrides, path=config), **kwargs)

    return wrapped


def _assignment(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--set {text!r}: KEY=VALUE is wanted, with a key of config.yaml")
    try:
        return key, yaml.safe_load(value) if value else value
    except yaml.YAMLError:  # a glob, such as *.txt
        return key, value
