"""A finished sweep as one ZIP file: what was made, the code that made it, and a SHA-256 of each."""

import hashlib
import json
import shlex
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from moelaws.files import seal
from moelaws.files.atomic import replacing
from moelaws.files.layout import LOCK
from moelaws.records import provenance
from moelaws.records.code import PACKAGE
from moelaws.records.progress import Report
from moelaws.spec.errors import UserError, listed
from moelaws.spec.words import counted
from moelaws.workflow import crate
from moelaws.workflow.jobs import Jobs
from moelaws.workflow.trainings import Trainings
from moelaws.workflow.verify import NOT_IT, wrong

SUMS = "SHA256SUMS"  # as of `sha256sum`
_PROJECT = (
    *("Snakefile", "config", "envs", "profiles", "workflow"),
    *("pyproject.toml", "README.md", "LICENSE", "NOTICE"),
)
_LEFT_OUT = (LOCK, "site.yaml")  # the latter names a user's account on a cluster
_PACKED = (".parquet", ".png", ".pdf", ".safetensors")  # compression would hardly make them smaller
Sums = dict[str, str]  # name in the archive -> SHA-256

_TEXT = Path(__file__).with_suffix(".txt")  # README.txt of an archive


def write(out: Path, jobs: Jobs, overrides: Mapping[str, Any], report: Report) -> Sums:
    """Writes the finished sweep of ``jobs`` to the ZIP file ``out``; returns what is in it.

    ``overrides`` of the configuration's keys are those by which ``jobs`` were loaded. The pages of
    the tier are included unless they show other studies. A sweep that is not finished, or has a
    damaged file, is refused.
    """
    paths = [*_results(jobs), *(p for name in _PROJECT for p in _files(Path(name)))]
    files = {path.as_posix(): path for path in paths}
    files |= {f"src/moelaws/{path.relative_to(PACKAGE)}": path for path in _files(PACKAGE)}
    own, studies = _own(jobs)
    files |= own
    code = provenance.collect()
    asked = {**overrides, "studies": studies}.items()
    words = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in asked]
    config = shlex.join(["--config", *words])
    text = _TEXT.read_text(encoding="utf-8").format(
        studies=" and ".join(jobs.studies),
        tier=jobs.project.tier,
        source=jobs.project.source,
        runs=counted(len(jobs.runs), "run"),
        commit=f"{code['commit'] or 'unknown'}{' and changes' * bool(code['dirty'])}",
        root=jobs.folder.root,
        explore=jobs.folder.explore,
        config=config,
    )
    sums = Sums()
    with (
        replacing(out) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive,
    ):

        def add(name: str, text: str) -> None:
            archive.writestr(name, text)
            sums[name] = hashlib.sha256(text.encode()).hexdigest()

        add("README.txt", text)
        for number, (name, file) in enumerate(sorted(files.items()), 1):
            archive.write(file, name, zipfile.ZIP_STORED if file.suffix in _PACKED else None)
            with archive.open(name) as packed:
                sums[name] = hashlib.file_digest(packed, "sha256").hexdigest()  # type: ignore[arg-type]
            report("archive", number, len(files), f"{number}/{len(files)} files")
        sizes = {name: (sha, archive.getinfo(name).file_size) for name, sha in sums.items()}
        call = f"snakemake --cores all {config}"
        add(crate.FILE, crate.metadata(sizes, jobs, call, code["started"]))
        archive.writestr(SUMS, "".join(f"{sha}  {name}\n" for name, sha in sums.items()))
    return sums


def _results(jobs: Jobs) -> list[Path]:
    is_whole, jobs = not jobs.others, replace(jobs, others={})
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
        if reason := wrong(path):
            raise seal.damaged(path) if reason == NOT_IT else UserError(reason)
        if path.suffix in seal.LINES and seal.inspect(path)[0] == "unverified":
            raise UserError(f"{path} has no seal, as if it were cut; make it again")
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
