"""A finished sweep as one ZIP file: what was made, the code that made it, and a SHA-256 of each."""

import hashlib
import shlex
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import yaml

from moelaws.files import seal
from moelaws.files.atomic import json_object, replacing
from moelaws.files.layout import LOCK
from moelaws.records import provenance
from moelaws.records.code import PACKAGE, training_code
from moelaws.records.progress import Report
from moelaws.records.runs import read_record
from moelaws.spec.base import Frozen, Whole, parse
from moelaws.spec.errors import UserError, listed
from moelaws.spec.from_disk import refuse_large
from moelaws.spec.importing import Sha256
from moelaws.spec.words import counted
from moelaws.workflow.jobs import Jobs
from moelaws.workflow.trainings import Trainings

MANIFEST = "manifest.json"
LONGEST = 10**8  # bytes of a manifest
_PROJECT = (
    *("Snakefile", "config", "envs", "profiles", "workflow"),
    *("pyproject.toml", "README.md", "LICENSE", "NOTICE"),
)
_LEFT_OUT = (LOCK, "site.yaml")  # the latter names a user's account on a cluster
_PACKED = (".parquet", ".png", ".pdf", ".safetensors")  # compression would hardly make them smaller
# What Python raises for a ZIP file whose bytes have changed
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class Packed(Frozen):
    bytes: Whole
    sha256: Sha256


class Manifest(Frozen):
    format: Literal["moelaws archive 1"] = "moelaws archive 1"
    studies: tuple[str, ...]
    tier: str
    source: str
    runs: Whole
    stale_runs: Whole  # by other training code than the archive's
    commit: str | None  # None outside of git
    uncommitted_changes: bool
    files: dict[str, Packed] = {}


_TEXT = Path(__file__).with_suffix(".txt")  # README.txt of an archive


def write(
    out: Path, jobs: Jobs, overrides: Mapping[str, Any], is_whole: bool, report: Report
) -> Manifest:
    """Writes the finished sweep of ``jobs`` to the ZIP file ``out``; returns the manifest.

    ``overrides`` of the configuration's keys are those by which ``jobs`` were loaded. ``is_whole``
    says that these are all studies of the project; the tier's pages are then included. A sweep that
    is not finished, or has a damaged file, is refused.
    """
    paths = [*_results(jobs, is_whole), *(p for name in _PROJECT for p in _files(Path(name)))]
    files = {path.as_posix(): path for path in paths}
    files |= {f"src/moelaws/{path.relative_to(PACKAGE)}": path for path in _files(PACKAGE)}
    own, studies = _own(jobs)
    files |= own
    records = [read_record(jobs.results, run) for run in jobs.runs]
    code = provenance.collect()
    words = {**overrides, "studies": studies}.items()
    text = _TEXT.read_text(encoding="utf-8").format(
        studies=" and ".join(jobs.studies),
        tier=jobs.project.tier,
        source=jobs.project.source,
        runs=counted(len(records), "run"),
        commit=code["commit"] or "unknown",
        root=jobs.folder.root,
        explore=jobs.folder.explore,
        config=shlex.join(["--config", *(f"{key}={_flow(value)}" for key, value in words)]),
    )
    with (
        replacing(out) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive,
    ):
        archive.writestr("README.txt", text)
        content = text.encode()
        sums = {"README.txt": Packed(bytes=len(content), sha256=_sha(BytesIO(content)))}
        for number, (name, file) in enumerate(sorted(files.items()), 1):
            archive.write(file, name, zipfile.ZIP_STORED if file.suffix in _PACKED else None)
            with file.open("rb") as opened:
                sums[name] = Packed(bytes=file.stat().st_size, sha256=_sha(opened))
            report("archive", number, len(files), f"{number}/{len(files)} files")
        manifest = Manifest(
            studies=tuple(jobs.studies),
            tier=jobs.project.tier,
            source=jobs.project.source,
            runs=len(records),
            stale_runs=sum(record.is_stale(training_code()) for record in records),
            commit=code["commit"],
            uncommitted_changes=bool(code["dirty"]),
            files=sums,
        )
        archive.writestr(MANIFEST, manifest.model_dump_json(indent=1) + "\n")
    return manifest


