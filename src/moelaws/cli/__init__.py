"""``moelaws ...``: thin commands over the package, one module a command, imported when called."""

import difflib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import click

from moelaws import __version__
from moelaws.cli.answers import Visible
from moelaws.spec.errors import UserError
from moelaws.spec.references import resolve

# Section -> command -> one line of help, written here so that `moelaws --help` imports no command.
SECTIONS = {
    "Ask what to build": {
        "advise": "Tell how to spend a budget: what each law recommends and risks.",
        "outlook": "Tell what fits and laws advise at 10 and 100 times the budget.",
        "laws": "Show every law, or one: equation, source, parameters, errata.",
        "eval": "Evaluate a law at one point.",
    },
    "Plan a sweep": {
        "grid": "List the runs of a study's grid: sizes, FLOPs, estimated cost.",
        "plan": "Tell how well a grid would determine the laws, and its cost.",
        "next": "Choose the runs that tell most of a target for their cost.",
        "power": "Tell how often rules support claims that hold, and that do not.",
        "simulate": "Write a table of a law's losses at a grid's points.",
        "speed": "Measure how fast configurations train, and in what memory.",
    },
    "Run and watch": {
        "corpus": "Prepare the text: tokenizer, token shards, hashes.",
        "train": "Train runs; each resumes by itself from its last checkpoint.",
        "watch": "Watch a sweep: runs done and failed, losses, speed, time left.",
        "pin": "Make a search's laws of lr and batch those of other studies.",
    },
    "Look at results": {
        "explore": "Write one page to open in a browser, with all that was made.",
        "runs": "List the runs on record: status, loss, times, stale ones.",
        "show": "Show all on record of a run, or what a figure was made of.",
        "diff": "Show how runs differ: configuration, code, packages, results.",
        "query": "Answer SQL over the tables and the runs on record.",
        "figure": "Draw one figure: PDF, PNG and the plotted numbers as CSV.",
        "tasks": "List what trained models can be asked, or write it to a file.",
        "bench": "Score a run whose weights were kept on tasks.",
    },
    "Fit and compare": {
        "fit": "Fit a law to a table, with intervals and diagnostics.",
        "compare": "Fit several laws to the same rows: AICc, BIC, held-out errors.",
    },
    "Bring in and export": {
        "import": "Make a study's table of somebody else's runs.",
        "export": "Write runs for MLflow, TensorBoard, W&B, transformers.",
    },
    "Keep": {
        "tag": "Give runs tags, such as baseline=yes, to find them by.",
        "note": "Write a note to runs.",
        "verify": "Read all that was made; tell what is damaged or stale.",
        "archive": "Write a finished sweep to one ZIP file, or verify such a file.",
    },
}
# Rules call these commands, people seldom do: `moelaws --help` only names them.
OF_RULES = {
    "aggregate": "Collect the summaries of a study's runs in one Parquet table.",
    "check": "Import the code of a study, before anything is trained for it.",
    "claims": "Write the papers' claims beside what these runs show, as one page.",
    "contest": "Judge laws on rows that were kept from them, as a study says.",
    "contests": "Write which law to use for what, as one page.",
    "cover": "Write the report's first page, with the digest of all it shows.",
    "derive": "Make a study's derived table, such as the isoFLOP optima.",
    "judge": "Judge a study's claims by rule, from its tables and fits.",
    "probe": "Write the hidden states of a run whose weights were kept.",
    "table": "Write one of a study's paper tables: CSV, Markdown and LaTeX.",
}
COMMANDS = {name: line for each in (*SECTIONS.values(), OF_RULES) for name, line in each.items()}

# Command -> its place, where it has no module of its own.
PLACES = {
    "check": "entries:check",
    "derive": "entries:derive",
    "figure": "entries:figure",
    "table": "entries:table",
    "contests": "contest:contests",
    "tag": "annotate:tag",
    "note": "annotate:note",
    "judge": "claims:judge",
    "probe": "kept:probe",
    "bench": "kept:bench",
    "aggregate": "tables:aggregate",
    "import": "tables:import_",
}


class Commands(click.Group):
    """A group whose commands are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = resolve(__name__, PLACES.get(name, f"{name}:command"))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if near := difflib.get_close_matches(args[0], COMMANDS) if args[0] not in COMMANDS else []:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(near)}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))
        with formatter.section("Used by the workflow"):
            formatter.write_text(f"Each makes one kind of file: {', '.join(OF_RULES)}.")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Scaling laws of Mixture-of-Experts language models, from grid to figure.

    Run from the folder that holds config/config.yaml. Every command prints a table for people and,
    with --json, one JSON object. A user's mistake ends with exit code 2.
    """


def main() -> None:
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
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("moelaws: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
    except UserError as error:
        message = str(error)
    except OSError as error:  # a read-only folder, a path that is a directory, a full disk
        message = ": ".join(str(x) for x in (error.filename, error.strerror or error) if x)
    except MemoryError as error:
        message = f"not enough memory: {error}; ask for less at a time"
    click.echo(f"moelaws: {message}", err=True)
    sys.exit(2)
