"""Options that commands share: the project's configuration and what overrides it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from moelaws.spec.errors import UserError
from moelaws.spec.from_yaml import parse_yaml
from moelaws.spec.project import CONFIG, Project, load_project

Command = Callable[..., Any]


def gathered(
    keyword: str, build: Callable[..., object], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Returns a decorator that adds click's ``options`` to a command.

    The command receives, as ``keyword``, what ``build`` makes of the options by their names.
    """
    names = tuple(inspect.signature(build).parameters)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(*arguments: Any, **values: Any) -> Any:
            built = build(**{name: values.pop(name) for name in names})
            return command(*arguments, **values, **{keyword: built})

        decorated: Command = wrapped
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


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


def _project(tier: str | None, config: Path, assignments: tuple[str, ...]) -> Project:
    overrides = dict(_assignment(text) for text in assignments)
    if tier:
        overrides["tier"] = tier
    return load_project(overrides=overrides, path=config)


# Adds ``--tier``, ``--config`` and ``--set``; the command receives ``project``.
project_options = gathered(
    "project",
    _project,
    click.option("--tier", help="demo, workstation, gpu or paper; the configuration's by default."),
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        default=CONFIG,
        show_default=True,
        help="The project's configuration.",
    ),
    click.option(
        *("--set", "assignments"),
        multiple=True,
        metavar="KEY=VALUE",
        help="Override a key of the configuration, like Snakemake's --config; a VALUE may be YAML.",
    ),
)

simulated_option = click.option(
    "--simulated",
    is_flag=True,
    help="Read and write below results/TIER/simulated, as with source: simulated.",
)
