"""Files of tensors (safetensors), atomic like all files here, also where their library is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from moelaws.records import leftovers, seal
from moelaws.records.files import replacing
from moelaws.spec.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
    """Writes contiguous ``tensors`` to ``path``, ``about`` in its header; a blank seal is filled.

    Raises:
        UserError: where it cannot be written, such as for a full disk.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file  # loads torch

    with replacing(path) as temporary:
        # The library writes first beside the file, under a name that says nothing of its owner.
        # A killed process leaves that behind: the folder, whose name does, goes with all in it.
        folder = leftovers.temporary(path)
        try:
            folder.mkdir()
            file = folder / path.name
            file.touch()
            mode = file.stat().st_mode  # the user's; the library's is for the owner alone
            save_file(dict(tensors), file, dict(about))
            if seal.KEY in about:
                seal.apply(file)
            file.chmod(mode)
            file.replace(temporary)
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
        except SafetensorError as error:  # a full disk, by a name of its own
            raise UserError(f"{path}: cannot be written; is the disk full? ({error})") from None
        finally:
            leftovers.discard(folder)
