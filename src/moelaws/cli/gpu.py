"""The GPUs of one training, mostly one: taken before CUDA starts, which then sees no other."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import click

from moelaws.gpus.listing import Chosen, list_gpus, mps_is_running
from moelaws.gpus.slots import SHARES, taken
from moelaws.records.lock import holder
from moelaws.records.provenance import GPU_SHARE
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig

_ENVIRONMENT = dict(os.environ)  # as this process was started


@dataclass(frozen=True)
class Claim:
    """Which GPUs a training may use, and how many shares of one it takes."""

    gpus: Chosen
    shares: int

    @property
    def is_shared(self) -> bool:
        """Whether others may train on the same GPU."""
        return self.shares < SHARES


def gpu_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a claim; the command receives it as ``gpu``, None where none is made."""

    @click.option(
        "--gpus",
        help="Take one of these GPUs, or as many as --devices says, waiting until they are free: "
        "all, or nvidia-smi's numbers, such as 0,2. Without it CUDA chooses, and others may take "
        "the same.",
    )
    @click.option(
        "--gpu-shares",
        type=click.IntRange(1, SHARES),
        default=SHARES,
        show_default=True,
        help="How many of the shares of the GPU to take; others may take the rest.",
    )
    @wraps(command)
    def with_claim(gpus: str | None, gpu_shares: int, **others: Any) -> Any:
        claim = None if gpus is None else Claim(_chosen(gpus), gpu_shares)
        return command(gpu=claim, **others)

    return with_claim


def _chosen(text: str) -> Chosen:
    if text == "all":
        return "all"
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise UserError(f"--gpus is {text!r}; it must be all, or numbers such as 0,2") from None


@contextmanager
def on_gpus(claim: Claim | None, devices: int, run_id: str, record: Path) -> Iterator[None]:
    """Holds the claimed shares of so many GPUs while the block runs, and shows CUDA these alone.

    Another trainer of the same run, whose record is in ``record``, is waited for first.

    Raises:
        UserError: where there is no such GPU, or the locks cannot be written.
    """
    if claim is None:
        yield
        return

    def log(line: str) -> None:
        click.echo(f"{run_id}: {line}", err=True)

    if who := holder(record):
        log(f"waiting for {who.get('host', '?')}, process {who.get('pid', '?')}")
        while holder(record):
            time.sleep(0.5)
    with holding(claim, devices, log):
        yield


@contextmanager
def holding(claim: Claim | None, devices: int, log: Callable[[str], None]) -> Iterator[None]:
    """Holds the claimed shares of so many GPUs for a block that trains no run on record.

    Raises:
        UserError: as ``on_gpus``.
    """
    if claim is None:
        yield
        return
    if devices > 1 and claim.is_shared:
        raise UserError("a run on several devices takes whole GPUs: leave --gpu-shares out")
    with taken(lambda: list_gpus(claim.gpus), claim.shares, log, devices) as gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.uuid for gpu in gpus)
        os.environ[GPU_SHARE] = str(claim.shares / SHARES)
        part = f", {claim.shares}/{SHARES} of it" if claim.is_shared else ""
        service = f"; CUDA MPS {'runs' if mps_is_running() else 'does not run'}" if part else ""
        for gpu in gpus:
            log(f"on GPU {gpu.index}: {gpu.name} ({gpu.uuid}){part}{service}")
        yield


def again_alone(run: RunConfig) -> NoReturn:
    """Begins this command again, in this process' place, with a GPU to itself.

    What the process had of the GPU's memory goes with it.
    """
    click.echo(f"{run.run_id}: trying again on a GPU that no other run shares", err=True)
    with tempfile.TemporaryFile() as config:  # standard input may have been read
        config.write(run.canonical_json().encode())
        config.seek(0)
        os.dup2(config.fileno(), 0)
    words = [*sys.orig_argv, "--gpu-shares", str(SHARES)]
    os.execve(sys.executable, words, _ENVIRONMENT)
