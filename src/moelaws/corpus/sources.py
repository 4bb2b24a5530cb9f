"""The text of a corpus and its identity. It imports little, for the Snakefile is parsed often."""

import codecs
import glob
import hashlib
import os
import re
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from pathlib import Path

from moelaws.files.atomic import read_json, write_json
from moelaws.spec.corpus import CorpusSetting, Dataset, FolderDataset, HubDataset, Text
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside

BLOCK = 1 << 20  # bytes read at once
# A pattern with ** goes into at most so many folders, which takes some seconds.
MOST_FOLDERS = 10_000
SETTLED = 2_000_000_000  # ns; a younger file may still change without a new time stamp

_TABLE = table_beside(__file__)
PACKAGES: list[str] = _TABLE["packages"]  # whose sources `environment` adds to `stdlib`
TEST_FOLDERS = {"test", "tests"}  # only some builds ship them inside ctypes, unittest, ...


@dataclass(frozen=True)
class Sources:
    """The text files of a corpus, sorted by name.

    A name is a path, with forward slashes, relative to the deepest folder that holds all files. So
    the same files in another place are the same corpus.
    """

    name: str  # "stdlib", "environment" or "text"
    files: tuple[tuple[str, Path], ...]
    bytes: int  # of all files

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(path for _, path in self.files)

    @property
    def domains(self) -> tuple[str, ...]:
        """Returns the outermost folder of each file's name; a file in none has its own name."""
        return tuple(name.partition("/")[0] for name, _ in self.files)

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Yields the number, the first byte and the size of each file."""
        for number, (_, path) in enumerate(self.files):
            yield number, 0, path.stat().st_size

    def identity(self, cache: Path | None = None) -> Text:
        """Returns what a run's identity holds of this text: the digest of all names and contents.

        Raises UserError for a file that cannot be read or is not UTF-8.
        """
        return Text(digest=digest(self.files, cache, _text_digest))


@dataclass(frozen=True)
class DatasetSource:
    """A data set of rows, whose text the ``datasets`` library streams."""

    setting: Dataset
    folder: Path | None  # None for a data set of the Hugging Face hub

    @property
    def name(self) -> str:
        """Returns the data set's name; for a folder, its own name without its place."""
        return self.setting.dataset if self.folder is None else self.folder.name

    @property
    def bytes(self) -> int | None:
        """Returns the most bytes of text to use, or None if all are used."""
        return self.setting.bytes

    def identity(self, cache: Path | None = None) -> HubDataset | FolderDataset:
        """Returns what a run's identity holds of this text, before anything is downloaded.

        Raises UserError for a file of the folder that cannot be read.
        """
        rows = self.setting.model_dump(exclude={"dataset", "commit"})
        if self.folder is None:
            assert self.setting.commit is not None
            name = self.setting.dataset
            return HubDataset(kind="hub", name=name, commit=self.setting.commit, **rows)
        contents = digest(_files_below(self.folder), cache, file_digest)
        return FolderDataset(kind="folder", digest=contents, **rows)


def digest(
    files: Iterable[tuple[str, Path]], cache: Path | None, of_file: Callable[[Path], str]
) -> str:
    """Returns the SHA-256 (hex) over the names and contents of ``files``.

    ``cache`` is a JSON file of the files' own digests by path, size and times. A cache that cannot
    be read or written only costs time. Raises UserError for a file that cannot be read.
    """
    known = _load(cache)
    total, fresh, now = hashlib.sha256(), {}, time.time_ns()
    for name, path in files:
        try:
            stat = path.stat()
            # rsync and a restored backup set the time of the content, and nobody that of the inode.
            state = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
            entry = known.get(str(path))
            if entry is None or entry[:3] != state:
                entry = [*state, of_file(path)]
                if now - stat.st_mtime_ns > SETTLED:
                    fresh[str(path)] = entry
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from None
        total.update(os.fsencode(name) + b"\0" + str(entry[3]).encode() + b"\n")
    if fresh and cache is not None:
        # It drops files that are gone. As it is only a cache, a read-only disk is no error.
        with suppress(OSError, UserError):
            entries = sorted((known | fresh).items())
            write_json(cache, {p: e for p, e in entries if os.path.exists(p)})
    return total.hexdigest()


def resolve(setting: CorpusSetting, base: Path) -> Sources | DatasetSource:
    """Returns the text that a config's corpus setting stands for.

    ``setting`` is "stdlib"; "environment", which adds the installed ``PACKAGES`` to that; one or
    several paths or globs (``**`` goes into folders) of UTF-8 text files; or a data set. Paths are
    relative to ``base``.

    Raises UserError for a missing file or package, a glob without a match, a folder, no text at
    all, or a data set that is neither a folder nor named with a commit.
    """
    if isinstance(setting, Dataset):
        return DatasetSource(setting, _folder_of(setting, base))
    patterns = [setting] if isinstance(setting, str) else list(setting)
    if patterns in (["stdlib"], ["environment"]):
        root = Path(sysconfig.get_path("stdlib"))
        files = _named(sorted(_stdlib(root)), root)
        if patterns == ["environment"]:
            files = sorted([*files, *(file for name in PACKAGES for file in _package(name))])
        return _sources(patterns[0], files, f"corpus {patterns[0]!r} ({root})")
    paths = sorted({path for pattern in patterns for path in _matches(pattern, base)})
    root = Path(os.path.commonpath([path.parent for path in paths]))
    return _sources("text", _named(paths, root), f"corpus {', '.join(patterns)}")


