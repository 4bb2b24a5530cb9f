"""``moelaws ...``: thin commands over the package, one module a command, imported when called."""

import gc
import os
import signal
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from moelaws import __version__
from moelaws.cli.common import Visible
from moelaws.spec.errors import UserError
from moelaws.spec.references import resolve

_LISTED = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
SECTIONS, OF_RULES, PLACES = (_LISTED[name] for name in ("sections", "of_rules", "places"))
COMMANDS = {name: line for each in (*SECTIONS.values(), OF_RULES) for name, line in each.items()}


class Commands(click.Group):
    """A group whose commands are imported only when they are called."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = resolve(__name__, PLACES.get(name, f"{name}:command"))
        assert isinstance(command, click.Command)
        command.name = name
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader has seen enough, and click would call it a failure
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is still to be flushed
            sys.exit(141)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))
        with formatter.section("Used by the workflow"):
            formatter.write_text(f"Each makes one kind of file: {', '.join(OF_RULES)}.")


@click.group(
    cls=Commands,
    commands=[*map(click.Command, COMMANDS)],  # for their names alone
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__)
def cli() -> None:
    """Scaling laws of Mixture-of-Experts language models, from grid to figure.

    Run from the folder that holds config/config.yaml. Every command prints a table for people and,
    with --json, one JSON object. A user's mistake ends with exit code 2.
    """


def main() -> None:
    # Imported modules stay: to look through them for garbage, time and again, takes a fifth of the
    # time of a short command.
    gc.set_threshold(100_000, 50, 100)
    while (spare := os.open(os.devnull, os.O_RDWR)) < 3:  # or a file takes a closed stream's place
        pass
    os.close(spare)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = Visible(sys.stdout or os.fdopen(1, "w"))
    sys.stderr = Visible(sys.stderr or os.fdopen(2, "w"))
    os.environ.pop("MPLBACKEND", None)  # figures are files, and matplotlib refuses unknown names
    sys.unraisablehook = interrupt_again
    # Outside of its standalone mode click returns a command's exit code and raises its errors.
    end_as(lambda: cli(standalone_mode=False, prog_name="moelaws"))


def interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Sends an interrupt anew that came in a finalizer, whose exceptions Python only reports."""
    if unraisable.exc_type is KeyboardInterrupt:
        main_thread = threading.main_thread().ident or 0
        threading.Timer(0.02, signal.pthread_kill, (main_thread, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(unraisable)


def end_as(action: Callable[[], Any]) -> NoReturn:
    """Ends this process with the exit code that ``action`` returns.

    A user's mistake becomes one clear message.
    """
    try:
        sys.exit(action())
    except click.ClickException as error:
        of = getattr(error, "ctx", None)
        where = of.command_path if of else "moelaws"
        message = f"{error.format_message()} ({where} --help tells more)"
    except (click.Abort, KeyboardInterrupt):
        click.echo("moelaws: interrupted", err=True)
        sys.exit(130)
    except UserError as error:
        message = str(error)
    except OSError as error:  # a read-only folder, a path that is a directory, a full disk
        message = ": ".join(str(x) for x in (error.filename, error.strerror or error) if x)
    except MemoryError as error:
        message = f"not enough memory: {error}; ask for less at a time"
    click.echo(f"moelaws: {message}", err=True)
    sys.exit(2)
