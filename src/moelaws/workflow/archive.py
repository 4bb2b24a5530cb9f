"""What an archive of a finished sweep holds, and the words that go with it."""

from __future__ import annotations

import os
import shlex
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from moelaws.records.code import training_code
from moelaws.records.layout import LOCK
from moelaws.records.leftovers import temporaries
from moelaws.records.runs import Record, read_record
from moelaws.spec.errors import UserError
from moelaws.spec.references import folder
from moelaws.workflow.checkout import Checkout
from moelaws.workflow.jobs import Jobs

OWN = "own"  # holds a user's own studies that lie outside of the project's folder
_STUDIES = Path("config/studies")
_LONGEST = 254  # characters of a name in Snakemake's records, where names may have 255


@dataclass(frozen=True)
class Sweep:
    """The part of a project that one archive holds.

    Attributes:
        jobs: the project.
        studies: keys of the studies that are archived.
        overrides: of the configuration's keys, as the call of Snakemake that made it had them.
    """

    jobs: Jobs
    studies: Sequence[str]
    overrides: Mapping[str, Any]

    @property
    def is_whole(self) -> bool:
        """Whether all chosen studies are archived, so that the tier's pages are of these alone."""
        return set(self.studies) == set(self.jobs.studies)

    @cached_property
    def runs(self) -> list[str]:
        """The runs of the studies, by identity."""
        sweeps = [self.jobs.sweeps[key] for key in self.studies if key in self.jobs.sweeps]
        return sorted({run.run_id for sweep in sweeps for run in sweep.runs})

    @cached_property
    def records(self) -> list[Record]:
        """What is on record of those runs."""
        return [read_record(self.jobs.results, run) for run in self.runs]

    @property
    def stale(self) -> int:
        """How many of them were trained by other training code than today's."""
        return sum(record.is_stale(training_code()) for record in self.records)

    @cached_property
    def corpora(self) -> list[str]:
        """The texts of those runs, by identity."""
        runs = (self.jobs.runs[run] for run in self.runs)
        return sorted({run.config.corpus.corpus_id for run in runs})

    def made(self) -> list[Path]:
        """Returns the outputs of the workflow's rules that the archive must hold."""
        results, kept = self.jobs.results, set(self.jobs.all_kept) & set(self.runs)
        probed = {
            path
            for key in self.studies
            for entry in self.jobs.studies[key].derived
            for path in self.jobs.probed(key, entry)
        }
        own = chain.from_iterable(self._of_study(key) for key in self.studies)
        return sorted(
            {
                *(results.corpus(corpus) / "meta.json" for corpus in self.corpora),
                *map(results.summary, self.runs),
                *map(results.kept, kept),
                *probed,
                *own,
                *(self._pages() if self.is_whole else ()),
            }
        )

    def _of_study(self, key: str) -> list[Path]:
        study, tier = self.jobs.studies[key], self.jobs.folder
        figures = [tier.figure(key, entry.name) for entry in study.figures]
        tables = [tier.paper_table(key, entry.name) for entry in study.tables]
        return [
            *self.jobs.own_table(key),
            *(tier.derived(key, entry.name) for entry in study.derived),
            *(tier.fit(key, fit.name) for fit in study.fits),
            *(tier.draws(key, fit.name) for fit in study.fits),
            *(tier.contest(key, contest.name) for contest in study.contests),
            *(p.with_suffix(s) for p in figures for s in (".pdf", ".png", ".csv", ".json")),
            *(p.with_suffix(s) for p in tables for s in (".csv", ".md", ".tex", ".json")),
            *([tier.verdicts(key)] if study.claims else []),
        ]

    def _pages(self) -> list[Path]:
        """The pages of the whole tier."""
        jobs, tier = self.jobs, self.jobs.folder
        beside = (".md", ".parquet", ".pdf", ".png", ".csv")
        outlook = [page.with_suffix(suffix) for page in jobs.outlooks() for suffix in beside]
        last = (tier.cover, tier.report, tier.explore)
        return [*jobs.claims_pages(), *jobs.laws_pages(), *outlook, *last]

    def files(self) -> dict[str, Path]:
        """Returns name in the archive -> file, for all that lies on disk.

        Raises:
            UserError: where the sweep is not finished: what is missing.
        """
        made = self.made()
        if missing := [path for path in made if not path.is_file()]:
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise UserError(
                f"{', '.join(self.studies)} at tier {self.jobs.project.tier} is not finished: "
                f"{len(missing)} of {len(made)} files are missing: "
                f"{', '.join(map(str, missing[:5]))}{more}; run "
                f"{_call('--cores all', self.overrides)} first"
            )
        results, tier = self.jobs.results, self.jobs.folder
        folders = [*map(results.run, self.runs), Path("envs"), Path("config")]
        kept = (results.kept(run).parent for run in self.runs)
        beside = [path for f in (*folders, *kept) if f.is_dir() for path in _files(f)]
        kinds = ("tables", "derived", "fits", "contests", "figures", "claims")
        logs = [
            path
            for kind in kinds
            for key in self.studies
            for path in results.log(tier, kind, key, "*").parent.glob("*.log")
        ]
        pages = [path for path in self._pages() if path.is_file()]
        files = {*made, *beside, *logs, *pages}
        recorded = (record_of(path) for path in {*made, *pages})
        files |= {path for path in recorded if path.is_file()}
        return {path.as_posix(): path for path in sorted(files)} | self._own_studies()

    def _own_studies(self) -> dict[str, Path]:
        """Name in the archive -> file, of a user's own studies and the packages beside them."""
        files: dict[str, Path] = {}
        for key, above in self.own.items():
            study, root = self.jobs.studies[key], above.resolve()
            package = folder(study.home)
            code = _files(package) if package.is_relative_to(root) else []
            for path in (root / study.file.name, *code):
                files[str(place_of(key, above) / path.relative_to(root))] = path
        return files

    @property
    def own(self) -> dict[str, Path]:
        """Key -> folder of the archived studies that are a user's own."""
        files = {key: self.jobs.studies[key].file for key in self.studies}
        return {k: file.parent for k, file in files.items() if file.parent != _STUDIES}

    def command(self, options: str) -> str:
        """Returns the call of Snakemake that makes the archived studies and nothing else."""
        if self.is_whole:
            return _call(options, self.overrides)
        studies = [self.jobs.studies[key].reference for key in self.studies]
        folder = self.jobs.folder
        others = [
            path
            for key in self.studies
            for path in self._of_study(key)
            if path.parent.parent == folder.root / "contests" or path == folder.verdicts(key)
        ]
        targets = ["figures", *map(str, others)]
        return _call(options, {**self.overrides, "studies": studies}, targets)

    def about(self, checkout: Checkout) -> dict[str, Any]:
        """Returns what the manifest says of the archive, beside its files."""
        project = self.jobs.project
        return {
            "studies": list(self.studies),
            "tier": project.tier,
            "source": project.source,
            "runs": len(self.runs),
            "stale_runs": self.stale,
            "commit": checkout.commit,
            "uncommitted_changes": bool(checkout.patch),
        }