def check(path: Path, report: Report) -> Manifest:
    """Returns the manifest of the archive ``path``; refuses damaged, missing or added files."""
    try:
        with zipfile.ZipFile(path) as archive:
            where = f"{path}: {MANIFEST}"
            if MANIFEST not in archive.namelist():
                raise UserError(f"{path} is no archive of moelaws: no {MANIFEST} names its files")
            refuse_large(archive.getinfo(MANIFEST).file_size, where, LONGEST)
            manifest = parse(Manifest, json_object(archive.read(MANIFEST), where), where)
            problems = list(_problems(archive, manifest.files, report))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except _UNREADABLE as error:
        raise UserError(f"{path} is no ZIP file, or it was cut short or damaged: {error}") from None
    if problems:
        raise UserError(f"{path} is not what was written: {listed(problems, 12)}")
    return manifest


def _problems(
    archive: zipfile.ZipFile, files: Mapping[str, Packed], report: Report
) -> Iterator[str]:
    """Yields a phrase for each difference between an archive and its manifest's ``files``."""
    entries = archive.infolist()
    counts = Counter(entry.filename for entry in entries)
    yield from (f"{name} is missing" for name in sorted(files.keys() - counts.keys()))
    yield from (f"{name} is in it twice" for name, count in counts.items() if count > 1)
    for number, entry in enumerate(entries, 1):
        name, known = entry.filename, files.get(entry.filename)
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or set("\\:") & set(name):
            yield f"{name!r} would be unpacked elsewhere"
        elif stat.S_ISLNK(entry.external_attr >> 16):
            yield f"{name!r} is a link"
        elif known is None and name != MANIFEST:
            yield f"{name} was added"
        elif known is not None and not _is_kept(archive, entry, known):
            yield f"{name} is damaged"
        report("check", number, len(entries), f"{number}/{len(entries)} files")


def _is_kept(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, known: Packed) -> bool:
    try:
        with archive.open(entry) as file:
            # The size comes first, to refuse a file that would unpack to more than was written.
            return entry.file_size == known.bytes and _sha(file) == known.sha256
    except _UNREADABLE:
        return False


def _sha(file: Any) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _results(jobs: Jobs, is_whole: bool) -> list[Path]:
    results, tier = jobs.results, jobs.folder
    descriptions = [results.corpus(corpus) / "meta.json" for corpus in jobs.corpora]
    derived = [tier.derived(k, e.name) for k, study in jobs.studies.items() for e in study.derived]
    weights = [results.kept(run) for run in jobs.all_kept]
    runs = [*map(results.summary, jobs.runs), *weights, *Trainings(jobs).markers()]
    made = [*descriptions, *runs, *jobs.tables(), *derived, *jobs.fits(), *jobs.shown()]
    if is_whole:
        made += [*jobs.reported(), *jobs.reports(), tier.explore, *_files(tier.root, "*.*")]
    if missing := [path for path in made if not path.is_file()]:
        raise UserError(
            f"{', '.join(jobs.studies)} at tier {jobs.project.tier} is not finished: "
            f"{len(missing)} of {len(made)} files are missing: {listed(missing, 5)}; "
            "call snakemake first"
        )
    files = {*made, *(path for kept in weights for path in _files(kept.parent))}
    for run in jobs.runs:
        files |= {*_files(results.run(run)), results.hidden(run), results.scores(run)}
    logs = results.log(tier, "x", "x", "x").parents[2]
    for root in (tier.root, logs):
        for key in jobs.studies:
            files |= {path for place in root.glob(f"*/{key}") for path in _files(place)}
            files |= {*_files(root, f"*/{key}.*")}
    files = {path for path in files if path.is_file()}
    for path in files:
        seal.check(path)
    return list(files)


def _files(above: Path, pattern: str = "**/*") -> Iterator[Path]:
    """Yields the files of a folder, except locks, hidden and unfinished files and compiled code."""
    for path in [above] if above.is_file() else above.glob(pattern):
        hidden = any(name[0] == "." for name in path.relative_to(above).parts)
        if path.is_file() and not hidden and path.name not in _LEFT_OUT and path.suffix != ".pyc":
            yield path


def _own(jobs: Jobs) -> tuple[dict[str, Path], list[str]]:
    """Returns the files of users' own studies by name in the archive, and ``studies`` for it.

    The files are a study's YAML and the package beside it; an archive keeps them below own/.
    """
    files: dict[str, Path] = {}
    studies = []
    for key, study in jobs.studies.items():
        above = study.file.parent
        if above == Path("config/studies"):
            studies.append(key)
            continue
        package = _files(above / study.package.split(".")[0]) if study.package else ()
        for path in (study.file, *package):
            files[f"own/{key}/{path.relative_to(above)}"] = path
        studies.append(f"own/{key}/{study.file.name}")
    return files, studies


def _flow(value: Any) -> str:
    """Returns a value of the configuration as a word of a command line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
