"""The register of public runs: the mappings in config/imports that say where their files are.

The register ships mappings alone. Whoever imports a table fetches its files, under their licences.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from moelaws.files.download import download, is_address
from moelaws.files.layout import Results
from moelaws.records.progress import Report, reporting
from moelaws.spec.errors import UserError, or_nearest
from moelaws.spec.importing import Mapping
from moelaws.tables.at_hand import FOLDER
from moelaws.tables.mapping import read_mapping
from moelaws.tables.sources import sha256_of


def register(root: Path = Path()) -> dict[str, Mapping]:
    """Returns the mappings of public runs by name; patterns for a user's own runs are left out."""
    mappings = {path.stem: read_mapping(path) for path in sorted((root / FOLDER).glob("*.yaml"))}
    return {name: mapping for name, mapping in mappings.items() if mapping.public}


def mapping_of(name: str) -> Path:
    """Returns the mapping file of a name of the register."""
    known = register()
    if name not in known:
        text = or_nearest(name, known, "the register has")
        raise UserError(
            f"{name!r} is not in the register of public runs, and a file needs its --mapping{text}"
        )
    return FOLDER / f"{name}.yaml"


@contextmanager
def source_of(name: str, mapping: Mapping, given: str) -> Iterator[Path]:
    """Yields the file or the folder of a table's source, which is fetched if it is not here.

    ``given`` is a file, a folder, or the address of a mirror, in place of the addresses in the
    mapping. Files that were fetched are kept and, while their digests are right, not fetched again.
    One whose digest nobody knows is kept only if the block, which reads it, ends well.
    """
    if given and not is_address(given):
        if not Path(given).exists():
            raise UserError(f"--from is {given!r}; there is no such file or folder")
        yield Path(given)
        return
    folder, unknown = Results().fetched(name), list[Path]()
    is_folder = bool(given) and (len(mapping.origin.files) > 1 or given.endswith("/"))
    with reporting() as report:
        for file in mapping.origin.files:
            path = folder / file.file
            if path.is_file() and file.sha256 in ("", sha256_of(path)):
                continue
            url = (f"{given.rstrip('/')}/{file.file}" if is_folder else given) or file.url
            try:
                download(url, path, file.sha256, partial(_show, report, file.file))
            except UserError as error:
                raise UserError(
                    f"{error}. Get {file.file} from {file.url} and put it at {path}, or say where "
                    f"it is: moelaws import {name} --from PATH"
                ) from None
            if not file.sha256:
                unknown.append(path)
    try:
        yield folder
    except UserError:
        for path in unknown:
            path.unlink()
        raise


def _show(report: Report, name: str, done: int, size: int | None) -> None:
    report(name, done, size, f"{done / 1e6:.1f} MB")
