"""Weights of a run, kept as safetensors with the configuration that they belong to.

They are kept at the end, and at steps on the way where a study asks for these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from torch import Tensor

from moelaws.model.transformer import Transformer
from moelaws.records import seal
from moelaws.records.files import read_json, remove, write_json
from moelaws.records.layout import KEPT, WEIGHTS
from moelaws.records.leftovers import temporary
from moelaws.records.tensors import write_tensors
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json
from moelaws.spec.run import RunConfig
from moelaws.training.ranks import Ranks


def file_of(step: int | None) -> str:
    """Returns the name of the file with the weights after ``step``; None is the end."""
    return WEIGHTS if step is None else f"step_{step}.safetensors"


def are_kept(folder: Path, run_id: str, steps: Collection[int] = ()) -> bool:
    """Returns whether the final weights of the run are there, and those at ``steps``.

    Raises:
        UserError: where they are damaged: a training costs too much to start unasked.
    """
    if not (folder / KEPT).is_file() or not set(steps) <= set(kept_steps(folder)):
        return False
    return all(is_whole(folder, run_id, step) for step in (*steps, None))


def is_whole(folder: Path, run_id: str, step: int | None) -> bool:
    """Returns whether the weights of the run after ``step`` are there, by their header.

    Raises:
        UserError: where they are damaged.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / file_of(step)
    if not path.is_file():
        return False
    seal.check(path)
    try:
        with safe_open(path, "pt") as file:
            return bool((file.metadata() or {}).get("run_id") == run_id)
    except (SafetensorError, OSError):
        return False


def kept_steps(folder: Path) -> list[int]:
    """Returns the steps on the way whose weights a completed run kept, in order."""
    return sorted(map(int, read_json(folder / KEPT).get("steps", [])))


def make_folder(folder: Path) -> None:
    """Makes ``folder`` before hours are spent on what is to go there.

    Raises:
        UserError: where nothing can be written to it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial = temporary(folder / WEIGHTS)
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise UserError(f"{folder}: weights cannot be kept there: {error.strerror}") from None


def of(model: Transformer, ranks: Ranks) -> Mapping[str, Tensor]:
    """Returns all weights by name, on the first process; all processes call it together."""
    if ranks.size == 1:
        return model.state_dict()
    from moelaws.training.sharding import gathered  # loads much of torch

    return gathered(model, ranks)


def save(
    folder: Path, config: RunConfig, weights: Mapping[str, Tensor], step: int | None = None
) -> None:
    """Writes the fp32 ``weights`` by name to ``folder``, the configuration in the file's header.

    They are those after ``step``; None is the end.

    Raises:
        UserError: where they cannot be written, such as for a full disk.
    """
    about = {seal.KEY: seal.BLANK, "run_id": config.run_id, "config": config.canonical_json()}
    tensors = {name: tensor.contiguous() for name, tensor in weights.items()}
    write_tensors(folder / file_of(step), tensors, about)


def finish(folder: Path, status: str, steps: Collection[int] = ()) -> None:
    """Says that the run ended with ``status``, and at which ``steps`` weights were kept too.

    A run that did not complete has no weights worth keeping.
    """
    if status != "completed":
        for path in _files(folder):
            path.unlink(missing_ok=True)
    about = {"steps": sorted(steps)} if steps and status == "completed" else {}
    write_json(folder / KEPT, {"status": status, **about})


def forget(folder: Path, on_the_way: bool = True) -> None:
    """Removes weights, and what a trainer that was killed while writing left there.

    Those ``on_the_way`` stay where the training that kept them goes on.
    """
    for path in (*(_files(folder) if on_the_way else ()), folder / WEIGHTS, folder / KEPT):
        remove(path)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def check_exists(path: Path) -> None:
    """Raises UserError where a file of kept weights is missing."""
    if not path.is_file():
        raise UserError(
            f"{path} does not exist; weights are kept of the runs that a study's keep_weights "
            "selects, and by moelaws train --keep-weights"
        )


def load(folder: Path, step: int | None = None) -> tuple[RunConfig, Transformer]:
    """Returns the configuration and the model after ``step``, on the CPU; None is the end.

    Raises:
        UserError: where there are no weights, or the file is not such a file.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(folder) / file_of(step)
    check_exists(path)
    seal.check(path)
    try:
        with safe_open(path, "pt") as file:
            config = parse(RunConfig, parse_json(file.metadata()["config"], path), path)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        model = Transformer(config.model, config.seed, precision=config.precision)
        model.load_state_dict(tensors)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path} does not hold the weights of a run: {reason}") from None
    return config, model
