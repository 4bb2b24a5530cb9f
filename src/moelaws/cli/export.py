"""``moelaws export FORMAT``: runs for other programs, one module a format, imported if called."""

from __future__ import annotations

import click

from moelaws.spec.references import resolve

# Format -> where its command is, and one line of help.
FORMATS = {
    "hf": ("export_hf:command", "Write a run as a folder that Hugging Face's transformers loads."),
    "mlflow": ("export_trackers:mlflow", "Put runs into a database or a server of MLflow."),
    "tensorboard": ("export_trackers:tensorboard", "Write runs as event files for TensorBoard."),
    "wandb": ("export_trackers:wandb", "Write runs as offline runs of Weights & Biases."),
}


class Formats(click.Group):
    """A group whose commands are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(FORMATS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in FORMATS:
            return None
        command = resolve("moelaws.cli", FORMATS[name][0])
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Formats"):
            formatter.write_dl([(name, line) for name, (_, line) in FORMATS.items()])


@click.group(name="export", cls=Formats)
def command() -> None:
    """Write runs in the formats of other programs."""
