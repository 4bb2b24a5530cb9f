"""Weights of a run, kept as safetensors with the run's configuration.

They are kept at the end, and at steps on the way if a study asks for these.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from torch import Tensor

from moelaws.accounting.parameters import count_parameters
from moelaws.files import seal
from moelaws.files.atomic import remove, write_json
from moelaws.files.layout import KEPT, WEIGHTS
from moelaws.files.leftovers import temporary
from moelaws.model.transformer import Transformer
from moelaws.records.tensors import check_kept, config_of, file_of, foreign, write_tensors
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.training.ranks import Ranks


def make_folder(folder: Path) -> None:
    """Makes ``folder`` before hours are spent on its weights; raises UserError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial = temporary(folder / WEIGHTS)
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise UserError(f"{folder}: weights cannot be kept there: {error.strerror}") from None


def of(model: Transformer, ranks: Ranks) -> Mapping[str, Tensor]:
    """Returns all weights by name on the first process; all processes must call it together."""
    if ranks.size == 1:
        return model.state_dict()
    from moelaws.training.sharding import gathered  # loads much of torch

    return gathered(model, ranks)


def save(
    folder: Path, config: RunConfig, weights: Mapping[str, Tensor], step: int | None = None
) -> None:
    """Writes the fp32 ``weights`` after ``step`` (None for the end) with the configuration.

    Raises UserError if they cannot be written, such as on a full disk.
    """
    path = folder / file_of(step)
    whose = {"run_id": config.run_id, "config": config.canonical_json()}
    tensors = {name: tensor.contiguous() for name, tensor in weights.items()}
    write_tensors(path, tensors, {seal.KEY: seal.blank(path), **whose})


def finish(folder: Path, status: str, steps: Collection[int] = ()) -> None:
    """Records that the run ended with ``status``, and the ``steps`` on the way that were kept.

    The weights of a run that did not complete are removed.
    """
    if status != "completed":
        for path in folder.glob("*.safetensors"):
            path.unlink(missing_ok=True)
    about = {"steps": sorted(steps)} if steps and status == "completed" else {}
    write_json(folder / KEPT, {"status": status, **about})


def forget(folder: Path, on_the_way: bool = True) -> None:
    """Removes weights and what killed trainers left half-written.

    Without ``on_the_way``, weights of steps on the way stay, for a training that goes on.
    """
    steps = sorted(folder.glob("*.safetensors")) if on_the_way else ()
    for path in (*steps, folder / WEIGHTS, folder / KEPT):
        remove(path)


def load(folder: Path, step: int | None = None) -> tuple[RunConfig, Transformer]:
    """Returns the configuration and the model after ``step`` (None for the end), on the CPU.

    Raises UserError if there are no weights, or the file does not hold those of the folder's run.
    """
    from safetensors.torch import load_file

    path = Path(folder) / file_of(step)
    check_kept(path)
    seal.check(path)
    config, tensors = config_of(path), load_file(path)
    held = sum(map(torch.numel, tensors.values()))
    expected = count_parameters(config.model).total + config.model.n_biases
    if held != expected:  # before a model takes the memory that the header asks for
        raise foreign(path, f"it has {held:,} numbers, and the model of its header {expected:,}")
    for name, tensor in tensors.items():
        if not (tensor.is_floating_point() and tensor.isfinite().all()):
            raise foreign(path, f"{name} has values that are no finite floating-point numbers")
    model = Transformer(config.model, config.seed, precision=config.precision)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise foreign(path, error) from None
    return config, model