def _named(paths: Iterable[Path], root: Path) -> list[tuple[str, Path]]:
    return [(path.relative_to(root).as_posix(), path) for path in paths]


def _sources(name: str, files: list[tuple[str, Path]], where: str) -> Sources:
    size = sum(path.stat().st_size for _, path in files)
    if size == 0:
        raise UserError(f"{where}: there is no text in {len(files)} files; name others")
    return Sources(name, tuple(files), size)


def _folder_of(setting: Dataset, base: Path) -> Path | None:
    """Returns the folder of a data set, or None for one of the hub."""
    name = setting.dataset
    if setting.commit is not None:
        if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
            raise UserError(
                f"corpus: dataset is {name!r}; with a commit it is a name on the Hugging Face hub, "
                "such as roneneldan/TinyStories. For a local folder leave commit out"
            )
        return None
    folder = Path(os.path.abspath(base / os.path.expanduser(name)))
    if not folder.is_dir():
        raise UserError(
            f"corpus: dataset is {name!r}: no such folder in {base.absolute()}. For a data set of "
            "the Hugging Face hub set commit too, for a branch moves: its 40 digits stand on the "
            "data set's page under Files, or ask: "
            "git ls-remote https://huggingface.co/datasets/OWNER/NAME refs/heads/main"
        )
    return folder


def _files_below(folder: Path) -> list[tuple[str, Path]]:
    """Returns names and paths of all files but hidden ones, which ``datasets`` ignores, too."""
    paths = []
    for parent, inner, files in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".")]
        paths += [Path(parent, name) for name in files if not name.startswith(".")]
    return _named(sorted(paths), folder)


def _matches(pattern: str, base: Path) -> list[Path]:
    full = os.path.abspath(base / os.path.expanduser(pattern))
    if os.path.isfile(full):  # first, because a file's own name may have brackets
        return [Path(full)]
    if os.path.isdir(full):
        raise UserError(
            f"corpus: {pattern} is a folder; name its text files, "
            f"such as {pattern.rstrip('/')}/**/*.txt"
        )
    if "**" in full:  # it may look through a whole disk, or a loop of links, for a few files
        folders = glob.iglob(f"{full.partition('**')[0]}**{os.sep}", recursive=True)
        if sum(1 for _ in islice(folders, MOST_FOLDERS + 1)) > MOST_FOLDERS:
            raise UserError(
                f"corpus: {pattern} goes into more than {MOST_FOLDERS:,} folders; "
                "name fewer of them"
            )
    paths = [Path(p) for p in glob.glob(full, recursive=True) if os.path.isfile(p)]
    if not paths:
        raise UserError(
            f"corpus: {pattern} matches no file in {base.absolute()}; check the path or the "
            "pattern (** goes into folders)"
        )
    return paths


def _stdlib(root: Path) -> Iterator[Path]:
    # The interpreter's list of names has no _sysconfigdata of the build, no sitecustomize of a
    # distribution, and nothing else that was put into the folder.
    for module in sys.stdlib_module_names.difference(_TABLE["stdlib_without"]):
        if (single := root / f"{module}.py").is_file():
            yield single
        for folder, inner, files in os.walk(root / module):
            inner[:] = [name for name in inner if name not in TEST_FOLDERS]
            yield from (Path(folder, file) for file in files if file.endswith((".py", ".rst")))


def _package(name: str) -> list[tuple[str, Path]]:
    """Returns names, as in its wheel, and paths of the Python sources of an installed package.

    Raises UserError if it is not installed, or was installed without a list of its files.
    """
    try:
        listed = metadata.files(name) or []
    except metadata.PackageNotFoundError:
        listed = []
    sources = [
        (file.as_posix(), Path(str(file.locate())))
        for file in listed
        if file.suffix == ".py" and not {"..", *TEST_FOLDERS} & set(file.parts)
    ]
    if not sources or not all(path.is_file() for _, path in sources):
        raise UserError(
            f"corpus: environment holds the sources of {', '.join(PACKAGES)}, but {name} is not "
            "installed whole; install what envs/cpu.lock pins (pip install -r envs/cpu.lock)"
        )
    return sources


def file_digest(path: Path) -> str:
    """Returns the SHA-256 (hex) of one file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _text_digest(path: Path) -> str:
    """Returns the SHA-256 of one file, which must be UTF-8."""
    digest = hashlib.sha256()
    decode: Callable[[bytes, bool], str] = codecs.getincrementaldecoder("utf-8")().decode
    with path.open("rb") as file:
        try:
            while block := file.read(BLOCK):
                digest.update(block)
                decode(block, False)
            decode(b"", True)
        except UnicodeDecodeError:
            raise UserError(
                f"{path} is not UTF-8 text; convert it (iconv -t UTF-8) or leave it out of the "
                "corpus"
            ) from None
    return digest.hexdigest()


def _load(cache: Path | None) -> dict[str, list[int | str]]:
    with suppress(UserError):
        data = read_json(cache) if cache else {}
        return {k: v for k, v in data.items() if isinstance(v, list) and len(v) == 4}
    return {}