def place_of(study: str, above: Path) -> Path:
    """Returns where an archive keeps the folder ``above`` of a user's own study."""
    own = Path(os.path.relpath(above))
    return Path(OWN, study) if ".." in own.parts else own


def record_of(output: Path) -> Path:
    """Returns the file in which Snakemake keeps what it knows of the job that made ``output``.

    By these records it compares inputs by content, whatever time their files have.
    """
    name = urlsafe_b64encode(output.as_posix().encode()).decode()
    parts = [name[i : i + _LONGEST] for i in range(0, len(name), _LONGEST)]
    return Path(".snakemake/metadata", *(f"@{part}" for part in parts[:-1]), parts[-1])


def _files(folder: Path) -> list[Path]:
    """The files below a folder, without locks, unfinished ones and compiled code."""
    unfinished = {*temporaries(folder), folder / LOCK}
    files = (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return [path for path in files if path not in unfinished]


def _call(options: str, overrides: Mapping[str, Any], targets: Sequence[str] = ()) -> str:
    words = [f"{key}={_flow(value)}" for key, value in overrides.items()]
    config = ["--config", *words] if words else []
    end = ["--", *targets] if targets else []
    return " ".join(["snakemake", options, shlex.join([*config, *end])]).rstrip()


def _flow(value: Any) -> str:
    """A value of the configuration as one word of a command line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6)
    return text.removesuffix("\n").removesuffix("\n...")
