"""The reference of the command line, from click's own declarations."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import click
from mkdocs.structure.files import File, Files
from text import code, plain, table

from moelaws.cli import COMMANDS, cli

PAGE = "reference/commands.md"


def on_files(files: Files, *, config: Any) -> None:
    files.append(File.generated(config, PAGE, content="\n\n".join(_page()) + "\n"))


def _page() -> Iterator[str]:
    root = click.Context(cli, info_name="moelaws")
    yield "# Commands"
    yield from _help(cli)
    rows = [(f"[`{name}`](#moelaws-{name})", plain(line)) for name, line in COMMANDS.items()]
    yield table(("command", "what it does"), rows)
    for name in COMMANDS:
        command = cli.get_command(root, name)
        assert command is not None
        yield from _command(command, click.Context(command, info_name=name, parent=root))


def _command(command: click.Command, context: click.Context, level: str = "##") -> Iterator[str]:
    yield f"{level} {context.command_path}"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```"
    yield from _help(command)
    records = [p.get_help_record(context) for p in command.get_params(context)]
    rows = [(code(record[0]), plain(record[1])) for record in records if record]
    yield table(("option", "what it does"), rows)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            one = command.get_command(context, name)
            assert one is not None
            yield from _command(one, click.Context(one, info_name=name, parent=context), "###")


def _help(command: click.Command) -> Iterator[str]:
    """Paragraphs as click wraps them; those that click leaves as they are stay so."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield f"```text\n{paragraph[2:]}\n```"
        else:
            yield plain(paragraph)
