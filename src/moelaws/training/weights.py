"""Final weights of a run, kept as safetensors with the configuration that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from moelaws.model.transformer import Transformer
from moelaws.records import seal
from moelaws.records.files import remove, replacing, write_json
from moelaws.records.layout import KEPT
from moelaws.records.leftovers import temporary
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json
from moelaws.spec.run import RunConfig

FILE = "model.safetensors"


def are_kept(folder: Path, run_id: str) -> bool:
    """Returns whether the weights of the run are there, by their header.

    Raises:
        UserError: where they are damaged: a training costs too much to start unasked.
    """
    from safetensors import SafetensorError, safe_open

    if not (folder / FILE).is_file() or not (folder / KEPT).is_file():
        return False
    seal.check(folder / FILE)
    try:
        with safe_open(folder / FILE, "pt") as file:
            return bool((file.metadata() or {}).get("run_id") == run_id)
    except (SafetensorError, OSError):
        return False


def make_folder(folder: Path) -> None:
    """Makes ``folder`` before hours are spent on what is to go there.

    Raises:
        UserError: where nothing can be written to it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial = temporary(folder / FILE)
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise UserError(f"{folder}: weights cannot be kept there: {error.strerror}") from None


def save(folder: Path, config: RunConfig, weights: Mapping[str, Tensor]) -> None:
    """Writes the fp32 ``weights`` by name to ``folder``, the configuration in the file's header.

    Raises:
        UserError: where they cannot be written, such as for a full disk.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    identity = {"run_id": config.run_id, "config": config.canonical_json()}
    tensors = {name: tensor.contiguous() for name, tensor in weights.items()}
    with replacing(folder / FILE) as path:
        path.touch()
        mode = path.stat().st_mode  # the user's; the library's is for the owner alone
        try:
            save_file(tensors, path, {seal.KEY: seal.BLANK, **identity})
            seal.apply(path)
            path.chmod(mode)
        except SafetensorError as error:  # a full disk, by a name of its own
            raise UserError(f"{folder / FILE}: cannot be written: {error}") from None
    write_json(folder / KEPT, {"status": "completed"})


def save_none(folder: Path, status: str) -> None:
    """Says that the run ended with ``status`` and has no weights worth keeping."""
    (folder / FILE).unlink(missing_ok=True)
    write_json(folder / KEPT, {"status": status})


def forget(folder: Path) -> None:
    """Removes weights, and what a trainer that was killed while writing left there."""
    for name in (FILE, KEPT):
        remove(folder / name)


def check_exists(path: Path) -> None:
    """Raises UserError where a file of kept weights is missing."""
    if not path.is_file():
        raise UserError(
            f"{path} does not exist; weights are kept of the runs that a study's keep_weights "
            "selects, and by moelaws train --keep-weights"
        )


def load(folder: Path) -> tuple[RunConfig, Transformer]:
    """Returns the configuration and the trained model, on the CPU.

    Raises:
        UserError: where there are no weights, or the file is not such a file.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(folder) / FILE
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
