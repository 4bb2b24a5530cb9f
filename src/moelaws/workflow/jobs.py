"""The project as the rules see it: its runs, the files to make, and what each job reads.

The Snakefile builds one ``Jobs`` each time it is parsed.
"""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from moelaws import laws
from moelaws.files.atomic import write_text
from moelaws.files.layout import Results, TierFolder
from moelaws.files.trials import shipped
from moelaws.grids.budget import over_limit
from moelaws.grids.expand import Run
from moelaws.grids.rounds import path_of, read_rounds
from moelaws.grids.sweep import Sweep, expand_study, too_long_for
from moelaws.laws.protocol import overridden
from moelaws.records.registration import files_of
from moelaws.spec.advice import ADVICE, AdviceConfig, load_advice
from moelaws.spec.corpus import Corpus
from moelaws.spec.errors import UserError, located
from moelaws.spec.project import CONFIG, Project, chosen_studies, load_project
from moelaws.spec.readers import Reader
from moelaws.spec.references import folder
from moelaws.spec.study import Study
from moelaws.tables.at_hand import as_made, fitted_table, lacks_first, left_out
from moelaws.tables.describe import kept_runs
from moelaws.tasks.sources import check_source, is_file
from moelaws.workflow import code
from moelaws.workflow.check import check_study
from moelaws.workflow.registered import unregistered

STARTS_PER_THREAD = 50_000  # of a fit; a thread then has at least a second of work
BUSY = 8  # the most threads of a fit
PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Jobs:
    """The chosen studies of a project with their sweeps."""

    project: Project
    studies: Mapping[str, Study]  # by key, checked, without entries whose sweeps the tier lacks
    sweeps: Mapping[str, Sweep]  # by study; empty if losses are simulated and nothing trains
    advice: AdviceConfig | None  # the laws for the outlook; None for a project without that file
    left_out: tuple[str, ...] = ()  # for the user, a sentence on each study that is not made whole
    results: Results = field(default_factory=Results)
    others: Mapping[str, Study] = field(default_factory=dict)  # not chosen, but on the pages

    @classmethod
    def load(cls, overrides: Mapping[str, Any], root: Path = Path()) -> Self:
        """Returns the project of config/config.yaml with ``overrides`` of its keys."""
        jobs = cls.of(load_project(root, overrides), root)
        own = [folder(study.home) for study in jobs.studies.values() if study.package]
        for path in (root.resolve(), PACKAGE, *own, *jobs.task_files()):
            if {"{", "}"} & set(str(path)):
                reason = "Snakemake takes braces in a path for wildcards"
                raise UserError(f"{path}: {reason}; rename that file or folder")
        for key, sweep in jobs.sweeps.items():
            if problem := too_long_for(sweep):
                raise UserError(f"{jobs.studies[key].file}: {problem}")
        return jobs.with_others(root)

    @classmethod
    def of(cls, project: Project, root: Path = Path()) -> Self:
        """Returns the jobs of a project like ``load``, but accepts a text that is too short."""
        jobs = cls.without_runs(project, root)
        if jobs.simulated:
            return jobs
        sweeps = {key: expand_study(study, project, root) for key, study in jobs.studies.items()}
        return replace(jobs, sweeps=sweeps)

    @classmethod
    def without_runs(cls, project: Project, root: Path = Path()) -> Self:
        """Returns the jobs of a project whose grids are not expanded, which takes most time."""
        advice = load_advice(root) if (root / ADVICE).exists() else None
        asked = chosen_studies(project, root)
        lacking = tuple(filter(None, map(lacks_first, asked)))
        if lacking and project.studies != "all":
            raise UserError(lacking[0])
        chosen = [study for study in asked if not lacks_first(study)]
        for study in chosen:
            check_study(study)
        studies = {study.study: as_made(study, project) for study in chosen}
        missing = lacking + tuple(x for study in chosen for x in left_out(study, project))
        if any(derived.scores for study in chosen for derived in study.derived):
            with located(CONFIG, "tasks"):
                for source in project.tasks:
                    check_source(source)
        return cls(project, studies, {}, advice, missing)

    def with_others(self, root: Path = Path()) -> Self:
        """Returns the jobs with the other studies that have a table in the tier's folder.

        The tier's pages show what was made of them, and no job makes it again. So a call for some
        studies takes nothing off a page.
        """
        others, lines = {}, []
        for table in sorted(self.folder.table("x").parent.glob("[!.]*.parquet")):
            if (key := table.stem) in self.studies:
                continue
            spec = self.folder.spec("runs", key)
            name = spec.read_text(encoding="utf-8").partition("\n")[0] if spec.is_file() else key
            try:
                project = self.project.model_copy(update={"studies": (name,)})
                others[key] = self.without_runs(project, root).studies[key]
            except (UserError, KeyError) as error:
                lines.append(f"the pages leave out {key}, which has a table in {table}: {error}")
        return replace(self, others=others, left_out=(*self.left_out, *lines))

    @property
    def shown_studies(self) -> dict[str, Study]:
        """Returns the studies that the tier's pages show, the chosen ones first."""
        return {**self.studies, **self.others}

    @property
    def simulated(self) -> bool:
        """Returns whether losses come from laws instead of trainings."""
        return self.project.source == "simulated"

    @property
    def folder(self) -> TierFolder:
        return self.results.tier(self.project.tier, self.simulated)

    @cached_property
    def runs(self) -> dict[str, Run]:
        """Returns the runs of all studies by identity."""
        return {run.run_id: run for sweep in self.sweeps.values() for run in sweep.runs}

    @cached_property
    def corpora(self) -> dict[str, Corpus]:
        """Returns the texts of the runs by identity."""
        return {k: corpus for sweep in self.sweeps.values() for k, corpus in sweep.corpora.items()}

    def corpus_option(self, corpus: str) -> str:
        """Returns the option that names a text which is not the project's own; empty for that."""
        for sweep in self.sweeps.values():
            for run in sweep.runs:
                if sweep.study.corpora and run.config.corpus.corpus_id == corpus:
                    text = json.dumps(sweep.study.corpora[run.corpus], default=vars)
                    return shlex.join(["--set", f"corpus={text}"])
        return ""

    def held_out(self, corpus: str) -> int:
        """Returns how many held-out tokens of a text some run measures its loss on."""
        configs = [run.config for run in self.runs.values()]
        return max(c.held_out_tokens for c in configs if c.corpus == self.corpora[corpus])

    @cached_property
    def kept(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """Returns study -> run whose weights it keeps -> steps on the way."""
        return {key: kept_runs(sweep) for key, sweep in self.sweeps.items()}

    @cached_property
    def all_kept(self) -> dict[str, list[int]]:
        """Returns run whose weights some study keeps -> all steps on the way."""
        steps: dict[str, set[int]] = {}
        for kept in self.kept.values():
            for run, on_the_way in kept.items():
                steps.setdefault(run, set()).update(on_the_way)
        return {run: sorted(steps[run]) for run in sorted(steps)}

    def too_much(self) -> str:
        """Returns how the runs still to train exceed the limits; empty if they do not."""
        probed = {
            run
            for key, kept in self.kept.items()
            if any(derived.hidden for derived in self.studies[key].derived)
            for run in kept
        }
        return over_limit(self.sweeps.values(), self.project, self.results, self.all_kept, probed)

    # ---- files to make; those of the other studies that exist come with them

    def _of_shown(self, files: Iterable[tuple[str, Path]]) -> list[Path]:
        """Returns the files of chosen studies, and those of others that exist."""
        return [path for study, path in files if study in self.studies or path.is_file()]

    def _each(self, kind: str, path: Callable[[str, str], Path]) -> list[Path]:
        return self._of_shown(
            (key, path(key, entry.name))
            for key, study in self.shown_studies.items()
            for entry in getattr(study, kind)
        )

    def tables(self) -> list[Path]:
        return [path for key in self.shown_studies for path in self.own_table(key)]

    def fits(self) -> list[Path]:
        return self._each("fits", self.folder.fit)

    def pictures(self) -> list[Path]:
        """Returns the PNGs of all figures, and the CSVs of all paper tables."""
        figures = self._each("figures", self.folder.figure)
        return [
            *(p.with_suffix(".png") for p in figures),
            *self._each("tables", self.folder.paper_table),
        ]

    def verdicts(self) -> list[Path]:
        studies = self.shown_studies.items()
        return self._of_shown((k, self.folder.verdicts(k)) for k, s in studies if s.claims)

    def registrations(self, study: str) -> list[Path]:
        """Returns what was registered of a study's sweep, by which its claims are judged, too."""
        return [] if self.simulated else files_of(study, self.project.tier)

    def unregistered(self) -> str:
        """Returns which runs still to train are in no registration; empty where none has to be."""
        if self.project.preregistered != "required":
            return ""
        return unregistered(self.sweeps, self.project.tier, self.results)

    def powers(self) -> list[Path]:
        """Returns the trials of rules on simulated tables, for studies of runs trained here."""
        if self.simulated:
            return []
        if not self.project.trials:
            tier = self.project.tier
            return [path for s in self.shown_studies.values() for path in shipped(s, tier)]
        return self._of_shown(
            (key, self.folder.power(key))
            for key, study in self.shown_studies.items()
            if study.grids and study.of_simulated().claims
            if study.simulation or any(null.law for null in study.nulls)
        )

    def contests(self) -> list[Path]:
        return self._each("contests", self.folder.contest)

    def advising_fits(self) -> list[Path]:
        """Returns the fits of this tier's runs that its outlook takes as candidate laws."""
        known = {entry.law for entry in self.advice.candidate_laws} if self.advice else set()
        draws = self._of_shown(
            (key, self.folder.draws(key, fit.name))
            for key, study in self.shown_studies.items()
            for fit in study.fits
            if not self.simulated and study.grids and fit.law in known
            if not (fit.split_by or fit.table)
        )
        return [path.with_suffix("").with_suffix(".json") for path in draws]

    def advising_tables(self) -> list[Path]:
        studies = {path.parent.name for path in self.advising_fits()}
        return [self.folder.table(study) for study in sorted(studies)]

    def shown(self) -> list[Path]:
        """Returns the records of all figures and paper tables, the verdicts and the contests."""
        drawn = (path.with_suffix(".json") for path in self.pictures())
        return [*drawn, *self.verdicts(), *self.contests()]

    def explored(self) -> list[Path]:
        """Returns the files that the page of the tier shows; it reads no others of the tier."""
        data = {*self.tables(), *self.fits(), *self._each("fits", self.folder.draws)}
        for key, s in self.shown_studies.items():
            read = [fitted_table(s, fit, self.folder) for fit in s.fits]
            read += self._declared(key, [*s.pictures, *s.claims])["derived"]
            data.update(self._of_shown((key, path) for path in read))
        return [*sorted(data), *self.verdicts(), *self.reported()]

    def reported(self) -> list[Path]:
        """Returns what the report shows: the pages of the tier, figures and paper tables."""
        pages = [self.folder.claims] if self.verdicts() else []
        pages += [self.folder.laws] if self.contests() else []
        pages += [self.folder.outlook] if self.advising_fits() else []
        return [*pages, *self.pictures()]

    def reports(self) -> list[Path]:
        return [self.folder.report] if self.reported() else []

    def report_config(self, config: Mapping[str, Any]) -> Path:
        """Returns the file with the configuration of a call that reports all that is shown."""
        studies = [study.reference for study in self.shown_studies.values()]
        return self.spec(json.dumps({**config, "studies": studies}), "pages", "config")

    def own_code(self) -> list[Path]:
        """Returns the marks that say that users' own studies can be imported."""
        own = [key for key, study in self.studies.items() if study.package and study.readers]
        return [self.folder.imported(key) for key in own]

    # ---- what one job reads

    def own_table(self, study: str) -> list[Path]:
        """Returns the study's table, and none for a study that only computes."""
        return [self.folder.table(study)] if self.shown_studies[study].has_runs else []

    def entry(self, kind: str, study: str, name: str) -> Any:
        """Returns the entry ``name`` among the ``kind`` (figures, fits, ...) of a study."""
        return self.studies[study].entry(kind, name)

    def entries(self, kind: str, study: str, name: str = "") -> Sequence[Any]:
        """Returns the entry ``name`` of a kind or, without a name, all of the kind."""
        return [self.entry(kind, study, name)] if name else getattr(self.studies[study], kind)

    def names(self, kind: str) -> str:
        """Returns a pattern of the names of a kind's entries, so no two rules make one file."""
        names = {entry.name for study in self.studies.values() for entry in getattr(study, kind)}
        return "|".join(sorted(names)) or "(?!)"

    def fit_threads(self, study: str, name: str) -> int:
        """Returns how many cores a fit can use; most fits take seconds and use one."""
        fit = self.studies[study].fit(name)
        starts = overridden(laws.fittable(fit.law), fit.protocol, name).n_run
        return max(1, min(BUSY, starts // STARTS_PER_THREAD))

    def read_by(self, kind: str, study: str, name: str = "") -> dict[str, list[Any]]:
        """Returns the inputs of the job of one entry of a study or, without a name, all of a kind.

        They are the table, fits, derived tables and shipped files that the job reads, its code and
        its specification.
        """
        entries, tables = self.entries(kind, study, name), self.own_table(study)
        if kind == "fits":
            tables = [fitted_table(self.studies[study], fit, self.folder) for fit in entries]
        return {
            "table": tables,
            **({} if kind in ("fits", "contests") else self._declared(study, entries)),
            "code": self.code(kind, study, name),
            "spec": [self.entry_spec(kind, study, name)],
        }

    def _declared(self, study: str, entries: Iterable[Reader]) -> dict[str, list[Path]]:
        """Returns the files that ``entries`` of a study declare; draws go with fits."""
        spec, folder, entries = self.shown_studies[study], self.folder, [*entries]
        fits = sorted({name for entry in entries for name in entry.fits})
        derived = sorted({name for entry in entries for name in entry.derived})
        data = sorted({name for entry in entries for name in getattr(entry, "data", ())})
        return {
            "fits": [path(study, n) for path in (folder.fit, folder.draws) for n in fits],
            "derived": [folder.derived(study, name) for name in derived],
            "data": [spec.shipped(name) for name in data],
        }

    def task_files(self) -> list[str]:
        return [source for source in self.project.tasks if is_file(source)]

    # ---- the code of one job, as paths from the current folder

    def code(self, kind: str, study: str, name: str = "") -> list[str]:
        """Returns the source files behind one entry of a study, all of a kind, or its ``runs``."""
        return code.relative(code.of_entry(self.studies[study], kind, name, self.simulated))

    # ---- specifications: files with what the configuration asks for

    def spec(self, text: str, kind: str, *names: str) -> Path:
        """Returns the file with ``text``, which is what one entry or page asks for.

        The file is an input of its rule, compared by content, and is written if the text changed.
        So the rule runs again after that change, even if Snakemake remembers nothing.
        """
        path = self.folder.spec(kind, *names)
        if not (path.is_file() and path.read_text(encoding="utf-8") == text):
            write_text(path, text)
        return path

    def entry_spec(self, kind: str, study: str, name: str = "") -> Path:
        """Returns the file with one entry of a study or, without a name, all of a kind."""
        text = "\n".join(entry.canonical_json() for entry in self.entries(kind, study, name))
        return self.spec(text + "\n", kind, *filter(None, (study, name)))

    def power_spec(self, study: str) -> Path:
        """Returns the file with what the trials of a study's rules depend on."""
        tried = self.studies[study].model_copy(update={"grids": {}, "figures": (), "tables": ()})
        return self.spec(f"{self.project.trials}\n{tried.canonical_json()}\n", "power", study)

    def runs_spec(self, study: str) -> Path:
        """Returns the file with the runs of the study's table, or with what is simulated instead.

        Its first line names the study. The runs are in order, with their budgets and sweeps.
        """
        spec = self.studies[study]
        if self.simulated and spec.simulation:
            grid = spec.grids[self.project.tier].canonical_json()
            if self.project.runs == "rounds":
                grid += f"\n{read_rounds(path_of(spec)).canonical_json()}"
            text = f"{spec.reference}\n{spec.simulation.canonical_json()}\n{grid}\n"
            return self.spec(text, "runs", study)
        runs = self.sweeps[study].runs
        lines = [json.dumps([run.run_id, run.C, list(run.sweeps)]) for run in runs]
        return self.spec("\n".join([spec.reference, *lines]) + "\n", "runs", study)

    def page_spec(self, page: str, shown: Iterable[Path]) -> Path:
        return self.spec("\n".join(map(str, shown)) + "\n", "pages", page)

    def texts_spec(self) -> Path:
        """Returns the file with titles, captions, claims and entries, for the page of the tier."""
        texts = [study.model_copy(update={"grids": {}}) for study in self.shown_studies.values()]
        shown = [study.canonical_json() for study in texts]
        return self.spec("\n".join([*shown, *map(str, self.explored())]), "pages", "explore")
